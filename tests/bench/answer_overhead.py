"""What recording and drawing an answer costs per token, without a model: `python tests/bench/answer_overhead.py`.

    --rounds N    of which the quickest counts; 5 by default

A row for each length of an answer, in it microseconds of processor time per token. Figures that stay the same from row
to row are those of work that is linear in the answer; if they double with its length, the work is quadratic.

    record   each token recorded in its turn, all with the same settings
    paced    the same after `/slow`: settings that say the same of the tokens as those that the answer began with
    player   one answer, written forward over its status line
    columns  two answers side by side, half of the tokens each, drawn after every 50 tokens
    fit      the whole answer cut to one line

To compare with another commit, run this file on the package of that one, on the same machine:

    git worktree add ../other COMMIT
    PYTHONPATH=../other python tests/bench/answer_overhead.py

Where that commit has other names for what is measured, its own version of this file knows them.
"""

import argparse
import io
import time
from collections.abc import Callable

from prompt_toolkit.input import create_pipe_input

from tinychat.commands.results import StreamAnswer
from tinychat.config.settings import Settings
from tinychat.events import Finished, Token
from tinychat.repl.answer_view import AnswerView
from tinychat.repl.comparison_view import GrowingText, columns
from tinychat.repl.keys import Keyboard
from tinychat.repl.render.terminal import Terminal, fit
from tinychat.session.conversation import Turn
from tinychat.session.session import Session

LENGTHS = (1_000, 2_000, 4_000, 8_000)
WORDS = (" the", " sea", " is", " wide", ",", " and", " ships", " go", " by", ".")
WIDTH, HEIGHT = 80, 24
TOKENS_PER_DRAWING = 50
"""as at 1,000 tokens a second"""


def record(tokens: list[Token], settings: Settings | None = None) -> None:
    """Records tokens in a turn; settings are those that it began with, or others."""
    begun = Settings()
    turn, settings = Turn("hello", settings=begun), settings or begun
    for token in tokens:
        turn.record(token, settings)


def record_paced(tokens: list[Token]) -> None:
    """Records tokens after a change of the pace."""
    record(tokens, Settings(slow=1000.0))


def play(tokens: list[Token]) -> None:
    """Writes one answer to a terminal that nobody sees."""
    session = Session()
    session.open_model("smalltalk")
    session.conversation.add(Turn("hello", tokens=tokens))
    finished = Finished("length", len(tokens), 1.0, 1)
    terminal = Terminal(io.TextIOWrapper(io.BytesIO(), "utf-8"), lambda: (WIDTH, HEIGHT), colour=True)
    with create_pipe_input() as keys:
        answer = StreamAnswer(lambda should_stop: iter([*tokens, finished]))
        AnswerView(answer, session, terminal, Keyboard(keys)).play()


def draw_columns(tokens: list[Token]) -> None:
    """Draws two answers side by side while they grow."""
    texts = GrowingText(), GrowingText()
    for number, token in enumerate(tokens, 1):
        texts[number % 2].append(token.text)
        if number % TOKENS_PER_DRAWING == 0:
            columns(("1", "2"), texts, WIDTH - 1, HEIGHT - 2)


def cut(tokens: list[Token]) -> None:
    """Cuts an answer to one line."""
    fit("".join(token.text for token in tokens), WIDTH)


WAYS: dict[str, Callable[[list[Token]], None]] = {
    "record": record, "paced": record_paced, "player": play, "columns": draw_columns, "fit": cut,
}  # fmt: skip


def measure(way: Callable[[list[Token]], None], length: int, rounds: int) -> float:
    """Microseconds of processor time per token, in the quickest round."""
    tokens = [Token(1, WORDS[index % len(WORDS)], -1.0, 0.0) for index in range(length)]
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        way(tokens)
        seconds.append(time.process_time() - began)
    return min(seconds) / length * 1e6


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("tokens  " + "".join(f"{name:>9}" for name in WAYS))  # noqa: T201
    for length in LENGTHS:
        figures = "".join(f"{measure(way, length, rounds):9.3f}" for way in WAYS.values())
        print(f"{length:6,}  {figures}")  # noqa: T201


if __name__ == "__main__":
    main()
