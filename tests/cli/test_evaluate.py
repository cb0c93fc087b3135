"""`tinychat eval MODEL --suite FILE`, on a model that echoes its prompt."""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripted import make_model, open_scripted

from tinychat.cli.main import run
from tinychat.errors import SourceError
from tinychat.evaluate.perplexity import Score
from tinychat.evaluate.suite import read_suite

Eval = Callable[..., tuple[int, str, str]]

CHECKS: list[dict[str, Any]] = [
    {"group": "echo", "say": "hello", "answer": ["no", "you said: hello"]},
    {"group": "echo", "say": "hello", "answer": "hello"},
    {"group": "pattern", "say": "hello", "pattern": r"\bhell", "without": "you never"},
    {"group": "pattern", "say": "hello", "without": "(?i)YOU SAID"},
    {"group": "memory", "say": ["one", "two", "three"], "answer": "you said: three"},
]


@pytest.fixture
def evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a suite of checks and returns the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tinychat.generate.loading.open_engine", open_scripted)
    make_model(tmp_path / "models")

    def evaluate(*checks: object, flags: tuple[str, ...] = ()) -> tuple[int, str, str]:
        Path("suite.jsonl").write_text("".join(json.dumps(check) + "\n\n" for check in checks), encoding="utf-8")
        code = run(["eval", "parrot", "--suite", "suite.jsonl", *flags])
        out, err = capsys.readouterr()
        return code, out, err

    return evaluate


def test_the_table_counts_passed_checks_by_group(evaluate: Eval) -> None:
    assert evaluate(*CHECKS) == (
        0,
        "             checks            greedy   temperature 0.8\n"
        "echo              2         1  50.0 %         1  50.0 %\n"
        "pattern           2         1  50.0 %         1  50.0 %\n"
        "memory            1         1 100.0 %         1 100.0 %\n"
        "well formed       7         7 100.0 %         7 100.0 %\n",
        "",
    )


def test_verbose_prints_failed_checks(evaluate: Eval) -> None:
    out = evaluate(*CHECKS, flags=("--verbose",))[1]
    assert "echo · greedy\n  › hello\n    you said: hello\n    wanted: hello\n" in out
    assert "pattern · temperature 0.8\n  › hello\n    you said: hello\n    wanted: without (?i)YOU SAID\n" in out
    assert "memory" not in out.split("checks")[0]


def test_json_has_counts_and_failures(evaluate: Eval) -> None:
    values = json.loads(evaluate(*CHECKS, flags=("--json",))[1])
    assert set(values) == {"greedy", "temperature 0.8"}
    greedy = values["greedy"]
    assert greedy["groups"]["pattern"] == {"passed": 1, "count": 2, "share": 0.5}
    assert greedy["failures"][0] == {
        "group": "echo",
        "turns": [{"said": "hello", "answered": "you said: hello"}],
        "wanted": "hello",
        "faults": [],
    }


