"""The REPL in a real pseudo-terminal, read from its screen as a user would."""

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from screens import Person, answered, in_tmux
from stress import Stress

from tinychat.store.models import find_model

SitDown = Callable[..., Person]

SLOW = {"TINYCHAT_TEST_DELAY": "0.03"}
TOOLBAR = " parrot · temp 0.8 · top-p 0.95 · sample · max 256 · seed –"
CTRL_C, CTRL_D, CTRL_L, CTRL_Z, ESCAPE, ENTER = "\x03", "\x04", "\x0c", "\x1a", "\x1b", "\r"


def follows(mark: str, text: str) -> Callable[[list[str]], bool]:
    """Return a check that `text` follows `mark` in the answer; the mark may split a word, and be on two rows."""
    return lambda lines: text in re.sub(r"\s", "", "".join(lines[3:])).partition(mark.replace(" ", ""))[2]


@pytest.fixture
def counting(sit_down: SitDown) -> Person:
    """A user whose prompt is being answered with ascending numbers."""
    person = sit_down(**SLOW)
    person.type("count", ENTER)
    person.sees(lambda lines: "0 1 2 3" in lines[3])
    return person


def test_the_greeting_the_prompt_the_toolbar_and_an_answer(sit_down: SitDown) -> None:
    person = sit_down()
    lines = person.sees(TOOLBAR)
    assert lines[0] == "tinychat 0.1 · parrot (wordpiece, 3.4M, chat) · cpu · /help"
    assert lines[1] == "try: hello there · /lesson · /model · /train my-novel.txt --minutes 5"
    assert lines[2] == "›"
    person.type("hello there", ENTER)
    lines = person.sees(answered)
    assert lines[2:4] == ["› hello there", "you said: hello there"]
    assert re.fullmatch(r"\d+ tokens · [\d,]+ tok/s · stop: end of turn · seed \d+", lines[4])
    person.type("/seed 7", ENTER)
    person.sees("seed – → 7")
    person.type("again", ENTER)
    person.sees("you said: again", lambda lines: any(line.endswith("stop: end of turn") for line in lines))


