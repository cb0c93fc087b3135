"""Gradients by recorded passes against passes as usual. That a GPU makes graphs of them needs a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tinychat.model.config import ModelConfig
from tinychat.model.graph_capture import Capturable
from tinychat.train.batches import Batch
from tinychat.train.gradient_graphs import GradientGraphs
from tinychat.train.recipe import load_recipe
from tinychat.train.step import Learner

VOCABULARY, LENGTH = 8, 16
MODELS: list[dict[str, Any]] = [
    {"dropout": 0.2, "previous_token_embeddings": 1, "bigram_embedding": True},
    {
        "dropout": 0.2,
        "attention_dropout": 0.0,
        "ngram_order": 3,
        "turn_attention": True,
        "turn_token": 3,
        "reply_token": 5,
    },
    {"dropout": 0.1, "position": "learned", "norm": "rmsnorm", "feed_forward": "swiglu", "attention_window": 5},
]


class Recorder:
    """Runs passes as they are, and counts."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def capture(self, work: Capturable) -> Callable[[], None]:
        self.captured += 1
        work.run()
        compute, recorded = work.compute, work  # type: ignore[attr-defined]

        def replay() -> None:
            self.replayed += 1
            recorded.loss.copy_(compute(recorded.batch))  # type: ignore[attr-defined]

        return replay


def make_learner(options: dict[str, Any], device: str, **fields: Any) -> Learner:
    config = ModelConfig(VOCABULARY, context_length=LENGTH, n_layer=2, n_head=2, d_model=32, **options)
    recipe = load_recipe().merged({"device": device, "precision": "f32", **fields})
    return Learner(config, recipe, None, list(np.random.default_rng(1).integers(0, VOCABULARY, (4, 200))))


def make_batches(count: int, *, length: int = LENGTH, rows: int = 4) -> list[Batch]:
    ids = torch.from_numpy(np.random.default_rng(2).integers(0, VOCABULARY, (count, rows, length + 1)))
    return [Batch(one[:, :-1], one[:, 1:], torch.arange(rows)) for one in ids]


def train(learner: Learner, batches: list[Batch]) -> list[float]:
    """Take a step with each batch, the first of them while the layers' share is held; return the losses."""
    count = len(batches)
    return [float(learner.step(batch, 1.0, step, step / count)) for step, batch in enumerate(batches)]


def weights_of(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: values.cpu() for name, values in learner.model.state_dict().items()}


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_recorded_passes_train_as_others_do(options: dict[str, Any]) -> None:
    plain, recording = make_learner(options, "cpu"), make_learner(options, "cpu")
    recorder = Recorder()
    recording.graphs = GradientGraphs(list(recording.model.parameters()), torch.device("cpu"), recorder.capture)

    def batches() -> list[Batch]:  # anew, since those on a CPU are the tensors of a recording
        return [*make_batches(5), *make_batches(1, length=7), *make_batches(6)]  # one shape comes once

    assert train(recording, batches()) == train(plain, batches())
    torch.testing.assert_close(weights_of(recording), weights_of(plain), rtol=0, atol=0)
    variants = 2 if "ngram_order" in options else 1  # the share is held at first
    assert (recorder.captured, recorder.replayed) == (variants, 11 - variants)


def test_after_new_weights_all_is_recorded_anew() -> None:
    learner, recorder = make_learner(MODELS[1], "cpu"), Recorder()
    learner.graphs = GradientGraphs(list(learner.model.parameters()), torch.device("cpu"), recorder.capture)
    train(learner, make_batches(10))
    before = recorder.captured
    learner.load(weights_of(learner), learner.optimizer_states())
    learner.step(make_batches(1)[0], 1.0)
    assert recorder.captured == before + 1


def test_what_cannot_be_recorded_is_computed_as_usual() -> None:
    def fail(work: Capturable) -> Callable[[], None]:
        work.run()
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    plain, failing = make_learner(MODELS[0], "cpu"), make_learner(MODELS[0], "cpu")
    failing.graphs = GradientGraphs(list(failing.model.parameters()), torch.device("cpu"), fail)
    assert train(failing, make_batches(5)) == train(plain, make_batches(5))
    assert failing.graphs.failure == "operation not permitted when stream is capturing"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("options", MODELS, ids=str)
def test_a_gpu_trains_by_graphs_as_it_does_step_by_step(options: dict[str, Any], precision: str) -> None:
    """Not to the bit: a GPU adds up some gradients in any order."""
    plain, recording = (make_learner(options, "cuda", precision=precision) for _ in range(2))
    plain.graphs = None
    batches = make_batches(20)
    assert train(recording, batches) == pytest.approx(train(plain, batches), abs=1e-3 if precision == "f32" else 0.03)
    assert recording.graphs is not None
    assert not recording.graphs.failure
    assert recording.graphs._captured


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_goes_on_after_a_capture_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, failing = (make_learner(MODELS[0], "cuda") for _ in range(2))
    plain.graphs = None
    backward = failing._backward

    def look_at_a_number(batch: Batch, weight: float = 1.0) -> torch.Tensor:
        loss = backward(batch, weight)
        assert loss.item() > 0
        return loss

    monkeypatch.setattr(failing, "_backward", look_at_a_number)
    batches = make_batches(8)
    assert train(failing, batches) == pytest.approx(train(plain, batches), abs=1e-3)
    assert failing.graphs is not None
    assert "capturing" in failing.graphs.failure


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("options", MODELS, ids=str)
def test_a_gpu_gives_the_losses_of_a_processor(options: dict[str, Any]) -> None:
    options = options | {"dropout": 0.0, "attention_dropout": 0.0}  # random numbers differ
    batches = make_batches(20)
    here, there = (train(make_learner(options, device), batches) for device in ("cpu", "cuda"))
    assert there == pytest.approx(here, abs=3e-3)  # Muon makes much of the differences of the first small gradients
