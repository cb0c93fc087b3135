"""Sampling: compared with the logits processors of `transformers`, and with the probabilities of a softmax."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.config.settings import CONTROLS, PENALTIES, SAMPLING, SETTINGS, Settings
from tinychat.generate.engine import uniform
from tinychat.generate.sampling import FILTERS, PENALIZERS, draw, filter_logits, needs_history, sample

transformers = pytest.importorskip("transformers")


def reference(logits: torch.Tensor, wanted: Settings, history: torch.Tensor) -> torch.Tensor:
    """Return the logits of transformers' `generate` with the same settings."""
    processors = transformers.LogitsProcessorList()
    if wanted.repetition_penalty != 1:
        processors.append(transformers.RepetitionPenaltyLogitsProcessor(wanted.repetition_penalty))
    if wanted.temperature != 1:
        processors.append(transformers.TemperatureLogitsWarper(wanted.temperature))
    if wanted.top_k:
        processors.append(transformers.TopKLogitsWarper(wanted.top_k))
    if wanted.top_p < 1:
        processors.append(transformers.TopPLogitsWarper(wanted.top_p))
    if wanted.min_p:
        processors.append(transformers.MinPLogitsWarper(wanted.min_p))
    return processors(history, logits.clone())  # type: ignore[no-any-return]


@settings(max_examples=200)
@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([0.2, 0.8, 1.0, 1.7]),
    top_k=st.sampled_from([None, 1, 3, 1000]),
    top_p=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.3, 0.7]),
)
@pytest.mark.slow
def test_filters_equal_those_of_transformers(seed: int, **values: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 50, generator=generator) * 4
    history = torch.randint(50, (3, 7), generator=generator)
    wanted = Settings(**values)  # type: ignore[arg-type]
    ours = filter_logits(logits, wanted, history.tolist())
    torch.testing.assert_close(ours, reference(logits, wanted, history))


def test_each_sampling_setting_has_its_function() -> None:
    assert set(PENALIZERS) == set(PENALTIES)
    assert set(PENALIZERS) | set(FILTERS) | set(CONTROLS) | {"steer"} == set(SAMPLING)


def test_neutral_settings_change_nothing() -> None:
    logits = torch.randn(3, 50)
    neutral = Settings(**{name: SETTINGS[name].neutral for name in SAMPLING})
    assert filter_logits(logits, neutral, [[1], [2], [3]]) is logits
    assert not needs_history(neutral)
    assert needs_history(Settings(repetition_penalty=1.1))


def test_greedy_decoding_needs_no_random_numbers() -> None:
    logits = torch.tensor([[0.1, 3.0, 2.0]])

    def uniforms() -> torch.Tensor:
        raise AssertionError

    assert sample(logits, Settings(temperature=0), [[]], uniforms).tolist() == [1]
    half = torch.tensor([0.5], dtype=torch.float64)
    assert sample(logits, Settings(), [[]], lambda: half).tolist() == draw(logits / 0.8, half).tolist()


def test_greedy_decoding_takes_the_likeliest_token_with_any_filter() -> None:
    logits = torch.tensor([[0.1, 3.0, 2.0]])
    kept = filter_logits(logits, Settings(temperature=0, top_k=1, top_p=0.1), [[]])
    assert kept.argmax().item() == 1


@pytest.mark.parametrize("count", [20_000])
def test_draws_have_the_probabilities_of_the_softmax(count: int) -> None:
    """Pearson's chi-squared with 4 degrees of freedom; 18.5 is exceeded once in a thousand cases."""
    logits = torch.tensor([1.0, 0.0, -1.0, float("-inf"), 2.0, 0.5])
    drawn = draw(
        logits.expand(count, -1),
        torch.tensor([uniform(7, 0, position) for position in range(count)], dtype=torch.float64),
    )
    seen = drawn.bincount(minlength=6).double()
    expected = logits.double().softmax(0) * count
    assert seen[3] == 0
    possible = expected > 0
    assert (((seen - expected) ** 2)[possible] / expected[possible]).sum() < 18.5


def test_the_smallest_and_largest_random_numbers_draw_possible_tokens() -> None:
    logits = torch.tensor([[float("-inf"), 0.0, 0.0, float("-inf")]])
    assert draw(logits, torch.zeros(1, dtype=torch.float64)).item() == 1
    assert draw(logits, torch.tensor([1 - 2.0**-53], dtype=torch.float64)).item() == 2


def test_random_numbers_depend_on_their_position_alone_and_are_uniform() -> None:
    numbers = torch.tensor(
        [uniform(seed, prompt, position) for seed in range(10) for prompt in range(10) for position in range(50)]
    )
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert len(numbers.unique()) > 4990
    assert abs(numbers.mean().item() - 0.5) < 0.02
    assert abs(numbers.var().item() - 1 / 12) < 0.005
    assert uniform(1, 2, 3) == uniform(1, 2, 3) != uniform(1, 3, 2)
