"""Files of records, read one at a time: CSV, TSV, JSONL, JSON and Parquet."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tinychat.errors import SourceError
from tinychat.text.decoding import open_bytes, read_lines
from tinychat.text.notices import Notes

Record = dict[str, Any]

SAMPLE = 200
"""rows that separator, quotes and header are told from"""

HEADER_NAMES = {"id", "label", "name", "title", "text", "content", "question", "answer", "prompt", "completion"}
"""names that only a header has in the first row; numbers or long texts under a short name tell one as well"""

_NAME = re.compile(r"(?:[^\W\d]\w*(?:[ .:/#(-]+\w+){0,2}\)?)?")
_NUMBER = re.compile(r"[\s\d.,+-]*\d[\s\d.,%-]*")

csv.field_size_limit(2**31 - 1)  # a field may be a whole book


class Semicolons(csv.excel):
    """As spreadsheets write them where a comma is the decimal point."""

    delimiter = ";"


class Bars(csv.excel):
    """A `|` between cells."""

    delimiter = "|"


class Tabs(csv.excel_tab):
    """Tabs alone: a `"` is a plain character, as in most tab-separated text."""

    quoting = csv.QUOTE_NONE


COMMA_DIALECTS: tuple[type[csv.Dialect], ...] = (csv.excel, Semicolons, csv.excel_tab, Bars)
TAB_DIALECTS: tuple[type[csv.Dialect], ...] = (Tabs, csv.excel_tab)


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    Args:
        path: of the file.
        format: how it ends, a key of `FORMATS`.
        pieces: gives the decoded text, anew at each call; not asked for Parquet.
        wanted: the field to read, by name, as a path of names with dots, or by its number from 1; two with a comma
            between them for the two sides of a conversation. A first row that holds one is a header.
    """

    path: Path
    format: str
    pieces: Callable[[], Iterator[str]]
    wanted: str | None = None

    def records(self, notes: Notes) -> Iterator[Record]:
        """All records.

        Raises:
            SourceError: the file cannot be read.
        """
        return FORMATS[self.format](self, notes)


def _read_jsonl(file: RecordFile, notes: Notes) -> Iterator[Record]:
    """One JSON value a line; a bad line is left out and counted."""
    for number, line in enumerate(read_lines(file.pieces()), 1):
        if line.isspace():
            continue
        try:
            yield _as_record(json.loads(line))
        except (ValueError, RecursionError):
            notes.add("lines that are no JSON left out: {count}, the first is line {first}", 1, f"{number:,}")


def _read_json(file: RecordFile, notes: Notes) -> Iterator[Record]:
    """An array of values, one value, or several in a row: each is read as soon as it is whole."""
    pieces = file.pieces()
    decoder = json.JSONDecoder()
    held, more = next(pieces, "").lstrip(), True
    in_array = held.startswith("[")
    held = held[in_array:]
    while True:
        held = held.lstrip(" \t\n,")
        if in_array and held.startswith("]"):
            return
        try:
            value, end = decoder.raw_decode(held)
            if end < len(held) or not more:  # else a number may go on
                held = held[end:]
                yield _as_record(value)
                continue
        except (ValueError, RecursionError):
            if not more:
                if held or in_array:
                    raise SourceError(f"{file.path} is no JSON: it ends with {held[:40]!r}") from None
                return
        length = len(held)
        while more and len(held) <= 2 * length:  # doubled, so that a long value is not tried too often
            piece = next(pieces, None)
            more = piece is not None
            held += piece or ""


def _read_rows(file: RecordFile, notes: Notes) -> Iterator[Record]:
    """Separated values: the separator, quotes and a header are told from the first rows."""
    lines = read_lines(file.pieces())
    first = list(islice(lines, SAMPLE))
    dialect = _choose_dialect(first, tabs=file.format == ".tsv")
    rows = (row for row in csv.reader(chain(first, lines), dialect) if row)
    sample = list(islice(rows, SAMPLE))
    header = _header(sample, {name.strip().lower() for name in (file.wanted or "").split(",")})
    width = max(map(len, sample), default=0)
    names = header or [str(number) for number in range(1, width + 1)]
    for row in chain(sample[bool(header) :], rows):
        yield dict(zip(names, row, strict=False))


def _read_parquet(file: RecordFile, notes: Notes) -> Iterator[Record]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise SourceError(f"{file.path} needs pyarrow to be read", "pip install 'tinychat[parquet]'") from None
    with open_bytes(file.path) as data:
        try:
            for batch in parquet.ParquetFile(data).iter_batches(batch_size=1024):
                yield from batch.to_pylist()
        except ArrowException as error:
            raise SourceError(f"{file.path} is no Parquet file: {str(error).splitlines()[0]}", "") from None


def _choose_dialect(lines: Sequence[str], tabs: bool) -> type[csv.Dialect]:
    """The one under which most rows have the same number of cells, more than one."""
    best, most = TAB_DIALECTS[0] if tabs else COMMA_DIALECTS[0], 0.0
    for dialect in TAB_DIALECTS if tabs else COMMA_DIALECTS:
        widths = [len(row) for row in csv.reader(lines, dialect) if row]
        usual = max(set(widths), key=widths.count, default=1)
        share = widths.count(usual) / len(widths) if usual > 1 else 0.0
        if share > most + 0.01:
            best, most = dialect, share
    return best


def _header(sample: Sequence[Sequence[str]], wanted: set[str]) -> list[str] | None:
    """The names in the first row; None where it is a row like the others."""
    names = [name.strip() for name in sample[0]] if sample else []
    lower = {name.lower() for name in names}
    if any(name and not name.isdecimal() for name in lower & wanted):
        return names
    if len(lower) < len(names) or not all(map(_NAME.fullmatch, names)):
        return None
    if lower & HEADER_NAMES:
        return names
    for name, *cells in zip(names, *(row for row in sample[1:] if len(row) == len(names)), strict=True):
        of_numbers = cells and all(map(_NUMBER.fullmatch, cells))
        if of_numbers or sum(map(len, cells)) > len(cells) * max(20, 3 * len(name)):
            return names
    return None


def _as_record(value: object) -> Record:
    if isinstance(value, dict):
        return value
    return {"messages": value} if isinstance(value, list) else {"text": value}


FORMATS: dict[str, Callable[[RecordFile, Notes], Iterator[Record]]] = {
    ".csv": _read_rows,
    ".tsv": _read_rows,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
"""How a file of records is read, by the end of its name; a new format is one function and one line."""

JSON_FORMATS = {".jsonl", ".ndjson", ".json"}
