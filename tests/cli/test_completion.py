"""Completion in a shell, by the protocol of click: what the shell asks in variables, it gets on stdout."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tinychat.cli.main import run

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Complete:
    """A function that completes the last of some words as a shell asks for it, and returns the lines that it gets."""

    def complete(*words: str, shell: str = "bash") -> list[str]:
        monkeypatch.setenv("_TINYCHAT_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("tinychat", *words)))
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words)))
        assert run([]) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return out.splitlines()

    return complete


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("r",), ["runs", "rm", "rename", "recipes"]),
        (("--prec",), ["--precision"]),
        (("--precision", ""), ["auto", "f32", "bf16", "int8"]),
        (("-m", "t"), ["tales", "translate", "translate-es-en"]),
        (("show", "s"), ["smalltalk"]),
        (("serve", "--max-q"), ["--max-queue"]),
        (("recipes", "gpt"), ["gpt2"]),
        (("train", "tinys"), ["tinyshakespeare", "tinystories"]),
        (("data", "get", "tinyshak"), ["tinyshakespeare"]),
        (("data", "g"), ["get"]),
        (("runs", ""), [""]),
        (("export", "tales", "--to", "gg"), ["gguf", "gguf-f16", "gguf-q8_0"]),
        (("train", "--recipe", "gpt"), ["gpt2"]),
        (("train", "--from", "t"), ["tales", "translate", "translate-es-en"]),
        (("train", "--tokenizer", "w"), ["wordpiece", "word", "whitespace"]),
        (("train", "--log", ""), ["tensorboard", "csv"]),
        (("train", "--log", "csv,"), ["csv,tensorboard"]),
        (("train", "--resume", ""), [""]),
    ],
)
def test_words_are_completed(complete: Complete, words: tuple[str, ...], found: list[str]) -> None:
    assert [line.partition(",")[2] for line in complete(*words)] == found


@pytest.mark.parametrize(
    ("shell", "begun", "found"),
    [
        ("bash", "my", r"plain,my\\ novel"),
        ("bash", "\n'my", "plain,my novel"),
        ("fish", "my", "plain,my novel\tcompletion"),
    ],
)
def test_a_space_in_a_name_ends_no_word(
    complete: Complete, home: Path, letters: Path, shell: str, begun: str, found: str
) -> None:
    shutil.copytree(letters, home / "models" / "my novel")
    assert complete("-m", begun, shell=shell) == [found]


def test_files_are_left_to_the_shell(complete: Complete) -> None:
    assert complete("train", "my-n") == ["file,my-n"]
    assert complete("-m", "./") == ["dir,./"]


@pytest.mark.parametrize("words", [("no-such-command", ""), ("show", "--no-such-flag", "x", ""), ("--seed", "x", "s")])
def test_what_is_wrong_before_is_no_error(complete: Complete, words: tuple[str, ...]) -> None:
    complete(*words)


def test_other_shells_show_what_each_is(complete: Complete) -> None:
    assert complete("serv", shell="fish") == ["plain,serve\tServe a model to OpenAI's clients."]
    assert complete("serv", shell="zsh") == ["plain", "serve", "Serve a model to OpenAI's clients."]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], shell: str
) -> None:
    monkeypatch.setenv("_TINYCHAT_COMPLETE", f"{shell}_source")
    assert run([]) == 0
    assert f"_TINYCHAT_COMPLETE={shell}_complete" in capfd.readouterr().out
