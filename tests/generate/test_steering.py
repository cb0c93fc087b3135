"""Steering against a plain sum in the residual stream; rows, caches and settings do not mix."""

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from tinychat.config.option import Origin
from tinychat.config.settings import Settings, SettingStore, SteeringSpec
from tinychat.errors import GenerationError, SettingError, TinychatError
from tinychat.events import Notice, Token
from tinychat.generate.answer import Answer
from tinychat.generate.engine import Request, Steering
from tinychat.generate.loading import open_engine
from tinychat.generate.steering import MAX_DIRECTIONS, UNIT, Steerer
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session
from tinychat.store.models import read_info

GREEDY = Settings(temperature=0)
ANSWERS = 1000
STEERING = Steering((3, 5, 4), (3, 7), strength=4.0, layer=2)


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    torch.manual_seed(3)
    return TorchEngine(
        Transformer(ModelConfig(12, context_length=16, n_layer=3, d_model=16, initialization="torch")).eval()
    )


def steered_logits(engine: TorchEngine, ids: list[int], steering: Steering) -> torch.Tensor:
    """The logits after ids, layer by layer: the direction is that of the mean states after the common beginning."""
    decoder = engine.model.decoder
    layer = steering.layer or 2

    def states(ids: list[int], direction: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        row, positions = torch.tensor([ids]), torch.arange(len(ids))
        x, mask = decoder.embed(row, engine.model._pad(row), positions), torch.full((len(ids),) * 2, -torch.inf).triu(1)
        after = x
        for index, block in enumerate(decoder.blocks, 1):
            x = block(x, mask, None, positions=positions, rotary=decoder.position.rotary_tables(positions), cache=None)
            if index == layer:
                after = x[0]
                x = x if direction is None else x + direction
        return after, engine.model.head(x if decoder.norm is None else decoder.norm(x))[0, -1]

    toward, away = (states(list(text))[0][1:] for text in (steering.toward, steering.away))
    direction = toward.mean(0) - away.mean(0)
    length = torch.cat((toward, away)).norm(dim=1).mean()
    return states(ids, direction / direction.norm() * length * UNIT * steering.strength)[1]


@torch.inference_mode()
@pytest.mark.parametrize("layer", [1, 2, 3, None])
def test_the_odds_are_those_of_the_shifted_states(engine: TorchEngine, layer: int | None) -> None:
    ids, steering = [1, 2, 3, 4, 5], STEERING._replace(layer=layer)
    request = Request(0, ids, 0, Settings(temperature=1, top_p=1), seed=0, steering=steering)
    odds = {one.id: one for one in engine.probabilities(request)}
    expected = steered_logits(engine, ids, steering).softmax(-1)
    assert [odds[id].probability for id in range(12)] == pytest.approx(expected.tolist(), rel=1e-4)
    own = engine.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
    assert [odds[id].logprob for id in range(12)] == pytest.approx(own.tolist(), rel=1e-4)
    assert expected.tolist() != pytest.approx(own.exp().tolist(), rel=1e-2)


def test_rows_of_a_batch_are_steered_apart(engine: TorchEngine) -> None:
    steerings = [None, STEERING, STEERING._replace(strength=-30.0, layer=1), None]

    def requests() -> list[Request]:
        settings = Settings(temperature=1, max_tokens=10)
        return [Request(row, [1, 2, 3, row], 0, settings, 5, steering=one) for row, one in enumerate(steerings)]

    together = [[token.id for token in row] for row in engine.extend(requests(), 10)]
    alone = [[token.id for token in engine.extend([request], 10)[0]] for request in requests()]
    assert together == alone
    ((first,),) = engine.extend(requests()[:1], 1)
    plain = engine.model(torch.tensor([[1, 2, 3, 0]]))[0, -1].log_softmax(-1)
    assert first.logprob == pytest.approx(plain[first.id].item(), rel=1e-4)


@pytest.mark.slow
@torch.inference_mode()
def test_a_thousand_answers_go_where_they_are_steered(engine: TorchEngine) -> None:
    """Greedy ones take the token that is likeliest after the shift; others come as often as it says."""
    draw = random.Random(1)
    prompts = [draw.choices(range(12), k=4) for _ in range(30)]
    requests = [Request(row, list(prompts[row % 30]), 0, GREEDY, 0, steering=STEERING) for row in range(ANSWERS)]
    shifted = cache(lambda *ids: steered_logits(engine, list(ids), STEERING))
    own = cache(lambda *ids: int(engine.model(torch.tensor([ids]))[0, -1].argmax()))
    changed = 0
    for first in range(0, ANSWERS, engine.batch_size):
        batch = requests[first : first + engine.batch_size]
        for request, tokens in zip(batch, engine.extend(batch, 3), strict=True):
            ids = [*request.ids, *(token.id for token in tokens)]
            for end in range(4, 7):
                assert shifted(*ids[:end])[ids[end]] > shifted(*ids[:end]).max() - 1e-4
                changed += own(*ids[:end]) != ids[end]
    assert changed > ANSWERS / 10
    sampled = Settings(temperature=1, top_p=1)
    seen: Counter[int] = Counter()
    for first in range(0, ANSWERS, engine.batch_size):
        rows = range(first, min(ANSWERS, first + engine.batch_size))
        found = engine.extend([Request(row, [1, 2, 3], 0, sampled, row, steering=STEERING) for row in rows], 1)
        seen.update(token.id for (token,) in found)
    expected = (ANSWERS * steered_logits(engine, [1, 2, 3], STEERING).softmax(-1)).tolist()
    statistic = sum((seen[id] - count) ** 2 / count for id, count in enumerate(expected) if count >= 5)
    assert statistic < 11 + 4.5 * 22**0.5


@torch.inference_mode()
def test_a_direction_is_computed_once_for_all_strengths_and_only_the_newest_are_kept(engine: TorchEngine) -> None:
    steerer, read = Steerer(engine.model), list[int]()
    with engine.model.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1])):
        for strength in (1.0, 2.0, -3.5):
            index, added = steerer.shift(STEERING._replace(strength=strength))
            assert torch.allclose(added, strength * steerer.shift(STEERING._replace(strength=1.0))[1])
            assert index == 1
        steerer.shift(STEERING._replace(layer=None))  # the middle one, which is that layer
        assert read == [3, 2]
        others = [STEERING._replace(toward=(4, *divmod(number, 12))) for number in range(MAX_DIRECTIONS)]
        for other in others:
            steerer.shift(other)
        read.clear()
        steerer.shift(others[-1])
        assert read == []
        steerer.shift(STEERING)
        assert read == [3, 2]


