"""The engine in C against the reference: the same models, the same numbers, the same tokens."""

import itertools
import json
import math
import mmap
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError, ModelError
from tinychat.generate.engine import ALL_TOKENS, Request, SampledToken, Steering
from tinychat.generate.loading import EngineLoader
from tinychat.generate.native import build
from tinychat.generate.native.build import SOURCE, Unavailable
from tinychat.generate.native.engine import LIMITS, SUPPORTED, NativeEngine
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import FEED_FORWARDS, NORM_POSITIONS, NORMS, POSITIONS, ModelConfig
from tinychat.model.kernel_layout import SMALL_VOCABULARY
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.store.models import WEIGHTS, ModelInfo, read_weights
from tinychat.store.packed_counts import PACKED
from tinychat.store.weights import Precision, is_layer_matrix, pack_weights

pytestmark = pytest.mark.usefixtures("native")

VOCABULARY = 21
GREEDY = Settings(temperature=0)

VARIANTS: list[dict[str, Any]] = [
    {},
    {"n_kv_head": 1, "bias": True, "norm_affine": True},
    {"n_head": 1, "output_projection": False, "scale_embedding": True, "tie_embeddings": True},
    {"previous_token_embeddings": 3, "bigram_embedding": True, "norm_affine": True, "d_model": 40},
    {"ngram_order": 4, "previous_token_embeddings": 1, "n_head": 4},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5, "n_head": 4, "n_kv_head": 2, "qkv_bias": True},
    {"qk_norm": False, "final_norm": False, "d_ff": 12, "head_bias": True},
]
GRID = [
    {"norm": norm, "norm_position": norm_position, "feed_forward": feed_forward, "position": position, **variant}
    for norm, norm_position, feed_forward, position, variant in itertools.product(
        NORMS, NORM_POSITIONS, FEED_FORWARDS, POSITIONS, VARIANTS
    )
]

FOREIGN: list[dict[str, Any]] = [  # what models of other tools have
    {"norm": "rmsnorm", "norm_affine": True, "qk_norm_affine": True, "d_head": 6, "qkv_bias": True, "n_kv_head": 1,
     "feed_forward": "swiglu", "attention_window": 3, "window_pattern": "GL"},
    {"norm": "layernorm", "norm_affine": True, "bias": True, "qkv_bias": False, "qk_norm_affine": True, "d_head": 8,
     "rotary_fraction": 0.5, "parallel": True, "attention_window": 4, "scale_scores": False},
    {"norm": "none", "parallel": True, "position": "learned", "feed_forward": "gelu", "attention_window": 1},
    {"qk_norm": False, "n_head": 4, "d_head": 8, "rotary_fraction": 0.25, "parallel": True, "ngram_order": 3},
    {"rotary_factor": 4.0, "rotary_short_wavelength": 5.0, "rotary_long_wavelength": 300.0, "rotary_base": 100.0},
]  # fmt: skip


def make(**options: Any) -> Transformer:
    """A small model with weights that are nowhere zero, far from what rounding could hide."""
    torch.manual_seed(3)
    if options.get("norm") == "none":
        options["qk_norm"] = False
    values = {"vocab_size": VOCABULARY, "context_length": 24, "n_layer": 2, "n_head": 2, "d_model": 24} | options
    model = Transformer(ModelConfig(**values)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.1 if model.config.norm == "none" else 0.3)  # numbers must not explode
    if model.ngrams is not None:
        if not model.config.matches:
            model.ngrams.silence_matches()
        model.ngrams.count([torch.randint(VOCABULARY, (300,), generator=torch.Generator().manual_seed(1)).numpy()])
    return model


def save(model: Transformer, folder: Path, precision: Precision = "f32") -> ModelInfo:
    folder.mkdir(exist_ok=True, parents=True)
    tied = model.config.tie_embeddings
    (folder / WEIGHTS).write_bytes(pack_weights(model.state_dict(), tied=tied, precision=precision))
    return ModelInfo("small", folder, "completion", model.config.to_dict(), "char", 0)


