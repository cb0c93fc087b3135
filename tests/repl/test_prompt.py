"""The prompt: marks, keys, completion, history and toolbar; the ruler; and the REPL in plain lines."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.output import DummyOutput
from screens import Person, Screen, answered
from scripted import make_model

from tinychat.commands.registry import prompt_of
from tinychat.config.settings import SETTINGS
from tinychat.corpus.types import Message
from tinychat.events import Ended, Failed, Stepped
from tinychat.repl.prompt import (
    MARKS,
    PLAIN_MARKS,
    SYNC_LIMIT,
    CommandCompleter,
    Measure,
    Prompt,
    QuietHistory,
    Ruler,
    describe_run,
    justify,
    mark,
    report_ended,
    shorten_description,
    strip_block,
    toolbar,
)
from tinychat.session.lesson import Block, Lesson, LessonPlayer, Question, Run, Step
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.store.models import MODES
from tinychat.store.runs import RunFolder

SitDown = Callable[..., Person]
CTRL_C, CTRL_D, ENTER, BACKSPACE = "\x03", "\x04", "\r", "\x7f"


def test_each_mode_has_its_own_mark() -> None:
    assert set(MARKS) == set(PLAIN_MARKS) == set(MODES)
    assert len(set(MARKS.values())) == len(set(PLAIN_MARKS.values())) == len(MODES)
    assert all(text.isascii() for text in PLAIN_MARKS.values())


def test_without_a_model_the_mark_is_that_of_a_chat() -> None:
    assert (mark(Session()), mark(Session(), plain=True)) == ("› ", "> ")


@pytest.mark.slow
@pytest.mark.parametrize(("facts", "there", "back"), [({}, "¶", "›"), ({"TERM": "dumb"}, "text>", ">")])
def test_the_mark_changes_with_the_model(
    sit_down: SitDown, home: Path, facts: dict[str, str], there: str, back: str
) -> None:
    make_model(home / "models", "other", mode="completion")
    person = sit_down(**facts)
    person.type("/model other", ENTER)
    person.sees(there)
    person.type("/model parrot", ENTER)
    person.sees(back)


def test_the_progress_and_the_end_of_a_run(session: Session, tmp_path: Path) -> None:
    run, screen = BackgroundRun(RunFolder(tmp_path / "novel")), Screen()
    assert describe_run(run) == "novel is starting"
    run.stepped = Stepped(1480, 0.37, 1.71, 0.01, 0.5, 48_000.0, 60.0, 62.0, 4000)
    assert describe_run(run) == "novel trains: step 1,480/4,000 · loss 1.71 · 1:02 left"
    for last in (
        Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "elsewhere"),
        Ended("stopped", 1500, 1.7, 5.5, 2.5, 60.0, str(session.model.info.folder)),
        Ended("done", 9, 1.7, 5.5, 2.5, 60.0, "elsewhere", overfits_since=5, training_loss=1.25),
        Ended("done", 9, 1.7, 5.5, 2.5, 60.0, "elsewhere", best_step=0, start="old", start_loss=1.7),
        Failed("there is no memory", "take less"),
    ):
        run.last = last
        report_ended([run], session, screen.terminal())
    assert screen.lines == [
        "novel is done: step 4,000, loss 1.700 · /model novel talks to it",
        "novel is stopped: step 1,500, loss 1.700 · it answers now",
        "novel is done: step 9, loss 1.700 · /model novel talks to it",
        "overfits: yes, since step 5, whose weights are kept: train loss is 1.2500, val",
        "0.45 above it",
        "novel is done: step 9, loss 1.700 · /model novel talks to it",
        "start: old had val 1.7000, and no step made that better: its weights are kept",
        "novel: there is no memory",
        "take less",
    ]


@pytest.fixture
def ask(session: Session, tmp_path: Path, input: PipeInput) -> Callable[..., str]:
    prompt = Prompt(session, Screen().terminal(), tmp_path / "new" / "history", input=input, output=DummyOutput())

    def ask(keys: str, text: str = "") -> str:
        input.send_text(keys)
        return prompt.ask(text)

    return ask


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\r", "hello"),
        ("  unstripped \r", "  unstripped "),
        ("one\ntwo\r", "one\ntwo"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        ("\x1b[200~one\rtwo\x1b[201~\r", "one\ntwo"),
        ('"""one\rtwo"""\r', "one\ntwo"),
        ('"""\rone\r\r"""\r', "one\n"),
        ('"""/help"""\r', "///help"),
        ('"""/x"""\r', "//x"),
        ('"""help"""\r', "//help"),
        ("nonsense\x03sense\r", "sense"),
    ],
)
def test_keys_edit_the_prompt(ask: Callable[..., str], keys: str, text: str) -> None:
    assert ask(keys) == text


def test_the_initial_text_can_be_edited(ask: Callable[..., str]) -> None:
    assert ask("\x7f!\r", "hello") == "hell!"


def test_ctrl_d_and_ctrl_c_on_an_empty_line_raise(ask: Callable[..., str]) -> None:
    with pytest.raises(EOFError):
        ask("\x04")
    with pytest.raises(KeyboardInterrupt):
        ask("\x03")


def test_f2_toggles_greedy_decoding(ask: Callable[..., str], session: Session) -> None:
    assert ask("a\x1bOQb\r") == "ab"
    assert session.settings.current.greedy


def test_the_history_file_is_created_when_needed(ask: Callable[..., str], tmp_path: Path) -> None:
    assert not (tmp_path / "new").exists()
    ask("one\ntwo\r")
    assert list(QuietHistory(tmp_path / "new" / "history").load_history_strings()) == ["one\ntwo"]


def test_a_private_session_adds_nothing_to_the_history(tmp_path: Path) -> None:
    QuietHistory(tmp_path / "history").append_string("one")
    history = QuietHistory(tmp_path / "history", private=True)
    history.append_string("two")
    assert list(history.load_history_strings()) == ["one"]


def test_an_unwritable_history_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = QuietHistory(tmp_path / "file" / "history")
    history.append_string("one")
    assert history.get_strings() == ["one"]
    assert list(QuietHistory(tmp_path).load_history_strings()) == []


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("/tem", ["/temperature"]),
        ("/temperature ", ["0.8", "0"]),
        ("/set top-p ", ["0.95", "0.5"]),
        ("/model p", ["parrot"]),
        ("/help tok", ["tokens"]),
        ("/device cu", ["cuda"]),
        ("tem", []),
        ("//tem", []),
        ("/nonsense x", []),
        ("/model parrot x", []),
        ("/undo ", []),
        ("/quit now ", []),
    ],
)
def test_completion(session: Session, line: str, some: list[str]) -> None:
    offered = CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent())
    assert [one.text for one in offered][: len(some) or None] == some


@pytest.mark.parametrize("line", ["/", "/help ", "/set ", "/reset ", *(f"/{name} " for name in SETTINGS)])
def test_a_menu_cuts_nothing_at_80_columns(session: Session, line: str) -> None:
    offered = list(CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent()))
    longest = max(len(one.display_text) for one in offered)
    for one in offered:
        assert len(one.display_meta_text) <= 80 - 1 - (longest + 2) - 2  # prompt_toolkit's scroll bar and spaces
        assert not one.display_meta_text.endswith("…")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "Take one, two or all of them: the first, or more (or fewer)."),
        (59, "Take one, two or all of them: the first, or more"),
        (40, "Take one, two or all of them"),
        (20, "Take one"),
        (7, "some"),
    ],
)
def test_a_description_ends_at_a_clause(width: int, shown: str) -> None:
    about = "Take one, two or all of them: the first, or more (or fewer)."
    assert shorten_description(about, "some", width) == shown


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("/train my", r"my\ novel.txt"),
        (r"/train my\ n", r"my\ novel.txt"),
        ('/train "my n', '"my novel.txt"'),
        ("/train 'my ", "'my novel.txt'"),
        ("/train it", '"it\'s.txt"'),
        ('/save "texts ', '"texts of mine/'),
        ("/open plain.txt texts", r"texts\ of\ mine/"),
    ],
)
def test_names_with_spaces_are_quoted_as_begun(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts of mine").mkdir()
    for name in ("my novel.txt", "it's.txt", "plain.txt"):
        (tmp_path / name).touch()
    (offered,) = CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent())
    assert offered.text == typed
    assert line[: len(line) + offered.start_position].endswith(" ")


def test_the_toolbar_shows_the_settings_in_force(session: Session) -> None:
    assert toolbar(session) == "parrot · temp 0.8 · top-p 0.95 · sample · max 256 · seed –"
    for name, value in (("temperature", 0), ("top_k", 40), ("seed", 7), ("stop", "x")):
        session.settings.set(name, value)
    assert toolbar(session) == "parrot · temp 0 · top-k 40 · top-p 0.95 · greedy · max 256 · seed 7 · stop 'x'"
    assert toolbar(Session()).startswith("no model · ")


# --- the ruler ---


class WaitingRuler:
    """A ruler whose measures from a thread are waited for."""

    def __init__(self, session: Session) -> None:
        self._measured = threading.Event()
        self.ruler = Ruler(session, self._measured.set)

    def measure(self, text: str) -> Measure:
        self._measured.clear()
        measure = self.ruler.update(text)
        if measure is None or len(text) > SYNC_LIMIT:
            assert self._measured.wait(60)
            measure = self.ruler.update(text)
        assert measure is not None
        return measure


@pytest.fixture
def waiting(session: Session) -> WaitingRuler:
    return WaitingRuler(session)


def test_tokens_of_the_text_and_room_left(session: Session, waiting: WaitingRuler) -> None:
    measure = waiting.measure("hello there")
    template, tokenizer = session.model.prompt_encoder.template, session.model.tokenizer
    assert template is not None
    whole = template.encode([Message("user", "hello there")], tokenizer, for_answer=True)
    assert measure.tokens == len(tokenizer.encode("hello there"))
    assert measure.left == 512 - len(whole)
    assert not measure.drops_turns


def test_the_conversation_takes_room_until_its_oldest_turns_are_dropped(
    session: Session, waiting: WaitingRuler
) -> None:
    alone = waiting.measure("hello")
    list(session.answer("hello"))
    assert waiting.measure("hello").left == alone.left  # the conversation is measured once for each prompt
    waiting.ruler.reset()
    after = waiting.measure("hello")
    assert after.left < alone.left
    assert not after.drops_turns
    assert waiting.measure("hello " * 280).drops_turns


def test_a_text_that_is_too_long(session: Session, waiting: WaitingRuler) -> None:
    assert waiting.measure("hello " * 1000).text.endswith(" too many")


@pytest.mark.parametrize("mode", ["completion", "translation"])
def test_modes_without_turns_count_no_conversation(session: Session, home: Path, mode: str) -> None:
    session.open_model(str(make_model(home / "models", mode, mode=mode)))
    waiting = WaitingRuler(session)
    measure = waiting.measure("hello")
    assert measure.left == 512 - measure.tokens - 1  # the end token, before or after it


def test_unknown_characters_are_listed_and_highlighted(session: Session, home: Path) -> None:
    folder = make_model(home / "models", "letters", mode="completion")
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    Tokenizer(train_vocabulary("char", ["abc"], None, ["<|end|>"])).save(folder / "tokenizer.json")
    session.open_model(str(folder))
    waiting = WaitingRuler(session)
    measure = waiting.measure("abжc\nλ")
    assert measure.text == "3 tokens · 508 left · unknown: \\n λ ж"
    line = TransformationInput(
        BufferControl(Buffer()), Document("abжc\nλ"), 0, lambda index: index, [("", "abжc")], 80, 24
    )
    assert waiting.ruler.apply_transformation(line).fragments == [("", "ab"), (" class:unknown", "ж"), ("", "c")]


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [("hello", "hello"), ("/temp 1", ""), ("//x", "/x"), ('"""\n/a\n"""', "/a"), ("", ""), ('"""/help', "/help")],
)
def test_only_a_prompt_is_measured(typed: str, prompt: str) -> None:
    assert prompt_of(strip_block(typed)) == prompt


