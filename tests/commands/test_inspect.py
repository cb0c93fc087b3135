"""Commands that look inside: probabilities, surprise, pieces, heads, layers, the computation."""

import math
import re
from itertools import chain
from pathlib import Path

import pytest
import torch
from scripted import Talk

from tinychat.commands import COMMANDS
from tinychat.commands.results import (
    BarChart,
    HeatMap,
    HeatMaps,
    Pieces,
    ShadedText,
    Steps,
    StreamAnswer,
    Table,
    TokenBrowser,
)
from tinychat.config.settings import Settings
from tinychat.errors import GenerationError, UsageError
from tinychat.evaluate.perplexity import score
from tinychat.events import ChoiceProbabilities
from tinychat.generate.computation import Computation
from tinychat.generate.engine import Request
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, save_model
from tinychat.textutil import visible
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary


def why(session: Session, line: str) -> BarChart:
    """What `/why` shows first."""
    browser = COMMANDS.dispatch(session, line)
    assert isinstance(browser, TokenBrowser)
    return browser.bars_at(browser.index)


def test_why_shows_the_odds_at_a_place(talk: Talk) -> None:
    talk.ask("hello")
    token = talk.session.turns[-1].tokens[1]
    result = why(talk.session, "/why 2")
    count, size = len(talk.session.turns[-1].tokens), talk.session.model.tokenizer.vocab_size
    title = f"token 2 of {count} · rank 1 of {size} · surprisal 1.0 bits · entropy 2.0 bits"
    assert result.title == title
    assert [bar.marked for bar in result.bars] == [True] + [False] * 7
    assert result.bars[0].label == repr(talk.session.model.tokenizer.token_text(token.id))
    assert result.bars[0].fraction == pytest.approx(0.5)
    assert result.headings == ("before sampling", "after temp 0.8 · top-p 0.95")
    assert result.context == ("you", " said", ": hello")
    assert why(talk.session, f"/why {count}") == why(talk.session, "/why -1")


@pytest.mark.parametrize("command", ["why", "lens"])
def test_without_a_number_the_most_surprising_token_is_shown(mixed: Path, command: str) -> None:
    session = said(mixed, "to be\n", 5)
    logprobs = [token.logprob for token in session.turns[-1].tokens]
    surprising = logprobs.index(min(logprobs))
    assert surprising != len(logprobs) - 1, "of no use: this is the last one, too"
    result = why(session, "/why") if command == "why" else COMMANDS.dispatch(session, "/lens")
    assert isinstance(result, BarChart | Table)
    assert result.title.startswith(f"token {surprising + 1} of 5")


def test_why_tells_what_the_settings_made_of_the_odds(spelled: Session) -> None:
    COMMANDS.dispatch(spelled, "/greedy")
    greedy = why(spelled, "/why 5")
    assert 0 not in [bar.after for bar in greedy.bars]  # the answer was not made greedily
    COMMANDS.dispatch(spelled, "/temperature 0.5")
    COMMANDS.dispatch(spelled, "/set top-k 3")
    COMMANDS.dispatch(spelled, "/top-p 1")
    list(spelled.answer("abc"))
    cut = why(spelled, "/why 5")
    squares = [bar.fraction**2 for bar in cut.bars[:3]]
    assert [bar.after for bar in cut.bars[:3]] == pytest.approx([square / sum(squares) for square in squares])
    assert {bar.after for bar in cut.bars[3:]} == {0}
    assert cut.headings[1] == "after temp 0.5 · top-k 3 · top-p 1"
    COMMANDS.dispatch(spelled, "/greedy")
    list(spelled.retry())
    greedy = why(spelled, "/why 5")
    assert [bar.after for bar in greedy.bars] == [1] + [0] * (len(greedy.bars) - 1)
    assert greedy.headings[1] == "after temp 0 · top-k 3 · top-p 1 · greedy"