@pytest.mark.parametrize(
    "options",
    [
        {"previous_token_embeddings": 2},
        {"tie_embeddings": True, "bigram_embedding": True},
        {"ngram_order": 4},
        FOREIGN[1],
    ],
)
def test_matrices_that_are_stored_in_int8_are_read_without_loss(options: dict[str, Any], tmp_path: Path) -> None:
    model = make(**{"d_model": 72, "n_head": 4} | options)  # each row has a whole group and a part of one
    stored = save(model, tmp_path / "int8", "int8")
    restored = load_model(stored).eval()
    whole = save(restored, tmp_path / "f32")
    assert (stored.folder / WEIGHTS).stat().st_size < (whole.folder / WEIGHTS).stat().st_size / 2
    in_int8 = [NativeEngine(info, precision="int8").score(SOME_IDS) for info in (whole, stored)]
    assert in_int8[0] == in_int8[1]
    expected = torch.tensor(TorchEngine(restored).score(SOME_IDS))
    native = NativeEngine(stored)
    assert native.precision == "f32"
    torch.testing.assert_close(torch.tensor(native.score(SOME_IDS)), expected, rtol=1e-4, atol=1e-4)


def test_a_head_is_in_int8_only_for_a_large_vocabulary(tmp_path: Path) -> None:
    errors = []
    for vocab_size in (SMALL_VOCABULARY, SMALL_VOCABULARY + 1):
        model = make(vocab_size=vocab_size)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if is_layer_matrix(name):
                    weight.zero_()  # what is left to round is the head
        info = save(model, tmp_path / str(vocab_size))
        whole, rounded = (torch.tensor(NativeEngine(info, precision=one).score(SOME_IDS)) for one in ("f32", "int8"))
        errors.append(float((whole - rounded).abs().max()))
    assert errors[0] < 1e-5 < 1e-3 < errors[1]


def request(ids: list[int], settings: Settings = GREEDY, **values: Any) -> Request:
    return Request(**({"slot": 0, "ids": ids, "num_generated": 0, "settings": settings, "seed": 5} | values))


def ids_of(drawn: list[SampledToken]) -> list[int]:
    return [token.id for token in drawn]


SOME_IDS = [3, 7, 1, 20, 7, 1, 0, 3, 7, 1, 5, 5, 5, 12, 3, 7, 1, 20, 9, 8]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much memory a process has")
def test_a_long_context_takes_no_memory_before_it_is_used(tmp_path: Path) -> None:
    info = save(make(context_length=1 << 16, d_head=64), tmp_path / "model")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    engine = NativeEngine(info)
    assert resident() - before < 8 << 20  # the tables of all rotary positions have 16 MB
    assert len(engine.score([1] * 100)) == 99


@pytest.mark.parametrize(
    "grid", [GRID[::19] + FOREIGN, pytest.param(GRID, marks=(pytest.mark.slow, pytest.mark.long))], ids=["some", "all"]
)
def test_every_architecture_gives_the_numbers_of_the_reference(grid: list[dict[str, Any]], tmp_path: Path) -> None:
    for number, options in enumerate(grid):
        model = make(**options)
        native = NativeEngine(save(model, tmp_path / "model"), threads=1 + (number % 20 == 0))
        reference = TorchEngine(model)
        expected = torch.tensor(reference.score(SOME_IDS))
        got = torch.tensor(native.score(SOME_IDS))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4, msg=lambda text, o=options: f"{o}\n{text}")
        entropies = [torch.tensor(engine.entropies(SOME_IDS)) for engine in (native, reference)]
        torch.testing.assert_close(*entropies, rtol=1e-3, atol=1e-3, msg=lambda text, o=options: f"{o}\n{text}")
        for length in (1, 20):
            one_request = request(SOME_IDS[:length], Settings(temperature=0.9, top_p=1))
            probabilities = {one.id: one for one in native.probabilities(one_request)}
            for one in reference.probabilities(one_request):
                assert probabilities[one.id].logprob == pytest.approx(one.logprob, rel=1e-4, abs=1e-4), options
                assert probabilities[one.id].probability == pytest.approx(one.probability, abs=1e-4), options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stored", "precision", "tied"),
    [("f32", "f32", True), ("bf16", "f32", True), ("f16", "f32", False), ("f32", "bf16", True), ("bf16", "int8", True)],
)
def test_a_large_table_of_embeddings_is_read_as_it_is_stored(
    stored: Precision, precision: str, tied: bool, tmp_path: Path
) -> None:
    options = {"vocab_size": 66_000, "context_length": 8, "n_layer": 1, "d_model": 65, "n_head": 1, "position": "none"}
    model = Transformer(ModelConfig(**options, tie_embeddings=tied, norm="none", qk_norm=False))  # type: ignore[arg-type]
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5 if weight.shape[0] > 1000 else 0.1)
    info = save(model, tmp_path / "model", stored)
    ids = [0, 65_999, 1, 32_767, 15, 16, 60_001, 128]
    native, reference = NativeEngine(info, precision=precision), TorchEngine(load_model(info).eval())
    loose = {"f32": 1e-4, "bf16": 5e-2, "int8": 1e-1}[precision]
    expected = torch.tensor(reference.score(ids))
    torch.testing.assert_close(torch.tensor(native.score(ids)), expected, rtol=loose / 10, atol=loose)


