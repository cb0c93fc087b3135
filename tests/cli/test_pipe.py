"""Answering prompts without a terminal: options, order, JSON Lines, errors and exit codes."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tinychat.cli import pipe
from tinychat.cli.main import run
from tinychat.config.option import Origin
from tinychat.session.session import Session
from tinychat.tokenizer.tokenizer import Tokenizer

Call = Callable[..., tuple[int, str, str]]


def parts(out: str) -> list[str]:
    """Return the completions of a call with `-0`."""
    assert out.endswith("\0")
    return out.split("\0")[:-1]


def test_each_line_is_a_prompt_and_gets_its_completion_in_order(call: Call) -> None:
    prompts = ["abc", "hello", "", "  two spaces", "abc"]
    code, out, err = call("--greedy", "-n", "5", "-0", stdin="\n".join(prompts))
    assert (code, err) == (0, "")
    assert [len(text) for text in parts(out)] == [5] * 5
    alone = [parts(call("--greedy", "-n", "5", "-0", stdin=prompt + "\n")[1])[0] for prompt in prompts]
    assert parts(out) == alone


def test_a_completion_ends_with_a_new_line_and_nothing_else_is_written(call: Call) -> None:
    code, out, err = call("--greedy", "-n", "3", "-p", "abc")
    assert (code, err) == (0, "")
    assert len(out) == 4
    assert out[3] == "\n"


def test_echo_puts_the_prompt_before_its_completion(call: Call) -> None:
    plain = call("--greedy", "-n", "4", "-p", "abc")[1]
    assert call("--greedy", "-n", "4", "-p", "abc", "--echo")[1] == "abc" + plain


def test_echo_knows_an_answer_that_begins_with_a_character_of_several_tokens(call: Call) -> None:
    arguments = ("--greedy", "-n", "12", "--echo", "--begin", "漢字", "-p", "PROMPT ")
    assert call(*arguments, model=Path("smalltalk"))[1].startswith("PROMPT 漢字")


def test_a_stop_text_may_hold_escapes(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = call("--seed", "1", "-n", "200", "-0", "-p", "abc")[1]
    assert "\n" in plain
    assert call("--seed", "1", "-n", "200", "-0", "-p", "abc", "--stop", r"\n")[1] == plain.partition("\n")[0] + "\0"
    monkeypatch.setenv("TINYCHAT_STOP", "a")
    assert call("--seed", "1", "-n", "200", "-0", "-p", "abc", "--stop", "none")[1] == plain


def test_escapes_are_read_only_with_the_flag(call: Call) -> None:
    _, raw, notice = call("--greedy", "-n", "4", "--echo", "-p", r"a\nb")
    assert raw.startswith(r"a\nb")
    assert "unknown to this model, left out: '\\\\'" in notice
    assert call("--greedy", "-n", "4", "--echo", "-e", "-p", r"a\nb")[1].startswith("a\nb")


def test_prompts_are_not_stripped(call: Call) -> None:
    greedy = ("--greedy", "-n", "8", "-0")
    assert call(*greedy, stdin="ab \n")[1] != call(*greedy, stdin="ab\n")[1]


def test_all_of_stdin_may_be_one_prompt(call: Call) -> None:
    _, out, _ = call("--whole", "--echo", "-n", "2", "-0", stdin="one\ntwo\n")
    assert len(parts(out)) == 1
    assert out.startswith("one\ntwo\n")


def test_verbose_shows_seeds_that_reproduce_the_answers(call: Call) -> None:
    _, out, err = call("--verbose", "-n", "30", "-0", stdin="abc\nabc\nabc\n")
    assert "30 tokens, " in err
    seeds = re.findall(r"seed (\d+)\n", err)
    assert [parts(call("-p", "abc", "--seed", seed, "-n", "30", "-0")[1])[0] for seed in seeds] == parts(out)
    assert len(set(parts(out))) == 3


def test_verbose_names_the_engine_in_one_line(call: Call) -> None:
    _, _, err = call("--verbose", "--engine", "torch", "-n", "3", stdin="a\nb\n")
    lines = err.splitlines()
    assert lines[0] == "tinychat: torch engine, as it was asked for"
    assert len(lines) == 3


def test_a_folder_that_cannot_be_written_is_one_line(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TINYCHAT_HOME", str(tmp_path / "file" / "home"))
    assert run(["import", str(letters), "--name", "x"]) == 1
    err = capsys.readouterr().err
    assert "Not a directory" in err
    assert len(err.splitlines()) == 1


def test_empty_stdin_gives_empty_stdout(call: Call) -> None:
    assert call(stdin="") == (0, "", "")
    assert call("--jsonl", stdin="") == (0, "", "")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_text_and_another_one_another(call: Call) -> None:
    first, again, other = (call("-s", seed, "-0", stdin="abc\nabc\n")[1] for seed in ("7", "7", "8"))
    assert first == again != other
    one, two = parts(first)
    assert one != two  # the seed of an answer depends on the position of its prompt


def test_an_answer_does_not_depend_on_the_other_prompts(call: Call) -> None:
    """It depends on the position of its prompt in the input, not on what comes before."""
    many = parts(call("-s", "7", "-0", "-n", "40", stdin="abc\n" * 70)[1])
    few = parts(call("-s", "7", "-0", "-n", "40", stdin="x\nyy\nabc\n")[1])
    assert many[2] == few[2]
    assert len(set(many)) == 70


def test_a_line_that_cannot_be_as_its_settings_ask_leaves_the_others(call: Call) -> None:
    impossible = [
        {"regex": "a{9}", "max_tokens": 3}, {"begin": "abcd", "max_tokens": 3, "best_of": 3}, {"choices": ["A", "b"]}
    ]  # fmt: skip
    lines = [{"prompt": "abc"}, *({"prompt": "abc", "id": one, **impossible[one]} for one in range(3)), "abc"]
    code, out, _ = call("--jsonl", "--greedy", "-n", "5", stdin="\n".join(map(json.dumps, lines)))
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [(answer.get("line"), answer.get("id")) for answer in answers[1:4]] == [(2, 0), (3, 1), (4, 2)]
    assert [answer["error"].partition(";")[0] for answer in answers[1:4]] == [
        "a match of 'a{9}' takes 9 tokens, and max-tokens is 3",
        "to begin with 'abcd' takes 4 tokens, and max-tokens is 3",
        "this model cannot write 'A'",
    ]
    assert answers[0]["completion"] == answers[4]["completion"]
    code, out, err = call("--regex", "a{9}", "-n", "3", stdin="abc\nabc\n")
    assert (code, out) == (1, "")
    assert "a match of 'a{9}' takes 9 tokens" in err


def test_stdin_is_read_no_further_than_answers_need(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread reads it: it must not fill the memory with prompts that wait, nor outlive the run."""
    monkeypatch.setattr(pipe, "MAX_QUEUED", 1000)  # bytes, of 17 prompts
    session, ahead, written = Session(), list[int](), list[str]()
    session.open_model(str(letters))
    session.settings.update({"max_tokens": 1}, Origin.FLAG)
    monkeypatch.setattr(pipe, "write", lambda text, end: written.append(end))

    def prompts() -> Iterator[str]:
        for index in range(2000):
            ahead.append(index - sum(end != "" for end in written))
            yield "a"

    running = pipe._Pipe(session, pipe.PipeOptions(), prompts())
    assert running.run() == 0
    assert len(written) >= 2000
    assert max(ahead) < 100
    left = pipe._Pipe(session, pipe.PipeOptions(), ("a" * 2000 for _ in iter(int, 1)))
    left._interrupted = True
    assert left.run() == 130
    for thread in threading.enumerate():
        assert thread.name != "prompts" or not thread.join(20)
        assert thread.name != "prompts" or not thread.is_alive()


