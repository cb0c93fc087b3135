"""Looking inside a model while it computes, by hooks that are there only meanwhile: decoding pays nothing for it.

Shapes: B batch, T time (queries), S keys, D d_model, H heads, V vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tinychat.model.attention import Attention, attention_weights
from tinychat.model.ngrams import Seen
from tinychat.model.transformer import Block, Memory, Transformer


@contextmanager
def watch_attention(
    model: Transformer, take: Callable[[Tensor], None], *, layer: int | None = None, cross: bool = False
) -> Iterator[None]:
    """Hands over the weights of the decoder's attention, [B, H, T, S] in f32, one layer after the other.

    Args:
        layer: whose weights alone are wanted, from 0; None: those of all.
        cross: those of attention to the encoder.
    """

    def weigh(attention: Attention, given: tuple[Tensor, Tensor | None], places: dict[str, Any]) -> None:
        x, mask = given
        query, key, _ = attention.project(x, places["position"], places["turns"], places.get("memory"))
        take(attention_weights(query, key, mask).float())

    blocks = [block for block in model.decoder.blocks if isinstance(block, Block)]
    chosen = blocks if layer is None else blocks[layer : layer + 1]
    looks = [block.cross_attention if cross else block.attention for block in chosen]
    hooks = [look.sublayer.register_forward_pre_hook(weigh, with_kwargs=True) for look in looks if look is not None]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def lens(model: Transformer, ids: Tensor, memory: Memory | None = None) -> tuple[Tensor, Tensor | None]:
    """What would be said next after each layer: a logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens").

    The model's own final norm and head are applied to what each block is given, and to what the last one makes.

    Args:
        ids: [1, T].
        memory: what the encoder made of the source.

    Returns:
        [L + 1, V], probabilities: of the embeddings, then after each layer. Where the layers are mixed with counts and
        matches, three rows more, [L + 4, V]: these two and the mixture, and the shares of layers, counts, matches [3].
    """
    streams: list[Tensor] = []  # [1, 1, D] each, at the last place
    mixed: list[tuple[Any, ...]] = []

    def take_stream(block: object, given: tuple[Any, ...]) -> None:
        streams.append(given[0][:, -1:])

    def take_output(decoder: object, given: object, output: Tensor) -> None:
        streams.append(output[:, -1:])

    def take_mixed(ngrams: object, given: tuple[Any, ...]) -> None:
        mixed.append(given)

    hooks = [block.register_forward_pre_hook(take_stream) for block in model.decoder.blocks]
    hooks.append(model.decoder.register_forward_hook(take_output))
    if model.ngrams is not None:
        hooks.append(model.ngrams.register_forward_pre_hook(take_mixed))
    try:
        logits = model(ids, memory=memory)[0, -1].float()  # [V]
    finally:
        for hook in hooks:
            hook.remove()
    norm = model.decoder.norm
    if norm is not None:
        streams[:-1] = [norm(x) for x in streams[:-1]]
    said = model.head(torch.cat(streams)[:, 0]).float().softmax(-1)  # [L + 1, V]
    if model.ngrams is None:
        return said, None
    layers, x, (known, history, positions), _ = mixed[0]
    last = Seen(known[:, -model.config.looks_back - 1 :], history, positions[..., -1:])
    voices, shares = model.ngrams.voices(layers[:, -1:], x[:, -1:], last)
    return torch.cat((said, voices[0, 0, 1:], logits.softmax(-1).unsqueeze(0))), shares[0, 0]
