"""Weights and contexts at the limits of their types: both engines answer the same, or refuse in the same words."""

import resource
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate.engine import Engine, Request
from tinychat.generate.native.engine import NativeEngine
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, read_info, read_tokenizer, read_weights, save_model

pytestmark = pytest.mark.usefixtures("native")


def engines(info: ModelInfo) -> tuple[Engine, Engine]:
    return TorchEngine(load_model(info)), NativeEngine(info)


def scaled(letters: Path, folder: Path, factor: float) -> ModelInfo:
    """Save a model whose logits are `factor` times those of `letters`."""
    info = replace(read_info(letters), folder=folder)
    weights = read_weights(read_info(letters))
    weights["head.weight"] = weights["head.weight"] * factor
    save_model(info, weights, read_tokenizer(letters))
    return info


@pytest.mark.parametrize("factor", [1e30, 1e37])
@pytest.mark.parametrize(
    "settings",
    [
        Settings(temperature=1e-6), Settings(temperature=1e-320), Settings(temperature=0.01, top_p=0.5, min_p=0.1),
        Settings(temperature=1, top_p=1, repetition_penalty=0.01),
        Settings(temperature=1e-6, repetition_penalty=100, top_k=3),
    ],
)  # fmt: skip
def test_huge_logits_give_the_same_tokens(letters: Path, tmp_path: Path, factor: float, settings: Settings) -> None:
    request = Request(0, [1, 2, 3], 0, settings, seed=7)
    answers = [engine.extend([request], 12) for engine in engines(scaled(letters, tmp_path / "huge", factor))]
    first, second = ([token.id for token in answer[0]] for answer in answers)
    assert first == second
    assert len(first) == 12


def test_infinite_logits_are_refused_in_the_same_words(letters: Path, tmp_path: Path) -> None:
    request = Request(0, [1, 2, 3], 0, Settings(temperature=1e-6), seed=7)
    for engine in engines(scaled(letters, tmp_path / "infinite", 3e38)):
        for call in (lambda e: e.extend([request], 3), lambda e: e.probabilities(request), lambda e: e.score([1, 2])):
            with pytest.raises(GenerationError, match="the model gave NaN or infinite logits"):
                call(engine)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_long_context_takes_memory_as_it_is_used(letters: Path, tmp_path: Path) -> None:
    tokenizer = read_tokenizer(letters)
    config = ModelConfig(tokenizer.vocab_size, context_length=1 << 16, n_layer=60, d_model=16, feed_forward="none")
    model = Transformer(config)
    required = (config.to_dict(), tokenizer.kind, model.parameter_count)
    info = ModelInfo("long", tmp_path / "long", "completion", *required)
    save_model(info, model.state_dict(), tokenizer)
    before = memory()
    for engine in engines(info):
        request = Request(0, [1] * 40, 0, Settings(), seed=7)
        assert len(engine.extend([request], 3)[0]) == 3
        assert memory() - before < 150 << 20  # the whole cache has 503 MB
        del engine


def memory() -> int:
    """Return the bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
