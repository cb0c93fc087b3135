"""Patterns against Python's `re`: the same texts match whole, and what would explode is refused at once."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.pattern import Pattern, PatternError

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "[b-é]", r"\.", r"[\s\-x]", "é", "(?:)", r"\x61"])


def patterns() -> st.SearchStrategy[str]:
    """Patterns made of a few atoms, repeated, joined and grouped."""
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "{0}"])
    return st.recursive(
        ATOMS,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map("|".join).map("({})".format),
            st.tuples(inner.map("(?:{})".format), repeats).map("".join),
        ),
        max_leaves=8,
    )


@given(patterns(), st.lists(st.text("ab1é. -\n", max_size=7), min_size=10, max_size=10))
@pytest.mark.slow
def test_matches_what_re_matches(pattern: str, texts: list[str]) -> None:
    automaton = Pattern(pattern)
    for text in texts:
        assert automaton.matches(text) == bool(re.fullmatch(pattern, text)), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^yes|no$", "no"), (r"\d{4}-\d\d-\d\d", "2026-11-23"), (r"\w+", "Straße"), ("a{x}", "a{x}"), ("[]a]+", "]a")],
)
def test_matches(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text)
    assert not Pattern(pattern).matches(text + "!")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "missing ), unterminated subpattern at position 0"),
        ("*a", "nothing to repeat"),
        (r"(a)\1", "'\\\\1' at position 3"),
        ("(?=a)a", "'(?=' at position 0"),
        (r"a\b", "'\\\\b'"),
        ("a$b", "'$' at position 1"),
        ("a++", "'+' at position 2"),
        ("x[[a]+", "it is ambiguous, a possible nested set at position 2: write a backslash before"),
        ("[a&&b]", "it is ambiguous, a possible set intersection at position 2"),
        ("(" * 101 + ")" * 101, "nested more than 100 deep"),
    ],
)
def test_refuses_what_is_no_pattern(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError, match=re.escape(problem)):
        Pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a|b)*a(a|b){40}", "(a{1000}){1000}", "(.?){999}b", ".{3000}", "(.*a){60}.{60}", r"(\w|\d|x)*y{999}z{9}"],
)
def test_refuses_what_would_explode(pattern: str) -> None:
    before = time.process_time()
    with pytest.raises(PatternError, match="too large"):
        Pattern(pattern)
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    "empty", ["(((()){1000}){1000}){1000}", "(((|(?:)|()*){1000}){1000}){1000}", "(((b{0}){1000}){1000}){999,}"]
)
def test_groups_without_characters_take_no_time(empty: str) -> None:
    before = time.process_time()
    pattern = Pattern(f"{empty}a{empty}")
    assert time.process_time() - before < 1
    assert [text for text in ("", "a", "b", "aa") if pattern.matches(text)] == ["a"]
    assert Pattern(empty).matches("")
    assert not Pattern(empty).matches("a")
