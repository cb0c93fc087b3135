"""Training data: the tokenized and split sources of a recipe, and the model that it starts from. Needs no torch."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tinychat.corpus.corpus import Corpus, MixPart, SourceCorpus, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.corpus.registry import KNOWN, fetch
from tinychat.corpus.sources import read_sources, split_weight
from tinychat.corpus.types import Chunk, Mode
from tinychat.errors import SourceChangedError, SourceError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.store import paths
from tinychat.store.models import CONFIG, WEIGHTS, ModelInfo, check_ids, read_info, read_training, read_weights
from tinychat.store.runs import RunFolder
from tinychat.textutil import duration, percent
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate
from tinychat.tokenizer.token_cache import Ids, encode_corpus, join
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.tokenizer.training import count_codes, cut_documents, train_tokenizer
from tinychat.train.batches import (
    FOLDS,
    Batches,
    Positions,
    Rows,
    encode_rows,
    join_splits,
    make_chat_loss_mask,
    split_folds,
)
from tinychat.train.planner import choose_tokenizer
from tinychat.train.recipe import Recipe
from tinychat.train.sizes import SourceFacts, TextFacts
from tinychat.train.split import TextSplit, cut_validation

if TYPE_CHECKING:
    from torch import Tensor

INLINE_NAME = "the recipe's own text"
"""Name of the texts that a recipe holds itself."""
SAMPLE_CHARACTERS = 100_000
"""Number of characters that the choice of a tokenizer is based on."""
CHAT_MARGIN = 0.02
"""Fraction of conversations, before those held out, that a vocabulary is not trained on either."""
MAX_READINGS = 3
"""Number of times that a text which changes while it is read is tried."""
READING_SPEED = 600e6
"""Bytes a second that no machine has exceeded in reading a text."""
MIN_READING_SECONDS, MAX_READING_FRACTION = 0.5, 0.75
"""Seconds after which the speed of reading is judged, and maximum fraction of a run by the clock that it may take."""
MAX_SHOWN = 8
"""Maximum number of unknown characters, or words, that a notice lists."""


def has_seen(training: Mapping[str, Any], corpus: SourceCorpus) -> bool:
    """Return whether a model was trained on this text, or on one that a mix has in common, by its `training.json`."""
    data = training.get("data") or {}
    parts = data.get("mix")
    texts = (data, *(parts if isinstance(parts, list) else ()))
    seen = [one.get("fingerprint") for one in texts if isinstance(one, dict)]
    return any(text.fingerprint in seen for text in (corpus, *(source.corpus for source in corpus.sources)))


@dataclass(frozen=True)
class BaseModel:
    """The model that a run started from (`--from`), as copied at its start."""

    info: ModelInfo
    fingerprint: str
    """SHA-256 of the weights file."""
    training: dict[str, Any] = field(default_factory=dict)
    """Its `training.json`; empty if it has none."""

    @property
    def packing(self) -> bool | None:
        """Whether the model was trained on windows, false for documents; None if that is not known."""
        packing = self._data_fields.get("packing")
        return packing if isinstance(packing, bool) else None

    @property
    def validation_fraction(self) -> float:
        """Fraction of its text that the model was not trained on; 1 if that is not known."""
        fraction = self._data_fields.get("validation_fraction")
        return fraction if isinstance(fraction, float) and 0 < fraction < 1 else 1.0

    @property
    def is_split_by_text(self) -> bool:
        """Whether its documents were held out by a hash of their text, not of their ids, as of older models."""
        return "val_fraction" in (self.training.get("data") or {})

    @property
    def _data_fields(self) -> dict[str, Any]:
        """Section `data` of its recipe."""
        return (self.training.get("recipe") or {}).get("data") or {}

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_dict(self.info.architecture)

    def to_dict(self) -> dict[str, str]:
        """Return the model's entry in `training.json`."""
        return {"name": self.info.name, "description": self.info.description, "weights": self.fingerprint}

    def weights(self, context_length: int) -> "dict[str, Tensor]":
        """Return the weights, with learned positional embeddings truncated to a context length."""
        weights = read_weights(self.info)
        if self.config.position == "learned":
            for name in ("encoder.position.table.weight", "decoder.position.table.weight"):
                if name in weights:
                    weights[name] = weights[name][:context_length]
        return weights


