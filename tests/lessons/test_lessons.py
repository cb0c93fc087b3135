"""The lessons that tinychat brings, walked through from the first line to the last, typing what they ask."""

import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "repl"))

from screens import Screen

from tinychat.commands import COMMANDS, results
from tinychat.commands import lesson as lessons
from tinychat.commands.registry import is_command
from tinychat.commands.training import finish_training
from tinychat.events import Ended, Finished
from tinychat.repl.render.results import draw
from tinychat.session.lesson import CHOICES, Lesson, LessonLine, Question, list_lessons
from tinychat.session.session import Session

ALL = list_lessons()
TRAIN = "/train "
SHOWS = "shows "
"""Beginning of a note to the teacher with a pattern of what the line before it shows."""
PATIENCE = 600.0
ROWS, COLUMNS = 24, 80
TOOLBAR_AND_PROMPT = 2


def trains(lesson: Lesson) -> bool:
    return any(run.line.startswith(TRAIN) for run in lesson.runs)


class Learner:
    """Somebody who types what a lesson asks, and sees what is drawn."""

    def __init__(self, lesson: Lesson) -> None:
        self.session, self.lesson = Session(), lesson
        self.session.open_model("smalltalk")
        self.page = self.do(f"/lesson {lesson.number}")

    def do(self, line: str) -> results.LessonPage:
        page = COMMANDS.dispatch(self.session, line)
        assert isinstance(page, results.LessonPage)
        return page

    def learn(self) -> None:
        """Go on to the end of the lesson."""
        while (player := self.session.lesson) is not None:
            match player.due:
                case None:
                    self.page = lessons.go_on(self.session)
                case Question() as question:
                    self.answer(question)
                case LessonLine() as run:
                    self.run(run)

    def answer(self, question: Question) -> None:
        """Type a right answer; one that is to match a pattern stands in the text that is shown afterwards."""
        if question.choices:
            typed = CHOICES[min(question.right)]
        elif question.pattern is not None:
            words = [word.rstrip(".,") for block in question.answer for word in block.text.split()]
            typed = next(word for word in words if question.check(word))
        else:
            typed = "because"
        self.page = lessons.answer(self.session, typed)
        assert self.page.verdict in ("right", "compare:")
        assert self.page.blocks

    def run(self, run: LessonLine) -> None:
        screen = self.see(run.line.replace("--minutes 1", "--minutes 0.4"))
        for note in run.notes:
            if note.startswith(SHOWS):
                assert re.search(note.removeprefix(SHOWS), screen), f"line {run.number}: {run.line} shows {screen}"
        page = lessons.follow(self.session, run.line)
        assert page is not None
        self.page = page

    def see(self, line: str) -> str:
        """Run a line as the REPL does, and return what is on the screen."""
        result: results.Result = results.StreamAnswer(lambda stop: self.session.answer(line, stop))
        if is_command(line):
            result = COMMANDS.dispatch(self.session, line)
        screen = Screen(200, 100)
        match result:
            case results.StreamAnswer():
                *_, last = records = list(result.start(lambda: False))
                assert isinstance(last, Finished)
                return "".join(getattr(record, "text", getattr(record, "name", "")) for record in records)
            case results.ParallelAnswers():
                return "".join(getattr(record, "text", "") for _, record in result.start(lambda: False))
            case results.TokenBrowser():
                draw(screen.terminal(), result.bars_at(result.index))
            case results.GuessingGame():
                game = result.start()
                for _ in range(5):
                    assert game.give_up()
            case results.Plot():
                assert all(curve.training for curve in result.curves)
                return " ".join(curve.split for curve in result.curves) + " loss"
            case results.WatchRun():
                self.wait(result)
            case _:
                draw(screen.terminal(), result)  # type: ignore[arg-type]
        return "\n".join(screen.lines)

    def wait(self, watched: results.WatchRun) -> None:
        """Wait for the end of a run, and open its model as the REPL does."""
        assert watched.process is not None
        assert watched.process.wait(PATIENCE) == 0
        end = time.monotonic() + PATIENCE
        while not isinstance(last := list(watched.run.events())[-1], Ended):
            assert time.monotonic() < end
        finish_training(self.session, watched.run, last, watched.process)


def test_there_are_twelve() -> None:
    assert len(ALL) == 12
    assert len({lesson.name for lesson in ALL}) == 12


@pytest.mark.parametrize("lesson", ALL, ids=lambda lesson: lesson.name)
def test_each_page_fits_a_small_screen(lesson: Lesson) -> None:
    """From one stop to the next, with the line typed before, nothing scrolls away unread."""
    session, tall = Session(), []
    session.lesson = None
    page = COMMANDS.dispatch(session, f"/lesson {lesson.number}")
    while session.lesson is not None:
        assert isinstance(page, results.LessonPage)
        screen = Screen(COLUMNS, 60)
        draw(screen.terminal(colour=True), page)
        if len(screen.lines) > ROWS - TOOLBAR_AND_PROMPT:
            tall.append(screen.lines)
        page = lessons.lesson.function(session, "next")
    assert tall == []


@pytest.mark.parametrize("lesson", [one for one in ALL if not trains(one)], ids=lambda lesson: lesson.name)
@pytest.mark.slow
def test_a_lesson_works_from_first_to_last(lesson: Lesson, compiled: Path) -> None:
    Learner(lesson).learn()


@pytest.mark.parametrize("lesson", [one for one in ALL if trains(one)], ids=lambda lesson: lesson.name)
@pytest.mark.slow
@pytest.mark.long
def test_a_lesson_that_trains_works_from_first_to_last(lesson: Lesson, compiled: Path) -> None:
    Learner(lesson).learn()


@pytest.mark.slow
@pytest.mark.parametrize("lesson", [one for one in ALL if not trains(one)], ids=lambda lesson: lesson.name)
def test_a_lesson_can_be_resumed_where_it_opens_a_model(lesson: Lesson, compiled: Path) -> None:
    for step, one in enumerate(lesson.steps[1:], start=1):
        if one.opens_model:
            learner = Learner(lesson)
            assert learner.session.lesson is not None
            learner.session.lesson.go_to(step)
            learner.session.lesson.read()
            learner.learn()
