"""What is told of runs in the background."""

from pathlib import Path

from screens import Screen

from tinychat.background import BackgroundRun
from tinychat.events import Ended, Failed, Stepped
from tinychat.repl.background import tell_ended, training
from tinychat.session import Session
from tinychat.store.runs import RunFolder


def test_how_far_a_run_has_come_and_how_it_ended(session: Session, tmp_path: Path) -> None:
    run, screen = BackgroundRun(RunFolder(tmp_path / "novel")), Screen()
    assert training(run) == "novel is starting"
    run.stepped = Stepped(1480, 0.37, 1.71, 0.01, 0.5, 48_000.0, 60.0, 62.0, 4000)
    assert training(run) == "novel trains: step 1,480/4,000 · loss 1.71 · 1:02 left"
    for last in (
        Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "elsewhere"),
        Ended("stopped", 1500, 1.7, 5.5, 2.5, 60.0, str(session.model.info.folder)),
        Failed("there is no memory", "take less"),
    ):
        run.last = last
        tell_ended([run], session, screen.terminal())
    assert screen.lines == [
        "novel is done: step 4,000, loss 1.700 · /model novel talks to it",
        "novel is stopped: step 1,500, loss 1.700 · it answers now",
        "novel: there is no memory",
        "take less",
    ]
