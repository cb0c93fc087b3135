"""Perplexity: the loss of a model on a text, and the exact matches of a translation model, for `tinychat eval`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tinychat.config.settings import Settings
from tinychat.corpus.corpus import SourceCorpus
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError, UsageError
from tinychat.generate.engine import OVERLAP
from tinychat.generate.prompts import PromptEncoder
from tinychat.model.config import ModelConfig
from tinychat.model.loading import choose_device, choose_matmul_precision, load_model
from tinychat.model.transformer import Transformer
from tinychat.store import paths
from tinychat.store.models import ModelInfo, read_tokenizers, read_training
from tinychat.tokenizer.token_cache import Ids, encode_corpus
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Rows, encode_rows, join_splits
from tinychat.train.data import find_unknown, has_seen, predictable
from tinychat.train.evaluation import evaluate, make_samples
from tinychat.train.split import VALIDATION_FRACTION, Part, TextSplit, cut_validation

BATCH_SIZE = 64
"""Number of texts to translate together."""


@dataclass(frozen=True)
class Score:
    """The result of an evaluation; the loss is the cross-entropy in nats per token."""

    loss: float
    perplexity: float
    bits_per_character: float
    tokens: int
    """Number of tokens predicted."""
    characters: int
    """Number of characters of these tokens."""
    accuracy: float | None = None
    """Fraction of tokens that were the likeliest under the model."""
    exact_match: float | None = None
    """Fraction of pairs whose greedy translation equals the target, character for character."""
    notices: tuple[str, ...] = ()
    """Observations made in reading the text."""


def score(
    info: ModelInfo,
    sources: Sequence[str],
    part: Part = "val",
    *,
    settings: Settings,
    column: str | None = None,
    field: str | None = None,
    exact: bool = False,
    overlap: int = OVERLAP,
) -> Score:
    """Evaluate a model on a part of some sources, in windows of its context length that overlap by some tokens.

    `val` is the last 10 % of each source, or the fraction held out in training, `train` the rest, `all` both. For a
    model trained on documents as rows, `val` is that fraction of the rows, chosen by a hash. The weights of a mix are
    ignored. Of the settings, device and threads count. With `exact`, each pair is translated as well, and exact
    matches are counted.

    Raises:
        SourceError: If the text cannot be read, or the part is too short to predict a token.
        UsageError: If `exact` is set for a model that does not translate.
        ModelError: If the model's architecture cannot be read.
    """
    if exact and info.mode != "translation":
        problem = f"{info.name} is for {info.mode}: exact matches are counted of translations"
        raise UsageError(problem, "leave out --exact")
    config = ModelConfig.from_dict(info.architecture)
    tokenizer, source = read_tokenizers(info)
    corpus = read_sources(
        sources, cache=paths.datasets_folder(), mirror=paths.mirror(), column=column, field=field, mode=info.mode
    )
    source_tokenizer = source if info.mode == "translation" else None
    texts, notices = _read(info, config, corpus, tokenizer, source_tokenizer, part)
    predicted = texts.predicted(config.context_length) if isinstance(texts, Rows) else texts[1:]
    if not len(predicted):
        problem = f"nothing can be predicted in the {part} part of {corpus.name}: it has no text of two tokens or more"
        raise SourceError(problem, "give more text, or --split all to take all of it")
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    device = choose_device(settings.device)
    choose_matmul_precision(device)
    model = load_model(info, device)
    result = evaluate(model, texts, overlap=overlap)
    characters = tokenizer.count_characters(predicted)
    exact_match = None
    if exact and isinstance(texts, Rows):
        encoder = PromptEncoder(tokenizer, model.config.context_length, source_tokenizer=source_tokenizer)
        exact_match = exact_match_rate(model, texts, encoder)
    bits_per_character = result.bits_per_character(characters / result.tokens)
    measured = (result.loss, result.perplexity, bits_per_character, result.tokens, characters, result.accuracy)
    return Score(*measured, exact_match, (*corpus.notices, *notices))


def exact_match_rate(model: Transformer, pairs: Rows, prompt_encoder: PromptEncoder) -> float:
    """Return the fraction of pairs, at least one, whose greedy translation equals the target."""
    assert pairs.source is not None
    assert prompt_encoder.source_tokenizer is not None
    indices = np.argsort(pairs.lengths, kind="stable")  # translations of a batch have similar lengths
    matches = 0
    for first in range(0, len(indices), BATCH_SIZE):
        batch = indices[first : first + BATCH_SIZE]
        prompts = [prompt_encoder.source_tokenizer.decode(pairs.source.row(index).tolist()) for index in batch]
        targets = [prompt_encoder.tokenizer.decode(pairs.row(index).tolist()) for index in batch]
        longest, seeds = prompt_encoder.context_length, [0] * len(batch)
        translations = make_samples(model, prompt_encoder, prompts, seeds, longest, temperature=0.0)
        matches += sum(one == other for one, other in zip(translations, targets, strict=True))
    return matches / len(indices)


def _read(
    info: ModelInfo,
    config: ModelConfig,
    corpus: SourceCorpus,
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer | None,
    part: Part,
) -> tuple[Rows | Ids, list[str]]:
    """Encode a part: in rows if the model was trained on documents or pairs as rows, else as one running text.

    Return it with notices: what the vocabulary lacks of the whole text, whether n-grams were counted in the part, and
    whether it is longer than what a model of documents has seen.

    Sources that are running texts have no documents: they are read as such, however the model was trained. For a model
    trained on documents, which has seen no text without the start of one, the text starts with that.

    Raises:
        SourceError: If some sources are running texts and others have documents that make rows.
    """
    folder, template = paths.ids_folder(), info.template
    training = read_training(info.folder, info.files)
    options, data = training.get("recipe", {}).get("data", {}), training.get("data", {})
    split = TextSplit(options.get("validation_fraction", VALIDATION_FRACTION), by_text="val_fraction" in data)
    is_own_split = part == "val" and data.get("fingerprint") == corpus.fingerprint
    measured = data.get("val_fraction", 1.0) if is_own_split else 1.0
    running = [source.corpus.name for source in corpus.sources if source.corpus.single]
    knows_documents = options.get("packing") is False
    has_rows = knows_documents and len(running) < len(corpus.sources)
    if has_rows and running:
        raise SourceError(f"{running[0]} is one running text, and other sources have documents", "evaluate it alone")
    texts: list[Ids | Rows] = []
    parts: list[Ids | Rows] = []
    for source in corpus.sources:
        if info.mode != "translation" and not has_rows:
            texts.append(encode_corpus(source.corpus, tokenizer, folder, template=template).ids)
            parts.append(split.take(part, texts[-1], tokenizer))
        else:
            rows = encode_rows(source.corpus, tokenizer, folder, template=template, source_tokenizer=source_tokenizer)
            texts.append(rows)
            parts.append(predictable(split.take(part, rows, tokenizer, split.choose_documents(source.corpus))))
    notices = find_unknown(info.name, corpus, texts, tokenizer, source_tokenizer)
    if part != "val" and info.architecture.get("ngram_order") and has_seen(training, corpus):
        notices.append(f"{info.name} counted n-grams in this text, and knows it by heart: its loss elsewhere is higher")
    joined = join_splits([cut_validation(text, measured) for text in parts])
    if knows_documents and not isinstance(joined, Rows):
        joined = _start_document(joined, tokenizer)
        if len(joined) - 1 > config.context_length:
            notices.append(
                f"{info.name} was trained on documents: of {corpus.name}, one running text, it sees only the first "
                f"{config.context_length:,} tokens from a beginning"
            )
    return joined, notices


def _start_document(ids: Ids, tokenizer: Tokenizer) -> Ids:
    """Return the ids of a text, [N], after those that precede a document, as `/score` does."""
    beginning = tokenizer.beginning()
    is_started = ids[: len(beginning)].tolist() == beginning
    return ids if is_started else np.append(np.array(beginning, ids.dtype), ids)
