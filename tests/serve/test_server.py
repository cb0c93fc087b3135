"""The server, asked by OpenAI's own client and by clients that ask wrongly, leave or are too many."""

import json
import math
import shutil
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.serve.conftest import Served

pytestmark = pytest.mark.slow  # OpenAI's client takes seconds to import

Serve = Callable[..., Served]
Client = Callable[[Served], Any]
HELLO: list[Any] = [
    {"role": "user", "content": "hello there"},
    {"role": "assistant", "content": "fine, thanks"},
    {"role": "user", "content": "how are you?"},
]
ENDLESS = {"prompt": "abc", "max_tokens": 10**6, "stream": True}
"""A request that takes longer than any test."""


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def join(stream: Any) -> str:
    """Return the text of a stream of completions or of chats."""
    choices = (choice for chunk in stream for choice in chunk.choices)
    return "".join((choice.text if hasattr(choice, "text") else choice.delta.content) or "" for choice in choices)


def test_streams_of_the_client_are_the_text_of_json_lines(
    serve: Serve, client: Client, json_lines: Callable[..., Any], chatter: Path, letters: Path
) -> None:
    own = {"seed": 7, "max_tokens": 30, "temperature": 1.5, "top_p": 0.9}
    for model in (chatter, letters):
        asked = client(serve(model))
        lines = json_lines(model, {"prompt": "hello there"} | own, {"messages": HELLO} | own, {"prompt": "a"} | own)
        text, turns, other = (line["completion"] for line in lines)
        name = model.name
        assert len({text, turns, other}) == 3
        assert join(asked.completions.create(model=name, prompt="hello there", stream=True, **own)) == text
        assert join(asked.chat.completions.create(model=name, messages=HELLO, stream=True, **own)) == turns
        assert asked.chat.completions.create(model=name, messages=HELLO, **own).choices[0].message.content == turns
        whole = asked.completions.create(model=name, prompt=["hello there", "a"], **own)
        first, second = (choice.text for choice in whole.choices)
        alone = json_lines(
            model, *({"prompt": p, **own, "seed": None} for p in ("hello there", "a")), arguments=("-s", "7")
        )
        assert [first, second] == [line["completion"] for line in alone] == [text, second]


def test_settings_have_their_own_names(
    serve: Serve, client: Client, json_lines: Callable[..., Any], letters: Path
) -> None:
    own: dict[str, Any] = {
        "seed": 3, "max_tokens": 40, "top_k": 5, "min_p": 0.01, "repetition_penalty": 1.3, "no_repeat_ngram": 2,
        "frequency_penalty": 0.5, "stop": ["q"], "ban": ["e"], "begin": "the",
    }  # fmt: skip
    (line,) = json_lines(letters, {"prompt": "abc"} | own)
    common = {name: own.pop(name) for name in ("seed", "max_tokens", "frequency_penalty", "stop")}
    answer = client(serve(letters)).completions.create(model="letters", prompt="abc", extra_body=own, **common)
    assert answer.choices[0].text == line["completion"]
    assert answer.choices[0].finish_reason == {"end": "stop"}.get(line["finish_reason"], line["finish_reason"])
    assert answer.usage.completion_tokens == line["tokens"]
    assert answer.choices[0].seed == 3


def test_several_answers_biases_and_stop_texts(serve: Serve, client: Client, letters: Path) -> None:
    asked = client(serve(letters)).completions
    several = asked.create(model="letters", prompt="abc", n=3, seed=1, max_tokens=20).choices
    assert [choice.index for choice in several] == [0, 1, 2]
    assert len({choice.text for choice in several}) == 3
    alone = asked.create(model="letters", prompt="abc", seed=several[2].seed, max_tokens=20).choices[0]
    assert alone.text == several[2].text
    forced = asked.create(model="letters", prompt="abc", logit_bias={"3": 100}, max_tokens=5, temperature=0)
    assert len(set(forced.choices[0].text)) == 1
    stopped = asked.create(model="letters", prompt="abc", seed=1, max_tokens=20, stop=several[0].text[5]).choices[0]
    assert stopped.text == several[0].text.partition(several[0].text[5])[0]
    assert stopped.finish_reason == "stop"


