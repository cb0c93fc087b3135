"""Commands that act on what has been said: again, back, on, and to and from a file."""

import json
from pathlib import Path

from tinychat.commands import completing
from tinychat.commands.arguments import to_path, unquote
from tinychat.commands.command import command
from tinychat.commands.results import Answer, EditPrompt, Export, Message, Result
from tinychat.conversation import Conversation, Turn
from tinychat.errors import UsageError
from tinychat.session import Session
from tinychat.store import places
from tinychat.textutil import count, shorten
from tinychat.transcript import read_transcript, write_transcript

NOTHING_YET = ("nothing has been said yet", "type a prompt first")
LONGEST_QUOTE = 50


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


@command("save", "talk", "to a file", usage="FILE", example="/save talk.json", complete=completing.paths)
def save(session: Session, text: str) -> Result:
    """Write the conversation to a file, with the model, the settings and the seeds; `/open` reads it."""
    path = _path(text, "save")
    path = path if path.suffix else path.with_suffix(".json")
    _last(session)
    if path.exists() and not _is_transcript(path):
        raise UsageError(f"{path} exists and is no transcript", "choose another name")
    write_transcript(path, session.model.name, session.settings.current, session.conversation)
    return Message((f"saved {count(len(session.turns), 'turn')} in {path}",))


@command("open", "talk", "from a file", usage="FILE", example="/open talk.json", complete=completing.transcripts)
def open_(session: Session, text: str) -> Result:
    """Go on with a conversation that was saved, or kept by itself."""
    path = _path(text, "open")
    if not path.suffix and not path.exists():
        path = path.with_suffix(".json")
    kept = places.transcripts_folder() / path.name
    if path == Path(path.name) and not path.exists() and kept.exists():
        path = kept
    session.conversation = read_transcript(path)
    lines = [line for turn in session.turns for line in (f"› {turn.prompt}", turn.answer)]
    return Message(tuple(lines), (f"{count(len(session.turns), 'turn')} from {path}",))


@command("export", "talk", "to read or show", usage="FILE", example="/export talk.html", complete=completing.paths)
def export(session: Session, text: str) -> Result:
    """Write the conversation as `.md`, `.txt`, `.json`, `.jsonl`, or, as it looks here, as `.html` or `.svg`."""
    path = _path(text, "export", "talk.html")
    _last(session)
    if path.exists():
        raise UsageError(f"{path} exists already", "choose another name, or remove it first")
    return Export(path)


def _last(session: Session) -> Turn:
    if not session.turns:
        raise UsageError(*NOTHING_YET)
    return session.turns[-1]


def _take_back(session: Session) -> Turn:
    turn = session.conversation.back()
    if turn is None:
        raise UsageError(*NOTHING_YET)
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


COMMANDS = (retry, continue_, undo, edit, clear, save, open_, export)
