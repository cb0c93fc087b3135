"""The report at the end of a run."""

import dataclasses

import pytest

from tinychat.events import Ended
from tinychat.train.report import report

ENDED = Ended(
    reason="done", step=4000, loss=1.7104, perplexity=5.531, bits_per_character=2.4676, seconds=115.0, folder="mine",
    samples=("a", "b", "c"), best_step=4000, training_loss=1.6521, tokens=100_000, part_tokens=8192,
    best_part_loss=1.69, last_part_loss=1.69, last_training_loss=1.6402,
    copied="the king\nis dead", copied_position=0.373, copied_searched=1.0,
    start_seconds=6.0, step_seconds=101.0, evaluation_seconds=9.0,
)  # fmt: skip


def rows(**changes: object) -> dict[str, str]:
    return dict(report(dataclasses.replace(ENDED, **changes)))  # type: ignore[arg-type]


def test_the_rows_of_a_run_whose_last_weights_are_the_best() -> None:
    assert rows() == {
        "overfits": "no: train loss is 1.6521, val 0.06 above it",
        "copies": "at most 16 characters word for word: 'the king\\nis dead', 37 % into the text",
        "time": "2:01 in all: 0:06 to start, 1:41 in 4,000 steps, 0:09 evaluating, 0:05 sampling and saving",
    }


def test_a_run_that_overfits_reports_its_best_and_last_losses() -> None:
    table = rows(best_step=800, last_part_loss=1.88, overfits_since=800, training_loss=1.5)
    rose = "val loss rose by 0.1900, over 8,192 tokens, from step 800, whose weights are kept"
    assert table["last"] == f"at step 4,000 {rose}"
    assert table["overfits"] == "yes, since step 800, whose weights are kept: train loss is 1.5000, val 0.21 above it"


def test_a_gap_without_a_rise_is_a_little_overfitting() -> None:
    table = rows(training_loss=1.5)
    assert table["overfits"] == "a little: train loss is 1.5000, val 0.21 above it; val was not rising"
    table = rows(training_loss=1.5, best_step=800, last_part_loss=1.88)  # it may rise for good, or once
    assert table["overfits"] == "a little: train loss is 1.5000, val 0.21 above it"
    assert table["last"].startswith("at step 4,000 val loss rose by 0.1900")


def test_overfitting_is_unknown_without_a_validation_split() -> None:
    assert rows(split="train", training_loss=1.7104)["overfits"].startswith("not known")


@pytest.mark.parametrize(
    ("copied", "searched", "text"),
    [
        ("", 1.0, "nothing word for word"),
        ("e", 0.25, "at most 1 character word for word: 'e', 37 % into the text (looked at: its first 25 %)"),
        ("to " * 20, 1.0, f"at most 60 characters word for word: '{'to ' * 13}…', 37 % into the text"),
    ],
)
def test_copied_spans(copied: str, searched: float, text: str) -> None:
    assert rows(copied=copied, copied_searched=searched)["copies"] == text


def test_events_of_an_older_version_have_fewer_rows() -> None:
    assert dict(report(Ended("done", 10, 1.7, 5.5, 2.5, 60.0, "mine"))) == {
        "time": "1:00 in all",
    }


def test_the_parts_of_a_mixture_have_their_shares_and_what_they_reach_alone() -> None:
    mixture = {
        "layers": {"share": 0.161, "loss": 2.0123, "accuracy": 0.4},
        "counts": {"share": 0.774, "loss": 1.5301, "accuracy": 0.5},
        "matches": {"share": 0.065, "found": 0.82, "accuracy": 0.45},
    }
    assert rows(mixture=mixture, mixture_tokens=8192)["mixture"] == (
        "layers alone 2.0123 (share 16 %), counts alone 1.5301 (77 %), matches found at 82 % of tokens, "
        "right 45 % of the time (6 %); over 8,192 tokens"
    )
    assert "mixture" not in rows()