def test_logprobs_are_those_of_json_lines(
    serve: Serve, client: Client, json_lines: Callable[..., Any], chatter: Path
) -> None:
    own = {"seed": 7, "max_tokens": 12}
    (line,) = json_lines(chatter, {"prompt": "hello there"} | own, arguments=("--logprobs", "2"))
    expected = [token["logprob"] for token in line["logprobs"]]
    tops = [[top["logprob"] for top in token["top"]] for token in line["logprobs"]]
    asked = client(serve(chatter))
    of_text = asked.completions.create(model="chatter", prompt="hello there", logprobs=2, **own).choices[0]
    assert of_text.logprobs.token_logprobs == pytest.approx(expected, abs=1e-5)
    assert "".join(of_text.logprobs.tokens) == of_text.text == line["completion"]
    for at, token in zip(of_text.logprobs.text_offset, of_text.logprobs.tokens, strict=True):
        assert of_text.text[at:].startswith(token)
    hello = [{"role": "user", "content": "hello there"}]
    for stream in (False, True):
        chat = asked.chat.completions.create(
            model="chatter", messages=hello, logprobs=True, top_logprobs=2, stream=stream, **own
        )
        chunks = [chunk.choices[0] for chunk in chat] if stream else chat.choices
        tokens = [token for choice in chunks if choice.logprobs for token in choice.logprobs.content]
        assert [token.logprob for token in tokens] == pytest.approx(expected, abs=1e-5)
        for token, top in zip(tokens, tops, strict=True):
            assert [one.logprob for one in token.top_logprobs] == pytest.approx(top, abs=1e-5)


def test_likelihoods_of_a_prompt_are_those_of_eval(serve: Serve, client: Client, letters: Path, tmp_path: Path) -> None:
    from tinychat.config.settings import Settings
    from tinychat.evaluate.perplexity import score
    from tinychat.store.models import open_info

    text = "the quick brown fox jumps over the lazy dog and " * 3  # several windows of the context
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    loss = score(open_info(letters), [str(tmp_path / "text.txt")], "all", settings=Settings()).loss
    asked = client(serve(letters)).completions
    for logprobs in (0, 3):
        echoed = asked.create(model="letters", prompt=text, echo=True, logprobs=logprobs, max_tokens=0).choices[0]
        first, *others = echoed.logprobs.token_logprobs
        assert echoed.text == text
        assert first is None
        assert -sum(others) / len(others) == pytest.approx(loss, abs=1e-4)
    _, *tops = echoed.logprobs.top_logprobs
    for logprob, token, top in zip(others, echoed.logprobs.tokens[1:], tops, strict=True):
        assert top[token] == logprob
        assert max(top.values()) >= logprob
        assert 3 <= len(top) <= 4
    ids = [5, 6, 7]
    more = asked.create(model="letters", prompt=[ids, ids[:2]], echo=True, max_tokens=4, seed=1, stream=True)
    assert len(join(more)) == 5 + 8


def test_an_echo_is_the_prompt_with_its_likelihoods_too(serve: Serve, chatter: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(chatter, tmp_path / "spaced"))
    config = json.loads((folder / "config.json").read_text())
    config["template"]["user_prefix"] = " "
    (folder / "config.json").write_text(json.dumps(config))
    served = serve(folder)
    for prompt in ("hello  there", " hello", "  you?"):
        body = {"prompt": prompt, "echo": True, "max_tokens": 1, "greedy": True}
        plain, scored = (
            served.request("/v1/completions", body | more)[1]["choices"][0] for more in ({}, {"logprobs": 0})
        )
        assert scored["text"] == plain["text"]
        assert scored["text"].startswith(prompt)
        offsets, tokens = (scored["logprobs"][name] for name in ("text_offset", "tokens"))
        assert all(scored["text"][at:].startswith(token) for at, token in zip(offsets, tokens, strict=True))
        assert "".join(tokens) == scored["text"]


