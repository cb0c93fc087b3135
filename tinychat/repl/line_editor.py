"""A line that is typed while something else is on screen."""

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.utils import get_cwidth

from tinychat.repl.keyboard import is_printable
from tinychat.textutil import escape_controls

CURSOR = "▏"
NEW_LINE = "↵"


class LineEditor:
    """Takes keys; Ctrl-J is a new line, ↑ brings an earlier text back."""

    def __init__(self, earlier: str = "") -> None:
        self._buffer = Buffer()
        self._earlier = earlier

    @property
    def text(self) -> str:
        """What has been typed."""
        return self._buffer.text

    def press(self, key: KeyPress) -> None:
        """Types, deletes or moves the cursor; any other key does nothing."""
        buffer, document = self._buffer, self._buffer.document
        match key.key:
            case Keys.Up:
                buffer.text = self._earlier
                buffer.cursor_position = len(self._earlier)
            case Keys.Left | Keys.ControlB:
                buffer.cursor_position = max(0, buffer.cursor_position - 1)
            case Keys.Right | Keys.ControlF:
                buffer.cursor_position = min(len(buffer.text), buffer.cursor_position + 1)
            case Keys.Home | Keys.ControlA:
                buffer.cursor_position = 0
            case Keys.End | Keys.ControlE:
                buffer.cursor_position = len(buffer.text)
            case Keys.Backspace:
                buffer.delete_before_cursor()
            case Keys.Delete | Keys.ControlD:
                buffer.delete()
            case Keys.ControlU:
                buffer.delete_before_cursor(buffer.cursor_position)
            case Keys.ControlK:
                buffer.delete(len(buffer.text) - buffer.cursor_position)
            case Keys.ControlW:
                buffer.delete_before_cursor(-(document.find_start_of_previous_word() or 0))
            case Keys.ControlJ:
                buffer.insert_text("\n")
            case Keys.BracketedPaste:
                buffer.insert_text(key.data.replace("\r\n", "\n").replace("\r", "\n"))
            case _ if is_printable(key):
                buffer.insert_text(key.data)

    def view(self, width: int) -> str:
        """The text with its cursor, in so many cells, moved so that the cursor is seen."""
        document = self._buffer.document
        before, after = (
            escape_controls(part.replace("\n", NEW_LINE).replace("\t", " "))
            for part in (document.text_before_cursor, document.text_after_cursor)
        )
        while before and get_cwidth(before + CURSOR + after[:1]) > width:
            before = before[1:]
        line = before + CURSOR + after
        while get_cwidth(line) > width:
            line = line[:-1]
        return line
