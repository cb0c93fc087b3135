"""The shell command that makes an answer again."""

import json
import shlex
from collections.abc import Sequence

from tinychat.commands.command import Command, command
from tinychat.commands.results import Message, Result
from tinychat.conversation import Turn
from tinychat.errors import UsageError
from tinychat.origins import Origin
from tinychat.session import Session
from tinychat.setting import escape
from tinychat.settings import LOADING, SETTINGS
from tinychat.store.models import find_model, read_info

SAYS_NOTHING = ("seed", "slow")
"""the seed of an answer may have been drawn; the pace is for the eyes"""


@command("repeat", "talk", "make it again", usage="[N]", example="/repeat 2")
def repeat(session: Session, text: str) -> Result:
    """The shell command that makes the Nth answer again, to the byte; without a number, the last one."""
    place = _place(text, len(session.turns))
    turn = session.turns[place]
    _check(turn, place, place)
    chat = read_info(find_model(turn.model)).mode == "chat"
    turns = session.turns[: place + 1] if chat else [turn]
    for before, one in enumerate(turns[:-1]):
        _check(one, before, place)
        if one.model != turn.model or _of_loading(one) != _of_loading(turn):
            raise _cannot(place, f"answer {before + 1}, which it follows, is of another model or device")
    if len(turns) == 1:
        return Message((_one_prompt(session, turn),))
    return Message((_conversation(session, turns),), ('the last line has the answer: the text of its "completion"',))


def _place(text: str, count: int) -> int:
    if not count:
        raise UsageError("nothing has been said yet", "type a prompt first")
    try:
        number = int(text or count)
    except ValueError:
        number = 0
    if not 1 <= number <= count:
        raise UsageError(
            f"/repeat takes the number of an answer, from 1 to {count}, not {text!r}", "see `/help repeat`"
        )
    return number - 1


def _check(turn: Turn, place: int, wanted: int) -> None:
    """Refuses an answer that would come out otherwise: the one that is wanted, or one that it follows."""
    obstacle = turn.obstacle
    if turn.settings is None or turn.finished is None or not turn.model:
        obstacle = obstacle or "it is not known how it was made"
    if obstacle:
        raise _cannot(wanted, obstacle if place == wanted else f"it follows answer {place + 1}: {obstacle}")


def _cannot(place: int, why: str) -> UsageError:
    return UsageError(f"no command makes answer {place + 1} again: {why}", "`/save FILE` keeps it")


def _one_prompt(session: Session, turn: Turn) -> str:
    """`tinychat -m smalltalk -p hello --temperature 0.8 … --seed 123`."""
    assert turn.finished is not None
    words = ["tinychat", "-m", turn.model, "-p", turn.prompt, *_flags(session, turn, tuple(SETTINGS))]
    return shlex.join([*words, "--seed", str(turn.finished.seed)])


def _conversation(session: Session, turns: Sequence[Turn]) -> str:
    """Each turn is a line of JSON, with its own settings and its own seed."""
    lines = []
    for turn in turns:
        assert turn.finished is not None
        values = {name: getattr(turn.settings, name) for name in _telling(session, turn) if name not in LOADING}
        line = {"prompt": turn.prompt, **values, "seed": turn.finished.seed}
        lines.append(json.dumps(line, ensure_ascii=False))
    words = ["tinychat", "-m", turns[-1].model, "--conversation", "--jsonl", *_flags(session, turns[-1], LOADING)]
    return f"printf '%s\\n' {shlex.join(lines)} | {shlex.join(words)}"


def _flags(session: Session, turn: Turn, names: Sequence[str]) -> list[str]:
    flags = []
    for name in _telling(session, turn):
        if name in names:
            for text in _typed(getattr(turn.settings, name)):
                flags += [SETTINGS[name].flag, text]
    return flags


def _typed(value: object) -> list[str]:
    """A value as flags take it, each text of several behind a flag of its own."""
    if isinstance(value, tuple):
        return [escape(text) for text in value] or ["none"]
    if isinstance(value, float):
        return [f"{value:g}" if float(f"{value:g}") == value else repr(value)]
    return ["none" if value is None else str(value)]


def _telling(session: Session, turn: Turn) -> list[str]:
    """The settings that a call has to name: those that the toolbar tells, and those that are or were no defaults."""
    telling = []
    for name, setting in SETTINGS.items():
        value = getattr(turn.settings, name)
        shown = setting.toolbar is not None and setting.toolbar(value)
        elsewhere = value != setting.default or session.settings.origin(name) is not Origin.DEFAULT
        if name not in SAYS_NOTHING and (shown or elsewhere):
            telling.append(name)
    return telling


def _of_loading(turn: Turn) -> list[object]:
    return [getattr(turn.settings, name) for name in LOADING]


COMMANDS: tuple[Command, ...] = (repeat,)
