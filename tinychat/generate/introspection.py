"""Records of what a model does inside, and how attention weights are summarized in them.

The records are plain numbers, whatever engine they come from; torch is imported by the functions that need it.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SKIPPED_QUERIES = 2
"""First queries of a sequence, left out of a head's averages: the first can attend to nothing but itself."""
MIN_QUERY_FRACTION = 1 / 8
"""Fraction of the queries that must have a key of some kind for its average weight to mean anything."""


@dataclass(frozen=True, slots=True)
class Head:
    """A summary of one attention head.

    Weights are averaged over all queries except the first `SKIPPED_QUERIES` of a longer sequence.
    """

    first: float
    """weight on the first token"""
    entropy: float
    """of a query's weights, in bits"""
    cells: tuple[tuple[float, ...], ...]
    """[rows][columns], all queries: neighbouring keys are summed to a column, neighbouring queries averaged to a row"""
    previous: float = 0.0
    """weight on the token before; this and the fields below are for self-attention only"""
    itself: float = 0.0
    """weight on the query's own token"""
    same: float = 0.0
    """weight on earlier tokens equal to the query's, over the queries that have any"""
    followed: float = 0.0
    """weight on the tokens after those: high for an induction head (Olsson et al. 2022)"""
    distance: float = 0.0
    """mean distance back, in tokens"""


@dataclass(frozen=True, slots=True)
class LensRow:
    """The next token as one part of a model predicts it."""

    part: str
    """`embeddings`, `layer 1` and so on; then `counts`, `matches` and `mixture`, if the model mixes these"""
    likeliest: tuple[tuple[int, float], ...]
    """ids and probabilities; empty if the part predicts nothing"""
    probability: float
    """of the token in question"""
    rank: int
    """of that token; 1 is the likeliest"""
    share: float | None = None
    """of the part in the mixture; None if it is not a component of one"""


def describe_heads(weights: "Tensor", ids: "Tensor | None", cells: int) -> list[Head]:
    """Summarize each head.

    Args:
        weights: [H, T, S], of attention.
        ids: [T], the tokens that attend to each other; None for attention to an encoder.
        cells: maximal number of rows and columns of a map.
    """
    import torch

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
        same = equal.tril(-1)[queries]
        followed = equal.roll(1, dims=1).tril(-1)[queries]
        followed[:, 0] = False
        values |= {
            "previous": _mean_weight(chosen, distances == 1),
            "itself": _mean_weight(chosen, distances == 0),
            "same": _mean_weight(chosen, same),
            "followed": _mean_weight(chosen, followed),
            "distance": (chosen * distances).sum(-1).mean(-1),
        }
    maps = [tuple(map(tuple, head)) for head in shrink(weights, cells).tolist()]
    rows = zip(*(value.tolist() for value in values.values()), strict=True)
    return [Head(cells=map, **dict(zip(values, row, strict=True))) for map, row in zip(maps, rows, strict=True)]


def shrink(weights: "Tensor", cells: int) -> "Tensor":
    """Reduce maps [H, T, S] to at most `cells` rows and columns, summing keys and averaging queries."""
    import torch

    for dim, reduce in ((2, torch.sum), (1, torch.mean)):
        size = weights.shape[dim]
        edges = [cell * size // cells for cell in range(cells + 1)] if size > cells else range(size + 1)
        parts = [reduce(weights.narrow(dim, first, last - first), dim) for first, last in pairwise(edges)]
        weights = torch.stack(parts, dim)
    return weights


def _mean_weight(weights: "Tensor", chosen: "Tensor") -> "Tensor":
    """Average the weight on chosen keys over the queries that have any, [H]; 0 if these are too few.

    Args:
        weights: [H, T, S].
        chosen: [T, S].
    """
    queries = chosen.any(-1)
    if queries.sum() < max(1, MIN_QUERY_FRACTION * len(queries)):
        return weights.new_zeros(len(weights))
    return (weights * chosen).sum(-1)[:, queries].mean(-1)
