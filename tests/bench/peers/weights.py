"""Random weights of three shapes, identical for tinychat and its peers, in the format of each.

With random weights the most likely tokens are nearly tied, so rounding would decide between them. The head is therefore
biased towards one successor of each token, `t + 1`, as strongly as the best of all others: about one time in twenty the
layers outweigh it. The text thus depends on every layer, but not on the last bits of a sum.
"""

import math
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as InnerTokenizer
from tokenizers.models import WordLevel

from tinychat.formats.registry import export_model
from tinychat.model.config import ModelConfig
from tinychat.model.ngrams import Ids
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, read_info, read_weights, save_model
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import FOLDS

CONTEXT = 256
COUNTED = 1_000_000
"""number of tokens that n-grams are counted in"""
MARGIN = 2.0
"""lead of a token's successor over the best other token, in standard deviations of a logit"""

Weights = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; `swiglu_width` gives a SwiGLU as many weights as a feed-forward layer of 4 · `d_model`."""

    name: str
    n_layer: int
    d_model: int
    n_head: int
    swiglu_width: int
    vocab_size: int
    seed: int
    """a seed whose text has no two candidates so close that 8-bit weights would swap them"""

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.n_layer} layers of {self.d_model}, vocabulary {self.vocab_size:,}, context {CONTEXT}"
        )

    def config(self, form: str) -> ModelConfig:
        """Return the configuration of a Llama (no biases), of a GPT-2 (biases, tied embeddings), or `counted`.

        `counted` is what tinychat trains by default on a text in characters: with n-gram counts and matches.
        """
        if form == "counted":
            return ModelConfig(
                self.vocab_size, 1024, n_layer=self.n_layer, d_model=self.d_model, n_head=self.n_head, ngram_order=8
            )
        common: dict[str, Any] = {
            "vocab_size": self.vocab_size, "context_length": CONTEXT, "n_layer": self.n_layer, "d_model": self.d_model,
            "n_head": self.n_head, "qk_norm": False, "norm_affine": True,
        }  # fmt: skip
        if form == "gpt2":
            return ModelConfig(
                **common, position="learned", feed_forward="gelu", bias=True, head_bias=False, tie_embeddings=True
            )
        return ModelConfig(**common, norm="rmsnorm", feed_forward="swiglu", d_ff=self.swiglu_width)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("S", 4, 128, 4, 352, 65, 1),
        Shape("M", 6, 384, 6, 1024, 65, 2),
        Shape("L", 4, 512, 8, 1376, 30_522, 3),
    )
}
"""widths are multiples of 32, as Q8_0 requires"""


def make_model(shape: Shape, form: str, folder: Path) -> ModelInfo:
    """Save a tinychat model with random weights and a vocabulary of numbers."""
    torch.manual_seed(shape.seed)
    model = Transformer(shape.config(form))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.normal_(std=0.1).add_(float("norm" in name and name.endswith("weight")))
            else:
                std = 1.0 if "embedding" in name or "table" in name else weight.shape[1] ** -0.5
                weight.normal_(std=std * (2 * shape.n_layer) ** -0.5 if "output" in name else std)
        if form == "llama":
            bias = (math.sqrt(2 * math.log(shape.vocab_size)) + MARGIN) / shape.d_model
            model.head.weight.add_(bias * model.decoder.embedding.weight.roll(1, dims=0))
    if model.ngrams is not None:
        model.ngrams.initialize()
        model.ngrams.count(np.array_split(_repetitive_text(shape), FOLDS))
    words = {f"{id}": id for id in range(shape.vocab_size)}
    tokenizer = Tokenizer(InnerTokenizer(WordLevel(words, unk_token="0")))
    facts = (model.config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo(folder.name, folder, "completion", *facts), model.state_dict(), tokenizer)
    return read_info(folder)


def _repetitive_text(shape: Shape) -> Ids:
    """Return ids [COUNTED] in which n-grams recur as often as in a text: words drawn by a Zipf law."""
    draw = np.random.default_rng(shape.seed)
    words = [draw.integers(shape.vocab_size, size=draw.integers(2, 10)) for _ in range(20_000)]
    order = np.minimum(draw.zipf(1.2, size=COUNTED), len(words)) - 1
    return np.concatenate([words[index] for index in order[: COUNTED // 5]])[:COUNTED].astype(np.uint16)


def count_weights_read(info: ModelInfo) -> int:
    """Return the number of weights read per token: all matrices but the embedding table, of which one row is read."""
    weights = read_weights(info)
    return sum(weights[name].numel() for name in weights if weights[name].dim() == 2 and "decoder.e" not in name)


def export_transformers(info: ModelInfo, folder: Path) -> None:
    """Write the files of `tinychat export --to transformers`."""
    export_model(info, "transformers", folder)


def export_llama2_c(info: ModelInfo, path: Path) -> None:
    """Write llama2.c's original, unversioned format: a header of seven numbers and all weights in f32."""
    config, weights = ModelConfig.from_dict(info.architecture), read_weights(info)
    parts = ["attention.norm", *(f"attention.sublayer.{name}" for name in ("query", "key", "value", "output"))]
    parts += ["feed_forward.norm", *(f"feed_forward.sublayer.{name}" for name in ("gate", "output", "up"))]
    names = [f"decoder.blocks.{layer}.{part}" for part in parts for layer in range(config.n_layer)]
    with path.open("wb") as file:
        # A negative vocabulary size means that the head has its own weights.
        sizes = (config.d_model, config.feed_forward_width, config.n_layer, config.n_head, config.kv_heads)
        file.write(struct.pack("7i", *sizes, -config.vocab_size, config.context_length))
        for name in ("decoder.embedding", *names, "decoder.norm"):
            file.write(_to_meta_layout(name, weights, config).tobytes())
        file.write(bytes(4 * config.context_length * config.head_width))  # sines and cosines, which llama2.c skips
        file.write(_to_meta_layout("head", weights, config).tobytes())


