"""DecodeSteps that are made at once against steps one by one. That a GPU makes a graph of them needs a GPU."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate.cuda_graph import STEPS, STEPS_BEFORE_CAPTURE, DecodeSteps
from tinychat.generate.engine import Request, SampledToken
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.graph_capture import capture_graph
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.store.models import WEIGHTS, ModelInfo
from tinychat.store.weights import pack_weights

pytestmark = pytest.mark.slow

VOCABULARY = 13
GREEDY, DRAWN = Settings(temperature=0), Settings(temperature=1.2, top_k=9, top_p=0.95, min_p=0.02)
ARCHITECTURES: list[dict[str, Any]] = [
    {"previous_token_embeddings": 2, "bigram_embedding": True},
    {"ngram_order": 3},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5},
    {"position": "learned", "norm": "rmsnorm", "feed_forward": "swiglu", "n_head": 2, "n_kv_head": 1},
    {"n_encoder_layer": 1, "source_vocab_size": 7, "position": "sinusoidal"},
]


class Recorder:
    """Runs steps as they are, and counts."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def capture(self, steps: DecodeSteps) -> Callable[[], None]:
        self.captured += 1

        def replay() -> None:
            self.replayed += 1
            steps.run()

        return replay


def make(**options: Any) -> Transformer:
    torch.manual_seed(3)
    values = {"context_length": 40, "n_layer": 2, "d_model": 16, "initialization": "torch"} | options
    return Transformer(ModelConfig(VOCABULARY, **values)).eval()


def request(ids: list[int], settings: Settings, **values: Any) -> Request:
    return Request(**({"slot": 0, "ids": ids, "num_generated": 0, "settings": settings, "seed": 5} | values))


def ids_of(drawn: list[SampledToken]) -> list[int]:
    return [token.id for token in drawn]