@pytest.mark.parametrize(
    ("steering", "problem"),
    [
        (STEERING._replace(layer=4), "there is no layer 4 to steer"),
        (STEERING._replace(away=STEERING.toward), "no direction between"),
        (STEERING._replace(away=()), "cannot read one of the texts"),
    ],
)
def test_refuses_what_is_no_direction(engine: TorchEngine, steering: Steering, problem: str) -> None:
    request = Request(0, [1], 0, GREEDY, 0, steering=steering)
    with pytest.raises(GenerationError, match=problem):
        engine.check(request)
    with pytest.raises(GenerationError, match=problem):
        engine.extend([request], 1)


def test_a_model_without_layers_cannot_be_steered() -> None:
    engine = TorchEngine(Transformer(ModelConfig(12, context_length=16, n_layer=0, d_model=16)).eval())
    for layer in (1, None):
        with pytest.raises(GenerationError, match="this model has no layers to steer"):
            engine.check(Request(0, [1], 0, GREEDY, 0, steering=STEERING._replace(layer=layer)))


@pytest.mark.usefixtures("native")
def test_answers_beside_a_steered_one_are_the_same_to_the_last_bit(letters: Path) -> None:
    engine = open_engine(read_info(letters), Settings(engine="native", precision="int8"))
    plain = Settings(temperature=1.2, max_tokens=12)
    others = [replace(plain, steer="abc-xyz 20"), replace(plain, frequency_penalty=1.0)]
    crowd = [
        Request(slot, [1, 2, 3 + slot], 0, settings, 5, steering=STEERING._replace(layer=1) if settings.steer else None)
        for slot, settings in enumerate([plain, others[0], plain, others[1], plain])
    ]
    together = engine.extend(crowd, 12, top_logprobs=2)
    engine = open_engine(read_info(letters), Settings(engine="native", precision="int8"))
    for row in (0, 2, 4):
        assert together[row] == engine.extend([crowd[row]], 12, top_logprobs=2)[0]
    for row in (1, 3):
        ((*alone,),) = engine.extend([crowd[row]], 12, top_logprobs=2)
        assert [token.id for token in together[row]] == [token.id for token in alone]


