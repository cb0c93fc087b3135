"""Handle what a person has made: the size of models and runs on disk, removing and renaming them.

A model and the run that made it have one name and are handled together. Nothing outside of the data folder is touched.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from tinychat.atomic import atomic_write, remove_folder
from tinychat.errors import ModelError, RunError, UsageError
from tinychat.store import paths
from tinychat.store.models import (
    CARD,
    CONFIG,
    MAX_CONFIG,
    MAX_TRAINING,
    TRAINING,
    ModelInfo,
    find_model,
    read_card,
    read_object,
    read_training,
    renamed_card,
)
from tinychat.store.names import check_name, find_named, typed
from tinychat.store.runs import LOCK_TIMEOUT, RunFolder
from tinychat.textutil import json_line, json_text
from tinychat.untrusted import read_toml


@dataclass(frozen=True)
class FileFacts:
    """Facts about the files of a model."""

    date: datetime | None
    """Time at which they were written; None for a bundled model, whose files were copied."""
    bytes: int
    loss: float | None
    """Validation loss in nats per token; None if it is not known."""


def read_file_facts(info: ModelInfo) -> FileFacts:
    """Return the facts about the files of a model; what cannot be read is left out."""
    date: datetime | None = None
    if info.folder.resolve().parent != paths.bundled_models().resolve():
        with suppress(OSError):
            date = datetime.fromtimestamp((info.folder / CONFIG).stat().st_mtime)
    loss: float | None = None
    with suppress(ModelError):
        loss = read_training(info.folder).get("loss")
    return FileFacts(date, count_bytes(info.folder), loss)


def count_bytes(folder: Path) -> int:
    """Return the sum of the sizes of all files in a folder; symbolic links are not followed."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total


@dataclass(frozen=True)
class Own:
    """The model and the run of one name in the data folder; one of the two may be missing."""

    name: str
    model: Path | None
    run: RunFolder | None

    @property
    def folders(self) -> list[Path]:
        return [folder for folder in (self.model, self.run.path if self.run else None) if folder is not None]

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return sum(map(count_bytes, self.folders))

    def moved(self, folder: Path, renamed: "Own") -> Path | None:
        """Return the folder that a model of this has after the renaming, by the one before; None for other models."""
        folder = folder.resolve()
        for before, after in zip(self.folders, renamed.folders, strict=True):
            if folder.is_relative_to(before.resolve()):
                return after / folder.relative_to(before.resolve())
        return None

    def __str__(self) -> str:
        """Describe it: `the model and the run 'My Novel'`."""
        kinds = (("the model", self.model), ("the run", self.run))
        return f"{' and '.join(kind for kind, one in kinds if one is not None)} {self.name!r}"


def find_own(name: str) -> Own:
    """Return the person's own model and run of a name, whatever its case.

    Raises:
        ModelError: If there is neither; the model of that name may be bundled, or outside of the data folder.
        RunError: If the run is training.
    """
    model, run = (found if found and _is_folder(found) else None for found in _find(name))
    if model is None and run is None:
        raise _not_own(name)
    own = Own((model or run or Path()).name, model, RunFolder(run) if run else None)
    if own.run is not None and own.run.is_running():
        raise _at_work(own.run)
    return own


def list_own() -> list[str]:
    """Return the names of all that `find_own` finds."""
    folders = (folder for parent in _parents() if parent.is_dir() for folder in parent.iterdir())
    return sorted({folder.name for folder in folders if not folder.name.startswith(".") and _is_folder(folder)})


def _not_own(name: str) -> ModelError:
    """Return the error of a name that is not that of a model or run in the data folder."""
    try:
        folder = find_model(name)
    except ModelError:
        return ModelError(f"you have no model or run {name!r}", f"yours: {', '.join(list_own()) or 'none yet'}")
    if folder.resolve().parent == paths.bundled_models().resolve():
        return ModelError(f"{folder.name} comes with tinychat, and stays as it is", "see `tinychat models`")
    return ModelError(f"{folder} is not in {paths.data_folder()}", "only what is there is removed or renamed")


def _parents() -> tuple[Path, Path]:
    return paths.models_folder(), paths.runs_folder()


def _is_folder(path: Path) -> bool:
    """Return whether it is a folder, or a link to one that may be gone: a file of another tool is no model of ours."""
    return path.is_dir() or path.is_symlink()


def _find(name: str) -> tuple[Path | None, Path | None]:
    """Return what has a name among the models, and among the runs, whatever its case."""
    return find_named(paths.models_folder(), name), find_named(paths.runs_folder(), name)


def _at_work(run: RunFolder) -> RunError:
    way = f"`/finish {run.name}` in the REPL, or q in `tinychat train --resume {run.typed_name}`"
    return RunError(f"{run.name} is training", f"end it first: {way}")


@contextmanager
def _locked(own: Own) -> Iterator[None]:
    """Keep trainers from the run while the block lasts; of a symbolic link, refuse one whose trainer is at work.

    A lock would be written where the link points to, which is outside of the data folder.
    """
    run = own.run
    if run is not None and run.path.is_symlink():
        if run.is_running():
            raise _at_work(run)
        run = None
    try:
        with nullcontext() if run is None else run.lock(timeout=LOCK_TIMEOUT):
            yield
    except TimeoutError:
        assert run is not None
        raise _at_work(run) from None


