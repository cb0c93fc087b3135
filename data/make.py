"""Generate one of the project's own corpora: `python data/make.py tales --out FOLDER`.

Each corpus is a folder beside this file whose `make.py` defines a function `make`. Two files are written: the training
split, and a held-out split that shares no document with it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Corpus(NamedTuple):
    """Module that makes a corpus, file suffix, and default numbers of documents."""

    module: str
    suffix: str
    documents: int
    held_out: int


CORPORA = {
    "smalltalk": Corpus("smalltalk.make", ".jsonl", 120_000, 2_000),
    "tales": Corpus("tales.make", ".jsonl", 60_000, 1_000),
    "fables": Corpus("fables.make", ".txt", 150, 30),
    "phrases": Corpus("phrases.make", ".tsv", 600_000, 2_000),
    "phrases-es-en": Corpus("phrases.back", ".tsv", 600_000, 2_000),
}


def write(name: str, folder: Path, seed: int, count: int | None = None, held_out: int | None = None) -> None:
    """Write both splits of a corpus.

    Args:
        name: a key of `CORPORA`.
        folder: output folder, created if necessary.
        seed: random seed.
        count: number of training documents; None for the corpus's default.
        held_out: number of held-out documents; None for the corpus's default.
    """
    corpus = CORPORA[name]
    make = importlib.import_module(corpus.module).make
    folder.mkdir(parents=True, exist_ok=True)
    for part, asked, usual in (("train", count, corpus.documents), ("held-out", held_out, corpus.held_out)):
        started = time.perf_counter()
        size = usual if asked is None else asked
        text = "".join(make(size, seed, held_out=part == "held-out")).encode()
        path = folder / (part + corpus.suffix)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_bytes(text)
        unfinished.replace(path)
        seconds = time.perf_counter() - started
        sys.stderr.write(f"{path}: {size:,} documents, {len(text) / 1e6:.1f} MB, {seconds:.1f} s\n")


def main() -> None:
    """Parse the command line and write the files."""
    parser = argparse.ArgumentParser(description="Generate one of the project's own corpora.")
    parser.add_argument("name", choices=CORPORA)
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="output folder (default: the current one)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="random seed; the same seed gives the same bytes (default: 1)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="number of training documents (default: per corpus)")
    parser.add_argument("--held-out", type=int, metavar="N", help="number of held-out documents (default: per corpus)")
    parser.add_argument("--suite", action="store_true", help="write the evaluation suite of smalltalk instead")
    parser.add_argument("--topics", action="store_true", help="list the topics of smalltalk and write nothing")
    args = parser.parse_args()
    if (args.suite or args.topics) and args.name != "smalltalk":
        parser.error("--suite and --topics are of smalltalk alone")
    if args.topics:
        sys.stdout.write("\n".join(importlib.import_module("smalltalk.make").topics()) + "\n")
        return
    if args.suite:
        importlib.import_module("smalltalk.suite").write(args.out, args.count or CORPORA["smalltalk"].documents)
        return
    write(args.name, args.out, args.seed, args.count, args.held_out)


if __name__ == "__main__":
    main()
