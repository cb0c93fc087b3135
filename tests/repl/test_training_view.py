"""The dashboard of a training run, its plain lines and JSON, and the keys that act on it."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput
from screens import Screen

from tinychat.cli.train import watch
from tinychat.config.settings import UiOptions
from tinychat.errors import Interrupted
from tinychat.events import (
    Ended,
    Evaluated,
    Event,
    Failed,
    Noticed,
    Planned,
    Sampled,
    Saved,
    Stepped,
    from_json,
    to_json,
)
from tinychat.repl.keys import Keyboard
from tinychat.repl.training_view import STOP_QUESTION, Dashboard, describe, panel
from tinychat.store.runs import RunFolder
from tinychat.train.event_log import Progress

PLANNED = Planned(("a text of 1,000 characters", "a model", "a minute"), 10, 900, 4000, 60.0, "cpu", 1)
EVALUATED = Evaluated(1480, 1.83, 6.234, 2.64, True)
SAMPLED = Sampled(1480, "ROMEO:", "\nA lamp was \x1b[31mleft behind window panes, it is a quiet night or more\n")
SAVED = Saved(1480)


def stepped(step: int) -> Stepped:
    return Stepped(step, step / 4000, 4.2 - step / 1000, 0.01, 0.5, 48_000.4, 60.0, 62.0, 4000, 513_000_000)


KEYS = "b background · s sample now · p prompt · e evaluate now · q stop and keep"
EVENTS: list[Event] = [PLANNED, *map(stepped, range(0, 1481, 148)), EVALUATED, SAMPLED, SAVED]


def ended(folder: str = "/home/somebody/models/mine", reason: str = "done", samples: tuple[str, ...] = ()) -> Ended:
    return Ended(reason, 4000, 1.7104, 5.531, 2.4676, 121.0, folder, samples, training_loss=1.6521)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path / "runs" / "mine")
    run.path.mkdir(parents=True)
    return run


def write(run: RunFolder, *events: Event) -> None:
    with run.events_file.open("a", encoding="utf-8") as file:
        file.write("".join(to_json(event) + "\n" for event in events))


def draw_panel(columns: int, rows: int, message: str = "", more: Sequence[Event] = ()) -> list[str]:
    progress = Progress()
    for event in [*EVENTS, *more]:
        progress.update(event)
    terminal = Screen(columns, rows).terminal()
    return [
        line.rstrip()
        for line in terminal.render(
            panel(terminal.console(columns - 1), progress, rows, message), columns - 1
        ).splitlines()
    ]


def sample(lines: Sequence[str]) -> list[str]:
    """Return the lines of the samples in a panel of 80 columns."""
    return [line.partition("││")[2].rstrip("│").strip() for line in lines if "││" in line]


def test_the_panel_at_80_columns() -> None:
    lines = draw_panel(80, 24)
    assert lines[0] == "step 1,480/4,000 " + "━" * 16 + "╸" + " " * 28 + " 37 % · 1:02 left"
    assert lines[1] == "loss 2.72 · val 1.83 · perplexity 6.2 · 2.64 bits/char · 48,000 tok/s"
    assert lines[2] == "learning rate 0.01 · gradient norm 0.5 · memory 513 MB"
    assert lines[3] == ""
    assert lines[4] == f"╭─ loss by step · ⠒⠒ train · ◆ val {'─' * 3}╮╭─ sample at step 1,480 {'─' * 15}╮"
    assert lines[5].startswith("│     4┤⠉")
    assert sample(lines)[:3] == [
        "ROMEO:",
        "A lamp was ␛[31mleft behind window",
        "panes, it is a quiet night or more",
    ]
    assert lines[-5].startswith("│     2┤")
    assert lines[-4][:37].endswith("◆")
    assert lines[-3].partition("││")[0].split() == ["│", "0", "500", "1,000"]
    assert lines[-2] == f"╰{'─' * 37}╯╰{'─' * 38}╯"
    assert lines[-1] == KEYS


def test_the_panel_warns_of_overfitting_and_nothing_moves() -> None:
    later = (1700, 1740, 1776)
    rising = [stepped(1776), *(Evaluated(step, 1.95, 7.03, 2.8, False, is_part=True) for step in later)]
    lines = draw_panel(80, 24, more=rising)
    assert lines[1] == "loss 2.42 · part of val 1.95 (best 1.83) · perplexity 7.0 · 2.80 bits/char"
    assert lines[3] == "overfits since step 1,480 · val rises, train falls · its weights are kept"
    assert len(lines) == len(draw_panel(80, 24))
    assert draw_panel(80, 24, "a sample comes after this step", rising)[3] == "a sample comes after this step"


def test_a_run_measured_in_epochs_shows_the_epoch_and_the_accuracy() -> None:
    more = [dataclasses.replace(PLANNED, epochs=20.0), dataclasses.replace(EVALUATED, accuracy=0.4567, epoch=7)]
    lines = draw_panel(80, 24, more=more)
    assert lines[0].startswith("epoch 7.4/20 · step 1,480/4,000 ━")
    assert lines[1] == "loss 2.72 · val 1.83 · perplexity 6.2 · 2.64 bits/char · accuracy 45.7 %"
    assert list(describe(more[1])) == [
        "epoch 7 · step 1,480 · val loss 1.8300 · perplexity 6.23 · 2.640 bits/char · accuracy 45.7 % · best so far"
    ]


def test_samples_of_several_prompts_stand_below_each_other() -> None:
    more = [Sampled(1500, "what is it", "a toy"), Sampled(1500, "is it good", "yes " * 60)]
    lines = draw_panel(80, 24, more=more)
    assert "─ samples at step 1,500 ─" in lines[4]
    assert sample(lines)[:2] == ["what is it → a toy", "is it good → yes yes yes yes yes yes"]
    end = dataclasses.replace(ended(samples=("a toy", "yes")), prompts=("what is it", "is it good"))
    assert list(describe(end))[-2:] == ["sample 1  what is it → a toy", "sample 2  is it good → yes"]
    again = draw_panel(80, 24, more=[*more, Sampled(1500, "is it good", "no")])
    assert sample(again)[1] == "is it good → no"


def test_a_sample_that_answers_its_prompt_differs_from_one_that_continues_it() -> None:
    answer = Sampled(1500, "are you well", "quite well", is_continuation=False)
    assert sample(draw_panel(80, 24, more=[answer]))[0] == "are you well → quite well"


def test_a_narrow_panel_stacks_all_its_parts() -> None:
    lines = draw_panel(60, 24)
    assert lines[1:4] == [
        "loss 2.72 · val 1.83 · perplexity 6.2 · 2.64 bits/char",
        "48,000 tok/s · learning rate 0.01 · gradient norm 0.5",
        "memory 513 MB",
    ]
    assert any(line.startswith("╭─ sample at step 1,480 ─") for line in lines)
    assert lines[-2:] == ["b background · s sample now · p prompt · e evaluate now", "q stop and keep"]


def test_a_narrow_panel_asks_all_of_its_question() -> None:
    assert "stop and keep the model? y/n" in draw_panel(30, 24, STOP_QUESTION)


@pytest.mark.parametrize("columns", [20, 40, 63, 80, 120, 200])
@pytest.mark.parametrize("rows", [6, 10, 24, 50])
def test_the_panel_fits_the_screen(columns: int, rows: int) -> None:
    lines = draw_panel(columns, rows)
    assert len(lines) < rows
    assert all(len(line) < columns for line in lines)
    assert lines[0].startswith("step 1,480")


def test_the_panel_before_the_first_step() -> None:
    terminal = Screen().terminal()
    assert terminal.render(panel(terminal.console(), Progress(), 24)).splitlines() == [
        "reading the text, starting torch…",
        KEYS,
    ]
    assert "first steps…" in terminal.render(panel(terminal.console(), Progress(planned=PLANNED), 24))


def test_a_run_is_drawn_in_place_and_its_plan_and_report_stay(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    screen, end = Screen(rows=50), ended(samples=("a word\nand more\n", "four " * 100, ""))
    threading.Timer(0.5, write, (run, Noticed("a notice"), stepped(1776), end)).start()
    outcome = Dashboard(screen.terminal(), Keyboard(input)).show(run, _trainer())
    assert outcome == end
    assert screen.lines[:4] == ["a text of 1,000 characters", "a model", "a minute", "a notice"]
    assert screen.lines[4].startswith("step 1,776/4,000 ━━━━━━━━")
    position = screen.lines.index("done at step 4,000 after 2:01 · loss 1.7104 · perplexity 5.53 · 2.468 bits/char")
    assert screen.lines[position + 1 :] == [
        "overfits  no: train loss is 1.6521, val 0.06 above it",
        "time      2:01 in all",
        "sample 1  a word",
        "          and more",
        "sample 2  " + ("four " * 13).rstrip(),
        *["          " + ("four " * 13).rstrip()] * 2,
        "          " + ("four " * 13).rstrip() + " …",
        "sample 3  (nothing)",
    ]
    assert not any("background" in line for line in screen.lines)


@pytest.mark.slow
def test_a_resized_window_shows_the_panel_once(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    screen = Screen(100, 40)
    screens: list[list[str]] = []

    def record_and_resize(columns: int, rows: int) -> None:
        screens.append(screen.lines)
        screen.screen.resize(rows, columns)

    for number, size in enumerate([(60, 12), (100, 40), (100, 40)], 1):
        threading.Timer(0.8 * number, record_and_resize, size).start()
    threading.Timer(2.8, write, (run, ended())).start()
    Dashboard(screen.terminal(), Keyboard(input)).show(run, _trainer())
    assert [len([line for line in lines if line.startswith("step 1,480")]) for lines in screens] == [1, 1, 1]
    assert screens[1][-1] == "q stop and keep"
    assert screens[2][-1] == KEYS


def _trainer(code: str = "import time; time.sleep(60)") -> "subprocess.Popen[bytes]":
    """Return a process that stands for a trainer; waiting for its end kills it."""
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait = lambda timeout=None: process.kill() or 0  # type: ignore[method-assign, func-returns-value]
    return process


def commands(run: RunFolder) -> list[str]:
    return [json.loads(line)["command"] for line in run.control_file.read_text().splitlines()]


def test_keys_send_commands_to_the_trainer(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    input.send_text("sxeqnqy")
    screen, told = Screen(), "stopping after this step; all is kept"

    def end_when_told() -> None:
        while told not in screen.getvalue():
            time.sleep(0.01)
        write(run, ended(reason="stopped"))

    threading.Thread(target=end_when_told, daemon=True).start()
    outcome = Dashboard(screen.terminal(), Keyboard(input)).show(run, _trainer())
    assert outcome == ended(reason="stopped")
    assert commands(run) == ["sample", "evaluate", "stop"]


def test_a_run_goes_on_if_its_trainer_cannot_be_asked(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    run.control_file.mkdir()  # nothing can be written to it, as on a full disk
    input.send_text("sb")
    screen = Screen()

    def end_when_told() -> None:
        deadline = time.monotonic() + 60
        while "the trainer cannot be sent 'background'" not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        write(run, ended())

    threading.Thread(target=end_when_told, daemon=True).start()
    assert Dashboard(screen.terminal(), Keyboard(input)).show(run, _trainer()) == ended()
    assert "the trainer cannot be sent 'background': " in screen.getvalue()
    input.send_text("\x03\x03")  # the first one cannot stop it, the second one leaves
    (run.path / "events.jsonl").write_text("")
    write(run, *EVENTS)
    with pytest.raises(Interrupted):
        Dashboard(Screen().terminal(), Keyboard(input)).show(run, _trainer())


@pytest.mark.slow
@pytest.mark.parametrize("dumb", [False, True])
def test_what_is_typed_for_the_prompt_does_not_act_on_the_run(run: RunFolder, input: PipeInput, *, dumb: bool) -> None:
    """Neither what was typed before the keys were on screen, nor lines that begin otherwise, nor `quit`."""
    write(run, *EVENTS)
    input.send_text("bees\r")
    lines = "/quit q\x7f\rquick!\rxb\x1bs\x1b[200~pasted\x1b[201~\rhalf"
    threading.Timer(0.6, input.send_text, [lines]).start()
    threading.Timer(1.2, write, (run, ended())).start()
    screen = Screen()
    keyboard = Keyboard(input)
    assert Dashboard(screen.terminal(dumb=dumb), keyboard, prompt_mark="› ").show(run, _trainer()) == ended()
    assert commands(run) == ["sample"]
    typed = "".join(key.data for key in keyboard.pop_typeahead())
    assert typed.replace("\x1b[200~", "").replace("\x1b[201~", "") == "bees\r/quit \rquick!\rpasted\rhalf"
    assert ("› half▏" in screen.getvalue()) is not dumb
    assert "kept for the prompt; b leaves the run for it" in screen.getvalue()


@pytest.mark.slow
def test_plain_lines_handle_keys_and_show_samples(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    input.send_text("sxqq")
    threading.Timer(0.6, write, (run, ended(reason="stopped"))).start()
    screen = Screen()
    outcome = Dashboard(screen.terminal(dumb=True), Keyboard(input)).show(run, _trainer())
    assert outcome == ended(reason="stopped")
    assert commands(run) == ["sample", "stop"]
    assert screen.lines[0] == "keys: b background, s sample now, e evaluate now, q stop and keep"
    said = {"a sample comes after this step", "stop and keep the model? y/n"}
    assert said | {"stopping after this step; all is kept"} <= set(screen.lines)
    assert any(line.startswith("sample at step ") for line in screen.lines)
    assert "\x1b" not in screen.getvalue()


@pytest.mark.slow
def test_a_new_prompt_requests_samples_at_once(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    input.send_text("px\x1b")  # Esc discards the edit
    threading.Timer(0.6, input.send_text, ["pqb\x7f: \n!\rqq"]).start()  # text while the prompt is typed, not keys
    threading.Timer(1.5, write, (run, ended(reason="stopped"))).start()
    screen = Screen()
    Dashboard(screen.terminal(), Keyboard(input)).show(run, _trainer())
    messages = [json.loads(line) for line in run.control_file.read_text().splitlines()]
    assert [(message["command"], message.get("prompt")) for message in messages] == [
        ("sample", "q: \n!"),
        ("stop", None),
    ]
    assert "prompt for samples: x▏" in screen.getvalue()
    assert "Enter sets it and samples · Esc leaves it" in screen.getvalue()


def test_b_leaves_the_run_in_the_background(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    input.send_text("b")
    process = _trainer()
    assert Dashboard(Screen().terminal(), Keyboard(input)).show(run, process) is None
    assert commands(run) == ["background"]
    process.kill()


def test_a_second_ctrl_c_leaves_at_once(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    input.send_text("\x03\x03")
    process = _trainer()
    with pytest.raises(Interrupted):
        Dashboard(Screen().terminal(), Keyboard(input)).show(run, process)
    assert commands(run) == ["stop"]
    process.kill()


def test_the_death_of_the_trainer_is_reported(run: RunFolder, input: PipeInput) -> None:
    write(run, *EVENTS)
    outcome = Dashboard(Screen().terminal(), Keyboard(input)).show(run, _trainer("raise SystemExit(3)"))
    assert isinstance(outcome, Failed)
    assert outcome.problem == "the trainer ended without a word"
    assert str(run.log_file) in outcome.remedy


def test_a_full_disk_is_told_where_the_trainer_could_not_write_it(
    run: RunFolder, input: PipeInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 100, 0))  # type: ignore[attr-defined]
    outcome = Dashboard(Screen().terminal(), Keyboard(input)).show(run, _trainer("raise SystemExit(1)"))
    assert isinstance(outcome, Failed)
    assert outcome.problem == f"the trainer ended: the disk of {run.path} is full"
    ways = f"`tinychat train --resume {run.typed_name}`, or `/train --resume {run.typed_name}` in the REPL"
    assert outcome.remedy == f"make room; {ways}, goes on from its last checkpoint"


ReadOutput = Callable[[], tuple[list[str], list[str]]]


@pytest.fixture
def read_output(capsys: pytest.CaptureFixture[str]) -> Iterator[ReadOutput]:
    """Yield a function that returns the lines of stdout and stderr."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda: tuple(map(str.splitlines, capsys.readouterr()))  # type: ignore[return-value]
    signal.signal(signal.SIGTERM, before)


