"""Megabytes a second from a text to token ids, and the memory it takes: `python tests/bench/tokenizing.py`.

    --megabytes N    of text, which is made up here; 300 by default
    --words WORDS    megabytes for word pieces, which take longer; a tenth of the text by default

Figures of one run are of the same machine in the same state: compare those. The bare library encodes the same text with
the same vocabulary, in batches on all processors, and keeps nothing.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tinychat.corpus.corpus import Corpus
from tinychat.corpus.sources import read_sources
from tinychat.tokenizer.token_cache import encode_corpus
from tinychat.tokenizer.tokenizer import Tokenizer, gather
from tinychat.tokenizer.training import cut_documents, train_tokenizer

T = TypeVar("T")

SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]


def write_text(path: Path, megabytes: float) -> None:
    """Made-up words, as frequent as words are: the nth comes 1/n as often as the first (Zipf)."""
    draw = random.Random(1)
    words = ["".join(draw.choices(SYLLABLES, k=draw.choice((1, 1, 2, 2, 3, 4)))) for _ in range(30_000)]
    odds = [1 / place for place in range(1, len(words) + 1)]
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            drawn = draw.choices(words, odds, k=100_000)
            lines = (" ".join(drawn[start : start + 12]).capitalize() for start in range(0, len(drawn), 12))
            file.write((".\n".join(lines) + ".\n").encode())


def measure(name: str, megabytes: float, do: Callable[[], T]) -> tuple[T, float]:
    """What it gave, and its megabytes a second, which are printed."""
    began, used = time.perf_counter(), time.process_time()
    result = do()
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    rate = megabytes / seconds
    print(f"{name:34} {rate:8.1f} MB/s {seconds:8.1f} s, {processor:.1f} of processors {peak():7,.0f} MB at most")  # noqa: T201
    return result, rate


def peak() -> float:
    """The most memory that this process has had, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e6 if sys.platform == "darwin" else 1e3)


def bare(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """The library alone."""
    for batch in gather(cut_documents(corpus.chunks())):
        tokenizer.inner.encode_batch_fast(batch, add_special_tokens=False)


def measure_kind(folder: Path, kind: str, size: float) -> None:
    """All that training needs of a text of so many megabytes: reading, the vocabulary, encoding."""
    path = folder / f"{kind}.txt"
    write_text(path, size)
    began = time.perf_counter()
    corpus, _ = measure("read, and find its encoding", size, lambda: read_sources([str(path)], cache=folder))
    tokenizer, _ = measure(f"{kind}: vocabulary", size, lambda: train_tokenizer(kind, corpus, 8192))
    _, rate = measure(f"{kind}: ids", size, lambda: encode_corpus(corpus, tokenizer, folder / "ids"))
    print(f"{kind + ': all of it':34} {size / (time.perf_counter() - began):8.1f} MB/s")  # noqa: T201
    if kind == "wordpiece":
        _, alone = measure("wordpiece: the library alone", size, lambda: bare(corpus, tokenizer))
        print(f"{'wordpiece: share of its speed':34} {rate / alone:8.2f}")  # noqa: T201
    path.unlink()


def main() -> None:
    """Makes up a text, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--words", type=float, default=None)
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, {peak():,.0f} MB before anything is read")  # noqa: T201
    with tempfile.TemporaryDirectory(prefix="tinychat-bench-") as folder:
        measure_kind(Path(folder), "char", given.megabytes)
        measure_kind(Path(folder), "wordpiece", given.words or given.megabytes / 10)


if __name__ == "__main__":
    main()
