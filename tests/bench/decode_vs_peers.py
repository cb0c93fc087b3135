"""Compare decoding speed with other programs on the same weights: `python tests/bench/decode_vs_peers.py`.

    --llama2c PATH    checkout of llama2.c           git clone https://github.com/karpathy/llama2.c
    --llama-cpp PATH  checkout of llama.cpp, built   cmake -B build -DBUILD_SHARED_LIBS=ON && cmake --build build
    --nanogpt PATH    checkout of nanoGPT            git clone https://github.com/karpathy/nanoGPT
    --shapes S M L    --rounds 5    --threads 1 2    --tokens 200    --json

Each decoder is a process that loads the same random weights in its own format and generates greedily from the same
prompt. It is measured only if its tokens equal ours. The decoders then alternate for `--rounds` rounds with each number
of threads; nothing else runs between the measurements. Speeds are medians at the best number of threads of each
decoder; ratios are medians over rounds. The limit set by memory reads counts the bytes of all matrices that a token
needs, without keys and values; reading as many bytes repeatedly is measured in the same rounds. Speculative decoding is
off: drafts would gain more on such a text than in real use.
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

from tinychat.train.sizes import NGRAM_VOCABULARY

PEERS = Path(__file__).with_name("peers")
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
PAUSE = 0.03
"""seconds between two runs, in which the threads of the last one stop spinning"""
MIN_SECONDS = 0.25
"""minimum seconds per measurement; a few milliseconds would measure thread wake-up"""
TARGETS = {
    ("tinychat f32", "llama2.c f32"): (3, 1.6, 1.3),
    ("tinychat f32", "llama.cpp F32"): (5, 2, 1.4),
    ("tinychat int8", "llama.cpp Q8_0"): (8, 3, 2),
    ("tinychat f32", "transformers f32"): (30, 6, 4),
    ("tinychat torch f32", "transformers f32"): (2, 1, 1),
    ("tinychat f32, GPT-2", "nanoGPT f32, GPT-2"): (60, 25, 10),
    ("tinychat f32", "reading f32"): (None, 0.9, 0.9),
    ("tinychat int8", "reading int8"): (None, 0.5, 0.5),
    ("tinychat f32, counts", "tinychat f32"): (None, None, None),
    ("tinychat int8, counts", "tinychat int8"): (None, None, None),
}
"""target speed ratios for the shapes S, M and L"""


@dataclass
class Decoder:
    """A decoding process and its measurements."""

    name: str
    call: list[str]
    reference: str | None
    """name of the decoder whose tokens it must reproduce; None if it generates no text"""
    size: int = 0
    """bytes read per token, for decoders that only read"""
    environment: Mapping[str, str] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)
    """tokens per second by number of threads, one value per round"""
    text: list[int] = field(default_factory=list)
    difference: str = ""
    """where its tokens differ; empty if they do not"""

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | dict(self.environment)
        )

    def run(self, process: subprocess.Popen[str], threads: int, tokens: int) -> float:
        """Run once, store the generated tokens, and return tokens per second."""
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
        """Return the mean rate of as many runs as the minimum time requires; a short first run does not count."""
        rates = [self.run(process, threads, tokens)]
        if tokens / rates[0] < MIN_SECONDS:
            rates = []
            while sum(tokens / rate for rate in rates) < MIN_SECONDS:
                rates.append(self.run(process, threads, tokens))
        return statistics.harmonic_mean(rates)

    @property
    def best_threads(self) -> int:
        """Number of threads at which this decoder is fastest."""
        return max(self.rates, key=lambda threads: statistics.median(self.rates[threads]))

    @property
    def rate(self) -> float:
        return statistics.median(self.rates[self.best_threads])


def build(source: str, target: Path, *flags: str) -> str:
    """Compile the program that drives a peer written in C, and return its path."""
    command = ["cc", "-march=native", "-w", str(PEERS / source), "-o", str(target), *flags]
    subprocess.run(command, check=True)
    return str(target)


def prepare(args: argparse.Namespace, shape: Shape, folder: Path) -> list[Decoder]:
    """Write the weights of a shape in each format, and return the decoders for them."""
    arguments = [str(args.tokens), *map(str, PROMPT)]
    in_python = [sys.executable, str(PEERS / "in_python.py")]
    llama, gpt2 = (weights.make_model(shape, form, folder / form) for form in ("llama", "gpt2"))
    size, reading = weights.count_weights_read(llama), build("reading.c", folder / "reading", "-O3", "-fopenmp")
    decoders = [
        Decoder("tinychat f32", [*in_python, "tinychat-f32", str(llama.folder), *arguments], "tinychat f32"),
        Decoder("reading f32", [reading, str(4 * size), *arguments], None, 4 * size),
        Decoder("tinychat int8", [*in_python, "tinychat-int8", str(llama.folder), *arguments], "tinychat f32"),
        Decoder("reading int8", [reading, str(size), *arguments], None, size),
    ]
    if shape.vocab_size <= NGRAM_VOCABULARY:  # as tinychat trains texts in characters by default: no peer reads them
        counted = weights.make_model(shape, "counted", folder / "counted")
        for kind in ("f32", "int8"):
            call, name = [*in_python, f"tinychat-{kind}", str(counted.folder), *arguments], f"tinychat {kind}, counts"
            decoders.append(Decoder(name, call, name))
    if args.llama2c:
        program = build("llama2_c.c", folder / "llama2_c", "-Ofast", "-fopenmp", f"-I{args.llama2c}", "-lm")
        weights.export_llama2_c(llama, folder / "model.bin")
        decoders.append(Decoder("llama2.c f32", [program, str(folder / "model.bin"), *arguments], "tinychat f32"))
    if args.llama_cpp:
        built = args.llama_cpp / "build" / "bin"
        include = [f"-I{args.llama_cpp / part}" for part in ("include", "ggml/include")]
        if "llama_get_memory" not in (args.llama_cpp / "include" / "llama.h").read_text():
            include.append("-DBEFORE_MEMORY")
        library = [f"-L{built}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{built}"]
        program = build("llama_cpp.c", folder / "llama_cpp", "-O2", *include, *library)
        for kind in ("F32", "Q8_0"):
            path = folder / f"{kind}.gguf"
            weights.export_gguf(llama, path, args.llama_cpp / "gguf-py", quantized=kind == "Q8_0")
            decoders.append(Decoder(f"llama.cpp {kind}", [program, str(path), *arguments], "tinychat f32"))
    if importlib.util.find_spec("transformers"):
        weights.export_transformers(llama, folder / "transformers")
        call = [*in_python, "transformers", str(folder / "transformers"), *arguments]
        decoders.append(Decoder("transformers f32", call, "tinychat f32"))
        call = [*in_python, "tinychat-torch", str(llama.folder), *arguments]
        decoders.append(Decoder("tinychat torch f32", call, "tinychat f32"))
    if args.nanogpt:
        weights.export_transformers(gpt2, folder / "nanogpt")
        ours, theirs = "tinychat f32, GPT-2", "nanoGPT f32, GPT-2"
        decoders.append(Decoder(ours, [*in_python, "tinychat-f32", str(gpt2.folder), *arguments], ours))
        call = [*in_python, "nanogpt", str(folder / "nanogpt"), *arguments]
        decoders.append(Decoder(theirs, call, ours, environment={"PYTHONPATH": str(args.nanogpt)}))
    return decoders


@contextlib.contextmanager
def started(decoders: list[Decoder]) -> Iterator[list[subprocess.Popen[str]]]:
    """Run the decoders' processes for the duration of the block."""
    processes = [decoder.start() for decoder in decoders]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(decoders: list[Decoder], threads: list[int], tokens: int, rounds: int) -> None:
    """Compare the tokens, then measure the decoders whose tokens match."""
    with started(decoders) as processes:
        both = list(zip(decoders, processes, strict=True))
        for decoder, process in both:
            for count in threads:  # warm-up for each number of threads
                decoder.run(process, count, tokens)
                compare(decoder, decoders)
                if decoder.difference:
                    break
        for _ in range(rounds):
            for decoder, process in both:
                if not decoder.difference:
                    for count in threads:
                        time.sleep(PAUSE)
                        decoder.rates.setdefault(count, []).append(decoder.measure(process, count, tokens))
                        compare(decoder, decoders)


