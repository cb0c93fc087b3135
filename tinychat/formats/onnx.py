"""ONNX, for onnxruntime and others: a graph from ids to logits, made by running the model once."""

import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.atomic import atomic_folder
from tinychat.errors import ModelError
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.ngrams import MAX_STRENGTH, MIN_PROBABILITY, NGrams, TokenContext
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
    ids = torch.zeros((2, min(LENGTH, config.context_length)), dtype=torch.long)
    axes = {0: "batch", 1: "time"}
    tokenizer, _ = read_tokenizers(info)
    with atomic_folder(folder) as draft:
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # the exporter warns of each shape that it takes to be fixed
            torch.onnx.export(
                _FromIds(info).eval(), (ids,), draft / MODEL, dynamo=False, opset_version=OPSET,
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


class _FromIds(nn.Module):
    """A model with no argument but the ids: the exporter passes all that there are."""

    def __init__(self, info: ModelInfo) -> None:
        super().__init__()
        self.model = load_model(info)
        if self.model.ngrams is not None:
            self.model.ngrams = _Mixture(self.model.ngrams)  # type: ignore[assignment]

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids)  # type: ignore[no-any-return]


class _Mixture(nn.Module):
    """What `NGrams` computes for unigrams and matches, in operations that ONNX has: all tokens get all of their counts.

    Shapes: as in `ngrams.py`.
    """

    def __init__(self, ngrams: NGrams) -> None:
        super().__init__()
        self.ngrams = ngrams

    def forward(self, logits: Tensor, x: Tensor, context: TokenContext, folds: None = None) -> Tensor:
        """Return the log-probabilities of the mixture, [B, T, V], for all of the text at once."""
        ngrams = self.ngrams
        unigrams = ngrams.table.unigrams.view(1, 1, 1, -1).expand(*logits.shape[:2], 1, -1)
        counts = torch.cat((unigrams, self._count_recent(context.history)), dim=2).flatten(0, 1)  # [P, 1 + K, V]
        totals, varieties = counts.sum(-1), (counts > 0).float().sum(-1).log1p()
        weights = ngrams.weigh(x, totals, varieties)
        counted = weights.uniform / ngrams.vocab_size + weights.text * counts[:, 0]
        counted = weights.passed_on * counted + (weights.recent.unsqueeze(1) @ counts[:, 1:]).squeeze(1)  # [P, V]
        mixed = torch.lerp(counted.view_as(logits), logits.softmax(dim=-1), weights.share.view(*logits.shape[:2], 1))
        return mixed.clamp(min=MIN_PROBABILITY).log()

    def _count_recent(self, ids: Tensor) -> Tensor:
        """Return what followed the last 2, 3, … tokens up to each of ids [B, T] earlier in them: [B, T, K, V]."""
        ids = F.pad(ids, (MAX_RECENT, 0), value=-1)  # so many slots are there always; −1: no token
        slots = torch.arange(ids.shape[1], device=ids.device)  # [S]
        same = (slots < slots[MAX_RECENT:].unsqueeze(-1)).unsqueeze(0)  # [1, T, S]
        if not self.ngrams.has_matches:
            same = torch.zeros_like(same)
        found: list[Tensor] = []
        for length in range(1, CONTEXT_LENGTHS[-1] + 1):
            token = F.pad(ids, (length - 1, 0), value=-1)[:, : ids.shape[1]]  # [B, S], that so many before each slot
            own = token[:, MAX_RECENT:].unsqueeze(-1)  # [B, T, 1]
            same = same & (token.unsqueeze(1) == own) & (own >= 0)
            if length in CONTEXT_LENGTHS:
                newest = torch.where(same, slots, -1).topk(MAX_RECENT).values  # [B, T, R]
                recency = self.ngrams.recency[len(found)].clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()
                followers = ids.gather(1, (newest + 1).flatten(1)).view_as(newest).clamp(min=0)
                counts = torch.zeros((*newest.shape[:2], self.ngrams.vocab_size), device=ids.device)
                found.append(counts.scatter_add(2, followers, recency * (newest >= 0)))
        return torch.stack(found, dim=2)
