"""The longest span that was copied from a text."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.text import copying
from tinychat.text.copying import Span, longest_common_span, longest_copy
from tinychat.text.sources import read_sources
from tinychat.text.tokenizers import train_tokenizer

IDS = st.lists(st.integers(0, 2), max_size=60)


def brute_force(said: list[list[int]], text: list[int]) -> tuple[int, int]:
    """The first place in the text of the longest common span, and its length."""
    best = (0, 0)
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        wanted = text[start:end]
        if end - start > best[1] and any(
            one[at : at + len(wanted)] == wanted for one in said for at in range(len(one))
        ):
            best = (start, end - start)
    return best


@given(st.lists(IDS, max_size=3), IDS, st.sampled_from([1, 3, 7, 1000]))
def test_it_is_the_longest_in_whatever_blocks_the_text_is_taken(
    said: list[list[int]], text: list[int], block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "BLOCK", block)
        span = longest_common_span(said, np.array(text, np.uint16))
    assert (span.start, span.length) == brute_force(said, text)


def test_windows_of_equal_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BASE", 1)  # all windows of the same ids, in any order, have one hash
    monkeypatch.setattr(copying, "BLOCK", 5)
    said, text = [[1, 2, 3, 4, 5, 6]], [6, 5, 4, 3, 2, 1, 2, 1, 3, 4, 5, 2]
    span = longest_common_span(said, np.array(text, np.uint8))
    assert (span.start, span.length) == (8, 3)


def test_a_text_of_one_character_over_and_over_takes_no_longer() -> None:
    began = time.process_time()
    span = longest_common_span([[7] * 500], np.full(300_000, 7, np.uint8))
    assert span == Span(0, 500, 300_000)
    assert time.process_time() - began < 1.0


def test_it_stops_when_told_to() -> None:
    answers = iter([False, False, True])
    text = np.arange(5 * copying.BLOCK, dtype=np.uint32)
    said = [range(10, 15), range(4 * copying.BLOCK, 4 * copying.BLOCK + 50)]
    assert longest_common_span(said, text, lambda: next(answers)) == Span(10, 5, 2 * copying.BLOCK)


@pytest.mark.parametrize("kind", ["char", "wordpiece"])
def test_a_copy_is_told_in_characters_and_by_its_place(tmp_path, kind: str) -> None:
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
