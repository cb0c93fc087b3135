"""Find and read the sources that a person names: files, folders, globs, known data sets and stdin."""

import dataclasses
import glob
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from tinychat.corpus.corpus import Mix, SourceCorpus, TextCorpus
from tinychat.corpus.encoding import PIECE, examine_head
from tinychat.corpus.readers import JSON_FORMATS, Part, format_of
from tinychat.corpus.registry import KNOWN, Dataset, fetch, find_file, is_complete
from tinychat.corpus.types import Mode, Notes
from tinychat.errors import SourceChangedError, SourceError, UsageError
from tinychat.untrusted import expand_home, why_not_regular

STDIN = "-"
"""The source that stands for standard input."""

MAX_WORDS = 50
"""Number of words up to which paths with spaces are looked for among them."""

_WEIGHTED = re.compile(r"(.+):([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf|nan)", re.IGNORECASE | re.DOTALL)
"""A source and its weight in a mix, as in `novel.txt:2`."""
_JSON_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{[ \t]*\"[^\"\n]*\"[ \t]*:")
"""The beginning of JSON Lines: an object with its first key in one line."""

JSON_AS_TEXT = "JSON files read as plain text (--field NAME reads their records): {count}, the first is {first}"


def read_sources(
    specs: Sequence[str],
    *,
    cache: Path,
    mirror: Path | None = None,
    column: str | None = None,
    field: str | None = None,
    mode: Mode | None = None,
    stdin: BinaryIO | None = None,
) -> SourceCorpus:
    """Find and read texts, in bounded memory: one text of all sources, or a mix with a text for each.

    Args:
        specs: files, folders, globs, names of known data sets, or of their files as NAME/FILE, or `-` for stdin. If one
            has a weight, as in `a.txt:2`, the result is a `Mix`, in which sources without a weight have the weight 1.
        cache: a folder for downloaded data sets.
        mirror: a folder of data sets to read instead of downloading.
        column: the column of tables: a name or a number from 1; two, separated by a comma, for the sides of a
            conversation.
        field: the field of JSON records: a name, or a path of names with dots.
        mode: what to read; None: conversations if the first file holds conversations, else documents.
        stdin: read for `-`; None: the standard input of the process.

    Raises:
        SourceError: If a source cannot be found or read, or holds no text.
        UsageError: If a weight is not a finite number above 0.
    """
    if not specs:
        raise SourceError("no text is named", "name a file, a folder, a known data set, or - for stdin")
    new_finder = partial(_Finder, cache, mirror, column, field, stdin)
    names, weights = zip(*map(split_weight, specs), strict=True)
    if len(specs) == 1 or not any(weights):
        return new_finder(mode).read(names)
    corpora: list[TextCorpus] = []
    for name in names:
        corpora.append(new_finder(mode).read([name]))
        mode = corpora[0].mode
    return Mix(corpora, [weight or 1.0 for weight in weights])


def check_sources(
    specs: Sequence[str], *, cache: Path, column: str | None = None, field: str | None = None, mode: Mode | None = None
) -> None:
    """Check that sources are there and begin with text, so that a mistake is found before anything else is done.

    Nothing is downloaded. Beside standard input or a named pipe, which can be read only once and may decide on the
    mode, files are only found, not read. The arguments are those of `read_sources`.

    Raises:
        SourceError: If a source cannot be found, is empty, or its beginning cannot be read.
        UsageError: If a weight is not a finite number above 0.
    """
    names, weights = zip(*map(split_weight, specs), strict=True)
    files = [name for name in names if name != STDIN and not expand_home(name).is_fifo()]
    is_mix = len(specs) > 1 and any(weights)
    for texts in [[name] for name in files] if is_mix else [files]:
        finder = _Finder(cache, None, column, field, None, mode, only_checks=True)
        finder.check(texts, reads=len(files) == len(names))
        mode = finder.mode