def test_waiting_requests_are_answered_as_alone(serve: Serve, letters: Path) -> None:
    served = serve(letters, max_batch=2)
    bodies = [{"prompt": "abc", "seed": seed, "max_tokens": 50 + 10 * (seed % 5)} for seed in range(12)]
    alone = [served.request("/v1/completions", body)[1]["choices"] for body in bodies]
    found: dict[int, Any] = {}

    def ask(index: int) -> None:
        found[index] = served.request("/v1/completions", bodies[index])[1]["choices"]

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(len(bodies))] == alone
    assert served.request("/health")[1] == {"status": "ok", "model": "letters", "running": 0, "waiting": 0, "done": 24}


def leave_early(served: Served) -> None:
    """Ask for an endless answer, and leave in the middle of it."""
    connection = HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/v1/completions", json.dumps(ENDLESS))
    assert connection.getresponse().readline().startswith(b"data: ")
    connection.close()


def test_a_client_that_leaves_frees_its_place(serve: Serve, letters: Path) -> None:
    served = serve(letters, max_batch=1, max_answer=10**6)
    for _ in range(3):
        leave_early(served)
    status, answer = served.request("/v1/completions", {"prompt": "abc", "max_tokens": 5})
    assert (status, answer["usage"]["completion_tokens"]) == (200, 5)
    assert served.request("/health")[1]["running"] == 0
    wait_until(lambda: sum("the client left" in line for line in served.lines) == 3)


def test_an_answer_that_fails_leaves_the_others(serve: Serve, letters: Path) -> None:
    served = serve(letters, max_answer=10**6)
    connection = HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/v1/completions", json.dumps(ENDLESS))
    stream = connection.getresponse()
    for _ in range(3):
        status, told = served.request("/v1/completions", {"prompt": "abc", "choices": ["☃"]})
        assert (status, told["error"]["message"][:28]) == (400, "this model cannot write '☃';")
        status, told = served.request("/v1/completions", {"prompt": "abc", "steer": "abc-xyz 2 layer 99"})
        assert (status, told["error"]["message"][:30]) == (400, "there is no layer 99 to steer;")
    assert served.request("/health")[1]["running"] == 1
    for _ in range(20):
        assert b"error" not in stream.readline()
    connection.close()


def test_the_queue_is_limited(serve: Serve, client: Client, letters: Path) -> None:
    import openai

    served = serve(letters, max_batch=1, max_queue=0, max_answer=10**6)
    running = client(served).completions.create(model="letters", **ENDLESS)
    next(iter(running))
    with pytest.raises(openai.RateLimitError, match="try again") as caught:
        client(served).completions.create(model="letters", prompt="abc", max_tokens=5)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "1"
    running.close()
    wait_until(lambda: served.request("/health")[1]["running"] == 0)
    assert served.request("/v1/completions", {"prompt": "abc", "max_tokens": 5})[0] == 200
    assert served.request("/v1/completions", {"prompt": "abc", "n": 2})[0] == 400


