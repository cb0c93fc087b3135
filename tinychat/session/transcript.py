"""Transcripts: conversations as JSON files, with the model, the settings, the seeds, and every branch.

Those that are saved automatically are JSON Lines, a line for each turn, to which each answer adds its own.
"""

import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from tinychat.atomic import atomic_write
from tinychat.config.settings import Settings
from tinychat.errors import SettingError, TinychatError
from tinychat.events import Finished, FinishReason
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.textutil import json_line
from tinychat.untrusted import parse_json, read_text

FORMAT = 1
DOCUMENT_START = "{\n"
"""The beginning of a transcript that a person has saved, whatever its name; a line of a log is not indented."""
MAX_SAVED = 200
"""Number of autosaved conversations to keep; older ones are deleted."""


def write_transcript(path: Path, model: str, settings: Settings, conversation: Conversation) -> None:
    """Write a conversation with a model.

    Raises:
        TinychatError: If the file cannot be written.
    """
    try:
        atomic_write(path, transcript_of(model, settings, conversation).encode("utf-8", "replace"))
    except OSError as error:
        raise TinychatError(f"{path} cannot be written: {error.strerror or error}") from None


def transcript_of(model: str, settings: Settings, conversation: Conversation) -> str:
    """Return a conversation with a model as JSON: the current branch as `turns`, all other turns as `branches`."""
    current_branch = conversation.turns
    numbers = {id(turn): number for number, turn in enumerate(conversation.all, 1)}

    def values(turn: Turn) -> dict[str, Any]:
        return _turn_values(turn, numbers[id(turn)], numbers[id(turn.parent)] if turn.parent else None)

    on_branch = {id(turn) for turn in current_branch}
    document = {
        "format": FORMAT,
        "model": model,
        "settings": _values(settings),
        "turns": [values(turn) for turn in current_branch],
        "branches": [values(turn) for turn in conversation.all if id(turn) not in on_branch],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_transcript(path: Path) -> Conversation:
    """Read a conversation.

    Raises:
        TinychatError: If the file cannot be read or is no transcript.
    """
    try:
        text = read_text(path)
        if path.suffix == paths.LOG_SUFFIX and not text.startswith(DOCUMENT_START):
            return _read_log(text)
        values = parse_json(text)
        return _read_tree(values["turns"], values.get("branches", []))
    except OSError as error:
        raise TinychatError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TinychatError(f"{path} is no transcript: {error}", "`/save FILE` in the REPL writes one") from None
    except (KeyError, TypeError, AttributeError):
        raise TinychatError(f"{path} is no transcript", "`/save FILE` in the REPL writes one") from None


def _read_tree(turns: list[dict[str, Any]], branches: list[dict[str, Any]]) -> Conversation:
    """Read the tree of a conversation; turns of an older file have no numbers, and simply follow one another."""
    conversation = Conversation(map(_read_turn, turns))
    if not branches:
        return conversation
    current = conversation.current
    read = [*zip(turns, conversation.all, strict=True), *((values, _read_turn(values)) for values in branches)]
    by_number = {int(values["number"]): (values["parent"], turn) for values, turn in read}
    if len(by_number) != len(read):
        raise ValueError("two turns have the same number")
    conversation.all = [turn for _, (_, turn) in sorted(by_number.items())]
    for number, (parent, turn) in by_number.items():
        if parent is not None and not 0 < parent < number:
            raise ValueError("a turn that follows a later one")
        turn.parent = by_number[parent][1] if parent is not None else None
    conversation.current = current
    return conversation


def _read_log(text: str) -> Conversation:
    """Read the turns of a log, of which the last one is current; of lines with the same number, the last one counts."""
    *lines, _ = text.split("\n")  # the program may have been killed while it wrote a last line without its end
    turns = {int(values["number"]): values for values in map(parse_json, lines)}
    if not turns:
        raise ValueError("it has no turns")
    conversation = _read_tree([], [turns[number] for number in sorted(turns)])
    conversation.go_to(int(parse_json(lines[-1])["number"]))
    return conversation


def _turn_values(turn: Turn, number: int, parent: int | None) -> dict[str, Any]:
    return {
        "prompt": turn.prompt,
        "answer": turn.answer,
        "seed": turn.finished.seed if turn.finished else None,
        "finish_reason": turn.finished.reason if turn.finished else None,
        "model": turn.model,
        "settings": _values(turn.settings) if turn.settings else None,
        "why_not_reproducible": turn.why_not_reproducible,
        "number": number,
        "parent": parent,
    }


def _values(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def _read_turn(values: dict[str, Any]) -> Turn:
    """Read a turn; an older file may lack all but prompt and answer."""
    turn = Turn(str(values["prompt"]), saved_text=str(values["answer"]), model=str(values.get("model") or ""))
    turn.why_not_reproducible = str(values.get("why_not_reproducible") or "")
    if isinstance(values.get("seed"), int) and values.get("finish_reason") in get_args(FinishReason):
        turn.finished = Finished(values["finish_reason"], 0, 0.0, values["seed"])
    try:
        turn.settings = Settings(**values["settings"])
    except (KeyError, TypeError, SettingError):  # an older file, or a newer one with unknown settings
        turn.settings = None
    return turn


class Autosave:
    """Saves conversations to the user's data folder, each to a file named by the local time at which it began."""

    def __init__(self, session: Session, clock: Callable[[], datetime] = datetime.now) -> None:
        self._session, self._clock = session, clock
        self._conversation: Conversation | None = None
        self._numbers: dict[int, int] = {}  # of the turns that are written, by their identity
        self.path: Path | None = None
        """File of the newest conversation; None before the first answer."""

    def save(self) -> None:
        """Write what is new in the current conversation: turns, and the current one, which may have been continued.

        Raises:
            TinychatError: If the file cannot be written.
        """
        conversation = self._session.conversation
        if not conversation.all:
            return
        is_new = conversation is not self._conversation
        if is_new:
            name = f"{self._clock():%Y-%m-%d-%H%M%S}"
            self._conversation, self.path = conversation, _new_file(paths.transcripts_folder(), name)
            self._numbers = {}
        assert self.path is not None
        turns = conversation.all[len(self._numbers) :]
        numbers = self._numbers | {id(turn): number for number, turn in enumerate(turns, len(self._numbers) + 1)}
        if (current := conversation.current) is not None and not (turns and turns[-1] is current):
            turns.append(current)
        self._append(self.path, turns, numbers)
        self._numbers = numbers  # only now: turns that could not be written are new the next time
        if is_new:
            for path in paths.list_transcripts()[MAX_SAVED:]:
                with suppress(OSError):
                    path.unlink()

    def _append(self, path: Path, turns: Sequence[Turn], numbers: Mapping[int, int]) -> None:
        """Append the lines of turns; all of them, or none if the disk is full."""
        values = (
            _turn_values(turn, numbers[id(turn)], numbers[id(turn.parent)] if turn.parent else None) for turn in turns
        )
        data = "".join(f"{json_line(one)}\n" for one in values).encode("utf-8", "replace")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                before = os.fstat(descriptor).st_size
                if os.write(descriptor, data) < len(data):
                    os.truncate(descriptor, before)
                    raise OSError(None, "the disk is full")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise TinychatError(f"{path} cannot be written: {error.strerror or error}") from None


def _new_file(folder: Path, name: str) -> Path:
    """Create an empty file, and return its path: another conversation may begin in the same second, or moment.

    Raises:
        TinychatError: If it cannot be created.
    """
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = folder / f"{next(names)}{paths.LOG_SUFFIX}"
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)
                return path
    except OSError as error:
        raise TinychatError(f"{path} cannot be written: {error.strerror or error}") from None