def compare(decoder: Decoder, decoders: list[Decoder]) -> None:
    """Store the first position at which a decoder's tokens differ."""
    ours = next((other.text for other in decoders if other.name == decoder.reference), [])
    if decoder.text != ours:
        both = zip(decoder.text, ours, strict=False)
        position = next(
            (i for i, (theirs, mine) in enumerate(both) if theirs != mine), min(len(decoder.text), len(ours))
        )
        decoder.difference = f"not that of {decoder.reference} from token {position + 1}"


def ratios(decoders: list[Decoder], shape: Shape) -> list[dict[str, Any]]:
    """Return our speed relative to each peer and to memory reads, with the targets; each is a median over rounds."""
    by_name = {decoder.name: decoder for decoder in decoders}
    rows = []
    for (ours, theirs), target in TARGETS.items():
        if ours in by_name and theirs in by_name and by_name[ours].rates and by_name[theirs].rates:
            pairs = [by_name[name].rates[by_name[name].best_threads] for name in (ours, theirs)]
            ratio = statistics.median(mine / other for mine, other in zip(*pairs, strict=True))
            rows.append(
                {"ours": ours, "theirs": theirs, "ratio": ratio, "wanted": target[list(SHAPES).index(shape.name)]}
            )
    return rows


def show(shape: Shape, decoders: list[Decoder], rows: list[dict[str, Any]], threads: list[int]) -> None:
    """Print the tables of a shape."""
    print(f"\n{shape}")  # noqa: T201
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    print(f"{'tokens a second':20}" + "".join(f"{head:>12}" for head in heads) + "   greedy text")  # noqa: T201
    for decoder in decoders:
        rates = [
            f"{statistics.median(decoder.rates[count]):12,.0f}" if decoder.rates else f"{'–':>12}" for count in threads
        ]
        same = f"{len(decoder.text)} tokens, that of {decoder.reference}"
        text = decoder.difference or ("" if decoder.reference in (None, decoder.name) else same)
        if decoder.size and decoder.rates:
            text = f"{decoder.rate * decoder.size / 1e9:,.0f} GB/s"
        print(f"{decoder.name:20}{''.join(rates)}   {text}".rstrip())  # noqa: T201
    for row in rows:
        target = "" if row["wanted"] is None else f"   wanted: {row['wanted']:g}"
        pair = f"{row['ours']} / {row['theirs']}"
        print(f"{pair:42} {row['ratio']:8.2f}{target}")  # noqa: T201


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for peer in ("--llama2c", "--llama-cpp", "--nanogpt"):
        parser.add_argument(peer, type=lambda path: Path(path).resolve())
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in ("llama2c", "llama_cpp", "nanogpt"):
        if getattr(args, name) is None:
            print(f"--{name.replace('_', '-')} is not given: skipped (see --help)", file=sys.stderr)  # noqa: T201
    results = []
    for shape in (SHAPES[name] for name in args.shapes):
        with tempfile.TemporaryDirectory(prefix="tinychat-peers-") as folder:
            decoders = prepare(args, shape, Path(folder))
            measure(decoders, args.threads, args.tokens, args.rounds)
        rows = ratios(decoders, shape)
        facts = {one.name: {"rates": one.rates, "differs": one.difference} for one in decoders}
        results.append({"shape": shape.name, "decoders": facts, "ratios": rows})
        if not args.json:
            show(shape, decoders, rows, args.threads)
    if args.json:
        print(json.dumps(results))  # noqa: T201


if __name__ == "__main__":
    main()
