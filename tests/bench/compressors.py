"""Compare models with general compressors: `python tests/bench/compressors.py TEXT… --minutes 1 5 15`.

The measure is what the last tenth of a text costs after the rest has been read, in bits per character. For tinychat it
is the loss that `tinychat eval` gives after `tinychat train TEXT --minutes N`, in an empty home. For a compressor it is
the size of the whole text less that of a file in which a single repeated byte takes the place of the last tenth: both
files are as long, since table sizes follow the size of a file. Compressors that are not installed are left out: zpaq
(`zpaq -m5`) and 7-Zip (`7z`, PPMd variant H, the best order of `ORDERS`).

TEXT is a path, or the name of a known data set.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tinychat.corpus.encoding import read_text
from tinychat.corpus.registry import KNOWN, fetch, find_dataset, find_file
from tinychat.corpus.types import Notes
from tinychat.store import paths

TRAINING_FRACTION = 0.9
FILLER = b"\n"
ORDERS = (4, 5, 6, 8, 12)
"""Orders of PPMd that are tried: the best one counts."""
PPMD_MEMORY = "1g"


def zpaq_size(file: Path) -> int:
    """Return the number of bytes that `zpaq -m5` makes of a file."""
    archive = file.with_suffix(".zpaq")
    archive.unlink(missing_ok=True)
    run(["zpaq", "add", str(archive), str(file), "-m5"])
    return archive.stat().st_size


def ppmd_size(file: Path, order: int) -> int:
    """Return the number of bytes that 7-Zip's PPMd makes of a file."""
    archive = file.with_suffix(".7z")
    archive.unlink(missing_ok=True)
    run(["7z", "a", f"-m0=PPMd:mem={PPMD_MEMORY}:o={order}", str(archive), str(file)])
    return archive.stat().st_size


def run(call: list[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its standard output."""
    done = subprocess.run(call, check=True, text=True, capture_output=True, env=environment)
    return done.stdout


def last_tenth_bits(text: str, size: Callable[[Path], int], folder: Path) -> float:
    """Return the bits per character that a compressor needs for the last tenth of a text."""
    end = int(len(text) * TRAINING_FRACTION)
    first, last = text[:end].encode(), text[end:].encode()
    sizes = []
    for content in (first + last, first + FILLER * len(last)):
        file = folder / "text"
        file.write_bytes(content)
        sizes.append(size(file))
    return 8 * (sizes[0] - sizes[1]) / (len(text) - end)


def compress(text: str) -> dict[str, float]:
    """Return the bits per character that each installed compressor needs."""
    bits: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if shutil.which("zpaq"):
            bits["zpaq -m5"] = last_tenth_bits(text, zpaq_size, folder)
        if shutil.which("7z"):
            tried = {order: last_tenth_bits(text, lambda file, o=order: ppmd_size(file, o), folder) for order in ORDERS}
            best = min(tried, key=tried.__getitem__)
            bits[f"PPMd, order {best}"] = tried[best]
    return bits


def train(source: str, minutes: float, mirror: Path | None, flags: list[str]) -> float:
    """Train tinychat on a source, and return the bits per character of its last tenth."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"TINYCHAT_HOME": home} | ({"TINYCHAT_MIRROR": str(mirror)} if mirror else {})
        tinychat = [sys.executable, "-m", "tinychat"]
        call = ["train", source, "--name", "ours", "--minutes", f"{minutes:g}", "--tokenizer", "char", *flags]
        run([*tinychat, *call, "--json"], environment)
        values = json.loads(run([*tinychat, "eval", "ours", source, "--json"], environment))
    return float(values["bits_per_character"])


def find_text(source: str) -> Path:
    """Return the file of a source, which may be that of a known data set."""
    if source not in KNOWN or Path(source).exists():
        return Path(source)
    folder = fetch(source, cache=paths.datasets_folder(), mirror=paths.mirror())
    file = find_file(folder, next(file for file in find_dataset(source).files if file.is_read))
    assert file is not None
    return file


def main() -> None:
    """Parse the command line, run the benchmark and print a table for each text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--minutes", type=float, nargs="*", default=[1, 5, 15])
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="of `tinychat train`, at the end")
    options = parser.parse_args()
    for source in options.texts:
        text = "".join(read_text(find_text(source), "utf-8", Notes()))
        rows = compress(text)
        show(f"{source}: {len(text):,} characters, {len(set(text)):,} different", {})
        show("", rows)
        reference = rows.get("zpaq -m5")
        for minutes in options.minutes:
            bits = train(source, minutes, paths.mirror(), options.flags)
            show("", {f"tinychat, {minutes:g} min": bits}, reference)


def show(title: str, bits: Mapping[str, float], reference: float | None = None) -> None:
    """Print a title and rows: bits and nats per character, and the ratio to a reference."""
    if title:
        print(f"\n{title}", flush=True)  # noqa: T201
    for name, value in bits.items():
        ratio = f"   {value / reference:.3f} of zpaq" if reference else ""
        print(f"{name:20} {value:.4f} bits   {value * math.log(2):.4f} nats{ratio}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
