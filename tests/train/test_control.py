"""What is asked of a trainer from outside."""

import os
import signal
from pathlib import Path

import pytest

from tinychat.store.runs import RunFolder
from tinychat.train.event_log import Control


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_commands_come_once_in_order(run: RunFolder) -> None:
    control = Control(run.control_file)
    assert control.poll_commands() == []
    run.send("sample", prompt="ROMEO:")
    run.send("evaluate")
    assert [command["command"] for command in control.poll_commands()] == ["sample", "evaluate"]
    assert control.poll_commands() == []
    assert not control.stop_requested


def test_stop_stops(run: RunFolder) -> None:
    control = Control(run.control_file)
    run.send("stop")
    assert control.poll_commands() == []
    assert control.stop_requested


def test_half_a_line_waits_for_its_end_and_nonsense_is_passed_over(run: RunFolder) -> None:
    control = Control(run.control_file)
    run.control_file.write_bytes(b'nonsense\n[1]\n{"command": "eval')
    assert control.poll_commands() == []
    with run.control_file.open("ab") as file:
        file.write(b'uate"}\n')
    assert control.poll_commands() == [{"command": "evaluate"}]


def test_it_stops_when_the_parent_has_gone_unless_it_may_go_on(run: RunFolder) -> None:
    assert Control(run.control_file, parent=os.getppid()).poll_commands() == []
    orphan = Control(run.control_file, parent=os.getppid() + 1)
    orphan.poll_commands()
    assert orphan.stop_requested
    run.send("background")
    left = Control(run.control_file, parent=os.getppid() + 1)
    left.poll_commands()  # the person left it in the background and went away before it looked
    assert not left.stop_requested
    allowed = Control(run.control_file, parent=os.getppid())
    allowed.poll_commands()
    allowed.poll_commands()
    assert not allowed.stop_requested


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_to_stop_and_a_second_one_is_not_held_back(run: RunFolder, number: int) -> None:
    control = Control(run.control_file)
    control.listen_to_signals()
    signal.raise_signal(number)
    assert control.stop_requested
    assert signal.getsignal(number) == signal.SIG_DFL
