"""Greetings and goodbyes, requests to repeat a line, and unintelligible input; see also `situations/talking.toml`."""

from __future__ import annotations

from functools import partial

from smalltalk.situations import SITUATIONS, TALKING, add, play
from smalltalk.talk import Scene, Scenes, Talk

STATES = ("how the person is: well", "how the person is: not well", "how the person is: nothing much")
SAID = TALKING["said"]
NAMED = ("(Goodbye|Bye|See you), <name>! (Come back soon|Take care|It was nice to meet you|Thank you for the chat).",)
hello = partial(play, SITUATIONS["hello"])
LONGEST_REPEATED = 9
"""In words."""


def answer(talk: Talk) -> None:
    """Add the person's answer to the bot's “how are you”."""
    play(SITUATIONS[talk.dice.choice(STATES)], talk)


def goodbye(talk: Talk) -> None:
    """Add a goodbye, with the person's name if it is known."""
    name = talk.facts.get("name")
    exchange = SITUATIONS["good night" if talk.dice.chance(0.25) else "goodbye"].exchange
    if name and talk.dice.chance(0.7):
        talk.turn((talk.dice.choice(exchange.say),), NAMED, name=name)
    else:
        add(exchange, talk, {}, "talk")


def repeat_that(talk: Talk) -> None:
    """Add a “say that again”, answered by the last reply word for word."""
    if not talk.turns or len(talk.turns[-1].assistant.split()) > 16:
        hello(talk)
        return
    talk.turn(SAID["repeat_that"], "I said: <last>", last=talk.turns[-1].assistant.removeprefix("I said: "))


def repeat_me(talk: Talk) -> None:
    """Add a request to repeat the person's last words."""
    if not talk.turns:
        talk.turn(SAID["repeat_me"], SAID["nothing_yet"])
    elif len(talk.turns[-1].user.split()) <= LONGEST_REPEATED:
        talk.turn(SAID["repeat_me"], ('You said "<said>".', 'Your last line was "<said>".'), said=talk.turns[-1].user)
    else:
        hello(talk)


def gibberish(talk: Talk) -> None:
    """Add random key presses."""
    keys = "asdfjkl;qwertyuiopzxcvbnm"
    noise = "".join(talk.dice.choice(keys) for _ in range(talk.dice.between(4, 11)))
    text = talk.dice.choice(
        (noise, noise, noise + " " + noise[::-1], "?" * talk.dice.between(1, 4), "...", noise[:2] * 4)
    )
    talk.turn("<text>", SITUATIONS["odd keys"].exchange.reply, text=text)


SCENES: Scenes = (
    Scene("say that again", 1.0, repeat_that),
    Scene("what the person said", 0.9, repeat_me),
    Scene("gibberish", 1.8, gibberish),
)
