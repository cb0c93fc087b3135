"""Every command at a pseudo-terminal, with control sequences in all that others choose: none reaches the screen."""

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from poison import POISON, find_foreign
from scripted import make_model, open_scripted

from tinychat.cli.main import run

AtTerminal = Callable[..., str]

SUITE = {"group": f"group {POISON}", "say": f"say {POISON}", "answer": f"answer {POISON}"}
FILES = {
    "suite.jsonl": json.dumps(SUITE) + "\n",
    f"suite {POISON}.jsonl": "{",
    "recipe.toml": f"[about]\nsummary = {json.dumps(POISON)}\n",
    f"text {POISON}.csv": "a,b\n1,2\n",
}
PLAIN = {
    "models": ("models",),
    "an unknown model": ("show", f"venom{POISON}"),
    "an architecture": ("show", "venom"),
    "config": ("config",),
    "an unknown recipe": ("recipes", POISON),
    "a recipe": ("recipes", "recipe.toml"),
    "runs": ("runs",),
    "runs side by side": ("runs", f"run {POISON}"),
    "unknown runs": ("runs", POISON),
    "an unknown data set": ("data", "get", POISON),
    "a suite": ("eval", "venom", "--suite", "suite.jsonl"),
    "the failures of a suite": ("eval", "venom", "--suite", "suite.jsonl", "--verbose"),
    "a suite that is no JSON": ("eval", "venom", "--suite", f"suite {POISON}.jsonl"),
    "an unknown format": ("export", "venom", "--to", POISON),
    "a folder to import": ("import", f"missing {POISON}"),
    "an answer": ("-m", "venom", "--echo", "-v", "--seed", "1", "-p", POISON),
    "a model": ("-m", POISON, "-p", "x"),
    "a value": ("--temperature", POISON, "-p", "x"),
    "an option": (f"--{POISON}",),
    "a command": (POISON,),
    "a traceback": ("show", POISON, "--debug"),
}
SLOW = {
    "a missing text": ("train", "--plain", f"missing {POISON}"),
    "a text to train on": ("train", "--plain", "--steps", "2", f"text {POISON}.csv"),
    "a text to score": ("eval", "venom", f"missing {POISON}"),
}
JSON = {
    "models": ("models", "--json"),
    "config": ("config", "--json"),
    "runs": ("runs", "--json"),
    "a suite": ("eval", "venom", "--suite", "suite.jsonl", "--json"),
    "an answer": ("-m", "venom", "--jsonl", "--seed", "1", "-p", json.dumps({"prompt": POISON, "id": POISON})),
}


@pytest.fixture
def at_terminal(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AtTerminal:
    """A function that runs `tinychat` at a pseudo-terminal, amid poisoned files, and returns what the screen gets."""
    folder = make_model(home / "models", "venom")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    architecture = config["architecture"] | {"n_layer": 1, "d_model": 16}
    config |= {"name": f"venom {POISON}", "description": f"says {POISON}", "architecture": architecture}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    run_folder = home / "runs" / f"run {POISON}"
    run_folder.mkdir(parents=True)
    (run_folder / "recipe.toml").write_text(f"[run]\nsources = [{json.dumps(POISON)}]\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYCHAT_MIRROR", f"mirror {POISON}")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("tinychat.generate.loading.open_engine", open_scripted)

    def call(*arguments: str) -> str:
        master, slave = os.openpty()
        data = bytearray()
        reader = threading.Thread(target=_read, args=(master, data))
        reader.start()
        with os.fdopen(slave, "w", encoding="utf-8") as screen, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
            patch.setattr(sys, "argv", ["tinychat", *arguments])
            run(list(arguments))
        reader.join()
        os.close(master)
        return data.decode("utf-8")

    return call


def _read(master: int, data: bytearray) -> None:
    try:
        while read := os.read(master, 65536):
            data += read
    except OSError:  # the other end is closed
        return


@pytest.mark.parametrize(
    "command",
    [
        *(pytest.param(command, id=name) for name, command in PLAIN.items()),
        *(pytest.param(command, id=name, marks=pytest.mark.slow) for name, command in SLOW.items()),
    ],
)
def test_no_control_sequence_reaches_the_terminal(at_terminal: AtTerminal, command: tuple[str, ...]) -> None:
    output = at_terminal(*command)
    assert find_foreign(output) == []
    assert "poison" in output or "esrever" in output
    assert "unexpected" not in output


@pytest.mark.parametrize("command", JSON.values(), ids=JSON)
def test_json_is_safe_at_a_terminal_and_means_the_same(at_terminal: AtTerminal, command: tuple[str, ...]) -> None:
    output = at_terminal(*command).rpartition("\r\x1b[K")[2]
    assert find_foreign(output) == []
    assert POISON in _text_of(json.loads(output))


def _text_of(values: object) -> str:
    """Return all texts of a JSON value."""
    if isinstance(values, dict):
        return "".join(map(_text_of, [*values, *values.values()]))
    return "".join(map(_text_of, values)) if isinstance(values, list) else str(values)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("tinychat.cli.output.escape_controls", PLAIN["an answer"]),
        ("tinychat.cli.output.escape_controls", PLAIN["unknown runs"]),
        ("tinychat.repl.render.terminal.escape_controls", PLAIN["models"]),
        ("tinychat.cli.output.one_line", PLAIN["config"]),
        ("tinychat.cli.output.json_line", JSON["models"]),
        ("tinychat.repl.render.terminal.escape_controls", PLAIN["an architecture"]),
    ],
)
def test_each_place_that_escapes_is_needed(
    at_terminal: AtTerminal, place: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_foreign(at_terminal(*command)) == []
    monkeypatch.setattr(place, partial(json.dumps, ensure_ascii=False) if place.endswith("json_line") else str)
    assert find_foreign(at_terminal(*command)) != []


def test_a_pipe_gets_the_bytes_of_an_answer(
    at_terminal: AtTerminal, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert run([*PLAIN["an answer"]]) == 0
    assert capfdbinary.readouterr().out.decode() == f"{POISON}you said: {POISON}\n"
