"""JSON Lines: parses a line of input, and writes an answer as a line of output, which is input that makes it again."""

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tinychat.config.settings import SETTINGS, Settings, parse_changes
from tinychat.errors import ModelError, UsageError
from tinychat.events import Finished, Token
from tinychat.formats.registry import open_model
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel
from tinychat.untrusted import parse_json

COMPLETION = "completion"
ANSWER_KEYS = (
    COMPLETION, "tokens", "finish_reason", "seconds", "logprobs", "choice_probabilities", "candidates",
)  # fmt: skip
"""Keys of an output line that are not read from one with a completion: they describe its answer."""
ABSENT_SETTINGS = ("seed", "slow", "threads")
"""Settings that are no field of an output line: the seed used is one, and the others change the pace alone."""
UNREAD_ROLES = ("system", "developer")
"""Roles that no model here is trained on: their messages are left out, as in training."""
ROLES = ("user", "assistant")
"""Roles of the messages that are read, in turns."""
MAX_QUOTE = 40


@dataclass(frozen=True)
class Line:
    """What a line of input asks for."""

    prompt: str
    settings: Settings
    own: Mapping[str, Any] = field(default_factory=dict)
    """The settings that the line itself has."""
    messages: list[Any] | None = None
    """The messages before the prompt, as they were given; None without any."""
    turns: tuple[Turn, ...] = ()
    """The turns before the prompt that those messages are."""
    id: dict[str, Any] = field(default_factory=dict)
    """`{"id": …}`, if the line has one."""
    notice: str = ""
    """Says which messages are left out, if any."""


def parse_line(line: str, settings: Settings, model: OpenModel) -> Line:
    """Parse a line: a string, or an object with a `prompt`, `messages` or both, and those `settings` that differ.

    Raises:
        UsageError: If the line is not JSON, has no prompt, or has a field that is no setting or has a wrong value.
    """
    try:
        values = parse_json(line)
    except ValueError as error:
        raise UsageError(f"no JSON: {error}") from None
    if isinstance(values, str):
        return Line(values, settings)
    if not isinstance(values, dict):
        raise UsageError(f"an object or a string is wanted, not {_quote(values)}")
    if COMPLETION in values:
        values = {key: value for key, value in values.items() if key not in ANSWER_KEYS}
    id = {"id": values.pop("id")} if "id" in values else {}
    _check_model(values.pop("model", None), model)
    prompt, messages = values.pop("prompt", None), values.pop("messages", None)
    if prompt is None and messages is None:
        raise UsageError("there is no prompt")
    if not isinstance(prompt, str | None):
        raise UsageError(f"the prompt is no text: {_quote(prompt)}")
    changes = parse_changes(values, settings, at_loading="give it as {flag}")
    found = Line(prompt or "", dataclasses.replace(settings, **changes), changes, id=id)
    return found if messages is None else _with_messages(found, messages, model, has_prompt=prompt is not None)


def id_of(line: str) -> dict[str, Any]:
    """Return `{"id": …}` of a line, also of one that asks for nothing; empty if it has none."""
    try:
        values = parse_json(line)
    except ValueError:
        return {}
    return {"id": values["id"]} if isinstance(values, dict) and "id" in values else {}


def record_of(
    line: Line, tokens: Sequence[Token], finished: Finished, *, model: str, given: Collection[str], has_logprobs: bool
) -> dict[str, Any]:
    """Return an answer as an object for a line of output; `parse_line` reads from it what makes the answer again.

    `model` refers to the model that answered; `given` are the settings that the call has, not the model or nobody.
    """
    values: dict[str, Any] = {"prompt": line.prompt}
    if line.messages is not None:
        values["messages"] = line.messages
    values |= {
        COMPLETION: "".join(token.text for token in tokens), "tokens": finished.tokens,
        "finish_reason": finished.reason, "seconds": round(finished.seconds, 6), "seed": finished.seed,
        "model": model,
    }  # fmt: skip
    names = (name for name in SETTINGS if name in given or name in line.own)
    values |= {name: getattr(line.settings, name) for name in names if name not in ABSENT_SETTINGS} | line.id
    if has_logprobs:
        values["logprobs"] = [
            {"text": token.text, "logprob": token.logprob}
            | {"top": [{"text": other.text, "logprob": other.logprob} for other in token.top]}
            for token in tokens
        ]
    return values


def messages_of(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return turns as messages."""
    pairs = (zip(ROLES, (turn.prompt, turn.answer), strict=True) for turn in turns)
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


def _check_model(name: object, model: OpenModel) -> None:
    """Check that the model that a line names, if any, is the open one."""
    if name is None or name in (model.name, model.reference):
        return
    with suppress(ModelError):  # there is none of that name: it is not the open one either
        if isinstance(name, str) and open_model(name).folder.resolve() == model.info.folder.resolve():
            return
    raise UsageError(f"the model is {model.name}, not {_quote(name)}", "it holds for the whole call: give it as -m")


def _with_messages(line: Line, messages: object, model: OpenModel, *, has_prompt: bool) -> Line:
    """Return a line with the turns of its messages; without a prompt of its own, the last message is the prompt."""
    if not isinstance(messages, list):
        raise UsageError(f"messages is no list: {_quote(messages)}")
    before, texts, unread = list(messages), list[str](), dict[str, None]()
    last = -1
    for index, message in enumerate(messages):
        role, text = _parse_message(message, index + 1)
        if role in UNREAD_ROLES:
            unread[role] = None
        elif role != ROLES[len(texts) % 2]:
            wanted = ROLES[len(texts) % 2]
            raise UsageError(f"message {index + 1} has the role {role}, not {wanted}", "roles take turns: user first")
        else:
            texts.append(text)
            last = index
    ends_with_user = len(texts) % 2 == 1
    if has_prompt and ends_with_user:
        raise UsageError("a prompt follows the user's last message", "give it as a message, or an answer before it")
    if not has_prompt and not ends_with_user:
        raise UsageError("the messages do not end with the user's", "the last one is what is answered")
    if not has_prompt:
        line = dataclasses.replace(line, prompt=texts.pop())
        del before[last]
    turns = tuple(Turn(question, saved_text=answer) for question, answer in zip(texts[::2], texts[1::2], strict=True))
    notices = [f"messages left out that no model reads: {', '.join(unread)}"] if unread else []
    if turns and model.info.mode == "translation":
        notices.append("messages left out: a translation model reads the last one alone")
    return dataclasses.replace(line, messages=before, turns=turns, notice="; ".join(notices))


def _parse_message(message: object, number: int) -> tuple[str, str]:
    """Return the role and the text of a message, whose content is a text or a list of parts with texts."""
    if not isinstance(message, dict):
        raise UsageError(f"message {number} is no object: {_quote(message)}")
    role, content = message.get("role"), message.get("content")
    if role not in (*ROLES, *UNREAD_ROLES):
        known = ", ".join((*ROLES, *UNREAD_ROLES))
        raise UsageError(f"message {number} has the role {_quote(role)}", f"one of {known}")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if len(texts) < len(parts):
        raise UsageError(f"the content of message {number} is no text: {_quote(content)}")
    return role, "".join(texts)


def _quote(value: object) -> str:
    return (repr(value) if isinstance(value, str) else json.dumps(value))[:MAX_QUOTE]
