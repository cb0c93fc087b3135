"""The words at the bottom of the screen: the model and the settings in force."""

from tinychat.background import Background
from tinychat.session import Session
from tinychat.settings import SETTINGS

SEPARATOR = " · "


def toolbar(session: Session) -> str:
    """`smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`."""
    name = session.info.name if session.info else "no model"
    words = SEPARATOR.join([name, *sampling(session), *limits(session)])
    return " │ ".join([*(training(run) for run in session.background[-1:]), words])


def training(run: Background) -> str:
    """`shakespeare trains: step 1,480/4,000 · loss 1.71 · 1:02 left`."""
    from tinychat.repl.watching import duration

    now = run.stepped
    if now is None:
        return f"{run.run.name} is starting"
    steps = f"{run.run.name} trains: step {now.step:,}/{now.steps:,}"
    return SEPARATOR.join([steps, f"loss {now.loss:.2f}", f"{duration(now.remaining)} left"])


def sampling(session: Session) -> list[str]:
    """How the next token is chosen: `temp 0.8`, `top-p 0.95`, `sample`."""
    return [*_forms(session, before_length=True), "greedy" if session.settings.current.greedy else "sample"]


def limits(session: Session) -> list[str]:
    """Where an answer ends, and what makes it repeatable: `max 256`, `seed –`."""
    return _forms(session, before_length=False)


def _forms(session: Session, before_length: bool) -> list[str]:
    """The toolbar forms of settings declared before `max_tokens`, or from it on."""
    names = list(SETTINGS)
    place = names.index("max_tokens")
    current = session.settings.current
    chosen = (SETTINGS[name] for name in (names[:place] if before_length else names[place:]))
    return [form for one in chosen if one.toolbar and (form := one.toolbar(getattr(current, one.name)))]
