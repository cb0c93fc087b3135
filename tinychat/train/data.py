"""From a recipe's sources to token ids, split for training and validation."""

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, cast

from tinychat.errors import SourceError, UsageError
from tinychat.store import places
from tinychat.store.models import Mode
from tinychat.store.runs import RunFolder
from tinychat.text.chat import ChatTemplate
from tinychat.text.corpus import Corpus, Source
from tinychat.text.datasets import KNOWN, fetch
from tinychat.text.ids import IdFile, count_characters, encode_corpus, join
from tinychat.text.sources import read_sources
from tinychat.text.tokenizers import Ids, Tokenizer, load_tokenizer, train_tokenizer
from tinychat.train.continuing import Start, notices, read_start
from tinychat.train.folds import FOLDS, split_folds
from tinychat.train.planner import SourceFacts, TextFacts, choose_tokenizer, split_tokens
from tinychat.train.recipe import Recipe

SAMPLE = 100_000
"""characters that the choice of a tokenizer looks at"""


@dataclass(frozen=True)
class TrainingText:
    """A text made ready: tokenized and split."""

    facts: TextFacts
    mode: Mode
    tokenizer: Tokenizer
    template: ChatTemplate | None
    parts: tuple[Ids, ...]
    """what is trained on, of each source of a mix; else one"""
    val: Ids
    """empty where the text is too short; of a mix, the ends of its sources one after the other"""
    prompt: str
    """what samples begin with, where the recipe does not say"""
    fingerprint: str
    notices: tuple[str, ...]
    start: Start | None = None
    """the model that the run began from"""

    @cached_property
    def train(self) -> Ids:
        """All that is trained on; of a mix, its sources one after the other, in memory."""
        return join(self.parts)

    def folds(self, tokens: int) -> list[Ids]:
        """So many tokens that are trained on, from all over, in folds; of a mix, of each text as its share says."""
        parts = zip(map(split_folds, self.parts), self.facts.sources, strict=True)
        most = [(folds, max(1, int(tokens * source.share / FOLDS))) for folds, source in parts]
        return [join([folds[fold][:length] for folds, length in most]) for fold in range(FOLDS)]

    @property
    def measured(self) -> Ids:
        """The ids that losses are measured on: the validation part, or the text itself where there is none."""
        return self.val if len(self.val) else self.train

    @property
    def split(self) -> str:
        """The name of `measured`."""
        return "val" if len(self.val) else "train"

    def characters_per_token(self) -> float:
        """Of the measured part."""
        return count_characters(self.measured, self.tokenizer) / max(1, len(self.measured))


def read_text(recipe: Recipe, run: RunFolder) -> TrainingText:
    """Reads the sources, trains or reads the tokenizer, and encodes.

    Args:
        run: whose tokenizer is used where it has one, and written where it has none.

    Raises:
        SourceError: a source cannot be read, or there is no text in it.
        TokenizerError: the tokenizer cannot be made or read.
        UsageError: a model that cannot chat is to go on with conversations.
    """
    mode = cast("Literal['completion', 'chat'] | None", recipe.mode)
    corpus = read_sources(
        recipe.sources,
        cache=places.datasets_folder(),
        mirror=places.mirror(),
        column=recipe.column,
        field=recipe.field,
        mode=mode,
    )
    start = read_start(run)
    if run.tokenizer_file.is_file():
        tokenizer = load_tokenizer(run.tokenizer_file)
    else:
        tokenizer = _make_tokenizer(recipe, corpus)
        tokenizer.save(run.tokenizer_file)
    if tokenizer.vocab_size < 2:
        raise SourceError(f"{corpus.name} is one character over and over: nothing can be learned", "give it more text")
    template = _template(corpus, start)
    files = [
        encode_corpus(source.corpus, tokenizer, places.ids_folder(), template=template) for source in corpus.sources
    ]
    ends = [split_tokens(recipe, len(file.ids))[0] for file in files]
    facts = TextFacts(
        name=corpus.name,
        characters=corpus.characters,
        documents=corpus.documents_count,
        tokens=sum(len(file.ids) for file in files),
        vocab_size=start.config.vocab_size if start else tokenizer.vocab_size,
        tokenizer=tokenizer.kind,
        mix=tuple(map(_facts, corpus.sources, files)) if len(files) > 1 else (),
    )
    return TrainingText(
        facts=facts,
        mode=corpus.mode,
        tokenizer=tokenizer,
        template=template,
        parts=tuple(file.ids[:end] for file, end in zip(files, ends, strict=True)),
        val=join([file.ids[end:] for file, end in zip(files, ends, strict=True)]),
        prompt=_first_prompt(corpus, tokenizer),
        fingerprint=corpus.fingerprint,
        notices=(*corpus.notices, *(notices(start, corpus, tokenizer) if start else ())),
        start=start,
    )


def _template(corpus: Corpus, start: Start | None) -> ChatTemplate | None:
    if corpus.mode != "chat":
        return None
    if start is None:
        return ChatTemplate()
    if start.info.template is None:
        problem = f"{start.info.name} has no tokens for turns, and cannot go on with conversations"
        raise UsageError(problem, "--mode completion takes their text alone")
    return start.info.template


def _facts(source: Source, file: IdFile) -> SourceFacts:
    corpus = source.corpus
    return SourceFacts(
        corpus.name, source.share, corpus.characters, corpus.documents_count, len(file.ids), corpus.fingerprint
    )


def _make_tokenizer(recipe: Recipe, corpus: Corpus) -> Tokenizer:
    sample = "".join(chunk.text for chunk in islice(corpus.chunks(), 4))[:SAMPLE]
    kind, vocab_size = choose_tokenizer(recipe, corpus.characters, sample, corpus.mode)
    if Path(kind).exists():
        return load_tokenizer(Path(kind))
    if kind in KNOWN:
        return load_tokenizer(fetch(kind, cache=places.datasets_folder(), mirror=places.mirror()))
    specials = ("end", "user", "bot") if corpus.mode == "chat" else () if corpus.single else ("end",)
    return train_tokenizer(kind, corpus, vocab_size, specials)


def _first_prompt(corpus: Corpus, tokenizer: Tokenizer) -> str:
    """What the text itself would begin with: what a user says, a new line, or nothing where documents begin."""
    if corpus.mode == "chat":
        conversation = next(corpus.conversations())
        return next((message.text for message in conversation.messages if message.role == "user"), "")
    return "\n" if corpus.single and not tokenizer.unknown("\n") else ""