def test_why_tells_what_controls_made_of_the_odds(spelled: Session) -> None:
    COMMANDS.dispatch(spelled, "/greedy")
    list(spelled.answer("abc"))
    banned = spelled.turns[-1].answer[3:5]
    COMMANDS.dispatch(spelled, f'/ban "{banned}"')
    COMMANDS.dispatch(spelled, "/presence-penalty 100")
    list(spelled.retry())
    turn = spelled.turns[-1]
    index, token = next((index, token) for index, token in enumerate(turn.tokens) if token.avoided)
    assert banned in token.avoided[0].text
    shown = why(spelled, f"/why {index + 1}")
    used = {repr(token.text) for token in turn.tokens[:index]}
    assert {bar.after for bar in shown.bars if bar.label in used} <= {0}
    assert [bar.after for bar in shown.bars if bar.marked] == [1]
    assert shown.headings[1] == "after temp 0 · top-p 0.95 · presence 100 · ban 1 · greedy"
    assert shown.notes == (f"banned, and drawn again: {token.avoided[0].text!r}",)


def test_why_tells_what_choices_and_steering_made_of_the_odds(spelled: Session) -> None:
    COMMANDS.dispatch(spelled, "/choices ab,ac,b")
    COMMANDS.dispatch(spelled, "/set temperature 1")
    COMMANDS.dispatch(spelled, "/top-p 1")
    (record,) = (one for one in spelled.answer("abc") if isinstance(one, ChoiceProbabilities))
    chances = {one.text: one.probability for one in record.choices}
    shown = why(spelled, "/why 1")
    first = repr(spelled.turns[-1].answer[0])
    expected = chances["b"] if first == "'b'" else chances["ab"] + chances["ac"]
    assert [bar.after for bar in shown.bars if bar.marked] == pytest.approx([expected])
    assert shown.headings[1] == "after temp 1 · top-p 1 · choices ab, ac, b"
    COMMANDS.dispatch(spelled, "/choices off")
    list(spelled.answer("abc"))
    plain = {bar.label: (bar.fraction, bar.after) for bar in why(spelled, "/why 1").bars}
    COMMANDS.dispatch(spelled, "/steer abc-xyz 9")
    list(spelled.retry())
    steered = {bar.label: (bar.fraction, bar.after) for bar in why(spelled, "/why 1").bars}
    assert all(plain[one][0] == pytest.approx(steered[one][0], abs=1e-4) for one in plain.keys() & steered)
    assert any(plain[one][1] != pytest.approx(steered[one][1], rel=0.1) for one in plain.keys() & steered)


def test_why_knows_what_each_token_of_an_answer_was_drawn_with(spelled: Session) -> None:
    for index, _ in enumerate(spelled.answer("abc")):
        if index == 5:
            COMMANDS.dispatch(spelled, "/temperature 0.3")
    drawn_with = [why(spelled, f"/why {number}").headings[1].split(" · ")[0] for number in (6, 7, 12)]
    assert drawn_with == ["after temp 0.8", *["after temp 0.3"] * 2]


def test_why_adds_the_token_that_was_chosen_against_the_odds(spelled: Session) -> None:
    for index, token in enumerate(spelled.turns[-1].tokens, 1):
        result = why(spelled, f"/why {index}")
        (chosen,) = (bar for bar in result.bars if bar.marked)
        assert chosen.label == repr(token.text)
        assert math.log(chosen.fraction) == pytest.approx(token.logprob, abs=1e-4)
        assert len(result.bars) in (8, 9)


def test_why_says_of_a_cut_token_that_it_was_put_there(spelled: Session) -> None:
    note = "the token chosen was put there, by a person, a setting or a search"
    assert not any(note in why(spelled, f"/why {number}").notes for number in range(1, 13))
    COMMANDS.dispatch(spelled, "/top-k 1")
    least = why(spelled, "/why 3").bars[-1].label
    result = COMMANDS.dispatch(spelled, f"/branch 3 {least}")
    assert isinstance(result, StreamAnswer)
    list(result.start(lambda: False))
    forced = why(spelled, "/why 3")
    assert [bar.after for bar in forced.bars if bar.marked] == [0]
    assert forced.notes == (note,)


