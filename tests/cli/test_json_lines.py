"""Lines of JSON: prompts, messages, seeds and settings, and answers that can be made again from their own line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinychat.session.session import Session

Call = Callable[..., tuple[int, str, str]]
ENGINES = pytest.mark.parametrize("engine", ["torch", "native"])
MEASURED = {"logprobs", "choice_probabilities", "candidates"}
"""Keys with probabilities, whose last digits depend on what is computed together."""
HELLO = [
    {"role": "user", "content": "hello there"},
    {"role": "assistant", "content": "fine, thanks"},
    {"role": "user", "content": "how are you?"},
]


@pytest.fixture
def answer(call: Call) -> Callable[..., list[dict[str, Any]]]:
    """A function that answers lines, given as texts or objects, and returns what is written."""

    def answer(lines: list[Any], *arguments: str, **options: Any) -> list[dict[str, Any]]:
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        out = call("--jsonl", *arguments, stdin=text, **options)[1]
        return [json.loads(line) for line in out.splitlines()]

    return answer


Answer = Callable[..., list[dict[str, Any]]]


def texts(records: list[dict[str, Any]]) -> list[str]:
    return [record["completion"] for record in records]


@ENGINES
def test_a_seed_of_its_own_gives_the_same_answer_on_every_line(answer: Answer, engine: str) -> None:
    own = {"prompt": "abc", "seed": 7}
    records = answer([own, "no json", '"abc"', own, own], "--engine", engine, "-n", "20", "-s", "7")
    del records[1]
    first, other, *others = texts(records)
    assert others == [first, first] != [other, other]
    assert answer([{"prompt": "abc"}], "--engine", engine, "-n", "20", "-s", "7")[0]["completion"] == first


@pytest.mark.parametrize(
    ("engine", "model"),
    [
        ("torch", "letters"), ("native", "letters"), ("torch", "chatter"), ("native", "chatter"),
        ("torch", "translate"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_line_of_output_makes_its_answer_again_alone_and_anywhere(
    answer: Answer, engine: str, model: str, request: pytest.FixtureRequest
) -> None:
    options = {"model": model if model == "translate" else request.getfixturevalue(model)}
    lines = [
        '"hello there"',
        {"prompt": "hello there", "temperature": 1.5, "top_k": 9, "stop": ["q\\n", "\n"], "id": 3},
        {"messages": HELLO, "seed": 5},
        {"messages": HELLO, "repetition_penalty": 1.1, "max_tokens": 30},
        {"prompt": "hello there", "greedy": True},
        {"prompt": "hello there", "choices": ["fine", "thanks", "hello"]},
        {"prompt": "hello there", "best_of": 3},
        '"hello there"',
    ]
    made = answer(lines, "--engine", engine, "-n", "20", "-t", "4", "-s", "3", "--logprobs", "1", **options)
    assert len(set(texts(made))) > 2
    for record in made:
        assert texts(answer([record], "--engine", engine, **options)) == [record["completion"]]
    again = answer(made[::-1], "--engine", engine, "-t", "0.1", "-s", "4", **options)[::-1]
    keys = {key for record in made for key in record} - {"seconds", *MEASURED}
    assert [{key: record.get(key) for key in keys} for record in again] == [
        {key: record.get(key) for key in keys} for record in made
    ]


@ENGINES
@pytest.mark.parametrize("model", ["letters", "chatter"])
def test_a_turn_of_a_conversation_can_be_made_again_alone(
    answer: Answer, engine: str, model: str, request: pytest.FixtureRequest
) -> None:
    options = {"model": request.getfixturevalue(model)}
    prompts = ['"hello there"', '{"prompt": "how are you?", "seed": 9}', '"fine"', '"hello"', '"there"']
    made = answer(prompts, "--conversation", "--engine", engine, "-n", "15", "-s", "3", **options)
    assert [len(record["messages"]) for record in made] == [0, 2, 4, 6, 8]
    assert made[1]["messages"] == [
        {"role": "user", "content": "hello there"}, {"role": "assistant", "content": made[0]["completion"]},
    ]  # fmt: skip
    for record in made:
        assert texts(answer([record], "--engine", engine, **options)) == [record["completion"]]


def test_messages_are_turns_as_at_the_prompt(answer: Answer, chatter: Path) -> None:
    session = Session()
    session.open_model(str(chatter))
    for name, value in (("seed", 3), ("max_tokens", 15), ("engine", "torch")):
        session.settings.set(name, value)
    for prompt in ("hello there", "how are you?", "hello"):
        list(session.answer(prompt))
    *before, last = session.turns
    messages = [
        {"role": role, "content": text}
        for turn in before
        for role, text in (("user", turn.prompt), ("assistant", turn.answer))
    ]
    lines = [
        {"messages": [*messages, {"role": "user", "content": [{"type": "text", "text": last.prompt}]}]},
        {"messages": messages, "prompt": last.prompt},
        {"messages": [{"role": "system", "content": "be brief"}, *messages], "prompt": last.prompt},
    ]
    seeded = [line | {"seed": 3} for line in lines]
    made = answer(seeded, "-n", "15", "--engine", "torch", model=chatter)
    assert texts(made) == [last.answer] * 3
    assert [record["prompt"] for record in made] == [last.prompt] * 3
    assert made[0]["messages"] == made[1]["messages"] == messages


def test_messages_go_on_as_one_text_with_a_completion_model(answer: Answer) -> None:
    apart, joined, alone = answer(
        [{"messages": HELLO, "seed": 1}, {"prompt": "hello therefine, thanks\nhow are you?", "seed": 1},
         {"prompt": "how are you?", "seed": 1}], "-n", "10",
    )  # fmt: skip
    assert apart["completion"] == joined["completion"] != alone["completion"]


def test_what_is_not_read_is_told(call: Call, chatter: Path) -> None:
    line = json.dumps({"messages": [{"role": "system", "content": "be nice"}, HELLO[0]]})
    _, _, err = call("--jsonl", "-n", "2", stdin=line, model=chatter)
    assert err == "tinychat: prompt 1: messages left out that chatter does not read: system\n"
    _, _, err = call("--jsonl", "-n", "2", stdin=json.dumps({"messages": HELLO}), model=Path("translate"))
    assert "messages left out: a translation model reads the last one alone" in err
    _, _, err = call("--jsonl", "-n", "2", stdin=json.dumps("hello there " * 20), model=chatter)
    cut = "longer than the model's context of 32 tokens, answer included: the beginning of the prompt is left out"
    assert err == f"tinychat: prompt 1: {cut}\n"


def test_messages_in_a_row_are_joined_and_a_greeting_is_left_out(call: Call, answer: Answer, chatter: Path) -> None:
    greeting, system = {"role": "assistant", "content": "hi"}, {"role": "system", "content": "be nice"}
    (asked, said, last), more = HELLO, {"role": "user", "content": "fine"}
    sent = [greeting, asked, system, more, said, said, last, system, more]
    joined = [
        {"role": "user", "content": "hello there\nfine"},
        {"role": "assistant", "content": "fine, thanks\nfine, thanks"},
        {"role": "user", "content": "how are you?\nfine"},
    ]
    made, plain = answer([{"messages": sent, "seed": 3}, {"messages": joined, "seed": 3}], "-n", "15", model=chatter)
    assert made["completion"] == plain["completion"]
    assert (made["prompt"], made["messages"]) == (plain["prompt"], [*sent[:6], system])
    assert texts(answer([made], model=chatter)) == [made["completion"]]
    _, _, err = call("--jsonl", "-n", "2", stdin=json.dumps({"messages": [greeting, asked, more]}), model=chatter)
    assert err == (
        "tinychat: prompt 1: messages left out before the first of the user: assistant; "
        "messages of one role in a row are joined, each on a line of its own\n"
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({}, "there is no prompt"),
        ({"messages": []}, "there are no messages; the last one is what is answered"),
        ({"messages": HELLO[1:2]}, "the messages do not end with the user's; the last one is what is answered"),
        ({"messages": HELLO[:2]}, "the messages do not end with the user's; the last one is what is answered"),
        ({"messages": HELLO, "prompt": "x"}, "a prompt follows the user's last message; "),
        ({"messages": {}}, "messages is no list: {}"),
        ({"messages": ["hi"]}, "message 1 is no object: 'hi'"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "message 1 has the role 'tool'; one of user, assistant, "),
        ({"messages": [{"role": "user"}]}, "the content of message 1 is no text: null"),
        ({"messages": [{"role": "user", "content": [1]}]}, "the content of message 1 is no text: [1]"),
        ({"prompt": "x", "model": "gpt-4"}, "the model is letters, not 'gpt-4'; "),
        ({"prompt": "x", "model": 1}, "the model is letters, not 1; "),
        ({"prompt": "x", "engine": "torch"}, "engine takes effect when a model is loaded; give it as --engine"),
        ({"prompt": "x", "tokens": 3}, "there is no setting 'tokens'; did you mean max_tokens?"),
        ({"prompt": "x", "num_predict": 3}, "there is no setting 'num_predict'; did you mean max_tokens?"),
    ],
)  # fmt: skip
def test_a_wrong_line_says_what_is_wrong(answer: Answer, line: dict[str, Any], error: str) -> None:
    (record,) = answer([line | {"id": "x"}])
    assert record["error"].startswith(error)
    assert (record["line"], record["id"]) == (1, "x")


def test_messages_are_no_turn_of_a_conversation(answer: Answer) -> None:
    (record,) = answer([{"messages": HELLO}], "--conversation")
    assert record["error"] == "messages are a conversation of their own; leave out --conversation"
