"""Record what a model computes inside, by hooks that exist only meanwhile: decoding pays nothing for it.

Shapes: see `transformer.py`; also L layers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tinychat.model.ngrams import TokenContext
from tinychat.model.transformer import Attention, Block, EncoderOutput, Transformer


@contextmanager
def watch_attention(
    model: Transformer, record: Callable[[Tensor], None], *, layer: int | None = None, cross: bool = False
) -> Iterator[None]:
    """Pass the decoder's attention weights to `record` while the context lasts, layer by layer.

    Args:
        model: that is to be watched.
        record: called with [B, H, T, S], in f32, when a layer runs.
        layer: index of the only layer to watch; None: all.
        cross: whether to watch attention to the encoder instead of self-attention.
    """

    def weigh(attention: Attention, inputs: tuple[Tensor, Tensor | None], options: dict[str, Any]) -> None:
        x, mask = inputs
        query, key, _ = attention.project(x, options.get("rotary"), options.get("encoded"))
        record(attention_weights(query, key, mask).float())

    blocks = [block for block in model.decoder.blocks if isinstance(block, Block)]
    chosen = blocks if layer is None else blocks[layer : layer + 1]
    residuals = [block.cross_attention if cross else block.attention for block in chosen]
    hooks = [
        residual.sublayer.register_forward_pre_hook(weigh, with_kwargs=True)
        for residual in residuals
        if residual is not None
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(query · keyᵀ / √K + mask), [B, H, T, S]: the weights inside `attend`. Arguments as there."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # [B, H, S, K]
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    weights: Tensor = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights


def logit_lens(
    model: Transformer, ids: Tensor, encoder_output: EncoderOutput | None = None
) -> tuple[Tensor, Tensor | None]:
    """Predict the next token after each layer: the logit lens (nostalgebraist 2020, "interpreting GPT: the logit
    lens").

    The final norm and the head are applied to the input of each block and to the output of the last one.

    Args:
        model: in evaluation mode.
        ids: [1, T].
        encoder_output: of the source, in an encoder-decoder model.

    Returns:
        Probabilities [L + 1, V], of the embeddings and after each layer; and None. If the model mixes layers with
        counts and copies, [L + 4, V], with rows for counts, copies and the mixture; and the shares of layers, counts
        and copies [3].
    """
    states: list[Tensor] = []  # [1, 1, D] each, at the last position
    mixed: list[tuple[Any, ...]] = []

    def record_input(block: object, inputs: tuple[Any, ...]) -> None:
        states.append(inputs[0][:, -1:])

    def record_output(decoder: object, inputs: object, output: Tensor) -> None:
        states.append(output[:, -1:])

    def record_mixture(ngrams: object, inputs: tuple[Any, ...]) -> None:
        mixed.append(inputs)

    hooks = [block.register_forward_pre_hook(record_input) for block in model.decoder.blocks]
    hooks.append(model.decoder.register_forward_hook(record_output))
    if model.ngrams is not None:
        hooks.append(model.ngrams.register_forward_pre_hook(record_mixture))
    try:
        logits = model(ids, encoder_output=encoder_output)[0, -1].float()  # [V]
    finally:
        for hook in hooks:
            hook.remove()
    norm = model.decoder.norm
    if norm is not None:
        states[:-1] = [norm(x) for x in states[:-1]]
    predicted = model.head(torch.cat(states)[:, 0]).float().softmax(-1)  # [L + 1, V]
    if model.ngrams is None:
        return predicted, None
    of_layers, x, (padded_ids, history, positions), _ = mixed[0]
    last = TokenContext(padded_ids[:, -model.config.lookback - 1 :], history, positions[..., -1:])
    components, shares = model.ngrams.components(of_layers[:, -1:], x[:, -1:], last)
    return torch.cat((predicted, components[0, 0, 1:], logits.softmax(-1).unsqueeze(0))), shares[0, 0]