def test_why_names_a_beam_search(spelled: Session) -> None:
    COMMANDS.dispatch(spelled, "/greedy")
    COMMANDS.dispatch(spelled, "/num-beams 4")
    list(spelled.answer("abc"))
    charts = [why(spelled, f"/why {number}") for number in range(1, 13)]
    assert {chart.headings[1] for chart in charts} == {"after temp 0 · top-p 0.95 · beams 4"}
    chosen = [next(bar.after for bar in chart.bars if bar.marked) for chart in charts]
    assert {0, 1} == set(chosen), "of no use: the search found what greedy decoding finds"
    assert [bool(chart.notes) for chart in charts] == [after == 0 for after in chosen]


@pytest.mark.parametrize("index", ["0", "99", "x", "1.5"])
def test_why_refuses_a_place_that_is_not_there(talk: Talk, index: str) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError, match="/why takes the number of a token, from 1 to"):
        talk.do(f"/why {index}")


def test_color_shows_the_surprise_of_each_token_of_the_last_answer(talk: Talk) -> None:
    talk.ask("hello")
    (turn,) = talk.session.turns
    result = talk.do("/color")
    assert isinstance(result, ShadedText)
    assert result.pieces == tuple((token.text, pytest.approx(1)) for token in turn.tokens)
    bits = len(turn.tokens) / len(turn.answer)
    assert result.notes == (f"perplexity 2.00 · {bits:.3f} bits/char · {len(turn.tokens)} tokens",)
    assert talk.do("/colour") == result


@torch.inference_mode()
def test_color_tells_how_open_it_was_what_would_come(spelled: Session) -> None:
    result = COMMANDS.dispatch(spelled, "/color")
    assert isinstance(result, ShadedText)
    (turn,) = spelled.turns
    ids = torch.tensor([spelled.model.ids_before(turn, len(turn.tokens))])
    logits = load_model(spelled.model.info)(ids[:, :-1])[0, -len(turn.tokens) :]
    expected = torch.distributions.Categorical(logits=logits).entropy() / math.log(2)
    assert [*chain(*result.entropies)] == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_character_of_several_tokens_has_the_surprise_of_all_of_them(talk: Talk) -> None:
    talk.ask("é")
    (turn,) = talk.session.turns
    assert [token.text for token in turn.tokens[-2:]] == ["", "é"]
    result = talk.do("/color")
    assert isinstance(result, ShadedText)
    assert result.pieces[-1] == ("é", pytest.approx(2))
    assert [len(entropies) for entropies in result.entropies] == [1] * (len(turn.tokens) - 2) + [2]


@pytest.mark.parametrize("text", ["ab", "hello there", "the quick brown fox jumps over the lazy dog " * 4])
def test_score_says_what_cross_entropy_and_eval_say(spelled: Session, tmp_path: Path, text: str) -> None:
    result = COMMANDS.dispatch(spelled, f"/score '{text}'")
    assert isinstance(result, ShadedText)
    assert "".join(piece for piece, _ in result.pieces) == text
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    expected = score(spelled.model.info, [str(tmp_path / "text.txt")], "all", settings=Settings())
    tokens = f"{expected.tokens} {'token' if expected.tokens == 1 else 'tokens'}"
    facts = f"perplexity {expected.perplexity:,.2f} · {expected.bits_per_character:.3f} bits/char · {tokens}"
    assert result.notes == (facts,)


def test_the_surprise_of_each_token_is_its_cross_entropy(spelled: Session) -> None:
    result = COMMANDS.dispatch(spelled, "/score hello there")
    assert isinstance(result, ShadedText)
    ids = torch.tensor(spelled.model.tokenizer.encode("hello there"))
    with torch.inference_mode():
        logits = load_model(spelled.model.info)(ids[None, :-1])[0]
        nats = torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none")
    assert result.pieces[0] == ("h", None)
    assert [bits for _, bits in result.pieces[1:]] == pytest.approx((nats / math.log(2)).tolist(), abs=1e-4)


def test_in_a_chat_a_text_is_scored_as_the_first_thing_said(talk: Talk) -> None:
    result = talk.do("/score hello there")
    assert isinstance(result, ShadedText)
    assert "".join(piece for piece, _ in result.pieces) == "hello there"
    assert None not in [bits for _, bits in result.pieces]


