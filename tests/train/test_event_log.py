"""Events are written, rewound and read again; commands and signals reach the trainer; loss curves follow."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.events import Ended, Evaluated, Event, Failed, LineReader, Noticed, Saved, Stepped
from tinychat.store.runs import RunFolder
from tinychat.train.event_log import (
    MAX_CURVE_POINTS,
    Control,
    Curves,
    EventLog,
    loss_curve,
    overfits_since,
    recent_loss,
    rewind,
    smoothed,
)


def stepped(step: int) -> Stepped:
    return Stepped(step, 0.5, 3.0 - step / 1000, 0.1, 1.0, 1000.0, step / 10, 10.0, 100)


def ended(step: int) -> Ended:
    return Ended("stopped", step, 1.0, 2.7, 1.4, 10.0, "model")


def write(path: Path, *events: Event) -> None:
    log = EventLog(path)
    for event in events:
        log.write(event)
    log.close()


def read(path: Path) -> list[Event]:
    return list(LineReader(path).events())


def test_each_event_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events")
    log.write(Noticed("«text» is in UTF-16"))
    assert read(tmp_path / "events") == [Noticed("«text» is in UTF-16")]
    log.close()


def test_names_that_are_not_text_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / "events", Noticed("\udcff.txt: the text is field '\ud800'"))
    assert read(tmp_path / "events") == [Noticed("\ufffd.txt: the text is field '\ufffd'")]


@pytest.mark.parametrize("last", [ended(30), Failed("no")])
def test_rewind_removes_events_after_the_checkpoint(tmp_path: Path, last: Event) -> None:
    path = tmp_path / "events"
    events = [Noticed("begin"), stepped(10), Saved(10), stepped(20), Saved(20)]
    write(path, *events, stepped(30), last)
    rewind(path, 20)
    assert read(path) == events
    write(path, stepped(30))
    assert read(path) == [*events, stepped(30)]


def test_rewind_removes_the_event_that_ended_the_run(tmp_path: Path) -> None:
    write(tmp_path / "events", stepped(10), ended(10))
    rewind(tmp_path / "events", 10)
    assert read(tmp_path / "events") == [stepped(10)]


def test_rewind_stops_at_the_last_occurrence_of_a_step(tmp_path: Path) -> None:
    path = tmp_path / "events"
    events = [stepped(10), stepped(20), stepped(30), Noticed("back to step 10"), stepped(11), stepped(20), Saved(20)]
    write(path, *events, stepped(30), Noticed("later"))
    rewind(path, 20)
    assert read(path) == events


def test_rewind_removes_a_line_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "events"
    write(path, stepped(10), stepped(20))
    for cut in range(1, 60):
        path.write_bytes(path.read_bytes()[:-cut])
        rewind(path, 100)
        assert read(path) in ([stepped(10)], [stepped(10), stepped(20)])
        path.unlink()
        write(path, stepped(10), stepped(20))


def test_rewind_without_a_checkpoint_removes_all_events(tmp_path: Path) -> None:
    write(tmp_path / "events", Noticed("begin"), stepped(10))
    rewind(tmp_path / "events", -1)
    assert read(tmp_path / "events") == []
    rewind(tmp_path / "absent", -1)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_commands_are_returned_once_and_in_order(run: RunFolder) -> None:
    control = Control(run.control_file)
    assert control.poll_commands() == []
    run.send("sample", prompt="ROMEO:")
    run.send("evaluate")
    assert [command["command"] for command in control.poll_commands()] == ["sample", "evaluate"]
    assert control.poll_commands() == []
    assert not control.stop_requested


def test_the_command_stop_requests_a_stop(run: RunFolder) -> None:
    control = Control(run.control_file)
    run.send("stop")
    assert control.poll_commands() == []
    assert control.stop_requested


@pytest.fixture
def wakeup() -> Iterator[None]:
    before = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(before)


@pytest.mark.usefixtures("wakeup")
@pytest.mark.parametrize("begins", [False, True])
def test_a_stop_before_the_first_step_ends_the_process(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    monkeypatch.setattr("tinychat.train.event_log.STOP_SECONDS", 0.0)
    monkeypatch.setattr("tinychat.train.event_log.WATCH_INTERVAL", 0.01)
    ended = threading.Event()
    control = Control(run.control_file)
    if begins:
        control.begin_steps()
    before = set(threading.enumerate())
    control.watch(ended.set)
    run.send("stop")
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
    assert ended.is_set() != begins


@pytest.mark.usefixtures("wakeup")
def test_a_run_in_the_background_outlives_its_starter(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.train.event_log.STOP_SECONDS", 0.0)
    monkeypatch.setattr("tinychat.train.event_log.WATCH_INTERVAL", 0.01)
    polls, ended = threading.Semaphore(0), threading.Event()
    poll = Control.poll_commands
    monkeypatch.setattr(Control, "poll_commands", lambda control: (poll(control), polls.release())[0])
    control = Control(run.control_file, parent=os.getppid() + 1)
    run.send("background")
    control.watch(ended.set)
    for _ in range(3):  # the first would have ended it
        assert polls.acquire(timeout=20)
    assert not ended.is_set()
    control.begin_steps()


def test_partial_lines_wait_and_malformed_lines_are_ignored(run: RunFolder) -> None:
    control = Control(run.control_file)
    run.control_file.write_bytes(b'nonsense\n[1]\n{"command": "eval')
    assert control.poll_commands() == []
    with run.control_file.open("ab") as file:
        file.write(b'uate"}\n')
    assert control.poll_commands() == [{"command": "evaluate"}]


def test_a_run_stops_when_its_parent_exits_unless_sent_to_the_background(run: RunFolder) -> None:
    assert Control(run.control_file, parent=os.getppid()).poll_commands() == []
    orphan = Control(run.control_file, parent=os.getppid() + 1)
    orphan.poll_commands()
    assert orphan.stop_requested
    run.send("background")
    background = Control(run.control_file, parent=os.getppid() + 1)
    background.poll_commands()  # `background` came and the parent exited before the first poll
    assert not background.stop_requested
    allowed = Control(run.control_file, parent=os.getppid())
    allowed.poll_commands()
    allowed.poll_commands()
    assert not allowed.stop_requested


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_requests_a_stop_and_a_second_one_is_not_handled(run: RunFolder, number: int) -> None:
    control = Control(run.control_file)
    control.install_signal_handlers()
    signal.raise_signal(number)
    assert control.stop_requested
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_long_curve_is_thinned_out_and_keeps_its_last_point(tmp_path: Path) -> None:
    write(tmp_path / "events", *map(stepped, range(1, 1502)), Evaluated(1500, 1.5, 4.5, 2.2, True))
    curve = loss_curve(tmp_path / "events")
    assert len(curve["training"]) <= MAX_CURVE_POINTS
    assert curve["training"][-1][0] == 1501
    assert curve["validation"] == [[1500, 1.5]]


def test_an_epoch_has_the_mean_loss_of_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    steps = [Stepped(step, 0.1, loss, 0.1, 1.0, 1.0, 1.0, 1.0, 9) for step, loss in ((1, 4.0), (3, 2.5), (5, 1.0))]
    first = Evaluated(3, 2.0, 7.4, 2.9, True, accuracy=0.4, epoch=1)
    partial, final = (Evaluated(5, loss, 4.5, 2.2, True, accuracy=0.5, epoch=2) for loss in (1.5, 1.6))
    write(path, *steps[:2], first, steps[2], partial, final)
    assert loss_curve(path)["epochs"] == [
        {"epoch": 1, "step": 3, "loss": 2.0, "perplexity": 7.4, "accuracy": 0.4, "training_loss": 3.0},
        {"epoch": 2, "step": 5, "loss": 1.6, "perplexity": 4.5, "accuracy": 0.5, "training_loss": 1.0},
    ]


FALLING = [(step, 4.0 - step / 100) for step in range(0, 201, 5)]
NOISY = [(step, loss + (0.1 if step % 2 else -0.1)) for step, loss in FALLING]


def test_smoothing_removes_noise_and_keeps_the_trend() -> None:
    means = smoothed(NOISY, 0.1)
    assert [step for step, _ in means] == [step for step, _ in NOISY]
    assert all(abs(mean - loss) < 0.04 for (_, mean), (_, loss) in zip(means[4:-4], FALLING[4:-4], strict=True))
    assert smoothed([(3, 1.5)]) == [(3, 1.5)]
    assert smoothed([]) == []


def test_smoothing_keeps_a_steep_beginning() -> None:
    points = [(step, 4.0 if step < 2 else 2.0) for step in range(100)]
    assert next(loss for _, loss in smoothed(points)) == 4.0


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=60), st.floats(0, 1))
def test_smoothed_losses_lie_between_the_extremes(losses: list[float], span: float) -> None:
    means = [loss for _, loss in smoothed(list(enumerate(losses)), span)]
    assert all(min(losses) - 1e-6 <= mean <= max(losses) + 1e-6 for mean in means)


def test_recent_loss_is_the_mean_over_a_twentieth_of_the_run() -> None:
    points = [(float(step), float(step)) for step in range(101)]
    assert recent_loss(points) == pytest.approx(97.5)
    assert recent_loss(points, 50) == pytest.approx(47.5)
    assert recent_loss([]) is None


@pytest.mark.parametrize(
    ("validation", "since"),
    [
        ([], None),
        ([3.0], None),
        ([3.0, 2.5, 2.0], None),
        ([3.0, 2.5, 2.6, 2.6, 2.7], 40),
        ([3.0, 2.5, 2.6, 2.7], None),  # too few to tell from the unrest of the first steps
        ([3.0, 2.5, 2.6, 2.503, 2.6], None),  # no more than noise
        ([2.5, 2.7, 2.8, 2.7], 20),
        ([2.5, 2.9, 2.8, 2.6], None),  # about to be lower than ever
    ],
)
def test_a_model_overfits_if_validation_loss_rises_while_training_loss_falls(
    validation: list[float], since: int | None
) -> None:
    evaluations = [(20.0 * (index + 1), loss) for index, loss in enumerate(validation)]
    assert overfits_since(FALLING, evaluations) == since
    assert overfits_since([(step, 4.0 + step) for step, _ in FALLING], evaluations) is None
    assert overfits_since([], evaluations) is None


def test_a_model_overfits_too_where_the_one_that_it_started_from_stays_the_best() -> None:
    assert overfits_since(FALLING[1:], [(0.0, 1.0), (20.0, 2.0), (40.0, 2.1), (60.0, 2.1)]) == 0


def test_curves_drop_the_points_after_a_return_to_an_earlier_step() -> None:
    curves = Curves()
    for step in (10, 20, 30, 11, 12, 15):
        curves.update(Stepped(step, 0.5, 4.0 - step / 10, 0.1, 1.0, 1000.0, 1.0, 1.0, 100))
        curves.update(Evaluated(step, 2.0 + step / 10, 1.0, 1.0, False))
    assert curves.training == [(10, 3.0), (11, 2.9), (12, 2.8), (15, 2.5)]
    assert curves.validation == [(10, 3.0), (11, 3.1), (12, 3.2), (15, 3.5)]
    assert curves.overfits_since == 10
    curves.update(Evaluated(15, 3.5, 1.0, 1.0, False, "train"))
    assert curves.overfits_since is None
