"""Whether a model may compute in int8: only where that was measured to cost hardly any of its accuracy."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tinychat.atomic import atomic_write
from tinychat.store import paths
from tinychat.store.models import ModelInfo

MAX_PERPLEXITY_INCREASE = 0.005
"""Largest relative increase of the perplexity on the model's own validation text at which int8 is used."""
ARITHMETIC = 2
"""Number of what int8 means in the native engine, to raise when that changes: losses of another one are void."""
MIN_PARAMETERS = 500_000
"""Number of parameters up to which int8 gains nothing: all weights fit into the processor's caches at any precision."""


def read_losses(info: ModelInfo) -> dict[str, float] | None:
    """Return the losses of a model in f32 and int8, as `write_losses` kept them; None if they are not known."""
    with suppress(OSError, ValueError):
        losses = json.loads(_file(info).read_text(encoding="utf-8"))
        if isinstance(losses, dict) and all(isinstance(losses.get(name), float) for name in ("f32", "int8")):
            return losses
    return None


def write_losses(info: ModelInfo, losses: Mapping[str, float]) -> None:
    """Keep the losses of a model until its weights change."""
    with suppress(OSError):
        atomic_write(_file(info), json.dumps(losses) + "\n")


def is_int8_accurate(losses: Mapping[str, float]) -> bool:
    """Return whether int8 increases the perplexity by less than half a per cent."""
    return losses["int8"] - losses["f32"] < math.log1p(MAX_PERPLEXITY_INCREASE)


def _file(info: ModelInfo) -> Path:
    import hashlib

    weights = info.weights_file.resolve()
    stat = weights.stat()
    digest = hashlib.sha256(f"{ARITHMETIC}\0{weights}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()
    return paths.cache_folder() / "precision" / f"{digest[:16]}.json"
