"""Measure the speed and memory of turning a text into token ids: `python tests/bench/tokenizing.py`.

    --megabytes N    size of the generated text (default: 300)
    --words N        size of the text for word pieces, which take longer (default: a tenth of --megabytes)

Compare only figures of one run, which share the state of the machine. As a baseline, the `tokenizers` library alone
encodes the same text with the same vocabulary, in batches on all processors, and discards the result.
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
    """Write made-up words with Zipfian frequencies: the nth word is 1/n as frequent as the first."""
    rng = random.Random(1)
    words = ["".join(rng.choices(SYLLABLES, k=rng.choice((1, 1, 2, 2, 3, 4)))) for _ in range(30_000)]
    frequencies = [1 / rank for rank in range(1, len(words) + 1)]
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            sampled = rng.choices(words, frequencies, k=100_000)
            lines = (" ".join(sampled[start : start + 12]).capitalize() for start in range(0, len(sampled), 12))
            file.write((".\n".join(lines) + ".\n").encode())


def measure(name: str, megabytes: float, function: Callable[[], T]) -> tuple[T, float]:
    """Time a function, print the speed, and return the result and the megabytes per second."""
    start, processor_start = time.perf_counter(), time.process_time()
    result = function()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor_start
    rate = megabytes / seconds
    print(f"{name:34} {rate:8.1f} MB/s {seconds:8.1f} s, {processor:.1f} of processors {peak():7,.0f} MB at most")  # noqa: T201
    return result, rate


def peak() -> float:
    """Return the peak memory of this process in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e6 if sys.platform == "darwin" else 1e3)


def encode_with_library(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """Encode with the library alone."""
    for batch in gather(cut_documents(corpus.chunks())):
        tokenizer.inner.encode_batch_fast(batch, add_special_tokens=False)


def measure_kind(folder: Path, kind: str, size: float) -> None:
    """Measure all steps from text to ids: reading, training the vocabulary, encoding."""
    path = folder / f"{kind}.txt"
    write_text(path, size)
    start = time.perf_counter()
    corpus, _ = measure("read, and find its encoding", size, lambda: read_sources([str(path)], cache=folder))
    tokenizer, _ = measure(f"{kind}: vocabulary", size, lambda: train_tokenizer(kind, corpus, 8192))
    _, rate = measure(f"{kind}: ids", size, lambda: encode_corpus(corpus, tokenizer, folder / "ids"))
    print(f"{kind + ': all of it':34} {size / (time.perf_counter() - start):8.1f} MB/s")  # noqa: T201
    if kind == "wordpiece":
        _, alone = measure("wordpiece: the library alone", size, lambda: encode_with_library(corpus, tokenizer))
        print(f"{'wordpiece: share of its speed':34} {rate / alone:8.2f}")  # noqa: T201
    path.unlink()


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--words", type=float, default=None)
    args = parser.parse_args()
    print(f"{os.cpu_count()} processors, {peak():,.0f} MB before anything is read")  # noqa: T201
    with tempfile.TemporaryDirectory(prefix="tinychat-bench-") as folder:
        measure_kind(Path(folder), "char", args.megabytes)
        measure_kind(Path(folder), "wordpiece", args.words or args.megabytes / 10)


if __name__ == "__main__":
    main()
