"""Conversations ↔ token ids: who says what is marked by special tokens.

<|user|> how are you? <|end|> <|bot|> fine, and you? <|end|>

A template without marks for the speakers knows the ends of turns alone: how are you? <|end|> fine, and you? <|end|>
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from tinychat.errors import TokenizerError

if TYPE_CHECKING:
    from tinychat.text.tokenizers import Tokenizer

Mode = Literal["completion", "chat", "translation"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""What texts and models are for."""
Role = Literal["user", "bot"]


@dataclass(frozen=True, slots=True)
class Message:
    """What one side says."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What both sides say, oldest first."""

    messages: tuple[Message, ...]


@dataclass(frozen=True)
class ChatTemplate:
    """The special tokens of a model's conversations; an empty one is none."""

    user: str = "<|user|>"
    bot: str = "<|bot|>"
    end: str = "<|end|>"
    lead: str = ""
    """text before what the user says: with a space, its first word is the token that it is anywhere else, and what was
    learned of the word holds for it (a tokenizer whose words begin with their space has two tokens for each)"""
    lower_capitals: bool = False
    """whether what the user says ALL IN CAPITALS is read in lower case: a tiny model has no room to learn each word in
    two forms"""

    def encode(
        self,
        messages: Sequence[Message],
        tokenizer: "Tokenizer",
        *,
        for_answer: bool = False,
        room: int | None = None,
    ) -> list[int]:
        """The token ids of a conversation.

        Args:
            messages: oldest first.
            tokenizer: that has the template's special tokens.
            for_answer: whether the bot is to speak next: the ids end with its token.
            room: the most ids. Where there are more, the oldest turns (what the user says and the answers to it) are
                left out; of a newest one that is still too long, the end is kept.

        Raises:
            TokenizerError: the tokenizer lacks a special token.
        """
        user, bot, end = (self._ids(token, tokenizer) for token in (self.user, self.bot, self.end))
        marks = {"user": user, "bot": bot}
        opening = bot if for_answer else []
        turns: list[list[int]] = []
        for message in messages:
            if message.role == "user" or not turns:
                turns.append([])
            text = self._heard(message.text) if message.role == "user" else message.text
            turns[-1] += (*marks[message.role], *tokenizer.encode(text), *end)
        while room is not None and len(turns) > 1 and sum(map(len, turns)) + len(opening) > room:
            turns.pop(0)
        ids = [id for turn in turns for id in turn] + opening
        if room is not None and len(ids) > room:
            first = ids[: len(user)] if room > 1 else []
            return [*first, *ids[len(ids) - room + len(first) :]]
        return ids

    def end_ids(self, tokenizer: "Tokenizer") -> frozenset[int]:
        """The tokens that end an answer: its end, and any mark of a new message."""
        return frozenset(id for token in (self.end, self.user, self.bot) for id in self._ids(token, tokenizer))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ChatTemplate":
        """The template that `to_dict` told.

        Raises:
            TypeError: a key is unknown.
        """
        kinds = {name: type(value) for name, value in cls().to_dict().items()}
        return cls(**{name: kinds.get(name, str)(value) for name, value in values.items()})

    def _heard(self, text: str) -> str:
        """What the user says, as the model reads it."""
        return self.lead + (text.lower() if self.lower_capitals and is_in_capitals(text) else text)

    def _ids(self, token: str, tokenizer: "Tokenizer") -> list[int]:
        if not token:
            return []
        id = tokenizer.token_id(token)
        if id is None:
            raise TokenizerError(f"the tokenizer has no special token {token}", "train it on conversations")
        return [id]


def is_in_capitals(text: str) -> bool:
    """Whether words are SHOUTED: two letters and more, none of them small."""
    return text.isupper() and sum(map(str.isalpha, text)) > 1
