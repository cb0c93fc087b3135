"""ONNX, for onnxruntime and others: a graph from ids to logits, made by running the model once."""

import warnings
from pathlib import Path

from tinychat.atomic import atomic_folder
from tinychat.errors import ModelError
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import checked_config
from tinychat.store.models import TOKENIZER, ModelInfo, read_tokenizers

MODEL, INPUT, OUTPUT = "model.onnx", "ids", "logits"
OPSET = 17
"""Version of the operators: the first with layer normalization."""
LENGTH = 8
"""Tokens of the text that the model is run with."""


def write(info: ModelInfo, folder: Path) -> None:
    """Write a model to a folder, as `model.onnx` and `tokenizer.json`, atomically.

    The input `ids` is [B, T] in 64 bits, for any B and T up to the context length, the output `logits` [B, T, V].

    Raises:
        ModelError: If the model counts n-grams of more than one token, or has an encoder, or the package `onnx` is not
            installed.
    """
    config = checked_config(info)
    _check(info.name, config)
    import torch

    from tinychat.model.traceable import FromIds

    ids = torch.zeros((2, min(LENGTH, config.context_length)), dtype=torch.long)
    axes = {0: "batch", 1: "time"}
    tokenizer, _ = read_tokenizers(info)
    with atomic_folder(folder) as draft:
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # the exporter warns of each shape that it takes to be fixed
            torch.onnx.export(
                FromIds(info).eval(), (ids,), draft / MODEL, dynamo=False, opset_version=OPSET,
                input_names=[INPUT], output_names=[OUTPUT], dynamic_axes={INPUT: axes, OUTPUT: axes},
            )  # fmt: skip
        tokenizer.save(draft / TOKENIZER)


def _check(name: str, config: ModelConfig) -> None:
    if config.ngram_order > 1:
        raise ModelError(
            f"onnx cannot hold {name}: its ngram_order is {config.ngram_order}, more than 1",
            "retrain with `--ngram-order 1`, or with `--recipe llama`",
        )
    if config.encoder_decoder:
        raise ModelError(f"onnx cannot hold {name}: it has an encoder", "export it to transformers")
    try:
        import onnx  # noqa: F401 (torch needs it)
    except ImportError:
        raise ModelError("this needs the package onnx, which is not installed", "`pip install onnx`") from None
