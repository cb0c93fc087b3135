"""The training step that is shown is that of the run, and of a plain torch script."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.formats.test_nanogpt import save
from tinychat.errors import UsageError
from tinychat.evaluate.training_step import Example, trace_training_step
from tinychat.formats.registry import open_model
from tinychat.generate.computation import Computation, figure
from tinychat.store.models import read_info, read_training
from tinychat.train.__main__ import main
from tinychat.train.event_log import Control
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import load_recipe

ROOT = Path(__file__).parents[2]
TOYS = ROOT / "tests" / "toys"


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Function that copies `statquest` with other fields of its recipe, and returns the copy's folder."""

    def change(section: str, **fields: object) -> Path:
        folder = tmp_path / "toy"
        shutil.copytree(TOYS / "statquest", folder)
        record = json.loads((folder / "training.json").read_text())
        record["recipe"][section] |= fields
        (folder / "training.json").write_text(json.dumps(record))
        return folder

    return change


def printed(matrix: object) -> list[list[str]]:
    return [[figure(value) for value in row] for row in matrix.values.tolist()]  # type: ignore[attr-defined]


def check_derivations(computation: Computation) -> None:
    for operation in computation.operations:
        if operation.derive is None:
            continue
        rows, columns = operation.output.shape
        for row in range(rows):
            for column in range(columns):
                value = operation.output[row, column]
                assert operation.derive(row, column).value == pytest.approx(value, rel=1e-4, abs=2e-6), operation.name


def test_the_script_in_the_docs_takes_the_step_that_is_shown() -> None:
    script = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "steps.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    names: dict[str, object] = {}
    with torch.random.fork_rng(devices=[]):
        exec(script, names)
    computation = trace_training_step(read_info(TOYS / "statquest"))
    check_derivations(computation)
    by_name = {one.name: one.output for one in computation.operations}
    assert printed(by_name["loss"]) == [[figure(names["loss"].item())]]  # type: ignore[attr-defined]
    assert printed(by_name["the loss afterwards"]) == [[figure(names["loss_afterwards"].item())]]  # type: ignore[attr-defined]
    updates = [one for one in computation.operations if one.name.startswith("new ")]
    weights: list[torch.Tensor] = names["weights"]  # type: ignore[assignment]
    old: list[torch.Tensor] = names["old"]  # type: ignore[assignment]
    assert len(updates) == len(weights) == 6
    for index, (operation, before, weight) in enumerate(zip(updates, old, weights, strict=True)):
        shown = [before, weight.grad, weight.detach()]
        for matrix, values in zip((*operation.inputs, operation.output), shown, strict=True):
            assert values is not None
            values = values.view(1, -1) if values.dim() == 1 else values.t() if index else values
            assert printed(matrix) == [[figure(value) for value in row] for row in values.tolist()]


@pytest.mark.slow
def test_it_is_the_first_step_of_the_run() -> None:
    for name in ("statquest", "translation"):
        info = read_info(TOYS / name)
        computation = trace_training_step(info)
        check_derivations(computation)
        first = json.loads((info.folder / "training.json").read_text())["curve"]["training"][0]
        loss = next(one.output for one in computation.operations if one.name == "loss")
        assert (1, pytest.approx(loss[0, 0], abs=2e-5)) == tuple(first)
        assert sum(one.output.values.numel() for one in computation.operations if one.name.startswith("new ")) == (
            info.parameters
        )


def test_the_first_step_has_the_stride_and_the_targets_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Control, "install_signal_handlers", lambda _: None)
    fields = {"role_tokens": True, "user_loss_fraction": 0.0, "packing": True, "stride": 3, "vocab_size": None}
    recipe = load_recipe("statquest").merged({**fields, "steps": 1, "sample_tokens": 0, "threads": 1})
    run = prepare_run(recipe, "toy")
    assert main([str(run.path)]) == 0
    computation = trace_training_step(read_info(run.final_folder))
    check_derivations(computation)
    loss = next(one.output for one in computation.operations if one.name == "loss")
    (first,) = read_training(run.final_folder)["curve"]["training"]
    assert (1, pytest.approx(loss[0, 0], abs=2e-5)) == tuple(first)
    rows = [row for one in computation.operations if one.name == "tokens" for row in one.output.rows]
    assert "awesome" in {row.partition("→")[2] for row in rows} <= {"awesome", "<|end|>", "<|assistant|>"}


@pytest.mark.parametrize(
    ("section", "fields", "words"),
    [
        ("optimizer", {"optimizer": "sgd", "momentum": 0.9}, "one step of SGD"),
        ("optimizer", {"optimizer": "adamw", "grad_clip": 0.1}, "one step of AdamW"),
        ("schedule", {"warmup_steps": 3}, "learning rate 0.025"),
    ],
)
def test_other_optimizers_and_schedules_are_followed(
    changed: Callable[..., Path], section: str, fields: dict[str, object], words: str
) -> None:
    computation = trace_training_step(read_info(changed(section, **fields)))
    assert words in computation.result
    check_derivations(computation)


@pytest.mark.parametrize(
    ("section", "fields", "words"),
    [
        ("data", {"texts": []}, "there is no answer to learn from yet"),
        ("optimizer", {"optimizer": "muon"}, "trained by muon"),
        ("optimizer", {"weight_decay": 0.1}, "weight decay of 0.1"),
        ("model", {"dropout": 0.1}, "a dropout of 0.1"),
        ("model", {"ngram_order": 2}, "mixes in n-gram counts"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    changed: Callable[..., Path], section: str, fields: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        trace_training_step(read_info(changed(section, **fields)))


def test_a_large_model_is_refused() -> None:
    info = dataclasses.replace(read_info(TOYS / "statquest"), parameters=10**8)
    with pytest.raises(UsageError, match="statquest has 100,000,000 parameters, and /steps train takes 20,000,000"):
        trace_training_step(info, Example([1, 2], 1))


def test_a_model_of_another_tool_takes_a_step_with_its_own_tokenizer(tmp_path: Path) -> None:
    info = open_model(str(save(tmp_path / "out-toy")))
    computation = trace_training_step(info, Example([0, 1, 2], 2))
    (ids,) = (one.output for one in computation.operations if one.name == "tokens")
    assert list(ids.rows) == ["a→b", "b→c"]
