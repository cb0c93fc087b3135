"""Commands on the conversation: retry, continue, edit, save, open, export, repeat, and its tree of branches."""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tinychat.commands.registry import (
    Suggestion,
    command,
    complete_paths,
    escape_prompt,
    parse_number,
    parse_token,
    to_path,
    unquote,
    with_ending,
)
from tinychat.commands.results import (
    EditPrompt,
    Export,
    Message,
    Question,
    Result,
    StreamAnswer,
    Table,
    Tree,
    TreeRow,
    Turns,
)
from tinychat.config.option import Option, Origin, escape
from tinychat.config.settings import LOADING, SETTINGS
from tinychat.errors import UsageError
from tinychat.formats.registry import open_model
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.session import Session
from tinychat.session.transcript import read_transcript, write_transcript
from tinychat.store import paths
from tinychat.store.names import check_name, typed
from tinychat.textutil import byte_size, count, json_line, quote, shorten
from tinychat.untrusted import open_regular, parse_json, read_json

MAX_PROMPT = 36
"""Number of characters of a prompt in a row of the tree."""
MAX_COMPLETIONS, MAX_FIRST_LINE = 20, 1_000_000
NOTHING_YET = ("nothing has been said yet", "type a prompt first")
BEFORE_ALL = ("this is before the first turn", "/tree shows the turns, /goto N returns to one")
BRANCH_EXAMPLE = 'for example `/branch 5 " blue"`; `/why` shows the tokens by their numbers'
NUMBER_AND_TEXT = re.compile(r"(?P<number>-?\d+)(?:\s+(?P<text>.+))?\Z", re.DOTALL)
SPACE_AND_WORD = re.compile(r" +\S")
CHAT = "--chat"
NOT_REPEATED = ("seed", "slow")
"""Settings that `/repeat` does not copy: each answer has its own seed, and `slow` only paces the display."""


@command("retry", "talk", "answer again", aliases=("again", "regenerate", "redo"))
def retry(session: Session, text: str) -> Result:
    """Answer the last prompt again, with a new seed unless one is set."""
    _last(session)
    return StreamAnswer(session.retry)


@command("continue", "talk", "continue the answer", aliases=("more",))
def continue_(session: Session, text: str) -> Result:
    """Continue the last answer where it stopped."""
    return StreamAnswer(session.continue_answer, _last(session).answer.rpartition("\n")[2])


@command("undo", "talk", "take it back", usage="[N]", example="/undo 2")
def undo(session: Session, text: str) -> Result:
    """Remove the last prompt and answer, or the last N; `/goto` returns to them."""
    _last(session)
    most = len(session.turns)
    error = UsageError(f"/undo takes a number of turns, from 1 to {most}, not {quote(text)}", "/tree shows them")
    undone = [_undo(session) for _ in range(parse_number(text or "1", 1, most, error))]
    left = len(session.turns)
    left_words = f"{count(left, 'turn')} {'is' if left == 1 else 'are'} left"
    note = f"{left_words} · /goto {session.conversation.number(undone[0])} returns to {'them' if undone[1:] else 'it'}"
    return Message(tuple(f"taken back: {quote(turn.prompt)}" for turn in undone), (note,))


@command("edit", "talk", "change and resend")
def edit(session: Session, text: str) -> Result:
    """Put the last prompt on the input line for editing, and remove it and its answer."""
    return EditPrompt(escape_prompt(_undo(session).prompt))


@command("clear", "talk", "start over", aliases=("new",))
def clear(session: Session, text: str) -> Result:
    """Forget the conversation and begin a new one."""
    session.conversation = Conversation()
    return Message(("a new conversation",))


