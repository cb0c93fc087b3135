"""The mark before what is typed: it says what the model makes of it, an answer, the rest of a text or a translation."""

from tinychat.session import Session

MARKS = {"chat": "›", "completion": "¶", "translation": "→"}
PLAIN_MARKS = {"chat": ">", "completion": "text>", "translation": "translate>"}
"""in lines of text alone, which may be read aloud"""


def mark(session: Session, *, plain: bool = False) -> str:
    """The mark of the model at hand, and a space."""
    marks = PLAIN_MARKS if plain else MARKS
    return f"{marks[session.info.mode if session.info else 'chat']} "