def test_score_says_what_it_cannot_predict(spelled: Session) -> None:
    with pytest.raises(UsageError, match="needs a text"):
        COMMANDS.dispatch(spelled, "/score")
    with pytest.raises(UsageError, match="nothing can be predicted in 'a'"):
        COMMANDS.dispatch(spelled, "/score a")
    result = COMMANDS.dispatch(spelled, "/score abÜ")
    assert isinstance(result, ShadedText)
    assert result.notes[1:] == ("unknown to this model, left out: 'Ü'",)


def test_tokens_shows_the_pieces_of_a_text(talk: Talk) -> None:
    result = talk.do("/tokens hello there")
    assert isinstance(result, Pieces)
    tokenizer = talk.session.model.tokenizer

    def pieces(text: str) -> tuple[str, ...]:
        return tuple(f"{tokenizer.token_text(id)!r} {id}" for id in tokenizer.encode(text))

    assert result.pieces == pieces("hello there")
    assert result.notes[0].startswith(f"{len(result.pieces)} tokens for 11 characters · ")
    quoted = talk.do('/tokens " the"')
    assert isinstance(quoted, Pieces)
    assert quoted.pieces == pieces(" the")
    parts = talk.do("/tokens é")
    assert isinstance(parts, Pieces)
    assert [piece.split()[0] for piece in parts.pieces] == [r"'\xc3'", r"'\xa9'"]


def test_tokens_notes_what_a_chat_model_reads_otherwise_in_a_prompt(talk: Talk) -> None:
    talk.session.open_model("smalltalk")
    result = talk.do("/tokens HELLO")
    assert isinstance(result, Pieces)
    assert re.fullmatch(r"as a prompt: '<\|user\|>' \d+  ' hello' \d+", result.notes[1])
    assert len(getattr(talk.do('/tokens " hello"'), "notes", ())) == 1
    talk.session.open_model("other")
    assert len(getattr(talk.do("/tokens HELLO"), "notes", ())) == 1


# --- what the heads of a model look at, what its layers would say ----------------------------------------------------


LETTERS = "abcdefghijklmnopqrstuvwxyz \n"


def save(folder: Path, mode: str = "completion", **architecture: int) -> Path:
    """A model of characters with two layers of two heads; what an encoder reads has other ids."""
    tokenizer = Tokenizer(train_vocabulary("char", [LETTERS], None, ["<|end|>"]))
    reader = Tokenizer(train_vocabulary("char", ["0123" + LETTERS], None, ["<|end|>"]))
    if architecture.get("n_encoder_layer"):
        architecture["source_vocab_size"] = reader.vocab_size
    config = ModelConfig(
        tokenizer.vocab_size, context_length=24, n_layer=2, n_head=2, d_model=16, initialization="torch", **architecture
    )
    torch.manual_seed(0)
    model = Transformer(config)
    if model.ngrams is not None:
        model.ngrams.count([tokenizer.encode_array("to be or not to be\n" * 20)])
    info = ModelInfo(folder.name, folder, mode, config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(info, model.state_dict(), tokenizer, reader if model.encoder else None)
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / "mixed", ngram_order=4)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / "translator", "translation", n_encoder_layer=1)


def said(model: Path, prompt: str, tokens: int) -> Session:
    """A session with a model that has said something, of just so many tokens."""
    session = Session()
    session.open_model(str(model))
    session.settings.set("max_tokens", tokens)
    for seed in range(9):
        session.settings.set("seed", seed)
        list(session.answer(prompt))
        if len(session.turns[-1].tokens) == tokens:
            return session
    raise AssertionError("it always ends early")


