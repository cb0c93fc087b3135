"""Prompts that end within a word: the answer finishes it, with the tokens that the whole word has."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tinychat.api.model import load
from tinychat.commands.inspect import bar_chart
from tinychat.config.option import Origin
from tinychat.config.settings import Settings, SettingStore
from tinychat.events import Notice, Record, Token
from tinychat.generate.healing import Healing
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.generate.vocabulary import Vocabulary
from tinychat.session.conversation import PackedTokens
from tinychat.session.inspection import probabilities_at, score_answer
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

TALES = str(paths.bundled_models() / "tales")
CUT, WHOLE = "Once upon a ti", "One day the old robot"


def make_words() -> Tokenizer:
    """Return a tokenizer of the 256 bytes and four pieces of words."""
    values = json.loads(Tokenizer(train_vocabulary("wordpiece", [""], 257)).to_json())
    values["model"]["vocab"] |= {piece: 256 + index for index, piece in enumerate(("Ġt", "Ġa", "Ġtime", "Ġtin"))}
    return Tokenizer.from_json(json.dumps(values))


WORDS = make_words()


def open_tales(engine: str = "native", **values: Any) -> OpenModel:
    settings = SettingStore()
    model = OpenModel(TALES, settings)
    settings.update(
        {"engine": engine, "threads": 1, "precision": "f32", "max_tokens": 8, "seed": 1, **values}, Origin.FLAG
    )
    return model


def tokens_of(model: OpenModel, *prompts: str, **more: Any) -> list[list[Token]]:
    """Return the tokens of an answer to each prompt, all in one batch."""
    batch = AnswerBatch(model.engine)
    answers = [model.make_answer(prompt, index=index, **more) for index, prompt in enumerate(prompts)]
    records: dict[Any, list[Record]] = {answer: [] for answer in answers}
    for answer in answers:
        batch.add(answer)
    for answer, record in drive(batch):
        records[answer].append(record)
    return [[one for one in found if isinstance(one, Token)] for found in records.values()]


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("engine", ["torch", "native"])
def test_a_cut_word_is_finished_with_the_tokens_of_the_whole_one(engine: str) -> None:
    model = open_tales(engine, temperature=0)
    prompts = [CUT, WHOLE, "There was a sad wiza", "Once upon a time "]
    together = tokens_of(model, *prompts)
    cut, whole, *_, spaced = together
    assert (text_of(cut)[:3], cut[0].replaced, text_of(whole)[0]) == ("me ", 2, " ")
    assert text_of(together[2]).startswith("rd ")
    assert not text_of(spaced).startswith(" ")  # the space that was typed is that of the next token
    for prompt, tokens in zip(prompts, together, strict=True):
        ids = model.prompt_encoder.encode(prompt)
        joined = [*ids[: len(ids) - (tokens[0].replaced or 0)], *(token.id for token in tokens)]
        assert joined == model.prompt_encoder.encode(prompt + text_of(tokens))
        assert [one.id for one in tokens_of(model, prompt)[0]] == [one.id for one in tokens]
    assert not text_of(tokens_of(open_tales(engine, temperature=0, token_healing="off"), CUT)[0]).startswith("me")


@pytest.mark.usefixtures("native")
def test_a_word_that_may_be_whole_stays() -> None:
    values = {"temperature": 1.5, "top_p": 1.0, "max_tokens": 1}
    starts = [{text_of(one)[:1].isalpha() for one in tokens_of(open_tales(token_healing=how, **values), *[WHOLE] * 16)}
              for how in ("auto", "off")]  # fmt: skip
    assert starts == [{False}, {False, True}]


def weigh(prompt: str, odds: dict[str, dict[str, float]]) -> tuple[Vocabulary, Healing]:
    """Return the ways of writing on if the next token has these odds after some ends of the prompt."""
    vocabulary = Vocabulary(WORDS, WORDS.vocab_size, frozenset())
    healing = Healing(vocabulary, WORDS.encode(prompt))
    while (ids := healing.ids) is not None:
        known = next(found for end, found in odds.items() if WORDS.decode(ids).endswith(end))
        logprobs = dict.fromkeys(range(WORDS.vocab_size), -math.inf)
        healing.advance(logprobs | {WORDS.encode(text)[0]: math.log(share) for text, share in known.items()})
    return vocabulary, healing


def test_ways_of_writing_on_are_drawn_as_likely_as_they_are_together() -> None:
    assert [WORDS.token_text(id) for id in WORDS.encode("a ti a time")] == ["a", " t", "i", " a", " time"]
    # " t" is the likelier token after "a", but few words that begin so go on with "i".
    odds = {"a": {" t": 0.9, " time": 0.06, " tin": 0.03}, " t": {"o": 0.9, "i": 0.1}, "i": {"n": 0.99, " a": 0.01}}
    vocabulary, healing = weigh("a ti", odds)
    drawn = [healing.choose(Settings(temperature=1, top_p=1), number / 1000) for number in range(1000)]
    counts = Counter(one.num_replaced for one in drawn if one is not None)
    assert counts[2] == pytest.approx(1000 * 0.09 / (0.09 + 0.0891), abs=1)
    assert counts.total() == counts[2] + counts[0] == 1000
    greedy = healing.choose(Settings(temperature=0), 0.999)
    assert greedy is not None
    assert {vocabulary.pieces[id] for id in greedy.allowed} >= {b" time", b" tin"}
    assert all(vocabulary.pieces[id].startswith(b" ti") for id in greedy.allowed)


def test_a_word_that_ends_rarely_but_often_enough_is_whole() -> None:
    def odds(ending: float) -> dict[str, dict[str, float]]:
        return {"a": {" t": 1.0}, " t": {"i": 1.0}, "i": {"n": 1 - ending, " a": ending}}

    for ending, is_whole in ((0.06, True), (0.04, False)):
        vocabulary, healing = weigh("a ti", odds(ending))
        start = healing.choose(Settings(temperature=0), 0.0)
        assert start is not None
        assert (b"n" in {vocabulary.pieces[id] for id in start.allowed}) is not is_whole


def test_prompts_of_other_models_stay_as_they_are(letters: Path, chatter: Path) -> None:
    def heals(folder: Path | str, prompt: str = CUT, **values: Any) -> bool:
        settings = Settings(**values)
        return OpenModel(str(folder), SettingStore()).make_answer(prompt, settings=lambda: settings).healing is not None

    assert heals(TALES)
    assert not any(heals(folder, token_healing="on") for folder in (letters, chatter))
    assert not any(heals(TALES, **one) for one in ({"begin": "me"}, {"regex": "me"}, {"choices": ("me",)}))
    assert not heals(TALES, token_healing="off")
    assert WORDS.is_cut_by_words
    assert not make_words().with_specials(["<s>"], 300).is_cut_by_words  # as in a tokenizer.json of transformers
    model = OpenModel(str(letters), SettingStore())
    assert list(model.notices(Settings(token_healing="on"))) == [
        Notice("letters heals no prompts: its tokens are characters")
    ]


@pytest.mark.usefixtures("native")
def test_what_is_shown_of_an_answer_is_what_was_drawn() -> None:
    session = Session()
    session.open_model(TALES)
    session.settings.update({"precision": "f32", "max_tokens": 6, "temperature": 0}, Origin.FLAG)
    list(session.answer(prompt := "Once there was a fr"))
    turn, model = session.turns[-1], session.model
    odds = probabilities_at(model, turn, 0)
    drawn = next(one for one in odds if one.id == turn.tokens[0].id)
    assert (drawn.logprob, drawn.probability) == (pytest.approx(turn.tokens[0].logprob), 1)
    chart = bar_chart(model, turn, 0, odds)
    assert all(bar.label.startswith("' fr") for bar in chart.bars)
    assert chart.notes == ("token healing: in place of 2 tokens of the prompt, one that begins with ' fr'",)
    list(session.answer("and then"))  # the ids of the turn before are computed again
    session.conversation.go_to(1)
    assert probabilities_at(model, turn, 0) == odds
    scored = score_answer(model, turn)
    entropy = -sum(math.exp(one.logprob) * one.logprob for one in odds)
    assert scored.tokens[0].entropy == pytest.approx(entropy, abs=1e-3)

    text = turn.answer
    list(session.continue_answer())
    assert turn.answer.startswith(text)
    assert model.ids_before(turn, len(turn.tokens)) == model.prompt_encoder.encode(prompt + turn.answer)
    longer = next(one.id for one in odds if model.tokenizer.token_text(one.id).startswith(" fr") and one is not drawn)
    list(session.branch(0, [longer]))  # another token that begins as the prompt ends
    assert session.turns[-1].tokens[0][:2] == (longer, model.tokenizer.token_text(longer).removeprefix(" fr"))
    list(session.branch(0, model.tokenizer.encode("ail mouse")))  # a text that follows the prompt
    assert session.turns[-1].answer.startswith("ail mouse")
    assert session.turns[-1].tokens[0].replaced is None


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("values", [
    {"best_of": 3, "temperature": 1}, {"num_beams": 3}, {"ban": ("time", "me")}, {"stop": (" ",)},
    {"no_repeat_ngram": 2, "boost": ("time 3",), "max_tokens": 1},
])  # fmt: skip
def test_all_ways_of_generating_begin_with_what_is_new(values: dict[str, Any]) -> None:
    tokens = tokens_of(open_tales(**values), CUT)[0]
    text = text_of(tokens)
    if "ban" in values:
        assert not text.startswith("me")
    else:
        assert text.startswith("me")
        assert tokens[0].replaced == 2
    assert text == text.lstrip(" ")


@pytest.mark.usefixtures("native")
def test_python_reports_it_and_can_look_inside() -> None:
    with load(TALES, precision="f32") as model:
        answer = model.generate(CUT, greedy=True, max_tokens=3)
        assert answer.text.startswith("me")
        assert answer.tokens[0].replaced == 2
        assert PackedTokens(answer.tokens)[0].replaced == 2
        why = model.why(answer, 0)
        assert (why.rank, why.ids[0], why.probabilities[0]) == (1, answer.tokens[0].id, 1)
        assert why.surprisal == pytest.approx(-answer.tokens[0].logprob / math.log(2), abs=1e-4)


@pytest.mark.usefixtures("native")
def test_candidates_for_one_answer_begin_alike() -> None:
    prompt, model = "A knight wan", open_tales(best_of=4, temperature=1, top_p=1.0)
    ids = model.prompt_encoder.encode(prompt)
    ways = []
    for seed in range(6):
        batch = AnswerBatch(model.engine)
        batch.add(model.make_answer(prompt, seed=seed))
        list(batch.step())
        ways.append({tuple(one.ids[: len(ids) - 1]) == tuple(ids[:-1]) for one in batch.answers})
    assert {len(found) for found in ways} == {1}
    assert set.union(*ways) == {True, False}  # " wan" is cut before "n" in "want", and before " wa" in "wanted"
