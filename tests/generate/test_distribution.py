"""What is drawn comes as often as the model says: chi-squared tests of both engines, with fixed seeds."""

from collections import Counter
from pathlib import Path

import pytest

from tinychat.config.settings import Settings
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import open_engine
from tinychat.store.models import read_info

DRAWS = 4000


def chi_squared(engine: Engine, settings: Settings, prompt: list[int]) -> tuple[float, int]:
    """Pearson's statistic for the first tokens of many answers, and its degrees of freedom."""
    probabilities = engine.probabilities(Request(0, prompt, 0, settings, seed=0))
    counts: Counter[int] = Counter()
    for position in range(0, DRAWS, engine.batch_size):
        crowd = [Request(row, prompt, 0, settings, 11, position + row) for row in range(engine.batch_size)]
        counts.update(drawn[0].id for drawn in engine.extend(crowd, 1))
    total = counts.total()
    common = {one.id: one.probability * total for one in probabilities if one.probability * total >= 5}
    assert not any(counts[one.id] for one in probabilities if one.probability == 0)
    classes = [(counts[id], expected) for id, expected in common.items()]
    rest = total - sum(expected for _, expected in classes)
    if rest >= 1:  # rare tokens are one class
        classes.append((total - sum(count for count, _ in classes), rest))
    return sum((count - expected) ** 2 / expected for count, expected in classes), len(classes) - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch", "native"])
@pytest.mark.parametrize(
    "settings",
    [Settings(temperature=1, top_p=1), Settings(), Settings(temperature=1.4, top_k=7), Settings(top_p=0.8, min_p=0.05)],
    ids=["plain", "default", "top-k", "min-p"],
)
def test_tokens_come_as_often_as_they_should(
    name: str, settings: Settings, letters: Path, request: pytest.FixtureRequest
) -> None:
    if name == "native":
        request.getfixturevalue("compiled")
    engine = open_engine(read_info(letters), Settings(engine=name, precision="f32"))
    statistic, freedom = chi_squared(engine, settings, [3, 5, 4])
    assert freedom > 2
    # The mean is `freedom`, the variance twice that; four and a half standard deviations are met once in 100,000 times.
    assert statistic < freedom + 4.5 * (2 * freedom) ** 0.5
