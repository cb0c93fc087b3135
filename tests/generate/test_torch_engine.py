"""The engine against the plain path: the model run over everything, without a cache, one token after the other."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate.engine import Request, SampledToken, uniform, window_start
from tinychat.generate.sampling import draw, filter_logits
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.cpu_decoder import CPUDecoder
from tinychat.model.transformer import FeedForward, Transformer
from tinychat.train.evaluation import evaluate

VOCABULARY = 13
GREEDY = Settings(temperature=0)


def make(**options: Any) -> Transformer:
    torch.manual_seed(3)
    values = {
        "context_length": 16,
        "n_layer": 2,
        "d_model": 16,
        "initialization": "torch",
        "previous_token_embeddings": 2,
    } | options
    return Transformer(ModelConfig(VOCABULARY, **values)).eval()


def request(ids: list[int], settings: Settings = GREEDY, **values: Any) -> Request:
    return Request(**({"slot": 0, "ids": ids, "num_generated": 0, "settings": settings, "seed": 5} | values))


@torch.inference_mode()
def plainly(model: Transformer, ids: list[int], count: int, settings: Settings, position: int = 0) -> list[int]:
    """Draws each token from a pass over the whole window."""
    ids, prompt = list(ids), len(ids)
    for made in range(count):
        window = ids[window_start(len(ids), model.config.context_length) :]
        logits = filter_logits(model(torch.tensor([window]))[:, -1], settings, [ids])
        number = torch.tensor([uniform(5, position, made)], dtype=torch.float64)
        ids.append(int(logits.argmax()) if settings.greedy else int(draw(logits, number)))
    return ids[prompt:]


def ids_of(drawn: list[SampledToken]) -> list[int]:
    return [token.id for token in drawn]


@pytest.mark.parametrize("settings", [GREEDY, Settings(temperature=1.1, top_k=9), Settings(repetition_penalty=1.4)])
@pytest.mark.parametrize("prompt", [[1], [1, 2, 3, 4, 5], list(range(13)) * 3])
def test_decoding_equals_the_plain_path_far_beyond_the_context(settings: Settings, prompt: list[int]) -> None:
    model = make()
    made = ids_of(TorchEngine(model).extend([request(prompt, settings)], 60)[0])
    assert made == plainly(model, prompt, 60, settings)


def test_an_answer_is_the_same_however_it_is_cut_into_calls() -> None:
    model, settings = make(), Settings(temperature=1.3)
    whole = ids_of(TorchEngine(model).extend([request([4, 2], settings)], 40)[0])
    engine, pieces = TorchEngine(model), request([4, 2], settings)
    for n in (1, 7, 3, 20, 9):
        (drawn,) = engine.extend([pieces], n)
        pieces.ids += ids_of(drawn)
        pieces.num_generated += n
    assert pieces.ids[2:] == whole


@pytest.mark.slow
def test_a_batch_of_unequal_prompts_equals_each_alone() -> None:
    model, settings = make(), Settings(temperature=0.9, top_p=0.9)
    prompts = [[1], [2, 3, 4, 5, 6, 7], list(range(10)), [5] * 15, [6] * 40]
    requests = [request(ids, settings, slot=position, prompt_index=position) for position, ids in enumerate(prompts)]
    together = TorchEngine(model).extend(requests, 30)
    for position, ids in enumerate(prompts):
        assert ids_of(together[position]) == plainly(model, ids, 30, settings, position)


def test_rows_may_leave_join_and_change_places() -> None:
    model, engine = make(), TorchEngine(make())
    first, second, third = (request([i, i + 1], slot=i) for i in range(3))

    def extend(*requests: Request) -> None:
        for one, drawn in zip(requests, engine.extend(requests, 5), strict=True):
            one.ids += ids_of(drawn)
            one.num_generated += 5

    extend(first, second)
    extend(second)
    extend(third, second)
    extend(second, first, third)
    for i, (one, made) in enumerate(((first, 10), (second, 20), (third, 10))):
        assert one.ids[2:] == plainly(model, [i, i + 1], made, GREEDY)


def test_what_is_known_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(context_length=64)
    engine, forward, step = TorchEngine(model), model.forward, CPUDecoder.decode_one_token
    fed: list[int] = []

    def counting(ids: torch.Tensor, **positions: Any) -> torch.Tensor:
        fed.append(ids.numel())
        return forward(ids, **positions)

    def counting_one(decoder: CPUDecoder, *given: Any) -> torch.Tensor:
        fed.append(1)
        return step(decoder, *given)

    monkeypatch.setattr(model, "forward", counting)
    monkeypatch.setattr(CPUDecoder, "decode_one_token", counting_one)

    def read(*requests: Request) -> int:
        fed.clear()
        engine.extend(requests, 3)
        return sum(fed)

    prompt = [position * position % VOCABULARY for position in range(20)]
    first = request(prompt)
    assert read(first) == len(prompt) + 2
    answer = ids_of(engine.extend([first], 3)[0])
    assert read(request([*prompt, *answer, 1, 2])) == 1 + 2 + 2  # a turn later: the last token drawn, and its own
    assert read(request(prompt[:10])) == 1 + 2
    assert read(request([*prompt[:10], 2, 2], slot=1)) == 2 + 2  # somebody else, who begins so


def test_a_slot_may_go_back_and_take_another_way() -> None:
    model, engine = make(), TorchEngine(make())
    engine.extend([request([1, 2, 3, 4, 5, 6])], 6)
    assert ids_of(engine.extend([request([1, 2, 3, 9])], 6)[0]) == plainly(model, [1, 2, 3, 9], 6, GREEDY)


@pytest.mark.parametrize("sources", [(None, None), ((3, 1), (5, 2))], ids=["decoder", "encoder"])
def test_a_pass_that_failed_leaves_nothing_behind(
    sources: tuple[tuple[int, ...] | None, tuple[int, ...] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(n_encoder_layer=0 if sources[0] is None else 1)
    engine = TorchEngine(model)
    engine.extend([request([1, 2, 3], source=sources[0])], 4)
    other = request([1, 2, 9, 4, 5], source=sources[1])

    def fail(*_: object) -> None:
        raise RuntimeError("CUDA out of memory")

    with monkeypatch.context() as context:
        context.setattr(FeedForward, "forward", fail)
        with pytest.raises(RuntimeError):
            engine.extend([other], 4)
    assert ids_of(engine.extend([other], 4)[0]) == ids_of(TorchEngine(model).extend([other], 4)[0])


def test_an_engine_computes_with_its_number_of_threads_in_any_thread() -> None:
    counts = []
    model = make()
    model.decoder.register_forward_hook(lambda *_: counts.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    few, many = (TorchEngine(model, threads=threads) for threads in (1, 3))
    for engine in (few, many, few):
        engine.score([1, 2, 3])
        assert torch.get_num_threads() == before
    with ThreadPoolExecutor() as pool:
        pool.submit(many.score, [1, 2, 3]).result()
    assert counts == [1, 3, 1, 3]


def test_each_row_has_its_own_settings_and_ends_with_its_own_token() -> None:
    model = make()
    greedy = plainly(model, [1], 12, GREEDY)
    end = greedy[3]
    warm = Settings(temperature=1.5)
    rows = [request([1], end_ids=frozenset([end])), request([1], warm, slot=1)]
    first, second = TorchEngine(model).extend(rows, 12)
    assert ids_of(first) == greedy[: greedy.index(end) + 1]
    assert ids_of(second) == plainly(model, [1], 12, warm)


def test_log_probabilities_are_those_of_the_model_before_any_filter() -> None:
    model = make()
    (drawn,) = TorchEngine(model).extend([request([1, 2], Settings(temperature=0.5, top_k=2))], 1, top_logprobs=4)
    logprobs = model(torch.tensor([[1, 2]]))[0, -1].log_softmax(0)
    assert drawn[0].logprob == pytest.approx(logprobs[drawn[0].id].item(), abs=1e-5)
    values, ids = logprobs.topk(4)
    assert [token for token, _ in drawn[0].top_logprobs] == ids.tolist()
    assert [value for _, value in drawn[0].top_logprobs] == pytest.approx(values.tolist(), abs=1e-5)


@pytest.mark.parametrize("settings", [GREEDY, Settings(temperature=0.6, top_k=5, min_p=0.1, repetition_penalty=1.3)])
@pytest.mark.parametrize("ids", [[1, 2], list(range(13)) * 3])
def test_odds_are_those_by_which_tokens_are_drawn(ids: list[int], settings: Settings) -> None:
    model = make()
    probabilities = TorchEngine(model).probabilities(request(ids, settings))
    logits = model(torch.tensor([ids[window_start(len(ids), 16) :]]))[:, -1].detach()
    order = torch.tensor([one.id for one in probabilities])
    assert sorted(order.tolist()) == list(range(VOCABULARY))
    logprobs = logits.log_softmax(-1)[0, order]
    assert [one.logprob for one in probabilities] == pytest.approx(logprobs.tolist(), abs=1e-5)
    assert logprobs.tolist() == sorted(logprobs.tolist(), reverse=True)
    kept = filter_logits(logits, settings, [ids])[0, order]
    if settings.greedy:
        assert [one.probability for one in probabilities] == [
            float(position == kept.argmax()) for position in range(VOCABULARY)
        ]
    else:
        assert [one.probability for one in probabilities] == pytest.approx(kept.softmax(0).tolist(), abs=1e-5)
        assert [one.probability == 0 for one in probabilities] == kept.isneginf().tolist()


def test_looking_at_odds_leaves_an_answer_as_it_would_be() -> None:
    model, engine, one = make(), TorchEngine(make()), request([1, 2, 3])
    one.ids += ids_of(engine.extend([one], 5)[0])
    one.num_generated += 5
    engine.probabilities(request([1, 2, 3, 4]))
    engine.score([3, 1, 2])
    engine.heads([1, 2, 3])
    engine.attention([4, 2, 3], 0, 1)
    engine.lens([1, 2], 3)
    assert ids_of(engine.extend([one], 5)[0]) == plainly(model, [1, 2, 3], 10, GREEDY)[5:]


@pytest.mark.parametrize("length", [2, 16, 17, 18, 50])
def test_the_score_of_a_text_is_its_loss(length: int) -> None:
    model, ids = make(), [position * position % VOCABULARY for position in range(length)]
    logprobs = TorchEngine(model).score(ids)
    assert len(logprobs) == length - 1
    loss = evaluate(model, np.array(ids, np.uint16)).loss
    assert -sum(logprobs) / (length - 1) == pytest.approx(loss, abs=1e-5)


@pytest.mark.parametrize("length", [3, 16, 17, 40])
def test_looking_sees_what_the_model_sees_when_it_makes_the_next_token(length: int) -> None:
    engine, ids = TorchEngine(make()), [position * position % VOCABULARY for position in range(length)]
    seen = length - window_start(length, 16)
    layers = engine.heads(ids, cells=99)
    assert [len(heads) for heads in layers] == [2, 2]
    assert {len(head.cells) for heads in layers for head in heads} == {seen}
    assert engine.heads(ids, layer=1, cells=99) == layers[1:]
    rows = engine.attention(ids, 1, 0, newest=5)
    assert [tuple(row) for row in rows] == list(layers[1][0].cells[-5:])
    probabilities = engine.probabilities(request(ids))
    *_, last = engine.lens(ids, probabilities[2].id, likeliest=VOCABULARY)
    assert (last.part, last.rank) == ("layer 2", 3)
    assert [id for id, _ in last.likeliest] == [one.id for one in probabilities]
    assert [value for _, value in last.likeliest] == pytest.approx(
        [math.exp(one.logprob) for one in probabilities], abs=1e-5
    )
    assert last.probability == pytest.approx(math.exp(probabilities[2].logprob), abs=1e-5)


def test_the_lens_parts_a_mixture() -> None:
    model = make(ngram_order=3)
    assert model.ngrams is not None
    ids = [1, 2, 3, 1, 2, 3, 1, 2]
    model.ngrams.count([np.array(ids * 9, np.uint16)])
    engine = TorchEngine(model)
    rows = engine.lens(ids, 3)
    assert [row.part for row in rows] == ["embeddings", "layer 1", "layer 2", "counts", "matches", "mixture"]
    parts = [row for row in rows if row.share is not None]
    assert [row.part for row in parts] == ["layer 2", "counts", "matches"]
    assert sum(row.share or 0 for row in parts) == pytest.approx(1)
    assert parts[2].likeliest == ((3, 1.0),)
    mixed = sum((row.share or 0) * row.probability for row in parts)
    (probabilities,) = (math.exp(one.logprob) for one in engine.probabilities(request(ids)) if one.id == 3)
    assert rows[-1].probability == pytest.approx(mixed, abs=1e-5) == pytest.approx(probabilities, abs=1e-5)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_logits_that_are_no_numbers_are_a_clear_error(value: float) -> None:
    model = make(head_bias=True)
    with torch.no_grad():
        assert model.head.bias is not None
        model.head.bias[3] = value
    with pytest.raises(GenerationError, match="NaN or infinite logits"):
        TorchEngine(model).extend([request([1])], 1)
    with pytest.raises(GenerationError, match="NaN or infinite logits"):
        TorchEngine(model).probabilities(request([1]))
    with pytest.raises(GenerationError, match="NaN or infinite logits"):
        TorchEngine(model).score([1, 2])


def test_a_translation_model_reads_its_source() -> None:
    model = make(n_encoder_layer=1, previous_token_embeddings=0)
    sources: list[tuple[int, ...]] = [(1, 2, 3), (4, 5)]
    rows = [request([0], slot=i, source=source) for i, source in enumerate(sources)]
    together = TorchEngine(model).extend(rows, 8)
    for i, source in enumerate(sources):
        encoder_output = model.encode(torch.tensor([source]))
        ids = [0]
        for _ in range(8):
            ids.append(int(model(torch.tensor([ids]), encoder_output=encoder_output)[0, -1].argmax()))
        assert ids_of(together[i]) == ids[1:]


def test_how_a_translation_model_looks_at_its_source() -> None:
    engine = TorchEngine(make(n_encoder_layer=1, previous_token_embeddings=0))
    heads = engine.heads([0, 5], source=(1, 2, 3), layer=1, cross=True)
    assert [[len(row) for row in head.cells] for head in heads[0]] == [[3, 3], [3, 3]]
    rows = engine.attention([0, 5], 1, 0, source=(1, 2, 3), cross=True)
    assert [tuple(row) for row in rows] == list(heads[0][0].cells)
    probabilities = engine.probabilities(request([0, 5], source=(1, 2, 3)))
    assert engine.lens([0, 5], probabilities[0].id, source=(1, 2, 3))[-1].likeliest[0][0] == probabilities[0].id


def test_the_window_keeps_the_newest_part_and_moves_in_strides() -> None:
    starts = [window_start(length, 16) for length in range(60)]
    assert starts[:17] == [0] * 17
    assert all(1 <= length - start <= 16 for length, start in enumerate(starts) if length)
    assert set(starts) == {0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44}