SETTINGS = [
    GREEDY,
    Settings(temperature=1.3),
    Settings(temperature=1.1, top_k=9),
    Settings(temperature=0.9, top_p=0.8),
    Settings(temperature=1, min_p=0.2),
    Settings(temperature=2, top_k=15, top_p=0.95, min_p=0.01, repetition_penalty=1.3),
    Settings(temperature=0, repetition_penalty=1.4),
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    "options",
    [{}, {"ngram_order": 4}, {"ngram_order": 1, "matches": False}, {"position": "learned", "bias": True}, FOREIGN[1]],
)
def test_the_same_tokens_come_far_beyond_the_context(
    settings: Settings, options: dict[str, Any], tmp_path: Path
) -> None:
    model = make(**options)
    native, reference = NativeEngine(save(model, tmp_path / "model")), TorchEngine(model)
    for prompt in ([1], SOME_IDS * 3):
        expected = reference.extend([request(prompt, settings)], 60, top_logprobs=3)[0]
        got = native.extend([request(prompt, settings)], 60, top_logprobs=3)[0]
        assert ids_of(got) == ids_of(expected)
        for one, other in zip(got, expected, strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
            assert [id for id, _ in one.top_logprobs] == [id for id, _ in other.top_logprobs]
            assert [v for _, v in one.top_logprobs] == pytest.approx([v for _, v in other.top_logprobs], abs=1e-4)


def test_any_number_of_the_likeliest_tokens_comes_in_their_order(tmp_path: Path) -> None:
    model = make(head_bias=True)
    with torch.no_grad():
        for weight in (model.head.weight, model.head.bias):
            assert isinstance(weight, torch.Tensor)
            weight[1:14:2] = weight[0:14:2]  # equally likely
    engine = NativeEngine(save(model, tmp_path / "model"))
    expected = [(one.id, one.logprob) for one in engine.probabilities(request(SOME_IDS))]
    for wanted in (*range(1, VOCABULARY + 1), ALL_TOKENS):
        ((token,),) = engine.extend([request(SOME_IDS)], 1, top_logprobs=wanted)
        assert [id for id, _ in token.top_logprobs] == [id for id, _ in expected[:wanted]]
        assert [v for _, v in token.top_logprobs] == pytest.approx([v for _, v in expected[:wanted]], abs=1e-5)


def test_all_tokens_of_the_largest_vocabulary_take_no_seconds(tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = ModelConfig(LIMITS["vocab_size"], context_length=4, n_layer=0, n_head=1, d_model=2, initialization="torch")
    engine = NativeEngine(save(Transformer(config), tmp_path / "model"))
    began = time.perf_counter()
    ((token,),) = engine.extend([request([1])], 1, top_logprobs=ALL_TOKENS)
    assert time.perf_counter() - began < 3  # insertion, one by one, takes four times as long, and much more
    assert len(token.top_logprobs) == LIMITS["vocab_size"]


@pytest.mark.parametrize("settings", [Settings(top_p=0.4), Settings(top_k=7), Settings(top_p=0.5, min_p=0.1)])
def test_of_equal_logits_both_engines_keep_the_same(settings: Settings, tmp_path: Path) -> None:
    model = make()
    with torch.no_grad():
        model.head.weight.copy_(model.head.weight[:7].repeat(3, 1))  # tokens 7 apart have the same logits
    info, one = save(model, tmp_path / "model"), request(SOME_IDS, settings)
    native, reference = NativeEngine(info).probabilities(one), TorchEngine(load_model(info).eval()).probabilities(one)
    kept = {token.id: token.probability for token in reference}
    assert 0 < sum(probability > 0 for probability in kept.values()) < VOCABULARY
    assert {token.id: token.probability for token in native} == pytest.approx(kept, abs=1e-4)


def test_an_answer_is_the_same_however_it_is_cut_into_calls_and_with_any_threads(tmp_path: Path) -> None:
    info, settings = save(make(), tmp_path / "model"), Settings(temperature=1.3)
    whole = ids_of(NativeEngine(info).extend([request([4, 2], settings)], 40)[0])
    engine, pieces = NativeEngine(info, threads=2), request([4, 2], settings)
    for n in (1, 7, 3, 20, 9):
        (drawn,) = engine.extend([pieces], n)
        pieces.ids += ids_of(drawn)
        pieces.num_generated += n
    assert pieces.ids[2:] == whole


def test_rows_may_leave_join_go_back_and_end(tmp_path: Path) -> None:
    info = save(make(), tmp_path / "model")
    engine = NativeEngine(info)
    alone = {i: ids_of(NativeEngine(info).extend([request([i, i + 1])], 30)[0]) for i in range(3)}
    first, second, third = (request([i, i + 1], slot=i) for i in range(3))

    def extend(*requests: Request) -> None:
        for one, drawn in zip(requests, engine.extend(requests, 5), strict=True):
            one.ids += ids_of(drawn)
            one.num_generated += 5

    extend(first, second)
    extend(second)
    extend(third, second)
    extend(second, first, third)
    for i, one in enumerate((first, second, third)):
        assert one.ids[2:] == alone[i][: len(one.ids) - 2]
    end = alone[0][3]
    (ended,) = engine.extend([request([0, 1], end_ids=frozenset([end]))], 30)
    assert ids_of(ended) == alone[0][: alone[0].index(end) + 1]


def test_sequences_are_kept_for_a_batch_and_freed_beyond_it(tmp_path: Path) -> None:
    engine = NativeEngine(save(make(), tmp_path / "model"))
    crowd = [request([slot % VOCABULARY], slot=slot) for slot in range(engine.batch_size + 5)]
    engine.extend(crowd, 3)
    assert len(engine._sequences) == len(crowd)
    for one in crowd[:2]:  # those of the other calls stay
        engine.extend([one], 1)
        assert len(engine._sequences) == engine.batch_size
    read = engine.work.read
    engine.extend(crowd[:1], 1)
    assert engine.work.read == read + 1


def test_a_crowd_says_what_each_says_alone_to_the_last_bit(tmp_path: Path) -> None:
    """More sequences than a pass has rows, some beyond the context; with the same numbers, not only the same tokens."""
    info, settings = save(make(ngram_order=3), tmp_path / "model"), Settings(temperature=1.2, top_p=0.9)
    crowd = [
        request([*SOME_IDS[position % 7 :][: 1 + position * 3 % 19]], settings, slot=position, prompt_index=position)
        for position in range(18)
    ]
    for threads in (1, 2):
        together = NativeEngine(info, threads).extend(crowd, 10, top_logprobs=2)
        engine = NativeEngine(info)
        assert together == [engine.extend([one], 10, top_logprobs=2)[0] for one in crowd]


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
@pytest.mark.parametrize(
    "options",
    [
        {"d_model": 128},
        {"d_model": 128, "n_kv_head": 2, "bias": True, "norm_affine": True},
        {"d_model": 132, "d_ff": 77, "position": "learned"},  # nothing of it fills whole vectors
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "threads",
    [
        {"threads": 2},  # each makes the keys and values of the heads that it looks with
        {"threads": 1, "most_threads": 2},  # one does the work of both
        {"threads": 3},  # heads are cut
        pytest.param({"threads": 11}, marks=pytest.mark.slow),  # some have no part of a matrix
    ],
    ids=str,
)
def test_threads_say_the_same_however_they_share_a_model_out(
    threads: dict[str, int], options: dict[str, Any], precision: str, tmp_path: Path
) -> None:
    model = make(n_head=4, **options)
    info, ids = save(model, tmp_path / "model"), [1, 2, 3, 4, 5]
    alone, shared = NativeEngine(info, precision=precision), NativeEngine(info, **threads, precision=precision)
    assert shared.extend([request(ids)], 12, 3) == alone.extend([request(ids)], 12, 3)
    assert shared.score(ids) == alone.score(ids)
    if precision == "f32":
        assert ids_of(shared.extend([request(ids)], 12)[0]) == ids_of(TorchEngine(model).extend([request(ids)], 12)[0])


def test_the_quickness_of_threads_is_taken_from_calls_that_tell_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = NativeEngine(save(make(), tmp_path / "model"), threads=2)
    noted: list[bool] = []
    monkeypatch.setattr(engine._tuner, "record", lambda is_wide, *_: noted.append(is_wide))
    monkeypatch.setattr("tinychat.generate.native.engine.MIN_SECONDS_TIMED", math.inf)
    ids = [1, 2, 3]
    for n in (1, 4):  # so few tell how soon a thread awakes
        ids += ids_of(engine.extend([request(ids)], n)[0])
    engine.extend([request([*range(20, 0, -1)])], 4)  # and this, how quickly a prompt is read
    assert noted == []
    engine.extend([request(ids)], 12)
    assert noted == [False]
    engine.extend([request(ids), request([7], slot=1)], 12)
    assert noted == [False, True]
    monkeypatch.setattr("tinychat.generate.native.engine.MIN_SECONDS_TIMED", 0)  # a large model makes few in a call
    engine.extend([request(ids)], 2)
    assert noted == [False, True, False]


def test_the_kernel_has_the_sampling_settings_that_it_is_handed() -> None:
    structure = re.search(r"typedef struct \{([^}]*)\} Sampling;", SOURCE.read_text(encoding="utf-8"))
    assert structure is not None
    fields = re.sub(r"\b(double|u?int64_t)\b|\s", "", structure[1]).replace(";", ",").split(",")
    assert tuple(fields[: len(SUPPORTED)]) == SUPPORTED


def test_a_sampling_setting_that_the_kernel_does_not_know_is_left_to_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, opened = make(), list[ModelInfo]()

    def load_reference(info: ModelInfo) -> EngineLoader:
        opened.append(info)
        return EngineLoader(lambda: TorchEngine(model), "torch")

    engine = NativeEngine(save(model, tmp_path / "model"), load_reference=load_reference)
    monkeypatch.setattr("tinychat.generate.native.engine.UNSUPPORTED", ("min_p",))
    plain, unknown = request([1, 2], Settings(temperature=1.3)), request([1, 2], Settings(temperature=1.3, min_p=0.1))
    engine.extend([plain], 8)
    assert opened == []
    reference = TorchEngine(model)
    assert engine.extend([unknown], 8) == reference.extend([unknown], 8)
    assert engine.probabilities(unknown) == reference.probabilities(unknown)
    assert len(opened) == 1


def test_a_trace_is_steered_and_tells_of_the_precision(tmp_path: Path) -> None:
    model = make()
    engine = NativeEngine(
        save(model, tmp_path / "model"), precision="int8",
        load_reference=lambda _: EngineLoader(lambda: TorchEngine(model), "torch"),
    )  # fmt: skip
    steered = request([1, 2], Settings(temperature=1, steer="a-b"), steering=Steering((1,), (2,), 900.0))
    names = [one.name for one in engine.trace(steered, str, str).operations]
    assert names == [one.name for one in TorchEngine(model).trace(steered, str, str).operations]
    assert "steered" in names
    for asked, reason in ((request([1, 2], Settings(temperature=1)), "decoded in int8"), (steered, "put there")):
        last = engine.probabilities(asked)[-1].id
        assert reason in engine.trace(asked, str, str, uniform=0.0, drawn=last or 1).operations[-1].about


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("options", [{}, {"ngram_order": 4}])
def test_drafts_change_nothing(settings: Settings, options: dict[str, Any], tmp_path: Path) -> None:
    info = save(make(**options), tmp_path / "model")
    told = {}
    for drafts in ("never", "auto", "always"):
        engine = NativeEngine(info, drafts=drafts)
        alone = engine.extend([request(SOME_IDS, settings)], 60, top_logprobs=2)
        again = engine.extend([request(SOME_IDS, settings)], 60, top_logprobs=2)  # which it has met by now
        ends = frozenset([alone[0][30].id])
        pair = [request(SOME_IDS[position:], settings, slot=position, end_ids=ends) for position in range(2)]
        told[drafts] = alone, again, engine.extend(pair, 40)
        assert (engine.work.accepted > 0) >= (drafts == "always")
        assert (engine.work.drafted == 0) >= (drafts == "never")
    assert told["never"] == told["auto"] == told["always"]


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    engine = NativeEngine(save(make(context_length=64), tmp_path / "model"), drafts="never")

    def read(*requests: Request) -> int:
        before = engine.work.read
        engine.extend(requests, 3)
        return engine.work.read - before

    first = request(SOME_IDS)
    assert read(first) == len(SOME_IDS) + 2
    answer = ids_of(engine.extend([first], 3)[0])
    assert (
        read(request([*SOME_IDS, *answer, 1, 2])) == 1 + 2 + 2
    )  # a turn later: the last token that was drawn, and its own
    assert read(first) == 1 + 2  # the same once more
    assert read(request(SOME_IDS[:10])) == 1 + 2  # from a place before
    assert read(request([*SOME_IDS[:10], 2, 2], slot=1)) == 2 + 2  # somebody else, who begins so
    fresh = [request([5, 4, 3, 2, 1, position], slot=position) for position in range(3)]
    assert read(*fresh) == 5 + 3 + 3 * 2  # what all of them begin with, once


def test_a_call_ends_in_time_even_while_it_reads(tmp_path: Path) -> None:
    info = save(make(context_length=128), tmp_path / "model")
    prompt = SOME_IDS * 5
    expected = ids_of(NativeEngine(info).extend([request(prompt)], 4)[0])
    engine, one, calls = NativeEngine(info), request([*prompt]), 0
    while len(one.ids) < len(prompt) + 4:
        (drawn,) = engine.extend([one], 4, seconds=0)
        one.ids += ids_of(drawn)
        one.num_generated += len(drawn)
        calls += 1
        assert calls > 6 or not drawn  # 100 tokens to read, 16 at a time
    assert one.ids[len(prompt) :] == expected


def test_weights_in_bf16_are_kept_so_and_lose_nothing(tmp_path: Path) -> None:
    rounded = make()
    rounded.load_state_dict({name: weight.bfloat16().float() for name, weight in rounded.state_dict().items()})
    native = NativeEngine(save(rounded, tmp_path / "model", "bf16"))
    expected = TorchEngine(rounded).score(SOME_IDS)
    assert native.score(SOME_IDS) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    full = NativeEngine(save(make(), tmp_path / "full"), precision="bf16")
    assert full.score(SOME_IDS) == pytest.approx(expected, rel=0.1, abs=0.1)


@pytest.mark.parametrize("options", [{}, {"d_model": 132, "n_head": 1, "d_ff": 77, "bias": True}])
def test_each_kind_of_processor_gives_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    """Of those that this machine can play; whatever else it is, the numbers are those of plain C."""
    model = make(**options)
    info = save(model, tmp_path / "model")
    assert build.levels_here()[-1] == "plain"
    for precision, tolerance in {"f32": 1e-4, "bf16": 1e-4, "int8": 5e-2}.items():
        scores = [NativeEngine(info, precision=precision, level=level).score(SOME_IDS) for level in build.levels_here()]
        for other in scores[1:]:
            assert other == pytest.approx(scores[0], rel=tolerance, abs=tolerance)


def test_int8_is_as_near_as_eight_bits_can_be(tmp_path: Path) -> None:
    model = make(d_model=132, n_head=1, d_ff=77)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.3)
    info = save(model, tmp_path / "model")
    exact, near = (NativeEngine(info, precision=precision).score(SOME_IDS) for precision in ("f32", "int8"))
    assert near != exact
    assert near == pytest.approx(exact, abs=0.05)


def test_new_weights_are_taken_and_a_snapshot_brings_no_counts(tmp_path: Path) -> None:
    model, other = make(ngram_order=3), make(ngram_order=3)
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(0.5)
    info = save(model, tmp_path / "model")
    learned = {name: value for name, value in other.state_dict().items() if value.is_floating_point()}
    snapshot = tmp_path / "snapshot.safetensors"
    snapshot.write_bytes(pack_weights(learned, tied=False))
    engine = NativeEngine(info)
    before = engine.score(SOME_IDS)
    engine.reload(ModelInfo("small", info.folder, "completion", info.architecture, "char", 0, snapshot=snapshot))
    assert engine.score(SOME_IDS) == pytest.approx(TorchEngine(other).score(SOME_IDS), rel=1e-4, abs=1e-4)
    engine.reload(info)
    assert engine.score(SOME_IDS) == before


def test_damaged_weights_are_refused_before_the_kernel_reads_them(tmp_path: Path) -> None:
    info = save(make(), tmp_path / "model")
    path = info.folder / WEIGHTS
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])

    def refused(data: bytes) -> None:
        path.write_bytes(data)
        with pytest.raises(ModelError):
            NativeEngine(info)

    def changed(name: str, **values: Any) -> bytes:
        text = json.dumps(header | {name: header[name] | values}).encode()
        return len(text).to_bytes(8, "little") + text + whole[8 + length :]

    for data in (b"", whole[:4], whole[:200], whole[:-1], b"\xff" * 8 + whole[8:], b"\x02\0\0\0\0\0\0\0[]"):
        refused(data)
    first, end = header["head.weight"]["data_offsets"]
    refused(changed("head.weight", shape=[-VOCABULARY, -24]))
    refused(changed("head.weight", shape=[VOCABULARY, 24.0]))
    refused(changed("head.weight", data_offsets=[first + 10**9, end + 10**9]))
    refused(changed("head.weight", dtype="F8"))
    refused(changed("head.weight", shape=[VOCABULARY * 2, 12], data_offsets="x"))
    without = json.dumps({name: values for name, values in header.items() if name != "head.weight"}).encode()
    refused(len(without).to_bytes(8, "little") + without + whole[8 + length :])
    path.unlink()
    with pytest.raises(ModelError):
        NativeEngine(info)


