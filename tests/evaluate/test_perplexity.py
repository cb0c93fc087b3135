"""`tinychat eval` on a text: what is read of it, whatever the model was trained on."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.config.settings import Settings
from tinychat.errors import ModelError, SourceError
from tinychat.evaluate.perplexity import score
from tinychat.store.models import open_info


def test_a_model_of_documents_reads_a_running_text(letters: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(letters, tmp_path / "rows"))
    (folder / "training.json").write_text(json.dumps({"recipe": {"data": {"packing": False}}}), encoding="utf-8")
    text, documents = tmp_path / "text.txt", tmp_path / "documents.jsonl"
    text.write_text("the quick brown fox jumps over the lazy dog and " * 3, encoding="utf-8")
    documents.write_text("".join(json.dumps({"text": one}) + "\n" for one in ("abc def", "ghi jkl")), encoding="utf-8")
    scores = [score(open_info(one), [str(text)], "all", settings=Settings()) for one in (letters, folder)]
    assert scores[0] == replace(scores[1], notices=())
    assert score(open_info(folder), [str(documents)], "all", settings=Settings()).tokens == 12
    with pytest.raises(SourceError, match="text is one running text, and other sources have documents"):
        score(open_info(folder), [str(documents), f"{text}:2"], "all", settings=Settings())


def test_a_running_text_begins_as_a_document_for_a_model_of_documents(chatter: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(chatter, tmp_path / "rows"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"name": "rows", "mode": "completion", "template": None}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "training.json").write_text(json.dumps({"recipe": {"data": {"packing": False}}}), encoding="utf-8")
    story, document, novel = tmp_path / "story.txt", tmp_path / "document.jsonl", tmp_path / "novel.txt"
    story.write_text("hello there", encoding="utf-8")
    document.write_text('{"text": "hello there"}\n', encoding="utf-8")
    novel.write_text("hello there, how are you? fine, thanks! " * 20, encoding="utf-8")
    info = open_info(folder)
    text, rows, long = (score(info, [str(one)], "all", settings=Settings()) for one in (story, document, novel))
    assert text == rows
    assert text.characters == len("hello there")
    tail = score(info, [str(novel)], "val", settings=Settings())
    assert tail.tokens > 1
    assert long.notices == (
        "rows was trained on documents: of novel, one running text, it sees only the first 32 tokens from a beginning",
    )


def test_characters_are_those_of_the_predicted_tokens(letters: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(letters, tmp_path / "rows"))
    (folder / "training.json").write_text(json.dumps({"recipe": {"data": {"packing": False}}}), encoding="utf-8")
    documents = tmp_path / "documents.jsonl"
    documents.write_text(2 * (json.dumps({"text": "abc " * 200}) + "\n"), encoding="utf-8")
    info = open_info(folder)
    result = score(info, [str(documents)], "all", settings=Settings())
    assert result.tokens == result.characters == 2 * info.architecture["context_length"]
    assert result.bits_per_character == pytest.approx(result.loss / math.log(2))


def test_documents_of_one_token_or_none_are_left_out(letters: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(letters, tmp_path / "rows"))
    (folder / "training.json").write_text(json.dumps({"recipe": {"data": {"packing": False}}}), encoding="utf-8")
    short, mixed = tmp_path / "short.jsonl", tmp_path / "mixed.jsonl"
    short.write_text(300 * '{"text": "a"}\n', encoding="utf-8")
    mixed.write_text(300 * '{"text": "a"}\n' + '{"text": "abc def"}\n', encoding="utf-8")
    info = open_info(folder)
    assert score(info, [str(mixed)], "all", settings=Settings()).tokens == 6
    with pytest.raises(SourceError, match="nothing can be predicted in the all part of short"):
        score(info, [str(short)], "all", settings=Settings())


def test_a_model_without_an_architecture_is_refused_in_words(letters: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(letters, tmp_path / "bare"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"architecture": {}}), encoding="utf-8")
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox", encoding="utf-8")
    with pytest.raises(ModelError, match="the architecture cannot be read: it lacks vocab_size"):
        score(open_info(folder), [str(text)], "all", settings=Settings())


def test_characters_that_a_model_lacks_are_told(letters: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox \u03b1\u03b2\u03b1 " * 20, encoding="utf-8")
    notices = score(open_info(letters), [str(text)], "all", settings=Settings()).notices
    assert notices == ("60 of 480 characters are unknown to letters and are left out: \u03b1 \u03b2",)
