"""Commands that act on what has been said: again, back, on, to and from a file, and as a tree of branches."""

import json
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tinychat.commands.registry import (
    Suggestion,
    command,
    complete_paths,
    complete_transcripts,
    parse_number,
    parse_token,
    to_path,
    unquote,
)
from tinychat.commands.results import Answer, EditPrompt, Export, Message, Outline, OutlineRow, Result
from tinychat.config.option import escape
from tinychat.config.precedence import Origin
from tinychat.config.settings import LOADING, SETTINGS
from tinychat.errors import UsageError
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.session import Session
from tinychat.session.transcript import read_transcript, write_transcript
from tinychat.store import paths
from tinychat.store.models import find_model, read_info
from tinychat.textutil import count, shorten

LONGEST_QUOTE = 50
LONGEST_PROMPT = 36
"""characters of a prompt in a row of the tree"""
BRANCH_EXAMPLE = 'for example `/branch 5 "blue"`; `/why` shows the tokens by their numbers'
NUMBER_AND_TEXT = re.compile(r"(?P<number>-?\d+)(?:\s+(?P<text>.+))?\Z", re.DOTALL)
NOT_REPEATED = ("seed", "slow")
"""settings that `/repeat` leaves out: the seed of an answer may have been drawn; the pace is for the eyes"""


@command("retry", "talk", "answer anew", aliases=("again", "regenerate"))
def retry(session: Session, text: str) -> Result:
    """Answer the last prompt again, with a fresh seed unless one is set."""
    _last(session)
    return Answer(session.retry)


@command("continue", "talk", "go on with it", aliases=("more",))
def continue_(session: Session, text: str) -> Result:
    """Go on where the last answer stopped."""
    said = _last(session).answer
    return Answer(session.continue_answer, said.rpartition("\n")[2])


@command("undo", "talk", "take it back")
def undo(session: Session, text: str) -> Result:
    """Take back the last prompt and its answer; `/goto` returns to them."""
    turn = _take_back(session)
    left = len(session.turns)
    number = session.conversation.number(turn)
    return Message(
        (f"taken back: {shorten(turn.prompt, LONGEST_QUOTE)!r}",),
        (f"{count(left, 'turn')} {'is' if left == 1 else 'are'} left · /goto {number} returns to it",),
    )


@command("edit", "talk", "change and resend")
def edit(session: Session, text: str) -> Result:
    """Take back the last prompt and its answer, and put the prompt on the line to be changed."""
    return EditPrompt(_take_back(session).prompt)


@command("clear", "talk", "begin anew", aliases=("new",))
def clear(session: Session, text: str) -> Result:
    """Forget what has been said and begin a new conversation."""
    session.conversation = Conversation()
    return Message(("a new conversation",))


@command("save", "talk", "to a file", usage="FILE", example="/save talk.json", complete=complete_paths)
def save(session: Session, text: str) -> Result:
    """Write the conversation to a file, with the model, the settings and the seeds; `/open` reads it."""
    path = _path(text, "save")
    path = path if path.suffix else path.with_suffix(".json")
    _last(session)
    if path.exists() and not _is_transcript(path):
        raise UsageError(f"{path} exists and is no transcript", "choose another name")
    write_transcript(path, session.model.name, session.settings.current, session.conversation)
    return Message((f"saved {count(len(session.turns), 'turn')} in {path}",))


@command("open", "talk", "from a file", usage="FILE", example="/open talk.json", complete=complete_transcripts)
def open_(session: Session, text: str) -> Result:
    """Go on with a conversation that was saved, or kept by itself."""
    path = _path(text, "open")
    if not path.suffix and not path.exists():
        path = path.with_suffix(".json")
    kept = paths.transcripts_folder() / path.name
    if path == Path(path.name) and not path.exists() and kept.exists():
        path = kept
    session.conversation = read_transcript(path)
    lines = [line for turn in session.turns for line in (f"› {turn.prompt}", turn.answer)]
    return Message(tuple(lines), (f"{count(len(session.turns), 'turn')} from {path}",))