def test_counts_that_contradict_one_another_are_refused_by_both_engines(tmp_path: Path) -> None:
    info = save(make(ngram_order=3), tmp_path / "model")
    packed = load_file(info.folder / WEIGHTS)

    def refused(name: str, values: torch.Tensor) -> None:
        save_file(packed | {f"ngrams.{name}": values}, info.folder / WEIGHTS)
        for opened in (NativeEngine, read_weights):
            with pytest.raises(ModelError):
                opened(info)

    NativeEngine(info)
    quotients, remainders, remainder_bits, counts, others, _, is_first, is_context = (packed[name] for name in PACKED)
    refused("quotients", quotients.float())
    refused("quotients", quotients[:-1])
    refused("quotients", quotients[:0])
    refused("quotients", torch.cat((quotients.new_zeros(1), quotients)))  # ranks beyond the tokens
    refused("quotients", quotients.flip(0))
    refused("remainders", torch.cat((remainders, remainders.new_zeros(1))))
    refused("remainder_bits", remainder_bits[:-1])
    refused("remainder_bits", torch.cat((remainder_bits, remainder_bits[:1])))
    refused("remainder_bits", remainder_bits + 1)  # then there are too few remainders
    refused("remainder_bits", remainder_bits + 16)
    refused("remainder_bits", remainder_bits.char() - 1)
    refused("quotients", quotients.short())
    refused("counts", counts[:-1])
    refused("counts", counts.index_fill(0, torch.tensor(0), 0b01010101))  # then there are too many others
    refused("byte_counts", others[:-1])
    refused("byte_counts", torch.cat((others, others[:1])))
    refused("byte_counts", others.index_fill(0, torch.tensor(0), 255))
    refused("large_counts", torch.tensor([300], dtype=torch.int32))
    refused("is_first", is_first[:-1])
    refused("is_first", is_first & 0xFE)  # the first entry belongs to no context
    refused("is_context", is_context | is_first.flip(0))
    refused("is_context", is_context.flip(0))  # contexts lead to one another
    refused("is_context", is_context.float())


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
def test_logits_that_are_no_numbers_are_told_of(precision: str, tmp_path: Path) -> None:
    model = make()
    with torch.no_grad():
        model.head.weight.copy_(3e38 * torch.randn(model.head.weight.shape).sign())
    engine = NativeEngine(save(model, tmp_path / "model"), precision=precision)
    for ask in (
        lambda: engine.extend([request([1])], 3),
        lambda: engine.probabilities(request([1])),
        lambda: engine.score([1, 2, 3]),
    ):
        with pytest.raises(GenerationError, match="NaN or infinite logits"):
            ask()


