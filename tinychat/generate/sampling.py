"""From logits to a token: penalties, temperature, top-k, top-p, min-p, then a draw; or, greedy, the likeliest.

The order and the rules are those of the logits processors of `transformers`, against which they are tested. A new
setting is a field of `Settings` and a function here, in one of the two tables. Shapes: B rows, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tinychat.config.settings import SAMPLING, SETTINGS, Settings
from tinychat.generate.engine import Request
from tinychat.generate.prompts import uniform

NEGATIVE_INFINITY = float("-inf")
NEUTRAL = {name: SETTINGS[name].neutral for name in SAMPLING}
"""The values with which sampling settings change nothing."""

Histories = Sequence[Sequence[int]]
"""the ids already in each row, prompt included"""


def penalize_repetition(logits: Tensor, penalty: float, histories: Histories) -> Tensor:
    """Divide the positive logits of tokens already used, multiply the negative ones (Keskar et al. 2019, §4.1)."""
    logits = logits.clone()
    for row, history in zip(logits, histories, strict=True):
        used = torch.tensor(sorted(set(history)), dtype=torch.long, device=logits.device)
        row[used] = torch.where(row[used] > 0, row[used] / penalty, row[used] * penalty)
    return logits


def divide_by_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Make what is unlikely less likely still below 1, more likely above (Ackley et al. 1985)."""
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Cut all but the k likeliest tokens (Fan et al. 2018)."""
    if k >= logits.shape[-1]:
        return logits
    kth = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < kth, NEGATIVE_INFINITY)


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Cut what comes after the likeliest tokens that together reach `top_p` (Holtzman et al. 2020, §3.1)."""
    ordered, order = logits.sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of the likelier ones: 0 for the first, which always stays
    ordered = ordered.masked_fill(before >= top_p, NEGATIVE_INFINITY)
    return torch.empty_like(logits).scatter_(-1, order, ordered)


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    """Cut tokens with less than this fraction of the highest probability (Nguyen et al. 2024)."""
    # p < min_p · p_max, in logarithms: no softmax is needed.
    floor = logits.amax(dim=-1, keepdim=True) + torch.tensor(min_p).log()
    return logits.masked_fill(logits < floor, NEGATIVE_INFINITY)


PENALIZERS: Mapping[str, Callable[[Tensor, Any, Histories], Tensor]] = {"repetition_penalty": penalize_repetition}
"""By setting, in their order: functions of the logits, its value, and the text so far."""

FILTERS: Mapping[str, Callable[[Tensor, Any], Tensor]] = {
    "temperature": divide_by_temperature,
    "top_k": keep_top_k,
    "top_p": keep_top_p,
    "min_p": keep_min_p,
}
"""By setting, in their order: functions of the logits and its value. They never cut the likeliest token."""


def filter_logits(logits: Tensor, settings: Settings, histories: Histories) -> Tensor:
    """Return the logits to draw from, [B, V]: −∞ where a token is cut.

    Args:
        logits: [B, V].
        settings: the same for all rows.
        histories: looked at for penalties only.
    """
    for name, penalize in PENALIZERS.items():
        if is_in_force(name, settings):
            logits = penalize(logits, getattr(settings, name), histories)
    if settings.greedy:
        return logits
    for name, filter_ in FILTERS.items():
        if is_in_force(name, settings):
            logits = filter_(logits, getattr(settings, name))
    return logits


def sample(logits: Tensor, settings: Settings, histories: Histories, uniforms: Callable[[], Tensor]) -> Tensor:
    """Choose one token id a row, [B].

    Args:
        logits: [B, V].
        settings: the same for all rows.
        histories: looked at for penalties only.
        uniforms: makes the rows' random numbers in [0, 1), [B], f64; not called where the likeliest are taken.
    """
    kept = filter_logits(logits, settings, histories)
    return kept.argmax(dim=-1) if settings.greedy else draw(kept, uniforms())


def probabilities(logits: Tensor, settings: Settings, histories: Histories) -> Tensor:
    """Return what `sample` chooses each token with, [B, V], in f64: 0 where it is cut."""
    kept = filter_logits(logits, settings, histories)
    if settings.greedy:
        return torch.nn.functional.one_hot(kept.argmax(dim=-1), kept.shape[-1]).double()
    return kept.double().softmax(dim=-1)


def draw(logits: Tensor, uniforms: Tensor) -> Tensor:
    """One token id a row, [B]: the first whose cumulative probability exceeds the row's uniform number in [0, 1).

    Args:
        logits: [B, V].
        uniforms: [B], f64.
    """
    cumulative = logits.double().softmax(dim=-1).cumsum(dim=-1)  # [B, V]
    return torch.searchsorted(cumulative, uniforms.unsqueeze(1) * cumulative[:, -1:], right=True).squeeze(1)


def is_in_force(name: str, settings: Settings) -> bool:
    """Return whether a sampling setting changes anything."""
    return bool(getattr(settings, name) != NEUTRAL[name])


def looks_back(settings: Settings) -> bool:
    """Return whether the choice of a token depends on the text so far, beside the logits."""
    return any(is_in_force(name, settings) for name in PENALIZERS)


def rules(settings: Settings) -> tuple[float | None, ...]:
    """Return all that the choice of a token depends on, beside logits, history and random numbers."""
    return tuple(getattr(settings, name) for name in SAMPLING)


def random_numbers(requests: Sequence[Request], step: int, steps: int) -> Tensor:
    """The numbers to draw so many tokens of each sequence with, [B, steps], f64; `step`: since it was requested."""
    positions = range(step, step + steps)
    numbers = [
        [uniform(one.seed, one.prompt_index, one.num_generated + position) for position in positions]
        for one in requests
    ]
    return torch.tensor(numbers, dtype=torch.float64)