def test_time_is_limited(serve: Serve, letters: Path) -> None:
    served = serve(letters, max_seconds=0.4, max_answer=10**6)
    for more in ({}, {"best_of": 2}, {"num_beams": 2}):
        status, answer = served.request("/v1/completions", ENDLESS | {"stream": False} | more)
        assert (status, answer["choices"][0]["finish_reason"]) == (200, "length")
        assert 0 < answer["usage"]["completion_tokens"] < 10**6


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "message"),
    [
        ("completions", b"{", 400, None, "the body cannot be read"),
        ("completions", b"\xff", 400, None, "the body cannot be read"),
        ("completions", [1], 400, None, "the body is no object: [1]"),
        ("completions", {}, 400, "prompt", "there is no prompt"),
        ("completions", {"prompt": []}, 400, "prompt", "the prompt is an empty list"),
        ("completions", {"prompt": [[999]]}, 400, "prompt", "a prompt is a text, or a list of ids"),
        ("completions", {"prompt": 5}, 400, "prompt", "a prompt is a text, or a list of ids"),
        ("completions", {"prompt": {}}, 400, "prompt", "a prompt is a text, or a list of ids"),
        ("completions", {"prompt": "a", "model": "gpt-4"}, 404, "model", "there is no model 'gpt-4' here"),
        ("completions", {"prompt": "a", "temperature": -1}, 400, "temperature", "temperature takes a number from 0"),
        ("completions", {"prompt": "a", "max_tokens": 9999}, 400, "max_tokens", "an answer has up to 4,096 tokens"),
        ("completions", {"prompt": "a", "temprature": 1}, 400, "temprature", "there is no setting 'temprature'; did"),
        ("completions", {"prompt": "a", "n": 0}, 400, "n", "n takes a whole number of at least 1, not 0"),
        ("completions", {"prompt": "a", "stream": 1}, 400, "stream", "stream takes true or false, not 1"),
        ("completions", {"prompt": "a", "logprobs": 101}, 400, "logprobs", "logprobs takes a whole number from 0"),
        ("completions", {"prompt": "a", "logit_bias": {"x": 1}}, 400, "logit_bias", "logit_bias takes ids"),
        ("completions", {"prompt": "a", "logit_bias": {"1": 101}}, 400, "logit_bias", "logit_bias takes numbers"),
        ("completions", {"prompt": "a", "stop": ["x"] * 65}, 400, "stop", "stop takes up to 64 texts"),
        (
            "completions",
            {"prompt": "a", "precision": "int8"},
            400,
            "precision",
            "precision takes effect when a model is loaded",
        ),
        ("completions", {"prompt": "a", "suffix": "b"}, 400, "suffix", "no model here can do what suffix asks for"),
        ("completions", {"prompt": "a" * 70_000}, 413, None, "the request is larger than 65,536 bytes"),
        ("chat/completions", {}, 400, "messages", "there are no messages"),
        ("chat/completions", {"messages": []}, 400, "messages", "there are no messages"),
        ("chat/completions", {"messages": [1]}, 400, "messages", "message 1 is no object: 1"),
        ("chat/completions", {"messages": HELLO[:2]}, 400, "messages", "the messages do not end with the user's"),
        ("chat/completions", {"messages": HELLO, "tools": [{}]}, 400, "tools", "no model here can do what tools asks"),
        ("chat/completions", {"messages": HELLO, "top_logprobs": 1}, 400, "top_logprobs", "top_logprobs needs"),
        ("embeddings", {"input": "a"}, 404, None, "there is no POST /v1/embeddings here"),
        ("completions", None, 405, None, "there is no GET /v1/completions here"),
        ("models/gpt-4", None, 404, "model", "there is no model 'gpt-4' here"),
    ],
)
def test_what_is_wrong_is_told_in_the_shape_of_openai(
    wrong: Served, path: str, body: Any, status: int, param: str | None, message: str
) -> None:
    found, told = wrong.request(f"/v1/{path}", body)
    error = told["error"]
    assert (found, error["param"], error["type"]) == (status, param, "invalid_request_error")
    assert error["message"].startswith(message)


@pytest.fixture(scope="module")
def wrong(letters: Path) -> Any:
    """A server that is asked wrongly, by all tests."""
    served = Served(letters, max_body=1 << 16)
    yield served
    served.close()


def test_what_changes_nothing_is_ignored(wrong: Served, client: Client) -> None:
    asked = client(wrong).chat.completions
    plain = asked.create(model="letters", messages=HELLO, seed=1, max_tokens=9)
    more = asked.create(
        model="letters", messages=HELLO, seed=1, max_completion_tokens=9, user="me", temperature=None, tools=[],
        response_format={"type": "text"}, metadata={"a": "b"}, store=False,
    )  # fmt: skip
    assert more.choices == plain.choices
    assert [model.id for model in client(wrong).models.list()] == [client(wrong).models.retrieve("letters").id]


def test_notices_tell_what_the_model_did_not_read(wrong: Served) -> None:
    messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "aÿ"}]
    _, answer = wrong.request("/v1/chat/completions", {"messages": messages, "max_tokens": 40})
    assert answer["notices"] == [
        "messages left out that letters does not read: system", "unknown to this model, left out: 'ÿ'",
        "prompt and answer are longer than the model's context of 32 tokens: it sees only their newest part",
    ]  # fmt: skip
    assert "notices" not in wrong.request("/v1/completions", {"prompt": "a", "max_tokens": 1})[1]
    _, answer = wrong.request("/v1/completions", {"prompt": "a", "max_tokens": 1, "system": "be kind"})
    assert answer["notices"] == ["letters reads no system message: it is no chat model: the system message is left out"]


