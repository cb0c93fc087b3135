"""Models in ONNX: onnxruntime computes the same logits for batches and texts of any length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.formats.conftest import SHAPES
from tinychat.errors import ModelError
from tinychat.formats.registry import export_model, open_model
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, read_info, read_tokenizer, save_model
from tinychat.train.batches import FOLDS

OPTIONS: dict[str, dict[str, Any]] = SHAPES | {
    "default": {"previous_token_embeddings": 2, "bigram_embedding": True, "dropout": 0.5},
    "post": {"norm_position": "post", "position": "sinusoidal", "scale_embedding": True},
    "neox": {"norm_affine": True, "parallel": True, "rotary_fraction": 0.5, "bias": True},
    "neo": {"attention_window": 12, "window_pattern": "GL", "position": "learned", "scale_scores": False},
    "copies": {"ngram_order": 1},
    "turns": {"turn_attention": True, "turn_token": 3, "reply_token": 5},
    "unigrams": {"ngram_order": 1, "matches": False},
}


def make(folder: Path, letters: Path, **options: Any) -> ModelInfo:
    tokenizer = read_tokenizer(letters)
    config = ModelConfig(tokenizer.vocab_size, 32, n_layer=2, d_model=32, initialization="torch", **options)
    torch.manual_seed(1)
    model = Transformer(config)
    if model.ngrams is not None:
        model.ngrams.initialize()
        model.ngrams.count([np.arange(20, dtype=np.uint16)] * FOLDS)
    facts = (config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo(folder.name, folder, "completion", *facts), model.state_dict(), tokenizer)
    return read_info(folder)


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize("name", OPTIONS)
def test_onnxruntime_computes_the_same(letters: Path, tmp_path: Path, name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    info = make(tmp_path / "m", letters, **OPTIONS[name])
    export_model(info, "onnx", tmp_path / "out")
    session, model = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx"), load_model(info)
    for shape, tokens in (((2, 8), model.config.vocab_size), ((1, 1), model.config.vocab_size), ((3, 32), 3)):
        ids = torch.randint(tokens, shape)  # few different ones: all that was said is said again
        (logits,) = session.run(["logits"], {"ids": ids.numpy()})
        torch.testing.assert_close(torch.from_numpy(logits), model(ids), atol=1e-5, rtol=1e-4)


def test_what_onnx_cannot_hold_is_refused(letters: Path, tmp_path: Path) -> None:
    info = make(tmp_path / "m", letters, ngram_order=3)
    with pytest.raises(ModelError, match="its ngram_order is 3, more than 1"):
        export_model(info, "onnx", tmp_path / "out")
    for to in ("onnx", "gguf", "llama2c", "nanogpt"):
        with pytest.raises(ModelError, match="it has an encoder") as caught:
            export_model(open_model("translate"), to, tmp_path / "out")
        assert caught.value.remedy == "export it to transformers"
    assert not (tmp_path / "out").exists()
