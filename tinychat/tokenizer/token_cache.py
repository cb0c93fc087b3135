"""Encode a corpus once for each tokenizer, and keep its token ids in a memory-mapped file."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tinychat.atomic import atomic_file, atomic_write
from tinychat.corpus.corpus import Corpus
from tinychat.corpus.types import Chunk, Conversation
from tinychat.errors import TokenizerError
from tinychat.tokenizer.chat_template import ConversationTemplate
from tinychat.tokenizer.tokenizer import Tokenizer

FORMAT = 2
"""Version of the files' content, part of their names: files of another version are never read."""

BATCH = 1 << 20
"""Characters of short documents that are encoded at once."""

Ids = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class IdFile:
    """The ids of a corpus: its documents in a row, each between the begin and end tokens that the tokenizer has."""

    path: Path
    ids: Ids
    """[N], of all documents: a memory map, read-only."""
    ends: npt.NDArray[np.int64]
    """[D], the position in the ids where each document ends: a memory map, read-only."""


def encode_corpus(
    corpus: Corpus, tokenizer: Tokenizer, cache: Path, *, template: ConversationTemplate | None = None
) -> IdFile:
    """Encode a corpus, or open its ids in the `cache` folder if the same tokenizer has encoded the same content before.

    Without a template of conversations, each message is a document.

    Raises:
        SourceError: If the corpus cannot be read; SourceChangedError if it changed since it was created.
        TokenizerError: If the tokenizer has no token for anything in the corpus, or lacks one of the template.
    """
    key = (FORMAT, corpus.fingerprint, tokenizer.fingerprint, template and template.to_dict())
    path = cache / (hashlib.sha256(json.dumps(key).encode()).hexdigest()[:40] + ".ids")
    ends = path.with_suffix(".ends")
    if not path.is_file() or not ends.is_file():
        _write(path, ends, corpus, tokenizer, template)
    return IdFile(path, np.memmap(path, tokenizer.dtype, "r"), np.memmap(ends, np.int64, "r"))


def join(parts: Sequence[Ids]) -> Ids:
    """Concatenate ids in memory; a single part is returned as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _write(
    path: Path, ends_path: Path, corpus: Corpus, tokenizer: Tokenizer, template: ConversationTemplate | None
) -> None:
    count, ends = 0, array("q")
    with atomic_file(path) as file:
        for ids, ends_document in _encode(corpus.checked_items(), tokenizer, template):
            count += len(ids)
            file.write(ids.tobytes())
            if ends_document:
                ends.append(count)
        if not count:
            raise TokenizerError(f"the tokenizer has no token for anything in {corpus.name}", "train one on it")
        atomic_write(ends_path, ends.tobytes())


def _encode(
    items: Iterator[Chunk | Conversation], tokenizer: Tokenizer, template: ConversationTemplate | None
) -> Iterator[tuple[Ids, bool]]:
    """Yield the ids in pieces, each with whether a document ends there."""
    begin, end = (np.array(tokenizer.special_ids(role), tokenizer.dtype) for role in ("begin", "end"))
    short: list[str] = []  # documents to encode at once
    waiting = 0

    def encode_short() -> Iterator[tuple[Ids, bool]]:
        for ids in tokenizer.encode_batch(short):
            yield from ((begin, False), (ids, False), (end, True))
        short.clear()

    for item in items:
        if isinstance(item, Conversation) and template is not None:
            yield np.array(template.encode(item.messages, tokenizer), tokenizer.dtype), True
        elif isinstance(item, Chunk) and not item.ends_document:
            yield from (*encode_short(), (begin, False))
            for ids in tokenizer.encode_pieces(_first_document(chain([item], items))):
                yield ids, False
            yield end, True
        else:
            texts = [item.text] if isinstance(item, Chunk) else [message.text for message in item.messages]
            short += texts
            waiting += sum(map(len, texts))
            if waiting >= BATCH:
                yield from encode_short()
                waiting = 0
    yield from encode_short()


def _first_document(items: Iterable[Chunk | Conversation]) -> Iterator[str]:
    for item in items:
        assert isinstance(item, Chunk)
        yield item.text
        if item.ends_document:
            return
