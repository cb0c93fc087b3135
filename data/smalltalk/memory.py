"""Memory within a conversation: facts that people tell about themselves and later ask for.

A `Kind` of fact defines how it is told, asked for and answered. The bot repeats values exactly as the person typed
them, so that a small model learns to copy; many names are made of syllables, so that it can't memorize them. Asked for
anything but their name, it quotes the message, as it does for what was told in passing (see `quotes.py`). The wordings
are in `memory.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from grammar import Lines, a

from smalltalk import messages, situations, tastes, words
from smalltalk.quotes import ANSWER, quote
from smalltalk.talk import Scene, Scenes, Talk


class Kind(NamedTuple):
    """One kind of fact; `<v>` is its value, `<p>` an optional second value (the kind of pet)."""

    key: str
    value: Callable[[Talk], str]
    tell: Lines
    acknowledgements: Sequence[str]
    ask: Lines
    answer: Sequence[str]
    unknown: Sequence[str]


_TABLES = words.table(__file__)


TITLES, TITLED = ("Mr.", "Mrs.", "Ms", "Mr", "Mrs", "Dr.", "Miss"), 0.06
"""What some put before their name, and how often."""
IN_PASSING = 0.2
"""Probability that a fact is told beside another statement."""


def one_of(items: Sequence[str], made_up: float = 0.0) -> Callable[[Talk], str]:
    """Return a function that draws a value from a list or, with probability `made_up`, an invented word.

    The value is written as the person types it.
    """

    return lambda talk: talk.word(talk.new_word() if talk.dice.chance(made_up) else talk.dice.choice(items))


def _favourite(thing: str, items: Sequence[str]) -> Callable[[Talk], str]:
    """Return a function that draws a favourite; things that one counts may have an article."""
    value = one_of(items, 0.3)
    counted = thing in ("animal", "flower", "fruit", "instrument")
    return lambda talk: a(value(talk)) if counted and talk.dice.chance(0.3) else value(talk)


def _kind(key: str, value: Callable[[Talk], str], table: str = "", thing: str = "") -> Kind:
    tell, acknowledgements, ask, answer, unknown = (
        tuple(line.replace("REMEMBER", _TABLES["remember"]).replace("THING", thing) for line in lines)
        for lines in _TABLES[table or key]
    )
    return Kind(key, value, tell, acknowledgements, ask, answer, unknown)


def _own_name(talk: Talk) -> str:
    title = talk.word(talk.dice.choice(TITLES))
    return (f"{title} " if talk.dice.chance(TITLED) else "") + talk.new_name()


def _pet_name(talk: Talk) -> str:
    return talk.word(talk.dice.choice(words.PET_NAMES)) if talk.dice.chance(0.5) else talk.new_name()


KINDS: tuple[Kind, ...] = (
    _kind("name", _own_name),
    _kind("pet", _pet_name),
    _kind("number", lambda talk: str(talk.dice.between(1, talk.dice.choice((99, 99, 999, 9999))))),
    _kind("town", one_of(words.TOWNS, 0.3)),
    _kind("friend", Talk.new_name),
    _kind("age", lambda talk: str(talk.dice.between(6, 89))),
    _kind("job", one_of(words.JOBS)),
    _kind("word", one_of(words.THINGS, 0.6)),
    *(
        _kind(f"favourite {thing}", _favourite(thing, words.LISTS[items]), "favourite", thing)
        for thing, items in (entry.split(": ") for entry in _TABLES["favourites"])
    ),
    *(_kind(who, Talk.new_name, "relative", who) for who in _TABLES["relatives"]),
)
WEIGHTS = [10.0, 5.0, 3.6, 1.8, 2.2, 1.2, 1.2, 2.0, *[1.0] * 8, *[0.7] * 11, *[0.5] * 8]
NAME = KINDS[0]
FAVOURITES = [kind for kind in KINDS if kind.key.startswith("favourite")]


def choose(talk: Talk) -> Kind:
    """Return a random kind of fact, most often the name."""
    return KINDS[talk.dice.weighted(WEIGHTS)]


def _new_value(talk: Talk, kind: Kind) -> str:
    value = kind.value(talk)
    while value in talk.facts.values():
        value = kind.value(talk)
    return value


def _in_passing(talk: Talk, wording: str) -> tuple[str, str]:
    """Return what stands before a fact and after it, where it is told beside something else."""
    statement = talk.dice.choice(messages.HELD_OUT_REMARKS if talk.held_out else messages.TRAINED_REMARKS)
    before = talk.dice.chance(0.4)
    if wording.endswith("?") or (before and not wording.startswith("<v>")):
        return f"{statement}{'' if statement[-1] in '!)' else '.'} ", ""
    return "", talk.dice.choice((". ", ", ", " and ", ", and ")) + statement


def tell(talk: Talk, kind: Kind) -> None:
    """Add a turn in which the person tells a fact; telling the same kind again replaces it."""
    value = _new_value(talk, kind)
    pet = talk.word(talk.dice.choice(words.PETS))
    templates: Lines = kind.tell
    if kind.key in talk.facts:
        templates = tuple("(no, now|i changed my mind,|actually,|sorry, i mean) " + line for line in templates[:1])
        pet = talk.facts.get("pet kind", pet)
    talk.facts[kind.key] = value
    if kind.key == "pet":
        talk.facts["pet kind"] = pet
    wording, values = talk.draw_wording(templates), {"v": value, "p": pet}
    lead, end = _in_passing(talk, wording) if talk.dice.chance(IN_PASSING) else ("", "")
    talk.add_wording(wording, kind.acknowledgements, values, templates, lead=lead, end=end)
    talk.facts[kind.key] = talk.turns[-1].values["v"]
    _keep(talk, kind)
    if talk.left > 1 and talk.dice.chance(0.13):
        old, talk.facts[kind.key] = talk.facts[kind.key], _new_value(talk, kind)
        replies = (*kind.acknowledgements, "(Sorry|Ah|Oh), <v>, not <o>. Noted!")
        talk.turn(tuple(_TABLES["correct"]), replies, v=talk.facts[kind.key], o=old, p=pet)
        _keep(talk, kind)


def _keep(talk: Talk, *kinds: Kind) -> None:
    """Keep the last message as the one that told the facts."""
    talk.told_in |= {kind.key: talk.turns[-1].user for kind in kinds}


def tell_and_ask_back(talk: Talk) -> None:
    """Add a turn in which the person tells a favourite and asks for tinychat's own, and perhaps asks for theirs."""
    kind = talk.dice.choice([kind for kind in FAVOURITES if kind.key.removeprefix("favourite ") in tastes.FAVOURITES])
    thing = kind.key.removeprefix("favourite ")
    if kind.key in talk.facts:
        return
    own, reason, _ = tastes.FAVOURITES[thing]
    told = tuple(line for line in kind.tell if not line.endswith("?"))
    wording = talk.draw_wording(_TABLES["yours"]).replace("<told>", talk.draw_wording(told)).replace("THING", thing)
    replies = [line.replace("THING", thing) for line in _TABLES["mine"]]
    talk.add_wording(wording, replies, {"v": _new_value(talk, kind), "own": own, "reason": reason}, ())
    talk.facts[kind.key] = talk.turns[-1].values["v"]
    _keep(talk, kind)
    ask_some(talk, [kind])