def test_what_it_does_not_know_is_left_to_another_engine(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="knows no parallel sublayers beside an encoder"):
        NativeEngine(save(make(n_encoder_layer=1, parallel=True), tmp_path / "model"))
    with pytest.raises(Unavailable, match="of a context_length up to 65536"):
        NativeEngine(save(make(context_length=70_000, position="none"), tmp_path / "model"))


SOURCES = [(3, 1, 4, 1, 5), (2,), (9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3), (3, 1, 4, 1, 5)]
TRANSLATORS: list[dict[str, Any]] = [
    {"source_vocab_size": 11, "previous_token_embeddings": 2},
    {"norm": "rmsnorm", "norm_affine": True, "bias": True, "n_kv_head": 1, "position": "learned"},
    {"norm_position": "post", "qk_norm": False, "feed_forward": "gelu", "n_encoder_layer": 3, "tie_embeddings": True},
    {"output_projection": False, "position": "sinusoidal", "ngram_order": 3, "bigram_embedding": True},
]


@pytest.mark.parametrize("options", TRANSLATORS)
@pytest.mark.slow
def test_translations_are_those_of_the_reference(options: dict[str, Any], tmp_path: Path) -> None:
    """In a batch and one after the other, with sources that come back, beyond the context."""
    model = make(**{"n_encoder_layer": 1} | options)
    native, reference = NativeEngine(save(model, tmp_path / "model"), threads=2), TorchEngine(model)
    requests = [
        request([1, 2, 3][: slot + 1], Settings(temperature=1.1) if slot % 2 else GREEDY, slot=slot, source=source)
        for slot, source in enumerate(SOURCES)
    ]
    for batch in (requests, *([one] for one in reversed(requests))):
        expected, got = reference.extend(batch, 40), native.extend(batch, 40)
        assert [ids_of(one) for one in got] == [ids_of(one) for one in expected]
        logprobs = [[token.logprob for token in itertools.chain.from_iterable(answers)] for answers in (got, expected)]
        assert logprobs[0] == pytest.approx(logprobs[1], abs=1e-4)
    odds = {one.id: one.logprob for one in reference.probabilities(requests[2])}
    assert {one.id: one.logprob for one in native.probabilities(requests[2])} == pytest.approx(odds, abs=1e-4)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_translations_are_near_in_a_coarser_precision(precision: str, tmp_path: Path) -> None:
    model = make(n_encoder_layer=2, d_model=72)
    engines = [NativeEngine(save(model, tmp_path / "model"), precision=kind) for kind in ("f32", precision)]
    exact, coarse = (
        {one.id: one.logprob for one in engine.probabilities(request([1], source=SOURCES[2]))} for engine in engines
    )
    assert coarse != exact
    assert coarse == pytest.approx(exact, abs=0.3)


