"""Lessons: read from Markdown, and walked through with a session; the progress in them is kept.

A lesson has a title (`# Tokens: what a model reads (4 minutes)`) and steps, each under a heading (`## In pieces`).
A block ```` ```tinychat ```` holds lines to run, a blockquote is a question with its answer, `<!-- … -->` a note to the
teacher; everything else is text. `docs/teaching.md` describes the format for those who write lessons.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from tinychat.atomic import atomic_write
from tinychat.errors import TinychatError, UsageError
from tinychat.pattern import PatternError, compile_pattern
from tinychat.session.run_monitor import BackgroundRun
from tinychat.store import paths
from tinychat.textutil import shorten
from tinychat.untrusted import read_json, read_text

FOLDER = Path(__file__).resolve().parent.parent / "lessons"
SUFFIX = ".md"
MAX_LESSON = 1 << 20
"""Maximum number of bytes of a lesson."""
MAX_PROGRESS = 1 << 20
CHOICES = "abcdefghi"
"""Letters of the choices of a question, in order."""
LANGUAGE = "tinychat"
"""Info string of a fenced block whose lines are run."""
FORMAT = "docs/teaching.md tells how a lesson is written"
OPENS = ("/model ", "/train ")
"""Beginnings of lines that open a model: a lesson is resumed at a step that begins with one."""

_TITLE = re.compile(r"(?P<title>.+?)\s*(?::\s*(?P<about>.+?))?\s*(?:\((?P<minutes>\d{1,3}) minutes?\))?")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*([^`\s]*)")
_BULLET = re.compile(r"(?P<mark>[-*+]|\d{1,2}[.)]) +(?P<text>\S.*)")
_CHOICE = re.compile(r"[-*] \[(?P<mark>[ xX])\] +(?P<text>\S.*)")
_AROUND = re.compile(r"^(=|about\s)\s*|\s*\.$", re.IGNORECASE)
"""Beginning and end of an answer that no pattern has to match: `= 15`, `about 4.08`, `five.`"""


@dataclass(frozen=True)
class Block:
    """Something to read; a bullet begins with its mark, and the lines of code are kept."""

    kind: Literal["paragraph", "bullet", "code"]
    text: str


@dataclass(frozen=True)
class LessonLine:
    """A line to run, and the number of the line of the file that it is."""

    line: str
    number: int
    notes: tuple[str, ...] = ()
    """The notes to the teacher that follow it."""


@dataclass(frozen=True)
class Question:
    """A question with choices, or with a pattern that matches a right answer, or that people judge themselves."""

    text: str
    answer: tuple[Block, ...]
    choices: tuple[str, ...] = ()
    right: frozenset[int] = frozenset()
    """Indices of the right choices: all of them make the right answer."""
    pattern: re.Pattern[str] | None = None

    def check(self, typed: str) -> bool | None:
        """Return whether an answer is right; None if that cannot be told."""
        typed = typed.strip()
        if self.choices:
            chosen = self._choices_of(typed)
            return None if chosen is None else chosen == self.right
        if self.pattern is None:
            return None
        return any(map(self.pattern.fullmatch, (typed, _AROUND.sub("", typed))))

    def _choices_of(self, typed: str) -> set[int] | None:
        """Return the indices of choices typed as letters, such as `b)` or `a, c`, or as the text of one; else None."""
        words = [word for word in re.split(r"[\s,.)]+", typed.lower()) if word not in ("", "and")]
        letters = [CHOICES.index(word) for word in words if word in tuple(CHOICES[: len(self.choices)])]
        text, texts = _comparable(typed), [_comparable(choice) for choice in self.choices]
        if text in texts and not len(letters) == len(words) == 1:
            return {texts.index(text)}
        return set(letters) if words and len(letters) == len(words) else None


def _comparable(choice: str) -> str:
    """Return a choice without what people leave out when they type it: capitals, backquotes, the full stop."""
    return choice.lower().replace("`", "").rstrip(".)")


Item = Block | LessonLine | Question


@dataclass(frozen=True)
class Step:
    """A step of a lesson, with what is read, run and asked in it; the title of the introduction is empty."""

    title: str
    items: tuple[Item, ...]

    @property
    def opens_model(self) -> bool:
        """Whether the first line that it runs opens a model, so that nothing before it is needed."""
        first = next((item for item in self.items if isinstance(item, LessonLine)), None)
        return first is not None and first.line.startswith(OPENS)


@dataclass(frozen=True)
class Lesson:
    """A lesson: `name` is its short name, or the path of somebody's own; `number` is 0 for that."""

    name: str
    title: str
    about: str
    steps: tuple[Step, ...]
    minutes: int | None = None
    number: int = 0

    @property
    def runs(self) -> Iterator[LessonLine]:
        """The lines that it runs, in order."""
        return (item for step in self.steps for item in step.items if isinstance(item, LessonLine))