def remove(own: Own) -> None:
    """Remove a model and its run; of a folder that is a symbolic link, the link alone.

    Raises:
        RunError: If the run is training by now.
        OSError: If a folder cannot be removed.
    """
    with _locked(own):
        for folder in own.folders:
            remove_folder(folder)


def find_taken(name: str, *, among_bundled: bool = True) -> str | None:
    """Return the run or model that has a name, whatever its case, as it is spelled; None if the name is free.

    A run that failed before its first checkpoint gives its name back. The names of bundled models are taken, too, as a
    model of that name in the person's folder would hide them; pass `among_bundled=False` for one that goes elsewhere.
    """
    model, run = _find(name)
    if run is not None and not RunFolder(run).is_void():
        return run.name
    if model is None and among_bundled:
        model = _find_bundled(name)
    return None if model is None else model.name


def taken_error(taken: str, remedy: str, otherwise: str = "") -> RunError:
    """Return the error of a name that a run or a model has.

    `remedy` says how to give another one, `otherwise` what else can be done; default: what removes it, if that can be.
    """
    is_bundled = not otherwise and _find_bundled(taken) is not None
    otherwise = otherwise or f"remove it: `tinychat rm {typed(taken)}`"
    reason = f": {taken} comes with tinychat" if is_bundled else f", or {otherwise}"
    return RunError(f"there is a run or a model {taken!r} already", remedy + reason)


def _find_bundled(name: str) -> Path | None:
    """Return the bundled model of a name, whatever its case."""
    folder = find_named(paths.bundled_models(), name)
    return folder if folder is not None and (folder / CONFIG).is_file() else None


def check_new_name(own: Own, name: str) -> str:
    """Return the name that a model and its run shall get, in the form that is stored.

    Raises:
        UsageError: If the name is invalid, the present one, or something here is a symbolic link.
        RunError: If another run or model has the name.
    """
    name = check_name(name)
    if name == own.name:
        raise UsageError(f"{name!r} is its name already", "give another one")
    if (taken := find_taken(name)) is not None and taken not in {folder.name for folder in own.folders}:
        raise taken_error(taken, "give another name")
    if link := next((folder for folder in own.folders if folder.is_symlink()), None):
        raise UsageError(f"{link} is a symbolic link", "rename what it points to")
    return name


def rename(own: Own, name: str) -> Own:
    """Rename a model and its run, also in their files; the name comes from `check_new_name`.

    Raises:
        RunError: If the run is training by now, its recipe is damaged, or another run or model has got the name.
        ModelError: If a file that holds the name is damaged.
        OSError: If a folder cannot be renamed.
    """
    model, run = (parent / name for parent in _parents())
    with _locked(own):
        check_new_name(own, name)
        texts: dict[Path, str | bytes] = {}  # all are read before the first is written
        for folder in (own.model, own.run.model if own.run else None):
            if folder is not None:
                texts |= _renamed_model(folder, own.name, name)
        if own.run is not None:
            texts |= _renamed_run(own.run, name)
            if (void := find_named(run.parent, name)) is not None and void != own.run.path:
                remove_folder(void)  # before anything is written, as it may fail
        for path, text in texts.items():
            atomic_write(path, text)
        if own.run is not None:
            own.run.path.rename(run)
        if own.model is not None:
            own.model.rename(model)
    return Own(name, model if own.model else None, RunFolder(run) if own.run else None)


def _renamed_model(folder: Path, old: str, new: str) -> dict[Path, str]:
    """Return the files of a model that hold its name, with the new one."""
    if not (folder / CONFIG).is_file():
        return {}
    texts: dict[Path, str] = {}
    for file, key, limit in ((CONFIG, "name", MAX_CONFIG), (TRAINING, "run", MAX_TRAINING)):
        if (folder / file).is_file():
            values = read_object(folder / file, limit)
            _move_sources(values.get("recipe"), old, new)
            if key in values:
                texts[folder / file] = json_text(values | {key: new}) + "\n"
    card = read_card(folder)
    if (renamed := renamed_card(card, old, new)) != card:
        texts[folder / CARD] = renamed
    return texts


def _renamed_run(run: RunFolder, new: str) -> dict[Path, str | bytes]:
    """Return the files of a run that hold paths of its own, with the new ones.

    These are recipes, whose texts may be saved in the run, such as that of a pipe, and events, which end with the
    folder of the model.
    """
    texts: dict[Path, str | bytes] = {}
    before, after = (f'"folder": {json_line(str(paths.models_folder() / name))}'.encode() for name in (run.name, new))
    for folder in (run.path, run.earlier):  # the earlier files may be restored
        if (file := folder / run.events_file.name).is_file():
            texts[file] = file.read_bytes().replace(before, after)
        if (file := folder / run.recipe_file.name).is_file():
            try:
                recipe = read_toml(file)
            except ValueError as error:
                raise RunError(f"{file} is damaged: {error}", "mend it, or remove the run") from None
            _move_sources(recipe, run.name, new)
            texts[file] = tomli_w.dumps(recipe)
    return texts


def _move_sources(recipe: Any, old: str, new: str) -> None:
    """Change the paths of a recipe's sources that are in the folder of its run."""
    data = recipe.get("data") if isinstance(recipe, dict) else None
    if isinstance(data, dict) and isinstance(sources := data.get("sources"), list):
        before, after = (f"{paths.runs_folder() / name}{os.sep}" for name in (old, new))
        data["sources"] = [
            after + source.removeprefix(before) if str(source).startswith(before) else source for source in sources
        ]
