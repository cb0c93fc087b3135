"""Which numbers a model is computed in where nobody says: int8 where that costs next to nothing."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from tinychat.atomic import atomic_write
from tinychat.generate.native.engine import NativeEngine
from tinychat.generate.native.library import levels_here
from tinychat.store import places
from tinychat.store.models import ModelInfo, read_training

MOST_RISE = 0.005
"""of the loss on the model's own validation text, as a share of it"""
SMALL = 500_000
"""parameters up to which a processor keeps all weights close by, however wide they are"""
MEASURED = "validation_ids"
"""in `training.json`: the first tokens of the text that the model was measured on"""


def choose_precision(info: ModelInfo, threads: int) -> str:
    """`int8` where the loss rises by less than half a per cent, else `f32`.

    It is measured when a model is first opened, and kept in the cache until its weights change. A small model gains
    nothing, nor does any where the processor has no products of bytes; one in training changes all the time, and one
    that brings no text to measure on cannot be known: `f32`.

    Raises:
        Unavailable, ModelError: as `NativeEngine`.
    """
    if info.parameters <= SMALL or info.snapshot or levels_here()[0] == "plain":
        return "f32"
    kept = _kept(info)
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _choose(json.loads(kept.read_text(encoding="utf-8")))
    ids = read_training(info.folder).get(MEASURED)
    if not isinstance(ids, list) or len(ids) < 2 or not all(isinstance(id, int) for id in ids):
        return "f32"
    losses: dict[str, float] = {}
    for precision in ("f32", "int8"):
        logprobs = NativeEngine(info, threads, precision=precision).score(ids)
        losses[precision] = -sum(logprobs) / len(logprobs)
    with suppress(OSError):
        atomic_write(kept, json.dumps(losses) + "\n")
    return _choose(losses)


def _choose(losses: dict[str, float]) -> str:
    return "int8" if losses["int8"] < losses["f32"] * (1 + MOST_RISE) else "f32"


def _kept(info: ModelInfo) -> Path:
    """Where the losses of these weights are kept."""
    weights = info.weights_file.resolve()
    stat = weights.stat()
    told = hashlib.sha256(f"{weights}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()
    return places.cache_folder() / "precision" / f"{told[:16]}.json"
