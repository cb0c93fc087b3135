"""A line that is typed while a run is on screen."""

import pytest
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.repl.line_editor import LineEditor


def press(*keys: Keys | str, earlier: str = "") -> LineEditor:
    editor = LineEditor(earlier)
    for key in keys:
        for one in [key] if isinstance(key, Keys) else key:
            editor.press(KeyPress(one))
    return editor


@pytest.mark.parametrize(
    ("keys", "text", "view"),
    [
        (["king"], "king", "king▏"),
        (["king", Keys.Left, Keys.Left, "x", Keys.Backspace], "king", "ki▏ng"),
        (["king", Keys.Home, Keys.Left, Keys.Delete, Keys.End, "s", Keys.Right], "ings", "ings▏"),
        (["the king", Keys.ControlW], "the ", "the ▏"),
        (["the king", Keys.ControlA, "O ", Keys.ControlK], "O ", "O ▏"),
        (["the king", Keys.ControlU, Keys.ControlW, Keys.Backspace], "", "▏"),
        (["ROMEO:", Keys.ControlJ, Keys.F1], "ROMEO:\n", "ROMEO:↵▏"),
    ],
)
def test_keys_type_delete_and_move(keys: list[Keys | str], text: str, view: str) -> None:
    editor = press(*keys)
    assert editor.text == text
    assert editor.view(40) == view


def test_up_brings_the_earlier_text_back() -> None:
    assert press("x", Keys.Up, "!", earlier="ROMEO:").text == "ROMEO:!"


def test_what_is_pasted_stays_one_text() -> None:
    editor = LineEditor()
    editor.press(KeyPress(Keys.BracketedPaste, "one\r\ntwo\rq\x1b[31m"))
    assert editor.text == "one\ntwo\nq\x1b[31m"
    assert "\x1b" not in editor.view(40)


def test_a_long_line_is_shown_around_its_cursor() -> None:
    editor = press("abcdefghij", *[Keys.Left] * 3)
    assert editor.view(6) == "defg▏h"
    assert press("王" * 10).view(9) == "王" * 4 + "▏"
    assert press(*["abcdefghij", Keys.Home]).view(4) == "▏abc"