def test_unknown_words_and_answers_without_an_end_are_malformed(evaluate: Eval, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("you\nSaid\n")
    check = {"group": "g", "pattern": "."}
    checks = [check | {"say": "hello"}, check | {"say": "count"}]
    values = json.loads(evaluate({"words": "words.txt"}, *checks, flags=("--json",))[1])["greedy"]
    assert values["groups"]["well formed"] == {"passed": 1, "count": 2, "share": 0.5}
    assert [failure["faults"] for failure in values["failures"]] == [["it did not end by itself"]]

    (tmp_path / "words.txt").write_text("said\n")
    values = json.loads(evaluate({"words": "words.txt"}, checks[0], flags=("--json",))[1])["greedy"]
    assert values["failures"][0]["faults"] == ["no word: you"]


def test_case_and_punctuation_may_be_ignored_from_a_line_on(evaluate: Eval) -> None:
    check = {"group": "g", "say": "Hello, Anna", "answer": "you said: hello anna!"}
    values = json.loads(evaluate(check, {"loose": True}, check, check | {"answer": "you said"}, flags=("--json",))[1])
    assert values["greedy"]["groups"]["g"] == {"passed": 1, "count": 3, "share": 1 / 3}


def test_a_string_may_hold_a_line_separator_and_null_is_no_condition(tmp_path: Path) -> None:
    (tmp_path / "suite.jsonl").write_text(
        '{"say": "one\u2028\x85two", "answer": "you said: one\u2028\x85two", "pattern": null, "without": null}\r\n',
        encoding="utf-8", newline="",
    )  # fmt: skip
    (check,) = read_suite(tmp_path / "suite.jsonl").checks
    assert check.prompts == ("one\u2028\x85two",)
    assert check.accepts("you said: one\u2028\x85two")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"say": "hi"}, "it says nothing of the reply: answer, pattern or without"),
        ({"answer": "hi"}, "say is missing"),
        ({"say": "hi", "answer": None}, "it says nothing of the reply: answer, pattern or without"),
        ({"say": 3, "answer": "hi"}, "say is a text or a list of texts, not 3"),
        ({"say": "hi", "patern": "hi"}, "a check has no 'patern'"),
        (["hi"], "it is no object"),
        ({"say": "hi", "answer": "hi", "loose": True}, "loose stands on a line of its own"),
        ({"loose": True, "words": "words.txt"}, "words stands on a line of its own"),
        (
            {"say": "hi", "pattern": "("},
            "pattern is no regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            {"say": "hi", "without": "[[a]"},
            "without is ambiguous, a possible nested set at position 1: write a backslash before the character",
        ),
        (
            {"say": "hi", "pattern": "a{99999999999}"},
            "pattern is no regular expression: the repetition number is too large",
        ),
        (json.loads("[" * 500 + "]" * 500), "it is nested more than 64 deep"),
    ],
)
def test_an_invalid_line_is_named_in_the_error(evaluate: Eval, line: object, problem: str) -> None:
    assert evaluate(CHECKS[0], line) == (
        2, "", f"tinychat: suite.jsonl, line 3: {problem}\n  a check has group, say, answer, pattern, without\n"
    )  # fmt: skip


def test_a_suite_may_come_from_a_pipe_and_names_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    suite = tmp_path / "suite.jsonl"
    suite.write_text(json.dumps(CHECKS[0]) + "\n", encoding="utf-8")
    expected = read_suite(suite)
    reader, writer = os.pipe()
    os.write(writer, suite.read_bytes())
    os.close(writer)
    assert read_suite(Path(f"/dev/fd/{reader}")) == expected
    os.close(reader)
    suite.write_text('{"words": "pipe"}\n', encoding="utf-8")
    with pytest.raises(SourceError, match="pipe cannot be read: it is a named pipe, not a file"):
        read_suite(suite)


def test_figures_that_json_lacks_are_null(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a", encoding="utf-8")
    figures = Score(900.0, math.inf, math.nan, 1, 0, 0.0)
    monkeypatch.setattr("tinychat.evaluate.perplexity.score", lambda *_, **__: figures)
    assert run(["eval", str(letters), str(text)]) == run(["eval", str(letters), str(text), "--json"]) == 0
    *lines, values = capsys.readouterr().out.splitlines()
    assert lines[2] == "bits per character  –"
    assert lines[-1] == "over                1 token, 0 characters (val)"
    assert json.loads(values, parse_constant=pytest.fail) == {
        "loss": 900.0, "perplexity": None, "bits_per_character": None, "tokens": 1, "characters": 0, "accuracy": 0.0,
        "exact_match": None,
    }  # fmt: skip


def test_a_text_or_a_suite_is_required(evaluate: Eval) -> None:
    for flags in (("text.txt",), ("--suite", "nowhere.jsonl")):
        code, out, err = evaluate(CHECKS[0], flags=flags)
        assert (code, out) == ((2, "") if flags == ("text.txt",) else (1, ""))
        assert err
    assert evaluate()[2] == "tinychat: suite.jsonl holds no check\n  write one a line, as JSON\n"
