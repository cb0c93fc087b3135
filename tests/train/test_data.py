"""Texts that change while they are read; going on with a model: what is taken over, refused, and said of the text."""

import itertools
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers
from training import QUICK, events, train

from tinychat.corpus.sources import read_sources
from tinychat.corpus.types import Chunk
from tinychat.errors import ModelError, UsageError
from tinychat.events import Ended, Failed, Noticed, Planned
from tinychat.store.models import CONFIG, TRAINING, find_model, read_info, read_tokenizer, read_training, read_weights
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.train import data, loop
from tinychat.train.batches import Rows
from tinychat.train.data import ReadingClock
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import CONTINUING_RECIPE, choose_recipe, load_recipe
from tinychat.train.sizes import split_size

LINES = "the fox sees a bird in the old tree\n" * 60
FIELDS = QUICK | {"steps": 3, "batch_size": 4, "sample_tokens": 8}


@pytest.fixture(autouse=True)
def more() -> None:
    Path("more.txt").write_text(LINES, encoding="utf-8")


def make(model: Path | str, source: str = "more.txt", **fields: object) -> RunFolder:
    return prepare_run(choose_recipe(None, {**FIELDS, "sources": [source], "from": str(model), **fields}))


def notices(run: RunFolder) -> list[str]:
    return [event.text for event in events(run, Noticed)]


def test_a_model_goes_on_with_other_text(letters: Path) -> None:
    run = make(letters, learning_rate=1e-9, embedding_learning_rate=1e-9)
    assert train(run) == 0
    folder = find_model("more")
    old, new = read_info(letters), read_info(folder)
    assert {**new.architecture, "dropout": 0} == {**old.architecture, "dropout": 0}
    assert read_tokenizer(folder).fingerprint == read_tokenizer(letters).fingerprint
    before, after = read_weights(old), read_weights(new)
    assert all(after[name].allclose(before[name], atol=1e-6) for name in before)  # at next to no rate: they were loaded
    origin = read_training(folder)["from"]
    assert origin["name"] == "letters"
    assert len(origin["weights"]) == 64
    card = (folder / "README.md").read_text("utf-8")
    assert f"| begun from | letters, weights {origin['weights'][:16]}" in card
    assert "first letters, then trained on more" in new.description
    planned = events(run, Planned)[0]
    assert planned.lines[1].endswith("begun as letters")
    assert notices(run) == []


@pytest.mark.slow
def test_what_is_written_down_makes_the_same_model_again(letters: Path) -> None:
    run = make(letters)
    assert train(run) == 0
    again = prepare_run(load_recipe(run.recipe_file))
    assert train(again) == 0
    first, second = (read_weights(read_info(each.model)) for each in (run, again))
    assert all(first[name].equal(second[name]) for name in first)


def test_a_text_that_changes_is_read_again_and_all_is_of_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    run = prepare_run(load_recipe().merged({**FIELDS, "sources": ["more.txt"]}))
    changes = ["first", "second"]

    def find(*arguments: Any) -> Tokenizer:
        tokenizer = find_tokenizer(*arguments)
        if changes:
            Path("more.txt").write_text(LINES + changes.pop(0) * 100, encoding="utf-8")
        return tokenizer

    find_tokenizer = data._find_tokenizer
    monkeypatch.setattr(data, "_find_tokenizer", find)
    text = data.read_text(load_recipe(run.recipe_file), run)
    told = f"{Path('more.txt').absolute()} changed while it was read, and is read again"
    assert text.notices == (told, told)
    assert text.tokenizer.decode([*text.train.tolist(), *data._flat(text.val).tolist()]) == LINES + "second" * 100
    assert load_tokenizer(run.tokenizer_file).fingerprint == text.tokenizer.fingerprint


