"""Steps that are made at once against steps one by one. That a GPU makes a graph of them needs a GPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tinychat.generate.engine import Drawn, Request
from tinychat.generate.replay import PATIENCE, STEPS, Steps
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.settings import Settings

VOCABULARY = 13
GREEDY, DRAWN = Settings(temperature=0), Settings(temperature=1.2, top_k=9, top_p=0.95, min_p=0.02)
ARCHITECTURES: list[dict[str, Any]] = [
    {"earlier_tokens": 2, "token_pairs": True},
    {"ngram_order": 3},
    {"position": "learned", "norm": "rmsnorm", "feed_forward": "swiglu", "n_head": 2, "n_kv_head": 1},
    {"n_encoder_layer": 1, "source_vocab_size": 7, "position": "sinusoidal"},
]


class Recorder:
    """Runs steps as they are, and counts."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def record(self, steps: Steps) -> Callable[[], None]:
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            steps.run()

        return replay


def make(**options: Any) -> Transformer:
    torch.manual_seed(3)
    values = {"context": 40, "n_layer": 2, "d_model": 16, "initialization": "torch"} | options
    return Transformer(ModelConfig(VOCABULARY, **values)).eval()


def request(ids: list[int], settings: Settings, **values: Any) -> Request:
    return Request(**({"slot": 0, "ids": ids, "made": 0, "settings": settings, "seed": 5} | values))


def ids_of(drawn: list[Drawn]) -> list[int]:
    return [token.id for token in drawn]


@pytest.mark.parametrize("settings", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("options", ARCHITECTURES, ids=str)
def test_replayed_steps_make_what_single_ones_make_far_beyond_the_context(
    options: dict[str, Any], settings: Settings
) -> None:
    model, recorder = make(**options), Recorder()
    source = (3, 1, 4) if model.encoder else None
    (plain,), (replayed,) = (
        engine.extend([request([1, 2, 3], settings, source=source)], 101, alternatives=3)
        for engine in (TorchEngine(model), TorchEngine(model, record=recorder.record))
    )
    assert ids_of(replayed) == ids_of(plain)
    for one, other in zip(replayed, plain, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert [value for _, value in one.likeliest] == pytest.approx([v for _, v in other.likeliest], abs=1e-4)
    assert recorder.recorded == 1  # what was recorded stays good, wherever in the context it begins
    assert recorder.replayed * STEPS > len(plain) / 2


def test_rows_at_different_places_with_their_own_ends_are_replayed_together() -> None:
    model, recorder = make(), Recorder()
    prompts = [[1], [2, 3, 4, 5, 6], [7, 8]]
    alone = [ids_of(TorchEngine(model).extend([request(ids, DRAWN, place=i)], 30)[0]) for i, ids in enumerate(prompts)]
    ends = [frozenset[int](), frozenset([alone[1][17]]), frozenset[int]()]
    crowd = [
        request(ids, DRAWN, slot=i, place=i, end_ids=end)
        for i, (ids, end) in enumerate(zip(prompts, ends, strict=True))
    ]
    together = TorchEngine(model, record=recorder.record).extend(crowd, 30)
    assert [ids_of(drawn) for drawn in together] == [alone[0], alone[1][: alone[1].index(alone[1][17]) + 1], alone[2]]
    assert recorder.replayed >= (30 - PATIENCE) // STEPS - 1


def test_an_answer_is_the_same_however_it_is_cut_into_calls_and_settings_act_at_once() -> None:
    model, recorder = make(), Recorder()
    engine, pieces = TorchEngine(model, record=recorder.record), request([4, 2], DRAWN)
    for n, settings in ((1, DRAWN), (11, DRAWN), (20, GREEDY), (3, GREEDY), (30, DRAWN)):
        pieces.settings = settings
        (drawn,) = engine.extend([pieces], n)
        whole = TorchEngine(model).extend([request(list(pieces.ids), settings, made=pieces.made)], n)[0]
        assert ids_of(drawn) == ids_of(whole)
        pieces.ids += ids_of(drawn)
        pieces.made += n
    assert recorder.recorded == 3


@pytest.mark.parametrize("settings", [Settings(temperature=0, repetition_penalty=1.5), DRAWN])
def test_what_hangs_on_the_text_so_far_or_differs_between_rows_is_made_one_by_one(settings: Settings) -> None:
    model, recorder = make(), Recorder()
    crowd = [request([1, 2], settings, slot=0), request([3], GREEDY, slot=1)]
    together = TorchEngine(model, record=recorder.record).extend(crowd, 20)
    assert ids_of(together[0]) == ids_of(TorchEngine(model).extend([crowd[0]], 20)[0])
    assert not recorder.recorded


def test_an_engine_that_cannot_record_goes_on_step_by_step_and_says_so() -> None:
    def fail(_: Steps) -> Callable[[], None]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    model = make()
    engine = TorchEngine(model, record=fail)
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
    model = make(**options).to(torch.bfloat16).to("meta")
    steps = Steps(model, model.new_cache(3), None, settings)
    with torch.inference_mode():
        steps.run()
    assert steps.drawn.shape == (3, STEPS)
    with pytest.raises(RuntimeError):
        int(steps.drawn[0, 0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("options", ARCHITECTURES, ids=str)
def test_a_gpu_replays_what_it_makes_step_by_step(options: dict[str, Any]) -> None:
    model = make(**options).cuda()
    source = (3, 1, 4) if model.encoder else None

    def none(_: Steps) -> Callable[[], None]:
        raise RuntimeError("not now")

    plain, replaying = TorchEngine(model, record=none), TorchEngine(model)
    for settings in (GREEDY, DRAWN):
        one, other = (
            ids_of(engine.extend([request([1, 2, 3], settings, source=source)], 101)[0])
            for engine in (plain, replaying)
        )
        assert one == other
    assert "step by step" not in replaying.about
