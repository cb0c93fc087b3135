"""Events written, taken back, and read again."""

from pathlib import Path

import pytest

from tinychat.events import Ended, Evaluated, Event, Failed, LineReader, Noticed, Saved, Stepped
from tinychat.train.event_log import LONGEST_CURVE, EventLog, loss_curve, rewind


def stepped(step: int) -> Stepped:
    return Stepped(step, 0.5, 3.0 - step / 1000, 0.1, 1.0, 1000.0, step / 10, 10.0, 100)


def ended(step: int) -> Ended:
    return Ended("stopped", step, 1.0, 2.7, 1.4, 10.0, "model")


def write(path: Path, *events: Event) -> None:
    journal = EventLog(path)
    for event in events:
        journal.write(event)
    journal.close()


def read(path: Path) -> list[Event]:
    return list(LineReader(path).events())


def test_each_event_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    journal = EventLog(tmp_path / "events")
    journal.write(Noticed("«text» is in UTF-16"))
    assert read(tmp_path / "events") == [Noticed("«text» is in UTF-16")]
    journal.close()


@pytest.mark.parametrize("last", [ended(30), Failed("no")])
def test_what_came_after_the_checkpoint_is_taken_back(tmp_path: Path, last: Event) -> None:
    path = tmp_path / "events"
    events = [Noticed("begin"), stepped(10), Saved(10), stepped(20), Saved(20)]
    write(path, *events, stepped(30), last)
    rewind(path, 20)
    assert read(path) == events
    write(path, stepped(30))
    assert read(path) == [*events, stepped(30)]


def test_a_last_word_is_taken_back_wherever_the_checkpoint_is(tmp_path: Path) -> None:
    write(tmp_path / "events", stepped(10), ended(10))
    rewind(tmp_path / "events", 10)
    assert read(tmp_path / "events") == [stepped(10)]


def test_a_run_that_went_back_is_taken_back_to_where_it_was_last(tmp_path: Path) -> None:
    path = tmp_path / "events"
    events = [stepped(10), stepped(20), stepped(30), Noticed("back to step 10"), stepped(11), stepped(20), Saved(20)]
    write(path, *events, stepped(30), Noticed("later"))
    rewind(path, 20)
    assert read(path) == events


def test_a_line_that_was_cut_short_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events"
    write(path, stepped(10), stepped(20))
    for cut in range(1, 60):
        path.write_bytes(path.read_bytes()[:-cut])
        rewind(path, 100)
        assert read(path) in ([stepped(10)], [stepped(10), stepped(20)])
        path.unlink()
        write(path, stepped(10), stepped(20))


def test_without_a_checkpoint_nothing_has_happened(tmp_path: Path) -> None:
    write(tmp_path / "events", Noticed("begin"), stepped(10))
    rewind(tmp_path / "events", -1)
    assert read(tmp_path / "events") == []
    rewind(tmp_path / "absent", -1)


def test_a_long_curve_is_thinned_out_and_keeps_its_end(tmp_path: Path) -> None:
    write(tmp_path / "events", *map(stepped, range(1, 1502)), Evaluated(1500, 1.5, 4.5, 2.2, True))
    curve = loss_curve(tmp_path / "events")
    assert len(curve["training"]) <= LONGEST_CURVE
    assert curve["training"][-1][0] == 1501
    assert curve["validation"] == [[1500, 1.5]]


def test_an_epoch_has_the_mean_loss_of_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    steps = [Stepped(step, 0.1, loss, 0.1, 1.0, 1.0, 1.0, 1.0, 9) for step, loss in ((1, 4.0), (3, 2.5), (5, 1.0))]
    first = Evaluated(3, 2.0, 7.4, 2.9, True, accuracy=0.4, epoch=1)
    glance, whole = (Evaluated(5, loss, 4.5, 2.2, True, accuracy=0.5, epoch=2) for loss in (1.5, 1.6))
    write(path, *steps[:2], first, steps[2], glance, whole)
    assert loss_curve(path)["epochs"] == [
        {"epoch": 1, "step": 3, "loss": 2.0, "perplexity": 7.4, "accuracy": 0.4, "training_loss": 3.0},
        {"epoch": 2, "step": 5, "loss": 1.6, "perplexity": 4.5, "accuracy": 0.5, "training_loss": 1.0},
    ]