@command("export", "talk", "to read or show", usage="FILE", example="/export talk.html", complete=complete_paths)
def export(session: Session, text: str) -> Result:
    """Write the conversation as `.md`, `.txt`, `.json`, `.jsonl`, or, as it looks here, as `.html` or `.svg`."""
    path = _path(text, "export", "talk.html")
    _last(session)
    if path.exists():
        raise UsageError(f"{path} exists already", "choose another name, or remove it first")
    return Export(path)


def _nothing_yet() -> UsageError:
    return UsageError("nothing has been said yet", "type a prompt first")


def _last(session: Session) -> Turn:
    if not session.turns:
        raise _nothing_yet()
    return session.turns[-1]


def _take_back(session: Session) -> Turn:
    turn = _last(session)
    session.conversation.back()
    return turn


def _path(text: str, name: str, example: str = "talk.json") -> Path:
    text = unquote(text)
    if not text:
        raise UsageError(f"/{name} needs the name of a file", f"for example `/{name} {example}`")
    return to_path(text)


def _is_transcript(path: Path) -> bool:
    try:
        return "turns" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


# --- the shell command that makes an answer again --------------------------------------------------------------------


@command("repeat", "talk", "make it again", usage="[N]", example="/repeat 2")
def repeat(session: Session, text: str) -> Result:
    """The shell command that makes the Nth answer again, to the byte; without a number, the last one."""
    _last(session)
    most = len(session.turns)
    error = UsageError(f"/repeat takes the number of an answer, from 1 to {most}, not {text!r}", "see `/help repeat`")
    index = parse_number(text or str(most), 1, most, error) - 1
    turn = session.turns[index]
    _check(turn, index, index)
    chat = read_info(find_model(turn.model)).mode == "chat"
    turns = session.turns[: index + 1] if chat else [turn]
    for before, one in enumerate(turns[:-1]):
        _check(one, before, index)
        if one.model != turn.model or _of_loading(one) != _of_loading(turn):
            raise _cannot(index, f"answer {before + 1}, which it follows, is of another model or device")
    if len(turns) == 1:
        return Message((_one_prompt(session, turn),))
    return Message((_several_prompts(session, turns),), ('the last line has the answer: the text of its "completion"',))


def _check(turn: Turn, index: int, wanted: int) -> None:
    """Refuses an answer that would come out otherwise: the one that is wanted, or one that it follows."""
    why_not_reproducible = turn.why_not_reproducible
    if turn.settings is None or turn.finished is None or not turn.model:
        why_not_reproducible = why_not_reproducible or "it is not known how it was made"
    if why_not_reproducible:
        raise _cannot(
            wanted,
            why_not_reproducible if index == wanted else f"it follows answer {index + 1}: {why_not_reproducible}",
        )


def _cannot(index: int, why: str) -> UsageError:
    return UsageError(f"no command makes answer {index + 1} again: {why}", "`/save FILE` keeps it")


def _one_prompt(session: Session, turn: Turn) -> str:
    """`tinychat -m smalltalk -p hello --temperature 0.8 … --seed 123`."""
    assert turn.finished is not None
    words = ["tinychat", "-m", turn.model, "-p", turn.prompt, *_flags(session, turn, tuple(SETTINGS))]
    return shlex.join([*words, "--seed", str(turn.finished.seed)])


def _several_prompts(session: Session, turns: Sequence[Turn]) -> str:
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
        if name not in NOT_REPEATED and (shown or elsewhere):
            telling.append(name)
    return telling


def _of_loading(turn: Turn) -> list[object]:
    return [getattr(turn.settings, name) for name in LOADING]


# --- the conversation as a tree, in which nothing that was said is lost ----------------------------------------------