def test_a_text_that_never_stays_as_it_is_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = prepare_run(load_recipe().merged({**FIELDS, "sources": ["more.txt"]}))
    find_tokenizer = data._find_tokenizer

    def find(*arguments: Any) -> Tokenizer:
        tokenizer = find_tokenizer(*arguments)
        with Path("more.txt").open("a", encoding="utf-8") as file:
            file.write("more\n")
        return tokenizer

    monkeypatch.setattr(data, "_find_tokenizer", find)
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert failed.problem == f"{Path('more.txt').absolute()} changed while it was read"
    assert not run.tokenizer_file.exists()


def test_it_learns_more_slowly_than_a_new_model_and_by_a_recipe_of_its_own(letters: Path) -> None:
    run = make(letters)
    assert train(run) == 0
    kept = load_recipe(run.recipe_file)
    fields = {**FIELDS, "sources": ["more.txt"], "n_layer": 1, "d_model": 16, "ngram_order": kept.ngram_order}
    whole = prepare_run(load_recipe().merged(fields))
    assert train(whole) == 0
    assert kept.learning_rate is not None
    assert kept.learning_rate < 0.5 * (load_recipe(whole.recipe_file).learning_rate or 0)
    assert load_recipe(CONTINUING_RECIPE).norm is None
    assert choose_recipe("llama", {"from": "x"}).norm == load_recipe("llama").norm


