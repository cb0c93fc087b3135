"""Lessons: how they are read from Markdown, what is wrong in them, and the progress that is kept."""

from pathlib import Path

import pytest

from tinychat.errors import UsageError
from tinychat.session.lesson import (
    Block,
    Lesson,
    LessonLine,
    LessonProgress,
    Question,
    list_lessons,
    read_lesson,
    read_progress,
    resume_step,
    save_progress,
)

LESSON = """\
<!-- for the teacher -->
# Tokens: what a model reads (4 minutes)

A paragraph
of two lines.

- a bullet
- another one
  that goes on

## Try it

```tinychat
/tokens hello
hello there
```
<!-- shows hello
     and more -->

```
code   as it is
```

> How many
> are there?
> - [ ] one
> - [x] two
>
> Two.
> - Because.

## Two questions

> How many?
> = 2|two
>
> Two.

> Why?
>
> Well.
"""


def read(text: str) -> Lesson:
    path = Path("own.md")
    path.write_text(text, encoding="utf-8")
    return read_lesson(path)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_lesson_is_read() -> None:
    lesson = read(LESSON)
    assert (lesson.title, lesson.about, lesson.minutes) == ("Tokens", "what a model reads", 4)
    assert lesson.name == str(Path("own.md").absolute())
    first, second, third = lesson.steps
    assert first.items == (
        Block("paragraph", "A paragraph of two lines."),
        Block("bullet", "- a bullet"),
        Block("bullet", "- another one that goes on"),
    )
    *runs, code, question = second.items
    assert runs == [LessonLine("/tokens hello", 14), LessonLine("hello there", 15, ("shows hello\n     and more",))]
    assert code == Block("code", "code   as it is")
    assert isinstance(question, Question)
    assert (question.text, question.choices, question.right) == ("How many are there?", ("one", "two"), {1})
    assert question.answer == (Block("paragraph", "Two."), Block("bullet", "- Because."))
    assert [step.title for step in lesson.steps] == ["", "Try it", "Two questions"]
    assert [isinstance(item, Question) for item in third.items] == [True, True]


@pytest.mark.parametrize(
    ("title", "facts"),
    [
        ("# Tokens", ("Tokens", "", None)),
        ("# Tokens (1 minute)", ("Tokens", "", 1)),
        ("# Tokens (advanced): more of it", ("Tokens (advanced)", "more of it", None)),
    ],
)
def test_a_title_may_have_a_subject_and_a_length(title: str, facts: tuple[str, str, int | None]) -> None:
    lesson = read(f"{title}\n\ntext\n")
    assert (lesson.title, lesson.about, lesson.minutes) == facts


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "own.md has no title: it is no lesson"),
        ("hello\n# T\n", "own.md, line 1: a lesson begins with its title"),
        ("# T\n", "own.md, line 1: a lesson needs something to read or to do"),
        ("# T\n\nx\n\n# U\n", "own.md, line 5: a lesson has one title"),
        ("# T\n\nx\n\n## One\n\n## Two\n\ny\n", "own.md, line 5: the step 'One' is empty"),
        ("# T\n\n```tinychat\n/tokens x\n", "own.md, line 3: the block that begins here is never closed"),
        ("# T\n\n```tinychat\n\n```\n", "own.md, line 3: there is nothing to run in this block"),
        ("# T\n\nx\n\n<!-- y\n", "own.md, line 5: the note that begins here is never closed"),
        ("# T\n\n> Why?\n", "own.md, line 3: the question has no answer"),
        ("# T\n\n>\n> Because.\n", "own.md, line 3: the question is missing"),
        ("# T\n\n> A?\n> - [ ] a\n> - [ ] b\n>\n> c\n", "own.md, line 3: a question takes a right choice"),
        ("# T\n\n> A?\n> - [x] a\n>\n> c\n", "own.md, line 3: a question takes 2 to 9 choices, not 1"),
        (
            "# T\n\n> A?\n> = a\n> - [x] a\n> - [ ] b\n>\n> c\n",
            "own.md, line 3: a question takes choices or a pattern, ",
        ),
        ("# T\n\n> A?\n> = (\n>\n> c\n", "own.md, line 4: the pattern is no regular expression: missing ), "),
        (
            "# T\n\n> A?\n> = [[a]\n>\n> c\n",
            "own.md, line 4: the pattern is ambiguous, a possible nested set at position 1",
        ),
        ("# T\n\n> A?\n> - [x] a\n> - [ ] b\n> c\n", "own.md, line 6: the answer stands below an empty line"),
    ],
)
@pytest.mark.slow
def test_a_mistake_is_told_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert caught.value.problem.startswith(problem)
    assert caught.value.remedy