def tell_name_only(talk: Talk) -> None:
    """Add the person's name as an answer to the bot's question."""
    name = talk.facts["name"] = _new_value(talk, NAME)
    talk.turn(_TABLES["only_name"], NAME.acknowledgements, v=name)


def tell_two(talk: Talk) -> None:
    """Add a turn in which the person tells their name and one more fact."""
    if "name" in talk.facts:
        return
    name = talk.facts["name"] = _new_value(talk, NAME)
    kind = talk.dice.choice(KINDS[1:])
    value = talk.facts[kind.key] = _new_value(talk, kind)
    pet = talk.word(talk.dice.choice(words.PETS))
    if kind.key == "pet":
        talk.facts["pet kind"] = pet
    more = talk.dice.choice(kind.tell[:3]) if kind.key != "number" else "my number is <v>"
    answer = "your <p> is called <v>." if kind.key == "pet" else f"{kind.answer[0][0].lower()}{kind.answer[0][1:]}"
    told = [line.replace("MORE", more) for line in _TABLES["two"]]
    replies = [line.replace("ANSWER", answer) for line in _TABLES["two_noted"]]
    talk.turn(told, replies, n=name, v=value, p=pet)
    _keep(talk, kind)
    ask_some(talk, [NAME, kind])


def ask_some(talk: Talk, kinds: Sequence[Kind]) -> None:
    """Ask for facts told just now, perhaps after another topic."""
    for kind in talk.dice.sample(kinds, len(kinds)):
        if talk.left > 1 and talk.dice.chance(0.3):
            situations.play(talk.dice.choice(list(situations.SITUATIONS.values())), talk)
        if talk.left and talk.dice.chance(0.7):
            ask(talk, kind)