def test_json_lines_carry_settings_and_errors_keep_their_position(call: Call, letters: Path) -> None:
    lines = [
        json.dumps({"prompt": "abc", "max_tokens": 3, "temperature": 0, "id": "x1"}),
        "not json",
        json.dumps("a string"),
        json.dumps({"prompt": "abc", "temprature": 1}),
        json.dumps({"max_tokens": 3}),
        json.dumps({"prompt": "abc", "top_p": 7}),
        json.dumps([1]),
        "",
        json.dumps({"prompt": "abc", "greedy": True, "max_tokens": 3, "seed": 4}),
    ]
    code, out, _ = call("--jsonl", "-s", "1", "-n", "6", stdin="\n".join(lines))
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [answer.get("line") for answer in answers] == [None, 2, None, 4, 5, 6, 7, None]
    assert answers[0] | {"seconds": 0} == {
        "prompt": "abc",
        "completion": answers[-1]["completion"],
        "tokens": 3,
        "finish_reason": "length",
        "seconds": 0,
        "seed": 1,
        "model": str(letters),
        "temperature": 0,
        "max_tokens": 3,
        "id": "x1",
    }
    assert answers[2]["prompt"] == "a string"
    assert answers[-1]["seed"] == 4
    assert answers[1]["error"].startswith("no JSON at column ")
    assert answers[1]["error"].endswith('; a prompt is "TEXT", in quotation marks, or {"prompt": "TEXT"}')
    assert "there is no setting 'temprature'" in answers[3]["error"]
    assert answers[5]["error"].startswith("top-p takes a number above 0 and at most 1, not 7")


