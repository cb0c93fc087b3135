"""All commands that look inside a model, go on with it or measure it, on a model of every format and architecture."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.formats.conftest import TEXT
from tests.formats.test_architectures import make
from tests.formats.test_nanogpt import NANOGPT
from tinychat.cli.main import run
from tinychat.commands import COMMANDS
from tinychat.commands.results import HeatMaps, Result, Steps
from tinychat.evaluate import bench
from tinychat.formats.registry import export_model, open_model
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, find_model, read_info
from tinychat.train.__main__ import main as train
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import choose_recipe

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled")]

ARCHITECTURES = ("gpt2", "llama scaled", "mistral", "qwen2", "qwen3", "gpt_neox", "gpt_neo")
EXPORTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gguf": ("llama", "wordpiece", {"rotary_factor": 2.0, "chat": True}),
    "gguf-q8_0": ("gpt2", "bpe", {}),
    "nanogpt": ("gpt2", "char", NANOGPT),
    "llama2c": ("llama", "bpe", {"specials": 1}),
}
"""Shape, vocabulary and options of a model that is exported to a format."""
PROMPT = "the cat sat on the mat"


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; the trainer's handlers of signals are taken back afterwards."""
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(bench, "MEASURE_SECONDS", 0.01)
    monkeypatch.setattr(bench, "LOOP_SECONDS", 0.1)
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(params=[*ARCHITECTURES, *EXPORTED])
def theirs(request: pytest.FixtureRequest, letters: Path, made: Callable[..., ModelInfo], workplace: Path) -> Path:
    """A model as another tool has it, beside a text of its characters."""
    kind, path = request.param, workplace / "theirs"
    if kind in EXPORTED:
        shape, vocabulary, options = EXPORTED[kind]
        export_model(made(shape, vocabulary, steps=5, **options), kind, path)
    else:
        make(kind, letters, path)
    (workplace / "text.txt").write_text(PROMPT * 60 if kind in ARCHITECTURES else TEXT * 4)
    return path


def test_all_that_looks_inside_works(theirs: Path) -> None:
    session = Session()
    session.open_model(str(theirs))
    for name, value in (("seed", 1), ("max_tokens", 6), ("temperature", 0)):
        session.settings.set(name, value)
    list(session.answer(PROMPT))
    assert session.turns[-1].answer
    results: dict[str, Result] = {
        line.split()[0]: COMMANDS.dispatch(session, line)
        for line in (
            "/why 2", "/color", "/score the cat", "/tokens the cat", "/attention", "/lens 2", "/copied text.txt",
            "/steps", "/show",
        )
    }  # fmt: skip
    assert all(results.values())
    config, maps = session.model.config, results["/attention"]
    assert isinstance(maps, HeatMaps)
    assert isinstance(results["/steps"], Steps)
    assert len(maps.rows) == config.n_layer
    if config.attention_window is not None:
        last = maps.rows[config.window_pattern.index("L")][0].cells[-1]
        assert sum(weight > 0 for weight in last) == config.attention_window < len(last)
        assert f"window of {config.attention_window}" in str(results["/show"])


@pytest.mark.long
def test_training_goes_on_from_it_and_it_is_measured(theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    fields = {"steps": 2, "batch_size": 2, "sample_tokens": 0, "threads": 1, "precision": "f32"}
    begun = prepare_run(choose_recipe(None, fields | {"sources": ["text.txt"], "from_model": str(theirs)}))
    assert train([str(begun.path)]) == 0, list(begun.events())[-1]
    torch.set_num_threads(threads)
    own, new = open_model(str(theirs)).architecture, read_info(find_model(begun.name)).architecture
    assert {name for name in own if own[name] != new[name]} <= {"context_length", "dropout", "initialization"}
    capsys.readouterr()
    assert run(["bench", str(theirs), "--device", "cpu", "--precision", "f32", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert {one["engine"] for one in measured["engines"]} == {"native", "torch"}
    assert min(measured[part]["tokens_per_second"] for part in ("prefill", "decode", "training")) > 0