class LessonPlayer:
    """A lesson in progress: `step` is the index of its step, `item` that of the item which it waits at."""

    def __init__(self, lesson: Lesson, step: int, settings: Mapping[str, Any], model: str | None) -> None:
        self.lesson, self.step, self.item = lesson, step, 0
        self.settings, self.model = dict(settings), model
        """Settings from before the lesson, and the model that was open."""
        self.run: BackgroundRun | None = None
        """The run in the background that the lesson waits for, which the line that is due has started."""

    @property
    def due(self) -> LessonLine | Question | None:
        """Line, question or page that the lesson waits for; None at the end of a step."""
        items = self.lesson.steps[self.step].items
        item = items[self.item] if self.item < len(items) else None
        assert not isinstance(item, Block)
        return item

    @property
    def position(self) -> str:
        """`step 2 of 8`, of a lesson with an introduction `step 1` too."""
        return f"step {self.step + 1} of {len(self.lesson.steps)}"

    def read(self) -> tuple[Block, ...]:
        """Return the blocks up to what is due, and go there."""
        items = self.lesson.steps[self.step].items
        blocks = tuple(takewhile(lambda item: isinstance(item, Block), items[self.item :]))
        self.item += len(blocks)
        self.run = None
        return blocks  # type: ignore[return-value]

    def go_to(self, step: int) -> None:
        """Go to the beginning of a step."""
        self.step, self.item = step, 0


# --- reading ----------------------------------------------------------------------------------------------------------


def list_lessons() -> list[Lesson]:
    """Return the lessons that tinychat brings, in order: the numbers before their names are those of the files."""
    files = sorted(FOLDER.glob(f"[0-9][0-9]-*{SUFFIX}"))
    return [
        read_lesson(file, name=file.stem.partition("-")[2], number=number) for number, file in enumerate(files, start=1)
    ]


def read_lesson(path: Path, *, name: str | None = None, number: int = 0) -> Lesson:
    """Read a lesson from a file.

    Raises:
        UsageError: If the file cannot be read, or is no lesson; the number of the line is told.
    """
    try:
        text = read_text(path, MAX_LESSON)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", FORMAT) from None
    except ValueError as error:
        raise UsageError(f"{path} is no lesson: {error}", FORMAT) from None
    return _Parser(text, path.name).parse(str(path.absolute()) if name is None else name, number)