def test_without_a_terminal_plain_lines_go_to_stderr(run: RunFolder, read_output: ReadOutput) -> None:
    write(run, *EVENTS, ended())
    assert watch(run, as_json=False, ui_options=UiOptions(), process=_trainer()) == ended()
    out, err = read_output()
    assert out == []
    assert err == [
        "a text of 1,000 characters",
        "a model",
        "a minute",
        "step 0/4,000 · 0 % · loss 4.200 · 48,000 tok/s · 1:02 left",  # the next one would come ten seconds later
        "step 1,480 · val loss 1.8300 · perplexity 6.23 · 2.640 bits/char · best so far",
        "done at step 4,000 after 2:01 · loss 1.7104 · perplexity 5.53 · 2.468 bits/char",
        "overfits  no: train loss is 1.6521, val 0.06 above it",
        "time      2:01 in all",
        "the model is in /home/somebody/models/mine",
        "talk to it: tinychat -m mine",
    ]


def test_a_stopped_run_says_where_its_model_is_and_how_to_resume(run: RunFolder, read_output: ReadOutput) -> None:
    write(run, ended("/elsewhere/x", "stopped"))
    watch(run, as_json=False, ui_options=UiOptions(), process=_trainer())
    assert read_output()[1] == [
        "stopped at step 4,000 after 2:01 · loss 1.7104 · perplexity 5.53 · 2.468 bits/char",
        "overfits  no: train loss is 1.6521, val 0.06 above it",
        "time      2:01 in all",
        "the model is in /elsewhere/x",
        "talk to it: tinychat -m /elsewhere/x",
        "go on with it: tinychat train --resume mine",
    ]