def test_a_prompt_whose_beginning_is_left_out_is_told(serve: Serve, chatter: Path) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "well"}, {"role": "user", "content": "hello there " * 20}]
    _, answer = serve(chatter).request("/v1/chat/completions", {"messages": messages, "max_tokens": 4, "n": 2})
    assert answer["notices"] == [
        "longer than the model's context of 32 tokens, answer included: the beginning of the prompt is left out"
    ]


def test_without_a_key_only_this_machine_asks(wrong: Served) -> None:
    assert wrong.request("/v1/models", host="localhost:1")[0] == 200
    assert wrong.request("/v1/models", host="example.com")[0] == 403
    assert wrong.request("/v1/models", origin="http://example.com")[0] == 403
    assert wrong.request("/v1/models", origin="http://localhost:3000")[0] == 200


def test_a_seed_is_any_whole_number(wrong: Served) -> None:
    def ask(seed: int) -> Any:
        status, answer = wrong.request("/v1/completions", {"prompt": "a", "max_tokens": 5, "seed": seed})
        assert status == 200
        return answer["choices"]

    assert ask(-1) == ask(2**53)
    assert ask(2**53 + 1) == ask(0)
    assert len({str(ask(seed)) for seed in (-1, 0, 1 - 2**63)}) == 3


def test_tokens_of_a_prompt_are_counted_also_if_nothing_is_generated(wrong: Served) -> None:
    for prompt, number in (([5] * 40, 40), ("abc", 3), (["abc", "de"], 5)):
        for more in ({}, {"echo": True}, {"echo": True, "logprobs": 0}):
            _, answer = wrong.request("/v1/completions", {"prompt": prompt, "max_tokens": 0} | more)
            assert answer["usage"] == {"prompt_tokens": number, "completion_tokens": 0, "total_tokens": number}


def test_the_case_of_the_name_of_the_model_does_not_count(wrong: Served) -> None:
    assert wrong.request("/v1/models/Letters")[1]["id"] == "letters"
    _, answer = wrong.request("/v1/completions", {"prompt": "a", "max_tokens": 1, "model": "LETTERS"})
    assert answer["model"] == "letters"


def test_who_lacks_the_key_gets_nothing(serve: Serve, letters: Path) -> None:
    served = serve(letters, api_key="sesame", host="0.0.0.0")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "sesame"}):
        status, told = served.request("/v1/completions", {"prompt": "a"}, **headers)
        assert (status, told["error"]["code"]) == (401, "invalid_api_key")
    assert served.request("/v1/models", authorization="Bearer sesame", host="example.com")[0] == 200
    assert served.request("/health")[0] == 200


def test_an_end_while_answers_are_made_is_told(serve: Serve, letters: Path) -> None:
    served = serve(letters, max_answer=10**6)
    connection = HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/v1/completions", json.dumps(ENDLESS))
    stream = connection.getresponse()
    stream.readline()
    served.server.service.scheduler.stop(0)
    lines = stream.read().decode().split("\n\n")
    assert '"the server ends"' in lines[-3]
    assert lines[-2] == "data: [DONE]"
    assert served.request("/v1/completions", {"prompt": "a"})[0] == 503


def test_log_has_a_line_for_each_request(serve: Serve, letters: Path) -> None:
    served = serve(letters)
    served.request("/v1/completions", {"prompt": "abc", "max_tokens": 5})
    served.request("/v1/completions", {"prompt": 1.5})
    wait_until(lambda: len(served.lines) == 2)
    assert served.lines[0].startswith("/v1/completions · 200 · 3 tokens read, 5 generated · 0.")
    assert served.lines[1].startswith("/v1/completions · 400 · a prompt is a text")
    assert not any(math.isnan(float(line.split()[-2])) for line in served.lines)
