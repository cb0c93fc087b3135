"""Commands that look inside a model: what its heads look at, what its layers would say."""

import math
from pathlib import Path

import pytest
import torch
from scripted import Talk

from tinychat.commands.results import HeatMap, HeatMaps, Table
from tinychat.commands.table import dispatch
from tinychat.errors import UsageError
from tinychat.generate.engine import Request
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.session import Session
from tinychat.store.models import ModelInfo, save_model
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

LETTERS = "abcdefghijklmnopqrstuvwxyz \n"


def save(folder: Path, mode: str = "completion", **architecture: int) -> Path:
    """A model of characters with two layers of two heads; what an encoder reads has other ids."""
    tokenizer = Tokenizer(train_vocabulary("char", [LETTERS], None, ["<|end|>"]))
    reader = Tokenizer(train_vocabulary("char", ["0123" + LETTERS], None, ["<|end|>"]))
    if architecture.get("n_encoder_layer"):
        architecture["source_vocab_size"] = reader.vocab_size
    config = ModelConfig(
        tokenizer.vocab_size, context=24, n_layer=2, n_head=2, d_model=16, initialization="torch", **architecture
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
    result = dispatch(session, "/attention")
    assert isinstance(result, HeatMaps)
    count = len(session.turns[-1].prompt_ids) + 6
    assert result.title == f"attention, by layer and head: {count} tokens"
    assert [len(row) for row in result.rows] == [2, 2]
    assert [one.caption[:4] for row in result.rows for one in row] == ["1 1 ", "1 2 ", "2 1 ", "2 2 "]
    for one in (one for row in result.rows for one in row):
        assert [len(cells) for cells in one.cells] == list(range(1, count + 1))
        assert [sum(cells) for cells in one.cells] == pytest.approx([1] * count, abs=1e-5)
    second = dispatch(session, "/attention 2")
    assert isinstance(second, HeatMaps)
    assert second.title == f"layer 2, by head: {count} tokens"
    assert second.rows == result.rows[1:]


def test_one_head_has_the_tokens_at_its_sides(mixed: Path) -> None:
    session = said(mixed, "to be\n", 6)
    every, result = dispatch(session, "/attention"), dispatch(session, "/attention 2 1")
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
    result = dispatch(session, "/attention")
    assert isinstance(result, HeatMaps)
    total, seen = len(session.turns[-1].prompt_ids) + 60, len(result.rows[0][0].cells)
    assert seen <= 24
    assert result.title == f"attention, by layer and head: the newest {seen} of {total} tokens"
    one = dispatch(session, "/attention 1 1")
    assert isinstance(one, HeatMap)
    assert (len(one.rows), one.marked) == (seen, 0)


def test_a_translation_model_looks_at_what_it_translates(translator: Path) -> None:
    session = said(translator, "a bc", 5)
    one = dispatch(session, "/attention 2 1 cross")
    assert isinstance(one, HeatMap)
    assert one.columns == ("a", "␣", "b", "c", "<|end|>")
    assert [len(row) for row in one.cells] == [5] * 6
    every = dispatch(session, "/attention cross")
    assert isinstance(every, HeatMaps)
    assert every.title == "attention, by layer and head: 6 tokens look at the 5 of the prompt"
    assert every.rows[1][0].cells == one.cells
    own = dispatch(session, "/attention 2 1")
    assert isinstance(own, HeatMap)
    assert [len(row) for row in own.cells] == list(range(1, 7))


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
        dispatch(session, f"/attention {typed}")
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


@pytest.mark.parametrize("line", ["/attention", "/attention 1", "/attention 1 1", "/lens"])
def test_there_must_be_an_answer(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError, match="there is no answer to look into yet"):
        talk.do(line)


def test_the_lens_shows_each_layer_and_the_shares_of_the_mixture(mixed: Path) -> None:
    session = said(mixed, "to be\n", 6)
    turn = session.turns[-1]
    result = dispatch(session, "/lens 3")
    assert isinstance(result, Table)
    token = turn.tokens[2]
    assert result.title == f"token 3 of 6: {token.text!r}"
    assert result.columns == ("", "share", repr(token.text), "rank", "likeliest")
    assert [row[0] for row in result.rows] == ["embeddings", "layer 1", "layer 2", "counts", "matches", "mixture"]
    assert [bool(row[1]) for row in result.rows] == [False, False, True, True, True, False]
    odds = session.engine.odds(Request(0, session.ids_before(turn, 2), 2, session.settings.current, seed=0))
    rank, chosen = next((rank, one) for rank, one in enumerate(odds, 1) if one.id == token.id)
    percent = 100 * math.exp(chosen.logprob)
    assert result.rows[-1][2:4] == (f"{percent:.{1 if percent < 9.95 else 0}f} %", str(rank))
    best = repr(session.tokenizer.token_text(odds[0].id))
    assert result.rows[-1][4].startswith(best)
    assert len(result.notes) == 2
    assert dispatch(session, "/lens") == dispatch(session, "/lens 6") == dispatch(session, "/lens -1")


def test_the_lens_of_a_model_that_is_layers_alone(translator: Path) -> None:
    session = said(translator, "a bc", 5)
    result = dispatch(session, "/lens 1")
    assert isinstance(result, Table)
    assert result.columns[1:] == (repr(session.turns[-1].tokens[0].text), "rank", "likeliest")
    assert [row[0] for row in result.rows] == ["embeddings", "layer 1", "layer 2"]
    assert len(result.notes) == 1


def test_the_lens_refuses_a_place_that_is_not_there(mixed: Path) -> None:
    with pytest.raises(UsageError, match="/lens takes the number of a token, from 1 to 6, not '7'"):
        dispatch(said(mixed, "to be\n", 6), "/lens 7")
