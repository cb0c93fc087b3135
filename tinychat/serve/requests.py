"""Requests as OpenAI's API words them: what a client asks for, and what is wrong with it."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tinychat.config.option import split_texts
from tinychat.config.settings import MAX_BOOST, MAX_INTEGER, SETTINGS, Settings, parse_changes
from tinychat.errors import TinychatError, UsageError
from tinychat.session.conversation import Turn
from tinychat.session.messages import parse_messages, quote
from tinychat.session.open_model import OpenModel
from tinychat.store.names import fold
from tinychat.untrusted import parse_json

MAX_TOP_LOGPROBS = 100
"""Maximum number of likeliest tokens at a position."""
MAX_TEXTS, MAX_TEXT = 64, 2_000
"""Maximum number of texts of a setting, such as stop texts, and of characters of one."""
IGNORED = (
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "parallel_tool_calls", "reasoning_effort", "verbosity",
)  # fmt: skip
"""Fields of OpenAI's API that change no text here."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "tools": ([],), "tool_choice": ("none", "auto"), "functions": ([],), "function_call": ("none", "auto"),
    "modalities": (["text"],), "response_format": ({"type": "text"},), "suffix": ("",), "audio": (), "prediction": (),
    "web_search_options": (), "moderation": (),
}  # fmt: skip
"""Fields of OpenAI's API for what no model here can do, each with the values that ask for none of it."""
COMMON = ("temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty", "best_of")
"""Settings that are fields of OpenAI's API too: null leaves them as they are."""
_TYPED = re.compile(r"(?<![\w/])/[a-z-]+(?![\w/-])|`--[a-z]")
"""A command of the REPL, such as `/max-tokens`, but no path; or a flag."""


class ApiError(Exception):
    """An error in OpenAI's shape, with its HTTP status."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code, self.retry_after = status, message, param, code, retry_after

    @classmethod
    def of(cls, error: TinychatError, *, status: int = 400, **attributes: Any) -> "ApiError":
        """Return the error of tinychat with a status; without a remedy that no client can type."""
        remedy = "" if _TYPED.search(error.remedy) else error.remedy
        return cls(status, "; ".join(filter(None, (error.problem, remedy))), **attributes)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the response."""
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True)
class Prompt:
    """A prompt: a text, which may follow turns, or the ids of tokens."""

    text: str = ""
    turns: tuple[Turn, ...] | None = None
    """The turns before it; None if it is no message."""
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Ask:
    """A request, checked."""

    prompts: list[Prompt]
    settings: Settings
    seed: int | None
    """The seed of the request itself."""
    is_chat: bool
    n: int = 1
    """Number of answers to each prompt."""
    stream: bool = False
    include_usage: bool = False
    """Whether a stream ends with the numbers of tokens."""
    logprobs: int | None = None
    """Number of likeliest tokens at each position; None without any log-probabilities."""
    echo: bool = False
    generates: bool = True
    """False for `max_tokens` 0: nothing is generated."""
    logit_bias: dict[int, float] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def parse_chat(body: bytes, settings: Settings, model: OpenModel) -> Ask:
    """Parse a request for a chat completion.

    Raises:
        ApiError: If it is malformed, or asks for what is not there.
    """
    values = _parse_body(body, model)
    if "messages" not in values:
        raise ApiError(400, "there are no messages", param="messages")
    try:
        prompt, _, turns, notice, system = parse_messages(values.pop("messages"), model)
    except TinychatError as error:  # also of the model's chat template
        raise ApiError.of(error, param="messages") from None
    if system:
        settings = dataclasses.replace(settings, system=system)
    if (most := values.pop("max_completion_tokens", None)) is not None:
        values["max_tokens"] = most
    has_logprobs = _take(values, "logprobs", bool, False)
    top_logprobs = _take_int(values, "top_logprobs", 0, 0, MAX_TOP_LOGPROBS)
    if top_logprobs and not has_logprobs:
        raise ApiError(400, "top_logprobs needs logprobs to be true", param="top_logprobs")
    return _ask(
        [Prompt(prompt, turns)], values, settings, model, is_chat=True, logprobs=top_logprobs if has_logprobs else None,
        notices=(notice,) if notice else (),
    )  # fmt: skip


def parse_completion(body: bytes, settings: Settings, model: OpenModel) -> Ask:
    """Parse a request for a completion.

    Raises:
        ApiError: If it is malformed, or asks for what is not there.
    """
    values = _parse_body(body, model)
    if values.get("prompt") is None:
        raise ApiError(400, "there is no prompt", param="prompt")
    prompts = _parse_prompts(values.pop("prompt"), model)
    logprobs = _take_int(values, "logprobs", None, 0, MAX_TOP_LOGPROBS)
    echo = _take(values, "echo", bool, False)
    generates = values.get("max_tokens") != 0 or isinstance(values.get("max_tokens"), bool)
    if not generates:
        del values["max_tokens"]
    return _ask(
        prompts, values, settings, model, is_chat=False, logprobs=logprobs, echo=echo, generates=generates
    )  # fmt: skip


