"""Tokens a second at batch 1, against what others make of the same weights: `python tests/bench/decode_vs_peers.py`.

    --llama2c PATH    a checkout of llama2.c           git clone https://github.com/karpathy/llama2.c
    --llama-cpp PATH  one of llama.cpp, that is built   cmake -B build -DBUILD_SHARED_LIBS=ON && cmake --build build
    --nanogpt PATH    a checkout of nanoGPT            git clone https://github.com/karpathy/nanoGPT
    --shapes S M L    --rounds 5    --threads 1 2    --tokens 200    --json

Each decoder is a process that has read the same random weights in its own format, and makes the same greedy text of the
same prompt. It is measured only if that text is ours, token by token. Then all take turns, `--rounds` times, with each
number of threads; between the runs nothing is at work. Speeds are medians, at the number of threads that is best for
each; ratios are medians of those within a round. What is compared with what reading allows is the bytes of all matrices
that a token needs, but not its keys and values; reading as many bytes again and again is measured in the same rounds.
Nothing is guessed and checked: with such a text, drafting would gain more than it does in use.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers import weights
from peers.weights import SHAPES, Shape

PEERS = Path(__file__).with_name("peers")
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
PAUSE = 0.03
"""seconds between two runs, in which threads of the last one stop to spin"""
LEAST = 0.25
"""seconds that a figure is taken from: a few milliseconds would measure how soon a thread awakes"""
WANTED = {
    ("tinychat f32", "llama2.c f32"): (3, 1.6, 1.3),
    ("tinychat f32", "llama.cpp F32"): (5, 2, 1.4),
    ("tinychat int8", "llama.cpp Q8_0"): (8, 3, 2),
    ("tinychat f32", "transformers f32"): (30, 6, 4),
    ("tinychat torch f32", "transformers f32"): (2, 1, 1),
    ("tinychat f32, GPT-2", "nanoGPT f32, GPT-2"): (60, 25, 10),
    ("tinychat f32", "reading f32"): (None, 0.9, 0.9),
    ("tinychat int8", "reading int8"): (None, 0.5, 0.5),
}
"""How many times as quick as the other we want to be, for the shapes S, M and L."""


@dataclass
class Decoder:
    """A process that decodes, and what was measured of it."""

    name: str
    call: list[str]
    like: str | None
    """whose text it must make; None: that is no text"""
    size: int = 0
    """bytes, where it does nothing but read them"""
    environment: Mapping[str, str] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)
    """tokens a second by the number of threads, a figure for each round"""
    text: list[int] = field(default_factory=list)
    differs: str = ""
    """how its text is another one"""

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | dict(self.environment)
        )

    def run(self, process: subprocess.Popen[str], threads: int, tokens: int) -> float:
        """Tokens a second of one run; takes up its text."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{threads}\n")
        process.stdin.flush()
        line = process.stdout.readline().split()
        if not line:
            raise SystemExit(f"{self.name} ended with {process.wait()}: {' '.join(self.call)}")
        self.text = [int(id) for id in line[1:]]
        return tokens / float(line[0])

    def measure(self, process: subprocess.Popen[str], threads: int, tokens: int) -> float:
        """Tokens a second of as many runs as it takes; a short first one does not count."""
        rates = [self.run(process, threads, tokens)]
        if tokens / rates[0] < LEAST:
            rates = []
            while sum(tokens / rate for rate in rates) < LEAST:
                rates.append(self.run(process, threads, tokens))
        return statistics.harmonic_mean(rates)

    @property
    def best(self) -> int:
        """The number of threads with which it is quickest."""
        return max(self.rates, key=lambda threads: statistics.median(self.rates[threads]))

    @property
    def rate(self) -> float:
        return statistics.median(self.rates[self.best])


def build(source: str, target: Path, *flags: str) -> str:
    """Compiles the program that lets a peer in C decode."""
    command = ["cc", "-march=native", "-w", str(PEERS / source), "-o", str(target), *flags]
    subprocess.run(command, check=True)
    return str(target)


def prepare(given: argparse.Namespace, shape: Shape, folder: Path) -> list[Decoder]:
    """Writes the weights of a shape in each format, and gives those that decode them."""
    asked = [str(given.tokens), *map(str, PROMPT)]
    in_python = [sys.executable, str(PEERS / "in_python.py")]
    llama, gpt2 = (weights.make_model(shape, form, folder / form) for form in ("llama", "gpt2"))
    size, reading = weights.read_a_token(llama), build("reading.c", folder / "reading", "-O3", "-fopenmp")
    decoders = [
        Decoder("tinychat f32", [*in_python, "tinychat-f32", str(llama.folder), *asked], "tinychat f32"),
        Decoder("reading f32", [reading, str(4 * size), *asked], None, 4 * size),
        Decoder("tinychat int8", [*in_python, "tinychat-int8", str(llama.folder), *asked], "tinychat f32"),
        Decoder("reading int8", [reading, str(size), *asked], None, size),
    ]
    if given.llama2c:
        program = build("llama2_c.c", folder / "llama2_c", "-Ofast", "-fopenmp", f"-I{given.llama2c}", "-lm")
        weights.export_llama2_c(llama, folder / "model.bin")
        decoders.append(Decoder("llama2.c f32", [program, str(folder / "model.bin"), *asked], "tinychat f32"))
    if given.llama_cpp:
        built = given.llama_cpp / "build" / "bin"
        include = [f"-I{given.llama_cpp / part}" for part in ("include", "ggml/include")]
        if "llama_get_memory" not in (given.llama_cpp / "include" / "llama.h").read_text():
            include.append("-DBEFORE_MEMORY")
        library = [f"-L{built}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{built}"]
        program = build("llama_cpp.c", folder / "llama_cpp", "-O2", *include, *library)
        for kind in ("F32", "Q8_0"):
            path = folder / f"{kind}.gguf"
            weights.export_gguf(llama, path, given.llama_cpp / "gguf-py", quantized=kind == "Q8_0")
            decoders.append(Decoder(f"llama.cpp {kind}", [program, str(path), *asked], "tinychat f32"))
    if importlib.util.find_spec("transformers"):
        weights.export_transformers(llama, folder / "transformers")
        call = [*in_python, "transformers", str(folder / "transformers"), *asked]
        decoders.append(Decoder("transformers f32", call, "tinychat f32"))
        call = [*in_python, "tinychat-torch", str(llama.folder), *asked]
        decoders.append(Decoder("tinychat torch f32", call, "tinychat f32"))
    if given.nanogpt:
        weights.export_transformers(gpt2, folder / "nanogpt")
        ours, theirs = "tinychat f32, GPT-2", "nanoGPT f32, GPT-2"
        decoders.append(Decoder(ours, [*in_python, "tinychat-f32", str(gpt2.folder), *asked], ours))
        call = [*in_python, "nanogpt", str(folder / "nanogpt"), *asked]
        decoders.append(Decoder(theirs, call, ours, environment={"PYTHONPATH": str(given.nanogpt)}))
    return decoders


