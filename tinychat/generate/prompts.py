"""How a prompt reaches a model, by the model's mode; and which tokens end an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from tinychat.corpus.types import Message
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer

Exchange = tuple[str, str]
"""what was asked, and what was answered"""


@dataclass(frozen=True)
class Prompting:
    """What a model's prompts are made with.

    Args:
        tokenizer: of the model.
        context: of the model, in tokens.
        template: of a chat model.
        reader: the tokenizer of prompts that an encoder reads; None: there is no encoder.
    """

    tokenizer: Tokenizer
    context: int
    template: ChatTemplate | None = None
    reader: Tokenizer | None = None

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end an answer."""
        return self.template.end_ids(self.tokenizer) if self.template else frozenset(_special(self.tokenizer, "end"))

    def ids(self, prompt: str, before: Sequence[Exchange] = (), max_tokens: int = 0) -> list[int]:
        """The token ids that an answer goes on from; at least one.

        Args:
            prompt: as typed.
            before: the conversation so far; in chat mode its oldest part is left out where it does not fit.
            max_tokens: of the answer, for which room is left, up to half of the context.
        """
        if self.reader is not None:
            return self._beginning() or [0]
        if self.template is not None:
            turns = [(Message("user", asked), Message("assistant", answered)) for asked, answered in before]
            messages = [*(message for turn in turns for message in turn), Message("user", prompt)]
            return self.template.encode(messages, self.tokenizer, for_answer=True, room=self.room(max_tokens))
        text = "".join(f"{asked}{answered}\n" for asked, answered in before) + prompt
        return self._beginning() + self.tokenizer.encode(text) or [0]

    def room(self, max_tokens: int) -> int:
        """The most ids of a chat's prompt and the conversation before it: older turns are left out."""
        return self.context - min(max_tokens, self.context // 2)

    def text_ids(self, text: str) -> list[int]:
        """A text by itself as the model has learned texts: a document, or what is said first; its end is left open."""
        if self.template is not None:
            return self.template.encode([Message("user", text)], self.tokenizer)[:-1]
        return self._beginning() + self.tokenizer.encode(text)

    def source(self, prompt: str) -> tuple[int, ...] | None:
        """What the encoder reads, where there is one: the prompt as documents are, cut where it is too long."""
        if self.reader is None:
            return None
        begin, end = (_special(self.reader, role) for role in ("begin", "end"))
        return (*begin, *self.reader.encode(prompt), *end)[: self.context]

    def _beginning(self) -> list[int]:
        """A text that was learned as documents begins behind the end of another one."""
        return _special(self.tokenizer, "begin") or _special(self.tokenizer, "end")


def _special(tokenizer: Tokenizer, role: str) -> list[int]:
    token = tokenizer.special(role)
    return [] if token is None else [token]
