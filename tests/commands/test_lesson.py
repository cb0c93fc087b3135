"""`/lesson`: starting, going on, answering and leaving; a teacher's own lessons."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from scripted import Talk, make_model

from tinychat.commands import lesson as lessons
from tinychat.commands.results import LessonPage, Message, Table
from tinychat.errors import UsageError
from tinychat.events import Ended, Failed, to_json
from tinychat.session.lesson import list_lessons
from tinychat.store.runs import RunFolder

OWN = """\
# Own: one of a teacher's (3 minutes)

Hello.

## Say it

```tinychat
/temperature 0.3
hello there
```

After it.

> How many?
> - [ ] one
> - [x] two
>
> Two.

## Open it

```tinychat
/model parrot
```

> Why?
>
> Because.
"""


@pytest.fixture
def own(talk: Talk) -> Talk:
    Path("own.md").write_text(OWN)
    return talk


def start(talk: Talk, line: str = "/lesson own.md") -> LessonPage:
    result = talk.do(line)
    assert isinstance(result, LessonPage)
    return result


def texts(page: LessonPage | None) -> list[str]:
    assert page is not None
    return [block.text for block in page.blocks]


def test_the_list_shows_all_lessons_and_the_progress(own: Talk) -> None:
    table = own.do("/lesson")
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == [str(number) for number in range(1, 13)]
    assert all(row[-1] == "" for row in table.rows)
    start(own, "/lesson 1")
    lessons.lesson.function(own.session, "next")
    lessons.lesson.function(own.session, "next")
    table = own.do("/lesson")
    assert isinstance(table, Table)
    assert table.rows[0][0] == "›"
    assert table.rows[0][-1].startswith("at 2 of ")
    assert own.do("/lesson forget") == Message(("all progress in lessons is forgotten",))
    table = own.do("/lesson")
    assert isinstance(table, Table)
    assert table.rows[0][0] == table.rows[0][-1] == ""


@pytest.mark.parametrize("typed", ["2", "guessing", "GUESS"])
def test_a_lesson_is_found_by_its_number_name_or_beginning(talk: Talk, typed: str) -> None:
    page = start(talk, f"/lesson {typed}")
    assert page.heading is not None
    assert page.heading[0].startswith("Guessing: ")
    assert talk.session.lesson is not None
    assert talk.session.lesson.lesson.number == 2


@pytest.mark.parametrize(
    ("typed", "problem", "remedy"),
    [
        ("99", "there is no lesson 99", "they are 1 to 12"),
        ("tokns", "there is no lesson 'tokns'", "did you mean tokens?"),
        ("none.md", "none.md cannot be read: No such file or directory", "docs/teaching.md tells"),
        ("off", "no lesson is going on", "`/lesson` lists them"),
        ("back", "no lesson is going on", "`/lesson` lists them"),
    ],
)
def test_what_cannot_be_started_is_said(talk: Talk, typed: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        talk.do(f"/lesson {typed}")
    assert caught.value.problem == problem
    assert caught.value.remedy.startswith(remedy)


def test_a_lesson_from_first_to_last(own: Talk) -> None:
    session = own.session
    page = start(own)
    assert (page.heading, texts(page), page.due) == (("Own: one of a teacher's", "step 1 of 3"), ["Hello."], None)
    page = lessons.go_on(session)
    assert page.heading == ("Say it", "step 2 of 3")
    assert lessons.line_on_enter(session) == "/temperature 0.3"
    own.do("/temperature 0.3")
    assert lessons.follow(session, "/temperature 0.3") is not None
    assert lessons.line_on_enter(session) == "hello there"
    own.ask("hello there")
    assert texts(lessons.follow(session, "hello there")) == ["After it."]
    assert lessons.is_asking(session)
    assert lessons.answer(session, "x").verdict == "one of a, b; `//text` asks the model"
    wrong = lessons.answer(session, "a")
    assert (wrong.is_right, wrong.blocks) == (False, ())
    right = lessons.answer(session, "b")
    assert (right.verdict, texts(right), right.due) == ("right", ["Two."], None)
    lessons.go_on(session)
    own.do("/model parrot")
    assert lessons.follow(session, "/model parrot") is not None
    assert lessons.answer(session, "it is so").verdict == "compare:"
    end = lessons.go_on(session)
    assert end.verdict == "✓ Own is done"
    assert session.lesson is None
    table = own.do("/lesson")
    assert isinstance(table, Table)
    again = start(own)
    assert again.heading == ("Own: one of a teacher's", "step 1 of 3")


def test_people_may_try_their_own_and_do_other_things_meanwhile(own: Talk) -> None:
    session = own.session
    start(own)
    lessons.go_on(session)
    own.do("/tokens hello")
    assert lessons.follow(session, "/tokens hello") is None
    own.ask("hi")
    assert lessons.follow(session, "hi") is None
    own.do("/temp 0.9")
    assert lessons.follow(session, "/temp 0.9") is not None
    assert lessons.follow(session, "!ls") is None
    own.ask("something else")
    assert lessons.follow(session, "something else") is not None


@pytest.mark.parametrize(
    ("due", "line", "is_asked_for"),
    [
        ("/temperature 0.3", "/temp hot", True),
        ("/temperature 0.3", "/lesson tempratur", False),
        ("/temperature 0.3", "/nosuch", False),
        ("/temperature 0.3", "hello", False),
        ("hello there", "hi", True),
        ("hello there", "/nosuch", False),
        ("hello there", "!ls", False),
    ],
)
def test_a_line_may_be_what_a_lesson_asks_for(own: Talk, due: str, line: str, is_asked_for: bool) -> None:
    assert not lessons.asks_for(own.session, line)
    start(own)
    assert not lessons.asks_for(own.session, line)
    while lessons.line_on_enter(own.session) != due:
        own.do("/lesson next")
    assert lessons.asks_for(own.session, line) is is_asked_for


@pytest.fixture
def background(own: Talk, make_run: Callable[..., RunFolder]) -> Iterator[RunFolder]:
    """A run that a line of a lesson has just started in the background."""
    Path("own.md").write_text("# Own\n\n```tinychat\n/train small.txt\n```\n\nLook at it.\n\n```tinychat\n/show\n```\n")
    start(own)
    run = make_run("zz")
    with FileLock(run.lock_file):
        own.session.runs.add(run, None)
        page = lessons.follow(own.session, "/train small.txt --name zz &")
        assert page == LessonPage(notes=("the lesson waits until zz is trained",))
        yield run


def end(run: RunFolder) -> Path:
    """Let a run end, and return the folder of its model."""
    folder = make_model(run.path.parent.parent / "models", run.name)
    run.events_file.write_text(to_json(Ended("done", 10, 1.7, 5.5, 2.5, 60.0, str(folder))) + "\n")
    return folder


def test_a_lesson_waits_for_a_run_in_the_background_and_goes_on_with_its_model(
    own: Talk, background: RunFolder
) -> None:
    session = own.session
    assert lessons.follow(session, "/attach") is None  # it was left again
    own.ask("hello")
    assert lessons.follow(session, "hello") is None
    assert lessons.hint(session) == "Enter shows the training"
    assert lessons.line_on_enter(session) == "/attach zz"
    folder = end(background)
    assert (lessons.hint(session), lessons.line_on_enter(session)) == ("Enter goes on", "")
    assert texts(lessons.go_on(session)) == ["Look at it."]
    assert session.model.info.folder == folder
    assert lessons.line_on_enter(session) == "/show"


def test_a_lesson_goes_on_when_the_run_that_it_waits_for_has_been_watched_to_its_end(
    own: Talk, background: RunFolder
) -> None:
    session, folder = own.session, end(background)
    assert lessons.follow(session, "/runs") is None
    session.open_model(str(folder))
    own.ask("hello")
    assert texts(lessons.follow(session, "/attach zz")) == ["Look at it."]
    assert session.turns, "the open model is not opened again"


def test_a_lesson_asks_again_for_a_run_that_failed_and_waits_no_more_elsewhere(
    own: Talk, background: RunFolder
) -> None:
    own.do("/lesson next")
    assert lessons.line_on_enter(own.session) == "/show"
    own.do("/lesson restart")
    assert lessons.line_on_enter(own.session) == "/train small.txt"
    assert lessons.follow(own.session, "/train small.txt &") is not None
    assert lessons.line_on_enter(own.session) == "/attach zz"
    background.events_file.write_text(to_json(Failed("there is no memory", "")) + "\n")
    assert lessons.line_on_enter(own.session) == "/train small.txt"
    assert lessons.hint(own.session) == "Enter runs it · Tab edits it"


def test_several_right_choices_are_asked_for_as_such(own: Talk) -> None:
    Path("own.md").write_text("# Own\n\n> Which?\n> - [x] one\n> - [ ] two\n> - [x] three\n>\n> Odd ones.\n")
    start(own)
    assert lessons.hint(own.session) == "a, b, c: all that are right · Enter shows the answer"
    assert lessons.answer(own.session, "x").verdict == "some of a, b, c; `//text` asks the model"
    assert not lessons.answer(own.session, "a").is_right
    assert lessons.answer(own.session, "c a").verdict == "right"


def test_enter_shows_the_answer_and_next_goes_on_without(own: Talk) -> None:
    session = own.session
    start(own)
    for _ in range(3):
        own.do("/lesson next")
    page = lessons.go_on(session)
    assert (page.verdict, texts(page)) == ("answer: b", ["Two."])


def test_back_begins_the_step_again_or_the_one_before(own: Talk) -> None:
    session = own.session
    start(own)
    lessons.go_on(session)
    own.do("/lesson next")
    for heading in (("Say it", "step 2 of 3"), ("Own: one of a teacher's", "step 1 of 3")):
        page = own.do("/lesson back")
        assert isinstance(page, LessonPage)
        assert page.heading == heading


def test_settings_wait_until_the_lesson_is_left(own: Talk) -> None:
    session = own.session
    own.do("/temperature 1.5")
    page = start(own)
    assert page.notes == ("the settings that you changed come back when the lesson ends",)
    assert session.settings.current.temperature != 1.5
    own.do("/top-k 3")
    own.do("/model other")
    left = own.do("/lesson off")
    assert isinstance(left, Message)
    assert left.lines == ("you left the lesson at step 1 of 3",)
    assert left.notes[-1] == "/model parrot opens the model from before the lesson"
    assert (session.settings.current.temperature, session.settings.current.top_k) == (1.5, None)


def test_the_model_is_loaded_with_the_settings_of_the_lesson_and_again_with_ones_own(own: Talk) -> None:
    own.do("/threads 1")
    engine = own.session.model.engine
    start(own)
    inside = own.session.model.engine
    own.do("/lesson off")
    assert len({engine, inside, own.session.model.engine}) == 3


def test_one_lesson_after_another_comes_back_to_what_was_before_the_first(own: Talk) -> None:
    own.do("/temperature 1.5")
    start(own)
    own.do("/model other")
    assert start(own, "/lesson 1").notes == ("the settings that you changed come back when the lesson ends",)
    left = own.do("/lesson off")
    assert isinstance(left, Message)
    assert left.notes[-1] == "/model parrot opens the model from before the lesson"
    assert own.session.settings.current.temperature == 1.5


def test_a_lesson_goes_on_where_its_model_is_opened(own: Talk) -> None:
    start(own)
    for _ in range(5):
        own.do("/lesson next")
    own.do("/lesson quit")
    page = start(own)
    assert page.heading == ("Open it", "step 3 of 3")
    assert page.notes == ("it goes on where its model is opened · /lesson restart begins again",)
    page = start(own, "/lesson restart")
    assert page.heading == ("Own: one of a teacher's", "step 1 of 3")


def test_private_sessions_keep_no_progress(own: Talk, home: Path) -> None:
    own.session.ui_options.set("private", "true")
    start(own)
    assert not (home / "lessons.json").exists()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/tokns x", "own.md, line 8: there is no command /tokns"),
        ("/temperature hot", "own.md, line 8: temperature takes "),
        ("/lesson 3", "own.md, line 8: a lesson cannot lead into another one"),
        ("!rm -r x", "own.md, line 8: a lesson runs no programs"),
    ],
)
def test_a_line_that_cannot_run_is_found_before_the_lesson_starts(own: Talk, line: str, problem: str) -> None:
    Path("own.md").write_text(OWN.replace("/temperature 0.3", line))
    with pytest.raises(UsageError) as caught:
        start(own)
    assert caught.value.problem.startswith(problem)
    assert own.session.lesson is None


def test_names_words_and_files_are_completed(own: Talk) -> None:
    assert own.completions("lesson", "tok")["tokens"].startswith("1 · ")
    assert "off" not in own.completions("lesson", "")
    assert "own.md" in own.completions("lesson", "ow")
    start(own)
    assert "off" in own.completions("lesson", "")


def test_hints_say_what_enter_does(own: Talk) -> None:
    session = own.session
    assert lessons.hint(session) == ""
    start(own)
    hints = []
    while session.lesson is not None:
        hints.append(lessons.hint(session))
        if lessons.line_on_enter(session):
            own.do("/lesson next")
        else:
            lessons.go_on(session)
    assert hints == [
        "Enter goes on", "Enter runs it · Tab edits it", "Enter runs it · Tab edits it",
        "a or b · Enter shows the answer", "Enter goes on", "Enter runs it · Tab edits it",
        "your answer · Enter shows ours", "Enter ends the lesson",
    ]  # fmt: skip


@pytest.mark.parametrize("one", list_lessons(), ids=lambda one: one.name)
def test_every_line_of_our_lessons_can_run(one: lessons.Lesson) -> None:
    lessons.check_lines(one, Path(one.name))
    assert one.title
    assert one.about
    assert one.minutes in range(3, 7)
    assert one.steps[0].opens_model or one.steps[1].opens_model
