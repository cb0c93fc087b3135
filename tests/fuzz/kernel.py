"""Mutated weights in the kernel, compiled to watch its memory and its arithmetic: it answers, or refuses the model.

Each case runs one of the instruction sets that this processor has.
"""

import math
import os
import random
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from harness import Case, main
from sanitizers import KERNEL, MEMORY, sanitized_environment

VOCABULARY = 21
ODD = (float("nan"), float("inf"), -float("inf"), 3.4e38, -3.4e38, 1e30, 1e-30, 1e-38, 1e-45, -1e-45, 0.0, 1e5)
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"n_kv_head": 1, "bias": True, "norm_affine": True, "d_model": 72},
    {"n_head": 1, "output_projection": False, "scale_embedding": True, "tie_embeddings": True},
    {"previous_token_embeddings": 3, "bigram_embedding": True, "norm": "layernorm", "d_model": 40},
    {"ngram_order": 4, "n_head": 4, "feed_forward": "relu2"},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5, "position": "sinusoidal", "n_kv_head": 1, "bias": True},
    {"qk_norm": False, "final_norm": False, "d_ff": 100, "head_bias": True, "feed_forward": "swiglu"},
    {"position": "learned", "feed_forward": "gelu"},
    {"d_head": 10, "qk_norm_affine": True, "attention_window": 5, "window_pattern": "GL", "rotary_fraction": 0.4},
    {"parallel": True, "norm_affine": True, "scale_scores": False, "attention_window": 1, "rotary_factor": 2.5},
    {"n_encoder_layer": 2, "source_vocab_size": 11, "norm_affine": True, "n_kv_head": 1},
)


@cache
def originals() -> list[tuple[dict[str, Any], bytes]]:
    """Return the architectures and the weights of small models."""
    import torch

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.weights import Precision, pack_weights

    made: list[tuple[dict[str, Any], bytes]] = []
    for index, options in enumerate(VARIANTS):
        torch.manual_seed(index)
        sizes = {"context_length": 24, "n_layer": 2, "n_head": 2, "d_model": 24} | options
        model = Transformer(ModelConfig(VOCABULARY, **sizes)).eval()
        if model.ngrams is not None:
            model.ngrams.count([torch.randint(VOCABULARY, (300,)).numpy()])
        precision = get_args(Precision)[index % 4]
        weights = pack_weights(model.state_dict(), tied=model.config.tie_embeddings, precision=precision)
        made.append((model.config.to_dict(), weights))
    return made


def mutate_numbers(random: random.Random, data: bytes) -> bytes:
    """Return a safetensors file in which some numbers are odd, or any bits at all."""
    start = 8 + int.from_bytes(data[:8], "little")
    out = bytearray(data)
    for _ in range(random.choice((1, 10, 100, 10_000))):
        bits = random.getrandbits(32).to_bytes(4, "little")
        number = bits if random.random() < 0.2 else struct.pack("<f", random.choice(ODD))
        at = random.randrange(start, len(out) - 4, random.choice((1, 4)))
        out[at : at + 4] = number
    return bytes(out)


def use(folder: Path, architecture: dict[str, Any], seed: int) -> Callable[[list[str]], int]:
    """Return a function that generates, scores and drafts with a model, as a random generator says."""

    def run(_: list[str]) -> int:
        from tinychat.config.settings import Settings
        from tinychat.errors import TinychatError
        from tinychat.generate.engine import Request
        from tinychat.generate.native.build import levels_here
        from tinychat.generate.native.engine import NativeEngine
        from tinychat.store.models import ModelInfo

        dice = random.Random(seed)
        info = ModelInfo("mutated", folder, "completion", architecture, "char", 0)
        settings = Settings(
            temperature=dice.choice((0, 0.5, 1, 100)), top_p=dice.choice((1, 0.5)), top_k=dice.choice((None, 1, 7)),
            min_p=dice.choice((0, 0.3)), repetition_penalty=dice.choice((1, 1.5)),
        )  # fmt: skip
        ids = [dice.randrange(VOCABULARY) for _ in range(dice.choice((1, 5, 40)))]
        request = Request(slot=0, ids=ids, num_generated=0, settings=settings, seed=seed)
        if architecture["n_encoder_layer"]:
            request.source = tuple(dice.randrange(11) for _ in range(dice.choice((1, 5, 24))))
        if dice.random() < 0.3:
            request.biases = array("f", [dice.choice((0, 1e30, -1e30, -math.inf)) for _ in range(VOCABULARY)])
        try:
            engine = NativeEngine(
                info, dice.choice((1, 2)), precision=dice.choice(("f32", "bf16", "int8")),
                level=dice.choice(levels_here()), drafts=dice.choice(("never", "auto", "always")),
            )  # fmt: skip
            for call in (
                lambda: engine.extend([request], 30, dice.choice((0, 3))),
                lambda: engine.probabilities(request),
                lambda: engine.score(ids),
                lambda: engine.entropies(ids),
            ):
                call()
        except TinychatError as error:
            sys.stderr.write(f"tinychat: {error.problem}\n")
            return error.exit_code
        return 0

    return run


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield one use of one model."""
    architecture, weights = random.choice(originals())
    (folder / "model.safetensors").write_bytes(mutate_numbers(random, weights))
    seed = random.randrange(1 << 30)
    yield Case("kernel", [str(seed)], folder, run=use(folder, architecture, seed))


if __name__ == "__main__":
    from tinychat.generate.native import build

    if KERNEL not in os.environ:  # the libraries of the sanitizers are to be loaded before all others
        try:
            environment = sanitized_environment(MEMORY)
        except build.Unavailable as error:
            sys.stdout.write(f"not run: {error.problem}\n")
            sys.exit(0)
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)

    build.library_file = lambda: Path(os.environ[KERNEL])
    main(cases)