def test_all_heads_are_seen_at_once(mixed: Path) -> None:
    session = said(mixed, "to be\n", 6)
    result = COMMANDS.dispatch(session, "/attention")
    assert isinstance(result, HeatMaps)
    count = len(session.turns[-1].prompt_ids) + 6
    assert result.title == f"attention, by layer and head: {count} tokens"
    assert [len(row) for row in result.rows] == [2, 2]
    assert [one.caption[:4] for row in result.rows for one in row] == ["1 1 ", "1 2 ", "2 1 ", "2 2 "]
    for one in (one for row in result.rows for one in row):
        assert [len(cells) for cells in one.cells] == list(range(1, count + 1))
        assert [sum(cells) for cells in one.cells] == pytest.approx([1] * count, abs=1e-5)
    second = COMMANDS.dispatch(session, "/attention 2")
    assert isinstance(second, HeatMaps)
    assert second.title == f"layer 2, by head: {count} tokens"
    assert second.rows == result.rows[1:]


def test_one_head_has_the_tokens_at_its_sides(mixed: Path) -> None:
    session = said(mixed, "to be\n", 6)
    every, result = COMMANDS.dispatch(session, "/attention"), COMMANDS.dispatch(session, "/attention 2 1")
    assert isinstance(every, HeatMaps)
    assert isinstance(result, HeatMap)
    assert result.rows == result.columns
    assert result.rows[1:7] == ("t", "o", "␣", "b", "e", "⏎")
    assert result.marked == 7
    assert result.cells == every.rows[1][0].cells
    assert result.title.startswith("layer 2 head 1 · ")
    assert result.title.endswith(" bits")


def test_a_long_answer_is_seen_as_far_as_the_model_sees_it(mixed: Path) -> None:
    session = said(mixed, "to be\n", 60)
    result = COMMANDS.dispatch(session, "/attention")
    assert isinstance(result, HeatMaps)
    total, seen = len(session.turns[-1].prompt_ids) + 60, len(result.rows[0][0].cells)
    assert seen <= 24
    assert result.title == f"attention, by layer and head: the newest {seen} of {total} tokens"
    one = COMMANDS.dispatch(session, "/attention 1 1")
    assert isinstance(one, HeatMap)
    assert (len(one.rows), one.marked) == (seen, 0)


def test_a_translation_model_looks_at_what_it_translates(translator: Path) -> None:
    session = said(translator, "a bc", 5)
    one = COMMANDS.dispatch(session, "/attention 2 1 cross")
    assert isinstance(one, HeatMap)
    assert one.columns == ("a", "␣", "b", "c", "<|end|>")
    assert [len(row) for row in one.cells] == [5] * 6
    every = COMMANDS.dispatch(session, "/attention cross")
    assert isinstance(every, HeatMaps)
    assert every.title == "attention, by layer and head: 6 tokens look at the 5 of the prompt"
    assert every.rows[1][0].cells == one.cells
    both = COMMANDS.dispatch(session, "/attention")
    assert isinstance(both, HeatMaps)
    assert both.title == "attention, by layer and head: 6 tokens, → at the 5 of the prompt"
    assert [row[0].caption[:3] + "→" * ("→" in row[0].caption) for row in both.rows] == ["1 1", "1 1→", "2 1", "2 1→"]
    assert [row[0].cells for row in both.rows[1::2]] == [row[0].cells for row in every.rows]
    layer = COMMANDS.dispatch(session, "/attention 2")
    assert isinstance(layer, HeatMaps)
    assert layer.rows == both.rows[2:]
    own = COMMANDS.dispatch(session, "/attention 2 1")
    assert isinstance(own, HeatMap)
    assert [len(row) for row in own.cells] == list(range(1, 7))


def test_of_several_sentences_the_last_one_is_shown_and_named(translator: Path) -> None:
    session = Session()
    session.open_model(str(translator))
    session.settings.set("max_tokens", 12)
    (end,) = session.model.prompt_encoder.end_ids
    answered = 0
    for seed in range(99):
        session.settings.set("seed", seed)
        list(session.answer("a\nbc"))
        ids = [token.id for token in session.turns[-1].tokens]
        if end in ids and (answered := len(ids) - 1 - ids.index(end)):
            break
    assert answered, "it never translates the second line"
    maps = COMMANDS.dispatch(session, "/attention")
    assert isinstance(maps, HeatMaps)
    assert maps.title == f"attention, by layer and head: {answered + 1} tokens, → at the 3 of sentence 2"
    assert maps.notes[-1] == "only sentence 2, the last one translated: each is translated by itself"
    one = COMMANDS.dispatch(session, "/attention 2 1 cross")
    assert isinstance(one, HeatMap)
    assert one.title.startswith("layer 2 head 1 · sentence 2 · ")
    assert one.columns == ("b", "c", "<|end|>")
    assert (len(one.rows), one.marked) == (answered + 1, 1)


