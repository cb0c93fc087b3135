"""The loss of a model on a text: what `tinychat eval` says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from tinychat.config.settings import Settings
from tinychat.corpus.corpus import SourceCorpus
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError, UsageError
from tinychat.generate.prompts import PromptEncoder
from tinychat.model.loading import choose_device, choose_matmul_precision, load_model
from tinychat.model.transformer import Transformer
from tinychat.store import paths
from tinychat.store.models import ModelInfo, read_source_tokenizer, read_tokenizer, read_training
from tinychat.tokenizer.token_cache import Ids, encode_corpus, join, split
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.evaluation import evaluate, make_samples
from tinychat.train.rows import Rows, encode_rows, join_rows, split_rows

Split = Literal["val", "train", "all"]
AT_ONCE = 64
"""pairs that are translated at once"""


@dataclass(frozen=True)
class Score:
    """What a model makes of a text; `loss` is in nats per token."""

    loss: float
    perplexity: float
    bits_per_character: float
    tokens: int
    characters: int
    accuracy: float | None = None
    """the share of the tokens that the model found likeliest"""
    exact_match: float | None = None
    """of pairs: the share whose greedy translation is the one in the text, character for character"""
    notices: tuple[str, ...] = ()


def score(
    info: ModelInfo,
    sources: Sequence[str],
    part: Split = "val",
    *,
    settings: Settings,
    column: str | None = None,
    field: str | None = None,
    exact: bool = False,
) -> Score:
    """The loss over a whole part of a text, in windows of the model's context that do not overlap.

    Args:
        info: the model.
        sources: as `tinychat train` takes them.
        part: `val` is the last tenth by position, as in training; `train` the rest. Of a mix, that of each source: the
            weights change nothing but this. A model of documents, a row each, has a tenth from all over for `val`.
        settings: of which the device and the threads count.
        column: of a table.
        field: of JSON lines.
        exact: translate each pair, too, and count exact matches.

    Raises:
        SourceError: the text cannot be read, or its part is too short to predict a token.
        UsageError: exact matches of a model that does not translate.
    """
    if exact and info.mode != "translation":
        raise UsageError(
            f"{info.name} is for {info.mode}: exact matches are counted of translations", "leave out --exact"
        )
    tokenizer = read_tokenizer(info.folder)
    corpus = read_sources(
        sources, cache=paths.datasets_folder(), mirror=paths.mirror(), column=column, field=field, mode=info.mode
    )
    texts = _read_rows(info, corpus, tokenizer, part) if _has_rows(info) else _read_ids(info, corpus, tokenizer, part)
    ids = texts.flat() if isinstance(texts, Rows) else texts
    if len(ids) < 2:
        problem = f"the {part} part of {corpus.name} has {len(ids)} tokens: nothing can be predicted"
        raise SourceError(problem, "give more text, or --split all to take all of it")
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = choose_device(settings.device)
    choose_matmul_precision(device)
    model = load_model(info, device)
    result = evaluate(model, texts)
    characters = tokenizer.count_characters(ids if isinstance(texts, Rows) else ids[1:])
    per_token = characters / result.tokens
    return Score(
        result.loss,
        result.perplexity,
        result.bits_per_character(per_token),
        result.tokens,
        characters,
        result.accuracy,
        match_exactly(model, texts, _translating(info, tokenizer)) if exact and isinstance(texts, Rows) else None,
        corpus.notices,
    )


def match_exactly(model: Transformer, pairs: Rows, prompt_encoder: PromptEncoder) -> float:
    """The share of the pairs whose greedy translation is the one that stands there, character for character.

    Args:
        pairs: with what the encoder reads; at least one.
        prompt_encoder: of a model that translates.
    """
    assert pairs.source is not None
    assert prompt_encoder.source_tokenizer is not None
    indices = np.argsort(pairs.lengths, kind="stable")  # so that those that are made at once end together
    hits = 0
    for first in range(0, len(indices), AT_ONCE):
        some = indices[first : first + AT_ONCE]
        asked = [prompt_encoder.source_tokenizer.decode(pairs.source.row(index).tolist()) for index in some]
        made = make_samples(
            model, prompt_encoder, asked, [0] * len(some), prompt_encoder.context_length, temperature=0.0
        )
        hits += sum(
            text == prompt_encoder.tokenizer.decode(pairs.row(index).tolist())
            for text, index in zip(made, some, strict=True)
        )
    return hits / len(indices)


def _translating(info: ModelInfo, tokenizer: Tokenizer) -> PromptEncoder:
    """How prompts reach a model that translates."""
    reader = read_source_tokenizer(info.folder) or tokenizer
    return PromptEncoder(tokenizer, int(info.architecture["context_length"]), source_tokenizer=reader)


def _has_rows(info: ModelInfo) -> bool:
    """Whether the model was trained on documents, a row each, as translations are."""
    data = read_training(info.folder).get("recipe", {}).get("data", {})
    return info.mode == "translation" or data.get("packing") is False


def _read_rows(info: ModelInfo, corpus: SourceCorpus, tokenizer: Tokenizer, part: Split) -> Rows:
    reader = (read_source_tokenizer(info.folder) or tokenizer) if info.mode == "translation" else None
    folder = paths.ids_folder()
    texts = [
        encode_rows(source.corpus, tokenizer, folder, template=info.template, source_tokenizer=reader)
        for source in corpus.sources
    ]
    return join_rows([split_rows(text, part) for text in texts])


def _read_ids(info: ModelInfo, corpus: SourceCorpus, tokenizer: Tokenizer, part: Split) -> Ids:
    files = [
        encode_corpus(source.corpus, tokenizer, paths.ids_folder(), template=info.template) for source in corpus.sources
    ]
    return join([split(file.ids, part) for file in files])
