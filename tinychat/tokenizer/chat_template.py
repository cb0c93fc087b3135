"""Encode conversations: special tokens mark the role of each message and its end.

<|user|> how are you? <|end|> <|assistant|> fine, and you? <|end|>

A template without role tokens marks only the ends of messages: how are you? <|end|> fine, and you? <|end|>

These are the templates of models that are trained here; those of others are in `jinja_template`.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tinychat.corpus.types import Message
from tinychat.errors import TokenizerError
from tinychat.tokenizer.tokenizer import Tokenizer

ALL_CAPS_TO_LOWER_CASE = (
    "{%- set found = namespace(letters=0) %}",
    "{%- for character in text if character.isalpha() %}{%- set found.letters = loop.length %}{%- endfor %}",
    "{%- if text.isupper() and found.letters > 1 %}{%- set text = text | lower %}{%- endif %}",
)
"""In Jinja: as `ChatTemplate.lowercase_all_caps` says."""


class ConversationTemplate(Protocol):
    """Encodes conversations as ids. A turn is a user's message and the answers to it."""

    def prepare(self) -> None:
        """Start what takes a moment before the first conversation is encoded."""

    def encode(
        self,
        messages: Sequence[Message],
        tokenizer: Tokenizer,
        *,
        system: str = "",
        for_answer: bool = False,
        max_length: int | None = None,
    ) -> list[int]:
        """Encode a conversation, oldest message first; `for_answer`, the ids end where an answer begins.

        To stay within `max_length` ids, the oldest turns are dropped; of a newest turn that is still too long, the end
        is kept. `system` is the text of a message before all others, which is always kept; it must be empty unless the
        template has such a role.

        Raises:
            TokenizerError: If the tokenizer lacks a special token, or the template cannot be rendered.
        """
        newest_first = reversed(messages)
        return self.encode_newest(newest_first, tokenizer, system=system, for_answer=for_answer, max_length=max_length)

    def encode_newest(
        self,
        newest_first: Iterable[Message],
        tokenizer: Tokenizer,
        *,
        system: str = "",
        for_answer: bool = False,
        max_length: int | None = None,
    ) -> list[int]:
        """Encode a conversation like `encode`, given its newest message first; reads only as many as there is room for.

        Raises:
            TokenizerError: As `encode` does.
        """

    def encode_user_text(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """Encode the first message of a user as far as its text goes.

        Raises:
            TokenizerError: As `encode` does.
        """

    def end_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Return the ids of the tokens that end an answer, as far as the template tells.

        Raises:
            TokenizerError: If the tokenizer lacks a special token.
        """

    def has_system_role(self) -> bool:
        """Return whether a system message may stand before all others.

        Raises:
            TokenizerError: If the template cannot be rendered.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return the template as an object of JSON."""

    def to_jinja(self) -> str:
        """Return the template in Jinja, as `transformers` and llama.cpp keep it."""


@dataclass(frozen=True)
class ChatTemplate(ConversationTemplate):
    """Special tokens of a model's conversations; an empty string stands for no token."""

    user: str = "<|user|>"
    assistant: str = "<|assistant|>"
    end: str = "<|end|>"
    user_prefix: str = ""
    """Text before each user message. With a space, its first word is the same token as in the middle of a text, so the
    model applies what it has learned of the word; tokenizers with spaces in words have two tokens for each word."""
    lowercase_all_caps: bool = False
    """Whether to encode user messages ALL IN CAPITALS in lower case: a tiny model lacks the capacity to learn each
    word in two forms."""

    def encode_newest(
        self,
        newest_first: Iterable[Message],
        tokenizer: Tokenizer,
        *,
        system: str = "",
        for_answer: bool = False,
        max_length: int | None = None,
    ) -> list[int]:
        """Encode a conversation like `encode`, given its newest message first; reads only the turns that are kept.

        Raises:
            TokenizerError: If the tokenizer lacks a special token.
        """
        assert not system, "the template has no role for it"
        user, assistant, end = (self._ids(token, tokenizer) for token in (self.user, self.assistant, self.end))
        ids, room = assistant if for_answer else [], math.inf if max_length is None else max_length
        turns, total = [ids], len(ids)
        for turn in group_turns(newest_first):
            ids = []
            for message in turn:
                role, text = (assistant, message.text)
                if message.role == "user":
                    role, text = user, self._normalize(text)
                encoded = tokenizer.encode(text) if max_length is None else tokenizer.encode_end(text, max_length)
                ids += (*role, *encoded, *end)
            total += len(ids)
            if total > room and len(turns) > 1:
                break
            turns.append(ids)
        ids = [id for turn in reversed(turns) for id in turn]
        if max_length is not None and len(ids) > max_length:
            first = ids[: len(user)] if max_length > 1 else []
            return [*first, *ids[len(ids) - max_length + len(first) :]]
        return ids

    def prepare(self) -> None:
        """Do nothing: it is ready."""

    def encode_user_text(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """Encode the first message of a user, without its end token."""
        ids = self.encode([Message("user", text)], tokenizer)
        return ids[:-1] if self.end else ids

    def has_system_role(self) -> bool:
        """Return that there is no such role."""
        return False

    def end_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Return the ids that end an answer: the end token, and the role tokens of a next message.

        Raises:
            TokenizerError: If the tokenizer lacks a special token.
        """
        return frozenset(id for token in (self.end, self.user, self.assistant) for id in self._ids(token, tokenizer))

    def turn_tokens(self, tokenizer: Tokenizer) -> tuple[int, int] | None:
        """Return the ids of the tokens that begin a turn and its reply, or None where either is missing.

        Raises:
            TokenizerError: If the tokenizer lacks a role token.
        """
        user, assistant = (self._ids(token, tokenizer) for token in (self.user, self.assistant))
        return (user[0], assistant[0]) if user and assistant else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_jinja(self) -> str:
        """Return the template in Jinja, as `transformers` and llama.cpp keep it: renders what `encode` encodes."""
        user, assistant, end, prefix = map(json.dumps, (self.user, self.assistant, self.end, self.user_prefix))
        lines = [
            "{%- for message in messages %}",
            "{%- if message['role'] not in ['user', 'assistant'] %}",
            "{{- raise_exception('the roles of this model are user and assistant, not ' ~ message['role']) }}",
            "{%- endif %}",
            "{%- set text = message['content'] %}",
            "{%- if message['role'] == 'user' %}",
            *(ALL_CAPS_TO_LOWER_CASE if self.lowercase_all_caps else ()),
            f"{{{{- {user} ~ {prefix} ~ text ~ {end} }}}}",
            "{%- else %}",
            f"{{{{- {assistant} ~ text ~ {end} }}}}",
            "{%- endif %}",
            "{%- endfor %}",
            f"{{%- if add_generation_prompt %}}{{{{- {assistant} }}}}{{%- endif %}}",
        ]
        return "\n".join(lines)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ChatTemplate":
        """Create a template from fields that `to_dict` returned; missing ones get their defaults.

        Raises:
            ValueError: If a field is unknown or of the wrong type.
        """
        kinds = {name: type(value) for name, value in cls().to_dict().items()}
        for name, value in values.items():
            if name not in kinds:
                raise ValueError(f"the template has no field {name[:40]!r}")
            if type(value) is not kinds[name]:
                raise ValueError(f"{name} of the template must be {'text' if kinds[name] is str else 'true or false'}")
        return cls(**values)

    def _normalize(self, text: str) -> str:
        """Return a user message as the model reads it; a single letter, as in `I`, is not all caps."""
        is_all_caps = text.isupper() and sum(map(str.isalpha, text)) > 1
        return self.user_prefix + (text.lower() if self.lowercase_all_caps and is_all_caps else text)

    def _ids(self, token: str, tokenizer: Tokenizer) -> list[int]:
        if not token:
            return []
        id = tokenizer.token_id(token)
        if id is None:
            raise TokenizerError(f"the tokenizer has no special token {token}", "train it on conversations")
        return [id]


def group_turns(newest_first: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield the turns of messages, newest first, the messages of each oldest first."""
    turn: list[Message] = []
    for message in newest_first:
        turn.append(message)
        if message.role == "user":
            yield turn[::-1]
            turn = []
    if turn:
        yield turn[::-1]
