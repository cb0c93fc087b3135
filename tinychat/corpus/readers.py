"""Read files as documents or conversations: plain text, CSV, TSV, JSONL, JSON and Parquet, one record at a time.

`Part` is one file of a corpus; it decides which field of the records is the text, and which two are the sides of a
conversation. `InlineTexts` takes its place for texts that are in memory.
"""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from tinychat.corpus.encoding import (
    MAX_LINE,
    clean,
    describe_encoding,
    find_encoding,
    open_bytes,
    read_lines,
    read_text,
)
from tinychat.corpus.types import Chunk, Conversation, Message, Notes, Role
from tinychat.errors import SourceChangedError, SourceError
from tinychat.untrusted import is_nested

Record = dict[str, Any]
_Item = TypeVar("_Item")

MAX_NESTING = 400
"""Maximum depth of arrays and objects in a record: Python's stack holds no more than about 1,000."""

SAMPLE = 200
"""Records, or rows, from which separator, quotes, header and fields are inferred."""

HEADER_NAMES = {"id", "label", "name", "title", "text", "content", "question", "answer", "prompt", "completion"}
"""Names that make a first row a header; columns of numbers, or of texts longer than the name above, do so too."""

_NAME = re.compile(r"(?:[^\W\d]\w*(?:[ .:/#(-]+\w+){0,2}\)?)?")
_NUMBER = re.compile(r"[\s\d.,+-]*\d[\s\d.,%-]*")
_GAP = re.compile(r"[ \t\n,]+")

csv.field_size_limit(2**31 - 1)  # a field may be a whole book


COMMA_DIALECTS: list[dict[str, Any]] = [{"delimiter": delimiter} for delimiter in ",;\t|"]
TAB_DIALECTS: list[dict[str, Any]] = [{"delimiter": "\t", "quoting": csv.QUOTE_NONE}, {"delimiter": "\t"}]
"""Options of `csv.reader`; in most tab-separated text, `"` is a plain character."""
UNIT_SEPARATOR = "\x1f"
"""A separator of cells that no text has."""
END = "\udfff"
"""Stands behind a line to tell whether its last cell goes on: a lone surrogate, which no text holds."""

TEXT_NAMES = ("text", "content", "contents", "body", "document", "story", "article", "sentence", "review", "message")
PROMPT_NAMES = ("prompt", "question", "instruction", "input", "user", "source")
ANSWER_NAMES = ("completion", "answer", "response", "output", "bot", "assistant", "reply", "target")
GIVEN_NAMES = ("input", "context")
"""Fields of an instruction or a question that hold what it is about, as Alpaca's and Dolly's records have them."""
CONVERSATION_NAMES = ("messages", "conversations", "conversation", "dialog", "dialogue", "turns")
ROLES: dict[str, Role] = {
    "user": "user", "human": "user", "prompter": "user",
    "bot": "assistant", "assistant": "assistant", "gpt": "assistant", "model": "assistant",
}  # fmt: skip
"""Roles by the names of speakers in files of conversations."""


