"""Verbatim overlap: the longest span and all spans, compared with brute-force searches."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinychat.corpus import overlap
from tinychat.corpus.corpus import Passage
from tinychat.corpus.overlap import CommonSpan, find_copies, longest_common_span, longest_copy
from tinychat.corpus.sources import read_sources
from tinychat.tokenizer.training import train_tokenizer

IDS = st.lists(st.integers(0, 2), max_size=60)
TEXTS = st.lists(st.tuples(st.text("ab\n", max_size=30), st.booleans()), max_size=6)


def longest_by_hand(said: list[list[int]], text: list[int]) -> tuple[int, int]:
    """Return the first position in the text of the longest common span, and its length."""
    best = (0, 0)
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        wanted = text[start:end]
        if end - start > best[1] and any(
            one[at : at + len(wanted)] == wanted for one in said for at in range(len(one))
        ):
            best = (start, end - start)
    return best


@given(st.lists(IDS, max_size=3), IDS, st.sampled_from([1, 3, 7, 1000]))
def test_the_longest_span_is_found_for_any_block_size(said: list[list[int]], text: list[int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "BLOCK", block)
        span = longest_common_span(said, np.array(text, np.uint16))
    assert (span.start, span.length) == longest_by_hand(said, text)


def test_windows_of_ids_with_equal_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "BASE", 1)  # all windows of the same ids, in any order, have one hash
    monkeypatch.setattr(overlap, "BLOCK", 5)
    said, text = [[1, 2, 3, 4, 5, 6]], [6, 5, 4, 3, 2, 1, 2, 1, 3, 4, 5, 2]
    span = longest_common_span(said, np.array(text, np.uint8))
    assert (span.start, span.length) == (8, 3)


def test_a_text_of_one_repeated_id_takes_no_longer() -> None:
    began = time.process_time()
    span = longest_common_span([[7] * 500], np.full(300_000, 7, np.uint8))
    assert span == CommonSpan(0, 500, 300_000)
    assert time.process_time() - began < 1.0


def test_the_search_can_be_stopped() -> None:
    answers = iter([False, False, True])
    text = np.arange(5 * overlap.BLOCK, dtype=np.uint32)
    said = [range(10, 15), range(4 * overlap.BLOCK, 4 * overlap.BLOCK + 50)]
    assert longest_common_span(said, text, lambda: next(answers)) == CommonSpan(10, 5, 2 * overlap.BLOCK)


@pytest.mark.parametrize("kind", ["char", "wordpiece"])
def test_a_copy_has_its_characters_and_position(tmp_path, kind: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text("an owl and a hen met at noon. " * 50 + "the quick brown fox jumps over the lazy dog. " * 50)
    corpus = read_sources([str(path)], cache=tmp_path)
    tokenizer = train_tokenizer(kind, corpus, 300, ())
    ids = tokenizer.encode_array(path.read_text())
    copied = longest_copy(["hello", "my dog: the lazy dog. the quick owl"], ids, tokenizer)
    assert copied.text.strip() == "the lazy dog. the quick"
    assert copied.characters == len(copied.text)
    assert 0.3 < copied.position < 0.7
    assert copied.searched == 1
    assert longest_copy([], ids, tokenizer).characters == 0


def passages(texts: list[tuple[str, bool]]) -> Iterator[Passage]:
    """Return passages from pieces of a file, each with whether it ends a document."""
    number, before = 1, 0
    for text, ends in texts:
        yield Passage(text, "file", "line", number, before, ends)
        number, before = number + text.count("\n"), before + len(text)


def copies_by_hand(said: str, texts: list[tuple[str, bool]], least: int) -> list[tuple[int, str, int, int]]:
    """Return start, text, line and position of each copy: the longest span, then the longest of what it leaves."""
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
        position = whole.index(said[start:longest])  # where the span would go on, if the rest were not told already
        before = whole[:position]
        found.append((start, said[start:end], 1 + before.count("\n"), len(before.replace("\0", ""))))
        free[start:end] = [False] * (end - start)


@given(st.text("ab\n", max_size=25), TEXTS, st.integers(1, 5), st.sampled_from([1, 3, 7, 1000]))
@example("a\na", [("", True), ("", True), ("a\na", False)], 1, 1)  # a block that begins before the first of a file
@pytest.mark.slow
def test_copies_equal_those_of_a_brute_force_search(
    said: str, texts: list[tuple[str, bool]], least: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "BLOCK", block)
        copies = find_copies(said, passages(texts), least)
    assert [(one.start, one.text, one.passage.number, one.passage.before) for one in copies] == copies_by_hand(
        said, texts, least
    )


def test_windows_of_equal_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "BASE", 1)  # all windows of the same characters, in any order, have one hash
    (copy,) = find_copies("abcdef", passages([("cbacbabcdfed", True)]), 3)
    assert (copy.start, copy.text, copy.passage.before) == (0, "abcd", 5)


def test_no_span_crosses_documents() -> None:
    said = "one two three"
    assert [one.text for one in find_copies(said, passages([("one two", True), (" three", True)]), 6)] == [
        "one two",
        " three",
    ]
    assert [one.text for one in find_copies(said, passages([("one two", False), (" three", True)]), 6)] == [said]


@pytest.mark.parametrize("said", ["", "ab"])
def test_spans_below_the_minimum_length_are_not_copies(said: str) -> None:
    assert find_copies(said, passages([("abc", True)]), 3) == []


def test_a_text_of_one_repeated_character_takes_no_longer() -> None:
    began = time.process_time()
    (copy,) = find_copies("a" * 300, passages([("a" * 300_000, True)]), 12)
    assert (copy.start, copy.text, copy.passage.before) == (0, "a" * 300, 0)
    assert time.process_time() - began < 1.0


def test_runs_of_one_character_take_little_longer() -> None:
    table = "".join(f"some words of a row\n+{'-' * (40 + number % 39)}+\n" for number in range(4000))
    began = time.process_time()
    copies = find_copies("-" * 1000, passages([(table, True)]), 12)
    assert [len(copy.text) for copy in copies] == [78] * 12 + [64]
    assert copies[0].passage.number == 2 * 39
    assert time.process_time() - began < 1.0


def test_passages_are_numbered_by_line_document_or_conversation(tmp_path: Path) -> None:
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
        assert (copy.passage.unit, copy.passage.number, copy.passage.before) == expected[name]
        assert copy.passage.file == str(tmp_path / name)


def test_the_text_is_read_in_blocks() -> None:
    text = "".join(f"{number} sheep\n" for number in range(60_000))
    assert len(text) > 4 * overlap.BLOCK
    pieces = passages([(text[start : start + 50_000], False) for start in range(0, len(text), 50_000)])
    copies = find_copies("59998 sheep\n59999 sheep\n, or 20 sheep\n21 sheep", pieces, 12)
    assert [(one.text, one.passage.number) for one in copies] == [
        ("59998 sheep\n59999 sheep\n", 59_999),
        ("20 sheep\n21 sheep", 21),
    ]
