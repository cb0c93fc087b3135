"""The words at the bottom of the screen: the model and the settings in force."""

from prompt_toolkit.utils import get_cwidth

from tinychat.repl.background import training
from tinychat.repl.terminal import SEPARATOR
from tinychat.session import Session
from tinychat.settings import SAMPLING, SETTINGS, describe_sampling

GAP = 2
"""cells, at least, between the words at the left and those at the right"""


def toolbar(session: Session) -> str:
    """`smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`."""
    current = session.settings.current
    words = [session.info.name if session.info else "no model", *describe_sampling(current)]
    for name, setting in SETTINGS.items():
        if name not in SAMPLING and setting.toolbar:
            words += filter(None, [setting.toolbar(getattr(current, name))])
    return " │ ".join([*(training(run) for run in session.runs.all[-1:]), SEPARATOR.join(words)])


def beside(words: str, aside: str, width: int) -> str:
    """Words at the left and others at the right, in so many cells; of those at the left, the last give way."""
    kept = words.split(SEPARATOR)
    while kept and get_cwidth(SEPARATOR.join(kept)) + get_cwidth(aside) + GAP > width:
        kept.pop()
    left = SEPARATOR.join(kept)
    return left + " " * max(0, width - get_cwidth(left) - get_cwidth(aside)) + aside