@pytest.mark.slow
def test_ctrl_c_clears_the_prompt_and_ctrl_d_leaves(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("nonsense")
    person.sees("› nonsense")
    person.type(CTRL_C)
    person.sees("›", lambda lines: not any("nonsense" in line for line in lines))
    person.type(CTRL_C)
    person.sees("Ctrl-D or /quit leaves")
    person.type("still here", ENTER)
    person.sees("you said: still here", answered)
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
def test_keys_and_a_signal_stop_an_answer_which_is_kept(counting: Person) -> None:
    for stop in (lambda: counting.type(CTRL_C), lambda: counting.type(ESCAPE), lambda: counting.process.kill(2)):
        stop()
        lines = counting.sees(answered)
        answer = lines.index("› count") + 1
        assert lines[answer].startswith("0 1 2 3")
        assert "stop: interrupted" in lines[answer + 1]
        counting.type("/undo", ENTER)
        counting.sees("taken back: 'count'")
        counting.type(CTRL_L, "count", ENTER)
        counting.sees(lambda lines: "taken back: 'count'" not in lines and lines[1].startswith("0 1 2 3"))


@pytest.mark.slow
def test_ctrl_d_during_an_answer_is_ignored(counting: Person) -> None:
    counting.type(CTRL_D, CTRL_D, "\x1a", CTRL_C)
    counting.sees(answered)
    counting.type("still here", ENTER)
    counting.sees("you said: still here")


@pytest.mark.slow
def test_keys_change_the_answer_while_it_is_printed(sit_down: SitDown) -> None:
    person = sit_down(**SLOW)
    person.type("temp", ENTER)
    person.sees(lambda lines: "<0.8>" in lines[3])
    person.type("up")
    person.sees(
        follows("⟨temp 0.9⟩", "<0.9>"),
        lambda lines: lines[-1].startswith("temp 0.9 · top-p 0.95 · sample · "),
    )
    person.type("[")
    person.sees(follows("⟨top-p 0.9⟩", "<0.9>"))
    person.type("g")
    person.sees(follows("⟨temp 0 · greedy⟩", "<0>"))
    person.type("right")
    person.sees(lambda lines: "/272 · " in lines[-1] and " tok/s · context " in lines[-1])
    person.type("?")
    person.sees("esc stop · space pause, → one token · ↑↓ temp · ←→ max · [ ] top-p · g greedy")
    person.type(CTRL_C)
    person.sees(answered, " parrot · temp 0 · top-p 0.9 · greedy · max 272 · seed –")
    person.type("/why 1", ENTER)
    person.sees(lambda lines: any("token 1 of " in line for line in lines))


@pytest.mark.slow
def test_space_pauses_and_resumes(counting: Person) -> None:
    counting.type(" ")
    paused = counting.sees(lambda lines: lines[-1].startswith("paused · temp 0.8 · "))[3]
    counting.type(" ")
    counting.sees(lambda lines: len(lines[3]) > len(paused) + 10)
    counting.type(" ")
    counting.sees(lambda lines: lines[-1].startswith("paused · temp 0.8 · "))
    counting.type(CTRL_C)
    counting.sees(answered)


@pytest.mark.slow
def test_single_steps_while_paused(sit_down: SitDown) -> None:
    person = sit_down(**SLOW)
    person.type("temp", ENTER)
    person.sees(lambda lines: "<0.8>" in lines[3])
    person.type(" ")
    paused = person.sees(lambda lines: lines[-1].endswith("space goes on · → one token"))[3]
    person.type("right")
    once = person.sees(lambda lines: len(lines[3]) > len(paused))[3]
    person.type("up", "right")
    person.sees(
        lambda lines: re.fullmatch(rf"{re.escape(once)}\S{{0,3}}⟨temp 0.9⟩\S{{1,3}}", lines[3]),
        lambda lines: lines[-1].startswith("paused · temp 0.9 · "),
    )
    person.type(ESCAPE)
    person.sees(answered)


@pytest.mark.slow
def test_slow_limits_the_tokens_per_second(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/slow 20", ENTER, "/max 20", ENTER)
    person.sees(lambda lines: lines[-1].startswith(" parrot · ") and lines[-1].endswith("slow 20"))
    person.type("count", ENTER)
    began = time.monotonic()
    person.sees(answered)
    assert time.monotonic() - began >= 19 / 20 - 0.1
    person.type("/slow 0.1", ENTER, "/max 200", ENTER, "count", ENTER)
    person.sees(lambda lines: lines[-1].startswith("temp 0.8 · "))
    person.type(CTRL_C)  # takes effect although the next token is ten seconds away
    person.sees(lambda lines: sum("stop: interrupted" in line for line in lines) == 1)


@pytest.mark.slow
def test_typeahead_goes_to_the_prompt(counting: Person) -> None:
    counting.type("a great big thingg", "\x7f", ENTER, "and half")
    counting.sees(lambda lines: lines[-1] == "› and half")
    counting.type(CTRL_C)
    counting.sees("› a great big thing", "you said: a great big thing", "› and half")


@pytest.mark.slow
def test_a_command_typed_during_an_answer_acts_at_once(sit_down: SitDown) -> None:
    person = sit_down(**SLOW)
    person.type("temp", ENTER)
    person.sees(lambda lines: "<0.8>" in lines[3])
    person.type("/temp 1.5", ENTER)
    person.sees(lambda lines: "<1.5>" in "".join(lines[3:]))
    person.type("/temp hot", ENTER)
    person.sees(lambda lines: lines[-1].startswith("temperature takes a number from 0 to 100, not 'hot'"))
    person.type(CTRL_C)
    person.sees(answered)


@pytest.mark.slow
def test_keys_pressed_before_the_prompt_are_not_lost(sit_down: SitDown, model: Path, home: Path) -> None:
    person = Person(model, home)
    person.type("hello", ENTER)
    person.sees("› hello", "you said: hello")
    person.kill()


@pytest.mark.slow
def test_a_pasted_block_is_one_prompt(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("\x1b[200~one\rtwo\rthree\x1b[201~")
    person.sees("› one", "… two", "… three")
    person.type(ENTER)
    lines = person.sees(answered)
    assert lines[5:8] == ["you said: one", "two", "three"]


@pytest.mark.slow
def test_colours_pasted_without_brackets_are_left_out(sit_down: SitDown, tmp_path: Path) -> None:
    """prompt_toolkit takes `ESC [31m` for an event of the mouse, and failed on it."""
    person = sit_down()
    person.type("\x1b[31m", "red \x1b[0;1mtwo\x1b[0m \x1b[38;5;196mthree\x1b[<0;1;1M", ENTER)
    person.sees("› red two three", "you said: red two three", answered)
    (tmp_path / "talk.txt").write_text("other")
    person.type(f"/export {tmp_path}/talk.txt", ENTER)
    person.sees(lambda lines: any(line.endswith("replace it? [y/N]") for line in lines))
    person.type("\x1b[31my\x1b[0m", ENTER)
    person.sees(lambda lines: any(line.startswith("written: ") for line in lines))
    person.type(CTRL_L, "/play once upon a time", ENTER)
    person.sees(lambda lines: lines[-1].startswith(" \\n is a new line") or " Enter tells" in lines[-1])
    person.type("\x1b[31m", "/quit", ENTER)
    person.sees("nothing was guessed")
    assert b"Exception" not in person.raw
    assert b"Traceback" not in person.raw


@pytest.mark.slow
def test_new_lines_by_ctrl_j_alt_enter_and_blocks(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("one", "\n", "two", ESCAPE + ENTER, "three", ENTER)
    person.sees("you said: one", "two", "three", answered)
    person.type('"""', ENTER, "/a", ENTER, "b", ENTER, '"""', ENTER)
    lines = person.sees("you said: /a", "b", answered)
    assert lines[lines.index("you said: /a") + 1] == "b"


@pytest.mark.slow
def test_a_typo_gets_the_nearest_command_and_the_toolbar_follows_a_setting(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/tempreature 2", ENTER)
    lines = person.sees("did you mean /temperature?")
    assert lines[2:5] == ["› /tempreature 2", "there is no command /tempreature", "did you mean /temperature?"]
    person.type("/temperature 1.2", ENTER)
    person.sees("temperature 0.8 → 1.2", TOOLBAR.replace("0.8", "1.2"))
    person.type("/temperature hot", ENTER)
    person.sees("temperature takes a number from 0 to 100, not 'hot'")


@pytest.mark.slow
def test_two_slashes_are_a_prompt_with_one(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("//nothing", ENTER)
    person.sees("you said: /nothing", answered)
    person.type("//quit", ENTER)  # a word that is a command without a slash is sent without one
    person.sees("you said: quit", answered)


@pytest.mark.slow
def test_completions_show_bounds_and_meaning(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/mod")
    person.sees(lambda lines: any(line.strip().startswith("/models ") for line in lines))
    person.type("\t", " par")
    person.sees(lambda lines: any(line.strip().startswith("parrot  (wordpiece") for line in lines))
    person.type("\t")
    person.sees("› /model parrot")
    person.type(ENTER)
    person.sees("parrot (wordpiece, 3.4M, chat) is open: say something")
    person.type("/temperature ")
    person.sees(
        lambda lines: any(line.strip() == "0.8    now · 0 to 100 · higher: more random" for line in lines),
        lambda lines: any(line.strip() == "1      the model's own probabilities" for line in lines),
    )


@pytest.mark.slow
def test_the_ruler_counts_tokens_typed_and_left(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("hello there")
    person.sees(lambda lines: re.fullmatch(r" parrot · .* max 256 +\d+ tokens · 506 left", lines[-1]))
    person.type(CTRL_C)
    person.sees(TOOLBAR)
    person.type("/help")
    person.sees("› /help", TOOLBAR)
    person.type(CTRL_C, "\x1b[200~" + "hello\r" * 2000 + "\x1b[201~!")
    person.sees(lambda lines: lines[-1].endswith(" too many"), "… !")


@pytest.mark.slow
def test_function_keys(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/undo", "\x1bOP")
    person.sees("/undo [N]", "  Remove the last prompt and answer, or the last N; `/goto` returns to them.", "› /undo")
    person.type("\x1bOQ")
    person.sees(TOOLBAR.replace("0.8", "0").replace("sample", "greedy"))
    person.type(CTRL_C, "\x1bOS", "one two")
    person.sees(lambda lines: " vi insert · " in lines[-1])
    person.type(ESCAPE)
    person.sees(lambda lines: " vi navigation · " in lines[-1])
    person.type("0dw", "i", ENTER)
    person.sees("you said: two")


@pytest.mark.slow
def test_the_prompt_opens_in_an_editor_and_a_missing_one_is_reported(sit_down: SitDown, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'one\\ntwo\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    person = sit_down(EDITOR=str(editor), VISUAL="")
    person.type("zero ", "\x18\x05")
    person.sees("› zero one", "… two")
    person = sit_down(EDITOR="nowhere", VISUAL="")
    person.type("zero", "\x18\x05")
    person.sees("EDITOR is 'nowhere', which is no program here", "set it to an editor", "› zero")


@pytest.mark.slow
def test_history_outlives_the_session(sit_down: SitDown) -> None:
    first = sit_down()
    first.type("remember me", ENTER)
    first.sees("you said: remember me", answered)
    first.type("/quit", ENTER)
    assert first.wait_for_exit() == 0
    second = sit_down()
    assert second.lines[1] == "›"  # the hint is shown only the first time
    second.type("up", "up")
    second.sees("› remember me")
    second.type(CTRL_C, "\x12", "memb")
    second.sees(lambda lines: any("remember me" in line for line in lines))


@pytest.mark.slow
def test_control_sequences_in_an_answer_are_escaped(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("escape", ENTER)
    lines = person.sees(answered)
    assert lines[3] == "a␛[31mred␇ b    c"
    assert b"\x1b[31m" not in person.raw


def test_an_error_does_not_end_the_session(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("fail", ENTER)
    lines = person.sees("train it again")
    assert lines[3:5] == ["the model gave NaN or infinite logits", "train it again"]
    person.type("bug", ENTER)
    person.sees("unexpected ValueError: a bug", "`tinychat --debug` shows where")
    person.type("hello", ENTER)
    person.sees("you said: hello")


@pytest.mark.slow
def test_an_impossible_file_name_is_reported_in_a_line(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("hello", ENTER, f"/save {'x' * 300}", ENTER)
    person.sees(lambda lines: "File name too long" in " ".join(lines))
    assert b"unexpected" not in person.raw


def spins(text: str) -> Callable[[list[str]], bool]:
    """Return a condition: a line has had two pictures of a spinner before a text."""
    pictures = set()

    def has_turned(lines: list[str]) -> bool:
        pictures.update(line[0] for line in lines if line[2:] == text)
        return len(pictures) > 1

    return has_turned


@pytest.mark.slow
def test_waiting_for_a_model_can_be_interrupted(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_TEST_LOADING="60")
    person.type("hello", ENTER)
    person.sees(spins("parrot is loading · esc stop"))
    person.type(CTRL_C)
    person.sees(lambda lines: lines[3].startswith("0 tokens · stop: interrupted"), "›")
    person.type("/temperature 1", ENTER)
    person.sees("temperature 0.8 → 1")
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
@pytest.mark.parametrize("facts", [{}, {"TERM": "dumb"}])
def test_a_command_that_waits_for_a_model_spins_and_can_be_interrupted(
    sit_down: SitDown, facts: dict[str, str]
) -> None:
    person, text = sit_down(TINYCHAT_TEST_LOADING="60", **facts), "parrot is loading · Ctrl-C gives the prompt back"
    person.type("/score hello", ENTER)
    person.sees(text if facts else spins(text))
    person.type(CTRL_C)
    lines = person.sees("stopped", ">" if facts else "›")
    assert [line for line in lines if "is loading" in line] == ([text] if facts else [])
    person.type("/temperature 1", ENTER)
    person.sees("temperature 0.8 → 1", ">" if facts else "›")
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
def test_reading_a_text_to_play_with_can_be_interrupted(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/play tales", ENTER)  # its program, which Ctrl-C reaches too, takes many seconds
    person.sees(spins("the text to guess is on its way · Ctrl-C gives the prompt back"))
    person.type(CTRL_C)
    lines = person.sees("stopped", "›")
    assert lines[2:5] == ["› /play tales", "stopped", "›"], lines
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
def test_torch_loads_on_while_the_prompt_is_back(home: Path) -> None:
    person = Person(find_model("smalltalk"), home, TINYCHAT_TEST_TORCH="1")
    person.sees("›")
    person.type("/seed 1", ENTER, "hello", ENTER)
    person.sees(answered)
    person.type("/lens 1", ENTER)
    person.sees(spins("torch is loading · Ctrl-C gives the prompt back"))
    person.type(CTRL_C)
    person.sees("stopped")
    person.type("hello again", ENTER)
    person.sees("› hello again", answered)
    person.type("/lens 1", ENTER)
    person.sees(lambda lines: any(line.startswith("downwards, each row adds") for line in lines))
    person.type("/attention 1 1", ENTER)
    person.sees(lambda lines: any(line.startswith("layer 1") for line in lines))
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/seed 2", "seed 1 → 2"),
        ("/why", "any other key ends"),
        ("/steps", "q ends"),
        ("/slow 1", "slow – → 1"),
        ("/compare temperature=0.2,0.8", "2 · temp 0.8"),
    ],
)
def test_it_ends_when_its_terminal_is_closed(home: Path, line: str, shown: str) -> None:
    """A process went on for ever, at full speed, while it showed something that waits for keys."""
    person = Person(find_model("smalltalk"), home, hangs_up=False, TINYCHAT_TEST_TORCH="1")
    person.sees("›")
    person.type("/seed 1", ENTER, "hello", ENTER)
    person.sees(answered)
    person.type(CTRL_L, line, ENTER)
    person.sees(lambda lines: any(shown in one for one in lines))
    if line.startswith("/slow"):
        person.type("tell me a story", ENTER)
        person.sees(lambda lines: any("tok/s · context" in one for one in lines))
    person.close_terminal()


@pytest.mark.slow
def test_wide_characters_wrap_without_loss(sit_down: SitDown) -> None:
    person = sit_down(columns=64)
    person.type("/seed 7", ENTER, "wide", ENTER)
    lines = person.sees(answered)
    first = next(position for position, line in enumerate(lines) if line.startswith("你"))
    assert "".join("".join(line.split()) for line in lines[first : first + 4]) == "你好" * 60
    person.type("你好吗", "\x7f", ENTER)
    person.sees("you said: 你好")


@pytest.mark.slow
def test_scrolling_text_is_complete_above_the_status_line(sit_down: SitDown) -> None:
    person = sit_down(columns=60, rows=10)
    person.type("/seed 7", ENTER, "/max 400", ENTER, "count", ENTER)
    lines = person.sees(answered)
    text = "".join(line.ljust(60) for line in lines[: next(i for i, line in enumerate(lines) if "tokens ·" in line)])
    numbers = [int(word) for word in re.findall(r"\d+", text.rpartition("count")[2])][1:-1]
    assert len(numbers) > 80
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(100, 30), (100, 16), (66, 24)])
def test_the_window_may_be_resized_during_an_answer(sit_down: SitDown, columns: int, rows: int) -> None:
    person = sit_down(**SLOW)
    person.type("lines", ENTER)
    person.sees("line 0", "line 1")
    person.resize(columns, rows)
    person.sees(lambda lines: lines[-1].startswith("temp 0.8 · top-p 0.95 · sample · "), "line 4")
    person.type(CTRL_C)
    lines = person.sees(answered, lambda lines: lines[-1].startswith(TOOLBAR[:20]))
    assert sum("top-p" in line for line in lines) == 1


@pytest.mark.slow
def test_the_window_may_be_resized_many_times_during_an_answer(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_TEST_DELAY="0.005")
    draw = random.Random(1)
    person.type("/max 400", ENTER, "lines", ENTER)
    person.sees("line 0", "line 1")
    for number in range(3, 43):
        person.resize(draw.randint(20, 120), draw.randint(3, 40))
        if number % 4 == 0:
            person.sees(lambda lines, number=number: f"line {number}" in lines)
    person.type(CTRL_C)
    person.resize(80, 24)
    person.sees(answered)
    answer = person.screen.everything
    answer = answer[answer.index("› lines") + 1 :]
    count = next(index for index, line in enumerate(answer) if " tokens · " in line)
    assert count > 40
    assert answer[: count - 1] == [f"line {number}" for number in range(count - 1)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
@pytest.mark.parametrize(("prompt", "seed"), [("lines", 1), ("count", 2)])
def test_a_terminal_that_wraps_lines_anew_shows_an_answer_once(model: Path, home: Path, prompt: str, seed: int) -> None:
    """In tmux, which wraps the lines of a resized window anew, also those that have scrolled off."""
    with in_tmux(model, home, TINYCHAT_TEST_DELAY="0.01") as tmux:
        draw = random.Random(seed)
        tmux.type("/max 1000", "/help", prompt)
        for _ in range(30):
            tmux.resize(draw.randint(25, 104), draw.randint(8, 37))
            time.sleep(draw.uniform(0, 0.15))
        tmux.press("C-c")
        text = tmux.sees(lambda text: "stop: interrupted" in text)
    answer = text.partition(f"› {prompt}\n")[2].partition(" tokens · ")[0]
    numbers = [int(number) for number in re.findall(r"\d+", answer)[:-2]]
    assert len(numbers) > 20
    assert numbers == list(range(len(numbers)))
    assert "top-p" not in answer


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_an_answer_wraps_at_words_and_stays_one_line(model: Path, home: Path) -> None:
    """tmux shows where rows end, and joins those of a line as it does when they are copied."""
    with in_tmux(model, home) as tmux:
        tmux.resize(44, 20)
        prompt = "hello there you said 0123456789 you said hello there, " * 4 + "end"
        tmux.run("send-keys", prompt, "Enter")
        answer = f"you said: {prompt}"
        joined = tmux.sees(lambda text: "stop: end of turn" in text)
        assert answer in map(str.rstrip, joined.split("\n"))
        rows = tmux.run("capture-pane", "-p").partition("\nyou said:")[2].partition(" tokens · ")[0].split("\n")[:-1]
        assert len(rows) >= len(answer) / 44
        assert " ".join(["you said:" + rows[0], *rows[1:]]) == answer


@pytest.mark.slow
@pytest.mark.parametrize("facts", [{"NO_COLOR": "1"}, {"TINYCHAT_THEME": "none"}])
def test_without_colour_there_is_none(sit_down: SitDown, facts: dict[str, str]) -> None:
    person = sit_down(**facts)
    person.type("/tem")
    person.sees(lambda lines: any(line.strip().startswith("/temperature ") for line in lines))
    person.type(CTRL_C)
    person.type("hello", ENTER)
    person.sees(answered)
    person.type("/help", ENTER)
    person.sees(lambda lines: any("/help COMMAND says more" in line for line in lines))
    assert re.search(rb"\x1b\[[0-9;]*[1-9][0-9;]*m", person.raw) is None


@pytest.mark.slow
def test_help_fits_one_screen(sit_down: SitDown) -> None:
    person = sit_down()
    person.type("/help", ENTER)
    lines = person.sees(TOOLBAR, lambda lines: any("/help COMMAND says more" in line for line in lines))
    assert "› /help" in lines
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.slow
def test_sigterm_restores_the_terminal(counting: Person) -> None:
    counting.process.kill(15)
    assert counting.wait_for_exit() == 143
    end = counting.raw[counting.raw.rindex(b"tok/s") :]
    assert end.index(b"\x1b[J") < end.index(b"\x1b[?2004l")


@pytest.mark.slow
@pytest.mark.long
def test_random_keys_break_nothing(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_TEST_DELAY="0.001")
    lines = (
        "count",
        "temp",
        "lines",
        "wide",
        "fail",
        "hello",
        "//x",
        "/nonsense",
        "/help",
        "/settings",
        "/why",
        "/undo",
    )
    lines += ("/retry", "/continue", "/clear", "/edit", "/temp 1", "/max 50", "/model parrot", "/tokens x")
    keys = [f"{line}{ENTER}" for line in lines] + list("g[]? ab\t\x7f\n\x12\x15\x01\x05é你") + [CTRL_C, ESCAPE, ENTER]
    keys += ["up", "down", "left", "right", "\x1b[200~a\rb\x1b[201~"]
    chosen = random.Random(0)
    for _ in range(50):
        person.type(*chosen.choices(keys, k=20))
        person.read_pending()
    person.type(*[CTRL_C] * 40, "/clear", ENTER, "/max 50", ENTER, "the end", ENTER)
    person.sees(lambda lines: any(line.startswith("you said: the end") for line in lines))
    assert b"unexpected" not in person.raw
    assert b"Traceback" not in person.raw


@pytest.mark.slow
@pytest.mark.long
def test_random_keys_while_text_streams_break_nothing(tmp_path: Path) -> None:
    Stress(tmp_path, seed=1).run(300)


@pytest.mark.slow
def test_ctrl_z_suspends_an_answer_and_the_shell_continues_it(sit_down: SitDown) -> None:
    person = sit_down(in_shell=True, **SLOW)
    person.type("count", ENTER)
    person.sees(lambda lines: "0 1 2 3" in lines[3])
    person.type(CTRL_Z)
    lines = person.sees("the shell is back")
    assert not any("esc stop" in line or "top-p 0.95 · sample · " in line for line in lines[4:])
    person.type(ENTER)
    person.sees(lambda lines: lines[-1].startswith("temp 0.8 · top-p 0.95 · sample · "))
    person.type(ESCAPE)
    person.sees(answered, lambda lines: lines[-1].startswith(TOOLBAR[:20]))
    text = " ".join(person.lines).partition("count")[2]
    numbers = [int(number) for number in re.findall(r"\b\d+\b", text.partition("the shell")[0])]
    assert numbers[:4] == [0, 1, 2, 3]


LESSON = """\
# Own: a lesson

## One

```tinychat
hello there
```

> How many?
> - [ ] one
> - [x] two
>
> Two.
"""


@pytest.mark.slow
def test_enter_leads_through_a_lesson_and_other_lines_work_meanwhile(sit_down: SitDown, tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(LESSON)
    person = sit_down()
    person.type(f"/lesson {tmp_path}/own.md", ENTER)
    person.sees("┃     ▸ hello there", "› Enter runs it · Tab edits it")
    person.type("/seed 7", ENTER)
    person.sees("seed – → 7", "› Enter runs it · Tab edits it")
    person.type(ENTER)
    person.sees("› hello there", "you said: hello there", "? a or b · Enter shows the answer")
    person.type("a", ENTER)
    person.sees("┃ not quite: look again, or press Enter for the answer")
    person.type("//why", ENTER)
    person.sees("you said: /why")
    person.type("b", ENTER)
    person.sees("┃ right", "┃ Two.", "› Enter ends the lesson")
    person.sees(lambda lines: any(line.startswith(" Own, step 1 of 1 │ parrot · ") for line in lines))
    person.type(ENTER)
    lines = person.sees("┃ ✓ Own is done", TOOLBAR)
    assert "› Enter ends the lesson" not in lines
    assert "›" not in lines[: lines.index("┃ ✓ Own is done")], "what Enter leaves behind is erased"


@pytest.mark.slow
def test_a_lesson_in_plain_lines(sit_down: SitDown, tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(LESSON)
    person = sit_down(TERM="dumb")
    person.type(f"/lesson {tmp_path}/own.md", ENTER)
    person.sees("One, step 1 of 1", "`hello there`", "Enter runs it")
    person.type(ENTER)
    person.sees("> hello there", "you said: hello there", "a or b · Enter shows the answer", "answer>")
    person.type("b", ENTER)
    person.sees("right", "Two.", "Enter ends the lesson")
    person.type(ENTER)
    person.sees("✓ Own is done")
