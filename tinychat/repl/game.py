"""The guessing game on screen: each guess is typed after the text known so far.

It is Shannon's experiment (see `evaluate/shannon_game.py`), played against the model.
"""

from collections.abc import Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from tinychat.commands.results import GuessingGame
from tinychat.config.option import unescape
from tinychat.evaluate.shannon_game import OTHER, Game, Outcome
from tinychat.repl.keys import counted_interrupts
from tinychat.repl.plain import read_line
from tinychat.repl.prompt import CURSOR, PLAIN, show_on_one_line
from tinychat.repl.prompt import ask as ask_line
from tinychat.repl.render.terminal import DIM, GREEN, RED, SEPARATOR, Terminal, fit, wrap_items
from tinychat.session.session import Session
from tinychat.textutil import count, percent

SURE = "!"
QUIT = ("/quit", "/q", "/exit")
TYPING = "How does it go on? Type a character and Enter, or several if you are sure."
CHOOSING = "How does it go on? Type the number of a piece, and ! if you are sure, and Enter."
RULES = "Guesses cost bits, right ones few; {name} pays by its odds. The fewer bits win."
KEYS = ("Enter tells", "Esc ends")
FEW = 30
"""Number of guessed characters below which the winner may just have been lucky."""
MAX_REST = 200
"""Maximum number of characters shown of the text that was not reached."""
COLOURS = Style.from_dict({"text": "bold", "cursor": "dim", "bottom-toolbar": "noreverse dim"})


def play(result: GuessingGame, session: Session, terminal: Terminal) -> None:
    """Play until the text ends or the player quits, and write who has won.

    Raises:
        TinychatError: If the model cannot be used, or there is no text to guess.
    """
    name = session.model.name
    if not session.is_ready:
        terminal.line(f"{name} is loading…", DIM)
    with counted_interrupts() as interrupts:
        game = result.start(lambda: interrupts.count > 0)
    terminal.line(CHOOSING if game.has_choices else TYPING, DIM)
    terminal.line(RULES.format(name=name), DIM)
    keys = KEYS if game.has_choices else ("\\n is a new line", *KEYS)
    if terminal.dumb:
        terminal.line(SEPARATOR.join([*keys[:-1], "/quit ends"]), DIM)
    if len(game.text) > terminal.width // 2 or "\n" in game.text.strip("\n"):
        terminal.line(game.text.rstrip("\n"))
    ask = _make_ask(terminal, keys)
    try:
        while not game.is_over and (line := _ask(game, ask, terminal)).strip() not in QUIT:
            _show_outcomes(_guess(game, line), game, name, terminal)
    except (EOFError, KeyboardInterrupt):
        pass
    _show_result(game, name, terminal)


def _make_ask(terminal: Terminal, keys: Sequence[str]) -> Callable[[str], str]:
    """Return a function that reads a guess, typed after a text."""
    if terminal.dumb:
        return lambda text: read_line(terminal, text + CURSOR)
    prompt: PromptSession[str] = PromptSession(
        key_bindings=_bindings(),
        bottom_toolbar=f" {SEPARATOR.join(keys)}",
        style=COLOURS if terminal.colour else PLAIN,
        include_default_pygments_style=False,
    )
    prompt.app.renderer.cpr_not_supported_callback = None
    return lambda text: ask_line(prompt, FormattedText([("class:text", text), ("class:cursor", CURSOR)]))


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("escape", eager=True)
    def end(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    return bindings


def _ask(game: Game, ask: Callable[[str], str], terminal: Terminal) -> str:
    """Read a guess, typed after the end of the known text, which takes at most half of the line."""
    if game.has_choices:
        choices = [
            f"{number} {choice!r}" for number, choice in enumerate(game.choices, start=1) if choice in game.remaining
        ]
        for line in wrap_items(
            [*choices, "0 something else"] if OTHER in game.remaining else choices, terminal.width - 1
        ):
            terminal.line(line)
    text, room = show_on_one_line(game.text), terminal.width // 2
    return ask(text if len(text) <= room else "…" + text[1 - room :])


def _guess(game: Game, line: str) -> list[Outcome]:
    """Return the outcomes of a line; none if the line is not a guess."""
    if not line:
        return game.give_up()
    if not game.has_choices:
        return game.guess(unescape(line))
    sure, number = line.rstrip().endswith(SURE), line.strip().removesuffix(SURE)
    if not number.isdecimal() or int(number) > len(game.choices):
        return []
    return game.guess(game.choices[int(number) - 1] if int(number) else OTHER, sure=sure)


def _show_outcomes(outcomes: Sequence[Outcome], game: Game, name: str, terminal: Terminal) -> None:
    """Write `✓ 'ig' ✗ 't' · bits: you 23.1, talk 19.4 · its odds: 'i' 62 %, 'g' 99 %`."""
    if not outcomes:
        terminal.line(f"a number from 0 to {len(game.choices)}, or Enter to be told", DIM)
        return
    right = "".join(one.text for one in outcomes if one.verdict == "right")
    if right:
        terminal.write(f"✓ {right!r} ", GREEN)
    for one in outcomes:
        if one.verdict == "wrong":
            terminal.write(f"✗ {one.text!r} " if one.text else "✗ it is one of them ", RED)
        elif one.verdict == "revealed":
            terminal.write(f"it was {one.text!r} ")
    known = [f"{one.text!r} {percent(one.probability, 0)}" for one in outcomes if one.verdict != "wrong"]
    words = f"bits: you {game.bits:.1f}, {name} {game.score.model:.1f}"
    if known:
        words += f"{SEPARATOR}its odds: {', '.join(known)}"
    terminal.write(fit(f"· {words}", terminal.width - 1 - terminal.column), DIM)
    terminal.fresh_line()


def _show_result(game: Game, name: str, terminal: Terminal) -> None:
    """Write the rest of the text, the bits per character of both, and who has won."""
    score = game.score
    if game.rest:
        rest = game.rest[:MAX_REST]
        terminal.line(f"it goes on: {rest}{'…' if len(game.rest) > MAX_REST else ''}", DIM)
    if not score.characters:
        terminal.line("nothing was guessed")
        return
    bits_paid = {"you": score.person, name: score.model}
    words = [f"{who} {bits / score.characters:.2f} bits/char" for who, bits in bits_paid.items()]
    words.append(count(score.characters, "character"))
    terminal.line(SEPARATOR.join(words))
    lead = abs(score.person - score.model)
    won = {"person": "you won", "model": f"{name} won", "nobody": "nobody won"}[score.winner]
    lucky = f"{SEPARATOR}after so few that may be luck" if score.characters < FEW else ""
    terminal.line(f"{won}{f' by {lead:.1f} bits' if score.winner != 'nobody' else ''}{lucky}")
