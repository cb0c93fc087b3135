"""Encode prompts for a model, depending on its mode, and generate the random numbers of their answers."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from tinychat.corpus.types import Message
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer

Exchange = tuple[str, str]
"""A prompt and its answer."""


@dataclass(frozen=True)
class PromptEncoder:
    """Encodes prompts as token ids.

    Args:
        tokenizer: of the model.
        context_length: of the model, in tokens.
        template: of a chat model; None in other modes.
        source_tokenizer: of the encoder that reads prompts, in an encoder-decoder model; None in others.
    """

    tokenizer: Tokenizer
    context_length: int
    template: ChatTemplate | None = None
    source_tokenizer: Tokenizer | None = None

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids of the tokens that end an answer."""
        return self.template.end_ids(self.tokenizer) if self.template else frozenset(_special(self.tokenizer, "end"))

    def encode(self, prompt: str, history: Sequence[Exchange] = (), max_tokens: int = 0) -> list[int]:
        """Return the ids that an answer continues; at least one.

        Args:
            prompt: as typed.
            history: the conversation so far; a chat drops the oldest turns that do not fit into the context.
            max_tokens: maximum length of the answer, for which up to half of the context is left free.
        """
        if self.source_tokenizer is not None:
            return self._beginning() or [0]
        if self.template is not None:
            turns = [(Message("user", question), Message("assistant", answer)) for question, answer in history]
            messages = [*(message for turn in turns for message in turn), Message("user", prompt)]
            return self.template.encode(messages, self.tokenizer, for_answer=True, max_length=self.room(max_tokens))
        text = "".join(f"{question}{answer}\n" for question, answer in history) + prompt
        return self._beginning() + self.tokenizer.encode(text) or [0]

    def room(self, max_tokens: int) -> int:
        """Return the maximum number of ids of a chat's prompt and history; older turns are dropped."""
        return self.context_length - min(max_tokens, self.context_length // 2)

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of a text as in training, without its end token: a document, or in a chat a user's message."""
        if self.template is not None:
            return self.template.encode([Message("user", text)], self.tokenizer)[:-1]
        return self._beginning() + self.tokenizer.encode(text)

    def encode_source(self, prompt: str) -> tuple[int, ...] | None:
        """Return the ids that the encoder reads, truncated to the context; None if there is no encoder."""
        if self.source_tokenizer is None:
            return None
        begin, end = (_special(self.source_tokenizer, role) for role in ("begin", "end"))
        return (*begin, *self.source_tokenizer.encode(prompt), *end)[: self.context_length]

    def _beginning(self) -> list[int]:
        """Return the token that precedes a document: its begin token, or else the end token of the previous one."""
        return _special(self.tokenizer, "begin") or _special(self.tokenizer, "end")


def _special(tokenizer: Tokenizer, role: str) -> list[int]:
    token = tokenizer.special(role)
    return [] if token is None else [token]


# --- random numbers: counter-based, so that they depend neither on the batch nor on the engine ------------------------

_MASK = (1 << 64) - 1


def fresh_seed() -> int:
    """Return a random seed, short enough to type."""
    return secrets.randbits(31)


def uniform(seed: int, prompt_index: int, position: int) -> float:
    """Return a uniform random number in [0, 1): 53 bits of a hash of the arguments.

    Args:
        seed: of the answer.
        prompt_index: of the prompt in the input.
        position: index of the token in the answer.
    """
    state = _mix(_mix(_mix(seed) ^ prompt_index) ^ position)
    return float(state >> 11) * 2.0**-53


def _mix(x: int) -> int:
    """Advance a SplitMix64 state and return its output (Steele, Lea, Flood 2014, fig. 14)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
