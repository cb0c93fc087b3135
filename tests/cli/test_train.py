"""`tinychat train`: its help, and as a process that makes a run and a model."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tinychat.cli.main import run
from tinychat.cli.train import COMMON_OPTIONS, STOPPED, _exit_code
from tinychat.events import Ended, Failed
from tinychat.repl.training_view import RunOutcome
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import RECIPE_FIELDS, load_recipe

SMALL = ["--n-layer", "1", "--d-model", "32", "--n-head", "1", "--context-length", "32", "--batch-size", "8"]


def some_text(characters: int, words: str = "ba de ki lo mu na po ri su te va zo") -> str:
    """Return sentences of syllables, always the same."""
    draw = random.Random(5)
    text = ""
    while len(text) < characters:
        sentence = " ".join(
            "".join(draw.choice(words.split()) for _ in range(draw.randint(1, 3))) for _ in range(draw.randint(3, 9))
        )
        text += sentence.capitalize() + ".\n"
    return text[:characters]


def tinychat(*arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    call = [sys.executable, "-m", "tinychat", *arguments]
    return subprocess.run(call, input=stdin, capture_output=True, check=False, timeout=280)


def events(done: "subprocess.CompletedProcess[bytes]") -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def listed_options(capsys: pytest.CaptureFixture[str], flag: str) -> list[str]:
    """Return the long flags that a help lists, in their order."""
    assert run(["train", flag]) == 0
    options = capsys.readouterr().out.partition("\nOptions:\n")[2]
    return re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", options)


def test_help_shows_the_common_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed_options(capsys, "--help") == list(COMMON_OPTIONS)
    assert len(COMMON_OPTIONS) == 12 + len(["--help", "--help-all"])


@pytest.mark.parametrize("line", ["train novel.txt --name", "export smalltalk --to", "serve --port"])
def test_an_option_without_its_value_leads_to_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert run(line.split()) == 2
    name, option = line.split()[0], line.split()[-1]
    expected = f"tinychat: Option '{option}' requires an argument\n  see `tinychat {name} --help`\n"
    assert capsys.readouterr().err == expected


def test_help_all_shows_every_option_by_section(capsys: pytest.CaptureFixture[str]) -> None:
    shown = listed_options(capsys, "--help-all")
    assert len(shown) == len(set(shown))
    fields = {field.flag for name, field in RECIPE_FIELDS.items() if name != "sources"}
    assert set(shown) == {*fields, "--recipe", "--name", "--out", "--resume", "--json", "--plain", "--theme", "--debug",
                          "--help", "--help-all"}  # fmt: skip


@pytest.mark.slow
def test_eval_agrees_with_the_loss_of_training(tmp_path: Path, home: Path) -> None:
    source = tmp_path / "My Text.txt"
    source.write_text(some_text(20_000))
    log = events(tinychat("train", str(source), "--steps", "40", "--json", *SMALL))
    assert [event["event"] for event in log if event["event"] in ("planned", "ended")] == ["planned", "ended"]
    assert len(log[0]["lines"]) == 3 or log[0]["event"] == "noticed"
    last = log[-1]
    assert last["event"] == "ended"
    assert last["reason"] == "done"
    assert Path(last["folder"]) == home / "models" / "my-text"
    scored = json.loads(tinychat("eval", "my-text", str(source), "--json").stdout)
    assert scored["loss"] == pytest.approx(last["loss"], abs=1e-3)
    assert scored["tokens"] == 1999
    answer = tinychat("-m", "my-text", "-p", "Ba", "-n", "20")
    assert len(answer.stdout.decode()) == 21
    training = json.loads((home / "models" / "my-text" / "training.json").read_text())
    assert training["recipe"]["schedule"]["steps"] == 40
    names = {path.name for path in (home / "models" / "my-text").iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "training.json", "README.md"}


@pytest.mark.slow
def test_without_json_stdout_is_empty_and_stderr_has_plain_lines(tmp_path: Path) -> None:
    done = tinychat("train", "-", "--steps", "10", *SMALL, "--out", str(tmp_path / "m"), stdin=some_text(5000).encode())
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"\x1b" not in done.stderr
    assert b"\r" not in done.stderr
    assert (tmp_path / "m" / "model.safetensors").is_file()


@pytest.mark.slow
def test_a_text_from_stdin_is_trained_on_and_scored(home: Path) -> None:
    text = some_text(8000).encode()
    last = events(tinychat("train", "-", "--steps", "10", "--name", "piped", "--json", *SMALL, stdin=text))[-1]
    for sources in (["-"], ["--", "-:3"]):  # without `--` it looks like an option
        scored = json.loads(tinychat("eval", "piped", "--json", *sources, stdin=text).stdout)
        assert scored["loss"] == pytest.approx(last["loss"], abs=1e-3)
    nothing = tinychat("eval", "piped", "-")
    assert nothing.returncode == 1
    assert "stdin is empty" in nothing.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message"),
    [(b"", "empty"), (b"\n\n", "one character over and over"), (None, "there is no file")],
)
def test_an_unusable_text_is_one_clear_line(tmp_path: Path, source: bytes | None, message: str) -> None:
    path = tmp_path / "text.txt"
    if source is not None:
        path.write_bytes(source)
    done = tinychat("train", str(path), "--steps", "2")
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) <= 3


@pytest.mark.slow
def test_conversations_become_a_chat_model(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    messages = [{"role": "user", "content": "ba de?"}, {"role": "assistant", "content": "ki lo."}]
    path.write_text((json.dumps({"messages": messages}) + "\n") * 300)
    log = events(tinychat("train", str(path), "--steps", "60", "--json", *SMALL, "--name", "talk"))
    assert log[-1]["event"] == "ended"
    assert json.loads(tinychat("show", "talk", "--json").stdout)["mode"] == "chat"
    assert tinychat("-m", "talk", "-p", "ba de?", "--greedy").stdout == b"ki lo.\n"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (None, 0),
        (Failed("there is no text"), 1),
        (Failed("stopped before the first step", is_stopped=True), STOPPED),
    ],
    ids=["left in the background", "failed", "stopped before a step"],
)
def test_the_exit_code_tells_a_stop_from_a_failure(last: RunOutcome, code: int) -> None:
    assert _exit_code(last) == code


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--resume", "t", "other.txt"], "a run goes on with the text it began with"),
        (["--resume", "t", "--recipe", "lesson"], "a run goes on as it began: --recipe cannot change it"),
        (["--resume", "t", "--out", "x", "--name", "y"], "a run goes on as it began: --out, --name cannot change it"),
        (["t.txt", "--out", "x", "--resume"], "a run goes on as it began: --out cannot change it"),
        (["t.txt", "--name", "t", "--resume"], "a run goes on with the text it began with"),
    ],
)
def test_a_run_goes_on_as_it_began(capsys: pytest.CaptureFixture[str], words: list[str], problem: str) -> None:
    assert run(["train", *words]) == 2
    assert capsys.readouterr().err == f"tinychat: {problem}\n  begin a new run instead\n"


@pytest.mark.slow
def test_ctrl_c_saves_the_model_and_resume_continues(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(some_text(20_000))
    call = [sys.executable, "-m", "tinychat", "train", str(path), "--steps", "150", "--json", *SMALL]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if json.loads(line)["event"] == "stepped":
                running.send_signal(signal.SIGINT)
                break
        rest = [json.loads(line) for line in running.stdout]
        assert running.wait() == 130
    assert rest[-1]["event"] == "ended"
    assert rest[-1]["reason"] == "stopped"
    step = rest[-1]["step"]
    assert 0 < step < 150
    assert (home / "models" / "t" / "model.safetensors").is_file()
    log = events(tinychat("train", "--resume", "t", "--json"))
    assert log[-1]["reason"] == "done"
    assert log[-1]["step"] == 150


@pytest.mark.slow
@pytest.mark.parametrize(("stops", "changes"), [(True, 0), (False, 1)])
def test_a_run_that_is_stopped_while_it_is_shown_stays_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch, stops: bool, changes: int
) -> None:
    """Only a run that was being stopped by others, such as by its killed command, is resumed once it has ended."""
    folder = RunFolder(home / "runs" / "t")
    folder.path.mkdir(parents=True)
    folder.recipe_file.write_text(load_recipe().to_toml())
    changed = []

    def watch(shown: RunFolder, **_: object) -> RunOutcome:
        if stops:
            shown.send("stop")
        return Ended("stopped", 4, 1.0, 2.0, 1.0, 1.0, str(folder.model))

    monkeypatch.setattr("tinychat.cli.train.watch", watch)
    monkeypatch.setattr("tinychat.cli.train.change_recipe", lambda *_: changed.append(1))  # it is long enough
    monkeypatch.setattr("tinychat.cli.train.describe_done", lambda _: ())
    with FileLock(folder.lock_file):
        assert run(["train", "--resume", "t"]) == (STOPPED if stops else 0)
    assert len(changed) == changes


def test_a_killed_command_leaves_a_run_that_can_be_resumed(tmp_path: Path, home: Path) -> None:
    """The trainer notices that its command was killed, saves everything and ends; `--resume` waits for that."""
    path = tmp_path / "t.txt"
    path.write_text(some_text(20_000))
    call = [sys.executable, "-m", "tinychat", "train", str(path), "--steps", "150", "--json", *SMALL]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if json.loads(line)["event"] == "stepped":
                break
        os.kill(running.pid, signal.SIGKILL)
    log = events(tinychat("train", "--resume", "t", "--json"))
    assert log[-1]["reason"] == "done"
    assert log[-1]["step"] == 150


@pytest.mark.slow
def test_a_taken_name_and_a_changed_recipe_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(some_text(5000))
    assert tinychat("train", str(path), "--steps", "2", "--name", "x", *SMALL).returncode == 0
    again = tinychat("train", str(path), "--steps", "2", "--name", "x", *SMALL)
    assert again.returncode == 1
    assert b"--resume x" in again.stderr
    assert tinychat("train", "--resume", "x", "--batch-size", "5").returncode == 2
    assert tinychat("train").returncode == 2


@pytest.mark.slow
def test_training_runs_no_code_of_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(some_text(3_000))
    for name in ("filelock", "numpy", "torch", "lightning", "tinychat"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    call = [sys.executable, "-P", "-m", "tinychat"]  # as the installed command, which knows no current folder either
    train = [*call, "train", "text.txt", "--steps", "2", *SMALL]
    done = subprocess.run(train, cwd=tmp_path, capture_output=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr.decode()
