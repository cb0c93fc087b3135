"""Any JSON is a request that is understood, or an error that tells why not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.config.settings import SETTINGS, SettingStore
from tinychat.errors import GenerationError
from tinychat.serve.requests import IGNORED, NEUTRAL, ApiError, Ask, parse_chat, parse_completion
from tinychat.session.open_model import OpenModel

FIELDS = (
    "model", "prompt", "messages", "stream", "stream_options", "n", "logprobs", "top_logprobs", "echo", "logit_bias",
    "max_completion_tokens", "greedy", "x", *SETTINGS, *IGNORED, *NEUTRAL,
)  # fmt: skip
LIKELY = st.sampled_from((0, 1, 2, -1, 0.5, 1e30, True, False, None, "", "a", "none", [], ["a"], [1], [[1], [2]], {}))
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(("user", "assistant", "system")), "content": LIKELY}), max_size=3
)
ANY = st.recursive(LIKELY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
VALUES = st.one_of(LIKELY, ANY, MESSAGES, st.dictionaries(st.sampled_from(("0", "5", "-1", "x")), LIKELY, max_size=2))


@pytest.fixture(scope="module")
def opened(letters: Path) -> OpenModel:
    return OpenModel(str(letters), SettingStore())


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6), st.booleans())
@pytest.mark.slow
def test_every_body_is_a_request_or_an_error(opened: OpenModel, values: dict[str, Any], is_chat: bool) -> None:
    begun: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}]} if is_chat else {"prompt": "a"}
    parse = parse_chat if is_chat else parse_completion
    try:
        ask = parse(json.dumps(begun | values).encode(), SettingStore().current, opened)
    except ApiError as refused:
        error = refused
    else:
        assert isinstance(ask, Ask)
        assert ask.prompts
        assert ask.n >= 1
        return
    assert 400 <= error.status < 500
    assert set(error.body["error"]) == {"message", "type", "param", "code"}
    json.dumps(error.body).encode()


@pytest.mark.parametrize("name", ["choices", "ban", "boost", "begin", "steer", "regex", "dry_sequence_breakers"])
def test_texts_of_a_setting_are_limited_also_as_one(opened: OpenModel, name: str) -> None:
    for value in ("a" * 2_001, "a-b 1," * 400):
        with pytest.raises(ApiError, match="takes up to 64 texts of up to 2,000 characters") as caught:
            parse_completion(json.dumps({"prompt": "a", name: value}).encode(), SettingStore().current, opened)
        assert caught.value.param == name


def test_texts_in_the_limits_are_settings(opened: OpenModel) -> None:
    values = {"choices": ",".join(["a" * 2_000] * 64), "begin": "a" * 2_000, "system": "a" * 10_000, "greedy": True}
    ask = parse_completion(json.dumps({"prompt": "a", **values}).encode(), SettingStore().current, opened)
    assert len(ask.settings.choices) == 64
    assert ask.settings.system == values["system"]


def test_settings_that_the_model_ignores_are_told_with_each_request_that_has_them(opened: OpenModel) -> None:
    store = SettingStore()
    store.set("system", "be kind")  # of the server, which tells so itself
    ignored = {"system": "talk like a pirate", "token_healing": "on"}
    for _ in range(2):
        for begun, parse in (
            ({"messages": [{"role": "user", "content": "a"}]}, parse_chat),
            ({"prompt": "a"}, parse_completion),
        ):
            assert parse(json.dumps(begun | ignored).encode(), store.current, opened).notices == (
                "letters heals no prompts: its tokens are characters",
                "letters reads no system message: it is no chat model: the system message is left out",
            )
            assert parse(json.dumps(begun).encode(), store.current, opened).notices == ()


@pytest.mark.parametrize("greedy", [True, False])
def test_greedy_has_to_agree_with_the_temperature_in_any_order(opened: OpenModel, *, greedy: bool) -> None:
    given = {"prompt": "a", "greedy": greedy, "temperature": 0.9 if greedy else 0}
    for values in (given, dict(reversed(given.items()))):
        with pytest.raises(ApiError, match=r"^greedy is \w+, and the temperature .*; give one of the two$") as caught:
            parse_completion(json.dumps(values).encode(), SettingStore().current, opened)
        assert (caught.value.status, caught.value.param) == (400, "greedy")
    for value in (0, None):
        values = {"prompt": "a", "greedy": True, "temperature": value}
        assert parse_completion(json.dumps(values).encode(), SettingStore().current, opened).settings.greedy


def test_messages_in_a_row_are_joined_and_a_greeting_is_left_out(opened: OpenModel) -> None:
    said = [("assistant", "hi"), ("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d"), ("user", "e")]
    body = json.dumps({"messages": [{"role": role, "content": text} for role, text in said]}).encode()
    ask = parse_chat(body, SettingStore().current, opened)
    (prompt,) = ask.prompts
    assert prompt.text == "d\ne"
    assert [(turn.prompt, turn.answer) for turn in prompt.turns or ()] == [("a\nb", "c")]
    assert ask.notices == (
        "messages left out before the first of the user: assistant; "
        "messages of one role in a row are joined, each on a line of its own",
    )


@pytest.mark.parametrize(
    ("remedy", "message"),
    [
        ("/max-tokens 12, or more", "it is too short"), ("`--max-tokens 12`, or more", "it is too short"),
        ("change it, or `/ban none`", "it is too short"), ("`--steer none`", "it is too short"),
        ("`tinychat serve` takes it as --device", "it is too short; `tinychat serve` takes it as --device"),
        ("it lacks its characters", "it is too short; it lacks its characters"),
        ("see docs/serve.md, /etc/hosts and/or 1/2", "it is too short; see docs/serve.md, /etc/hosts and/or 1/2"),
        ("", "it is too short"),
    ],
)  # fmt: skip
def test_a_client_is_not_told_to_type_a_command(remedy: str, message: str) -> None:
    assert ApiError.of(GenerationError("it is too short", remedy)).message == message