def test_json_tells_what_an_answer_was_chosen_from(call: Call) -> None:
    lines = ['{"prompt": "abc", "choices": ["yes", "no"]}', '{"prompt": "abc", "best_of": 3, "max_tokens": 5}']
    choice, best = (json.loads(line) for line in call("--jsonl", "-s", "1", stdin="\n".join(lines))[1].splitlines())
    assert choice["completion"] in ("yes", "no")
    chances = [one["model"] for one in choice["choice_probabilities"]]
    assert sum(chances) == pytest.approx(1)
    assert chances == sorted(chances, reverse=True)
    assert best["candidates"][0]["text"] == best["completion"]
    assert len(best["candidates"]) == 3
    assert best["candidates"][0]["logprob"] == max(one["logprob"] for one in best["candidates"])


def test_an_empty_candidate_has_no_log_probability(call: Call) -> None:
    line = json.dumps({"prompt": "abc", "best_of": 2, "stop": list("abcdefghijklmnopqrstuvwxyz \n")})
    _, out, _ = call("--jsonl", stdin=line)
    answer = json.loads(out, parse_constant=pytest.fail)  # Python would read -Infinity, which is not JSON
    assert answer["candidates"] == [{"text": "", "logprob": None}] * 2


def test_log_probabilities_come_with_json(call: Call) -> None:
    code, out, _ = call("--jsonl", "--logprobs", "3", "-n", "4", "--greedy", stdin='{"prompt": "abc"}')
    answer = json.loads(out)
    assert code == 0
    assert "".join(token["text"] for token in answer["logprobs"]) == answer["completion"]
    for token in answer["logprobs"]:
        values = [other["logprob"] for other in token["top"]]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert token["logprob"] == values[0]  # greedy takes the most likely token
    assert call("--logprobs", "3", stdin="a")[0] == 2


def test_a_prompt_of_a_flag_is_answered_as_json(call: Call) -> None:
    prompts = ["abc", '"x"', "", r"a\nb"]
    flags = [word for prompt in prompts for word in ("-p", prompt)]
    code, out, _ = call("--jsonl", "--greedy", "-n", "4", "-e", "--logprobs", "1", *flags)
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["prompt"] for answer in answers] == [*prompts[:3], "a\nb"]
    assert [len(answer["logprobs"]) for answer in answers] == [4] * 4
    assert answers[0]["completion"] + "\n" == call("--greedy", "-n", "4", "-p", "abc")[1]
    code, out, _ = call("--jsonl", "--regex", "a{9}", "-n", "3", "-p", '{"prompt": "x", "id": 3}')
    assert (code, json.loads(out).keys(), json.loads(out)["id"]) == (1, {"error", "line", "id"}, 3)


def test_what_is_not_utf_8_is_replaced_and_told_once(call: Call) -> None:
    told = "tinychat: prompt 2: not UTF-8: what cannot be read is �\n"
    code, out, err = call("-n", "2", "-0", "--echo", stdin=b"abc\n\xff\xfea\n\xff\n\x00\x1b[31m\n")
    assert (code, err.count(told), err.count("UTF-8")) == (0, 1, 1)
    assert [text[:-2] for text in parts(out)[:3]] == ["abc", "��a", "�"]
    assert "\x1b" not in err
    assert "UTF-8" not in call("-n", "2", stdin="ä�\n")[2]
    code, out, err = call("-n", "2", "-0", "--echo", "-p", "abc", "-p", "\udcffa")  # as Python reads an argument
    assert (code, parts(out)[1][:2], err.count(told)) == (0, "�a", 1)