@pytest.mark.parametrize(
    ("typed", "problem", "remedy"),
    [
        ("3", "there is no layer 3", "the layers of this model are 1 to 2"),
        ("0", "there is no layer 0", "the layers of this model are 1 to 2"),
        ("2 3", "there is no head 3", "the heads of this model are 1 to 2"),
        ("one", "there is no layer one", "the layers of this model are 1 to 2"),
        ("1 2 3", "/attention takes a layer and a head, not '1 2 3'", "for example `/attention 2 1`"),
        ("1 1 cross", "mixed has no encoder to look at", "`cross` is for translation models"),
    ],
)
def test_what_is_not_there_cannot_be_looked_at(mixed: Path, typed: str, problem: str, remedy: str) -> None:
    session = Session()
    session.open_model(str(mixed))
    with pytest.raises(UsageError) as caught:
        COMMANDS.dispatch(session, f"/attention {typed}")
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


@pytest.mark.parametrize("line", ["/attention", "/attention 1", "/attention 1 1", "/lens"])
def test_there_must_be_an_answer(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError, match="there is no answer to look into yet"):
        talk.do(line)


def test_the_lens_shows_each_layer_and_the_shares_of_the_mixture(mixed: Path) -> None:
    session = said(mixed, "to be\n", 6)
    turn = session.turns[-1]
    result = COMMANDS.dispatch(session, "/lens 3")
    assert isinstance(result, Table)
    token = turn.tokens[2]
    assert result.title == f"token 3 of 6: {token.text!r}"
    assert result.columns == ("", "share", repr(token.text), "rank", "likeliest")
    assert [row[0] for row in result.rows] == ["embeddings", "layer 1", "layer 2", "counts", "matches", "mixture"]
    assert [bool(row[1]) for row in result.rows] == [False, False, True, True, True, False]
    probabilities = session.model.engine.probabilities(
        Request(0, session.model.ids_before(turn, 2), 2, session.settings.current, seed=0)
    )
    rank, chosen = next((rank, one) for rank, one in enumerate(probabilities, 1) if one.id == token.id)
    percent = 100 * math.exp(chosen.logprob)
    assert result.rows[-1][2:4] == (f"{percent:.{1 if percent < 9.95 else 0}f} %", str(rank))
    best = repr(session.model.tokenizer.token_text(probabilities[0].id))
    assert result.rows[-1][4].startswith(best)
    assert len(result.notes) == 2
    assert COMMANDS.dispatch(session, "/lens 6") == COMMANDS.dispatch(session, "/lens -1")


def test_the_lens_of_a_model_that_is_layers_alone(translator: Path) -> None:
    session = said(translator, "a bc", 5)
    result = COMMANDS.dispatch(session, "/lens 1")
    assert isinstance(result, Table)
    assert result.columns[1:] == (repr(session.turns[-1].tokens[0].text), "rank", "likeliest")
    assert [row[0] for row in result.rows] == ["embeddings", "layer 1", "layer 2"]
    assert len(result.notes) == 1


def test_the_lens_refuses_a_place_that_is_not_there(mixed: Path) -> None:
    with pytest.raises(UsageError, match="/lens takes the number of a token, from 1 to 6, not '7'"):
        COMMANDS.dispatch(said(mixed, "to be\n", 6), "/lens 7")


# --- the computation, by hand ---


def steps(session: Session, line: str) -> Computation:
    result = COMMANDS.dispatch(session, line)
    assert isinstance(result, Steps)
    return result.computation


