"""Prompts as token ids: of a document, a chat with its history, sentences to translate, or a text that grows."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from tinychat.corpus.types import Message
from tinychat.generate.engine import window_start, window_stride
from tinychat.tokenizer.chat_template import ConversationTemplate
from tinychat.tokenizer.tokenizer import LONGEST_WHOLE, Tokenizer

MAX_TOKEN_CHARACTERS = 64
"""Characters that a token has at most, on average over a context."""
ABBREVIATIONS = frozenset((
    "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "approx", "e.g", "i.e",
    "sra", "srta", "sres", "dra", "dña", "ud", "uds", "vd", "vds", "av", "avda", "núm", "pág", "tel", "p.ej", "ej",
))  # fmt: skip
"""Words of English and Spanish after whose full stop a sentence goes on."""
_LONGEST_WORD = 32
"""Number of characters before a full stop in which such a word is looked for: more than any has."""
_BREAK = re.compile(r"""(?<![.!?…])(?P<mark>[.!?…]+)["'”’»)\]]*(?P<space>\s+)|(?<!\s)\s*\n\s*""")
"""Ends of sentences and lines. A run of marks or white space is searched from its beginning alone: once."""


@dataclass(frozen=True)
class Source:
    """A text that an encoder reads: a sentence of a prompt, or all of it."""

    ids: tuple[int, ...]
    space: str = ""
    """White space between its translation and the one before."""
    cut: str = ""
    """The sentence, if it is longer than the context, so that its end is not read."""
    is_blank: bool = False
    """Whether it is white space alone, or nothing: then there is nothing to translate."""
    num_sentences: int = 1
    """Number of sentences in it: a model that learned single ones may lose some."""


