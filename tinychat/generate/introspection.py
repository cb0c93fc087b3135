"""Look inside a model: hooks that record what it computes, and only meanwhile; and summaries of attention weights.

Shapes: see `model/transformer.py`; also L layers.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tinychat.generate.engine import Head
from tinychat.model.attention import Attention, TurnAttention, TurnMasks
from tinychat.model.ngrams import TokenContext
from tinychat.model.transformer import Block, EncoderOutput, Transformer

SKIPPED_QUERIES = 2
"""First queries of a sequence, left out of a head's averages: the first can attend to nothing but itself."""
MIN_QUERY_FRACTION = 1 / 8
"""Fraction of the queries that must have a key of some kind for its average weight to mean anything."""


@contextmanager
def watch_attention(
    model: Transformer, record: Callable[[Tensor], None], *, layer: int | None = None, cross: bool = False
) -> Iterator[None]:
    """Pass the decoder's attention weights [B, H, T, S], in f32, to `record` while the context lasts, layer by layer.

    Watch only the `layer` of that index, if one is given, and with `cross` its attention to the encoder.
    """

    def weigh(attention: Attention, inputs: tuple[Tensor, Tensor | None], options: dict[str, Any]) -> None:
        x, mask = inputs
        if isinstance(attention, TurnAttention):
            record(_show_on_kept_tokens(attention, x, options["turns"]).float())
            return
        query, key, _ = attention.project(x, options.get("rotary"), options.get("encoded"))
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # [B, H, S, K]
        scores = query @ key.transpose(-2, -1) * attention.scale  # [B, H, T, S], as in `attend`
        record((scores if mask is None else scores + mask).softmax(dim=-1).float())

    blocks = [block for block in model.decoder.blocks if isinstance(block, Block)]
    chosen = blocks if layer is None else blocks[layer : layer + 1]
    with ExitStack() as hooks:  # a hook's handle removes it at its exit
        for residual in [block.cross_attention if cross else block.attention for block in chosen]:
            if residual is not None:
                hooks.enter_context(residual.sublayer.register_forward_pre_hook(weigh, with_kwargs=True))
        yield


def _show_on_kept_tokens(attention: TurnAttention, x: Tensor, turns: TurnMasks) -> Tensor:
    """Return the weights [B, H, T, T] of turns at the tokens that heads keep; what goes to no turn, at the query."""
    query, key, _ = attention.pool(x, turns)
    weights = attention.weigh(x, query, key, turns).unsqueeze(1)  # [B, 1, T, T], at the last token of each turn
    is_kept = turns.keep(torch.eye(x.shape[1], device=x.device).expand(*turns.kept.shape, -1))  # [B, G, T, T]
    shown = weights @ is_kept.repeat_interleave(attention.n_head // attention.kv_heads, dim=1).to(weights.dtype)
    return shown + torch.diag_embed(1 - shown.sum(-1))


def logit_lens(
    model: Transformer, ids: Tensor, encoder_output: EncoderOutput | None = None
) -> tuple[Tensor, Tensor | None]:
    """Predict the token after ids [1, T] by each layer (nostalgebraist 2020, "interpreting GPT: the logit lens").

    The head is applied to the input of each block and to the output of the last one, all normalized on the scale of the
    last one, so that the rows are the partial sums of the logits. A scale of its own would make each row as sure as the
    last one: the embeddings, a thousandth as long as the final state, would name one token with 100 %.

    Returns:
        Probabilities [L + 1, V], of the embeddings and after each layer; and None. If the model mixes layers with
        counts and copies, [L + 4, V], with rows for counts, copies and the mixture; and the shares of layers, counts
        and copies [3].
    """
    states: list[Tensor] = []  # [1, 1, D] each, at the last position
    mixed: list[tuple[Any, ...]] = []
    with ExitStack() as hooks:
        for block in model.decoder.blocks:
            hooks.enter_context(block.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0][:, -1:])))
        if (norm := model.decoder.norm) is not None:
            hooks.enter_context(norm.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0][:, -1:])))
        else:
            hooks.enter_context(model.decoder.register_forward_hook(lambda _, __, out: states.append(out[:, -1:])))
        if model.ngrams is not None:
            hooks.enter_context(model.ngrams.register_forward_pre_hook(lambda _, inputs: mixed.append(inputs)))
        logits = model(ids, encoder_output=encoder_output)[0, -1].float()  # [V]
    x = torch.cat(states)[:, 0]  # [L + 1, D]
    if norm is not None:
        x = _normalize_by_last(norm, x)
    predicted = model.head(x).float().softmax(-1)  # [L + 1, V]
    if model.ngrams is None:
        return predicted, None
    of_layers, hidden, context, _ = mixed[0]
    padded_ids = context.padded_ids[:, -model.config.lookback - 1 :]
    newest = TokenContext(padded_ids, context.history, context.slots[..., -1:])
    components, shares = model.ngrams.components(of_layers[:, -1:], hidden[:, -1:], newest)
    return torch.cat((predicted, components[0, 0, 1:], logits.softmax(-1).unsqueeze(0))), shares[0, 0]


