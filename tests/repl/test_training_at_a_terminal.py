"""Training from within the REPL with a real trainer process, its dashboard, and chatting with the trained model."""

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from screens import Person

SitDown = Callable[..., Person]

pytestmark = pytest.mark.slow

SMALL = (
    "--name tiny --tokenizer char --n-layer 1 --n-head 1 --d-model 16 --context-length 16 --batch-size 8 "
    "--sample-tokens 20"
)
KEYS = "b background · s sample now · p prompt · e evaluate now · q stop and keep"
ENTER = "\r"


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "text.txt"
    path.write_text("the quick brown fox jumps over the lazy dog. " * 400)
    return path


@pytest.fixture
def person(sit_down: SitDown, text: Path) -> Person:
    return sit_down(TINYCHAT_TEST_TORCH="1")


def has(*words: str) -> Callable[[list[str]], bool]:
    """Return a condition: some line contains all the words."""
    return lambda lines: any(all(word in line for word in words) for line in lines)


def test_train_on_a_text_and_chat_with_the_model(person: Person) -> None:
    person.type(f"/train text.txt --steps 60 {SMALL}", ENTER)
    person.sees(KEYS)
    person.sees(has("tiny (char, ", "is open: type how a text begins"), has("done at step 60"))
    assert KEYS not in person.lines
    person.type("/max 8", ENTER, "/seed 1", ENTER, "the", ENTER)
    person.sees(has("8 tokens", "stop: max tokens"))
    person.type("/why 3", ENTER)
    person.sees(has("token 3 of 8", "entropy"))
    person.type("/show", ENTER)
    person.sees(has("│ ⊕─╯ add"), has("in all"))
    person.type("/quit", ENTER)
    assert person.wait_for_exit() == 0


def test_a_text_that_is_piped_in_at_a_terminal_is_trained_on(text: Path, tmp_path: Path) -> None:
    call = f"cat {text.name} | {sys.executable} -m tinychat train - --steps 3 --sample-prompt the {SMALL}"
    env = os.environ | {"TINYCHAT_HOME": str(tmp_path / "home"), "TERM": "xterm-256color"}
    shown, code = pexpect.run(f"bash -o pipefail -c '{call}'", withexitstatus=True, timeout=120, env=env)
    assert code == 0, shown.decode()
    assert b"done at step 3" in shown


def test_resizing_while_training_starts_leaves_what_was_typed_on_screen(person: Person) -> None:
    person.type(f"/train text.txt --minutes 3 {SMALL}", ENTER)
    person.sees("reading the text, starting torch…")
    draw = random.Random(1)
    while not has("step ", " % · ")(person.lines):
        person.resize(draw.randint(45, 120), draw.randint(12, 40))
        person.read_pending()
    person.resize(100, 40)  # a low screen scrolls the end of the run away
    person.type("q", "y")
    person.sees(has("stopped at step"))
    assert sum("/train text.txt" in line for line in person.screen.everything) == 1
    assert sum("starting torch" in line or "b background" in line for line in person.screen.everything) == 0


def test_leave_a_run_in_the_background_attach_to_it_and_stop_it(person: Person) -> None:
    person.type(f"/train text.txt --minutes 3 {SMALL}", ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("b")
    person.sees("tiny trains on in the background")
    person.type("/runs", ENTER)
    person.sees(has("tiny", "at work"))
    person.type("/attach", ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("\x03")
    person.sees(has("stopped at step"), has("tiny (char, ", "is open"))


def test_ctrl_z_suspends_the_dashboard_while_the_run_goes_on(sit_down: SitDown, text: Path) -> None:
    person = sit_down(in_shell=True, TINYCHAT_TEST_TORCH="1")
    person.type(f"/train text.txt --minutes 3 {SMALL}", ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("\x1a")
    lines = person.sees("the shell is back")
    assert KEYS not in lines
    person.type(ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("q", "y")
    person.sees(has("stopped at step"), has("tiny (char, ", "is open"))


def test_chat_with_a_model_while_it_trains_quit_and_find_it_again(person: Person, sit_down: SitDown) -> None:
    person.type(f"/train text.txt --minutes 3 {SMALL} &", ENTER)
    person.sees("tiny trains on in the background")
    person.sees(has("tiny trains: step ", "│ tiny · "))  # the toolbar: weights are available
    person.type("/max 8", ENTER, "the", ENTER)
    person.sees(has("8 tokens", "tiny (training, step "))
    person.type("/when the", ENTER)
    person.sees("step 0", has("tokens", "stop: max tokens", "tiny (training, step "))
    person.type("/quit", ENTER)
    person.sees("tiny trains on; tinychat finds it again")
    assert person.wait_for_exit() == 0
    again = sit_down(TINYCHAT_TEST_TORCH="1")
    again.sees(has("tiny", "/attach, /model tiny"))
    again.type("/model tiny", ENTER)
    again.sees(has("tiny (char, ", "is open"))
    again.type("/finish", ENTER)
    again.sees(has("tiny stops after its step"), has("tiny is stopped: step ", "it answers now"))


def test_what_is_typed_for_the_prompt_waits_until_the_run_is_left(person: Person) -> None:
    person.type(f"/train text.txt --minutes 3 {SMALL}", ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("/quit")
    person.sees("› /quit▏", "Enter keeps it for the prompt · Esc forgets it")
    person.type(ENTER)
    person.sees("kept for the prompt; b leaves the run for it", KEYS)
    person.type("q")
    person.sees("stop and keep the model? y/n")
    person.type("n", "b")
    person.sees("tiny trains on in the background", "tiny trains on; tinychat finds it again")
    assert person.wait_for_exit() == 0


def test_sample_a_new_prompt_and_request_an_evaluation(person: Person) -> None:
    person.type(f"/train text.txt --minutes 3 {SMALL}", ENTER)
    person.sees(has("step ", " % · "), KEYS)
    person.type("p", "lazy q", "\x7f", "dog")
    person.sees("prompt for samples: lazy dog▏")
    person.type(ENTER)
    person.sees(has("sample at step"), has("lazy dog"), KEYS)
    person.type("e")
    person.sees(has(" val "), has("◆"))  # or a part of it, on a busy machine
    person.type("q", "y")
    person.sees(has("stopped at step"), has("overfits  "), has("sample 3  "), has("tiny (char, ", "is open"))


def test_a_missing_text_is_reported_briefly(person: Person) -> None:
    person.type("/train nowhere.txt", ENTER)
    person.sees(has("there is no file", "'nowhere.txt'"), "›")
    assert "Traceback" not in "\n".join(person.lines)
    assert KEYS not in person.lines


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_inspect_a_trained_model(
    sit_down: SitDown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, rows: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    person = sit_down(TINYCHAT_TEST_TORCH="1", columns=columns, rows=rows)
    person.type(f"/train text.txt --steps 60 {SMALL}", ENTER)
    person.sees(has("done at step 60"))
    person.type("/max 12", ENTER, "/seed 1", ENTER, "the", ENTER)
    person.sees(has("12 tokens", "stop: max tokens"))
    for line, *words in (
        ("/attention", "attention, by layer and head"),
        ("/attention 1 1", "layer 1"),
        ("/lens 2", "token 2 of 12"),
        ("/copied", "word for word"),
        ("/color", "perplexity"),
        ("/plot", "loss by steps"),
        ("/tree", "/goto N goes to a turn"),
    ):
        person.type("\x0c", line, ENTER)  # on an empty screen
        person.sees(has(*words), lambda lines: "¶" in lines)
    assert b"unexpected" not in person.raw
