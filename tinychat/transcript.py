"""What has been said, and a file of it: a transcript is JSON, with the model, the settings and the seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from tinychat.atomic import atomic_write
from tinychat.errors import SettingError, TinychatError
from tinychat.events import Finished, FinishReason, Token
from tinychat.settings import Settings

FORMAT = 1


@dataclass
class Turn:
    """A prompt and what was answered to it."""

    prompt: str
    prompt_ids: list[int] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    finished: Finished | None = None
    given: str | None = None
    """the answer of an opened transcript, of which no tokens are known"""
    model: str = ""
    """the name or path of the model that answered; empty where it is not known"""
    settings: Settings | None = None
    """what the answer was begun with; None where it is not known"""
    obstacle: str = ""
    """why the same call would not make the answer again; empty where it would"""

    @property
    def answer(self) -> str:
        """The text so far."""
        return (self.given or "") + "".join(token.text for token in self.tokens)


def write_transcript(
    path: Path, model: str, settings: Settings, turns: Sequence[Turn], *, private: bool = False
) -> None:
    """Writes a conversation with a model; a private one is for its owner's eyes alone.

    Raises:
        TinychatError: it cannot be written there.
    """
    try:
        atomic_write(path, transcript_of(model, settings, turns).encode("utf-8", "replace"), private=private)
    except OSError as error:
        raise TinychatError(f"{path} cannot be written: {error.strerror or error}") from None


def transcript_of(model: str, settings: Settings, turns: Sequence[Turn]) -> str:
    """A conversation with a model, as JSON."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "model": model,
        "settings": _values(settings),
        "turns": [
            {
                "prompt": turn.prompt,
                "answer": turn.answer,
                "seed": turn.finished.seed if turn.finished else None,
                "finish_reason": turn.finished.reason if turn.finished else None,
                "model": turn.model,
                "settings": _values(turn.settings) if turn.settings else None,
                "obstacle": turn.obstacle,
            }
            for turn in turns
        ],
    }
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def read_transcript(path: Path) -> list[Turn]:
    """Reads a conversation.

    Raises:
        TinychatError: it is no transcript.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return [_read_turn(turn) for turn in values["turns"]]
    except OSError as error:
        raise TinychatError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TinychatError(f"{path} is no transcript", "`/save FILE` writes one") from None


def _values(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def _read_turn(values: dict[str, Any]) -> Turn:
    """A turn as it was saved; an older file may lack all but prompt and answer."""
    turn = Turn(str(values["prompt"]), given=str(values["answer"]), model=str(values.get("model") or ""))
    turn.obstacle = str(values.get("obstacle") or "")
    if isinstance(values.get("seed"), int) and values.get("finish_reason") in get_args(FinishReason):
        turn.finished = Finished(values["finish_reason"], 0, 0.0, values["seed"])
    try:
        turn.settings = Settings(**values["settings"])
    except (KeyError, TypeError, SettingError):  # an older file, or a newer one with settings unknown here
        turn.settings = None
    return turn
