"""Sample tokens from logits: penalties, temperature, top-k, top-p, min-p, then a draw; greedy: the likeliest token.

The functions and their order are those of the logits processors of `transformers`, against which they are tested. A new
setting is a field of `Settings` and a function here, in one of the two tables. Logits are [B, V]: batch, vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tinychat.config.settings import SETTINGS, Settings
from tinychat.generate.engine import Request, uniform

NEGATIVE_INFINITY = float("-inf")
LARGEST = torch.finfo(torch.float32).max

Histories = Sequence[Sequence[int]]
"""Ids of each sequence of the batch so far, prompt included."""


def penalize_repetition(logits: Tensor, penalty: float, histories: Histories) -> Tensor:
    """Divide the positive logits [B, V] of tokens in the text, multiply the negative (Keskar et al. 2019, §4.1)."""
    logits = logits.clone()
    for row, history in zip(logits, histories, strict=True):
        used = torch.tensor(sorted(set(history)), dtype=torch.long, device=logits.device)
        row[used] = torch.where(row[used] > 0, row[used] / penalty, row[used] * penalty)
    return logits.clamp(-LARGEST, LARGEST)


def divide_by_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Sharpen the distribution of logits [B, V] below temperature 1, flatten it above (Ackley et al. 1985)."""
    divided, highest = logits / temperature, logits.amax(dim=-1, keepdim=True)
    # Where the highest would be infinite, the differences to it are divided: they are all that counts.
    return torch.where((highest / temperature).isfinite(), divided, (logits - highest) / temperature)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Mask the logits [B, V] of all but the k likeliest tokens (Fan et al. 2018)."""
    if k >= logits.shape[-1]:
        return logits
    kth = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < kth, NEGATIVE_INFINITY)


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Mask the logits [B, V] of all but the likeliest tokens that sum to `top_p` (Holtzman et al. 2020, §3.1).

    Of tokens with equal logits those with lower ids count as likelier, as in the native engine.
    """
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    likelier = probabilities.cumsum(dim=-1) - probabilities  # 0 for the likeliest token, which is always kept
    # At least the smallest f32: one below it would be 0 in f32, and mask all.
    ordered = ordered.masked_fill(likelier >= max(top_p, torch.finfo(torch.float32).tiny), NEGATIVE_INFINITY)
    return torch.empty_like(logits).scatter_(-1, order, ordered)


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    """Mask the logits [B, V] of tokens below this fraction of the highest probability (Nguyen et al. 2024)."""
    # p < min_p · p_max, in logarithms, which needs no softmax
    floor = logits.amax(dim=-1, keepdim=True) + torch.tensor(min_p).log()
    return logits.masked_fill(logits < floor, NEGATIVE_INFINITY)


PENALIZERS: Mapping[str, Callable[[Tensor, Any, Histories], Tensor]] = {"repetition_penalty": penalize_repetition}
"""By setting, in their order: functions of the logits, the setting's value, and the text so far."""

FILTERS: Mapping[str, Callable[[Tensor, Any], Tensor]] = {
    "temperature": divide_by_temperature,
    "top_k": keep_top_k,
    "top_p": keep_top_p,
    "min_p": keep_min_p,
}
"""By setting, in their order: functions of the logits and the setting's value. The likeliest token is always kept."""


def filter_logits(logits: Tensor, settings: Settings, histories: Histories, biases: Tensor | None = None) -> Tensor:
    """Return the logits to sample from, [B, V]: −∞ where a token is masked. The settings hold for all sequences.

    `biases` [B, V] are added after the penalties.
    """
    for name, penalize in PENALIZERS.items():
        if is_active(name, settings):
            logits = penalize(logits, getattr(settings, name), histories)
    if biases is not None:
        logits = logits + biases
    if settings.greedy:
        return logits
    for name, filter_ in FILTERS.items():
        if is_active(name, settings):
            logits = filter_(logits, getattr(settings, name))
    return logits


def sample(
    logits: Tensor,
    settings: Settings,
    histories: Histories,
    uniforms: Callable[[], Tensor],
    biases: Tensor | None = None,
) -> Tensor:
    """Sample one token id for each sequence, [B], from logits [B, V], to which `biases` [B, V] are added.

    `uniforms` returns random numbers in [0, 1), [B], f64; it is not called if the settings are greedy.
    """
    filtered = filter_logits(logits, settings, histories, biases)
    return filtered.argmax(dim=-1) if settings.greedy else draw(filtered, uniforms())


def probabilities(logits: Tensor, settings: Settings, histories: Histories, biases: Tensor | None = None) -> Tensor:
    """Return the probability with which `sample` chooses each token, [B, V], f64: 0 where it is masked."""
    filtered = filter_logits(logits, settings, histories, biases)
    if settings.greedy:
        return torch.nn.functional.one_hot(filtered.argmax(dim=-1), filtered.shape[-1]).double()
    return filtered.double().softmax(dim=-1)


def draw(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Return the first ids [B] of logits [B, V] whose cumulative probabilities exceed uniform numbers [B], f64."""
    cumulative = logits.double().softmax(dim=-1).cumsum(dim=-1)  # [B, V]
    return torch.searchsorted(cumulative, uniforms.unsqueeze(1) * cumulative[:, -1:], right=True).squeeze(1)


def is_active(name: str, settings: Settings) -> bool:
    """Return whether a sampling setting has a value that changes anything."""
    return bool(getattr(settings, name) != SETTINGS[name].neutral)


def needs_history(settings: Settings) -> bool:
    """Return whether sampling depends on the text so far beyond the logits."""
    return any(is_active(name, settings) for name in PENALIZERS)


def stack_biases(requests: Sequence[Request], logits: Tensor) -> Tensor | None:
    """Return the biases of sequences with logits [B, V], as a tensor like these; None if none has any."""
    if all(request.biases is None for request in requests):
        return None
    stacked = torch.zeros(logits.shape)
    for row, request in zip(stacked, requests, strict=True):
        if request.biases is not None:
            row.copy_(torch.frombuffer(request.biases, dtype=torch.float32))
    return stacked.to(logits.device)


def sampling_values(settings: Settings) -> tuple[float | None, ...]:
    """Return the values of the settings that decide how a token is drawn from the logits."""
    return tuple(getattr(settings, name) for name in (*PENALIZERS, *FILTERS))


def random_numbers(requests: Sequence[Request], step: int, steps: int) -> Tensor:
    """Return the random numbers for `steps` tokens of each sequence, [B, steps], f64.

    `step` tokens have been generated since the requests were made.
    """
    starts = [(one.seed, one.prompt_index, one.num_generated + step) for one in requests]
    numbers = [[uniform(seed, prompt, first + more) for more in range(steps)] for seed, prompt, first in starts]
    return torch.tensor(numbers, dtype=torch.float64)
