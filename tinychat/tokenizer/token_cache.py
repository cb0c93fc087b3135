"""A corpus → token ids in a memory-mapped file, made once for a text and a tokenizer."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tinychat.atomic import atomic_file, atomic_write
from tinychat.errors import SourceError, TokenizerError
from tinychat.text.chat import ChatTemplate, Conversation
from tinychat.text.corpus import Corpus, Digest
from tinychat.text.parts import Chunk
from tinychat.text.tokenizers import Tokenizer

FORMAT = 2
"""part of a file's name: a change of what is in it makes old files unknown"""

BATCH = 1 << 20
"""characters of short documents that are encoded at once"""

Ids = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class IdFile:
    """The ids of a corpus: documents one after the other, each between the begin and end tokens that there are."""

    path: Path
    ids: Ids
    """of all documents, read from the disk as they are asked for; read-only"""
    ends: npt.NDArray[np.int64]
    """where each document ends among the ids; read-only"""


def encode_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    cache: Path,
    *,
    template: ChatTemplate | None = None,
) -> IdFile:
    """The ids of a corpus, read from the cache where this text was encoded by this tokenizer before.

    Args:
        corpus: what to encode; its conversations need a template.
        tokenizer: that makes the ids.
        cache: a folder.
        template: of conversations.

    Raises:
        SourceError: the text cannot be read, or changed since the corpus was made.
        TokenizerError: the tokenizer has no token for anything in the text.
    """
    told = (FORMAT, corpus.fingerprint, tokenizer.fingerprint, template and template.to_dict())
    path = cache / (hashlib.sha256(json.dumps(told).encode()).hexdigest()[:40] + ".ids")
    ends = path.with_suffix(".ends")
    if not path.is_file() or not ends.is_file():
        _write(path, ends, corpus, tokenizer, template)
    return IdFile(path, np.memmap(path, tokenizer.dtype, "r"), np.memmap(ends, np.int64, "r"))


def split(ids: Ids, part: Literal["train", "val", "all"]) -> Ids:
    """A part by position: `val` is the last tenth, `train` what is before it."""
    end = int(len(ids) * 0.9)
    return {"train": ids[:end], "val": ids[end:], "all": ids}[part]


def join(rows: Sequence[Ids]) -> Ids:
    """Several rows of ids one after the other, in memory; one alone is left where it is."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _write(path: Path, ends_path: Path, corpus: Corpus, tokenizer: Tokenizer, template: ChatTemplate | None) -> None:
    digest = Digest()

    def items() -> Iterator[Chunk | Conversation]:
        for item in corpus.items():
            digest.add(item)
            yield item

    count = 0
    ends = array("q")
    with atomic_file(path) as file:
        for ids, ends_document in _encode(items(), tokenizer, template):
            count += len(ids)
            file.write(ids.tobytes())
            if ends_document:
                ends.append(count)
        if digest.fingerprint != corpus.fingerprint:
            raise SourceError(f"{corpus.name} changed while it was read", "try again")
        if not count:
            raise TokenizerError(f"the tokenizer has no token for anything in {corpus.name}", "train one on it")
        atomic_write(ends_path, ends.tobytes())


def _encode(
    items: Iterator[Chunk | Conversation], tokenizer: Tokenizer, template: ChatTemplate | None
) -> Iterator[tuple[Ids, bool]]:
    """The ids in pieces, each with whether a document ends there."""
    begin, end = (
        np.array([] if (id := tokenizer.special(role)) is None else [id], tokenizer.dtype) for role in ("begin", "end")
    )
    short: list[str] = []  # documents to be encoded at once
    waiting = 0

    def encode_short() -> Iterator[tuple[Ids, bool]]:
        for ids in tokenizer.encode_batch(short):
            yield from ((begin, False), (ids, False), (end, True))
        short.clear()

    for item in items:
        if isinstance(item, Conversation):
            if template is not None:
                yield np.array(template.encode(item.messages, tokenizer), tokenizer.dtype), True
                continue
            short += (message.text for message in item.messages)
            waiting += sum(len(message.text) for message in item.messages)
        elif item.ends_document:
            short.append(item.text)
            waiting += len(item.text)
        else:
            yield from (*encode_short(), (begin, False))
            for ids in tokenizer.encode_pieces(_rest(item, items)):
                yield ids, False
            yield end, True
        if waiting >= BATCH:
            yield from encode_short()
            waiting = 0
    yield from encode_short()


def _rest(chunk: Chunk, items: Iterable[Chunk | Conversation]) -> Iterator[str]:
    """The pieces of one document, of which the first was taken."""
    yield chunk.text
    for item in items:
        assert isinstance(item, Chunk)
        yield item.text
        if item.ends_document:
            return
