"""Training data: reads a recipe's sources, tokenizes them, and splits them for training and validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import cast

from tinychat.corpus.corpus import Corpus, Source, SourceCorpus, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.corpus.registry import KNOWN, fetch
from tinychat.corpus.sources import read_sources
from tinychat.corpus.types import Mode
from tinychat.errors import SourceError, UsageError
from tinychat.store import paths
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import Ids, encode_corpus, join
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.tokenizer.training import train_tokenizer
from tinychat.train.init_from import BaseModel, check_text, read_base_model
from tinychat.train.planner import SourceFacts, SplitSize, TextFacts, choose_tokenizer, split_size
from tinychat.train.recipe import Recipe
from tinychat.train.rows import FOLDS, Rows, encode_rows, join_rows, split_folds, split_rows

INLINE_NAME = "the recipe's own text"
"""Name of the texts that a recipe holds itself."""
SAMPLE_CHARACTERS = 100_000
"""Number of characters that the choice of a tokenizer is based on."""


@dataclass(frozen=True)
class TrainingText:
    """A tokenized text, split for training and validation."""

    facts: TextFacts
    mode: Mode
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None
    """Tokenizer of the encoder's input; None without an encoder."""
    template: ChatTemplate | None
    parts: tuple[Ids | Rows, ...]
    """Training split of each source."""
    val: Ids | Rows
    """Validation splits of all sources, concatenated; empty if the text is too short."""
    prompt: str
    """Default prompt of samples."""
    fingerprint: str
    notices: tuple[str, ...]
    base: BaseModel | None = None
    """Model that the run started from, if any."""

    @cached_property
    def train(self) -> Ids:
        """Training splits of all sources, concatenated in memory, [N]."""
        return join([_flat(part) for part in self.parts])

    def ngram_folds(self, tokens: int) -> list[Ids]:
        """Return about `tokens` training tokens in `FOLDS` folds, drawn from each source in proportion to its share."""
        parts = zip(map(split_folds, map(_flat, self.parts)), self.facts.sources, strict=True)
        limits = [(folds, max(1, int(tokens * source.share / FOLDS))) for folds, source in parts]
        return [join([folds[fold][:limit] for folds, limit in limits]) for fold in range(FOLDS)]

    @cached_property
    def eval_text(self) -> Ids | Rows:
        """Text that losses are measured on: the validation split, or the training split if that is empty."""
        return self.val if len(self.val) else _join(self.parts)

    @property
    def split(self) -> str:
        """Name of the split of `eval_text`: `val` or `train`."""
        return "val" if len(self.val) else "train"

    def first_eval_ids(self, count: int) -> list[int]:
        """Return the first ids of `eval_text`."""
        documents = self.eval_text.documents() if isinstance(self.eval_text, Rows) else [self.eval_text]
        return [int(id) for id in islice(chain.from_iterable(documents), count)]

    @cached_property
    def characters_per_token(self) -> float:
        """Characters per predicted token of `eval_text`; the first token of a document is not predicted."""
        ids = _flat(self.eval_text)
        tokens = int((self.eval_text.lengths - 1).sum()) if isinstance(self.eval_text, Rows) else len(ids)
        return self.tokenizer.count_characters(ids) / max(1, tokens)

    def count_truncated(self, context_length: int) -> int:
        """Return the number of documents that are longer than a context length."""
        parts = [part for part in (*self.parts, self.val) if isinstance(part, Rows)]
        return sum(int((part.lengths > context_length + 1).sum()) for part in parts)


def read_text(recipe: Recipe, run: RunFolder) -> TrainingText:
    """Read the sources of a recipe, train or load its tokenizer, and encode the text.

    Args:
        recipe: The recipe.
        run: The run's folder; its tokenizer is used, or written if there is none yet.

    Raises:
        SourceError: If a source cannot be read or contains no text.
        TokenizerError: If the tokenizer cannot be trained or read.
        UsageError: If options contradict the kind of text, or the base model lacks the tokens to chat.
    """
    corpus = _read_corpus(recipe)
    base = read_base_model(run)
    translates = corpus.mode == "translation"
    _check(recipe, corpus)
    target = corpus.target_side if translates else corpus
    tokenizer = _find_tokenizer(run.tokenizer_file, recipe, target, corpus.mode)
    source_tokenizer = None
    if translates:
        source_tokenizer = _find_tokenizer(run.source_tokenizer_file, recipe, corpus.source_side, corpus.mode)
    if tokenizer.vocab_size < 2:
        raise SourceError(f"{corpus.name} is one character over and over: nothing can be learned", "give it more text")
    template = _template(recipe, corpus, base, tokenizer)
    texts: list[Ids | Rows] = []
    for source in corpus.sources:
        if translates or recipe.packing is False:
            rows = encode_rows(
                source.corpus, tokenizer, paths.ids_folder(), template=template, source_tokenizer=source_tokenizer
            )
            texts.append(rows)
        else:
            texts.append(encode_corpus(source.corpus, tokenizer, paths.ids_folder(), template=template).ids)
    sources = tuple(map(_facts, corpus.sources, texts))
    facts = TextFacts(
        name=corpus.name,
        characters=corpus.characters,
        documents=corpus.documents_count,
        tokens=sum(source.tokens for source in sources),
        vocab_size=base.config.vocab_size if base else tokenizer.vocab_size,
        tokenizer=tokenizer.kind,
        mix=sources if len(sources) > 1 else (),
        rows=sum(source.rows for source in sources),
        longest_row=max(text.longest if isinstance(text, Rows) else 0 for text in texts),
        source_vocab_size=source_tokenizer.vocab_size if source_tokenizer else None,
    )
    fraction = recipe.validation_fraction
    parts = [_split(text, split_size(source, fraction), fraction) for text, source in zip(texts, sources, strict=True)]
    return TrainingText(
        facts=facts,
        mode=corpus.mode,
        tokenizer=tokenizer,
        source_tokenizer=source_tokenizer,
        template=template,
        parts=tuple(train for train, _ in parts),
        val=_join([val for _, val in parts]),
        prompt=_first_prompt(corpus, tokenizer),
        fingerprint=corpus.fingerprint,
        notices=(*corpus.notices, *(check_text(base, corpus, tokenizer) if base else ())),
        base=base,
    )