@pytest.mark.parametrize("source", [(-1,), (3, 11), (2**31,), tuple(range(10)) * 3])
def test_sources_of_another_vocabulary_never_reach_the_encoder(tmp_path: Path, source: tuple[int, ...]) -> None:
    engine = NativeEngine(save(make(n_encoder_layer=1, source_vocab_size=11), tmp_path / "model"))
    with pytest.raises(ModelError, match="a token is unknown"):
        engine.extend([request([1], source=source)], 3)


@pytest.mark.parametrize("id", [-1, VOCABULARY, 2**31])
def test_ids_of_another_vocabulary_never_reach_the_kernel(tmp_path: Path, id: int) -> None:
    engine = NativeEngine(save(make(), tmp_path / "model"))
    for ask in (
        lambda: engine.extend([request([1, id])], 3),
        lambda: engine.probabilities(request([id, 1])),
        lambda: engine.score([1, id, 3]),
    ):
        with pytest.raises(ModelError, match="the model knows 21 tokens"):
            ask()


def test_without_a_compiler_or_with_a_broken_one_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "made" / "kernel.so"
    monkeypatch.setenv("CC", "false")
    with pytest.raises(Unavailable, match="cannot be compiled: false failed"):
        build.compile_kernel(path)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="needs a C compiler"):
        build.compile_kernel(path)
    assert not path.exists()
    monkeypatch.setattr(build, "library_file", lambda: tmp_path / "bad.so")
    (tmp_path / "bad.so").write_bytes(b"no library")
    build.load_library.cache_clear()
    with pytest.raises(Unavailable, match="cannot be loaded"):
        build.load_library()