@dataclass
class Part:
    """One file of a corpus: plain text, or records, each with a text or the sides of a conversation.

    All that reads raises `SourceError` if the file cannot be read, or holds no text or conversations.

    Args:
        path: of the file.
        name: shown in notices.
        format: of its records, a key of `FORMATS`; empty for plain text.
        field: the field to read, by name, as a path of names with dots, or by its number from 1; two, separated by a
            comma, for the sides of a conversation. A first row that holds the name is a header.
        separator: string between the documents of a plain text; empty if the file is one document.
    """

    path: Path
    name: str
    format: str = ""
    field: str | None = None
    separator: str = ""

    def __post_init__(self) -> None:
        self._version = _file_version(self.path)

    @cached_property
    def encoding(self) -> str:
        """The encoding of the file, as Python names it."""
        return find_encoding(self.path)

    @property
    def is_running_text(self) -> bool:
        """Whether the file is one document, however long."""
        return not self.format and not self.separator

    def chunks(self, notes: Notes) -> Iterator[Chunk]:
        """Yield the documents, a running text in pieces; `notes` take what the readers change or leave out."""
        return self._watched(self._chunks(notes))

    def conversations(self, notes: Notes) -> Iterator[Conversation]:
        """Yield the conversation in each record that has an answer; plain text is read as two columns with a tab."""
        return self._watched(self._conversations(notes))

    def _watched(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """Yield items of the file; raise SourceChangedError if it is no longer what it was when this was created."""
        self._check_version()
        try:
            yield from items
        except SourceError:
            self._check_version()  # it may be whole, but half old and half new
            raise
        self._check_version()

    def _check_version(self) -> None:
        if _file_version(self.path) != self._version:
            raise SourceChangedError(str(self.path))

    def _chunks(self, notes: Notes) -> Iterator[Chunk]:
        if self.is_running_text:
            piece = None
            for piece in self.pieces(notes):
                yield Chunk(piece, False)
            if piece is not None:
                yield Chunk("", True)
        else:
            texts = self._texts(notes) if self.format else _split_documents(self.pieces(notes), self.separator)
            yield from (Chunk(text, True) for text in texts)

    def _conversations(self, notes: Notes) -> Iterator[Conversation]:
        sample, records = _peek(self._records(notes))
        sides = self._choose_sides(sample) if sample else None
        if self.field is None:
            self._note_unread(sample, sides, notes)
        for number, record in enumerate(records, 1):
            found = _pair(record, sides) if sides else _messages(record, notes)
            messages = tuple(Message(message.role, clean(message.text, notes)) for message in found)
            if any(message.role == "assistant" for message in messages):
                yield Conversation(messages)
            else:
                notes.add("records without an answer left out: {count}, the first is number {first}", 1, f"{number:,}")

    def holds_conversations(self) -> bool:
        """Return whether this is a file of conversations, judging by the names of its fields."""
        if not self.format:
            return False
        sample, _ = _peek(self._records(Notes()))
        if self.field is not None:
            sides = [side.strip() for side in self.field.split(",")]
            are_there = [any(_find(record, name) is not None for record in sample) for name in (self.field, *sides)]
            return are_there == [False, True, True]
        named = any(name.lower() in TEXT_NAMES for record in sample for name in record)
        return any(_messages(record, Notes()) for record in sample) or (not named and _named_sides(sample) is not None)

    def pieces(self, notes: Notes) -> Iterator[str]:
        """Return the decoded text from its beginning; not for Parquet."""
        if self.encoding != "utf-8":
            notes.add("read as {first}", first=describe_encoding(self.encoding))
        return read_text(self.path, self.encoding, notes)

    def _records(self, notes: Notes) -> Iterator[Record]:
        return FORMATS[self.format or ".tsv"](self, notes)

    def _texts(self, notes: Notes) -> Iterator[str]:
        """Yield the text of each record: `field`, else the field with a usual name for text, else the longest."""
        sample, records = _peek(self._records(notes))
        field = self._choose_field(sample, notes) if sample else ""
        without_text = f"records without {field!r} left out: {{count}}, the first is number {{first}}"
        for number, record in enumerate(records, 1):
            if text := clean(_as_text(_find(record, field)), notes):
                yield text
            else:
                notes.add(without_text, 1, f"{number:,}")

    def _choose_field(self, sample: Sequence[Record], notes: Notes) -> str:
        if self.field is not None:
            if not any(_find(record, self.field) is not None for record in sample):
                raise SourceError(f"{self.path} has no {self._kind} {self.field!r}", self._fields(sample))
            return self.field
        lengths: Counter[str] = Counter()
        for name, value in chain.from_iterable(map(_leaves, sample)):
            if isinstance(value, str):
                lengths[name] += len(value)
        if not lengths:
            raise SourceError(f"{self.path} has no {self._kind} of text", self._fields(sample))
        plain = {name.rpartition(".")[2].lower(): name for name in reversed(lengths)}
        named = next((plain[name] for name in TEXT_NAMES if name in plain), None)
        chosen = named or max(lengths, key=lengths.__getitem__)
        if len(lengths) > 1:
            others = _join_names([name for name in lengths if name != chosen])
            why = "" if named else ", the longest"
            notes.add(f"the text is {self._kind} {chosen!r}{why} (--{self._kind} takes another: {others})")
        return chosen

    def _choose_sides(self, sample: Sequence[Record]) -> tuple[str, str] | None:
        """Return the fields of prompt and answer; None if the records hold lists of messages."""
        if self.field is not None:
            names, sides = [name.strip() for name in self.field.split(",")], None
        elif any(_messages(record, Notes()) for record in sample):
            return None
        else:
            names, sides = _names(sample), _named_sides(sample)
        if sides is None and len(names) == 2:
            sides = (names[0], names[1])
        if sides is None or not any(_find(record, side) is not None for record in sample for side in sides):
            remedy = f"name the two sides, as in --{self._kind} question,answer; it has: {_join_names(_names(sample))}"
            if not self.format:
                remedy = "write each pair on a line of its own, with a tab between its two sides"
            raise SourceError(f"{self.path} holds no conversations or pairs of texts", remedy)
        return sides

    def _note_unread(self, sample: Sequence[Record], sides: tuple[str, str] | None, notes: Notes) -> None:
        """Tell which fields with text are no part of the conversations."""
        read = [*map(str.lower, sides), *_given(sides)] if sides else CONVERSATION_NAMES
        leaves = chain.from_iterable(map(_leaves, sample))
        texts = dict.fromkeys(name for name, value in leaves if isinstance(value, str) and value)
        if unread := [name for name in texts if name.lower() not in read]:
            notes.add(f"{self._kind}s that the conversations leave out: {_join_names(unread)}")

    @property
    def _kind(self) -> str:
        return "field" if self.format in JSON_FORMATS else "column"

    def _fields(self, sample: Sequence[Record]) -> str:
        return f"its {self._kind}s: {_join_names(names)}" if (names := _names(sample)) else ""


def _file_version(path: Path) -> tuple[int, ...]:
    """Return numbers that differ once a file is written or replaced; none if it cannot be opened."""
    try:
        status = path.stat()
    except OSError:  # reading it says why
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _names(sample: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in sample for name, _ in _leaves(record)))


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _as_text(value: object) -> str:
    """Return a text or number as text; empty for any other value, also for NaN, which pandas writes for none."""
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(value) if isinstance(value, str | int | float) else ""


