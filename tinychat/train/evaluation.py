"""How good a model is: its loss over a text and what it says. Training and `tinychat eval` share both functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from tinychat.config.settings import Settings
from tinychat.events import Token
from tinychat.generate.prompts import PromptEncoder
from tinychat.generate.stream import Answer, drive
from tinychat.generate.stream import Batch as AnswerBatch
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.transformer import IGNORED, Transformer, cross_entropy
from tinychat.tokenizer.token_cache import Ids
from tinychat.train.batches import Batch
from tinychat.train.rows import Rows, cut_document, cut_window

LARGEST_LOGITS = 1 << 24
"""numbers: so many logits are computed at once"""
MOST_ROWS, CACHED_TOKENS = 64, 4096
"""rows, and on a CPU tokens, that are computed at once; what a processor's cache cannot hold takes 1.6 times as long"""


@dataclass(frozen=True)
class Evaluation:
    """The mean loss, in nats, of so many predicted tokens."""

    loss: float
    tokens: int
    accuracy: float | None = None
    """the share of them that the model found likeliest"""

    @property
    def perplexity(self) -> float:
        """e^loss; infinite where that is more than a number can hold."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    def bits_per_character(self, characters_per_token: float) -> float:
        """The bits that a character takes, at so many characters a token."""
        return self.loss / math.log(2) / characters_per_token if characters_per_token else math.nan


@torch.inference_mode()
def evaluate(
    model: Transformer,
    text: Ids | Rows,
    windows: int | None = None,
    *,
    trained_on: bool = False,
) -> Evaluation:
    """The mean cross-entropy of each token but the first, in windows of the context that do not overlap, in f32.

    The first token of a window is predicted from the window before it alone, and the others from what stands before
    them in their own; the last window may be short. Of documents, each is a row: its tokens but the first are
    predicted, as many as the context holds.

    Args:
        model: on its device; it is left as it was, in training mode or not.
        text: ids [N], at least two; or documents, at least one.
        windows: look at only so many, or at so many documents, spread evenly; None: all.
        trained_on: the ids are what the model in training counts n-grams of: each fold is predicted from the others.
    """
    context_length, device = model.config.context_length, model.head.weight.device
    if isinstance(text, Rows):  # the shortest first, so that they need little padding
        indices, cut = np.argsort(text.lengths, kind="stable"), partial(cut_document, text)
    else:
        indices, cut = np.arange(0, len(text) - 1, context_length), partial(cut_window, text)
    if windows is not None and windows < len(indices):
        indices = indices[np.linspace(0, len(indices) - 1, windows).round().astype(int)]
    most_rows = max(1, CACHED_TOKENS // context_length) if device.type == "cpu" else MOST_ROWS
    rows_at_once = max(1, min(most_rows, LARGEST_LOGITS // (context_length * model.config.vocab_size)))
    was_training = model.training
    model.eval()
    total = torch.zeros((), dtype=torch.float64)
    hits = torch.zeros((), dtype=torch.long, device=device)
    tokens = 0
    try:
        for first in range(0, len(indices), rows_at_once):
            batch = Batch.of(
                [cut(int(index), context_length) for index in indices[first : first + rows_at_once]], context_length
            )
            ids, targets, folds, source = batch.to(device)
            encoder_output = None if source is None else model.encode(source)
            logits = model(ids, encoder_output=encoder_output, folds=folds if trained_on else None)
            total += cross_entropy(logits, targets, "sum").double().cpu()
            hits += (logits.argmax(dim=-1) == targets).sum()
            tokens += int((targets != IGNORED).sum())
    finally:
        model.train(was_training)
    return Evaluation(float(total) / tokens, tokens, int(hits) / tokens)


def make_samples(
    model: Transformer,
    prompt_encoder: PromptEncoder,
    prompts: Sequence[str],
    seeds: Sequence[int],
    tokens: int,
    temperature: float | None = None,
) -> list[str]:
    """An answer to each prompt with its seed; the model is left as it was, in training mode or not.

    Args:
        tokens: the most that an answer has.
        temperature: None: the usual one.
    """
    usual = Settings(max_tokens=tokens)
    settings = usual if temperature is None else replace(usual, temperature=temperature)
    was_training = model.training
    model.eval()
    try:
        batch = AnswerBatch(TorchEngine(model))
        texts: dict[Answer, str] = {}
        for prompt, seed in zip(prompts, seeds, strict=True):
            answer = Answer(
                prompt_encoder.tokenizer,
                prompt_encoder.encode(prompt, max_tokens=tokens),
                lambda: settings,
                seed=seed,
                end_ids=prompt_encoder.end_ids,
                source=prompt_encoder.encode_source(prompt),
            )
            batch.add(answer)
            texts[answer] = ""
        for answer, record in drive(batch):
            if isinstance(record, Token):
                texts[answer] += record.text
    finally:
        model.train(was_training)
    return list(texts.values())