def branch_at(session: Session, turn: Turn, position: int, instead: list[int]) -> Answer:
    """Goes on from an answer in which other tokens stand at a position (from 0)."""
    session.conversation.here = turn
    said = (turn.given or "") + "".join(token.text for token in turn.tokens[:position])
    return Answer(partial(session.branch, position, instead), said.rpartition("\n")[2])


@command("branch", "talk", "with other words", usage='N "TEXT"', example='/branch 5 "blue"')
def branch(session: Session, text: str) -> Result:
    """Go on from the Nth token of the last answer with another text in its place.

    What was said before stays, as a branch of its own: `/tree` shows both, `/goto` returns. Enter on a token that
    `/why` shows does the same.
    """
    turn = session.turns[-1] if session.turns else None
    if turn is None or not turn.tokens:
        raise UsageError("there is no answer to branch from", "type a prompt first")
    found = NUMBER_AND_TEXT.match(text)
    if found is None or not (instead := unquote(found["text"] or "")):
        raise UsageError(f"/branch needs the number of a token and a text, not {text!r}", BRANCH_EXAMPLE)
    position = parse_token(found["number"], len(turn.tokens), "branch")
    if unknown := session.model.source_tokenizer.unknown(instead):
        raise UsageError(f"{session.model.name} does not know {' '.join(map(repr, unknown))}", "use other characters")
    return branch_at(session, turn, position, _ids(session, instead))


def _ids(session: Session, text: str) -> list[int]:
    """The token that looks like the text, as `/why` shows it; else those into which the text is cut."""
    tokenizer = session.model.tokenizer
    same = next((id for id in range(tokenizer.vocab_size) if tokenizer.token_text(id) == text), None)
    return [same] if same is not None else list(tokenizer.encode(text))


@command("tree", "talk", "all that was said")
def tree(session: Session, text: str) -> Result:
    """The conversation with all its branches: what `/retry`, `/undo`, `/edit`, `/branch` and `/pick` left aside too."""
    conversation = session.conversation
    if not conversation.all:
        raise _nothing_yet()
    path = {id(turn) for turn in conversation.turns}
    rows = tuple(
        OutlineRow(prefix, f"{conversation.number(turn)}  {_brief(turn)}", turn is conversation.here, id(turn) in path)
        for prefix, turn in _walk(conversation, None, "")
    )
    here = "" if conversation.here else "before the first turn · "
    return Outline(rows, (f"{here}/goto N goes to a turn, and on from there",))


def _walk(conversation: Conversation, turn: Turn | None, indent: str) -> Iterator[tuple[str, Turn]]:
    """What follows a turn, each with the lines before it; what has no siblings stands flat under what it follows."""
    children = conversation.children(turn)
    while len(children) == 1:
        yield indent, children[0]
        children = conversation.children(children[0])
    for child in children:
        last = child is children[-1]
        yield indent + ("└─ " if last else "├─ "), child
        yield from _walk(conversation, child, indent + ("   " if last else "│  "))


def _brief(turn: Turn) -> str:
    return f"{shorten(turn.prompt, LONGEST_PROMPT)} → {turn.answer}"


def _complete_goto(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if len(words) == 1:
        for number, turn in enumerate(session.conversation.all, start=1):
            yield Suggestion(str(number), _brief(turn))


@command("goto", "talk", "to a turn of it", usage="N", example="/goto 2", complete=_complete_goto)
def goto(session: Session, text: str) -> Result:
    """Go to a turn of the conversation by its number in `/tree`; what is said next follows it.

    0 is before the first turn.
    """
    conversation = session.conversation
    error = UsageError(f"/goto needs the number of a turn, not {text!r}", "/tree shows them")
    number = parse_number(text, 0, math.inf, error)
    if number == 0:
        conversation.here = None
        return Message(("before the first turn",))
    turn = conversation.go_to(number)
    before = len(conversation.turns) - 1
    return Message((f"› {turn.prompt}", turn.answer), (f"turn {number}, after {count(before, 'other')}",))


COMMANDS = (retry, continue_, undo, edit, clear, save, open_, export, repeat, branch, tree, goto)