@pytest.mark.parametrize("settings", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("options", ARCHITECTURES, ids=str)
def test_replayed_steps_make_what_single_ones_make_far_beyond_the_context(
    options: dict[str, Any], settings: Settings
) -> None:
    model, recorder = make(**options), Recorder()
    source = (3, 1, 4) if model.encoder else None
    (plain,), (replayed,) = (
        engine.extend([request([1, 2, 3], settings, source=source)], 101, top_logprobs=3)
        for engine in (TorchEngine(model), TorchEngine(model, capture=recorder.capture))
    )
    assert ids_of(replayed) == ids_of(plain)
    for one, other in zip(replayed, plain, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert [value for _, value in one.top_logprobs] == pytest.approx([v for _, v in other.top_logprobs], abs=1e-4)
    assert recorder.captured == 1  # what was recorded stays good, wherever in the context it begins
    assert recorder.replayed * STEPS > (len(plain) - STEPS_BEFORE_CAPTURE) / 2


def test_rows_at_different_places_with_their_own_ends_are_replayed_together() -> None:
    model, recorder = make(), Recorder()
    prompts = [[1], [2, 3, 4, 5, 6], [7, 8]]
    alone = [
        ids_of(TorchEngine(model).extend([request(ids, DRAWN, prompt_index=i)], 30)[0]) for i, ids in enumerate(prompts)
    ]
    ends = [frozenset[int](), frozenset([alone[1][17]]), frozenset[int]()]
    crowd = [
        request(ids, DRAWN, slot=i, prompt_index=i, end_ids=end)
        for i, (ids, end) in enumerate(zip(prompts, ends, strict=True))
    ]
    together = TorchEngine(model, capture=recorder.capture).extend(crowd, 30)
    assert recorder.captured == 1
    assert [ids_of(drawn) for drawn in together] == [alone[0], alone[1][: alone[1].index(alone[1][17]) + 1], alone[2]]
    assert recorder.replayed == 2  # after the prompts' own step and STEPS_BEFORE_CAPTURE of them


def test_an_answer_is_the_same_however_it_is_cut_into_calls_and_settings_act_at_once() -> None:
    model, recorder = make(context_length=200), Recorder()
    engine, pieces = TorchEngine(model, capture=recorder.capture), request([4, 2], DRAWN)
    plan = ((1, DRAWN), (35, DRAWN), (13, replace(DRAWN, max_tokens=300)), (30, GREEDY), (3, GREEDY), (40, DRAWN))
    for n, settings in plan:
        pieces.settings = settings
        (drawn,) = engine.extend([pieces], n)
        whole = TorchEngine(model).extend([request(list(pieces.ids), settings, num_generated=pieces.num_generated)], n)[
            0
        ]
        assert ids_of(drawn) == ids_of(whole)
        pieces.ids += ids_of(drawn)
        pieces.num_generated += n
    assert recorder.captured == 3  # how long an answer may be changes nothing
    assert recorder.replayed >= 6


def test_rows_that_leave_and_join_and_other_sources_are_recorded_anew() -> None:
    model, recorder = make(context_length=80, **ARCHITECTURES[-1]), Recorder()
    engine = TorchEngine(model, capture=recorder.capture)

    def check(*slots: int, source: tuple[int, ...]) -> None:
        rows = [request([slot + 1, 2], DRAWN, slot=slot, prompt_index=slot, source=source) for slot in slots]
        made = engine.extend(rows, 40)
        assert list(map(ids_of, made)) == [ids_of(TorchEngine(model).extend([row], 40)[0]) for row in rows]

    check(0, 1, source=(3, 1, 4))
    check(1, 2, source=(3, 1, 4))
    check(1, 2, source=(6, 5))
    check(2, source=(6, 5))
    assert recorder.captured == 4


def test_rows_that_come_and_go_are_not_recorded() -> None:
    model, recorder = make(), Recorder()
    engine = TorchEngine(model, capture=recorder.capture)
    for first in range(6):
        engine.extend([request([1, 2], DRAWN, slot=slot) for slot in (first, first + 1)], STEPS_BEFORE_CAPTURE)
    assert not recorder.captured


def save(model: Transformer, folder: Path) -> ModelInfo:
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(pack_weights(model.state_dict(), tied=False))
    return ModelInfo("small", folder, "completion", model.config.to_dict(), "char", 0)


def test_weights_that_are_read_anew_are_recorded_anew(tmp_path: Path) -> None:
    """Those of a model that counts lie elsewhere then."""
    recorder, infos = Recorder(), list[ModelInfo]()
    for name, text in (("one", [0, 1, 2] * 9), ("two", [5, 3, 5, 4] * 9)):
        model = make(ngram_order=3)
        assert model.ngrams is not None
        model.ngrams.count([np.array(text), np.array(text)])
        infos.append(save(model, tmp_path / name))
    engine = TorchEngine(load_model(infos[0]), capture=recorder.capture)
    engine.extend([request([1, 2, 3], DRAWN)], 40)
    engine.reload(infos[1])
    expected = TorchEngine(load_model(infos[1])).extend([request([1, 2, 3], DRAWN)], 40)
    assert ids_of(engine.extend([request([1, 2, 3], DRAWN)], 40)[0]) == ids_of(expected[0])
    assert recorder.captured == 2


def test_nothing_is_left_of_weights_that_were_no_numbers(tmp_path: Path) -> None:
    """A replay looks at all slots of the cache, and nothing times what is no number is no number either."""
    model, recorder = make(), Recorder()
    good = save(model, tmp_path / "good")
    with torch.no_grad():
        next(model.decoder.blocks.parameters())[:] = math.nan
    engine = TorchEngine(model, capture=recorder.capture)  # a file with such weights would be refused
    with pytest.raises(GenerationError):
        engine.extend([request([*range(VOCABULARY)] * 3, DRAWN)], 1)
    engine.reload(good)
    expected = TorchEngine(load_model(good)).extend([request([1], DRAWN)], 30)
    assert ids_of(engine.extend([request([1], DRAWN)], 30)[0]) == ids_of(expected[0])
    assert recorder.replayed


@pytest.mark.parametrize(
    "settings",
    [
        [Settings(temperature=0, repetition_penalty=1.5)] * 2,  # hangs on the text so far
        [DRAWN, GREEDY],
    ],
)
def test_what_cannot_be_recorded_is_made_one_by_one(settings: list[Settings]) -> None:
    model, recorder = make(), Recorder()
    crowd = [request([1 + slot, 2], one, slot=slot) for slot, one in enumerate(settings)]
    together = TorchEngine(model, capture=recorder.capture).extend(crowd, 35)
    assert list(map(ids_of, together)) == [ids_of(TorchEngine(model).extend([one], 35)[0]) for one in crowd]
    assert not recorder.captured


def test_an_engine_that_cannot_record_goes_on_step_by_step_and_says_so() -> None:
    def fail(_: DecodeSteps) -> Callable[[], None]:
        try:
            raise RuntimeError("operation not permitted when stream is capturing\nmore of it")
        except RuntimeError:
            raise RuntimeError("operation failed due to a previous error during capture") from None

    model = make()
    engine = TorchEngine(model, capture=fail)
    assert ids_of(engine.extend([request([1], GREEDY)], 30)[0]) == ids_of(
        TorchEngine(model).extend([request([1], GREEDY)], 30)[0]
    )
    assert engine.about.endswith(", step by step (operation not permitted when stream is capturing)")


@pytest.mark.parametrize("settings", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("options", ARCHITECTURES[:3], ids=str)
def test_nothing_in_the_steps_looks_at_a_number_or_leaves_the_device(
    options: dict[str, Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a graph needs it: here there are no numbers at all, only shapes."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # which knows no such device
    model = make(**options).round_layers(torch.bfloat16).to("meta")
    steps = DecodeSteps(model, model.new_cache(3), None, settings)
    with torch.inference_mode():
        steps.run()
    assert steps.sampled.shape == (3, STEPS)
    with pytest.raises(RuntimeError):
        int(steps.sampled[0, 0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("options", ARCHITECTURES, ids=str)
def test_a_gpu_replays_what_it_makes_step_by_step(options: dict[str, Any], dtype: torch.dtype) -> None:
    model = make(**options).cuda().round_layers(dtype)
    source = (3, 1, 4) if model.encoder else None

    plain, replaying = TorchEngine(model), TorchEngine(model, capture=capture_graph)
    for settings in (GREEDY, DRAWN):
        one, other = (
            ids_of(engine.extend([request([1, 2, 3], settings, source=source)], 101)[0])
            for engine in (plain, replaying)
        )
        assert one == other
    assert "step by step" not in replaying.about
