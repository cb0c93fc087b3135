"""Formatting of numbers and durations, and text that is safe for a terminal."""

import json
import unicodedata
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.textutil import (
    LAYOUT_CONTROLS,
    compact,
    count,
    duration,
    escape_controls,
    json_line,
    json_text,
    one_line,
    percent,
    quote,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@pytest.mark.parametrize(
    ("number", "shown"), [(37, "37"), (999, "999"), (12_345, "12.3k"), (984_320, "984k"), (3_400_000, "3.4M")]
)
def test_compact(number: int, shown: str) -> None:
    assert compact(number) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(-1, "0:00"), (62, "1:02"), (59.6, "1:00"), (7322, "2:02:02")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts_and_percentages() -> None:
    assert [count(number, "step") for number in (0, 1, 1200, 0.5)] == ["0 steps", "1 step", "1,200 steps", "0.5 steps"]
    assert [percent(0.0512), percent(0.0512, 0), percent(1)] == ["5.1 %", "5 %", "100.0 %"]


def test_control_characters_are_shown_and_all_else_stays() -> None:
    assert escape_controls("a\x1b[31m\x07\x9b\x7f\r") == r"a␛[31m␇\x9b␡␍"
    assert escape_controls("abc\u202egpj.exe\u2066") == r"abc\u202egpj.exe\u2066"
    ordinary = "one\ttwo\n你好 שלום, مرحبا می\u200cخواهم 👩\u200d🚀 é"
    assert escape_controls(ordinary) == ordinary


def test_no_character_that_controls_the_terminal_is_left_out() -> None:
    text = "".join(map(chr, range(0x11000)))
    left = {char for char in escape_controls(text) if unicodedata.category(char) in ("Cc", "Zl", "Zp")}
    assert left == {"\n", "\t"}
    directional = {char for char in text if unicodedata.bidirectional(char) in DIRECTIONAL_CLASSES}
    marks = set("\u061c\u200e\u200f")  # whose classes are those of letters
    assert directional | marks | set("\u2028\u2029") == set(LAYOUT_CONTROLS)


DIRECTIONAL_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_json_is_one_safe_line_and_means_the_same() -> None:
    values = {"text\x9b": ["a\u2028b\x85c\u202ed\x7f\x1b\n", "é你"]}
    line = json_line(values)
    assert line == r'{"text\u009b": ["a\u2028b\u0085c\u202ed\u007f\u001b\n", "é你"]}'
    assert json.loads(line) == values


def test_an_entry_of_a_table_is_one_line() -> None:
    assert one_line("a\nb\x85c\td\x1be\n") == "a b c d␛e"


def test_json_for_people_has_numbers_of_a_list_on_one_line() -> None:
    values = {
        "loss": 1.5,
        "curve": [[1, 2.5], [2, 1.5]],
        "ids": [1, 2, 3],
        "samples": ["é", "b"],
        "empty": {},
        "no": [],
    }
    assert json_text(values).splitlines() == [
        "{", '  "loss": 1.5,', '  "curve": [', "    [1, 2.5],", "    [2, 1.5]", "  ],", '  "ids": [1, 2, 3],',
        '  "samples": [', '    "é",', '    "b"', "  ],", '  "empty": {},', '  "no": []', "}",
    ]  # fmt: skip
    assert json_text(MappingProxyType({"a": MappingProxyType({})})) == '{\n  "a": {}\n}'


@given(JSON_VALUES)
def test_json_for_people_means_the_same(values: object) -> None:
    assert json.loads(json_text(values)) == values


def test_quoted_values_are_cut_short() -> None:
    assert [quote(value) for value in ("it's", None, [True])] == ['"it\'s"', "None", "[True]"]
    assert quote("a\n" * 30) == repr("a\n" * 19 + "a…")
    assert quote(list(range(100))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"