@dataclass
class _Parser:
    """Parses a lesson line by line; the numbers of lines count from 1."""

    text: str
    file: str
    number: int = 0  # of the line last read
    items: list[Item] = field(default_factory=list)  # of the step being read
    paragraph: list[str] = field(default_factory=list)

    def parse(self, name: str, number: int) -> Lesson:
        lines = [line.rstrip() for line in self.text.splitlines()]
        title: re.Match[str] | None = None
        steps: list[Step] = []
        heading, heading_line = "", 0
        while self.number < len(lines):
            line = lines[self.number]
            self.number += 1
            if line.startswith("# "):
                if title is not None:
                    raise self.error("a lesson has one title", "`## …` begins a step")
                title = _TITLE.fullmatch(line[2:].strip())
                if title is None:
                    raise self.error("the title is empty", "write `# Tokens: what a model reads (4 minutes)`")
            elif not line or re.fullmatch(r"(-\s*){3,}", line):
                self.end_paragraph()
            elif line.lstrip().startswith("<!--"):
                self.note(lines)
            elif title is None:
                raise self.error("a lesson begins with its title", "write `# Tokens: what a model reads (4 minutes)`")
            elif line.startswith("## "):
                self.end_step(steps, heading, heading_line)
                heading, heading_line = line[3:].strip(), self.number
            elif fence := _FENCE.match(line):
                self.fence(lines, fence[1], fence[2])
            elif line.startswith(">"):
                self.question(lines)
            elif (bullet := _BULLET.match(line)) or not self.paragraph:
                self.end_paragraph()
                self.paragraph = [f"{bullet['mark']} {bullet['text']}" if bullet else line.strip()]
            else:
                self.paragraph.append(line.strip())
        if title is None:
            raise UsageError(f"{self.file} has no title: it is no lesson", FORMAT)
        self.end_step(steps, heading, heading_line)
        if not steps:
            raise self.error("a lesson needs something to read or to do", FORMAT)
        minutes = int(title["minutes"]) if title["minutes"] else None
        return Lesson(name, title["title"], title["about"] or "", tuple(steps), minutes, number)

    def error(self, problem: str, remedy: str, number: int | None = None) -> UsageError:
        return UsageError(f"{self.file}, line {number or self.number}: {problem}", remedy)

    def end_paragraph(self) -> None:
        if self.paragraph:
            text = " ".join(self.paragraph)
            self.items.append(Block("bullet" if _BULLET.match(text) else "paragraph", text))
            self.paragraph = []

    def end_step(self, steps: list[Step], heading: str, number: int) -> None:
        self.end_paragraph()
        if self.items:
            steps.append(Step(heading, tuple(self.items)))
            self.items = []
        elif heading:
            raise self.error(f"the step {shorten(heading, 40)!r} is empty", "write what to read or to do in it", number)

    def note(self, lines: list[str]) -> None:
        """Skip a comment; one right after a line to run is kept with that."""
        self.end_paragraph()
        first = self.number
        text = lines[first - 1].lstrip()[4:]
        while "-->" not in text:
            if self.number == len(lines):
                raise self.error("the note that begins here is never closed", "end it with `-->`", first)
            text += "\n" + lines[self.number]
            self.number += 1
        if self.items and isinstance(last := self.items[-1], LessonLine):
            self.items[-1] = LessonLine(last.line, last.number, (*last.notes, text.partition("-->")[0].strip()))

    def fence(self, lines: list[str], fence: str, language: str) -> None:
        """Read a fenced block: lines to run, or code to look at."""
        self.end_paragraph()
        first, inside = self.number, []
        while self.number < len(lines) and lines[self.number] != fence:
            inside.append((self.number + 1, lines[self.number]))
            self.number += 1
        if self.number == len(lines):
            raise self.error("the block that begins here is never closed", f"end it with `{fence}`", first)
        self.number += 1
        if language != LANGUAGE:
            self.items.append(Block("code", "\n".join(line for _, line in inside)))
            return
        runs = [LessonLine(line.strip(), number) for number, line in inside if line.strip()]
        if not runs:
            raise self.error("there is nothing to run in this block", "write a command or a prompt on each line", first)
        self.items += runs

    def question(self, lines: list[str]) -> None:
        """Read a blockquote: a question, its choices or its pattern, and its answer below an empty line."""
        self.end_paragraph()
        first = self.number
        quoted_lines = takewhile(lambda line: line.startswith(">"), lines[first - 1 :])
        quoted = [(first + index, line[1:].strip()) for index, line in enumerate(quoted_lines)]
        self.number = first + len(quoted) - 1
        gap = next((index for index, (_, line) in enumerate(quoted) if not line), len(quoted))
        text: list[str] = []
        choices: list[str] = []
        right: set[int] = set()
        pattern: re.Pattern[str] | None = None
        for number, line in quoted[:gap]:
            if choice := _CHOICE.fullmatch(line):
                right |= {len(choices)} if choice["mark"] != " " else set()
                choices.append(choice["text"])
            elif line.startswith("= "):
                try:
                    pattern = compile_pattern(line[2:].strip(), re.IGNORECASE, name="the pattern")
                except PatternError as error:
                    raise self.error(str(error), FORMAT, number) from None
            elif choices or pattern:
                raise self.error("the answer stands below an empty line", "put a line `>` above this one", number)
            else:
                text.append(line)
        if not text:
            raise self.error("the question is missing", "a line with `>` begins with what is asked", first)
        if choices and (not right or len(choices) < 2 or len(choices) > len(CHOICES) or pattern):
            many = f"2 to {len(CHOICES)} choices, not {len(choices)}"
            problem = "choices or a pattern, not both" if pattern else many if right else "a right choice"
            raise self.error(
                f"a question takes {problem}", "`> - [x] …` is a right one, `> - [ ] …` a wrong one", first
            )
        answer = _Parser("\n".join(line for _, line in quoted[gap + 1 :]), self.file).blocks()
        if not answer:
            remedy = "write it below the question, after a line with `>` alone"
            raise self.error("the question has no answer", remedy, first)
        self.items.append(Question(" ".join(text), answer, tuple(choices), frozenset(right), pattern))

    def blocks(self) -> tuple[Block, ...]:
        """Return the paragraphs and bullets of a text without headings."""
        for line in self.text.splitlines():
            if not line or _BULLET.match(line):
                self.end_paragraph()
            if line:
                self.paragraph.append(line)
        self.end_paragraph()
        return tuple(item for item in self.items if isinstance(item, Block))


# --- progress ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LessonProgress:
    """How far somebody has come: the index of the step that is next, and whether the last one was reached once."""

    step: int = 0
    is_done: bool = False


def read_progress() -> dict[str, LessonProgress]:
    """Return the progress in lessons by name; a file that is missing or damaged counts as none."""
    try:
        known = read_json(paths.lessons_file(), MAX_PROGRESS)
        return {name: LessonProgress(int(one["step"]), bool(one["done"])) for name, one in known.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def save_progress(progress: Mapping[str, LessonProgress]) -> None:
    """Keep the progress; where nothing can be written, it lasts as long as the lesson."""
    values = {name: {"step": one.step, "done": one.is_done} for name, one in progress.items()}
    with suppress(OSError, TinychatError):
        atomic_write(paths.lessons_file(), json.dumps(values, ensure_ascii=False, indent=1) + "\n")


def resume_step(lesson: Lesson, progress: LessonProgress | None) -> int:
    """Return the step to resume a lesson at: the last one up to the kept step that begins by opening a model."""
    if progress is None:
        return 0
    reached = range(min(max(0, progress.step), len(lesson.steps) - 1), 0, -1)
    return next((step for step in reached if lesson.steps[step].opens_model), 0)
