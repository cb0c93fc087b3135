"""Messages of JSON Lines and of requests to the server: the turns before a prompt, and the prompt."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tinychat import textutil
from tinychat.errors import UsageError
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel

SYSTEM_ROLES = ("system", "developer")
"""Roles of the messages before a conversation, which only some models of others read."""
ROLES = ("user", "assistant")
"""Roles of the messages that are read, in turns."""


class Messages(NamedTuple):
    """A list of messages, as turns and a prompt."""

    prompt: str
    """The last message, or several of the user, if no prompt follows them."""
    before: list[Any]
    """The messages before the prompt, as they were given."""
    turns: tuple[Turn, ...]
    """The turns before the prompt that those messages are."""
    notice: str
    """Says which messages are left out or joined, if any."""
    system: str = ""
    """The text of the system messages, if the model reads one; empty without any."""


def parse_messages(messages: object, model: OpenModel, prompt: str | None = None) -> Messages:
    """Parse messages, which a prompt may follow; without one, the last message is the prompt.

    Clients send a greeting of the assistant first, and several messages of one role in a row: the greeting is left out,
    since the user begins each conversation here, and the others are joined.

    Raises:
        UsageError: If they are no messages, or do not end with the user's, or with the assistant's if a prompt follows.
        TokenizerError: If the model's chat template cannot be rendered.
    """
    if not isinstance(messages, list):
        raise UsageError(f"messages is no list: {quote(messages)}")
    if prompt is None and not messages:
        raise UsageError("there are no messages", "the last one is what is answered")
    parsed = [_parse_message(message, index + 1) for index, message in enumerate(messages)]
    system = [(role, text) for role, text in parsed if role in SYSTEM_ROLES]
    spoken = [index for index, (role, _) in enumerate(parsed) if role in ROLES]
    groups = [list(indices) for _, indices in groupby(spoken, key=lambda index: parsed[index][0])]
    notices, is_read = list[str](), bool(system) and model.prompt_encoder.reads_system
    if system and not is_read:
        roles = ", ".join(dict.fromkeys(role for role, _ in system))
        notices.append(f"messages left out that {model.name} does not read: {roles}")
    if groups and parsed[groups[0][0]][0] != ROLES[0]:
        del groups[0]
        notices.append("messages left out before the first of the user: assistant")
    if any(len(indices) > 1 for indices in groups):
        notices.append("messages of one role in a row are joined, each on a line of its own")
    texts = ["\n".join(parsed[index][1] for index in indices) for indices in groups]
    before, ends_with_user = list(messages), len(texts) % 2 == 1
    if prompt is not None and ends_with_user:
        raise UsageError("a prompt follows the user's last message", "give it as a message, or an answer before it")
    if prompt is None and not ends_with_user:
        raise UsageError("the messages do not end with the user's", "the last one is what is answered")
    if prompt is None:
        prompt = texts.pop()
        before = [message for index, message in enumerate(messages) if index not in groups[-1]]
    turns = tuple(Turn(question, saved_text=answer) for question, answer in zip(texts[::2], texts[1::2], strict=True))
    if turns and model.info.mode == "translation":
        notices.append("messages left out: a translation model reads the last one alone")
    whole = "\n\n".join(text for _, text in system) if is_read else ""
    return Messages(prompt, before, turns, "; ".join(notices), whole)


def _parse_message(message: object, number: int) -> tuple[str, str]:
    """Return the role and the text of a message, whose content is a text or a list of parts with texts."""
    if not isinstance(message, dict):
        raise UsageError(f"message {number} is no object: {quote(message)}")
    role, content = message.get("role"), message.get("content")
    if role not in (*ROLES, *SYSTEM_ROLES):
        known = ", ".join((*ROLES, *SYSTEM_ROLES))
        raise UsageError(f"message {number} has the role {quote(role)}", f"one of {known}")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if len(texts) < len(parts):
        raise UsageError(f"the content of message {number} is no text: {quote(content)}")
    return role, "".join(texts)


def messages_of(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return turns as messages."""
    pairs = (zip(ROLES, (turn.prompt, turn.answer), strict=True) for turn in turns)
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


def quote(value: object) -> str:
    """Return a value as JSON writes it, but a text as Python does, cut short."""
    return textutil.quote(value) if isinstance(value, str) else textutil.shorten(json.dumps(value), textutil.MAX_QUOTE)