@dataclass(frozen=True)
class PromptEncoder:
    """Encodes prompts for a model as token ids."""

    tokenizer: Tokenizer
    context_length: int
    template: ConversationTemplate | None = None
    """Template of a chat model; None in other modes."""
    source_tokenizer: Tokenizer | None = None
    """Tokenizer of the encoder that reads prompts, in an encoder-decoder model; None in others."""
    more_end_ids: frozenset[int] = frozenset()
    """Ids that end an answer, beside those that the template names."""

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids of the tokens that end an answer.

        Raises:
            TokenizerError: If the template cannot be rendered.
        """
        named = self.template.end_ids(self.tokenizer) if self.template else frozenset()
        return named | self.more_end_ids or frozenset(self.tokenizer.special_ids("end"))

    @property
    def reads_system(self) -> bool:
        """Whether the model reads a system message before a conversation.

        Raises:
            TokenizerError: If the template cannot be rendered.
        """
        return self.template is not None and self.template.has_system_role()

    def begins_text(self, ids: Sequence[int]) -> bool:
        """Return whether an answer to these ids is a text of its own, instead of the rest of one."""
        is_continued = self.template is None and self.source_tokenizer is None
        return not is_continued or all(map(self.tokenizer.is_special, ids))

    def encode(
        self, prompt: str, history: Iterable[tuple[str, str]] = (), max_tokens: int = 0, system: str | None = None
    ) -> list[int]:
        """Return the ids that an answer of up to `max_tokens` continues; at least one.

        In a chat, `history` yields the prompts and answers so far, newest first, and is read as far as the context has
        room; the `system` message stands before them if the model reads one. Of texts much longer than the context,
        only the ids of the end are returned.

        Raises:
            TokenizerError: If the template cannot be rendered.
        """
        if self.source_tokenizer is not None:
            return self.beginning() or [0]
        if self.template is not None:
            turns = ((Message("assistant", answer), Message("user", question)) for question, answer in history)
            newest_first = chain((Message("user", prompt),), chain.from_iterable(turns))
            room, system = self.room(max_tokens), self._usable(system)
            ids = self.template.encode_newest(
                newest_first, self.tokenizer, system=system, for_answer=True, max_length=room
            )
            return ids or [0]
        return self.beginning() + self.tokenizer.encode_end(prompt, self.context_length) or [0]

    def cuts(self, prompt: str, max_tokens: int = 0, system: str | None = None) -> bool:
        """Return whether `encode` leaves out the beginning of a chat's prompt itself, not only turns before it.

        Raises:
            TokenizerError: If the template cannot be rendered.
        """
        if self.template is None:
            return False
        room = self.room(max_tokens)
        # Twice the room tells a prompt that fills it from one that is too long, of which no more has to be encoded.
        ids = self.template.encode(
            [Message("user", prompt)], self.tokenizer, system=self._usable(system), for_answer=True, max_length=2 * room
        )
        return len(ids) > room

    def _usable(self, system: str | None) -> str:
        """Return the system message that stands before a conversation; nothing if the model reads none."""
        return system if system and self.reads_system else ""

    def room(self, max_tokens: int) -> int:
        """Return the maximum number of ids of a chat's prompt and history: half of the context stays free, at most."""
        return self.context_length - min(max_tokens, self.context_length // 2)

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of a text as in training, without its end token: a document, or in a chat a user's message."""
        if self.template is not None:
            return self.template.encode_user_text(text, self.tokenizer)
        return self.beginning() + self.tokenizer.encode(text)

    def encode_source(self, prompt: str) -> tuple[int, ...] | None:
        """Return the ids that the encoder reads, truncated to the context; None if there is no encoder."""
        source = self._encode_source(prompt)
        return None if source is None else source[: self.context_length]

    def encode_sentences(self, prompt: str) -> tuple[Source, ...]:
        """Return the sentences of a prompt as the encoder reads them, one after the other; none without an encoder."""
        if self.source_tokenizer is None:
            return ()
        return tuple(self._make_source(text, space) for space, text in split_sentences(prompt))

    def encode_whole(self, prompt: str) -> tuple[Source, ...]:
        """Return a prompt as the encoder reads it at once; nothing without an encoder."""
        if self.source_tokenizer is None:
            return ()
        return (replace(self._make_source(prompt), num_sentences=len(split_sentences(prompt))),)

    def _make_source(self, text: str, space: str = "") -> Source:
        ids = self._encode_source(text) or ()
        cut = text if len(ids) > self.context_length else ""
        return Source(ids[: self.context_length], space, cut, is_blank=not text.strip())

    def _encode_source(self, text: str) -> tuple[int, ...] | None:
        if self.source_tokenizer is None:
            return None
        begin, end = map(self.source_tokenizer.special_ids, ("begin", "end"))
        return (*begin, *self.source_tokenizer.encode_start(text, self.context_length), *end)

    def beginning(self) -> list[int]:
        """Return what precedes a document, or a translation."""
        return self.tokenizer.beginning(is_target=self.source_tokenizer is not None)


class RunningText:
    """A conversation with a completion model: one text, which each turn continues, encoded as it grows.

    Once it is long, the oldest ids are dropped, a multiple of what the model's window moves by at once: the model sees
    the same of the rest as of the whole.
    """

    def __init__(self, encoder: PromptEncoder) -> None:
        self._encoder = encoder
        self._ids = encoder.beginning()
        self._num_encoded = 0  # characters
        self._rest = ""  # the end of the text, whose ids may depend on what follows

    def add(self, prompt: str, answer: str) -> None:
        """Append a turn."""
        text = f"{self._rest}{prompt}{answer}\n"
        end, context_length = self._encoder.tokenizer.find_stable_end(text), self._encoder.context_length
        self._ids, self._rest = self._extended(text[:end]), text[end:][-self._longest :]
        self._num_encoded += end
        if self._num_encoded > LONGEST_WHOLE:  # keep more than the context, which a notice tells
            excess = window_start(len(self._ids), context_length) - window_stride(context_length)
            del self._ids[: max(0, excess)]

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of the text and a prompt, at least one; of a prompt much longer than the context, the end."""
        return self._extended(self._rest + prompt) or [0]

    @property
    def _longest(self) -> int:
        """Number of characters of which the last ones fill the context in any case."""
        return max(LONGEST_WHOLE, MAX_TOKEN_CHARACTERS * self._encoder.context_length)

    def _extended(self, text: str) -> list[int]:
        """Return the ids, continued by those of a text."""
        encoder = self._encoder
        if len(text) <= LONGEST_WHOLE:
            return self._ids + encoder.tokenizer.encode(text)
        return encoder.beginning() + encoder.tokenizer.encode_end(text, encoder.context_length)


class Sentence(NamedTuple):
    """A sentence, and the white space between it and the one before."""

    space: str
    text: str


def split_sentences(text: str) -> list[Sentence]:
    """Split a text to translate at ends of sentences and lines, since translators learn sentences.

    Spaces and texts of the sentences, joined, are the text again. White space around the text belongs to its first and
    last sentence. A full stop ends no sentence after an abbreviation (Mr. Brown), an initial (J. Smith), or within a
    number (3.50).
    """
    sentences: list[Sentence] = []
    start, space, last = 0, "", len(text.rstrip())
    for end, begin in _breaks(text):
        if text[start:end].strip() and begin < last:
            sentences.append(Sentence(space, text[start:end]))
            start, space = begin, text[end:begin]
    return [*sentences, Sentence(space, text[start:])]


def _breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where sentences end, and where the next ones begin."""
    for found in _BREAK.finditer(text):
        if found["mark"] is None:
            yield found.start(), found.end()
            continue
        at = found.start()
        before = text[max(0, at - _LONGEST_WORD) : at].rpartition(" ")[2].rpartition("\n")[2]
        before = before.lstrip("(\"'“‘«¿¡").lower()
        is_initial = len(before) == 1 and before.isalpha() and before != "i"
        goes_on = found["mark"] == "." and (before in ABBREVIATIONS or is_initial)
        if "\n" in found["space"] or not goes_on:
            yield found.start("space"), found.end()