def _find(record: Record, path: str) -> object:
    """Return the value of a field, by name, path of names, or number from 1; None if there is none."""
    if path in record:
        return record[path]
    lower = {name.lower(): name for name in record}
    if path.lower() in lower:
        return record[lower[path.lower()]]
    if path.isdecimal():
        return next(islice(record.values(), int(path) - 1, None), None) if 0 < int(path) <= len(record) else None
    value: object = record
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _leaves(record: Record, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and value of every field, also of nested records."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _named_sides(sample: Iterable[Record]) -> tuple[str, str] | None:
    """Return the fields that have usual names for a prompt and its answer."""
    for record in sample:
        lower = {name.lower(): name for name in record}
        prompt = next((lower[name] for name in PROMPT_NAMES if name in lower), None)
        answer = next((lower[name] for name in ANSWER_NAMES if name in lower), None)
        if prompt and answer:
            return prompt, answer
    return None


def _given(sides: tuple[str, str]) -> list[str]:
    """Return the names of the fields that a prompt may be about, beside those of its two sides."""
    prompt, answer = map(str.lower, sides)
    return [name for name in GIVEN_NAMES if name != answer] if prompt in ("instruction", "question") else []


def _pair(record: Record, sides: tuple[str, str]) -> list[Message]:
    prompt, answer = (_as_text(_find(record, side)) for side in sides)
    if prompt and answer:
        given = (_as_text(_find(record, name)) for name in _given(sides))
        return [Message("user", "\n".join(filter(None, (prompt, *given)))), Message("assistant", answer)]
    return []


def _messages(record: Record, notes: Notes) -> list[Message]:
    """Return the messages that a record holds as a list: objects with a role, or alternating texts."""
    lower = {name.lower(): value for name, value in record.items()}
    turns: list[Any] = next((lower[name] for name in CONVERSATION_NAMES if isinstance(lower.get(name), list)), [])
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        if isinstance(turn, dict):
            role = str(turn.get("role", turn.get("from", ""))).lower()
            text = turn.get("content", turn.get("value", turn.get("text")))
        else:
            role, text = ("user", "assistant")[number % 2], turn
        if isinstance(text, list):  # the content parts of OpenAI's API
            texts = [*filter(None, map(_part_text, text))]
            notes.add("parts of messages without text, such as pictures, left out: {count}", len(text) - len(texts))
            text = "\n".join(texts) if texts else None
        if role not in ROLES:
            notes.add("messages of other roles than user and assistant left out: {count}, first {first}", 1, repr(role))
        elif not isinstance(text, str):
            notes.add("messages without text left out: {count}, the first by {first}", 1, repr(role))
        else:
            messages.append(Message(ROLES[role], text))
    return messages


def _part_text(part: object) -> str:
    """Return the text of a part of a message, which may also be a picture."""
    return _as_text(part.get("text")) if isinstance(part, dict) else ""


def _peek(records: Iterable[Record]) -> tuple[list[Record], Iterator[Record]]:
    """Return the first records as a sample, and all records."""
    iterator = iter(records)
    sample = list(islice(iterator, SAMPLE))
    return sample, chain(sample, iterator)


def _read_jsonl(part: Part, notes: Notes) -> Iterator[Record]:
    """Read one JSON value a line; bad lines are skipped and counted."""
    for number, line in enumerate(read_lines(part.path, part.pieces(notes)), 1):
        if line.isspace():
            continue
        try:
            if is_nested(line, MAX_NESTING):
                raise ValueError("too deep")
            value = json.loads(line)
        except ValueError:
            notes.add("lines that are no JSON left out: {count}, the first is line {first}", 1, f"{number:,}")
        else:
            yield _as_record(value)


def _read_json(part: Part, notes: Notes) -> Iterator[Record]:
    """Read arrays of values, or concatenated values, each as soon as it is complete."""
    pieces = part.pieces(notes)
    decoder = json.JSONDecoder()
    buffer, more = next(pieces, "").lstrip(), True
    has_arrays, in_array = buffer.startswith("["), False
    at = 0  # where the next value is looked for: cutting the buffer after each would copy it each time
    while True:
        if gap := _GAP.match(buffer, at):
            at = gap.end()
        if has_arrays and buffer.startswith("]" if in_array else "[", at):
            at, in_array = at + 1, not in_array
            continue
        try:
            value, end = decoder.raw_decode(buffer, at)
            if is_nested(buffer[at:end], MAX_NESTING):
                raise SourceError(f"{part.path} cannot be read: a value is nested more than {MAX_NESTING} deep")
            if end < len(buffer) or not more:  # else a number may continue
                at = end
                yield _as_record(value)
                continue
        except (ValueError, RecursionError):
            if not more:
                if at < len(buffer):
                    raise SourceError(f"{part.path} is no JSON: it ends with {buffer[at : at + 40]!r}") from None
                if in_array:
                    raise SourceError(
                        f"{part.path} is no JSON: it ends within an array", "is the file complete?"
                    ) from None
                return
        buffer, at = buffer[at:], 0
        length = len(buffer)
        if length > MAX_LINE:
            problem = f"{part.path} is no JSON, or has a value of more than {MAX_LINE:,} characters"
            raise SourceError(problem, "a value is read as a whole: break it into records")
        # Doubled, so that a long value is not tried too often.
        while more and len(buffer) <= min(2 * length, MAX_LINE):
            piece = next(pieces, None)
            more = piece is not None
            buffer += piece or ""


def _read_rows(part: Part, notes: Notes) -> Iterator[Record]:
    """Read separated values; separator, quotes and header are inferred from the first rows."""
    lines = read_lines(part.path, part.pieces(Notes()))
    first = list(islice(lines, SAMPLE))
    dialect = _choose_dialect(first, tabs=part.format in ("", ".tsv"))
    sample = list(islice(filter(None, _split_rows(chain(first, lines), dialect, Notes())), SAMPLE))
    header = _header(sample, {name.strip().lower() for name in (part.field or "").split(",")})
    if header is not None and len(header) == 1 and max(map(len, sample)) > 1:  # what separates there belongs to texts
        dialect = dialect | {"delimiter": UNIT_SEPARATOR}
    width = max(map(len, sample), default=0)
    names = header or [str(number) for number in range(1, width + 1)]
    without_name = "cells beyond the header left out in {count} rows, the first is number {first}"
    rows = filter(None, _split_rows(read_lines(part.path, part.pieces(notes)), dialect, notes))
    for number, row in enumerate(islice(rows, int(header is not None), None), 1):
        if any(row[len(names) :]):
            notes.add(without_name, 1, f"{number:,}")
        yield dict(zip(names, row, strict=False))


def _split_rows(lines: Iterable[str], dialect: dict[str, Any], notes: Notes) -> Iterator[list[str]]:
    """Yield the rows of the lines of a file.

    A quotation mark that is not closed would take all lines as far as the next mark, or the end of the file, into its
    cell. Where text follows that next mark, or none comes, its lines are read again, each as a row of its own.
    """
    lines, begin = iter(lines), 1
    row_lines: list[str] = []  # of the row that is being read, which begins with line `begin`
    again: list[str] = []  # a line that is read again, as the beginning of a row

    def record() -> Iterator[str]:
        for line in chain(again, lines):
            row_lines.append(line)
            yield line

    while True:
        try:
            for row in csv.reader(record(), strict=True, **dialect):
                yield row
                begin += len(row_lines)
                row_lines.clear()
            return
        except csv.Error:
            alone = row_lines[:-1] or row_lines[:]
        again, row_lines = row_lines[len(alone) :], []
        for line in alone:
            yield _split_line(line, begin, dialect, notes)
            begin += 1


def _split_line(line: str, number: int, dialect: dict[str, Any], notes: Notes) -> list[str]:
    """Return the cells of a line that is a row; its quotation marks are text if one of them is not closed in it."""
    row = next(csv.reader([line, END], **dialect))  # not strict: text behind the mark that closes a cell belongs to it
    if row and row[-1].endswith(END):
        notes.add("unclosed quotation marks read as text: {count}, the first is in line {first}", 1, f"{number:,}")
        row = next(csv.reader([line], **{**dialect, "quoting": csv.QUOTE_NONE}))
    return row


def _read_parquet(part: Part, notes: Notes) -> Iterator[Record]:
    """Read the rows of a Parquet file in batches, with pyarrow."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise SourceError(f"{part.path} needs pyarrow to be read", "pip install 'tinychat[parquet]'") from None
    with open_bytes(part.path) as data:
        try:
            for batch in parquet.ParquetFile(data).iter_batches(batch_size=1024):
                yield from batch.to_pylist()
        except ArrowException as error:
            raise SourceError(f"{part.path} is no Parquet file: {str(error).splitlines()[0]}", "") from None
        except (ValueError, OverflowError) as error:  # bytes that are no UTF-8, dates beyond those of Python
            problem = f"{part.path} has values that cannot be read: {str(error).partition(chr(10))[0]}"
            raise SourceError(problem, "save it without their column") from None


def _choose_dialect(lines: Sequence[str], tabs: bool) -> dict[str, Any]:
    """Return the dialect under which the most rows have the same number of cells, at least two."""
    dialects = TAB_DIALECTS if tabs else COMMA_DIALECTS
    best, most = dialects[0], 0.0
    for dialect in dialects:
        widths = [len(row) for row in csv.reader(lines, **dialect) if row]
        usual = max(set(widths), key=widths.count, default=1)
        fraction = widths.count(usual) / len(widths) if usual > 1 else 0.0
        if fraction > most + 0.01:
            best, most = dialect, fraction
    return best


def _header(sample: Sequence[Sequence[str]], wanted: set[str]) -> list[str] | None:
    """Return the names in the first row; None if it is a row like the others."""
    names = [name.strip() for name in sample[0]] if sample else []
    lower = {name.lower() for name in names}
    if any(name and not name.isdecimal() for name in lower & wanted):
        return names
    if len(lower) < len(names) or not all(map(_NAME.fullmatch, names)):
        return None
    if lower & HEADER_NAMES or (lower & set(PROMPT_NAMES) and lower & set(ANSWER_NAMES)):
        return names
    for name, *cells in zip(names, *(row for row in sample[1:] if len(row) == len(names)), strict=True):
        are_numbers = cells and all(map(_NUMBER.fullmatch, cells))
        if are_numbers or sum(map(len, cells)) > len(cells) * max(20, 3 * len(name)):
            return names
    return None


def _as_record(value: object) -> Record:
    if isinstance(value, dict):
        return value
    return {"messages": value} if isinstance(value, list) else {"text": value}


FORMATS: dict[str, Callable[[Part, Notes], Iterator[Record]]] = {
    ".csv": _read_rows,
    ".tsv": _read_rows,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
"""The reader of each record format, by the end of a file's name; a new format is one function and one line."""

JSON_FORMATS = {".jsonl", ".ndjson", ".json"}


@dataclass
class InlineTexts:
    """Texts in memory, which take the place of a `Part`: documents, or two sides of a conversation around a tab."""

    texts: tuple[str, ...]
    name: str
    is_running_text: bool = False

    def chunks(self, notes: Notes) -> Iterator[Chunk]:
        return (Chunk(text, True) for text in self.texts)

    def conversations(self, notes: Notes) -> Iterator[Conversation]:
        for number, text in enumerate(self.texts, 1):
            prompt, tab, answer = text.partition("\t")
            if tab:
                yield Conversation((Message("user", prompt), Message("assistant", answer)))
            else:
                notes.add("texts without a tab left out: {count}, the first is number {first}", 1, f"{number:,}")


def format_of(path: Path) -> str:
    """Return the record format by the end of a file's name, with or without `.gz`; empty for plain text."""
    name = path.name.lower().removesuffix(".gz")
    return next((format for format in FORMATS if name.endswith(format)), "")


def _split_documents(pieces: Iterator[str], separator: str) -> Iterator[str]:
    buffer = ""
    for piece in pieces:
        *whole, buffer = (buffer + piece).split(separator)
        yield from (text for document in whole if (text := document.strip("\n")))
    if text := buffer.strip("\n"):
        yield text
