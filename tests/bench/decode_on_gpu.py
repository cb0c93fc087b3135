"""Measure decoding speed on a GPU at batch sizes 1 and 256: `python tests/bench/decode_on_gpu.py`.

    --shapes S M L    --batches 1 256    --tokens 200    --rounds 5
    --device NAME     torch device (default: cuda); cpu checks that the benchmark runs
    --precision NAME  bf16 (default) or f32

Compares tinychat's torch engine with `generate` of `transformers` and a static cache, which it compiles on a GPU. The
weights are random, the same as in `decode_vs_peers.py`. Both are warmed up, so that recording and compiling do not
count, and they alternate; rates are medians, and ratios are medians over rounds. In bf16 the texts may diverge where
two tokens are nearly tied, so the number of identical tokens is reported.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from decode_vs_peers import PROMPT
from peers import weights
from peers.weights import CONTEXT, SHAPES
from transformers import AutoModelForCausalLM, logging

from tinychat.config.settings import Settings
from tinychat.generate.engine import Request
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.graph_capture import capture_graph
from tinychat.model.loading import load_model
from tinychat.store.models import ModelInfo

TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}

Decode = Callable[[], list[list[int]]]
"""generates the tokens of all rows"""


def ours(info: ModelInfo, device: str, dtype: torch.dtype, batch: int, count: int) -> Decode:
    """Return a function that decodes with tinychat's torch engine in one call."""
    capture = capture_graph if device == "cuda" else None
    engine = TorchEngine(load_model(info, device).round_layers(dtype), capture=capture)
    settings = Settings(temperature=0, max_tokens=count)

    def decode() -> list[list[int]]:
        requests = [Request(row, list(PROMPT), 0, settings, seed=0) for row in range(batch)]
        engine.extend([Request(row, [0], 0, settings, seed=0) for row in range(batch)], 1)  # clears the cache
        return [[one.id for one in drawn] for drawn in engine.extend(requests, count)]

    return decode


def theirs(folder: Path, device: str, dtype: torch.dtype, batch: int, count: int) -> Decode:
    """Return a function that decodes with `generate` of `transformers`."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
    model.generation_config.eos_token_id = None
    ids = torch.tensor([PROMPT] * batch, device=device)

    @torch.inference_mode()
    def decode() -> list[list[int]]:
        generated = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False,
            cache_implementation="static",
        )  # fmt: skip
        rows: list[list[int]] = generated[:, len(PROMPT) :].tolist()
        return rows

    return decode


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 256])
    parser.add_argument("--tokens", type=int, default=200, help=f"at most {CONTEXT - len(PROMPT)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=TYPES, default="bf16")
    args = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for shape in (SHAPES[name] for name in args.shapes):
        print(f"\n{shape}, {args.precision} on {args.device}")  # noqa: T201
        with tempfile.TemporaryDirectory(prefix="tinychat-gpu-") as folder:
            info = weights.make_model(shape, "llama", Path(folder) / "llama")
            weights.export_transformers(info, Path(folder) / "transformers")
            for batch in args.batches:
                options = (args.device, TYPES[args.precision], batch, args.tokens)
                decoders = {
                    "tinychat": ours(info, *options),
                    "transformers": theirs(Path(folder) / "transformers", *options),
                }
                texts = {name: [decode(), decode()][0] for name, decode in decoders.items()}
                rates: dict[str, list[float]] = {name: [] for name in decoders}
                for _ in range(args.rounds):
                    for name, decode in decoders.items():
                        start = time.perf_counter()
                        decode()
                        rates[name].append(batch * args.tokens / (time.perf_counter() - start))
                mine, other = rates.values()
                ratio = statistics.median(a / b for a, b in zip(mine, other, strict=True))
                same = sum(a == b for row in zip(*texts.values(), strict=True) for a, b in zip(*row, strict=True))
                print(  # noqa: T201
                    f"batch {batch:4}: tinychat {statistics.median(mine):10,.0f}, transformers "
                    f"{statistics.median(other):10,.0f} tokens/s: {ratio:.2f} times; "
                    f"{same:,} of {batch * args.tokens:,} tokens the same"
                )


if __name__ == "__main__":
    main()
