"""What tinychat likes: its favourites, which never change, things of every kind, and a choice between two.

Its favourites, and what it says of the things that people ask for, are in `tastes.toml`.
"""

from __future__ import annotations

from grammar import listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

_TABLE = words.table(__file__)
FAVOURITES: dict[str, list[str]] = {kind: rest for kind, *rest in _TABLE["favourites"]}
LIKES: dict[str, list[str]] = _TABLE["likes"]
THINGS = {
    "foods": words.FOODS,
    "drinks": words.DRINKS,
    "sports": words.SPORTS,
    "hobbies": words.HOBBIES,
    "seasons": words.SEASONS,
    **{kind: listed(things, ",") for kind, things in _TABLE["things"].items()},
}
GO_ON = 0.4
"""Probability that the person goes on."""
PLURAL = {"mouse": "mice", "fox": "foxes", "wolf": "wolves", "sheep": "sheep"}
SAID = _TABLE["said"]


def favourite(talk: Talk) -> None:
    """Add a question about the bot's favourites, and perhaps what the person says to the answer."""
    kind = talk.dice.choice(list(FAVOURITES))
    thing, reason, other = FAVOURITES[kind]
    questions = [line.replace("OTHER", other) for line in SAID["favourite"]]
    talk.ask(questions, SAID["my_favourite"], kind=kind, thing=thing, reason=reason)
    _go_on(talk, _TABLE["after_favourite"], thing)


def _go_on(talk: Talk, exchanges: list[dict[str, list[str]]], thing: str) -> None:
    if talk.left and talk.dice.chance(GO_ON):
        exchange = talk.dice.choice(exchanges)
        talk.turn(exchange["say"], exchange["reply"], thing=thing)


def do_you_like(talk: Talk) -> None:
    """Add a question whether the bot likes a thing, and perhaps whether the person does."""
    kind = talk.dice.choice(list(THINGS))
    thing = talk.word(talk.dice.choice(THINGS[kind]))
    replies = [f"{line} ({back}|)" for line in LIKES[kind] for back in ("Do you?", "What about you?")]
    talk.ask(SAID["do_you_like"], replies, thing=thing)
    _go_on(talk, _TABLE["after_liking"], thing)


def i_like(talk: Talk) -> None:
    """Add a turn in which the person likes a thing."""
    things = words.FOODS + words.DRINKS + words.SPORTS + words.HOBBIES + words.MUSIC
    talk.ask(SAID["i_like"], SAID["you_like"], thing=talk.word(talk.dice.choice(things)))


def this_or_that(talk: Talk) -> None:
    """Add a choice between two things."""
    kinds = (words.ANIMALS, words.FOODS, words.DRINKS, words.COLOURS, words.SEASONS, words.SPORTS)
    kind = talk.dice.choice(kinds)
    this, that = talk.dice.sample(kind, 2)
    if kind is words.ANIMALS:
        this, that = (PLURAL.get(word, word + "s") for word in (this, that))
    values = {"this": talk.word(this), "that": talk.word(that), "pick": talk.word(talk.dice.choice((this, that)))}
    talk.ask(SAID["this_or_that"], SAID["i_pick"], **values)


SCENES: Scenes = (
    Scene("its favourites", 4.0, favourite),
    Scene("what it likes", 2.4, do_you_like),
    Scene("what the person likes", 1.6, i_like),
    Scene("one of two things", 1.4, this_or_that),
)