def test_a_long_text_is_measured_in_a_thread(
    session: Session, waiting: WaitingRuler, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.measure("hello")
    threads: list[str] = []
    encode = type(session.model.tokenizer).encode_array

    def record(self: object, text: str) -> object:
        threads.append(threading.current_thread().name)
        return encode(self, text)  # type: ignore[arg-type]

    monkeypatch.setattr(type(session.model.tokenizer), "encode_array", record)
    waiting.measure("hello " * 20)
    waiting.measure("hello " * 20_000)
    assert threads == ["MainThread", "ruler"]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (40, "parrot · temp 0.8 · seed –        2 left"),
        (26, "parrot · temp 0.8   2 left"),
        (12, "      2 left"),
        (4, "2 left"),
    ],
)
def test_justify_drops_the_last_parts_on_the_left(width: int, line: str) -> None:
    assert justify("parrot · temp 0.8 · seed –", "2 left", width) == line


# --- plain lines, for screen readers, slow lines and dumb terminals ---


@pytest.mark.parametrize(
    "facts", [{"TINYCHAT_PLAIN": "1"}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.slow)], ids=["plain", "dumb"]
)
def test_only_plain_text_is_written(sit_down: SitDown, facts: dict[str, str]) -> None:
    person = sit_down(**facts)
    person.type("helo", BACKSPACE, "lo", ENTER)
    person.sees("> hello", "you said: hello", lambda lines: any("stop: end of turn" in line for line in lines))
    person.type("/temp 2", ENTER)
    person.sees("temperature 0.8 → 2")
    person.type('"""one', ENTER, 'two"""', ENTER)
    person.sees("you said: one", "two")
    person.type("/samples 2 count", ENTER)
    person.sees(lambda lines: any("/pick N goes on from one" in line for line in lines))
    ends = {
        "/help": "/help COMMAND says more", "/settings": "theme: dark", "/models": "/model NAME opens",
        "/why": "before sampling, then after temp 2",
        "/color": "perplexity", "/tokens one": "characters",
    }  # fmt: skip
    for command, end in ends.items():
        person.type(command, ENTER)
        person.sees(lambda lines, end=end: any(end in line for line in lines), lambda lines: ">" in lines[-3:])
    person.type(CTRL_C)
    person.sees("Ctrl-D or /quit leaves")
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0
    assert b"\x1b" not in person.raw
    assert re.search("[─━│┃▇▁]", person.raw.decode()) is None


