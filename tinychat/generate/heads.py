"""From the weights of attention to what a person can read of them."""

import math
from itertools import pairwise

import torch
from torch import Tensor

from tinychat.generate.looking import Head

SKIPPED = 2
"""queries at the beginning that tell little of a head: the first can look nowhere but at itself"""
FEWEST = 1 / 8
"""of the queries: what can be looked at from fewer says nothing of a head"""


def describe_heads(weights: Tensor, ids: Tensor | None, cells: int) -> list[Head]:
    """What each head looks at.

    Args:
        weights: [H, T, S].
        ids: [T], the tokens that look at each other; None: they look at the encoder's.
        cells: the most rows and columns of a map.
    """
    places = slice(min(SKIPPED, weights.shape[1] - 1), None)
    seen = weights[:, places]  # [H, T', S]
    values = {
        "first": seen[..., 0].mean(-1),
        "entropy": -torch.special.xlogy(seen, seen).sum(-1).mean(-1) / math.log(2),
    }
    if ids is not None:
        steps = torch.arange(len(ids), device=ids.device)
        distances = (steps.unsqueeze(1) - steps)[places]  # [T', S]
        alike = ids.unsqueeze(1) == ids
        same = alike.tril(-1)[places]
        followed = alike.roll(1, dims=1).tril(-1)[places]
        followed[:, 0] = False
        values |= {
            "previous": _share(seen, distances == 1),
            "itself": _share(seen, distances == 0),
            "same": _share(seen, same),
            "followed": _share(seen, followed),
            "distance": (seen * distances).sum(-1).mean(-1),
        }
    shrunk = shrink(weights, cells)
    maps = [tuple(map(tuple, head)) for head in shrunk.tolist()]
    rows = zip(*(value.tolist() for value in values.values()), strict=True)
    return [Head(cells=map, **dict(zip(values, row, strict=True))) for map, row in zip(maps, rows, strict=True)]


def shrink(weights: Tensor, cells: int) -> Tensor:
    """A map of at most so many rows and columns: sums over neighbouring keys, means over neighbouring queries.

    Args:
        weights: [H, T, S].
    """
    for dim, reduce in ((2, torch.sum), (1, torch.mean)):
        size = weights.shape[dim]
        edges = [place * size // cells for place in range(cells + 1)] if size > cells else range(size + 1)
        parts = [reduce(weights.narrow(dim, first, last - first), dim) for first, last in pairwise(edges)]
        weights = torch.stack(parts, dim)
    return weights


def _share(weights: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the weight on what is chosen of the keys, over the queries for which some is; 0 for too few.

    Args:
        weights: [H, T, S].
        chosen: [T, S].
    """
    queries = chosen.any(-1)
    if queries.sum() < max(1, FEWEST * len(queries)):
        return weights.new_zeros(len(weights))
    return (weights * chosen).sum(-1)[:, queries].mean(-1)