def test_sums_of_exponentials_are_right_to_the_sixth_place(tmp_path: Path) -> None:
    """Logits as far apart as they come: their log-probabilities are those of torch."""
    model = make(position="none", norm="none", feed_forward="none", n_layer=0, n_head=1)
    with torch.no_grad():
        model.decoder.embedding.weight.normal_(std=30)
    expected = TorchEngine(model).probabilities(request([4]))
    got = {one.id: one.logprob for one in NativeEngine(save(model, tmp_path / "model")).probabilities(request([4]))}
    for one in expected:
        assert got[one.id] == pytest.approx(one.logprob, rel=1e-5, abs=1e-5)


def test_a_forked_process_goes_on_alone(letters: Path) -> None:
    code = """
import gc, os, signal, sys
os.register_at_fork(after_in_child=lambda: gc.collect() or os._exit(2))  # the child collects what is forgotten
import tinychat
gc.disable()
model, forgotten = (tinychat.load(sys.argv[1], engine="native", threads=2, max_tokens=8) for _ in range(2))
for one in (model, forgotten):
    one._opened.engine._tuner.choose = lambda is_wide: 2  # whatever is faster here
    before = [answer.text for answer in one.generate(["abc"] * 8, seed=1)]
cycle = [one]
cycle.append(cycle)
del one, forgotten, cycle
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(20)  # ends it if it waits for threads that are not there
is_same = [answer.text for answer in model.generate(["abc"] * 8, seed=1)] == before
model.score("abc abc")
model.close()
is_same = is_same and model.generate("abc", seed=1).text == model.generate("abc", seed=1).text
model.close()
os._exit(0 if is_same else 1)
"""
    assert subprocess.run([sys.executable, "-c", code, str(letters)], check=False, timeout=60).returncode == 0