@dataclass(frozen=True)
class TrainingText:
    """A tokenized text, split for training and validation."""

    facts: TextFacts
    mode: Mode
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None
    """Tokenizer of the encoder's input; None without an encoder."""
    template: ConversationTemplate | None
    parts: tuple[Ids | Rows, ...]
    """Training split of each source."""
    vals: tuple[Ids | Rows, ...]
    """Validation split of each source; empty if that is too short."""
    prompt: str
    """Default prompt of samples."""
    fingerprint: str
    notices: tuple[str, ...]
    validation_fraction: float = 0.1
    """Fraction that is held out: the recipe's, or less if the base model has seen the rest of this very text."""
    base: BaseModel | None = None
    """Model that the run started from, if any."""
    is_known: bool = False
    """Whether that model was trained on this text, or on a part of the mix."""
    _characters_per_token: dict[int, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was counted already, by context length."""

    def with_less_validation(self, fraction: float) -> "TrainingText":
        """Return this text with only a fraction of what is held out as validation splits; the rest is left out."""
        if fraction == 1:
            return self
        return replace(self, vals=tuple(cut_validation(val, fraction) for val in self.vals))

    @cached_property
    def val(self) -> Ids | Rows:
        """Validation splits of all sources, concatenated; empty if all are too short."""
        return join_splits(self.vals)

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
        return self.val if len(self.val) else join_splits(self.parts)

    @property
    def split(self) -> str:
        """Name of the split of `eval_text`: `val` or `train`."""
        return "val" if len(self.val) else "train"

    def batches(self, recipe: Recipe, config: ModelConfig, row_length: int, batch_size: int) -> Batches:
        """Return the batches of the training splits; windows, or what is read of a document, have `row_length` ids."""
        shares = [source.share for source in self.facts.sources]
        loss_mask = make_chat_loss_mask(
            recipe.user_loss_fraction, recipe.reply_loss_fraction, self.template, self.tokenizer, recipe.seed
        )
        return Batches(self.parts, row_length, batch_size, recipe.seed, shares, recipe.stride, loss_mask, config)

    def first_eval_ids(self, count: int) -> list[list[int]]:
        """Return the first `count` ids of `eval_text`: a list for each document, or one of a continuous text."""
        text = self.eval_text
        rows = (text.row(index) for index in range(len(text))) if isinstance(text, Rows) else iter([text])
        documents = list[list[int]]()
        while count > 0 and (row := next(rows, None)) is not None:
            documents.append([int(id) for id in row[:count]])
            count -= len(documents[-1])
        return documents

    def characters_per_token(self, context_length: int) -> float:
        """Return the characters per token of `eval_text` that a model of some context length predicts, as `eval` does.

        It predicts neither the first token of a document or text nor what is beyond its context.
        """
        if context_length not in self._characters_per_token:
            text = self.eval_text
            ids = text.predicted(context_length) if isinstance(text, Rows) else text[1:]
            self._characters_per_token[context_length] = self.tokenizer.count_characters(ids) / max(1, len(ids))
        return self._characters_per_token[context_length]

    def count_truncated(self, context_length: int) -> int:
        """Return the number of documents that are longer than a context length, or pairs of which one side is."""
        parts = [part for part in (*self.parts, self.val) if isinstance(part, Rows)]
        are_long = (
            part.lengths > context_length + 1
            if part.source is None
            else (part.lengths > context_length + 1) | (part.source.lengths > context_length)
            for part in parts
        )
        return sum(int(one.sum()) for one in are_long)


@dataclass(frozen=True)
class ReadingClock:
    """Tells as soon as it shows that the time of a run does not suffice to read its text."""

    minutes: float | None = None
    """Time limit of the run; None without one."""
    started: float = 0.0
    """When the person gave the command, by `now`."""
    now: Callable[[], float] = time.monotonic

    def check_size(self, size: int, name: str) -> None:
        """Check the bytes to read before the first of them is read: by the highest speed seen anywhere."""
        self._check(name, self.now() - self.started + size / READING_SPEED)

    def watch(self, name: str, characters: int) -> Callable[[int], None]:
        """Return a function to call with the number of characters read so far, of so many in all.

        Its time begins with its first call: the sides of pairs are read one after the other.
        """
        first: tuple[float, int] | None = None

        def check(done: int) -> None:
            nonlocal first
            first = first or (self.now(), done)
            began, skipped = first
            took = self.now() - began
            if took >= MIN_READING_SECONDS and done > skipped:
                self._check(name, began - self.started + took * max(1.0, characters / (done - skipped)))

        return check

    def watched(self, name: str, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield chunks, of which a vocabulary is trained, while there is time."""
        for chunk in chunks:
            self._check(name, self.now() - self.started)
            yield chunk

    def _check(self, name: str, seconds: float) -> None:
        if self.minutes is not None and seconds > MAX_READING_FRACTION * 60 * self.minutes:
            enough = math.ceil(4 * 2 * seconds / 60) / 4
            raise UsageError(
                f"--minutes {self.minutes:g} is too short for {name}: to read it takes about {duration(seconds)}",
                f"give it --minutes {enough:g} or more, or less text",
            )


def read_text(recipe: Recipe, run: RunFolder, clock: ReadingClock = ReadingClock()) -> TrainingText:
    """Read the sources of a recipe and encode them with the run's tokenizer, which is trained if there is none yet.

    All of it is of one state of the files: if one of them changes meanwhile, they are read again.

    Raises:
        SourceError: If a source cannot be read, contains no text, or changes again and again.
        TokenizerError: If the tokenizer cannot be trained or read.
        UsageError: If options contradict the kind of text, the base model lacks the tokens to chat, or there is no
            time to read the text.
    """
    changes: list[str] = []
    while True:
        try:
            text = _read_text(recipe, run, clock)
            return replace(text, notices=(*changes, *text.notices))
        except SourceChangedError as error:
            changes.append(f"{error.problem}, and is read again")
            if len(changes) == MAX_READINGS:
                raise


def _read_text(recipe: Recipe, run: RunFolder, clock: ReadingClock) -> TrainingText:
    files = [Path(split_weight(source)[0]) for source in recipe.sources]
    clock.check_size(sum(path.stat().st_size for path in files if path.is_file()), ", ".join(map(str, files[:3])))
    corpus = _read_corpus(recipe)
    base = _read_base_model(run)
    _check(recipe, corpus)
    translates = corpus.mode == "translation"
    split, is_known = TextSplit(recipe.validation_fraction), base is not None and has_seen(base.training, corpus)
    packing = _choose_packing(recipe, corpus, base, is_known=is_known)
    if base is not None and is_known:
        split = TextSplit(min(split.fraction, base.validation_fraction), base.is_split_by_text)
    has_rows = translates or packing is False
    held_out = [
        split.choose_documents(source.corpus) if has_rows and not source.corpus.single else None
        for source in corpus.sources
    ]
    tokenizer, source_tokenizer = _find_tokenizers(run, recipe, corpus, held_out, clock)
    source_vocab_size = source_tokenizer.vocab_size if source_tokenizer else None
    if base is not None:
        if translates and not base.config.encoder_decoder:
            raise UsageError(f"{base.info.name} has no encoder to translate with", "train without --from")
        check_ids(tokenizer, base.config.vocab_size, run.tokenizer_file)
        if source_tokenizer:
            source_vocab_size = base.config.source_vocab_size or base.config.vocab_size
            check_ids(source_tokenizer, source_vocab_size, run.source_tokenizer_file)
    template = _template(recipe, corpus, base, tokenizer)
    turn_tokens = template.turn_tokens(tokenizer) if isinstance(template, ChatTemplate) else None
    if base is not None and base.config.turn_attention:  # also where its text is no conversation
        turn_tokens = (base.config.turn_token, base.config.reply_token)
    texts = _encode(corpus, tokenizer, source_tokenizer, template, clock, has_rows=has_rows)
    # Only now: a resumed run must not find the tokenizer of a text that has changed since.
    _save_tokenizer(tokenizer, run.tokenizer_file)
    _save_tokenizer(source_tokenizer, run.source_tokenizer_file)
    train, vals = (
        tuple(split.take(part, text, tokenizer, chosen) for text, chosen in zip(texts, held_out, strict=True))
        for part in ("train", "val")
    )
    train, vals = (tuple(map(predictable, part)) for part in (train, vals))
    sources = tuple(map(_facts, corpus.sources, texts, vals))
    facts = TextFacts(
        name=corpus.name,
        characters=corpus.characters,
        documents=corpus.documents_count,
        tokens=sum(source.tokens for source in sources),
        vocab_size=base.config.vocab_size if base else tokenizer.vocab_size,
        tokenizer=tokenizer.kind,
        measured=sources,
        rows=sum(source.rows for source in sources),
        longest_row=max(text.longest if isinstance(text, Rows) else 0 for text in texts),
        source_vocab_size=source_vocab_size,
        turn_tokens=turn_tokens,
    )
    notices = [*corpus.notices]
    if base is not None and split.fraction < recipe.validation_fraction:
        notices.append(
            f"{base.info.name} has seen all but {percent(split.fraction)} of this text: that part measures both"
        )
    notices += find_unknown(base.info.name if base else "this vocabulary", corpus, texts, tokenizer, source_tokenizer)
    if base is not None and not translates:
        notices += _check_text(base, corpus, tokenizer)
    notices += _check_loss_fractions(recipe, template, tokenizer)
    return TrainingText(
        facts, corpus.mode, tokenizer, source_tokenizer, template, train, vals, _first_prompt(corpus, tokenizer),
        corpus.fingerprint, tuple(notices), split.fraction, base, is_known,
    )  # fmt: skip


def _find_tokenizers(
    run: RunFolder,
    recipe: Recipe,
    corpus: SourceCorpus,
    held_out: Sequence[Positions | None],
    clock: ReadingClock,
) -> tuple[Tokenizer, Tokenizer | None]:
    """Find or train the tokenizer, and for translations that of the source, which may be the same.

    Raises:
        SourceError: If the text has a single token.
    """
    translates = corpus.mode == "translation"
    target = "target" if translates and not recipe.shared_vocab else ""
    tokenizer = _find_tokenizer(run.tokenizer_file, recipe, corpus, target, held_out, clock)
    source_tokenizer = None
    if translates and recipe.shared_vocab and not run.source_tokenizer_file.is_file():
        source_tokenizer = tokenizer
    elif translates:
        source_tokenizer = _find_tokenizer(run.source_tokenizer_file, recipe, corpus, "source", held_out, clock)
    if tokenizer.vocab_size < 2:
        raise SourceError(f"{corpus.name} is one character over and over: nothing can be learned", "give it more text")
    return tokenizer, source_tokenizer


def _encode(
    corpus: SourceCorpus,
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer | None,
    template: ConversationTemplate | None,
    clock: ReadingClock,
    *,
    has_rows: bool,
) -> list[Ids | Rows]:
    """Encode each source, or take its ids from the cache: as rows of documents, or as one running text."""
    texts: list[Ids | Rows] = []
    for part in corpus.sources:
        one = part.corpus
        sides = (one.source_side, one.target_side) if corpus.mode == "translation" else (one,)
        for side in sides:
            side.watch = clock.watch(corpus.name, side.characters)
        cache = paths.ids_folder()
        if has_rows:
            rows = encode_rows(one, tokenizer, cache, template=template, source_tokenizer=source_tokenizer)
            texts.append(rows)
        else:
            texts.append(encode_corpus(one, tokenizer, cache, template=template).ids)
    return texts


def _check_loss_fractions(recipe: Recipe, template: ConversationTemplate | None, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield a notice for each fraction of a speaker's tokens that cannot be told apart in the text."""
    fractions = {"user": recipe.user_loss_fraction, "reply": recipe.reply_loss_fraction}
    if make_chat_loss_mask(fractions["user"], fractions["reply"], template, tokenizer, recipe.seed) is None:
        for speaker, fraction in fractions.items():
            if fraction < 1:
                yield f"--{speaker}-loss-fraction {fraction:g} has no effect without role tokens"


def _read_corpus(recipe: Recipe) -> SourceCorpus:
    mode = cast("Mode | None", recipe.mode)
    if recipe.texts:
        return TextCorpus(INLINE_NAME, mode or "completion", [InlineTexts(recipe.texts, INLINE_NAME)])
    cache, mirror = paths.datasets_folder(), paths.mirror()
    return read_sources(recipe.sources, cache=cache, mirror=mirror, column=recipe.column, field=recipe.field, mode=mode)


def _read_base_model(run: RunFolder) -> BaseModel | None:
    """Read the base model of a run from its folder; None if it started from random weights."""
    if not (run.base_model / CONFIG).is_file():
        return None
    with (run.base_model / WEIGHTS).open("rb") as file:
        fingerprint = hashlib.file_digest(file, "sha256").hexdigest()
    return BaseModel(read_info(run.base_model), fingerprint, read_training(run.base_model))


def _check(recipe: Recipe, corpus: Corpus) -> None:
    """Raise UsageError if an option contradicts the kind of text."""
    if corpus.mode == "translation":
        if recipe.packing:
            raise UsageError("--packing true cannot be of translations", "leave it out: each is a row of its own")
        if recipe.n_encoder_layer == 0:
            raise UsageError("--n-encoder-layer 0 cannot translate", "leave it out, or give it at least 1")
    elif recipe.n_encoder_layer:
        raise UsageError(
            f"--n-encoder-layer {recipe.n_encoder_layer} is for translations, and {corpus.name} is none",
            "leave it out, or add --mode translation",
        )


def _choose_packing(recipe: Recipe, corpus: SourceCorpus, base: BaseModel | None, *, is_known: bool) -> bool | None:
    """Return the recipe's packing or, where that is open and all of the text is documents, that of the base model.

    Raises:
        UsageError: If the base model was trained on this text in the other way: the two hold out different parts.
    """
    packing = recipe.packing
    if base is None or corpus.mode == "translation":
        return packing
    if packing is None and not any(source.corpus.single for source in corpus.sources):
        packing = base.packing
    has_windows = packing is not False
    if is_known and base.packing not in (None, has_windows):
        trained = f"{base.info.name} was trained on this text with --packing {str(not has_windows).lower()}"
        raise UsageError(f"{trained}, which holds out another part of it", "give the same, or take another text")
    return packing


def _flat(text: Ids | Rows) -> Ids:
    return text.flat() if isinstance(text, Rows) else text


def _template(
    recipe: Recipe, corpus: Corpus, base: BaseModel | None, tokenizer: Tokenizer
) -> ConversationTemplate | None:
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


def predictable(text: Ids | Rows) -> Ids | Rows:
    """Return a part of a text without documents of one token or none: nothing follows in them."""
    if not isinstance(text, Rows) or text.lengths.min(initial=2) > 1:
        return text
    return text.take((text.lengths > 1).nonzero()[0])


def _facts(source: MixPart, text: Ids | Rows, val: Ids | Rows) -> SourceFacts:
    (corpus, share), is_rows = source, isinstance(text, Rows)
    tokens, rows = (int(text.lengths.sum()), len(text)) if isinstance(text, Rows) else (len(text), 0)
    held_out = {"val_rows": len(val)} if is_rows else {"val_tokens": len(val)}
    return SourceFacts(
        corpus.name, share, corpus.characters, corpus.documents_count, tokens, corpus.fingerprint, rows, **held_out
    )


def _find_tokenizer(
    path: Path,
    recipe: Recipe,
    whole: SourceCorpus,
    side: str,
    held_out: Sequence[Positions | None],
    clock: ReadingClock,
) -> Tokenizer:
    """Load a run's tokenizer; if there is none yet, load or train the recipe's, on the training part of each source.

    `side` is that of a pair to translate: `source` or `target`; empty for both sides and for other texts.
    """
    if path.is_file():
        return load_tokenizer(path)
    corpus = _side(whole, side)
    sample = "".join(chunk.text for chunk in islice(corpus.chunks(), 4))[:SAMPLE_CHARACTERS]
    kind, vocab_size = choose_tokenizer(recipe, corpus.characters, sample, whole.mode)
    if Path(kind).is_absolute():  # as `prepare_run` writes that of a file down: a folder may be named like a kind
        return load_tokenizer(Path(kind))
    if kind in KNOWN:
        return load_tokenizer(fetch(kind, cache=paths.datasets_folder(), mirror=paths.mirror()))
    special_tokens: dict[Mode, tuple[str, ...]] = {
        "completion": () if corpus.single else ("end",),
        "chat": ("end", "user", "assistant") if recipe.role_tokens else ("end",),
        "translation": ("begin", "end"),
    }
    parts = (
        _training_chunks(_side(source.corpus, side), rows, recipe.validation_fraction)
        for source, rows in zip(whole.sources, held_out, strict=True)
    )
    chunks = clock.watched(whole.name, chain.from_iterable(parts))
    return train_tokenizer(kind, corpus, vocab_size, special_tokens[whole.mode], chunks)


def _side(corpus: SourceCorpus, side: str) -> Corpus:
    return {"source": lambda: corpus.source_side, "target": lambda: corpus.target_side}.get(side, lambda: corpus)()


def _training_chunks(corpus: Corpus, val_rows: Positions | None, fraction: float) -> Iterator[Chunk]:
    """Yield what a vocabulary is trained on: nothing that measures the model."""
    if val_rows is not None:
        held_out = set(val_rows.tolist())
        return corpus.chosen_chunks(set(range(corpus.documents_count)) - held_out)
    # A conversation's turns have a few characters more than its messages, so the split may fall a little earlier.
    margin = CHAT_MARGIN if corpus.mode == "chat" else 0.0
    return corpus.first_chunks(max(1, int(corpus.characters * (1 - fraction - margin))))


def _save_tokenizer(tokenizer: Tokenizer | None, path: Path) -> None:
    if tokenizer is not None and not path.is_file():
        tokenizer.save(path)


def _first_prompt(corpus: Corpus, tokenizer: Tokenizer) -> str:
    """Return a prompt as the text would start: the first user message, a newline, or nothing for documents."""
    if corpus.mode != "completion":
        conversation = next(corpus.conversations())
        return next((message.text for message in conversation.messages if message.role == "user"), "")
    return "\n" if corpus.single and not tokenizer.unknown("\n") else ""


def find_unknown(
    name: str,
    corpus: SourceCorpus,
    texts: Sequence[Ids | Rows],
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer | None = None,
) -> list[str]:
    """Return a notice about what the vocabulary of that name lacks of a corpus, for each side of translations.

    `texts` are all ids of each source of the corpus: it is only read again if they may not be all of its text.
    """
    ids = [text.ids if isinstance(text, Rows) else text for text in texts]
    if source_tokenizer is None:
        return [*_check_codes(name, corpus, ids, tokenizer)]
    sources = [text.source.ids for text in texts if isinstance(text, Rows) and text.source is not None]
    return [
        *_check_codes(name, corpus.source_side, sources, source_tokenizer),
        *_check_codes(name, corpus.target_side, ids, tokenizer),
    ]


def _check_codes(name: str, corpus: Corpus, ids: Sequence[Ids], tokenizer: Tokenizer) -> Iterator[str]:
    """Yield a notice about the characters, or words, of a text that a vocabulary lacks, if there are any."""
    if tokenizer.has_fixed_bytes and sum(map(tokenizer.count_characters, ids)) >= corpus.characters:
        return
    if tokenizer.spells_no_words:
        words = (word for text in cut_documents(corpus.chunks()) for word in text.split())
        counts, between, unit = Counter(words), " ", "words"
    else:
        parts = (
            [item.text] if isinstance(item, Chunk) else [one.text for one in item.messages] for item in corpus.items()
        )
        counts, between, unit = count_codes(chain.from_iterable(parts)), "", "characters"
    unknown = {text: counts[text] for text in tokenizer.unknown(between.join(sorted(counts)))}
    if unknown:
        shown = sorted(unknown, key=lambda text: -unknown[text])[:MAX_SHOWN]
        more = f" and {len(unknown) - MAX_SHOWN} more" if len(unknown) > MAX_SHOWN else ""
        fate = "are left out" if (id := tokenizer.unknown_id) is None else f"become {tokenizer.token_text(id)}"
        yield (
            f"{sum(unknown.values()):,} of {counts.total():,} {unit} are unknown to {name} and {fate}: "
            f"{' '.join(text if text.isprintable() else repr(text)[1:-1] for text in shown)}{more}"
        )


def _check_text(base: BaseModel, corpus: Corpus, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield notices about what the base model does not know of a kind of text, and about skills that it will lose."""
    name = base.info.name
    if tokenizer.special("end") is None and corpus.documents_count > 1:
        yield f"{name} knows no end of a document: the {corpus.documents_count:,} documents run together"
    if base.info.mode == "chat" and corpus.mode == "completion":
        yield f"{name} chats, and this text has no turns: the new model goes on with text, and will forget to chat"
