"""Sizes of the parts of a text, and of the heads of a model."""

from hypothesis import given
from hypothesis import strategies as st

from tinychat.model.config import ModelConfig
from tinychat.train.sizes import SourceFacts, SplitSize, choose_heads, split_size


def test_the_last_tenth_is_kept() -> None:
    assert sizes_of(1_115_394) == (1_003_854, 111_540)


def sizes_of(tokens: int) -> tuple[int, int]:
    size = split_size(SourceFacts("novel", 1.0, tokens, 1, tokens), validation_fraction=0.1)
    return size.train_tokens, size.val_tokens


def test_a_tenth_of_the_documents_is_kept_and_none_of_a_few() -> None:
    assert split_size(SourceFacts("names", 0.5, 700, 100, 1000, rows=100), 0.1) == SplitSize(0.5, 900, 100, 90, 10)
    assert split_size(SourceFacts("names", 0.5, 70, 10, 100, rows=10), 0.1) == SplitSize(0.5, 100, 0, 10, 0)


@given(st.integers(8, 520))
def test_heads_divide_the_width_into_even_parts_of_64_or_two_of_48(half: int) -> None:
    heads = choose_heads(2 * half)
    assert 2 * half % (2 * heads) == 0
    assert heads == 1 or 2 * half / heads >= 48
    ModelConfig(50, d_model=2 * half, n_head=heads)


def test_heads_of_usual_widths() -> None:
    assert [choose_heads(width) for width in (64, 96, 128, 160, 192, 384, 512)] == [1, 2, 2, 2, 3, 6, 8]
