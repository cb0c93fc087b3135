"""`/lesson`: lessons that run in the REPL itself, and what Enter, an answer or a typed line means to a lesson."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tinychat.commands.registry import (
    PREFIX,
    Command,
    Registry,
    Suggestion,
    command,
    complete_paths,
    first_word,
    is_command,
    is_shell_line,
    to_path,
)
from tinychat.commands.results import LessonPage, Message, Result, Table
from tinychat.config.option import Origin
from tinychat.config.settings import SETTINGS
from tinychat.errors import TinychatError, UsageError
from tinychat.events import Ended, Failed
from tinychat.session.lesson import (
    CHOICES,
    SUFFIX,
    Lesson,
    LessonLine,
    LessonPlayer,
    LessonProgress,
    Question,
    list_lessons,
    read_lesson,
    read_progress,
    resume_step,
    save_progress,
)
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.textutil import count

WORDS = {
    "next": "go on, also without what is asked",
    "back": "read the step before again",
    "restart": "begin the lesson again",
    "off": "leave the lesson; what you have done is kept",
    "forget": "forget all progress, as for the next class",
}
WITHOUT = "/lesson next goes on without the line that the lesson asks for"
LEAVE = ("off", "quit", "exit", "stop")


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    yield from (Suggestion(lesson.name, f"{lesson.number} · {lesson.about}") for lesson in list_lessons())
    if session.lesson is not None:
        yield from (Suggestion(word, about) for word, about in WORDS.items())
    yield from (one for one in complete_paths(session, words) if one.text.endswith(("/", SUFFIX)))


@command(
    "lesson", "session", "how models work", usage="[N|NAME|FILE|next|back|restart|off|forget]", example="/lesson 1",
    aliases=("lessons",), complete=first_word(_complete),
)  # fmt: skip
def lesson(session: Session, text: str) -> Result:
    """Learn how a language model works: list the lessons with your progress, or start one.

    A lesson runs here, in the REPL: Enter runs what it asks you to type and goes on. Whatever else you type works as
    ever. `/lesson next` goes on without what is asked, `back` returns to the step before, `restart` begins again, `off`
    leaves; your place is kept. `/lesson forget` forgets all progress. FILE is a lesson of your own, in Markdown.
    """
    word = text.lower()
    if not text:
        return _list(session)
    if word == "forget":
        _leave(session)
        save_progress({})
        return Message(("all progress in lessons is forgotten",))
    if word not in (*WORDS, *LEAVE):
        return _start(session, _find(text))
    player = _player(session)
    if word in LEAVE:
        place, name = player.position, _typed_name(player.lesson)
        notes = _leave(session)
        return Message((f"you left the lesson at {place}",), (f"/lesson {name} goes on with it", *notes))
    if word == "next":
        return _after_item(session, player)
    player.go_to(0 if word == "restart" else max(0, player.step - (player.item == _beginning(player))))
    return _begin_step(session, player)


def _player(session: Session) -> LessonPlayer:
    if session.lesson is None:
        raise UsageError("no lesson is going on", "`/lesson` lists them, `/lesson 1` starts the first")
    return session.lesson


def _typed_name(lesson: Lesson) -> str:
    return str(lesson.number) if lesson.number else lesson.name


def _list(session: Session) -> Table:
    progress, current = read_progress(), session.lesson
    rows = []
    for one in list_lessons():
        is_here = current is not None and current.lesson.name == one.name
        minutes = str(one.minutes or "")
        rows.append(("›" if is_here else "", str(one.number), one.name, one.about, minutes, _describe(one, progress)))
    if current is not None:
        note = "Enter goes on with the lesson · /lesson off leaves it"
    else:
        note = "/lesson 1 or its name starts one · /lesson FILE takes one of your own"
    return Table(("", "", "lesson", "about", "min", ""), tuple(rows), right=(1, 4), notes=(note,))


def _describe(lesson: Lesson, progress: dict[str, LessonProgress]) -> str:
    known = progress.get(lesson.name, LessonProgress())
    if known.step:
        return f"{'done, ' * known.is_done}at {min(known.step + 1, len(lesson.steps))} of {len(lesson.steps)}"
    return "done" if known.is_done else ""


# --- starting and leaving ---------------------------------------------------------------------------------------------


def _find(text: str) -> Lesson:
    """Return the lesson of a number, a name, the beginning of a name, or a file.

    Raises:
        UsageError: If there is none, or the file is no lesson.
    """
    lessons = list_lessons()
    word = text.lower()
    for one in lessons:
        if word in (one.name, str(one.number)):
            return one
    path = to_path(text)
    if path.is_file() or path.suffix.lower() == SUFFIX or "/" in text:
        own = read_lesson(path)
        check_lines(own, path)
        return own
    found = [one for one in lessons if one.name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if text.isdecimal():
        raise UsageError(f"there is no lesson {text}", f"they are 1 to {len(lessons)}")
    near = difflib.get_close_matches(word, [one.name for one in lessons], n=1)
    raise UsageError(f"there is no lesson {text!r}", f"did you mean {near[0]}?" if near else "`/lesson` lists them")


def check_lines(read: Lesson, path: Path) -> None:
    """Check that every line to run is a prompt, or a command that exists, with a value that its setting takes.

    Raises:
        UsageError: If one is not, with the number of its line.
    """
    commands = _commands()
    for run in read.runs:
        try:
            if is_shell_line(run.line):
                raise UsageError("a lesson runs no programs", "leave it to the reader to type this")
            if not is_command(run.line):
                continue
            command, text = commands.split(run.line)
            if command is lesson:
                raise UsageError("a lesson cannot lead into another one", "name it in the text instead")
            setting = SETTINGS.get(command.name.replace("-", "_"))
            if setting is not None and text:
                setting.parse(text)
        except TinychatError as error:
            raise UsageError(f"{path.name}, line {run.number}: {error.problem}", error.remedy) from None


def _start(session: Session, lesson: Lesson) -> LessonPage:
    """Start a lesson, or go on with it; meanwhile settings are as nobody has changed them."""
    notes = []
    before, model = session.lesson, _open_model(session)
    _leave(session)
    known = read_progress().get(lesson.name)
    values = session.settings.values(Origin.COMMAND)
    player = LessonPlayer(lesson, resume_step(lesson, known), values, before.model if before else model)
    session.lesson = player
    if player.settings:
        _replace_settings(session, {})
        notes.append("the settings that you changed come back when the lesson ends")
    if player.step:
        notes.append("it goes on where its model is opened · /lesson restart begins again")
    return replace(_begin_step(session, player), notes=tuple(notes))


def _leave(session: Session) -> tuple[str, ...]:
    """Leave the lesson, if any, with the settings as before it, and return what to tell."""
    player = session.lesson
    if player is None:
        return ()
    session.lesson = None
    _replace_settings(session, player.settings)
    if player.model in (None, _open_model(session)):
        return ()
    return (f"/model {player.model} opens the model from before the lesson",)


def _replace_settings(session: Session, values: Mapping[str, object]) -> None:
    """Make these the only settings that commands have changed."""
    current = session.settings.current
    session.settings.replace(values, Origin.COMMAND)
    session.reload_model(current)


def _open_model(session: Session) -> str | None:
    return session.model.reference if session.info else None


def _save(session: Session, player: LessonPlayer, *, is_done: bool = False) -> None:
    if session.ui_options.current.private:
        return
    progress = read_progress()
    name = player.lesson.name
    was_done = progress.get(name, LessonProgress()).is_done
    progress[name] = LessonProgress(0 if is_done else player.step, is_done or was_done)
    save_progress(progress)


# --- going on ---------------------------------------------------------------------------------------------------------


def line_on_enter(session: Session) -> str:
    """Return the line that Enter alone runs; empty where Enter goes on, or there is no lesson."""
    player = session.lesson
    if player is None or not isinstance(due := player.due, LessonLine):
        return ""
    if (run := _awaited(player)) is None:
        return due.line
    return f"/attach {run.run.typed_name}" if run.last is None else ""


def hint(session: Session, *, plain: bool = False) -> str:
    """Return what Enter alone does, such as `Enter goes on`; empty without a lesson; plain mode has no Tab for it."""
    player = session.lesson
    if player is None:
        return ""
    match player.due:
        case LessonLine() if (run := _awaited(player)) is not None:
            return "Enter shows the training" if run.last is None else "Enter goes on"
        case LessonLine():
            return "Enter runs it" if plain else "Enter runs it · Tab edits it"
        case Question(choices=choices, right=right) if choices:
            *letters, last = list(CHOICES[: len(choices)])
            if len(right) > 1:
                return f"{', '.join(letters)}, {last}: all that are right · Enter shows the answer"
            return f"{', '.join(letters)} or {last} · Enter shows the answer"
        case Question():
            return "your answer · Enter shows ours"
    return "Enter goes on" if player.step + 1 < len(player.lesson.steps) else "Enter ends the lesson"


def is_asking(session: Session) -> bool:
    """Return whether a lesson waits for an answer."""
    return session.lesson is not None and isinstance(session.lesson.due, Question)


def is_answer(session: Session, line: str) -> bool:
    """Return whether a line answers the question of a lesson: it is no command, and no prompt such as `//text`."""
    return is_asking(session) and not (line.startswith(PREFIX) or is_command(line) or is_shell_line(line))


def go_on(session: Session) -> LessonPage:
    """Go on after Enter: show the answer of a question, or the next step; open the model of a run waited for.

    Raises:
        UsageError: If no lesson is going on.
        ModelError: If that model is gone.
    """
    player = _player(session)
    ended = player.run.last if player.run else None
    if isinstance(ended, Ended) and (session.info is None or str(session.info.folder) != ended.folder):
        session.choose_model(ended.folder)
    return _after_item(session, player)


def asks_for(session: Session, line: str) -> bool:
    """Return whether a line is what the lesson waits for.

    A prompt counts for any prompt, and a command for the same command with other arguments: people try their own.
    """
    due = session.lesson.due if session.lesson else None
    if not isinstance(due, LessonLine) or is_shell_line(line) or is_command(line) is not is_command(due.line):
        return False
    return _commands().command_of(line) is _commands().command_of(due.line)


def follow(session: Session, line: str) -> LessonPage | None:
    """Go on after a line has been run, if it is what the lesson waits for; return None if it is not.

    A run that trains on in the background is waited for: what comes next is about its model.
    """
    player = session.lesson
    if player is None:
        return None
    command = _commands().command_of(line)
    if (run := _awaited(player)) is not None:
        is_over = run.last is not None and command is _commands()["attach"]
        return go_on(session) if is_over else None
    if not asks_for(session, line):
        return None
    if command is _commands()["train"] and (run := session.runs.followed) is not None:
        player.run = run
        return LessonPage(notes=(f"the lesson waits until {run.run.name} is trained",))
    return _after_item(session, player)


def _awaited(player: LessonPlayer) -> BackgroundRun | None:
    """Return the run that the lesson waits for, as it is now; None if it has failed, so that it has to be run again."""
    if player.run is None:
        return None
    player.run.poll()
    return None if isinstance(player.run.last, Failed) else player.run


def answer(session: Session, typed: str) -> LessonPage:
    """Check an answer to the question of the lesson: go on if it is right, or cannot be checked; else let them try."""
    player = _player(session)
    question = player.due
    assert isinstance(question, Question)
    verdict = question.check(typed)
    if verdict is False or (verdict is None and question.choices):
        if verdict is None:
            letters = ", ".join(CHOICES[: len(question.choices)])
            many = "some" if len(question.right) > 1 else "one"
            return LessonPage(verdict=f"{many} of {letters}; `//text` asks the model", is_right=False)
        return LessonPage(verdict="not quite: look again, or press Enter for the answer", is_right=False)
    return _after_item(session, player, verdict="right" if verdict else "compare:")


def _after_item(session: Session, player: LessonPlayer, verdict: str = "") -> LessonPage:
    """Go beyond what is due, and return what comes then."""
    match player.due:
        case None:
            if player.step + 1 == len(player.lesson.steps):
                return _finish(session, player)
            player.go_to(player.step + 1)
            return _begin_step(session, player)
        case Question(answer=answer) as question:
            letters = ", ".join(CHOICES[index] for index in sorted(question.right))
            verdict = verdict or f"answer: {letters}".removesuffix(" ")
            player.item += 1
            return LessonPage((*answer, *player.read()), player.due, verdict=verdict)
    player.item += 1
    return LessonPage(player.read(), player.due)


def _begin_step(session: Session, player: LessonPlayer) -> LessonPage:
    lesson, step = player.lesson, player.lesson.steps[player.step]
    _save(session, player)
    title = step.title or f"{lesson.title}: {lesson.about}".removesuffix(": ")
    return LessonPage(player.read(), player.due, heading=(title, player.position))


def _finish(session: Session, player: LessonPlayer) -> LessonPage:
    _save(session, player, is_done=True)
    lessons, lesson = list_lessons(), player.lesson
    notes = _leave(session)
    following = next((one for one in lessons if lesson.number and one.number == lesson.number + 1), None)
    if following is not None:
        notes = (f"next: /lesson {following.number} · {following.title}: {following.about}", *notes)
    elif lesson.number:
        notes = (f"these were all {count(len(lessons), 'lesson')}: /lesson lists them", *notes)
    return LessonPage(verdict=f"✓ {lesson.title} is done", notes=notes)


def _beginning(player: LessonPlayer) -> int:
    """Return the index of the first item of a step that is waited at."""
    items = player.lesson.steps[player.step].items
    return next((index for index, item in enumerate(items) if isinstance(item, LessonLine | Question)), len(items))


def _commands() -> Registry:
    from tinychat.commands import COMMANDS  # which is made of this command too

    return COMMANDS


COMMANDS: tuple[Command, ...] = (lesson,)