GGUF_NAMES = {
    "attention.norm": "attn_norm", "attention.sublayer.query": "attn_q", "attention.sublayer.key": "attn_k",
    "attention.sublayer.value": "attn_v", "attention.sublayer.output": "attn_output",
    "feed_forward.norm": "ffn_norm", "feed_forward.sublayer.gate": "ffn_gate", "feed_forward.sublayer.up": "ffn_up",
    "feed_forward.sublayer.output": "ffn_down",
}  # fmt: skip


def export_gguf(info: ModelInfo, path: Path, library: Path, quantized: bool) -> None:
    """Write llama.cpp's format with its own library, in F32 or with Q8_0 matrices, without a vocabulary.

    Args:
        info: the model to export.
        path: output file.
        library: the folder `gguf-py` of llama.cpp.
        quantized: whether matrices are written in Q8_0.
    """
    sys.path.insert(0, str(library))
    import gguf

    config, weights = ModelConfig.from_dict(info.architecture), read_weights(info)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layer)
    writer.add_feed_forward_length(config.feed_forward_width)
    writer.add_head_count(config.n_head)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(config.rotary_base)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")
    names = {"decoder.embedding": "token_embd", "decoder.norm": "output_norm", "head": "output"}
    for layer in range(config.n_layer):
        names |= {f"decoder.blocks.{layer}.{ours}": f"blk.{layer}.{theirs}" for ours, theirs in GGUF_NAMES.items()}
    for ours, theirs in names.items():
        matrix = _to_meta_layout(ours, weights, config)
        kind = gguf.GGMLQuantizationType.Q8_0 if quantized and matrix.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(f"{theirs}.weight", gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _to_meta_layout(name: str, weights: Weights, config: ModelConfig) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Return a matrix in the layout of Meta's programs.

    A rotary pair is k, k + 1 there, and k, k + K/2 here.
    """
    matrix = weights[f"{name}.weight"].numpy()
    if name.endswith((".query", ".key")):
        halves = matrix.reshape(-1, 2, config.head_width // 2, config.d_model)
        matrix = halves.swapaxes(1, 2).reshape(matrix.shape)
    return np.ascontiguousarray(matrix, dtype=np.float32)
