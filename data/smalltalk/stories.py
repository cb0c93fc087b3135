"""Stories of three sentences on request, with a wish, an obstacle and an ending, and questions about them."""

from __future__ import annotations

from grammar import Lines, listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

NAMES = words.NAMES[:80] + words.PET_NAMES
LINES = words.table(__file__)
HEROES, ADJECTIVES = (listed(LINES[name], ",") for name in ("heroes", "adjectives"))


def go(talk: Talk, request: Lines, hero: str = "", name: str = "", *, asks: bool = False) -> None:
    """Add a story and perhaps questions about it."""
    dice = talk.dice
    hero, name, adjective = hero or dice.choice(HEROES), name or dice.choice(NAMES), dice.choice(ADJECTIVES)
    wish, trouble, ending, *more = dice.choice(LINES["plots"])
    pronoun, its = dice.choice((("it", "its"), ("he", "his"), ("she", "her")))
    values = {"hero": hero, "name": name, "who": f"{adjective} {hero}", "adjective": adjective, "its": its}
    values |= {"wish": wish, "trouble": trouble, "ending": ending.replace("<name>", name)}
    values["they"] = dice.choice((pronoun, pronoun, f"the {hero}", name))
    told = "(Once there was|There once was|There was once) <a:who> (named|called) <name> who <wish>. <trouble> <ending>"
    (talk.ask if asks else talk.turn)(request, told, **values)
    values["story"] = talk.turns[-1].assistant
    while talk.left and dice.chance(0.55):
        kind = dice.weighted((6, 3, 0.7, 0.8))
        if kind == 0:
            question, answer = dice.choice(LINES["questions"])
            talk.turn(question, answer, **values)
        elif kind == 1:
            at = dice.below(len(more) // 2) * 2
            talk.turn(more[at], more[at + 1], **values)
        else:
            talk.turn(
                LINES["longer"] if kind == 2 else LINES["liked"], LINES["short"] if kind == 2 else LINES["thanks"]
            )


def new_story(talk: Talk) -> str:
    """Return a story about any hero."""
    alone = Talk(talk.dice, 1)
    go(alone, "story")
    return alone.turns[0].assistant


def story(talk: Talk) -> None:
    """Add a request for a story about any hero or a named one."""
    hero = talk.dice.choice(HEROES if talk.dice.chance(0.7) else words.ANIMALS + words.THINGS)
    name = talk.dice.choice(NAMES)
    kind = talk.dice.below(10)
    about = ""
    if kind < 5:
        about = " (about|with|of) <a:hero>"
    elif kind < 7:
        name = talk.new_name()
        about = " (about|with) (<a:hero> (named|called) <name>|my <hero> <name>|<name> the <hero>)"
    request = talk.dice.choice(LINES["requests"]) + about + "( please| tinychat| now|)(?||.|)"
    go(talk, request, hero, name, asks=True)
    if talk.left and talk.dice.chance(0.3):
        about = " (about|with) <a:hero>" if talk.dice.chance(0.6) else ""
        go(talk, LINES["again"][0] + about + "( please|)(?||.)")


SCENES: Scenes = (Scene("stories", 15.0, story),)