def test_a_line_of_json_that_is_not_utf_8_is_an_error(call: Call) -> None:
    code, out, err = call("--jsonl", "-n", "2", stdin=b'"abc"\n{"prompt": "\xff", "id": 3}\n"abc"\n')
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (1, "")
    assert answers[1] == {"error": "the line is not UTF-8; JSON Lines have to be", "line": 2, "id": 3}
    assert answers[0]["prompt"] == answers[2]["prompt"] == "abc"


def test_a_byte_order_mark_belongs_to_no_prompt(call: Call) -> None:
    plain, marked = (call("--greedy", "-n", "4", "--echo", stdin=mark + "ab\nba\n") for mark in ("", "\ufeff"))
    assert marked == plain
    assert call("--jsonl", "-n", "4", stdin='\ufeff"ab"\n')[0] == 0
    assert call("-n", "4", stdin="\ufeff") == (0, "", "")


def test_a_line_may_end_with_crlf(call: Call) -> None:
    lines = "abc\n\nb\ra\n"
    plain, windows = (
        call("--greedy", "-n", "4", "--echo", stdin=text) for text in (lines, lines.replace("\n", "\r\n"))
    )
    assert windows == plain
    assert "b\ra" in plain[1]


def test_only_conversation_sees_earlier_prompts(call: Call, chatter: Path) -> None:
    arguments = ("--greedy", "-n", "2", "--jsonl", "--logprobs", "1")

    def first_logprobs(*more: str) -> list[float]:
        out = call(*arguments, *more, stdin='"hello"\n"hello"\n', model=chatter)[1]
        return [json.loads(line)["logprobs"][0]["top"][0]["logprob"] for line in out.splitlines()]

    alone, turns = first_logprobs(), first_logprobs("--conversation")
    assert alone[0] == pytest.approx(alone[1], abs=1e-5)
    assert alone[0] == pytest.approx(turns[0], abs=1e-5)
    assert turns[1] != pytest.approx(turns[0], abs=1e-3)
    assert call("--conversation", "--whole", stdin="a")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--top-p", "7"), "top-p takes a number above 0 and at most 1, not '7'"),
        (("--temperature", "warm"), "temperature takes a number from 0 to 100, not 'warm'"),
        (("--nonsense",), "No such option"),
        (("--greedy", "-t", "1.2"), "greedy is temperature 0, not 1.2"),
        (("tarin",), "there is no command 'tarin'"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_exit_code_2(call: Call, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = call(*arguments, stdin="a")
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "flag", "remedy"),
    [
        (("-m", "tales", "serve"), "-m/--model", "put it after the command: `tinychat serve tales`"),
        (("-t0", "serve"), "-t/--temperature/--temp", "put it after the command: `tinychat serve -t …`"),
        (("--sample", "bench"), "--greedy", "put it after the command: `tinychat bench --greedy …`"),
        (("-p", "hi", "models"), "-p/--prompt", "`tinychat models --help` lists what it takes"),
    ],
)
def test_a_flag_before_a_command_is_not_dropped(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], flag: str, remedy: str
) -> None:
    assert run(list(arguments)) == 2
    problem = f"{flag} stands before {arguments[-1]}, which would not get it"
    assert capfd.readouterr() == ("", f"tinychat: {problem}\n  {remedy}\n")


def test_debug_may_stand_before_a_command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYCHAT_TEMPERATURE", "0.5")
    assert run(["--debug", "recipes"]) == 0
    assert capfd.readouterr().err == ""


