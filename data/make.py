"""Makes a corpus that the project writes itself: `python data/make.py tales --out FOLDER`.

Each is a folder beside this file, whose `make.py` has a function `make`. Two files are written: what is to be trained
on, and a held-out part that shares no document with it.
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
    """How the files of a corpus end, and how many documents each has unless another number is asked for."""

    suffix: str
    documents: int
    held_out: int


CORPORA = {
    "smalltalk": Corpus(".jsonl", 120_000, 2_000),
    "tales": Corpus(".jsonl", 40_000, 1_000),
    "phrases": Corpus(".tsv", 120_000, 2_000),
}


def write(name: str, folder: Path, seed: int, count: int | None = None, held_out: int | None = None) -> None:
    """Writes both files of a corpus, with so many documents each."""
    make = importlib.import_module(f"{name}.make").make
    corpus = CORPORA[name]
    folder.mkdir(parents=True, exist_ok=True)
    for part, size in (("train", count or corpus.documents), ("held-out", held_out or corpus.held_out)):
        started = time.perf_counter()
        text = "".join(make(size, seed, held_out=part == "held-out")).encode()
        path = folder / (part + corpus.suffix)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_bytes(text)
        unfinished.replace(path)
        took = time.perf_counter() - started
        sys.stderr.write(f"{path}: {size:,} documents, {len(text) / 1e6:.1f} MB, {took:.1f} s\n")


def main() -> None:
    """Reads the command line and writes the files."""
    options = argparse.ArgumentParser(description="Makes a corpus that the project writes itself.")
    options.add_argument("name", choices=CORPORA)
    options.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="where both files are written (.)")
    options.add_argument("--seed", type=int, default=1, help="the same seed gives the same bytes (1)")
    options.add_argument("--count", type=int, metavar="N", help="how many documents to train on (the corpus's own)")
    options.add_argument("--held-out", type=int, metavar="N", help="how many others to hold out (the corpus's own)")
    options.add_argument("--suite", action="store_true", help="write the checks of a model of smalltalk instead")
    options.add_argument("--topics", action="store_true", help="list what smalltalk talks about, and write nothing")
    chosen = options.parse_args()
    if chosen.topics:
        sys.stdout.write("\n".join(importlib.import_module("smalltalk.make").topics()) + "\n")
        return
    if chosen.suite:
        importlib.import_module("smalltalk.suite").write(chosen.out, chosen.count or CORPORA["smalltalk"].documents)
        return
    write(chosen.name, chosen.out, chosen.seed, chosen.count, chosen.held_out)


if __name__ == "__main__":
    main()