def test_the_steps_of_each_token_end_in_the_one_that_was_drawn(spelled: Session) -> None:
    spelled.settings.set("temperature", 1.3)
    spelled.settings.set("top_p", 0.9)
    spelled.settings.set("presence_penalty", 1.5)
    list(spelled.answer("abd"))
    tokens = spelled.turns[-1].tokens
    assert len({token.id for token in tokens}) > 3
    for index, token in enumerate(tokens, 1):
        computation = steps(spelled, f"/steps {index}")
        assert computation.result == f"the next token: {visible(token.text)!r}"
        assert "random number" in computation.operations[-1].about
    surprising = min(range(len(tokens)), key=lambda index: tokens[index].logprob)
    assert steps(spelled, "/steps").result == steps(spelled, f"/steps {surprising + 1}").result
    assert steps(spelled, f"/steps {len(tokens) + 1}").result.startswith("the next token: ")
    with pytest.raises(UsageError) as caught:
        steps(spelled, f"/steps {len(tokens) + 2}")
    assert caught.value.remedy == f"{len(tokens) + 1} is what would come after the answer"
    texts = [spelled.turns[0].prompt, *(token.text for token in spelled.turns[0].tokens)]
    assert "".join(texts)[:3] == "abc"
    rows = steps(spelled, "/steps 1").operations[0].output.rows
    assert "".join(rows).endswith("abd")


def test_a_token_that_was_put_there_is_not_said_to_be_drawn(spelled: Session) -> None:
    list(spelled.branch(2, [spelled.model.tokenizer.encode("z")[0]]))
    computation = steps(spelled, "/steps 3")
    assert computation.result == "the next token: 'z'"
    assert "random number is not known" in computation.operations[-1].about
    assert "the likeliest token" in steps(spelled, "/steps 13").operations[-1].about


def test_steps_takes_a_number_or_train(spelled: Session) -> None:
    with pytest.raises(UsageError, match="/steps takes the number of a token, from 1 to 12, not '14'"):
        steps(spelled, "/steps 14")


@pytest.mark.parametrize("name", ["mixed", "translator"])
def test_a_training_step_of_a_model_that_is_no_toy_learns_the_last_answer(
    name: str, request: pytest.FixtureRequest
) -> None:
    session = said(request.getfixturevalue(name), "to be\n", 6)
    turn, info, encoder = session.turns[-1], session.model.info, session.model.prompt_encoder
    computation = steps(session, "/steps train")
    assert computation.title == f"a training step on the last answer of {info.parameters:,} weights"
    model, ids, source = load_model(info), session.model.ids_before(turn, 6), encoder.encode_source(turn.prompt)
    encoded = None if source is None else model.encode(torch.tensor([source]))
    logits = model(torch.tensor([ids[:-1]]), encoder_output=encoded)[0, -6:]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[-6:]))
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    before, after = (
        next(one for one in computation.operations if one.name == name) for name in ("loss", "the loss afterwards")
    )
    assert before.output[0, 0] == pytest.approx(loss.item(), rel=1e-5)
    assert after.output[0, 0] < before.output[0, 0]
    slopes = [one.output.values for one in computation.operations if one.name.startswith("gradient of")]
    for slope, (path, weight) in zip(slopes, model.named_parameters(), strict=True):
        own = torch.zeros_like(weight) if weight.grad is None else weight.grad
        is_table = isinstance(model.get_submodule(path.rpartition(".")[0]), torch.nn.Embedding)
        turned = own.view(1, -1) if own.dim() == 1 else own if is_table else own.t()
        assert torch.allclose(slope, turned, atol=1e-6), path
    for one in computation.operations:
        if one.derive is not None:
            row, column = one.first_cell
            assert one.derive(row, column).value == pytest.approx(one.output[row, column], rel=1e-3, abs=1e-5), one.name


def test_steps_needs_an_answer_and_a_model_to_look_into(talk: Talk) -> None:
    assert set(talk.completions("steps", "")) == {"train"}
    with pytest.raises(UsageError, match="there is no answer to look into yet"):
        talk.do("/steps")
    talk.ask("hello")
    with pytest.raises(GenerationError, match="it has no layers to look into"):
        talk.do("/steps")
