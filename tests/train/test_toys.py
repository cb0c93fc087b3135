"""Toys whose every number can be counted, and the same recipes with real data: what they learn, and how it is met."""

import json
from pathlib import Path

import pytest
import torch
from training import QUICK, events, train, train_recipe

from tinychat.config.settings import SettingStore
from tinychat.evaluate.perplexity import score
from tinychat.events import Ended, Evaluated, Noticed, Planned, Sampled
from tinychat.formats.registry import export_model
from tinychat.generate.stream import stream
from tinychat.session.session import Session
from tinychat.store.models import find_model, read_card, read_info, read_weights
from tinychat.tokenizer.tokenizer import load_tokenizer
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import load_recipe


def ask(name: str, *prompts: str) -> list[tuple[str, str]]:
    """What the model says to each prompt, with its own settings, and why it ended."""
    session = Session()
    session.open_model(name)
    answers = []
    for prompt in prompts:
        *tokens, finished = stream(session.model.engine, session.model.make_answer(prompt))
        answers.append(("".join(token.text for token in tokens), finished.reason))
    return answers


@pytest.mark.slow
def test_statquest_has_37_parameters_and_answers_both_questions() -> None:
    run = train_recipe("statquest")
    assert run.name == "statquest"
    (planned,) = events(run, Planned)
    assert (planned.parameters, planned.steps) == (37, 60)
    info = read_info(find_model("statquest"))
    assert (info.mode, info.parameters, info.tokenizer_kind) == ("chat", 37, "whitespace")
    assert load_tokenizer(info.folder / "tokenizer.json").vocab_size == 5
    assert ask("statquest", "what is statquest", "statquest is what") == [("awesome", "end")] * 2
    (ended,) = events(run, Ended)
    assert ended.samples[:2] == ("awesome", "awesome")
    assert ended.accuracy == 1  # of the prompts too: one is told from the other by its first word, and all follows
    assert ended.split == "train"
    session = Session()
    session.open_model("statquest")
    for _ in range(3):  # more than the context holds
        *_, last = session.answer("what is statquest")
        assert (session.turns[-1].answer, last.reason) == ("awesome", "end")


@pytest.mark.slow
def test_translation_has_78_parameters_and_translates_both_phrases() -> None:
    run = train_recipe("translation")
    assert events(run, Planned)[0].parameters == 78
    info = read_info(find_model("translation"))
    assert (info.mode, info.parameters) == ("translation", 78)
    assert ask("translation", "let's go", "love you") == [("ir vamos", "end"), ("te amo", "end")]
    assert events(run, Ended)[0].prompts[:2] == ("let's go", "love you")
    assert "1 + 1 layer of 2" in read_card(info.folder)
    session = Session()
    session.open_model("translation")
    assert session.model.source_tokenizer.unknown("let's go home") == ["home"]
    export_model(info, "tinychat", Path("elsewhere"))
    assert ask("elsewhere", "love you") == [("te amo", "end")]


@pytest.mark.slow
def test_a_translator_that_was_stopped_goes_on_as_if_it_had_not_been() -> None:
    fields = {"epochs": 30, "sample_tokens": 0, "dropout": 0.1}
    whole, stopped = (
        train_recipe("translation", **fields),
        prepare_run(load_recipe("translation").merged(QUICK | fields), "t"),
    )
    stopped.send("stop")
    assert train(stopped) == 0
    assert events(stopped, Ended)[0].reason == "stopped"
    stopped.control_file.unlink()
    assert train(stopped) == 0
    one, other = (read_weights(read_info(run.model)) for run in (whole, stopped))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_bits_per_character_of_cut_documents_are_those_of_eval(tmp_path: Path) -> None:
    source = tmp_path / "long.jsonl"
    lines = [f"row {index}: {'ab' * (index % 40)} and {'xyz' * (index % 23)} end" for index in range(80)]
    source.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    run = train_recipe(
        "nanogpt-cpu", sources=[str(source)], tokenizer="char", packing=False, context_length=16, n_layer=1, n_head=1,
        d_model=16, steps=3, batch_size=4,
    )  # fmt: skip
    (ended,) = events(run, Ended)
    again = score(read_info(find_model(run.name)), [str(source)], settings=SettingStore().current)
    assert again.loss == pytest.approx(ended.loss, abs=1e-4)
    assert again.bits_per_character == pytest.approx(ended.bits_per_character, abs=1e-4)