def test_json_puts_every_event_on_stdout_and_only_errors_on_stderr(run: RunFolder, read_output: ReadOutput) -> None:
    events = [*EVENTS, Sampled(1480, "a", "\x9b"), Failed("there is not enough memory", "try a smaller --batch-size")]
    write(run, *events)
    assert watch(run, as_json=True, ui_options=UiOptions(), process=_trainer()) == events[-1]
    out, err = read_output()
    assert list(map(from_json, out)) == events
    assert err == ["tinychat: there is not enough memory", "  try a smaller --batch-size"]


@pytest.mark.slow
def test_an_interrupt_stops_the_run_and_a_second_one_leaves_it(run: RunFolder, read_output: ReadOutput) -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupt_after(seconds: float) -> None:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

    write(run, *EVENTS)
    interrupt_after(0.3)
    threading.Timer(0.8, write, (run, ended(reason="stopped"))).start()
    outcome = watch(run, as_json=False, ui_options=UiOptions(), process=_trainer())
    assert outcome == ended(reason="stopped")
    assert commands(run) == ["stop"]
    assert "stopping after this step; all is kept" in read_output()[1]
    run.events_file.unlink()
    write(run, *EVENTS)
    interrupt_after(0.3)
    interrupt_after(0.8)
    process = _trainer()
    with pytest.raises(Interrupted):
        watch(run, as_json=False, ui_options=UiOptions(), process=process)
    process.kill()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_of_another_process_is_followed_by_its_lock(run: RunFolder, read_output: ReadOutput) -> None:
    write(run, stepped(0))
    threading.Timer(0.3, write, (run, ended())).start()
    assert watch(run, as_json=False, ui_options=UiOptions()) == ended()


def test_events_that_do_not_concern_a_user_have_no_lines() -> None:
    assert list(describe(SAVED)) == list(describe(SAMPLED)) == []