@pytest.mark.slow
def test_it_goes_on_when_the_model_is_gone(letters: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(letters, tmp_path / "models" / "copy")
    whole, halved = make(copy, steps=6), make("copy", steps=6)
    assert train(whole) == 0
    shutil.rmtree(copy)
    halved.send("stop")
    assert train(halved) == 0
    halved.control_file.unlink()
    assert train(halved) == 0
    first, second = (read_weights(read_info(each.model)) for each in (whole, halved))
    assert all(first[name].equal(second[name]) for name in first)
    with pytest.raises(ModelError, match="there is no model 'copy'"):
        make("copy")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("d_model", 64, "--d-model 64 contradicts letters, which has 16"),
        ("norm", "rmsnorm", "--norm rmsnorm contradicts letters, which has layernorm"),
        ("d_ff", 64, "--d-ff 64 contradicts letters, which has –"),
        ("vocab_size", 500, "--vocab-size 500 contradicts letters, which has 28"),
        ("tokenizer", "wordpiece", "--tokenizer cannot be changed: letters brings its own"),
        ("context_length", 64, "--context-length 64 is more than letters was trained for, 32"),
    ],
)
def test_what_contradicts_the_model_is_refused(
    letters: Path, home: Path, field: str, value: object, problem: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make(letters, **{field: value})
    assert refused.value.problem == problem
    assert not (home / "runs").exists()


def test_what_the_weights_do_not_depend_on_may_be_given(letters: Path) -> None:
    run = make(letters, context_length=16, dropout=0.1, d_model=16)
    assert train(run) == 0
    architecture = read_info(find_model("more")).architecture
    assert (architecture["context_length"], architecture["dropout"]) == (16, 0.1)


@pytest.mark.parametrize(
    ("fields", "settings"),
    [({}, {"temperature": 0.25, "max_tokens": 300}), ({"sample_temperature": 0.5}, {"temperature": 0.5})],
)
def test_default_settings_stay_unless_the_recipe_sets_them(
    letters: Path, tmp_path: Path, fields: dict[str, object], settings: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = copy_with(letters, tmp_path, CONFIG, settings={"temperature": 0.25, "max_tokens": 300})
    temperatures = []
    monkeypatch.setattr(loop, "make_samples", lambda *arguments, **_: temperatures.append(arguments[5]) or ["a"])
    assert train(make(folder, **fields)) == 0
    assert read_info(find_model("more")).settings == {"max_tokens": 300, **settings}
    assert set(temperatures) == {settings["temperature"]}


def test_the_context_stays_when_a_text_is_too_short_to_fill_it(letters: Path) -> None:
    Path("more.txt").write_text(LINES[:200], encoding="utf-8")
    run = make(letters)
    assert train(run) == 0
    assert read_info(find_model("more")).architecture["context_length"] == 32
    assert notices(run)[0] == "the text is short: windows of 19 tokens, not 32"
    assert "steps of 76 tokens" in events(run, Planned)[0].lines[2]


DOCUMENTS = [" ".join(words) for words in itertools.permutations(["fox", "owl", "bat", "cat"])]


@pytest.mark.parametrize("packing", [True, False])
def test_documents_are_packed_as_in_the_training_of_the_model(letters: Path, tmp_path: Path, packing: bool) -> None:
    """Whatever the text; of one that it was trained on, all else would hold out another part, of which it knows."""
    Path("more.csv").write_text("text\n" + "\n".join(DOCUMENTS), encoding="utf-8")
    corpus = read_sources(["more.csv"], cache=Path("cache"))
    about = {"recipe": {"data": {"packing": packing}}}
    unknown = make(copy_with(letters, tmp_path / "unknown", TRAINING, **about), "more.csv", ngram_order=None)
    about |= {"data": {"fingerprint": corpus.fingerprint}}
    known = copy_with(letters, tmp_path / "known", TRAINING, **about)
    for run in (unknown, make(known, "more.csv"), make(known, "more.csv", packing=packing)):
        text = data.read_text(load_recipe(run.recipe_file), run)
        assert isinstance(text.parts[0], Rows) is not packing
    other = make(known, "more.csv", packing=not packing)
    with pytest.raises(UsageError, match=f"was trained on this text with --packing {str(packing).lower()}, which"):
        data.read_text(load_recipe(other.recipe_file), other)


def test_a_running_text_is_packed_after_a_model_of_documents(letters: Path, tmp_path: Path) -> None:
    run = make(copy_with(letters, tmp_path, TRAINING, recipe={"data": {"packing": False}}))
    assert not isinstance(data.read_text(load_recipe(run.recipe_file), run).parts[0], Rows)


def copy_with(model: Path, folder: Path, file: str, **fields: object) -> Path:
    """Copy a model, with other fields in one of its JSON files."""
    copy = shutil.copytree(model, folder / model.name)
    record = json.loads((copy / file).read_text(encoding="utf-8")) if (copy / file).exists() else {}
    (copy / file).write_text(json.dumps(record | fields), encoding="utf-8")
    return copy


def test_characters_that_the_tokenizer_lacks_are_left_out_and_told_in_one_notice(letters: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text(LINES + "Ünknown, Ü!\n", encoding="utf-8")
    run = make(letters)
    assert train(run) == 0
    assert notices(run) == ["4 of 2,172 characters are unknown to letters and are left out: Ü ! ,"]


def test_characters_beyond_a_small_vocabulary_are_told_too() -> None:
    fields = {**FIELDS, "sources": ["more.txt"], "vocab_size": 10}
    run = prepare_run(choose_recipe(None, fields))
    assert train(run) == 0
    counts = Counter(LINES)
    lost = sum(sorted(counts.values())[: len(counts) - 10])
    assert any(
        text.startswith(f"{lost:,} of {len(LINES):,} characters are unknown to this vocabulary and are left out: ")
        for text in notices(run)
    )


def test_what_small_vocabularies_lack_of_chats_and_of_each_side_of_pairs_is_told() -> None:
    Path("talk.jsonl").write_text('{"prompt": "aab", "completion": "aac"}\n' * 30, encoding="utf-8")
    chat = read("talk.jsonl", tokenizer="char", vocab_size=6)
    assert chat.notices[-1] == "30 of 180 characters are unknown to this vocabulary and are left out: c"
    pairs = read("talk.jsonl", mode="translation", tokenizer="char", vocab_size=3)
    assert [notice.rpartition(" ")[2] for notice in pairs.notices] == ["b", "c"]
    Path("words.jsonl").write_text('{"prompt": "a a b", "completion": "a c d"}\n' * 30, encoding="utf-8")
    words = read("words.jsonl", tokenizer="whitespace", vocab_size=5, mode="chat")
    assert words.notices[-1] == "60 of 180 words are unknown to this vocabulary and are left out: c d"


def test_words_that_a_vocabulary_of_other_tools_lacks_are_told_with_what_they_become() -> None:
    inner = tokenizers.Tokenizer(models.WordLevel({"UNKNOWN": 0, "the": 1, "fox": 2}, unk_token="UNKNOWN"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.save("words.json")
    Path("words.txt").write_text("the fox and the dog " * 30, encoding="utf-8")
    text = read("words.txt", tokenizer="words.json")
    assert text.notices[-1] == "60 of 150 words are unknown to this vocabulary and become UNKNOWN: and dog"
    assert text.tokenizer.unknown("the dog") == ["dog"]


def test_nothing_is_said_of_a_vocabulary_that_lacks_nothing() -> None:
    Path("talk.jsonl").write_text('{"prompt": "aab", "completion": "aac"}\n' * 30, encoding="utf-8")
    for kind, mode in (("char", "chat"), ("whitespace", "chat"), ("wordpiece", "chat"), ("char", "translation")):
        assert not any("unknown" in notice for notice in read("talk.jsonl", tokenizer=kind, mode=mode).notices)


@pytest.mark.parametrize(("fields", "said"), [({"role_tokens": False}, True), ({}, False)])
def test_fractions_of_the_loss_without_role_tokens_are_told(fields: dict[str, Any], said: bool) -> None:
    Path("talk.jsonl").write_text('{"prompt": "aab", "completion": "aac"}\n' * 30, encoding="utf-8")
    text = read("talk.jsonl", user_loss_fraction=0.25, reply_loss_fraction=0.5, **fields)
    for flag in ("--user-loss-fraction 0.25", "--reply-loss-fraction 0.5"):
        assert (f"{flag} has no effect without role tokens" in text.notices) == said


def test_the_tokens_that_begin_a_turn_and_its_reply_are_known_where_there_are_any() -> None:
    Path("talk.jsonl").write_text('{"prompt": "aab", "completion": "aac"}\n' * 30, encoding="utf-8")
    Path("plain.txt").write_text("aab aac " * 99, encoding="utf-8")
    talk, unmarked = read("talk.jsonl"), read("talk.jsonl", role_tokens=False)
    user, assistant = map(talk.tokenizer.inner.token_to_id, ("<|user|>", "<|assistant|>"))
    assert talk.facts.turn_tokens == (user, assistant)
    assert (unmarked.facts.turn_tokens, read("plain.txt").facts.turn_tokens) == (None, None)


def test_pairs_of_which_one_side_is_longer_than_the_context_are_counted() -> None:
    pairs = [("a" * 20, "b"), ("a", "b" * 20), ("a" * 8, "b" * 8)]
    lines = (json.dumps({"prompt": source, "completion": target}) for source, target in pairs)
    Path("pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    text = read("pairs.jsonl", mode="translation", tokenizer="char")
    assert [text.count_truncated(length) for length in (30, 12, 4)] == [0, 2, 3]


def test_a_text_of_which_nothing_is_known_is_one_error(letters: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("12345" * 500, encoding="utf-8")
    run = make(letters)
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert "no token for anything" in failed.problem


@pytest.mark.slow
def test_a_chat_model_goes_on_with_conversations_and_of_plain_text_it_is_warned(chatter: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"prompt": "how are you?", "completion": "fine."}\n' * 60)
    run = make(chatter, "talk.jsonl")
    assert train(run) == 0
    assert read_info(find_model("talk")).mode == "chat"
    plain = make(chatter)
    assert train(plain) == 0
    assert read_info(find_model("more")).mode == "completion"
    assert any("will forget to chat" in notice for notice in notices(plain))
    assert events(plain, Ended)


@pytest.mark.slow
def test_a_model_that_attends_to_turns_goes_on_with_any_text(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"prompt": "how are you?", "completion": "fine."}\n' * 60)
    fields = {**FIELDS, "sources": ["talk.jsonl"], "turn_attention": True}
    assert train(prepare_run(choose_recipe(None, fields))) == 0
    begun = find_model("talk")
    plain = make(begun)
    assert train(plain) == 0
    first, second = (read_info(folder).architecture for folder in (begun, find_model("more")))
    assert first["turn_attention"]
    for name in ("turn_attention", "turn_token", "reply_token"):
        assert second[name] == first[name]


def test_a_model_without_turns_takes_the_text_of_conversations_alone(letters: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"prompt": "how are you", "completion": "fine"}\n' * 60)
    assert train(make(letters, "talk.jsonl")) == 1
    run = make(letters, "talk.jsonl", mode="completion")
    assert train(run) == 0
    assert "letters knows no end of a document: the 60 documents run together" in notices(run)


# --- what is known of the validation split ---------------------------------------------------------------------------


RARE = "zyzzyva quixotic "


def read(source: str, **fields: object) -> data.TrainingText:
    run = prepare_run(load_recipe().merged({**FIELDS, "sources": [source], **fields}))
    return data.read_text(load_recipe(run.recipe_file), run)


def test_word_pieces_are_those_of_the_training_part_and_the_split_begins_behind_it() -> None:
    Path("halves.txt").write_text("the fox sees a bird. " * 900 + RARE * 120, encoding="utf-8")
    text = read("halves.txt", tokenizer="wordpiece", vocab_size=400)
    known = {text.tokenizer.token_text(id).strip() for id in range(text.tokenizer.vocab_size)}
    assert "fox" in known
    assert not {"quixotic", "zyzzyva"} & known
    characters = sum(text.tokenizer.count_characters(ids) for ids in (text.train, text.val))  # type: ignore[arg-type]
    assert characters == text.facts.characters
    assert text.tokenizer.count_characters(text.val) == pytest.approx(0.1 * characters, abs=20)  # type: ignore[arg-type]


def test_characters_are_those_of_the_whole_text() -> None:
    Path("ending.txt").write_text(LINES + "QUIXOTIC", encoding="utf-8")
    for kind in ("char", "word"):
        assert not read("ending.txt", tokenizer=kind).tokenizer.unknown("QUIXOTC")


def test_word_pieces_of_documents_and_pairs_are_those_of_the_training_rows() -> None:
    words = [f"w{'abcdefghij'[index % 10]}{'klmnopqrst'[index // 10 % 10]}x" for index in range(100)]
    Path("rows.csv").write_text("text\n" + "\n".join(f"{word} {word} {word}" for word in words), encoding="utf-8")
    text = read("rows.csv", tokenizer="wordpiece", vocab_size=2000, packing=False)
    assert isinstance(text.val, Rows)
    known = {text.tokenizer.token_text(id).strip() for id in range(text.tokenizer.vocab_size)}
    held_out = {word for row in text.val.documents() for word in text.tokenizer.decode(row.tolist()).split()}
    assert len(held_out) == 10
    assert not held_out & known
    assert set(words) - held_out <= known


def test_both_sides_of_translations_may_share_a_vocabulary() -> None:
    Path("pairs.tsv").write_text("".join(f"dog {name}\tperro {name}\n" for name in ("ana", "leo", "eva", "ada")))
    options: dict[str, Any] = {"tokenizer": "word", "mode": "translation", "validation_fraction": 0.25}
    shared, separate = (read("pairs.tsv", shared_vocab=shared, **options) for shared in (True, False))
    for text, knows in ((shared, True), (separate, False)):
        assert text.source_tokenizer is not None
        assert (
            "perro" in {text.source_tokenizer.token_text(id) for id in range(text.source_tokenizer.vocab_size)}
        ) is knows
    assert shared.source_tokenizer is not None
    assert shared.source_tokenizer.encode("dog ana") == shared.tokenizer.encode("dog ana")


def test_word_pieces_of_conversations_are_those_before_the_split() -> None:
    talks = [("hello there", "good day to you")] * 90 + [("zyzzyva", "quixotic")] * 12
    lines = [f'{{"prompt": "{one}", "completion": "{other}"}}' for one, other in talks]
    Path("talk.jsonl").write_text("\n".join(lines), encoding="utf-8")
    tokenizer = read("talk.jsonl", tokenizer="wordpiece", vocab_size=400, validation_fraction=0.2).tokenizer
    known = {tokenizer.token_text(id).strip() for id in range(tokenizer.vocab_size)}
    assert "hello" in known
    assert not {"zyzzyva", "quixotic"} & known


def test_a_model_brings_the_first_documents_of_its_validation_split_as_it_was_trained_on_them() -> None:
    Path("rows.csv").write_text("text\n" + "\n".join(f"one {'two ' * (index % 7)}three" for index in range(100)))
    text = read("rows.csv", tokenizer="wordpiece", vocab_size=300, packing=False)
    assert isinstance(text.val, Rows)
    documents = text.first_eval_ids(10_000)
    assert documents == [text.val.row(index).tolist() for index in range(len(text.val))]
    assert {ids[0] for ids in documents} == {text.tokenizer.special("end")}
    assert text.first_eval_ids(len(documents[0]) + 2) == [documents[0], documents[1][:2]]
    whole = read("rows.csv", tokenizer="wordpiece", vocab_size=300)
    assert whole.first_eval_ids(20) == [np.asarray(whole.val)[:20].tolist()]


def test_a_time_too_short_to_read_the_text_is_refused_as_soon_as_it_shows() -> None:
    now = [100.0]
    clock = ReadingClock(minutes=1, started=98.0, now=lambda: now[0])
    clock.check_size(10**9, "big")
    with pytest.raises(UsageError, match="--minutes 1 is too short for big: to read it takes about 1:42"):
        clock.check_size(60 * 10**9, "big")
    check = clock.watch("big", 1_000_000)
    now[0] += 10  # the other side of its pairs was read
    check(100)
    now[0] += 0.4
    check(101)  # too soon to tell
    now[0] += 0.6
    check(50_100)
    with pytest.raises(UsageError, match="about 1:52") as refused:
        check(10_100)
    assert refused.value.remedy == "give it --minutes 3.75 or more, or less text"
    chunks = clock.watched("big", [Chunk("a", False), Chunk("b", True)])
    assert next(chunks).text == "a"
    now[0] += 60
    with pytest.raises(UsageError, match="too short for big"):
        next(chunks)
    ReadingClock(None, 0.0, lambda: 1e9).watch("big", 10)(1)


def test_a_run_without_time_to_read_its_text_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MIN_READING_SECONDS", 0.0)
    run = prepare_run(load_recipe().merged({**FIELDS, "sources": ["more.txt"], "steps": None, "minutes": 1e-7}))
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert "too short for" in failed.problem


def test_the_parts_of_a_text_are_planned_with_as_they_are() -> None:
    """A long word has more characters than tokens: the last tenth of the characters is not that of the tokens."""
    Path("words.txt").write_text("internationalization " * 20 + " ".join("abcdefghijklmnopqrst"), encoding="utf-8")
    text = read("words.txt", tokenizer="word")
    (split,) = (split_size(source, 0.1) for source in text.facts.sources)
    assert (split.train_tokens, split.val_tokens) == (len(text.train), len(text.val))
    assert text.facts.mix == ()


def test_documents_of_one_token_are_left_out(letters: Path) -> None:
    lines = [json.dumps({"text": one}) for one in ("a", "the fox sees a bird", "日本語", "b")]
    Path("short.jsonl").write_text("\n".join(3 * lines), encoding="utf-8")
    run = make(letters, "short.jsonl", packing=False, ngram_order=None)
    text = data.read_text(load_recipe(run.recipe_file), run)
    assert isinstance(text.val, Rows)
    assert all(isinstance(part, Rows) and (part.lengths > 1).all() for part in (*text.parts, text.val))


def test_a_folder_that_is_called_like_a_kind_of_tokenizer_is_none() -> None:
    Path("char").mkdir()
    assert read("more.txt").tokenizer.kind == "char"
    assert read("more.txt", tokenizer="char").tokenizer.kind == "char"


def test_what_a_model_says_of_its_data_may_be_anything(letters: Path) -> None:
    corpus = read_sources(["more.txt"], cache=Path("cache"))
    assert not data.has_seen({"data": {"mix": 5}}, corpus)
