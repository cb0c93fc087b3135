"""Sources with weights, and mixes of them."""

import io
from pathlib import Path

import pytest

from tinychat.corpus.sources import read_sources, split_weight, with_weight
from tinychat.errors import UsageError


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a" * 30)
    (tmp_path / "b.txt").write_text("b" * 10)


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("a.txt:2", ("a.txt", 2)),
        ("a.txt:.5", ("a.txt", 0.5)),
        ("notes/*.md:1e-3", ("notes/*.md", 0.001)),
        ("tinyshakespeare:3", ("tinyshakespeare", 3)),
        ("-:2", ("-", 2)),
        ("a:1:2", ("a:1", 2)),
        ("a.txt", ("a.txt", None)),
        ("a.txt:x", ("a.txt:x", None)),
        (":2", (":2", None)),
    ],
)
def test_a_number_after_a_colon_is_a_weight(source: str, parts: tuple[str, float | None]) -> None:
    assert split_weight(source) == parts
    assert split_weight(with_weight(*parts)) == parts


def test_an_existing_path_is_never_split(tmp_path: Path) -> None:
    (tmp_path / "draft:2").write_text("text")
    for source in ("draft:2", str(tmp_path / "draft:2"), "dra*:2"):
        assert split_weight(source) == (source, None)
    assert split_weight("draft:2:3") == ("draft:2", 3)


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "1e999"])
def test_a_weight_must_be_positive_and_finite(weight: str) -> None:
    with pytest.raises(UsageError, match=rf"the weight of a\.txt is {weight}"):
        split_weight(f"a.txt:{weight}")


def test_sources_with_weights_are_a_mix(tmp_path: Path) -> None:
    mix = read_sources(["a.txt:3", "-", "*.txt:2"], cache=tmp_path, stdin=io.BytesIO(b"cc"))
    assert [round(source.fraction, 6) for source in mix.sources] == [0.5, 0.166667, 0.333333]
    assert [source.corpus.characters for source in mix.sources] == [30, 2, 40]
    assert (mix.characters, mix.documents_count, mix.single) == (72, 4, False)
    assert "".join(mix.documents()) == "a" * 30 + "cc" + "a" * 30 + "b" * 10
    assert mix.name.startswith("a (50 %), stdin (17 %) and ")
    assert mix.fingerprint != read_sources(["a.txt:3", "b.txt"], cache=tmp_path).fingerprint


def test_without_weights_or_with_one_source_there_is_no_mix(tmp_path: Path) -> None:
    for specs in (["a.txt", "b.txt"], ["a.txt:7"]):
        corpus = read_sources(specs, cache=tmp_path)
        (source,) = corpus.sources
        assert (source.corpus, source.fraction) == (corpus, 1)
    assert read_sources(["a.txt:7"], cache=tmp_path).fingerprint == read_sources(["a.txt"], cache=tmp_path).fingerprint


def test_the_first_text_of_a_mix_determines_its_mode(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"prompt": "how?", "completion": "so."}\n')
    assert read_sources(["a.txt:1", "talk.jsonl:1"], cache=tmp_path).mode == "completion"
    (tmp_path / "talk.tsv").write_text("why?\tso.\n")
    chat = read_sources(["talk.jsonl:1", "talk.tsv:1"], cache=tmp_path)
    assert chat.mode == "chat"
    assert [len(conversation.messages) for conversation in chat.conversations()] == [2, 2]
