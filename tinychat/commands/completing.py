"""What could be typed next, where several commands take the same: model names, runs, paths."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from tinychat.commands.command import Suggestion
from tinychat.session import Session
from tinychat.store.places import kept_transcripts

MOST_KEPT = 20
"""conversations that are offered at once"""


def models(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Names of models."""
    from tinychat.store.models import list_models

    if len(words) == 1:
        yield from (Suggestion(info.name, info.summary.partition(" ")[2]) for info in list_models())


def runs(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Names of training runs, the newest first."""
    from tinychat.store.runs import list_runs

    if len(words) == 1:
        yield from (Suggestion(run.name, "at work" if run.is_running() else "") for run in list_runs())


def all_runs(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Names of training runs that are not typed yet, the newest first."""
    yield from (run for run in runs(session, words[-1:]) if run.text not in words[:-1])


def paths(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Files and folders that begin as the last word does; hidden ones need their dot."""
    folder, name = os.path.split(words[-1])
    try:
        entries = sorted(os.scandir(Path(folder or ".").expanduser()), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        hidden = entry.name.startswith(".") and not name.startswith(".")
        if entry.name.startswith(name) and not hidden:
            path = os.path.join(folder, entry.name)  # noqa: PTH118 - `./` and `~/` stay as they were typed
            yield Suggestion(path + ("/" if entry.is_dir() else ""))


def transcripts(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Conversations that were kept, the newest first, with how each began; then files and folders."""
    if len(words) == 1:
        for path in [path for path in kept_transcripts() if path.name.startswith(words[0])][:MOST_KEPT]:
            yield Suggestion(path.stem, _first_prompt(path))
    yield from paths(session, words)


def _first_prompt(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["turns"][0]["prompt"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