def _parse_body(body: bytes, model: OpenModel) -> dict[str, Any]:
    """Return the fields of a request, without its model and those that change nothing."""
    try:
        values = parse_json(body.decode("utf-8"))
    except ValueError as error:
        raise ApiError(400, f"the body cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise ApiError(400, f"the body is no object: {quote(values)}")
    check_model(values.pop("model", None), model)
    for name in IGNORED:
        values.pop(name, None)
    for name, neutral in NEUTRAL.items():
        if (value := values.pop(name, None)) is not None and value not in neutral:
            raise ApiError(400, f"no model here can do what {name} asks for: {quote(value)}", param=name)
    return {name: value for name, value in values.items() if value is not None or name not in COMMON}


def check_model(name: object, model: OpenModel) -> None:
    """Check that the model that a request names, if any, is the open one, whatever the case of its letters.

    Raises:
        ApiError: If it is not.
    """
    if name is None:
        return
    if not isinstance(name, str):
        raise ApiError(400, f"the model is no text: {quote(name)}", param="model")
    if fold(name) == fold(model.name):
        return
    problem = f"there is no model {quote(name)} here: this server has {model.name!r}"
    raise ApiError(404, problem, param="model", code="model_not_found")


def _ask(
    prompts: list[Prompt], values: dict[str, Any], settings: Settings, model: OpenModel,
    notices: tuple[str, ...] = (), **known: Any,
) -> Ask:  # fmt: skip
    """Return what a request asks for, from the fields that all requests share."""
    n = _take_int(values, "n", 1, 1, None)
    stream = _take(values, "stream", bool, False)
    options = _take(values, "stream_options", dict, {})
    logit_bias = _parse_biases(_take(values, "logit_bias", dict, {}), model)
    if isinstance(values.get("stop"), str):
        values["stop"] = [values["stop"]]  # of several, backslashes are what they are
    if isinstance(seed := values.get("seed"), int) and not isinstance(seed, bool):
        values["seed"] = seed % (MAX_INTEGER + 1)  # others take negative seeds, and larger ones
    parse = partial(parse_changes, settings=settings, at_loading="`tinychat serve` takes it as {flag}")
    try:
        for name, value in values.items():  # one by one, so that an error names its field
            _check_texts(name, value)
            parse({name: value})
        name = "greedy"  # has to agree with the temperature
        changes = parse(values)
    except UsageError as error:
        raise ApiError.of(error, param=name) from None
    try:
        notices += tuple(notice.text for notice in model.ignored(Settings(**changes)))  # not those of the server itself
    except TinychatError as error:  # of the model's chat template
        raise ApiError.of(error, param="system") from None
    return Ask(
        prompts, dataclasses.replace(settings, **changes), changes.get("seed"), n=n, stream=stream,
        include_usage=_take(dict(options), "include_usage", bool, False), logit_bias=logit_bias, notices=notices,
        **known,
    )  # fmt: skip


def _check_texts(name: str, value: object) -> None:
    """Check that a setting has not too many texts, nor too long ones; a system prompt is as long as a message may be.

    Raises:
        ApiError: If it has.
        UsageError: If there is no such setting.
    """
    if name == "greedy" or not isinstance(value, str | list) or (setting := SETTINGS.find(name)).name == "system":
        return
    texts = value if isinstance(value, list) else split_texts(value) if setting.separated else [value]
    if len(texts) > MAX_TEXTS or any(len(str(text)) > MAX_TEXT for text in texts):
        problem = f"{name} takes up to {MAX_TEXTS} texts of up to {MAX_TEXT:,} characters"
        raise ApiError(400, problem, param=name)


def _parse_prompts(value: object, model: OpenModel) -> list[Prompt]:
    """Return the prompts of a field that is a text, a list of texts, ids or a list of lists of ids."""
    is_ids = isinstance(value, list) and bool(value) and all(isinstance(one, int) for one in value)
    values = value if isinstance(value, list) and not is_ids else [value]
    if not values:
        raise ApiError(400, "the prompt is an empty list", param="prompt")
    prompts = []
    for one in values:
        if isinstance(one, str):
            prompts.append(Prompt(one))
        elif isinstance(one, list) and one and all(_is_id(id, model) for id in one):
            prompts.append(Prompt(ids=tuple(one)))
        else:
            most = model.config.vocab_size - 1
            problem = f"a prompt is a text, or a list of ids of tokens from 0 to {most:,}, not {quote(one)}"
            raise ApiError(400, problem, param="prompt")
    if any(prompt.ids for prompt in prompts) and model.info.mode == "translation":
        raise ApiError(400, "a translation model reads texts, not ids", param="prompt")
    return prompts


def _parse_biases(values: Mapping[str, object], model: OpenModel) -> dict[int, float]:
    """Return the bias of each token."""
    biases = {}
    for key, bias in values.items():
        id = int(key) if key.isascii() and key.isdigit() and len(key) < 10 else -1
        if not _is_id(id, model):
            problem = f"logit_bias takes ids of tokens from 0 to {model.config.vocab_size - 1:,}, not {quote(key)}"
            raise ApiError(400, problem, param="logit_bias")
        if isinstance(bias, bool) or not isinstance(bias, int | float) or not abs(bias) <= MAX_BOOST:
            problem = f"logit_bias takes numbers from -{MAX_BOOST} to {MAX_BOOST}, not {quote(bias)}"
            raise ApiError(400, problem, param="logit_bias")
        biases[id] = float(bias)
    return biases


def _is_id(id: object, model: OpenModel) -> bool:
    return isinstance(id, int) and not isinstance(id, bool) and 0 <= id < model.config.vocab_size


def _take(values: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    """Remove a field and return its value, or the default for none."""
    value = values.pop(name, None)
    if value is None:
        return default
    if not isinstance(value, kind):
        words = {bool: "true or false", dict: "an object"}[kind]
        raise ApiError(400, f"{name} takes {words}, not {quote(value)}", param=name)
    return value


def _take_int(values: dict[str, Any], name: str, default: int | None, low: int, high: int | None) -> Any:
    value = values.pop(name, None)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        words = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise ApiError(400, f"{name} takes a whole number {words}, not {quote(value)}", param=name)
    return value
