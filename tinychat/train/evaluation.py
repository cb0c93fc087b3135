"""Evaluation of a model: its loss over a text, and samples. Shared by training and `tinychat eval`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinychat.config.settings import Settings
from tinychat.events import Token
from tinychat.generate.answer import Answer
from tinychat.generate.engine import OVERLAP, window_starts
from tinychat.generate.prompts import PromptEncoder
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.graph_capture import capture_graph
from tinychat.model.ngrams import MIN_PROBABILITY
from tinychat.model.transformer import IGNORED, Transformer, cross_entropy
from tinychat.tokenizer.token_cache import Ids
from tinychat.train.batches import Batch, Rows, cut_document, cut_window, text_history

MAX_LOGITS = 1 << 24
"""Maximum number of logits of a batch."""
MAX_ROWS, MAX_CPU_TOKENS = 64, 4096
"""Maximum rows of a batch, and tokens on a CPU: batches that exceed the CPU's cache take 1.6 times as long."""


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation."""

    loss: float
    """Mean cross-entropy in nats per token."""
    tokens: int
    accuracy: float | None = None
    """Fraction of tokens to which the model gave the highest probability."""

    @property
    def perplexity(self) -> float:
        """e^loss; infinite on overflow."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    def bits_per_character(self, characters_per_token: float) -> float:
        """Return the loss in bits per character; NaN if `characters_per_token` is 0."""
        return self.loss / math.log(2) / characters_per_token if characters_per_token else math.nan


