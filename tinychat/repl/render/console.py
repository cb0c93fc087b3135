"""A rich console that is safe for foreign text; in a file of its own, since rich is imported only when it draws."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tinychat.textutil import escape_controls


class SafeConsole(Console):
    """A console that escapes the control characters of all text it draws; rich's own control sequences pass.

    Where columns must be aligned, text is escaped before as well: only then is it measured as it is shown.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render an object into segments without control characters."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else escape_controls(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
