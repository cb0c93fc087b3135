"""The words at the bottom of the screen: the model and the settings in force."""

from tinychat.session import Session
from tinychat.settings import SETTINGS

SEPARATOR = " · "


def toolbar(session: Session) -> str:
    """`smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`."""
    name = session.info.name if session.info else "no model"
    return SEPARATOR.join([name, *sampling(session), *limits(session)])


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