class MixtureMeter:
    """Collects what each part of a model with n-grams reaches alone, and its mean share of the mixture."""

    def __init__(self) -> None:
        self.tokens = 0
        """Number of tokens predicted."""
        self._sums = torch.zeros(4, 3, dtype=torch.float64)  # of loss, accuracy, share and presence, of each part

    def add(self, predicted: Tensor, shares: Tensor, targets: Tensor) -> None:
        """Add predictions [B, T, 3, V] and shares [B, T, 3] of the parts, as of `NGrams.components`."""
        counted = targets != IGNORED  # [B, T]
        predicted, shares, targets = predicted[counted], shares[counted], targets[counted]  # [N, 3, V], [N, 3], [N]
        probabilities = predicted.gather(-1, targets[:, None, None].expand(-1, 3, 1)).squeeze(-1)  # [N, 3]
        right = predicted.argmax(dim=-1) == targets.unsqueeze(-1)
        present = predicted.sum(dim=-1) > 0.5  # matches may find nothing
        figures = (-probabilities.clamp(min=MIN_PROBABILITY).log(), right & present, shares, present)
        self._sums += torch.stack([figure.double().sum(0).cpu() for figure in figures])
        self.tokens += len(targets)

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the mean share of each part, and what it reaches alone: the loss of layers and of counts.

        Matches have none, as they know of most tokens nothing: how often they find one, and how often that is right.
        """
        loss, right, share, present = (row / max(1, self.tokens) for row in self._sums)
        parts = {
            name: {"share": float(share[index]), "loss": float(loss[index]), "accuracy": float(right[index])}
            for index, name in enumerate(("layers", "counts"))
        }
        found = float(present[2])
        matches = {"share": float(share[2]), "found": found, "accuracy": float(right[2]) / found if found else 0.0}
        return {**parts, "matches": matches}


@torch.inference_mode()
def evaluate(
    model: Transformer,
    text: Ids | Rows,
    windows: int | None = None,
    *,
    trained_on: bool = False,
    meter: MixtureMeter | None = None,
    overlap: int = OVERLAP,
) -> Evaluation:
    """Return the mean cross-entropy of all tokens but the first, in f32, each predicted once.

    Tokens of a text, [N ≥ 2], are predicted from their own window of the context length. Each window but the first
    begins with the end of the one before, whose tokens only serve as context; the last one may be short. N-grams see
    all of the text before the window, too (see `TextHistory`). Each document is a row, truncated to the context length.

    Args:
        model: The model, on its device; its training mode is restored.
        text: Ids or documents.
        windows: Evaluate only this many windows or documents, spread evenly; None for all.
        trained_on: Whether the model counts its n-grams in this text: each fold is then predicted from the others.
        meter: Takes what each part of a model with n-grams predicts.
        overlap: How many inputs two windows of a running text share; at most half the context length.
    """
    context_length, device = model.config.context_length, model.head.weight.device
    if isinstance(text, Rows):  # the shortest first, to reduce padding
        indices, cut = np.argsort(text.lengths, kind="stable"), partial(cut_document, text)
    else:
        overlap = min(overlap, context_length // 2)
        indices = np.array(window_starts(len(text), context_length, overlap))
        cut = partial(cut_window, text, history=text_history(text, model.config), overlap=overlap)
    if windows is not None and windows < len(indices):
        indices = indices[np.linspace(0, len(indices) - 1, windows).round().astype(int)]
    max_rows = max(1, MAX_CPU_TOKENS // context_length) if device.type == "cpu" else MAX_ROWS
    batch_size = max(1, min(max_rows, MAX_LOGITS // (context_length * model.config.vocab_size)))
    was_training = model.training
    model.eval()
    total = torch.zeros((), dtype=torch.float64)
    correct, tokens = torch.zeros((), dtype=torch.long, device=device), 0
    mixed: list[tuple[Any, ...]] = []  # the inputs of `NGrams`
    hook = None
    if meter is not None and model.ngrams is not None:
        hook = model.ngrams.register_forward_pre_hook(lambda _, inputs: mixed.append(inputs))
    try:
        for first in range(0, len(indices), batch_size):
            rows = [cut(int(index), context_length) for index in indices[first : first + batch_size]]
            batch = Batch.of(rows, context_length).to(device)
            logits = model(
                batch.ids,
                encoder_output=None if batch.source is None else model.encode(batch.source),
                folds=batch.folds if trained_on else None,
                preceding=batch.preceding,
                followers=batch.followers,
            )
            total += cross_entropy(logits, batch.targets, "sum").double().cpu()
            correct += (logits.argmax(dim=-1) == batch.targets).sum()
            tokens += int((batch.targets != IGNORED).sum())
            if meter is not None and model.ngrams is not None:
                meter.add(*model.ngrams.components(*mixed.pop()), batch.targets)
    finally:
        model.train(was_training)
        if hook is not None:
            hook.remove()
    return Evaluation(float(total) / tokens, tokens, int(correct) / tokens)


def make_samples(
    model: Transformer,
    prompt_encoder: PromptEncoder,
    prompts: Sequence[str],
    seeds: Sequence[int],
    tokens: int,
    temperature: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Generate an answer of at most `tokens` tokens to each prompt, with its seed and a temperature or the default.

    All answers break off once `should_stop`, called before each step and token, returns True.
    """
    settings = Settings(max_tokens=tokens)
    if temperature is not None:
        settings = replace(settings, temperature=temperature)
    was_training = model.training
    model.eval()
    try:
        capture = capture_graph if model.head.weight.is_cuda else None
        batch = AnswerBatch(TorchEngine(model, capture=capture), should_stop)
        texts: dict[Answer, str] = {}
        for prompt, seed in zip(prompts, seeds, strict=True):
            answer = Answer(
                prompt_encoder.tokenizer,
                prompt_encoder.encode(prompt, max_tokens=tokens),
                lambda: settings,
                seed=seed,
                end_ids=prompt_encoder.end_ids,
                sources=prompt_encoder.encode_sentences(prompt),
            )
            batch.add(answer)
            texts[answer] = ""
        for answer, record in drive(batch):
            if isinstance(record, Token):
                texts[answer] += record.text
    finally:
        model.train(was_training)
    return list(texts.values())