def test_a_remedy_names_the_flag_and_no_command_of_the_repl(call: Call) -> None:
    for arguments, remedy in (
        (("--choices", "yes,no", "--regex", "a"), "`--choices none` allows any answer"),
        (("--choices", "hello", "-n", "1"), "`--max-tokens 5`"),
        (("--regex", "a{9}", "-n", "3"), "`--max-tokens 9`, or more"),
        (("--steer", "a-a"), "steer needs two that differ"),
    ):
        code, _, err = call(*arguments, stdin="abc")
        assert (code, err.splitlines()[-1]) == (1, f"  {remedy}")
        assert not re.search("[ `]/[a-z]", err)


def test_a_missing_model_is_exit_code_1(call: Call) -> None:
    code, out, err = call(stdin="a", model=Path("nowhere"))
    assert (code, out) == (1, "")
    assert "there is no model 'nowhere'" in err


def test_flags_accept_underscores_and_short_names(call: Call) -> None:
    one = call("--max_tokens", "3", "--temp", "0", "-p", "abc")
    assert one == call("-n", "3", "--greedy", "-p", "abc") == call("--max-tokens", "3", "-t", "0", "-p", "abc")


def test_flags_precede_the_environment_and_the_config_file(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("max-tokens = 2\ntemperature = 0\n")
    assert len(call("-p", "abc")[1]) == 3
    monkeypatch.setenv("TINYCHAT_MAX_TOKENS", "4")
    assert len(call("-p", "abc")[1]) == 5
    assert len(call("-p", "abc", "-n", "6")[1]) == 7
    (home / "config.toml").write_text("heat = 2\n")
    code, _, err = call("-p", "abc")
    assert code == 2
    assert "config.toml: there is no setting 'heat'" in err


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("TINYCHAT_TEMPRATURE", "TINYCHAT_TEMPERATURE"),
        ("TINYCHAT_TEMP", "TINYCHAT_TEMPERATURE"),
        ("TINYCHAT_NUM_PREDICT", "TINYCHAT_MAX_TOKENS"),
        ("TINYCHAT_MIROR", "TINYCHAT_MIRROR"),
        ("TINYCHAT_PORT_80_TCP", ""),
        ("TINYCHAT_NAME", ""),
    ],
)
def test_a_variable_that_looks_like_a_misspelt_one_is_told(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    monkeypatch.setenv(variable, "1")
    code, out, err = call("-p", "abc", "-n", "3")
    if not meant:
        assert (code, err) == (0, "")
        return
    problem = f"tinychat: {variable} is no variable of tinychat\n  did you mean {meant}?\n"
    assert (code, out, err) == (2, "", problem)


def test_what_is_a_command_at_the_prompt_is_a_prompt_in_a_pipe(call: Call, tmp_path: Path) -> None:
    lines = ["exit", "?", f"!touch {tmp_path / 'x'}", "/temperature 0"]
    code, out, _ = call("-n", "3", "-0", "--echo", stdin="\n".join(lines))
    assert code == 0
    assert [text[:-3] for text in parts(out)] == lines
    assert not (tmp_path / "x").exists()


def test_a_damaged_config_file_is_one_line(call: Call, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("temperature = = 2")
    code, _, err = call("-p", "abc")
    assert code == 2
    assert "is no TOML" in err


# As a process


def process(letters: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    call = [sys.executable, "-m", "tinychat", "-m", str(letters), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, "PYTHONUNBUFFERED": ""})


@pytest.mark.slow
def test_a_co_process_gets_each_answer_before_it_sends_the_next_prompt(letters: Path) -> None:
    with process(letters, "--greedy", "-n", "5", "--jsonl") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for prompt in ("abc", "hello", "x"):
            running.stdin.write(json.dumps(prompt).encode() + b"\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["prompt"] == prompt
        running.stdin.close()
        assert running.wait() == 0


@pytest.mark.slow
def test_a_job_in_the_background_takes_no_interrupt_of_others(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for such a job, which inherits it
    try:
        running = process(letters, "--greedy", "-n", "5")
    finally:
        signal.signal(signal.SIGINT, before)
    with running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"abc\n")
        running.stdin.flush()
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(b"hello\n")
        assert (out.count(b"\n"), running.returncode) == (1, 0)


@pytest.mark.slow
def test_a_closed_pipe_ends_it_without_an_error(letters: Path) -> None:
    with process(letters, "-n", "200") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(b"abc\n" * 200)
        running.stdin.close()
        running.stdout.read(5)
        running.stdout.close()
        assert running.wait() == 0
        lines = running.stderr.read().splitlines()
        assert [line for line in lines if b"newest part" not in line] == []  # notices of the answers before it closed


@pytest.mark.slow
def test_ctrl_c_writes_the_partial_answer_and_exits_with_130(letters: Path) -> None:
    import signal

    with process(letters, "-n", "100000000") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"abc\n")
        running.stdin.flush()
        first = running.stdout.read(10)
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
        assert (running.wait(), rest[-1:]) == (130, b"\n")
        assert len(first) == 10


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["eval", "--help"], ["models"], ["--version"]])
def test_help_does_not_import_torch(arguments: list[str]) -> None:
    assert runs_without("torch lightning_fabric transformers", arguments)


