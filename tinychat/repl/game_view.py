"""The guessing game of `/play`: Shannon's experiment (see `evaluate/shannon_game.py`), played against the model."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.styles import Style

from tinychat.commands import results
from tinychat.config.option import unescape
from tinychat.evaluate.shannon_game import OTHER, Game, Outcome
from tinychat.generate.loading import POLL_INTERVAL, QUIET_SECONDS
from tinychat.repl.keys import CURSOR, INTERRUPT_HINT, base_bindings, show_on_one_line
from tinychat.repl.prompt import PLAIN, ask, read_line
from tinychat.repl.render.palette import DIM, ERROR, GOOD
from tinychat.repl.render.terminal import SEPARATOR, Terminal, fit, spinner, wrap_items
from tinychat.session.session import Session
from tinychat.textutil import count, percent

QUIT = ("/quit", "/q", "/exit")
TYPING = "How does it go on? Type a character and Enter, or several if you are sure."
CHOOSING = "How does it go on? Type a piece or its number, and ! if you are sure, and Enter."
RULES = "Guesses cost bits, right ones few; {name} pays its surprisal. Fewer bits win."
KEYS = ("Enter tells", "Esc ends")
FEW = 30
"""Number of guessed characters below which the winner may just have been lucky."""
MAX_DIGITS = 5
"""Number of digits with which a number is no choice."""
MAX_REST = 200
"""Maximum number of characters shown of the text that was not reached."""


def play(result: results.GuessingGame, session: Session, terminal: Terminal) -> None:
    """Play until the text ends or the player quits, and write who has won.

    Raises:
        TinychatError: If the model cannot be used, or there is no text to guess.
        KeyboardInterrupt: On Ctrl-C before the game begins.
    """
    name = session.model.name
    session.model.wait(lambda: False)  # shows a spinner of its own
    with _turning_spinner(terminal, f"the text to guess is on its way{SEPARATOR}{INTERRUPT_HINT}"):
        game = result.start()
    terminal.line(CHOOSING if game.has_choices else TYPING, DIM)
    terminal.line(RULES.format(name=name), DIM)
    keys = KEYS if game.has_choices else ("\\n is a new line", *KEYS)
    if terminal.dumb:
        terminal.line(SEPARATOR.join([*keys[:-1], "/quit ends"]), DIM)
    if len(game.text) > terminal.width // 2 or "\n" in game.text.strip("\n"):
        terminal.line(game.text.rstrip("\n"))
    ask_after = _make_ask(terminal, keys)
    with suppress(EOFError, KeyboardInterrupt):
        while not game.is_over and (line := _ask_guess(game, ask_after, terminal)).strip() not in QUIT:
            _show_outcomes(_guess(game, line), game, name, terminal)
    _show_result(game, name, terminal)


@contextmanager
def _turning_spinner(terminal: Terminal, text: str) -> Iterator[None]:
    """Show a line with a spinner inside a `with` block that takes a while and writes nothing; a thread turns it."""
    done = threading.Event()

    def run() -> None:
        if not done.wait(QUIET_SECONDS):
            with spinner(terminal, text) as turn:
                while not done.wait(POLL_INTERVAL):
                    turn()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        yield
    finally:
        done.set()
        if thread.is_alive():  # Ctrl-C may come before that
            thread.join()


def _make_ask(terminal: Terminal, keys: Sequence[str]) -> Callable[[str], str]:
    """Return a function that reads a guess, typed after a text."""
    if terminal.dumb:
        return lambda text: read_line(terminal, text + CURSOR)
    bindings = base_bindings()

    @bindings.add("escape", eager=True)
    def end(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    prompt: PromptSession[str] = PromptSession(
        key_bindings=bindings,
        bottom_toolbar=f" {SEPARATOR.join(keys)}",
        style=Style.from_dict(terminal.theme.prompt_styles()) if terminal.colour else PLAIN,
        include_default_pygments_style=False,
        enable_suspend=True,
    )
    prompt.app.renderer.cpr_not_supported_callback = None
    return lambda text: ask(prompt, FormattedText([("class:text", text), ("class:cursor", CURSOR)]))


def _ask_guess(game: Game, ask_after: Callable[[str], str], terminal: Terminal) -> str:
    """Read a guess, typed after the end of the known text, which takes at most half of the line."""
    if game.has_choices:
        choices = [f"{number} {one!r}" for number, one in enumerate(game.choices, 1) if one in game.remaining]
        if OTHER in game.remaining:
            choices.append("0 something else")
        for line in wrap_items(choices, terminal.width - 1):
            terminal.line(line)
    text, room = show_on_one_line(game.text), terminal.width // 2
    return ask_after(text if len(text) <= room else "…" + text[1 - room :])


def _guess(game: Game, line: str) -> list[Outcome]:
    """Return the outcomes of a line; none if the line is not a guess."""
    if not line:
        return game.give_up()
    if not game.has_choices:
        return game.guess(unescape(line))
    sure = line.rstrip().endswith("!") and find_choice(line, game.choices) is None
    choice = find_choice(line.rstrip().removesuffix("!") if sure else line, game.choices)
    return [] if choice is None else game.guess(choice, sure=sure)


def find_choice(typed: str, choices: Sequence[str]) -> str | None:
    """Return the choice that is typed, as its number or as its text, whose outer spaces may be left out."""
    if (number := typed.strip()).isdecimal() and len(number) < MAX_DIGITS and int(number) <= len(choices):
        return choices[int(number) - 1] if int(number) else OTHER
    text = unescape(typed)
    matches = [one for one in choices if one == text] or [one for one in choices if one.strip() == text.strip() != ""]
    return matches[0] if len(matches) == 1 else None


def _show_outcomes(outcomes: Sequence[Outcome], game: Game, name: str, terminal: Terminal) -> None:
    """Write `✓ 'ig' ✗ 't' · bits: you 23.1, talk 19.4 · it gave 'i' 62 %, 'g' 99 %`."""
    if not outcomes:
        terminal.line(f"a piece, or its number from 0 to {len(game.choices)}, or Enter to be told", DIM)
        return
    if right := "".join(one.text for one in outcomes if one.verdict == "right"):
        terminal.write(f"✓ {right!r} ", GOOD)
    for one in outcomes:
        if one.verdict == "wrong":
            terminal.write(f"✗ {one.text!r} " if one.text else "✗ it is one of them ", ERROR)
        elif one.verdict == "revealed":
            terminal.write(f"it was {one.text!r} ")
    words = f"· bits: you {game.bits:.1f}, {name} {game.score.model:.1f}"
    if known := [f"{one.text!r} {percent(one.probability, 0)}" for one in outcomes if one.verdict != "wrong"]:
        words += f"{SEPARATOR}it gave {', '.join(known)}"
    terminal.write(fit(words, terminal.width - 1 - terminal.column), DIM)
    terminal.fresh_line()


def _show_result(game: Game, name: str, terminal: Terminal) -> None:
    """Write the rest of the text, the bits per character of both, and who has won."""
    score = game.score
    if game.rest:
        terminal.line(f"it goes on: {game.rest[:MAX_REST]}{'…' if len(game.rest) > MAX_REST else ''}", DIM)
    if not score.characters:
        terminal.line("nothing was guessed")
        return
    paid = (("you", score.person), (name, score.model))
    rates = [f"{who} {bits / score.characters:.2f} bits/char" for who, bits in paid]
    terminal.line(SEPARATOR.join([*rates, count(score.characters, "character")]))
    won = {"person": "you won", "model": f"{name} won", "nobody": "nobody won"}[score.winner]
    lead = f" by {abs(score.person - score.model):.1f} bits" if score.winner != "nobody" else ""
    lucky = f"{SEPARATOR}after so few that may be luck" if score.characters < FEW else ""
    terminal.line(f"{won}{lead}{lucky}")