def test_what_is_no_text_is_no_lesson() -> None:
    Path("own.md").write_bytes(b"# T\xff")
    with pytest.raises(UsageError, match=r"own\.md is no lesson: it is not UTF-8"):
        read_lesson(Path("own.md"))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_lesson(Path("none.md"))


def test_answers_are_checked() -> None:
    _, second, third = read(LESSON).steps
    choice, pattern, free = second.items[-1], *third.items
    assert isinstance(choice, Question)
    assert [choice.check(typed) for typed in ("b", " B) ", "two", "a", "one", "c", "ab", "")] == [
        True, True, True, False, False, None, None, None,
    ]  # fmt: skip
    assert isinstance(pattern, Question)
    assert [pattern.check(typed) for typed in (" 2 ", "TWO", "22")] == [True, True, False]
    assert [pattern.check(typed) for typed in ("2.", "= 2", "=2", "About two.", "about", ".2")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
    assert isinstance(free, Question)
    assert free.check("because") is None


def test_where_several_choices_are_right_all_of_them_are_the_answer() -> None:
    several = Question("?", (), ("one", "two", "three"), frozenset({0, 2}))
    for typed in ("a c", "c,a", "A) and C.", "a, c"):
        assert several.check(typed) is True
    for typed in ("a", "three", "a b", "a b c"):
        assert several.check(typed) is False
    for typed in ("ac", "a d", "and", ""):
        assert several.check(typed) is None
    texts = Question("?", (), ("b a", "a b"), frozenset({1}))
    assert [texts.check(typed) for typed in ("b a", "a b", "a", "b")] == [False, True, False, True]


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("tokens", ("1024", "1,024 tokens", "about 1024."), ("24",)),
        ("temperature", ("100", "100%", "100 %", "100 percent", "100 per cent.", "a hundred", "1"), ("1100%", "10 %")),
        ("by-hand", ("15", "15.", "= 15", "Fifteen."), ("16",)),
        ("training", ("4.08", "about 4,1", "4.12."), ("5",)),
        ("pieces", ("16", "16 tokens.", "sixteen"), ("6",)),
    ],
)
def test_numbers_may_be_typed_as_people_write_them(name: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    lesson = next(one for one in list_lessons() if one.name == name)
    items = [item for step in lesson.steps for item in step.items]
    question = next(item for item in items if isinstance(item, Question) and item.pattern)
    assert [typed for typed in right if not question.check(typed)] == []
    assert [typed for typed in wrong if question.check(typed)] == []


def test_a_choice_may_be_typed_in_words_as_it_stands_there() -> None:
    questions = [item for one in list_lessons() for step in one.steps for item in step.items]
    choices = [(one, choice) for one in questions if isinstance(one, Question) for choice in one.choices]
    assert choices
    assert [choice for question, choice in choices if question.check(choice) is None] == []
    code = Question("?", (), ("It is an `a`.", "`e`"), frozenset({1}))
    assert [code.check(typed) for typed in ("it is an a", "It is an `a`.", "`e`", "e")] == [False, False, True, True]


def test_progress_is_kept_and_damage_counts_as_none(home: Path) -> None:
    assert read_progress() == {}
    save_progress({"tokens": LessonProgress(3), "guessing": LessonProgress(0, is_done=True)})
    assert read_progress() == {"tokens": LessonProgress(3), "guessing": LessonProgress(0, is_done=True)}
    for damaged in ("{", "[]", '{"tokens": 3}', '{"tokens": {"step": "x", "done": true}}'):
        (home / "lessons.json").write_text(damaged)
        assert read_progress() == {}


def test_a_lesson_is_resumed_where_a_model_is_opened() -> None:
    steps = ["text", "```tinychat\n/model tales\n```", "```tinychat\nhello\n```", "```tinychat\n/train x\n```", "end"]
    lesson = read("# T\n\n" + "\n\n".join(f"## {number}\n\n{step}" for number, step in enumerate(steps)))
    assert [resume_step(lesson, LessonProgress(step)) for step in (0, 1, 2, 3, 4, 99, -1)] == [0, 1, 1, 3, 3, 3, 0]
    assert resume_step(lesson, None) == 0
