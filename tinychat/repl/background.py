"""What is told of runs in the background: how far they have come, and how they ended."""

from collections.abc import Sequence

from tinychat.background import BackgroundRun
from tinychat.events import Failed
from tinychat.repl.terminal import Terminal
from tinychat.session import Session
from tinychat.textutil import duration


def training(run: BackgroundRun) -> str:
    """`shakespeare trains: step 1,480/4,000 · loss 1.71 · 1:02 left`."""
    now = run.stepped
    if now is None:
        return f"{run.run.name} is starting"
    return (
        f"{run.run.name} trains: step {now.step:,}/{now.steps:,} · loss {now.loss:.2f} · {duration(now.remaining)} left"
    )


def tell_ended(runs: Sequence[BackgroundRun], session: Session, terminal: Terminal) -> None:
    """How runs have ended, and how to talk to what they made."""
    for one in runs:
        if isinstance(one.last, Failed):
            terminal.problem(f"{one.run.name}: {one.last.problem}", one.last.remedy)
        elif one.last is not None:
            now = session.info is not None and str(session.info.folder) == one.last.folder
            talk = "it answers now" if now else f"/model {one.run.name} talks to it"
            step, loss = one.last.step, one.last.loss
            terminal.line(f"{one.run.name} is {one.last.reason}: step {step:,}, loss {loss:.3f} · {talk}")