@contextlib.contextmanager
def started(decoders: list[Decoder]) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of the decoders, which end with the block."""
    processes = [decoder.start() for decoder in decoders]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(decoders: list[Decoder], threads: list[int], tokens: int, rounds: int) -> None:
    """Compares the texts, and then the speeds of those whose texts are ours."""
    with started(decoders) as processes:
        both = list(zip(decoders, processes, strict=True))
        for decoder, process in both:
            for count in threads:  # the first one with each number loads what it needs
                decoder.run(process, count, tokens)
                compare(decoder, decoders)
                if decoder.differs:
                    break
        for _ in range(rounds):
            for decoder, process in both:
                if not decoder.differs:
                    for count in threads:
                        time.sleep(PAUSE)
                        decoder.rates.setdefault(count, []).append(decoder.measure(process, count, tokens))
                        compare(decoder, decoders)


def compare(decoder: Decoder, decoders: list[Decoder]) -> None:
    """Notes the first place at which a text is not ours."""
    ours = next((other.text for other in decoders if other.name == decoder.like), [])
    if decoder.text != ours:
        both = zip(decoder.text, ours, strict=False)
        place = next((i for i, (theirs, mine) in enumerate(both) if theirs != mine), min(len(decoder.text), len(ours)))
        decoder.differs = f"not that of {decoder.like} from token {place + 1}"


def ratios(decoders: list[Decoder], shape: Shape) -> list[dict[str, Any]]:
    """Our speed against each peer's, and the fraction of reading: medians of those within a round, and what we want."""
    found = {decoder.name: decoder for decoder in decoders}
    rows = []
    for (ours, theirs), wanted in WANTED.items():
        if ours in found and theirs in found and found[ours].rates and found[theirs].rates:
            pairs = [found[name].rates[found[name].best] for name in (ours, theirs)]
            ratio = statistics.median(mine / other for mine, other in zip(*pairs, strict=True))
            rows.append(
                {"ours": ours, "theirs": theirs, "ratio": ratio, "wanted": wanted[list(SHAPES).index(shape.name)]}
            )
    return rows


def show(shape: Shape, decoders: list[Decoder], rows: list[dict[str, Any]], threads: list[int]) -> None:
    """The tables of a shape."""
    print(f"\n{shape}")  # noqa: T201
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    print(f"{'tokens a second':20}" + "".join(f"{head:>12}" for head in heads) + "   greedy text")  # noqa: T201
    for decoder in decoders:
        rates = [
            f"{statistics.median(decoder.rates[count]):12,.0f}" if decoder.rates else f"{'–':>12}" for count in threads
        ]
        same = f"{len(decoder.text)} tokens, that of {decoder.like}"
        text = decoder.differs or ("" if decoder.like in (None, decoder.name) else same)
        if decoder.size and decoder.rates:
            text = f"{decoder.rate * decoder.size / 1e9:,.0f} GB/s"
        print(f"{decoder.name:20}{''.join(rates)}   {text}".rstrip())  # noqa: T201
    for row in rows:
        wanted = "" if row["wanted"] is None else f"   wanted: {row['wanted']:g}"
        pair = f"{row['ours']} / {row['theirs']}"
        print(f"{pair:42} {row['ratio']:8.2f}{wanted}")  # noqa: T201


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for peer in ("--llama2c", "--llama-cpp", "--nanogpt"):
        parser.add_argument(peer, type=lambda path: Path(path).resolve())
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name in ("llama2c", "llama_cpp", "nanogpt"):
        if getattr(given, name) is None:
            print(f"--{name.replace('_', '-')} is not given: left out (see --help)", file=sys.stderr)  # noqa: T201
    results = []
    for shape in (SHAPES[name] for name in given.shapes):
        with tempfile.TemporaryDirectory(prefix="tinychat-peers-") as folder:
            decoders = prepare(given, shape, Path(folder))
            measure(decoders, given.threads, given.tokens, given.rounds)
        rows = ratios(decoders, shape)
        facts = {one.name: {"rates": one.rates, "differs": one.differs} for one in decoders}
        results.append({"shape": shape.name, "decoders": facts, "ratios": rows})
        if not given.json:
            show(shape, decoders, rows, given.threads)
    if given.json:
        print(json.dumps(results))  # noqa: T201


if __name__ == "__main__":
    main()