def join_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return sources that were typed as words, joining the words of a path with spaces that was not quoted.

    If some word is not there as it is, the words are those of paths that all are; if there are no such paths, all stay.
    """
    if len(words) > MAX_WORDS or all(map(_is_there, words)):
        return tuple(words)
    sources: list[tuple[str, ...] | None] = [()]  # made of the first words; None if they make none
    for end in range(1, len(words) + 1):
        starts = (start for start in reversed(range(end)) if sources[start] is not None)
        found = ((start, " ".join(words[start:end])) for start in starts)
        start, last = next(((start, path) for start, path in found if _is_there(path)), (0, ""))
        sources.append((*(sources[start] or ()), last) if last else None)
    return sources[-1] or tuple(words)


def _is_there(source: str) -> bool:
    """Return whether a source, with or without a weight, can be found: a path, a known data set or standard input."""
    name = split_weight(source)[0]
    if name == STDIN or name.partition("/")[0] in KNOWN:
        return True
    path = expand_home(name)
    try:
        return path.exists() or any(glob.iglob(str(path), recursive=True))  # noqa: PTH207
    except OSError:  # the name is too long
        return False


@dataclass
class _Finder:
    """Turn the sources that a person names into files, and these into one text.

    One that `only_checks` looks for the first file of a folder that has text, and for no file of a data set.
    """

    cache: Path
    mirror: Path | None
    column: str | None
    field: str | None
    stdin: BinaryIO | None
    mode: Mode | None
    only_checks: bool = False
    parts: list[Part] = dataclasses.field(default_factory=list)
    notes: list[tuple[str, Notes]] = dataclasses.field(default_factory=list)
    spool: "tempfile.TemporaryDirectory[str] | None" = None

    def read(self, specs: Sequence[str]) -> TextCorpus:
        for spec in specs:
            self._add(spec)
        mode = self.mode or ("chat" if self.parts[0].holds_conversations() else "completion")
        if self.mode is None and mode == "chat":
            self._note(self.parts[0].name, "read as conversations (--mode completion takes the text alone)")
        name = re.sub(r"[^\w-]+", "-", source_name(specs[0])).strip("-") or "text"
        return TextCorpus(name, mode, self.parts, self.notes, keep_alive=self.spool)

    def check(self, specs: Sequence[str], *, reads: bool) -> None:
        """Find the sources and, if it `reads`, the mode of the text and the beginning of each file."""
        for spec in specs:
            self._add(spec)
        if not self.parts or not reads:
            return
        self.mode = self.mode or ("chat" if self.parts[0].holds_conversations() else "completion")
        are_empty = [_is_empty(part, self.mode) for part in self.parts]
        if len(are_empty) == len(specs) and all(are_empty):
            TextCorpus(specs[0], self.mode, self.parts, self.notes)  # its error says why

    def _note(self, name: str, line: str) -> None:
        self.notes.append((name, Notes()))
        self.notes[-1][1].add(line)

    def _add(self, spec: str) -> None:
        if not spec:  # which `Path` takes for the current folder
            raise SourceError("the name of a text is empty", "name a file, a folder, a known data set, or - for stdin")
        path = expand_home(spec)
        name, _, file = spec.partition("/")
        if spec == STDIN:
            self._add_stream(self.stdin or sys.stdin.buffer, "stdin")
        elif path.is_dir():
            self._add_folder(path, sorted(_walk(path)))
        elif path.is_fifo():  # such as the shell's <(…), which can be read only once
            with path.open("rb") as stream:
                self._add_stream(stream, spec)
        elif path.exists():
            check_is_file(path)
            self.parts.append(self._part(path))
        elif name in KNOWN:
            self._add_dataset(KNOWN[name], file)
        elif glob.has_magic(spec):
            found = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207
            self._add_folder(path, [path for path in found if not path.is_dir()])
        else:
            near = get_close_matches(spec, [*KNOWN, *(entry.name for entry in Path().iterdir())], 1)
            hint = f"is it {near[0]}?" if near else "known data sets: " + ", ".join(KNOWN)
            raise SourceError(f"there is no file, folder or known data set {spec!r}", hint)

    def _part(self, path: Path) -> Part:
        format = format_of(path)
        return Part(path, str(path), format, self._field_of(format))

    def _field_of(self, format: str) -> str | None:
        """Return the field or column to read; if only one of the flags is given, it applies to all formats."""
        first, second = (self.field, self.column) if format in JSON_FORMATS else (self.column, self.field)
        return first if first is not None else second

    def _add_folder(self, folder: Path, files: Sequence[Path]) -> None:
        """Add all files with text; those that end in `.json` are plain text unless a field of them is asked for.

        Pipes, devices and the like are never opened: nobody named them, and reading them may wait for ever.
        """
        count, notes, reads_texts = len(self.parts), Notes(), self.mode in (None, "completion")
        for path in files:
            if _is_special(path):
                notes.add(
                    "pipes, devices and other special files left out: {count}, the first is {first}", 1, path.name
                )
                continue
            part = self._part(path)
            is_plain = part.format == ".json" and self.field is None and reads_texts and folder.is_dir()
            part.format = "" if is_plain else part.format
            if self._has_text(part):
                self.parts.append(part)
                notes.add(JSON_AS_TEXT, int(is_plain), path.name)
            else:
                notes.add("files without text that can be read, left out: {count}, the first is {first}", 1, path.name)
            if self.only_checks and len(self.parts) > count:
                break
        self.notes.append((str(folder), notes))
        if len(self.parts) == count:
            raise SourceError(f"there is no text in {folder}", f"of {len(files)} files none can be read")

    def _has_text(self, part: Part) -> bool:
        try:
            if self.mode in (None, "completion"):
                return any(chunk.text for chunk in part.chunks(Notes()))
            return next(part.conversations(Notes()), None) is not None
        except SourceChangedError:
            raise
        except SourceError:
            return False

    def _add_dataset(self, dataset: Dataset, file_name: str) -> None:
        name = dataset.name
        if not dataset.is_text:
            raise SourceError(f"{name} is no text: {dataset.description}", f"use it as --tokenizer {name}")
        files = [file for file in dataset.files if (file.name == file_name if file_name else file.is_read)]
        if not files:
            known = ", ".join(f"{name}/{file.name}" for file in dataset.files)
            raise SourceError(f"there is no file {file_name!r} in {name}", f"its files: {known}")
        self.mode = self.mode or cast("Mode", dataset.mode)
        if self.only_checks:
            return
        if dataset.is_generated and not is_complete(dataset, self.cache / name):
            self._note(name, "made by its own program, with seed 1 (`tinychat data make` takes another)")
        folder = fetch(name, cache=self.cache, mirror=self.mirror)
        field = self._field_of(dataset.format) or dataset.column
        for file in files:
            path = find_file(folder, file)
            assert path is not None  # it was just fetched
            self.parts.append(Part(path, f"{name}/{file.name}", dataset.format, field, dataset.separator))

    def _add_stream(self, stream: BinaryIO, name: str) -> None:
        """Copy a stream, which can be read only once, to a temporary file."""
        self.spool = self.spool or tempfile.TemporaryDirectory(prefix="tinychat-")
        path = Path(self.spool.name) / str(len(self.parts))
        first = stream.read(PIECE)
        with path.open("wb") as file:
            file.write(first)
            shutil.copyfileobj(stream, file)
        is_json = self.field is not None or begins_as_json(first)
        format = ".jsonl" if is_json else ".csv" if self.column is not None else ""
        self.parts.append(Part(path, name, format, self._field_of(format)))


def check_is_file(path: Path) -> None:
    """Check that a source is a regular file, which can be read again and again.

    Raises:
        SourceError: If it is a device, a socket or a file of `/proc`, for instance.
    """
    if kind := why_not_regular(path):
        raise SourceError(f"{path} is {kind}, which cannot be read as a text", "name a file, or - for standard input")


def _is_special(path: Path) -> bool:
    try:
        return bool(why_not_regular(path))
    except OSError:  # a link to nothing, which cannot be read either, and is told so
        return False


def _is_empty(part: Part, mode: Mode) -> bool:
    """Return whether a file begins with nothing to read in a mode."""
    if mode == "completion" and part.is_running_text:
        return not examine_head(part.path)[0]
    return next(part.chunks(Notes()) if mode == "completion" else part.conversations(Notes()), None) is None


def begins_as_json(first: bytes) -> bool:
    """Return whether the first bytes of a stream, which has no name that tells its format, are those of JSON Lines."""
    return _JSON_LINE.match(first) is not None


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and its subfolders, except hidden ones."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


def source_name(source: str) -> str:
    """Return the name of a source without a weight: a file's without suffixes, a glob's folder, `stdin` for `-`.

    The source need not exist.
    """
    if source == STDIN:
        return "stdin"
    path = expand_home(source)
    if (dataset := source.partition("/")[0]) in KNOWN and not path.exists():
        return dataset
    while glob.has_magic(path.name):
        path = path.parent
    if path.name in ("", ".."):
        path = path.resolve()
    return path.name if path.is_dir() else path.name.partition(".")[0] or path.name


def split_weight(source: str) -> tuple[str, float | None]:
    """Split a source, as in `novel.txt:2`, into its name and its weight. A path that exists is never split.

    Raises:
        UsageError: If the weight is not a finite number above 0.
    """
    found, path = _WEIGHTED.fullmatch(source), expand_home(source)
    if found is None or path.exists() or next(glob.iglob(str(path), recursive=True), None):  # noqa: PTH207
        return source, None
    name, weight = found[1], float(found[2])
    if not 0 < weight < math.inf:
        raise UsageError(f"the weight of {name} is {found[2]}", "a weight is a number above 0, as in novel.txt:2")
    return name, weight


def with_weight(source: str, weight: float | None) -> str:
    """Join a name and a weight into a source, as `split_weight` splits it."""
    return source if weight is None else f"{source}:{weight!r}"