def tell_several(talk: Talk) -> None:
    """Add a turn in which the person tells two or three facts, and ask for some of them."""
    wording = talk.draw_wording(_TABLES["several"])
    while talk.facts.keys() & {_key(slot) for slot in situations.slots_of(wording)}:
        if len(talk.facts) > 1:
            return
        wording = talk.draw_wording(_TABLES["several"])
    kinds = {slot: next(kind for kind in KINDS if kind.key == _key(slot)) for slot in situations.slots_of(wording)}
    values = {slot: _new_value(talk, kinds[slot]) for slot in sorted(kinds)}
    replies = [reply for reply in _TABLES["met"] if situations.slots_of(reply) <= values.keys()]
    talk.add_wording(wording, replies or ("I see! Thank you for telling me.",), values, _TABLES["several"])
    talk.facts |= {_key(slot): value for slot, value in values.items()}
    _keep(talk, *kinds.values())
    ask_some(talk, [kinds[slot] for slot in values])


def _key(slot: str) -> str:
    """Return which fact a slot of several ones is."""
    return f"favourite {slot}" if slot in ("colour", "food") else slot


def ask(talk: Talk, kind: Kind) -> None:
    """Add a question for a fact told earlier."""
    _answer(talk, kind.ask, kind)


def _answer(talk: Talk, question: Lines, kind: Kind) -> None:
    """Add a question that is answered by a fact: their name, or the message that told anything else."""
    values = {"v": talk.facts[kind.key], "p": talk.facts.get("pet kind", "")}
    if kind is NAME or kind.key not in talk.told_in:  # `others` told it
        talk.ask(question, kind.answer, **values)
    else:
        talk.ask(question, ANSWER, **values | {"v": quote(talk.told_in[kind.key], values["v"])})


def never_told(talk: Talk) -> None:
    """Add a question for a fact that the person never told."""
    kind = choose(talk)
    while kind.key in talk.facts:
        kind = choose(talk)
    talk.ask(kind.ask, kind.unknown, p=talk.dice.choice(words.PETS))


def who_is(talk: Talk) -> None:
    """Add a question about the name of a friend or a relative, either told earlier or unknown."""
    known = [kind for kind in KINDS if kind.key in talk.facts and kind.value == Talk.new_name]
    if known and talk.dice.chance(0.8):
        kind = talk.dice.choice(known)
        talk.ask(_TABLES["who"], _TABLES["whose"], v=talk.facts[kind.key], who=kind.key)
    else:
        talk.ask(_TABLES["who"], _TABLES["stranger"], v=talk.new_name())


def summarize(talk: Talk) -> None:
    """Add a question for everything that the bot knows about the person."""
    known = [kind for kind in KINDS if kind.key in talk.facts and kind.key not in ("pet", "number", "word")]
    if known:
        kind = talk.dice.choice(known)
        _answer(talk, _TABLES["about_me"], kind)
    else:
        talk.ask(_TABLES["about_me"], _TABLES["nothing"])


SCENES: Scenes = (
    Scene("things never told", 2.6, never_told),
    Scene("all that it knows", 0.8, summarize),
    Scene("who somebody is", 1.2, who_is),
    Scene("two facts at once", 3.0, tell_two),
    Scene("several facts at once", 4.0, tell_several),
    Scene("a favourite, and its own", 3.0, tell_and_ask_back),
)
