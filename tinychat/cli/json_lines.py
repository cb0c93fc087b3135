"""JSON Lines: parses a line of input, and writes an answer as a line of output, which is input that makes it again."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tinychat.config.settings import SETTINGS, Settings, parse_changes
from tinychat.errors import ModelError, UsageError
from tinychat.events import Finished, Token
from tinychat.formats.registry import open_model
from tinychat.session.conversation import Turn
from tinychat.session.messages import parse_messages, quote
from tinychat.session.open_model import OpenModel
from tinychat.untrusted import parse_json

COMPLETION = "completion"
ANSWER_KEYS = (
    COMPLETION, "tokens", "finish_reason", "seconds", "logprobs", "choice_probabilities", "candidates",
)  # fmt: skip
"""Keys of an output line that are not read from one with a completion: they describe its answer."""
ABSENT_SETTINGS = ("seed", "slow", "threads")
"""Settings that are no field of an output line: the seed used is one, and the others change the pace alone."""


@dataclass(frozen=True)
class Line:
    """A line of input, checked."""

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
    """Says which messages are left out or joined, if any."""


def parse_line(line: str, settings: Settings, model: OpenModel) -> Line:
    """Parse a line: a string, or an object with a `prompt`, `messages` or both, and those `settings` that differ.

    Raises:
        UsageError: If the line is not JSON, has no prompt, or has a field that is no setting or has a wrong value.
    """
    try:
        values = parse_json(line)
    except ValueError as error:
        raise UsageError(str(error), 'a prompt is "TEXT", in quotation marks, or {"prompt": "TEXT"}') from None
    if isinstance(values, str):
        return Line(values, settings)
    if not isinstance(values, dict):
        raise UsageError(f"an object or a string is wanted, not {quote(values)}")
    if COMPLETION in values:
        values = {key: value for key, value in values.items() if key not in ANSWER_KEYS}
    id = {"id": values.pop("id")} if "id" in values else {}
    _check_model(values.pop("model", None), model)
    prompt, messages = values.pop("prompt", None), values.pop("messages", None)
    if prompt is None and messages is None:
        raise UsageError("there is no prompt")
    if not isinstance(prompt, str | None):
        raise UsageError(f"the prompt is no text: {quote(prompt)}")
    changes = parse_changes(values, settings, at_loading="give it as {flag}")
    found = Line(prompt or "", dataclasses.replace(settings, **changes), changes, id=id)
    if messages is None:
        return found
    prompt, before, turns, notice, system = parse_messages(messages, model, prompt)
    own = dataclasses.replace(found.settings, system=system) if system else found.settings
    return dataclasses.replace(found, prompt=prompt, settings=own, messages=before, turns=turns, notice=notice)


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


def _check_model(name: object, model: OpenModel) -> None:
    """Check that the model that a line names, if any, is the open one."""
    if name is None or name in (model.name, model.reference):
        return
    with suppress(ModelError):  # there is none of that name: it is not the open one either
        if isinstance(name, str) and open_model(name).folder.resolve() == model.info.folder.resolve():
            return
    raise UsageError(f"the model is {model.name}, not {quote(name)}", "it holds for the whole call: give it as -m")
