"""From logits to a token: penalty, temperature, top-k, top-p, min-p, then a draw.

The order and the rules are those of the logits processors of `transformers`, against which they are tested.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tinychat.generate.engine import Request
from tinychat.generate.prompts import uniform
from tinychat.settings import Settings

NEGATIVE_INFINITY = float("-inf")


def filter_logits(logits: Tensor, settings: Settings, histories: Sequence[Sequence[int]]) -> Tensor:
    """The logits to draw from: −∞ where a token is cut.

    Args:
        logits: [B, V].
        settings: the same for all rows.
        histories: the ids already in each row, prompt included; looked at for the repetition penalty only.

    Returns:
        [B, V].
    """
    if settings.repetition_penalty != 1:
        logits = penalize(logits, histories, settings.repetition_penalty)
    if settings.greedy:
        return logits
    if settings.temperature != 1:
        logits = logits / settings.temperature
    if settings.top_k is not None and settings.top_k < logits.shape[-1]:
        kth = logits.topk(settings.top_k).values[..., -1:]
        logits = logits.masked_fill(logits < kth, NEGATIVE_INFINITY)
    if settings.top_p < 1:
        logits = keep_top_p(logits, settings.top_p)
    if settings.min_p > 0:
        # p < min_p · p_max, in logarithms: no softmax is needed.
        floor = logits.amax(dim=-1, keepdim=True) + torch.tensor(settings.min_p).log()
        logits = logits.masked_fill(logits < floor, NEGATIVE_INFINITY)
    return logits


def probabilities(logits: Tensor, settings: Settings, histories: Sequence[Sequence[int]]) -> Tensor:
    """What each token is drawn with, [B, V], in f64: 0 where it is cut. Arguments as for `filter_logits`."""
    kept = filter_logits(logits, settings, histories)
    if settings.greedy:
        return torch.nn.functional.one_hot(kept.argmax(dim=-1), kept.shape[-1]).double()
    return kept.double().softmax(dim=-1)


def penalize(logits: Tensor, histories: Sequence[Sequence[int]], penalty: float) -> Tensor:
    """Divides the positive logits of tokens already used, multiplies the negative ones (Keskar et al. 2019, §4.1)."""
    logits = logits.clone()
    for row, history in zip(logits, histories, strict=True):
        used = torch.tensor(sorted(set(history)), dtype=torch.long, device=logits.device)
        row[used] = torch.where(row[used] > 0, row[used] / penalty, row[used] * penalty)
    return logits


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Cuts what comes after the likeliest tokens that together reach `top_p` (Holtzman et al. 2020, §3.1)."""
    ordered, order = logits.sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of the likelier ones: 0 for the first, which always stays
    ordered = ordered.masked_fill(before >= top_p, NEGATIVE_INFINITY)
    return torch.empty_like(logits).scatter_(-1, order, ordered)


def sample(logits: Tensor, uniforms: Tensor) -> Tensor:
    """One token id a row, [B]: the first whose cumulative probability exceeds the row's uniform number in [0, 1).

    Args:
        logits: [B, V].
        uniforms: [B], f64.
    """
    cumulative = logits.double().softmax(dim=-1).cumsum(dim=-1)  # [B, V]
    return torch.searchsorted(cumulative, uniforms.unsqueeze(1) * cumulative[:, -1:], right=True).squeeze(1)


def rules(settings: Settings) -> tuple[float | None, ...]:
    """All that the choice of a token hangs on, beside logits, history and random numbers."""
    return settings.temperature, settings.top_k, settings.top_p, settings.min_p, settings.repetition_penalty


def random_numbers(requests: Sequence[Request], step: int, steps: int) -> Tensor:
    """The numbers to draw so many tokens of each sequence with, [B, steps], f64; `step`: since it was requested."""
    positions = range(step, step + steps)
    numbers = [
        [uniform(one.seed, one.prompt_index, one.num_generated + position) for position in positions]
        for one in requests
    ]
    return torch.tensor(numbers, dtype=torch.float64)
