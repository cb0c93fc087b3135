"""Odd and mutated texts, tables and folders of them: each is read and scored, or refused in a line."""

import gzip
import json
import os
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

from harness import ODD, Case, main, mutate_bytes, mutate_json

from models import originals

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1", "utf-7", "cp037")
NAMES = ("a.txt", "a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a.txt.gz", "a.zip", "a.md", "a", "a.bz2", "a.xz")
TEXT = "hello there, how are you? fine, thanks! ünï “quoted” 你好 \u202eabc\u2066 \x1b[31m\x9b0m\x00 end\n" * 5


def content(random: random.Random, name: str) -> bytes:
    """Return what a file of a name might hold."""
    rows = [{"text": TEXT[:40], "label": 1}, {"text": "b", "label": 2}] * 3
    if ".csv" in name or ".tsv" in name:
        mark = "\t" if "tsv" in name else ","
        data = "\n".join(
            [f"text{mark}label", *(f'"{row["text"].strip()}"{mark}{row["label"]}' for row in rows)]
        ).encode()
    elif ".json" in name:
        lines = [json.dumps(row).encode() for row in rows]
        lines[random.randrange(len(lines))] = mutate_json(random, rows[0])
        data = b"\n".join(lines) if name.endswith("l") else b"[" + b",".join(lines) + b"]"
    else:
        text = TEXT + random.choice(("", random.choice(ODD), "x" * 100_000, "\n" * 10_000, '"' * 1000))
        data = text.encode(random.choice(ENCODINGS), "ignore")
    if random.random() < 0.5:
        data = mutate_bytes(random, data)
    return gzip.compress(data) if name.endswith(".gz") else data


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield the scoring of one file or folder."""
    name = random.choice(NAMES)
    texts = folder / "texts"
    texts.mkdir()
    path = texts / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner.txt", content(random, "inner.txt"))
        path.write_bytes(mutate_bytes(random, path.read_bytes()))
    else:
        path.write_bytes(content(random, name))
    source = path
    if random.random() < 0.3:
        source = texts
        (texts / "other.txt").write_text(TEXT, encoding="utf-8")
        special = texts / random.choice(("pipe.txt", "loop.txt", "kernel.txt"))
        if special.stem == "pipe":
            os.mkfifo(special)
        else:
            special.symlink_to({"loop": special.name, "kernel": "/proc/kmsg"}[special.stem])
    if random.random() < 0.02:
        source = Path(random.choice(("/dev/null", "/proc/self/mem", "/nowhere", "\x1b[31m.txt")))
    options = random.choice(([], [], [], ["--field", "text"], ["--column", "text"], ["--column", "9" * 20]))
    split = random.choice(("all", "val", "train"))
    yield Case(name, ["eval", str(originals()[0]), str(source), "--split", split, *options], folder)


if __name__ == "__main__":
    main(cases)
