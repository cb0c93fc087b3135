"""Choose the precision of a model for which none is set: int8 if that costs next to nothing."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from tinychat.atomic import atomic_write
from tinychat.generate.native.build import levels_here
from tinychat.generate.native.engine import NativeEngine
from tinychat.store import places
from tinychat.store.models import ModelInfo, read_training

MAX_LOSS_INCREASE = 0.005
"""Fraction of the loss on the model's own validation text."""
MIN_PARAMETERS = 500_000
"""Below, a processor's caches hold all weights at any precision."""
MEASURED = "validation_ids"
"""Key in `training.json`: the first tokens of the validation text."""


def choose_precision(info: ModelInfo, threads: int) -> str:
    """Return `int8` if it increases the loss by less than half a per cent, else `f32`.

    The loss is measured when a model is first opened, and cached until its weights change. It is `f32` without a
    measurement for a small model and on a processor without integer products, which gain nothing; for a model in
    training, which changes all the time; and for one without a text to measure on.

    Raises:
        Unavailable: there is no compiler, or the model has an encoder or is too large.
        ModelError: the weights are missing, damaged, or of another architecture.
    """
    if info.parameters <= MIN_PARAMETERS or info.snapshot or levels_here()[0] == "plain":
        return "f32"
    cached = _cache_file(info)
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _choose(json.loads(cached.read_text(encoding="utf-8")))
    ids = read_training(info.folder).get(MEASURED)
    if not isinstance(ids, list) or len(ids) < 2 or not all(isinstance(id, int) for id in ids):
        return "f32"
    losses: dict[str, float] = {}
    for precision in ("f32", "int8"):
        logprobs = NativeEngine(info, threads, precision=precision).score(ids)
        losses[precision] = -sum(logprobs) / len(logprobs)
    with suppress(OSError):
        atomic_write(cached, json.dumps(losses) + "\n")
    return _choose(losses)


def _choose(losses: dict[str, float]) -> str:
    return "int8" if losses["int8"] < losses["f32"] * (1 + MAX_LOSS_INCREASE) else "f32"


def _cache_file(info: ModelInfo) -> Path:
    """Return the file that caches the losses of these weights."""
    weights = info.weights_file.resolve()
    stat = weights.stat()
    digest = hashlib.sha256(f"{weights}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()
    return places.cache_folder() / "precision" / f"{digest[:16]}.json"
