"""Records → texts and conversations: which field is the text, and which are the two sides of a conversation."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from tinychat.errors import SourceError
from tinychat.text.chat import Conversation, Message
from tinychat.text.decoding import clean
from tinychat.text.formats import JSON_FORMATS, Record, RecordFile
from tinychat.text.notices import Notes

SAMPLE = 200
"""records that a choice is made from"""

TEXT_NAMES = ("text", "content", "contents", "body", "document", "story", "article", "sentence", "review", "message")
PROMPT_NAMES = ("prompt", "question", "instruction", "input", "user", "source")
ANSWER_NAMES = ("completion", "answer", "response", "output", "bot", "assistant", "reply", "target")
CONVERSATION_NAMES = ("messages", "conversations", "conversation", "dialog", "dialogue", "turns")
ROLES = {"user": "user", "human": "user", "prompter": "user"} | dict.fromkeys(
    ("bot", "assistant", "gpt", "model"), "bot"
)


class Table(RecordFile):
    """Records of which one field is the text, or two or a list are a conversation."""

    def texts(self, notes: Notes) -> Iterator[str]:
        """The text of each record; without `wanted`, the field that is called one, else the longest on average.

        Raises:
            SourceError: no field is the text.
        """
        sample, records = _peek(self.records(notes))
        field = self._choose(sample, notes) if sample else ""
        for number, record in enumerate(records, 1):
            text = clean(_as_text(_find(record, field)), notes)
            if text:
                yield text
            else:
                notes.add(
                    f"records without {field!r} left out: {{count}}, the first is number {{first}}", 1, f"{number:,}"
                )

    def conversations(self, notes: Notes) -> Iterator[Conversation]:
        """The conversation that each record is: a list of messages, or a prompt and its answer.

        Raises:
            SourceError: the records hold no conversations.
        """
        sample, records = _peek(self.records(notes))
        sides = self._choose_sides(sample) if sample else None
        for number, record in enumerate(records, 1):
            found = _pair(record, sides) if sides else _messages(record, notes)
            messages = tuple(Message(message.role, clean(message.text, notes)) for message in found)
            if any(message.role == "bot" for message in messages):
                yield Conversation(messages)
            else:
                notes.add("records without an answer left out: {count}, the first is number {first}", 1, f"{number:,}")

    def holds_conversations(self) -> bool:
        """Whether the names of the fields say so."""
        sample, _ = _peek(self.records(Notes()))
        named = any(name.lower() in TEXT_NAMES for record in sample for name in record)
        return any(_messages(record, Notes()) for record in sample) or (not named and _named_sides(sample) is not None)

    def _choose(self, sample: Sequence[Record], notes: Notes) -> str:
        if self.wanted is not None:
            if not any(_find(record, self.wanted) is not None for record in sample):
                raise SourceError(f"{self.path} has no {self._kind} {self.wanted!r}", self._fields(sample))
            return self.wanted
        lengths: dict[str, int] = {}
        for record in sample:
            for name, value in _leaves(record):
                if isinstance(value, str):
                    lengths[name] = lengths.get(name, 0) + len(value)
        if not lengths:
            raise SourceError(f"{self.path} has no {self._kind} of text", self._fields(sample))
        plain = {name.rpartition(".")[2].lower(): name for name in reversed(lengths)}
        named = next((plain[name] for name in TEXT_NAMES if name in plain), None)
        chosen = named or max(lengths, key=lambda name: lengths[name])
        if len(lengths) > 1:
            others = _list([name for name in lengths if name != chosen])
            why = "" if named else ", the longest"
            notes.add(f"the text is {self._kind} {chosen!r}{why} (--{self._kind} takes another: {others})")
        return chosen

    def _choose_sides(self, sample: Sequence[Record]) -> tuple[str, str] | None:
        """The fields of the prompt and the answer; None where each record holds a list of messages."""
        if self.wanted is None and any(_messages(record, Notes()) for record in sample):
            return None
        names = list(dict.fromkeys(name for record in sample for name, _ in _leaves(record)))
        if self.wanted is not None:
            names = [name.strip() for name in self.wanted.split(",")]
        sides = _named_sides(sample) if self.wanted is None else None
        if sides is None and len(names) == 2:
            sides = (names[0], names[1])
        if sides is None or not any(_find(record, side) is not None for record in sample for side in sides):
            example = f"name the two sides, as in --{self._kind} question,answer; it has: {_list(names)}"
            raise SourceError(f"{self.path} holds no conversations that can be told", example)
        return sides

    @property
    def _kind(self) -> str:
        return "field" if self.format in JSON_FORMATS else "column"

    def _fields(self, sample: Sequence[Record]) -> str:
        names = dict.fromkeys(name for record in sample for name, _ in _leaves(record))
        return f"its {self._kind}s: {_list(list(names))}" if names else ""


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _as_text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _find(record: Record, path: str) -> object:
    """The value of a field: by its name, by a path of names, or by its number from 1; None where there is none."""
    if path in record:
        return record[path]
    lower = {name.lower(): name for name in record}
    if path.lower() in lower:
        return record[lower[path.lower()]]
    if path.isdecimal():
        return next(islice(record.values(), int(path) - 1, None), None) if int(path) > 0 else None
    value: object = record
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def _leaves(record: Record, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value in a record, also in records within it, by its path."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _named_sides(sample: Iterable[Record]) -> tuple[str, str] | None:
    """The fields whose names say that they are a prompt and its answer."""
    for record in sample:
        lower = {name.lower(): name for name in record}
        prompt = next((lower[name] for name in PROMPT_NAMES if name in lower), None)
        answer = next((lower[name] for name in ANSWER_NAMES if name in lower), None)
        if prompt and answer:
            return prompt, answer
    return None


def _pair(record: Record, sides: tuple[str, str]) -> list[Message]:
    prompt, answer = (_as_text(_find(record, side)) for side in sides)
    return [Message("user", prompt), Message("bot", answer)] if prompt and answer else []


def _messages(record: Record, notes: Notes) -> list[Message]:
    """The messages that a record holds in a list: objects with a role each, or texts by turns."""
    lower = {name.lower(): value for name, value in record.items()}
    turns: list[Any] = next((lower[name] for name in CONVERSATION_NAMES if isinstance(lower.get(name), list)), [])
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        if isinstance(turn, dict):
            role = str(turn.get("role", turn.get("from", ""))).lower()
            text = turn.get("content", turn.get("value", turn.get("text")))
        else:
            role, text = ("user", "bot")[number % 2], turn
        if role not in ROLES or not isinstance(text, str):
            notes.add("messages left out that neither user nor bot says: {count}, the first by {first!r}", 1, role)
        else:
            messages.append(Message("user" if ROLES[role] == "user" else "bot", text))
    return messages


def _peek(items: Iterable[Any]) -> tuple[list[Any], Iterator[Any]]:
    """The first ones, and all."""
    iterator = iter(items)
    sample = list(islice(iterator, SAMPLE))
    return sample, chain(sample, iterator)
