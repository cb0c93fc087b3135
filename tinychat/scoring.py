"""The loss of a model on a text: what `tinychat eval` says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from tinychat.errors import SourceError
from tinychat.model.loading import choose_device, load_model
from tinychat.settings import Settings
from tinychat.store import places
from tinychat.store.models import ModelInfo, read_source_tokenizer, read_tokenizer, read_training
from tinychat.text.arrays import Ids
from tinychat.text.corpus import Corpus
from tinychat.text.ids import count_characters, encode_corpus, join, split
from tinychat.text.rows import Rows, encode_rows, join_rows, split_rows
from tinychat.text.sources import read_sources
from tinychat.text.tokenizers import Tokenizer
from tinychat.train.evaluation import evaluate

Split = Literal["val", "train", "all"]


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
    notices: tuple[str, ...] = ()


def score(
    info: ModelInfo,
    sources: Sequence[str],
    part: Split = "val",
    *,
    settings: Settings,
    column: str | None = None,
    field: str | None = None,
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

    Raises:
        SourceError: the text cannot be read, or its part is too short to predict a token.
    """
    tokenizer = read_tokenizer(info.folder)
    corpus = read_sources(
        sources, cache=places.datasets_folder(), mirror=places.mirror(), column=column, field=field, mode=info.mode
    )
    texts = _read_rows(info, corpus, tokenizer, part) if _has_rows(info) else _read_ids(info, corpus, tokenizer, part)
    ids = texts.flat() if isinstance(texts, Rows) else texts
    if len(ids) < 2:
        problem = f"the {part} part of {corpus.name} has {len(ids)} tokens: nothing can be predicted"
        raise SourceError(problem, "give more text, or --split all to take all of it")
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision("medium" if settings.device in ("auto", "cpu") else "high")
    result = evaluate(load_model(info, choose_device(settings.device)), texts)
    characters = count_characters(ids if isinstance(texts, Rows) else ids[1:], tokenizer)
    per_token = characters / result.tokens
    return Score(
        result.loss,
        result.perplexity,
        result.bits_per_character(per_token),
        result.tokens,
        characters,
        result.accuracy,
        corpus.notices,
    )


def _has_rows(info: ModelInfo) -> bool:
    """Whether the model was trained on documents, a row each, as translations are."""
    data = read_training(info.folder).get("recipe", {}).get("data", {})
    return info.mode == "translation" or data.get("rows") == "documents"


def _read_rows(info: ModelInfo, corpus: Corpus, tokenizer: Tokenizer, part: Split) -> Rows:
    reader = (read_source_tokenizer(info.folder) or tokenizer) if info.mode == "translation" else None
    folder = places.ids_folder()
    texts = [
        encode_rows(source.corpus, tokenizer, folder, template=info.template, reader=reader)
        for source in corpus.sources
    ]
    return join_rows([split_rows(text, part) for text in texts])


def _read_ids(info: ModelInfo, corpus: Corpus, tokenizer: Tokenizer, part: Split) -> Ids:
    files = [
        encode_corpus(source.corpus, tokenizer, places.ids_folder(), template=info.template)
        for source in corpus.sources
    ]
    return join([split(file.ids, part) for file in files])
