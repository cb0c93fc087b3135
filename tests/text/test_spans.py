"""All spans that were copied from a text, against a search by hand."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.text import copying, spans
from tinychat.text.corpus import Passage
from tinychat.text.sources import read_sources
from tinychat.text.spans import find_copies

TEXTS = st.lists(st.tuples(st.text("ab\n", max_size=30), st.booleans()), max_size=6)


def passages(texts: list[tuple[str, bool]]) -> Iterator[Passage]:
    """Pieces of a file, each with whether it ends a document."""
    number, before = 1, 0
    for text, ends in texts:
        yield Passage(text, "file", "line", number, before, ends)
        number, before = number + text.count("\n"), before + len(text)


def brute_force(said: str, texts: list[tuple[str, bool]], least: int) -> list[tuple[int, str, int, int]]:
    """Start, text, line and place of each: the longest span, then the longest of what it leaves."""
    whole = "".join(text + "\0" * ends for text, ends in texts)
    free, found = [True] * len(said), []
    while True:
        all_spans = [
            (start, end)
            for start in range(len(said))
            for end in range(start + least, len(said) + 1)
            if all(free[start:end]) and said[start:end] in whole
        ]
        if not all_spans:
            return found
        start, end = min(all_spans, key=lambda span: (span[0] - span[1], span[0]))
        longest = max(stop for stop in range(end, len(said) + 1) if said[start:stop] in whole)
        place = whole.index(said[start:longest])  # where the span would go on, if the rest were not told already
        before = whole[:place]
        found.append((start, said[start:end], 1 + before.count("\n"), len(before.replace("\0", ""))))
        free[start:end] = [False] * (end - start)


@given(st.text("ab\n", max_size=25), TEXTS, st.integers(1, 5), st.sampled_from([1, 3, 7, 1000]))
def test_it_finds_what_a_search_by_hand_finds(said: str, texts: list[tuple[str, bool]], least: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "BLOCK", block)
        copies = find_copies(said, passages(texts), least)
    assert [(one.start, one.text, one.place.number, one.place.before) for one in copies] == brute_force(
        said, texts, least
    )


def test_windows_of_equal_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BASE", 1)  # all windows of the same characters, in any order, have one hash
    (copy,) = find_copies("abcdef", passages([("cbacbabcdfed", True)]), 3)
    assert (copy.start, copy.text, copy.place.before) == (0, "abcd", 5)


def test_no_span_goes_from_one_document_into_the_next() -> None:
    said = "one two three"
    assert [one.text for one in find_copies(said, passages([("one two", True), (" three", True)]), 6)] == [
        "one two",
        " three",
    ]
    assert [one.text for one in find_copies(said, passages([("one two", False), (" three", True)]), 6)] == [said]


@pytest.mark.parametrize("said", ["", "ab"])
def test_what_is_shorter_than_the_least_is_no_copy(said: str) -> None:
    assert find_copies(said, passages([("abc", True)]), 3) == []


def test_a_text_of_one_character_over_and_over_takes_no_longer() -> None:
    began = time.process_time()
    (copy,) = find_copies("a" * 300, passages([("a" * 300_000, True)]), 12)
    assert (copy.start, copy.text, copy.place.before) == (0, "a" * 300, 0)
    assert time.process_time() - began < 1.0


def test_places_are_lines_documents_and_conversations(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("a line\nanother one\nthe third, with an owl\n" * 2)
    (tmp_path / "names.csv").write_text("name\nada lovelace\ngrace hopper\n")
    talk = '{"messages": [{"role": "user", "content": "hello"}, {"role": "bot", "content": "hello to you, owl"}]}\n'
    (tmp_path / "talk.jsonl").write_text(talk.replace("owl", "hen") + talk)
    expected = {"poem.txt": ("line", 3, 19), "names.csv": ("document", 2, 12), "talk.jsonl": ("conversation", 2, 27)}
    for name, said in (
        ("poem.txt", "the third, with"),
        ("names.csv", "grace hopper"),
        ("talk.jsonl", "hello to you, owl"),
    ):
        corpus = read_sources([str(tmp_path / name)], cache=tmp_path)
        (copy,) = find_copies(f"<{said}>", corpus.passages(), 8)
        assert copy.text == said
        assert (copy.place.unit, copy.place.number, copy.place.before) == expected[name]
        assert copy.place.file == str(tmp_path / name)


def test_the_text_is_taken_in_blocks() -> None:
    text = "".join(f"{number} sheep\n" for number in range(60_000))
    assert len(text) > 4 * copying.BLOCK
    pieces = passages([(text[start : start + 50_000], False) for start in range(0, len(text), 50_000)])
    copies = find_copies("59998 sheep\n59999 sheep\n, or 20 sheep\n21 sheep", pieces, 12)
    assert [(one.text, one.place.number) for one in copies] == [
        ("59998 sheep\n59999 sheep\n", 59_999),
        ("20 sheep\n21 sheep", 21),
    ]