def _normalize_by_last(norm: nn.Module, states: Tensor) -> Tensor:
    """Apply a norm to states [L + 1, D], dividing all of them by what it divides the last one by."""
    normed: Tensor = norm(states)
    if not isinstance(norm, nn.LayerNorm | nn.RMSNorm):
        return normed
    centred = states - states.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else states
    scales = (centred.square().mean(-1, keepdim=True) + (norm.eps or 0.0)).sqrt()  # [L + 1, 1]
    bias = getattr(norm, "bias", None)
    shift = torch.zeros_like(normed[-1]) if bias is None else bias
    return (normed - shift) * (scales / scales[-1]) + shift


def describe_heads(weights: Tensor, ids: Tensor | None, cells: int) -> list[Head]:
    """Summarize the weights [H, T, S] of each head, in maps of at most `cells` rows and columns.

    `ids` [T] are the tokens that attend to each other; None for attention to an encoder.
    """
    queries = slice(min(SKIPPED_QUERIES, weights.shape[1] - 1), None)
    chosen = weights[:, queries]  # [H, T', S]
    values = {
        "first": chosen[..., 0].mean(-1),
        "entropy": -torch.special.xlogy(chosen, chosen).sum(-1).mean(-1) / math.log(2),
    }
    if ids is not None:
        steps = torch.arange(len(ids), device=ids.device)
        distances = (steps.unsqueeze(1) - steps)[queries]  # [T', S]
        equal = ids.unsqueeze(1) == ids  # [T, S]
        followed = equal.roll(1, dims=1).tril(-1)[queries]
        followed[:, 0] = False
        values |= {
            "previous": _mean_weight(chosen, distances == 1),
            "itself": _mean_weight(chosen, distances == 0),
            "same": _mean_weight(chosen, equal.tril(-1)[queries]),
            "followed": _mean_weight(chosen, followed),
            "distance": (chosen * distances).sum(-1).mean(-1),
        }
    maps = [tuple(map(tuple, head)) for head in shrink(weights, cells).tolist()]
    rows = zip(*(value.tolist() for value in values.values()), strict=True)
    return [Head(cells=map, **dict(zip(values, row, strict=True))) for map, row in zip(maps, rows, strict=True)]


def shrink(weights: Tensor, cells: int) -> Tensor:
    """Reduce maps [H, T, S] to at most `cells` rows and columns, summing keys and averaging queries."""
    for dim, reduce in ((2, torch.sum), (1, torch.mean)):
        size = weights.shape[dim]
        edges = [cell * size // cells for cell in range(cells + 1)] if size > cells else range(size + 1)
        parts = [reduce(weights.narrow(dim, first, last - first), dim) for first, last in pairwise(edges)]
        weights = torch.stack(parts, dim)
    return weights


def _mean_weight(weights: Tensor, chosen: Tensor) -> Tensor:
    """Average the weights [H, T, S] on chosen keys [T, S] over the queries that have any, [H]; 0 if too few have."""
    queries = chosen.any(-1)
    if queries.sum() < max(1, MIN_QUERY_FRACTION * len(queries)):
        return weights.new_zeros(len(weights))
    return (weights * chosen).sum(-1)[:, queries].mean(-1)
