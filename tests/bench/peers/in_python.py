"""Decode greedily with a Python decoder: `python tests/bench/peers/in_python.py DECODER MODEL COUNT ID…`.

For each number of threads read from a line of stdin, prints a line with the seconds taken and the generated ids.
"""

import contextlib
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

Decode = Callable[[int], tuple[float, list[int]]]
"""maps a number of threads to seconds and ids"""


def tinychat(precision: str, kind: str = "native") -> Callable[[str, list[int], int], Decode]:
    """Return a loader for a tinychat engine, called as an answer calls it."""

    def load(model: str, prompt: list[int], count: int) -> Decode:
        from tinychat.config.settings import Settings
        from tinychat.generate.engine import Engine, Request
        from tinychat.generate.loading import open_engine
        from tinychat.generate.native.engine import NativeEngine
        from tinychat.generate.stream import MAX_CALL_SECONDS
        from tinychat.store.models import read_info

        info = read_info(Path(model))
        settings = Settings(temperature=0)
        engines: dict[int, Engine] = {}
        paces: dict[int, int] = {}

        def open_with(threads: int) -> Engine:
            if kind == "native":
                return NativeEngine(info, threads, precision=precision, drafts="never")
            return open_engine(info, Settings(engine=kind, device="cpu", precision=precision, threads=threads))

        def decode(threads: int) -> tuple[float, list[int]]:
            if threads not in engines:
                engines[threads] = open_with(threads)
            if kind == "torch":
                import torch

                torch.set_num_threads(threads)  # per process, not per engine
            engine, pace = engines[threads], paces.get(threads, 16)
            ids = list(prompt)
            engine.extend([Request(0, [0], 0, settings, seed=0)], 1)  # clears the cached prompt
            ids.append(engine.extend([Request(0, ids, 0, settings, seed=0)], 1)[0][0].id)
            start = time.perf_counter()
            while len(ids) <= len(prompt) + count:
                left = len(prompt) + count + 1 - len(ids)
                ids += [one.id for one in engine.extend([Request(0, ids, 0, settings, seed=0)], min(pace, left))[0]]
            seconds = time.perf_counter() - start
            paces[threads] = max(1, int(MAX_CALL_SECONDS * count / seconds))
            return seconds, ids[len(prompt) : -1]

        return decode

    return load


def transformers(model: str, prompt: list[int], count: int) -> Decode:
    """Load a model for `generate` of `transformers`."""
    import torch
    from transformers import AutoModelForCausalLM, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    theirs = AutoModelForCausalLM.from_pretrained(model).eval()
    theirs.generation_config.eos_token_id = None
    ids = torch.tensor([prompt])

    @torch.inference_mode()
    def decode(threads: int) -> tuple[float, list[int]]:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        made = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
        return time.perf_counter() - start, made[0, len(prompt) :].tolist()

    return decode


def nanogpt(model: str, prompt: list[int], count: int) -> Decode:
    """Load a model for `generate` of nanoGPT, with the weights of a GPT-2 of `transformers`.

    nanoGPT's folder must come first on the path.
    """
    import json

    import torch
    from model import GPT, GPTConfig
    from safetensors.torch import load_file

    config = json.loads((Path(model) / "config.json").read_text())
    shape = {"block_size": config["n_positions"], "dropout": 0.0, "bias": True}
    theirs = GPT(GPTConfig(**shape, **{name: config[name] for name in ("vocab_size", "n_layer", "n_head", "n_embd")}))
    weights = load_file(Path(model) / "model.safetensors")
    in_layers = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    weights = {name: one.T if name.endswith(in_layers) else one for name, one in weights.items()}
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    if unexpected or any(name != "lm_head.weight" and not name.endswith(".attn.bias") for name in missing):
        raise SystemExit(f"nanoGPT's model has other weights: {missing}, {unexpected}")
    theirs.eval()
    ids = torch.tensor([prompt])

    def decode(threads: int) -> tuple[float, list[int]]:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        made = theirs.generate(ids, count, top_k=1)
        return time.perf_counter() - start, made[0, len(prompt) :].tolist()

    return decode


DECODERS = {
    "tinychat-f32": tinychat("f32"),
    "tinychat-int8": tinychat("int8"),
    "tinychat-torch": tinychat("f32", "torch"),
    "transformers": transformers,
    "nanogpt": nanogpt,
}


def main() -> None:
    """Load the model, and decode once per line of stdin."""
    name, model, count, *prompt = sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()):  # nanoGPT prints its parameter count
        decode = DECODERS[name](model, [int(id) for id in prompt], int(count))
    for line in sys.stdin:
        seconds, ids = decode(int(line))
        print(f"{seconds:.9f}", *ids, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