@pytest.mark.slow
def test_completion_and_history_search(sit_down: SitDown) -> None:
    first = sit_down(TINYCHAT_PLAIN="1")
    first.type("remember me", ENTER)
    first.sees("you said: remember me", answered)
    first.type(CTRL_D)
    first.wait_for_exit()
    second = sit_down(TINYCHAT_PLAIN="1")
    second.type("\x12memb")
    second.sees(lambda lines: any("remember me" in line for line in lines))
    second.type(CTRL_C)
    second.sees("Ctrl-D or /quit leaves")
    second.type("/tempe\t ", "\t\t")
    second.sees(lambda lines: any(line.startswith("0.8: now") for line in lines), "> /temperature")


@pytest.mark.slow
def test_keys_still_act_during_an_answer_and_typed_lines_are_kept(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1", TINYCHAT_TEST_DELAY="0.03")
    person.type("temp", ENTER)
    person.sees(lambda lines: any("<0.8>" in line for line in lines))
    person.type("up", "another one", ENTER, "half")
    person.sees(lambda lines: re.search("⟨temp 0.9⟩.*<0.9>", "".join(lines)) is not None)  # the note may split a <0.8>
    person.type(CTRL_C)
    person.sees("> another one", "you said: another one", "> half")


def test_a_pasted_line_longer_than_the_screen_is_complete(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1")
    person.type("hello " * 30 + "there", ENTER)
    person.sees(lambda lines: any(line.endswith("there") and "hello" in line for line in lines))


def test_enter_alone_sends_the_line_of_a_lesson_and_tab_types_it(session: Session, ask: Callable[..., str]) -> None:
    lesson = Lesson("own", "Own", "", (Step("", (Run("/tokens hello", 1), Block("paragraph", "Look."))),))
    session.lesson = LessonPlayer(lesson, 0, {}, None)
    assert ask("\r") == "/tokens hello"
    assert ask("\t there\r") == "/tokens hello there"
    assert ask("my own\r") == "my own"
    session.lesson.item = 2
    assert ask("\r") == ""
    assert toolbar(session).startswith("Own, step 1 of 1 │ parrot · ")


def test_the_mark_says_that_a_lesson_waits_for_an_answer(session: Session) -> None:
    lesson = Lesson("own", "Own", "", (Step("", (Question("Why?", (Block("paragraph", "So."),)),)),))
    session.lesson = LessonPlayer(lesson, 0, {}, None)
    assert (mark(session), mark(session, plain=True)) == ("? ", "answer> ")