@pytest.mark.parametrize("engine_name", ["torch", "native"])
@pytest.mark.parametrize("more", [{}, {"best_of": 2}, {"num_beams": 2}, {"token_healing": "on"}], ids=str)
def test_a_direction_that_is_none_ends_its_answer_alone(
    letters: Path, compiled: Path, engine_name: str, more: dict[str, object]
) -> None:
    settings = SettingStore()
    settings.update({"engine": engine_name}, Origin.FLAG)
    model = OpenModel(str(letters), settings)
    plain = Settings(max_tokens=9, **more)  # type: ignore[arg-type]

    def run(*steers: str | None) -> tuple[list[str], list[str]]:
        batch, problems = AnswerBatch(model.engine), list[str]()
        texts: dict[Answer, str] = {}
        for steer in steers:
            asked = replace(plain, steer=steer)
            texts[answer := model.make_answer("hello", settings=lambda asked=asked: asked, seed=3)] = ""
            batch.add(answer)

        def outlives(answer: Answer, error: TinychatError) -> bool:
            problems.append(f"{steers[[*texts].index(answer)]}: {error.problem}")
            return True

        for answer, record in drive(batch, outlives=outlives):
            texts[answer] += record.text if isinstance(record, Token) else ""
        return [*texts.values()], problems

    ((alone,), none) = run(None)
    texts, problems = run(None, "abc-xyz layer 99", None, "abc-abc", None)
    assert problems == [
        "abc-xyz layer 99: there is no layer 99 to steer", "abc-abc: there is no direction between these texts",
    ]  # fmt: skip
    assert texts == [alone, "", alone, "", alone]
    assert alone
    assert not none


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("happy-sad 2", ("happy", "sad", 2.0, None)),
        ("happy-sad", ("happy", "sad", 1.0, None)),
        ("happy-sad -1.5 layer 3", ("happy", "sad", -1.5, 3)),
        ("I am well-fed - I am hungry 4", ("I am well-fed", "I am hungry", 4.0, None)),
        ('" yes " - "no 2" 3', (" yes ", "no 2", 3.0, None)),
    ],
)
def test_reads_a_direction(text: str, spec: tuple[str, str, float, int | None]) -> None:
    assert SteeringSpec.parse(text) == spec
    assert Settings(steer=text).steer == text


@pytest.mark.parametrize("text", ["happy", "-sad 2", "happy- 3", "happy-sad 2 layer 0", "a-b 1001"])
def test_refuses_what_is_none(text: str) -> None:
    with pytest.raises(SettingError, match=r"steer takes TEXT-TEXT \[STRENGTH\] \[layer N\] or none, not"):
        Settings(steer=text)


def test_a_session_steers_and_says_which_engine_does(letters: Path, compiled: Path) -> None:
    settings = SettingStore()
    settings.update({"temperature": 0, "max_tokens": 8, "steer": "abc-xyz 20"}, Origin.FLAG)
    session = Session(settings)
    session.open_model(str(letters))
    records = list(session.answer("hello"))
    (notice,) = (record for record in records if isinstance(record, Notice))
    assert "torch engine answers" in notice.text
    steered = [record.id for record in records if isinstance(record, Token)]
    own = open_engine(read_info(letters), Settings(engine="torch"))
    vocabulary = session.model.vocabulary
    ids = session.model.make_answer("hello").ids
    steering = vocabulary.steering(settings.current)
    ((*tokens,),) = own.extend([Request(0, ids, 0, settings.current, 0, steering=steering)], 8)
    assert steered == [token.id for token in tokens]
    assert not any(isinstance(record, Notice) for record in session.answer("hello"))
    settings.set("steer", "off")
    assert [record.id for record in session.answer("hello") if isinstance(record, Token)] != steered