@pytest.mark.slow
def test_translations_of_ones_own_are_learned_and_measured(tmp_path: Path) -> None:
    """Numbers in figures and in words: 81 pairs, of which 9 are kept."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    pairs = [f"{a}{b}\t{words[a - 1]} {words[b - 1]}" for a in range(1, 10) for b in range(1, 10)]
    source = tmp_path / "numbers.tsv"
    source.write_text("\n".join(pairs) + "\n")
    run = train_recipe(
        "translation", sources=[str(source)], tokenizer="char", d_model=32, n_head=2, norm="layernorm", epochs=60,
        feed_forward="relu", output_projection=True, learning_rate=0.01, batch_size=9, evaluate_every=120,
        schedule="linear", lr_decay_fraction=0.8,
    )  # fmt: skip
    assert run.name == "numbers"
    (ended,) = events(run, Ended)
    assert ended.split == "val"
    assert ended.loss < 0.2
    answers = [text for text, _ in ask("numbers", *(pair.split("\t")[0] for pair in pairs))]
    right = sum(pair.endswith(f"\t{answer}") for pair, answer in zip(pairs, answers, strict=True))
    assert right >= 60  # of 81
    info = read_info(find_model("numbers"))
    translated = score(info, [str(source)], "all", settings=SettingStore().current, exact=True)
    assert translated.exact_match == right / len(pairs)
    again = score(info, [str(source)], settings=SettingStore().current)
    assert again.loss == pytest.approx(ended.loss, abs=1e-4)
    # A character has 1.6 bits for each nat of a token: as many tokens and an end, divided by ln 2.
    assert again.bits_per_character == pytest.approx(ended.bits_per_character, abs=1.7e-4)
    assert (
        again.tokens
        == sum(len(pair.split("\t")[1]) + 1 for pair in pairs)
        - score(info, [str(source)], "train", settings=SettingStore().current).tokens
    )


@pytest.mark.slow
def test_documents_longer_than_the_context_are_cut_and_told(tmp_path: Path) -> None:
    source = tmp_path / "lines.jsonl"
    source.write_text("".join(json.dumps("ab" * (index + 1)) + "\n" for index in range(40)))
    fields = {
        "packing": False,
        "context_length": 16,
        "n_layer": 1,
        "d_model": 16,
        "steps": 30,
        "sample_prompt": ["", "ab"],
    }
    run = train_recipe("default", sources=[str(source)], sample_tokens=20, **fields)
    assert "33 of 40 documents are longer than the context, and are cut" in [e.text for e in events(run, Noticed)]
    assert [event.prompt for event in events(run, Sampled)][:2] == ["", "ab"]
    assert "4 of 40 documents measure the model" in events(run, Planned)[0].lines[0]
    assert "documents from all over it" in read_card(find_model("lines"))


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.long
def test_tinygpt_learns_news_a_document_a_row() -> None:
    fields = {"d_model": 32, "n_head": 4, "d_ff": 64, "n_layer": 1, "batch_size": 8, "steps": 20, "evaluate_every": 10}
    run = train_recipe("tinygpt", sources=["ag_news/test.csv"], sample_tokens=12, **fields)
    losses = [event.loss for event in events(run, Evaluated)]
    assert losses[-1] < losses[0] < 10.4  # 10.3 before anything is learned
    assert [event.prompt for event in events(run, Sampled)][:3] == ["", "france starts", "vw considers opening"]


@pytest.mark.mirror
@pytest.mark.slow
def test_tinygpt_stops_where_a_document_ends(tmp_path: Path) -> None:
    news = {
        "the ferry": "to the island runs again",
        "a baker": "wins the race",
        "rain is": "expected on friday in the north",
    }
    documents = [f"{begin} {rest}" for begin, rest in news.items()]
    (tmp_path / "news.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents * 4))
    train_recipe(
        "tinygpt", sources=["news.jsonl"], d_model=64, n_head=4, d_ff=64, n_layer=1, batch_size=12, dropout=0.0,
        learning_rate=0.01, epochs=60.0, evaluate_every=60, sample_tokens=4, sample_temperature=0.0,
    )  # fmt: skip
    assert ask("news", *news) == [(f" {rest}", "end") for rest in news.values()]


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.long
def test_translation_takes_real_pairs() -> None:
    run = train_recipe(
        "translation", sources=["eng_spa"], tokenizer="wordpiece", vocab_size=1000, d_model=32, n_head=2, steps=30,
        norm="layernorm", feed_forward="relu", output_projection=True, learning_rate=0.003, batch_size=64,
        evaluate_every=15,
    )  # fmt: skip
    losses = [event.loss for event in events(run, Evaluated)]
    assert losses[-1] < losses[0] < 6.9  # 6.9 before anything is learned
    assert "118,964 pairs measure the model" in events(run, Planned)[0].lines[0]
