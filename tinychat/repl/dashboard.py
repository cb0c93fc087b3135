"""A training run on screen: drawn in place, or on a dumb terminal in lines. Keys act on the run."""

import textwrap
import time
from collections.abc import Callable

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.errors import Interrupted
from tinychat.events import Ended, Evaluated, Event, Failed, Noticed, Planned, Sampled
from tinychat.repl.interrupts import counted_interrupts
from tinychat.repl.keyboard import Keyboard
from tinychat.repl.line_editor import LineEditor
from tinychat.repl.region import Region
from tinychat.repl.terminal import DIM, Terminal
from tinychat.repl.training_lines import STOPPING, TOO_SOON, Last, ending, write_lines
from tinychat.repl.watching import LOOK, Process, Progress, follow
from tinychat.store.runs import RunFolder

FRAME = 0.25
"""seconds between two drawings of the dashboard, unless something is to be seen at once"""
INDENT = " " * 7
"""before what the lines of a plan go on with; the length of their first words"""
SAMPLING = "a sample comes after this step"
FINISHING = "measuring the model and saving it…"
EVALUATING = "an evaluation comes after this step"
PROMPT = "prompt for samples: "
EDITING_KEYS = ("Enter sets it and samples", "Esc leaves it", "Ctrl-J new line", "↑ the present one")
PLAIN_KEYS, PLAIN_KEYS_OBEYED = "keys: b background, s sample now, e evaluate now, q stop and keep", "bseq"


class Dashboard:
    """Draws a run in place, and obeys keys."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal, self._keyboard, self._clock = terminal, keyboard, clock
        self._region = Region(terminal)
        self._progress = Progress()
        self._said = ""
        self._editor: LineEditor | None = None
        self._drawn_at = -FRAME

    def show(self, run: RunFolder, process: Process | None = None) -> Last:
        """Shows a run until it ends or is left in the background.

        Raises:
            Interrupted: it was told to stop twice, before it had.
        """
        last: Last = None
        if self._terminal.dumb:
            return self._show_lines(run, process)
        with self._keyboard.live(), counted_interrupts() as interrupts:
            try:
                for event in follow(run, process):
                    if isinstance(event, Ended | Failed):
                        last = event
                    elif event is not None:
                        self._update(event)
                    else:
                        if self._clock() - self._drawn_at >= FRAME:
                            self._drawn_at = self._clock()
                            self._region.draw(self._lines())
                        keys = self._keyboard.read(LOOK) + [KeyPress(Keys.ControlC)] * interrupts.count
                        interrupts.count = 0
                        if any([self._press(key, run) for key in keys]):  # noqa: C419 - each is obeyed
                            break
            finally:
                self._close()
        if last is None:
            run.send("background")
        elif isinstance(last, Ended):
            for line in ending(last, self._terminal.width):
                self._terminal.line(line)
        return last

    def _show_lines(self, run: RunFolder, process: Process | None) -> Last:
        """The run in plain lines; what a key does is told in one more."""
        self._terminal.line(PLAIN_KEYS)

        def obey() -> bool:
            for key in self._keyboard.read():
                if key.key in (*PLAIN_KEYS_OBEYED, Keys.ControlC):
                    if self._press(key, run):
                        return True
                    self._terminal.line(self._said)
            return False

        with self._keyboard.live():
            last = write_lines(run, process, self._terminal.line, obey)
        if last is None:
            run.send("background")
        return last

    def _update(self, event: Event) -> None:
        """Notes an event; the plan and notices stay on screen above."""
        self._progress.update(event)
        if (isinstance(event, Sampled | Noticed) and self._said == SAMPLING) or (
            isinstance(event, Evaluated) and self._said == EVALUATING
        ):
            self._said = ""
        lines = event.lines if isinstance(event, Planned) else (event.text,) if isinstance(event, Noticed) else ()
        if lines:
            self._region.wipe()
            for line in lines:
                for part in textwrap.wrap(line, self._terminal.width - 1, subsequent_indent=INDENT):
                    self._terminal.line(part, DIM)
            self._drawn_at = -FRAME

    def _press(self, key: KeyPress, run: RunFolder) -> bool:
        """Does what a key asks for, at once on screen; whether the run is to be left in the background."""
        self._drawn_at = -FRAME
        if self._editor is not None:
            self._edit(self._editor, key, run)
            return False
        match key.key:
            case "b":
                return True
            case "s":
                run.send("sample")
                self._said = SAMPLING
            case "e":
                run.send("evaluate")
                self._said = EVALUATING
            case "p":
                samples = self._progress.samples
                self._editor = LineEditor(samples[-1].prompt if samples else "")
                self._terminal.take_pastes_whole(True)
            case "q" | Keys.ControlC:
                if self._said == STOPPING and key.key is Keys.ControlC:
                    raise Interrupted(*TOO_SOON)
                run.send("stop")
                self._said = STOPPING
        return False

    def _edit(self, editor: LineEditor, key: KeyPress, run: RunFolder) -> None:
        """A key while the prompt for samples is typed."""
        if key.key is Keys.ControlM:
            run.send("sample", prompt=editor.text)
            self._said = SAMPLING
        elif key.key not in (Keys.Escape, Keys.ControlC):
            editor.press(key)
            return
        self._leave_editor()

    def _leave_editor(self) -> None:
        if self._editor is not None:
            self._editor = None
            self._terminal.take_pastes_whole(False)

    def _lines(self, live: bool = True) -> list[str]:
        """The panel as it is now; one that is not live any more has no keys."""
        from tinychat.repl.panel import KEYS, panel  # and rich, which takes as long as the trainer's first moments

        columns, rows = self._terminal.size()
        step = self._progress.stepped
        said = (self._said or (FINISHING if step and step.remaining < 1 else "")) if live else ""
        keys: tuple[str, ...] = KEYS if live else ()
        if self._editor is not None:
            said, keys = PROMPT + self._editor.view(columns - 1 - len(PROMPT)), EDITING_KEYS
        drawing = panel(self._terminal.console(columns - 1), self._progress, rows, said, keys)
        return self._terminal.render(drawing, columns - 1).splitlines()[: rows - 1]

    def _close(self) -> None:
        """Leaves the last figures on screen, without the keys."""
        self._leave_editor()
        self._region.wipe()
        if self._progress.stepped is not None:
            self._region.draw(self._lines(live=False))
            self._region.leave()