def _read_corpus(recipe: Recipe) -> SourceCorpus:
    mode = cast("Mode | None", recipe.mode)
    if recipe.texts:
        return TextCorpus(INLINE_NAME, mode or "completion", [InlineTexts(recipe.texts, INLINE_NAME)])
    return read_sources(
        recipe.sources,
        cache=paths.datasets_folder(),
        mirror=paths.mirror(),
        column=recipe.column,
        field=recipe.field,
        mode=mode,
    )


def _check(recipe: Recipe, corpus: Corpus) -> None:
    """Raise UsageError if an option contradicts the kind of text."""
    translates = corpus.mode == "translation"
    if translates and recipe.packing:
        raise UsageError("--packing true cannot be of translations", "leave it out: each is a row of its own")
    if translates and recipe.n_encoder_layer == 0:
        raise UsageError("--n-encoder-layer 0 cannot translate", "leave it out, or give it at least 1")
    if recipe.n_encoder_layer and not translates:
        raise UsageError(
            f"--n-encoder-layer {recipe.n_encoder_layer} is for translations, and {corpus.name} is none",
            "leave it out, or add --mode translation",
        )


def _flat(text: Ids | Rows) -> Ids:
    return text.flat() if isinstance(text, Rows) else text


def _join(parts: Sequence[Ids | Rows]) -> Ids | Rows:
    rows = [part for part in parts if isinstance(part, Rows)]
    return join_rows(rows) if rows else join([part for part in parts if not isinstance(part, Rows)])


def _split(text: Ids | Rows, size: SplitSize, fraction: float) -> tuple[Ids | Rows, Ids | Rows]:
    """Split a text into its training and validation parts."""
    if isinstance(text, Rows):
        return split_rows(text, "train", fraction), split_rows(text, "val", fraction)
    return text[: size.train_tokens], text[size.train_tokens :]


def _template(recipe: Recipe, corpus: Corpus, base: BaseModel | None, tokenizer: Tokenizer) -> ChatTemplate | None:
    if corpus.mode != "chat":
        return None
    if base is None:
        roles = {} if recipe.role_tokens else {"user": "", "assistant": ""}
        user_prefix = " " if tokenizer.has_spaces_in_words else ""
        return ChatTemplate(**roles, user_prefix=user_prefix, lowercase_all_caps=recipe.lowercase_all_caps)
    if base.info.template is None:
        problem = f"{base.info.name} has no tokens for turns, and cannot go on with conversations"
        raise UsageError(problem, "--mode completion takes their text alone")
    return base.info.template


def _facts(source: Source, text: Ids | Rows) -> SourceFacts:
    corpus = source.corpus
    rows = len(text) if isinstance(text, Rows) else 0
    tokens = int(text.lengths.sum()) if isinstance(text, Rows) else len(text)
    return SourceFacts(
        corpus.name, source.fraction, corpus.characters, corpus.documents_count, tokens, corpus.fingerprint, rows
    )


def _find_tokenizer(path: Path, recipe: Recipe, corpus: Corpus, mode: Mode) -> Tokenizer:
    """Load a run's tokenizer; if there is none yet, load or train the recipe's and save it."""
    if path.is_file():
        return load_tokenizer(path)
    sample = "".join(chunk.text for chunk in islice(corpus.chunks(), 4))[:SAMPLE_CHARACTERS]
    kind, vocab_size = choose_tokenizer(recipe, corpus.characters, sample, mode)
    if Path(kind).exists():
        tokenizer = load_tokenizer(Path(kind))
    elif kind in KNOWN:
        tokenizer = load_tokenizer(fetch(kind, cache=paths.datasets_folder(), mirror=paths.mirror()))
    else:
        special_tokens: dict[Mode, tuple[str, ...]] = {
            "completion": () if corpus.single else ("end",),
            "chat": ("end", "user", "assistant") if recipe.role_tokens else ("end",),
            "translation": ("begin", "end"),
        }
        tokenizer = train_tokenizer(kind, corpus, vocab_size, special_tokens[mode])
    tokenizer.save(path)
    return tokenizer


def _first_prompt(corpus: Corpus, tokenizer: Tokenizer) -> str:
    """Return a prompt as the text would start: the first user message, a newline, or nothing for documents."""
    if corpus.mode != "completion":
        conversation = next(corpus.conversations())
        return next((message.text for message in conversation.messages if message.role == "user"), "")
    return "\n" if corpus.single and not tokenizer.unknown("\n") else ""
