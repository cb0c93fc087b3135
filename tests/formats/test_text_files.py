"""Tokenizers, end tokens and settings in folders of other tools, compared with transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import decoders

from tests.chat_templates import CHATML
from tests.foreign_tokenizers import MAKERS, save
from tests.texts import make_lines
from tinychat.errors import ModelError
from tinychat.formats.text_files import TextFiles, read_text_files

transformers = pytest.importorskip("transformers")

SIZE = 2_000
"""Number of tokens that a model of these tests has room for."""


def read(folder: Path, eos_token_id: object = None) -> TextFiles:
    return read_text_files(folder, SIZE, eos_token_id)


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", MAKERS)
def test_ids_and_texts_are_those_of_transformers(kind: str, count: int, tmp_path: Path) -> None:
    folder = save(kind, tmp_path)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), read(folder).tokenizer
    inner = theirs.backend_tokenizer
    if kind == "bert":
        inner.decoder = decoders.WordPiece(cleanup=False)  # clean-up rewrites text
    assert ours.surroundings is not None
    before, after = ours.surroundings
    for line in make_lines(count, seed=7):
        ids = ours.encode(line)
        assert [*before, *ids, *after] == theirs(line)["input_ids"]
        text, stream = inner.decode(ids), ours.stream()
        assert ours.decode(ids) == text
        assert "".join(map(stream.push, ids)) + stream.flush() == text
        if kind in ("gpt2", "llama3", "llama2", "gemma"):  # the others normalize text
            assert text == line
        rest = ours.stream(begins_text=False)
        assert "".join(map(rest.push, ids)) + rest.flush() == ours.decode(ids, begins_text=False)


def test_a_folder_without_a_limit_is_read(tmp_path: Path) -> None:
    inner = transformers.AutoTokenizer.from_pretrained(save("gpt2", tmp_path)).backend_tokenizer
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>").save_pretrained(tmp_path)
    assert f'"model_max_length": {int(1e30)}' in (tmp_path / "tokenizer_config.json").read_text()
    assert read(tmp_path).tokenizer.token_id("</s>") is not None


@pytest.mark.parametrize("kind", ["gpt2", "llama2"])
def test_a_part_of_a_character_is_held_back(kind: str, tmp_path: Path) -> None:
    tokenizer = read(save(kind, tmp_path)).tokenizer
    stream, ids = tokenizer.stream(), tokenizer.encode("a𐍈b")
    texts = [stream.push(id) for id in ids]
    assert len(ids) > 4
    assert "".join(texts) == "a𐍈b"
    assert not any("\ufffd" in text for text in texts)
    assert texts.count("") >= 3


@pytest.mark.parametrize("kind", ["llama2", "mistral", "unigram"])
def test_the_space_before_the_first_word_is_kept_where_a_text_goes_on(kind: str, tmp_path: Path) -> None:
    tokenizer = read(save(kind, tmp_path)).tokenizer
    ids = tokenizer.encode("the cat")
    assert (tokenizer.decode(ids), tokenizer.decode(ids, begins_text=False)) == ("the cat", " the cat")
    stream = tokenizer.stream(begins_text=False)
    assert "".join(map(stream.push, ids)) == " the cat"


def test_names_of_special_tokens_are_plain_text_unless_a_template_wrote_them(tmp_path: Path) -> None:
    folder = save("qwen", tmp_path)
    theirs, tokenizer = transformers.AutoTokenizer.from_pretrained(folder), read(folder).tokenizer
    text = "a<|im_end|>b <tool_call>"
    assert tokenizer.encode_with_specials(text) == theirs.encode(text)
    assert tokenizer.encode(text) == theirs.encode(text, split_special_tokens=True)


@pytest.mark.parametrize("older", [False, True])
def test_tokens_that_only_the_settings_name_are_special(tmp_path: Path, older: bool) -> None:
    folder = save("gpt2", tmp_path, **({} if older else {"eos_token": "the", "extra_special_tokens": ["<extra>"]}))
    if older:
        names = {"eos_token": {"content": "the"}, "additional_special_tokens": ["<extra>"]}
        (folder / "special_tokens_map.json").write_text(json.dumps(names))
    theirs, tokenizer = transformers.AutoTokenizer.from_pretrained(folder), read(folder).tokenizer
    assert (tokenizer.token_id("the"), tokenizer.token_id("<extra>")) == (theirs.eos_token_id, 700)
    assert read_text_files(folder, 700).tokenizer.vocab_size == 700  # the model has no room for it


def test_end_tokens_and_settings_are_those_of_the_generation_config(tmp_path: Path) -> None:
    folder = save("qwen", tmp_path)
    assert read(folder, eos_token_id=0).end_ids == (0,)
    assert read(folder).end_ids == ()
    values = {"eos_token_id": [2, 0], "do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 7, "typical_p": 1}
    (folder / "generation_config.json").write_text(json.dumps(values))
    files = read(folder, eos_token_id=5)
    assert (files.end_ids, files.settings) == ((0, 2), {"temperature": 0.6, "top_k": 20})
    (folder / "generation_config.json").write_text('{"eos_token_id": 1, "temperature": 0.6}')
    files = read(save("qwen", folder, chat_template=CHATML))
    assert (files.end_ids, files.settings) == ((1, 2), {})  # that of the tokenizer ends the turns of a chat, too


@pytest.mark.parametrize("wrong", [5, "x", None, True, [5], {"x": 5}, {"1" * 5000: {}}, [{"name": []}], {"content": 5}])
def test_wrong_fields_are_passed_over(wrong: object, tmp_path: Path) -> None:
    folder = save("gpt2", tmp_path)
    for name in ("tokenizer_config.json", "generation_config.json", "special_tokens_map.json"):
        for key in ("added_tokens_decoder", "extra_special_tokens", "eos_token", "eos_token_id", "temperature"):
            (folder / name).write_text(json.dumps({key: wrong, "do_sample": True}))
            files = read(folder, wrong)
            assert all(0 <= id < SIZE for id in files.end_ids)
        (folder / name).unlink()


def test_the_chat_template_is_found_in_every_place(tmp_path: Path) -> None:
    def found(**settings: Any) -> str:
        template = read(save("qwen", tmp_path, **settings)).template
        return template.source if template else ""

    assert found() == ""
    assert found(chat_template="a") == "a"
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    assert found(chat_template=named) == "d"
    (tmp_path / "chat_template.jinja").write_text("f")
    assert found(chat_template="a") == "f"
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="300,000 characters"):
        found(chat_template="a" * 300_000)
    with pytest.raises(ModelError, match="no text"):
        found(chat_template=5)