@pytest.mark.parametrize("model", ["smalltalk", "letters"])
@pytest.mark.usefixtures("compiled")
def test_the_native_engine_imports_neither_torch_nor_numpy(letters: Path, model: str) -> None:
    arguments = ["-m", str(letters) if model == "letters" else model, "-p", "abc", "-n", "20"]
    assert runs_without("torch lightning_fabric transformers numpy filelock", arguments)


@pytest.mark.slow
def test_the_torch_engine_imports_torch(letters: Path) -> None:
    assert not runs_without("torch", ["-m", str(letters), "-p", "abc", "-n", "2", "--engine", "torch"])


def runs_without(libraries: str, arguments: list[str]) -> bool:
    """Return whether a command succeeds and imports none of some libraries."""
    code = f"""
import sys
from tinychat.cli.main import run
code = run({arguments!r})
sys.exit(code or bool(set({libraries.split()!r}) & set(sys.modules)))
"""
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


NOT_ANSWERED = (
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"prompt": "abc", "top_k": 9223372036854775808}',
    '{"prompt": "abc", "top_k": 1e300}',
    '{"prompt": "abc", "max_tokens": 9223372036854775807}',
    '{"prompt": "abc", "seed": 1' + "0" * 5000 + "}",
    '{"prompt": "abc", "temperature": NaN}',
    '{"prompt": "abc", "prompt": "abc"}',
    '{"prompt": "abc", "id": ' + "[" * 2000 + "]" * 2000 + "}",
    '{"prompt": {"a": ' + "[" * 40 + "]" * 40 + "}}",
)
ANSWERED = (
    r'{"prompt": "a\ud800b", "id": "\ud800", "stop": ["\ud800"]}',
    '{"prompt": "abc", "id": [{"a": null}, 9223372036854775807]}',
    '{"prompt": "abc", "top_k": 9007199254740992, "seed": 9007199254740992, "slow": 1e308}',
    '{"prompt": "abc", "temperature": 1e-320, "min_p": 5e-324, "top_p": 5e-324, "repetition_penalty": 0.01}',
    '{"prompt": "abc", "temperature": 1e-6, "repetition_penalty": 0.01, "top_p": 5e-324}',
    '{"prompt": "abc", "temperature": 100, "min_p": 1, "repetition_penalty": 100}',
)


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_each_line_of_json_stands_alone(call: Call, engine: str) -> None:
    lines = [line for bad, good in zip_longest(NOT_ANSWERED, ANSWERED, fillvalue='"abc"') for line in (bad, good)]
    code, out, err = call("--jsonl", "-n", "2", "--engine", engine, stdin="\n".join(lines))
    assert (code, err) == (1, "tinychat: prompt 2: unknown to this model, left out: '�'\n")
    answers = list(map(json.loads, out.splitlines()))
    assert [answer.get("line") for answer in answers[::2]] == list(range(1, len(lines), 2))
    assert all(len(answer["completion"]) == 2 for answer in answers[1::2])
    assert answers[1]["id"] == "�"


def test_a_long_conversation_is_read_as_far_as_the_context_reaches(
    chatter: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    encoded = []
    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: encoded.append(text) or encode(self, text))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello there\n" * 60)))
    assert run(["-m", str(chatter), "--conversation", "-n", "2"]) == 0
    late = len(encoded)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello there\n" * 120)))
    assert run(["-m", str(chatter), "--conversation", "-n", "2"]) == 0
    assert len(encoded) - late < 2.2 * late