@command("save", "talk", "to a file", usage="FILE", example="/save talk.json", complete=complete_paths)
def save(session: Session, text: str) -> Result:
    """Save the conversation to a file, with its model, settings and seeds; `/open` brings its turns back, no more.

    A file of another conversation is replaced only after a question.
    """
    path = _path(text, "save")
    if path.is_dir():
        raise UsageError(f"{path} is a folder", f"name a file, as in `/save {path / 'talk.json'}`")
    if path.suffix.lower() not in ("", ".json"):
        remedy = f"`/save {path.with_suffix('.json')}`; /export writes a conversation to read"
        raise UsageError(f"/save writes JSON, and {path} would end in {path.suffix}", remedy)
    path = with_ending(path, ".json")
    _last(session)
    if path.exists() and not is_transcript(path):
        raise UsageError(f"{path} exists and is no transcript", "choose another name")
    conversation = session.conversation

    def write() -> Message:
        write_transcript(path, session.model.name, session.settings.current, conversation)
        conversation.files.add(path.resolve())
        return Message((f"saved {count(len(conversation.turns), 'turn')} in {path}",))

    return write() if path.resolve() in conversation.files else _write_or_ask(path, write)


def complete_transcripts(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete a transcript: saved conversations, newest first, each with its first prompt; then files and folders."""
    if len(words) == 1:
        matches = [path for path in paths.list_transcripts() if path.name.startswith(words[0])]
        for path in matches[:MAX_COMPLETIONS]:
            yield Suggestion(path.stem, _first_prompt(path))
    yield from complete_paths(session, words)


def _first_prompt(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return str(parse_json(file.readline(MAX_FIRST_LINE).decode())["prompt"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


@command("open", "talk", "from a file", usage="[FILE or N]", example="/open talk.json", complete=complete_transcripts)
def open_(session: Session, text: str) -> Result:
    """Open a saved or automatically kept conversation and continue it; without a name, list those that are kept.

    N is the number of a kept one in that list, where 1 is the newest.
    """
    if not text:
        return _list_kept()
    path = _path(text, "open")
    if not path.suffix and not path.exists():
        path = path.with_suffix(".json")
    kept = paths.transcripts_folder() / f"{path.stem}{paths.LOG_SUFFIX}"
    if path == Path(path.name) and not path.exists() and kept.exists():
        path = kept
    if text.isdecimal() and not path.exists():
        path = _find_kept(text)
    session.conversation = read_transcript(path)
    session.conversation.files.add(path.resolve())
    notes = (f"{count(len(session.turns), 'turn')} from {path}", *_other_model(session))
    return Turns(session.mode, tuple((turn.prompt, turn.answer) for turn in session.turns), notes)


def _other_model(session: Session) -> Iterator[str]:
    """Yield a note if another model than the open one has answered last."""
    name, info = session.turns[-1].model if session.turns else "", session.info
    if name and info is not None and name not in (session.model.reference, str(info.folder)):
        # `/model` begins a new conversation, so that it has to come first.
        goes_on = f"`/model {typed(name)}`, then /open again, goes on with it"
        yield f"{name} answered last, and {info.name} is open: {goes_on}"


def _list_kept() -> Result:
    """Return a table of the newest conversations that are kept."""
    found = paths.list_transcripts()
    if not found:
        return Message(("no conversation is kept yet",), ("each answer is, except with --private",))
    rows = [(str(number), path.stem, _first_prompt(path)) for number, path in enumerate(found[:MAX_COMPLETIONS], 1)]
    notes = ["/open N opens one, /open FILE what /save wrote"]
    if len(found) > len(rows):
        notes.append(f"{count(len(found) - len(rows), 'older one')}: Tab completes their names")
    return Table(("", "conversation", "begins"), tuple(rows), right=(0,), notes=tuple(notes))


def _find_kept(text: str) -> Path:
    """Return the path of a kept conversation by its number in the list."""
    found = paths.list_transcripts()
    error = UsageError(f"there is no conversation {text}", f"/open lists those that are kept: {len(found)}")
    return found[parse_number(text, 1, len(found), error) - 1]


@command("export", "talk", "to read or show", usage="FILE", example="/export talk.html", complete=complete_paths)
def export(session: Session, text: str) -> Result:
    """Export the conversation, as `.md`, `.txt`, `.json` or `.jsonl`, or as it looks here, as `.html` or `.svg`."""
    path = _path(text, "export", "talk.html")
    _last(session)
    return ask_to_replace(path, Export(path))


@command(
    "share", "models", "as one HTML file", usage="[FILE] [--chat]", example="/share --chat", complete=complete_paths
)
def share(session: Session, text: str) -> Result:
    """Write the open model as one HTML file, in which it answers in any browser, without installation or network.

    The file is named after the model. It holds nothing of the conversation, unless `--chat` lets it begin with that.
    """
    from tinychat.formats.page import write_page

    info, (name, has_chat) = session.model.info, _parse_share(text)
    path = with_ending(to_path(unquote(name)), ".html") if name else Path(f"{check_name(info.name)}.html")
    turns = [(turn.prompt, turn.answer) for turn in session.turns]
    if has_chat:
        _last(session)

    def write() -> Message:
        write_page(info, path, chat=turns if has_chat else ())
        size, said = byte_size(path.stat().st_size), count(len(turns), "turn")
        begins = f"; it begins with this conversation of {said}" if has_chat else ""
        notes = ("`/share --chat` lets it begin with this conversation",) if turns and not has_chat else ()
        return Message((f"{path}: {size}; whoever opens it talks to {info.name}{begins}",), notes)

    return _write_or_ask(path, write)


def _parse_share(text: str) -> tuple[str, bool]:
    """Return the name of the file, empty if none is given, and whether the page begins with the conversation."""
    flag, _, name = text.partition(" ")
    if flag != CHAT:
        name, _, flag = text.rpartition(" ")
    if flag != CHAT:
        name, flag = text, ""
    if name.startswith("--"):
        raise UsageError(f"/share has no {name.split()[0]}", f"it has {CHAT}: see /help share")
    return name.strip(), flag == CHAT


def ask_to_replace(path: Path, result: Result) -> Result:
    """Return a result that writes a file, behind a question if the file exists.

    Raises:
        UsageError: If there is something else of that name.
    """
    return _write_or_ask(path, lambda: result)


def _write_or_ask(path: Path, write: Callable[[], Result]) -> Result:
    """Write a file; if it exists, return the question whether to replace it, which writes it after a yes."""
    if path.is_file():
        return Question(f"{path} exists: replace it?", write, refused="nothing is written")
    if path.exists():
        raise UsageError(f"{path} exists and is no file", "choose another name")
    return write()


def _last(session: Session) -> Turn:
    if not session.turns:
        raise UsageError(*(BEFORE_ALL if session.conversation.all else NOTHING_YET))
    return session.turns[-1]


def explain_no_tokens(session: Session, nothing_yet: str) -> UsageError:
    """Return the error where no answer has tokens; `nothing_yet` is its problem if none has been given."""
    if not session.turns:
        return UsageError(*BEFORE_ALL) if session.conversation.all else UsageError(nothing_yet, "type a prompt first")
    if session.turns[-1].saved_text is not None:
        remedy = "/retry answers the last prompt again, and can be looked into"
        return UsageError("the tokens of an opened conversation are not kept", remedy)
    return UsageError("the last answer has no tokens", "/retry answers its prompt again")


def _instead(text: str) -> str:
    """Return `, not 'x'` for what was typed instead of what a command needs; empty if nothing was."""
    return f", not {quote(text)}" if text else ""


def _undo(session: Session) -> Turn:
    turn = _last(session)
    session.conversation.back()
    return turn


def _path(text: str, name: str, example: str = "talk.json") -> Path:
    text = unquote(text)
    if not text:
        raise UsageError(f"/{name} needs the name of a file", f"for example `/{name} {example}`")
    return to_path(text)


def is_transcript(path: Path) -> bool:
    """Return whether a file is a conversation that `/save` wrote."""
    try:
        values = read_json(path)
        return "format" in values and all({"prompt", "answer"} <= turn.keys() for turn in values["turns"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


# --- `/repeat`: the shell command that reproduces an answer -----------------------------------------------------------


@command("repeat", "talk", "as a shell command", usage="[N]", example="/repeat 2")
def repeat(session: Session, text: str) -> Result:
    """Print a shell command that reproduces the Nth answer byte for byte; default: the last one."""
    _last(session)
    count = len(session.turns)
    error = UsageError(f"/repeat takes the number of an answer, from 1 to {count}, not {text!r}", "see `/help repeat`")
    index = parse_number(text or str(count), 1, count, error) - 1
    turn = session.turns[index]

    def refuse(why: str) -> UsageError:
        return UsageError(f"no command makes answer {index + 1} again: {why}", "`/save FILE` keeps it")

    if reason := _why_not_reproducible(turn):
        raise refuse(reason)
    chat = open_model(turn.model).mode == "chat"
    turns = session.turns[: index + 1] if chat else [turn]
    for number, other in enumerate(turns[:-1], 1):
        if reason := _why_not_reproducible(other):
            raise refuse(f"it follows answer {number}: {reason}")
        loaded_alike = all(getattr(other.settings, name) == getattr(turn.settings, name) for name in LOADING)
        if other.model != turn.model or not loaded_alike:
            raise refuse(f"answer {number}, which it follows, is of another model or device")
    if len(turns) == 1:
        words = ["tinychat", "-m", turn.model, "-p", turn.prompt, *_flags(_explicit_settings(session, turn))]
        return Message((shlex.join(words),))
    note = 'the last line has the answer: the text of its "completion"'
    return Message((_conversation_command(session, turns),), (note,))


def _why_not_reproducible(turn: Turn) -> str:
    """Return the reason why no command makes an answer again; empty if one does."""
    is_known = turn.settings is not None and turn.finished is not None and turn.model
    return turn.why_not_reproducible or ("" if is_known else "it is not known how it was made")


def _conversation_command(session: Session, turns: Sequence[Turn]) -> str:
    """Return a command for a conversation: each turn is a line of JSON with its own settings and seed."""
    lines = []
    for turn in turns:
        values = _explicit_settings(session, turn)
        loading = {name: values.pop(name) for name in LOADING if name in values}
        lines.append(json_line({"prompt": turn.prompt, **values}))
    words = ["tinychat", "-m", turns[-1].model, "--conversation", "--jsonl", *_flags(loading)]
    return f"printf '%s\\n' {shlex.join(lines)} | {shlex.join(words)}"


def _flags(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        for text in _flag_values(SETTINGS[name], value):
            yield from (SETTINGS[name].flag, text)


def _flag_values(setting: Option, value: object) -> list[str]:
    """Return a value as flags take it: one text, or one for each text of a tuple that is not typed with commas."""
    if setting.separated:
        return [setting.typed(value)]
    if isinstance(value, tuple):
        return [escape(text) for text in value] or ["none"]
    if isinstance(value, float):
        return [f"{value:g}" if float(f"{value:g}") == value else repr(value)]
    return ["none" if value is None else str(value)]


def _explicit_settings(session: Session, turn: Turn) -> dict[str, Any]:
    """Return what a command has to name: settings on the toolbar, others that are or were no defaults, and the seed."""
    assert turn.finished is not None
    values = {}
    for name, setting in SETTINGS.items():
        value = getattr(turn.settings, name)
        shown = setting.toolbar is not None and setting.toolbar(value)
        is_changed = value != setting.default or session.settings.origin(name) is not Origin.DEFAULT
        if name not in NOT_REPEATED and (shown or is_changed):
            values[name] = value
    return values | {"seed": turn.finished.seed}


# --- the tree of the conversation -------------------------------------------------------------------------------------


def branch_at(session: Session, turn: Turn, index: int, forced_ids: list[int]) -> StreamAnswer:
    """Regenerate the answer of a turn from the token at an index (from 0), forcing other tokens there first."""
    session.conversation.current = turn
    return StreamAnswer(partial(session.branch, index, forced_ids), turn.text_before(index).rpartition("\n")[2])


@command("branch", "talk", "force other words", usage='N "TEXT"', example='/branch 5 " blue"')
def branch(session: Session, text: str) -> Result:
    """Regenerate the last answer from its Nth token, forcing TEXT in its place.

    The space before a word belongs to it: a word without quotation marks gets the space of the word that it replaces.

    The old answer stays as a branch of its own: `/tree` shows both, and `/goto` returns to it. Enter on an alternative
    shown by `/why` does the same.
    """
    if not session.turns or not (turn := session.turns[-1]).tokens:
        raise explain_no_tokens(session, "there is no answer to branch from")
    match = NUMBER_AND_TEXT.match(text)
    if match is None or not (replacement := unquote(match["text"] or "")):
        raise UsageError(f"/branch needs the number of a token and a text{_instead(text)}", BRANCH_EXAMPLE)
    index = parse_token(match["number"], len(turn.tokens), "branch")
    is_unquoted_word = replacement == match["text"] and replacement[0].isalnum()
    if is_unquoted_word and SPACE_AND_WORD.match(turn.tokens[index].text):
        replacement = f" {replacement}"
    if unknown := session.model.source_tokenizer.unknown(replacement):
        raise UsageError(f"{session.model.name} does not know {' '.join(map(repr, unknown))}", "use other characters")
    return branch_at(session, turn, index, _encode(session, replacement))


def _encode(session: Session, text: str) -> list[int]:
    """Return the id of the token that `/why` shows as this text, if there is one; else encode the text."""
    tokenizer = session.model.tokenizer
    same = next((id for id in range(tokenizer.vocab_size) if tokenizer.token_text(id) == text), None)
    return [same] if same is not None else list(tokenizer.encode(text))


@command("tree", "talk", "all branches")
def tree(session: Session, text: str) -> Result:
    """Show the conversation with all branches, also those left by `/retry`, `/undo`, `/edit`, `/branch` or `/pick`."""
    conversation = session.conversation
    if not conversation.all:
        raise UsageError(*NOTHING_YET)
    path = {id(turn) for turn in conversation.turns}
    rows = []
    for prefix, turn in _walk_tree(conversation, None, ""):
        text = f"{conversation.number(turn)}  {_row_text(turn)}"
        rows.append(TreeRow(prefix, text, turn is conversation.current, id(turn) in path))
    current = "" if conversation.current else "before the first turn · "
    return Tree(tuple(rows), (f"{current}/goto N goes to a turn, and on from there",))


def _walk_tree(conversation: Conversation, turn: Turn | None, indent: str) -> Iterator[tuple[str, Turn]]:
    """Yield the descendants of a turn, each with its branch lines; an only child is not indented."""
    children = conversation.children(turn)
    while len(children) == 1:
        yield indent, children[0]
        children = conversation.children(children[0])
    for child in children:
        last = child is children[-1]
        yield indent + ("└─ " if last else "├─ "), child
        yield from _walk_tree(conversation, child, indent + ("   " if last else "│  "))


def _row_text(turn: Turn) -> str:
    return f"{shorten(turn.prompt, MAX_PROMPT)} → {turn.answer}"


def _complete_goto(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if len(words) == 1:
        for number, turn in enumerate(session.conversation.all, start=1):
            yield Suggestion(str(number), _row_text(turn))


@command("goto", "talk", "to a turn", usage="N", example="/goto 2", complete=_complete_goto)
def goto(session: Session, text: str) -> Result:
    """Go to a turn of the conversation by its number in `/tree`; the next prompt follows it.

    0 is before the first turn.
    """
    error = UsageError(f"/goto needs the number of a turn{_instead(text)}", "/tree shows them")
    number = parse_number(text, 0, math.inf, error)
    if number == 0:
        session.conversation.current = None
        return Message(("before the first turn",))
    turn = session.conversation.go_to(number)
    others = len(session.turns) - 1
    place = f"after {count(others, 'other')}" if others else "at the beginning"
    return Turns(session.mode, ((turn.prompt, turn.answer),), (f"turn {number}, {place}",))


COMMANDS = (retry, continue_, undo, edit, clear, save, open_, export, share, repeat, branch, tree, goto)
