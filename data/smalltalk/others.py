"""Who is who and what was said: people and pets whom the user tells of, facts of the user; told, corrected, asked for.

The wordings are tables in `others.toml`. Two or three are told of at once, often alike, so that only whom or what a
question names tells them apart; other topics come between. What is asked for is answered by a quote of the message that
told it, if that names what the question does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grammar import choose

from smalltalk import fun, numbers, situations, words
from smalltalk.quotes import ANSWER, quote
from smalltalk.situations import slots_of
from smalltalk.talk import TRIES, Scene, Scenes, Talk, is_held_out

Lines = Sequence[str]
Values = dict[str, str]

_OBJECT = re.compile(
    r"\b((?:with|from|for|to|about|of|without|met|meet|saw|see|seen|know|mean|meant|miss|like|love|feed|give|call|gave|have"
    r"|get|buy|told|it's|after|at|me,|me!|no,|it was)\)?) <x>"
)


def _lines(lines: Lines) -> tuple[str, ...]:
    """Return the templates with `<o>` for `<x>` where a pronoun would be an object: with her."""
    return tuple(_OBJECT.sub(r"\1 <o>", line) for line in lines)


class Deed(NamedTuple):
    """What somebody is, has or did."""

    of: str
    weight: float
    tell: Lines
    reply: Lines
    ask: Lines
    answer: str


class Fact(NamedTuple):
    """A fact of the user."""

    is_also_memory: bool
    """Whether `memory` tells such facts, too."""
    tell: Lines
    reply: Lines
    ask: Lines
    answer: Lines
    unknown: Lines
    correct: Lines


_FILE = words.table(__file__)
_TABLES = _FILE["tables"]
SLOTS = situations.SLOTS | words.named(_FILE["slots"])
SLOTS["instrument"] = words.INSTRUMENTS
PEOPLE = words.named(_FILE["people"])
NAMING, ASKING, OWN = ({name: _lines(lines) for name, *lines in _FILE[part]} for part in ("naming", "asking", "own"))
MENTIONS = [(entry[0], *map(_lines, entry[1:])) for entry in _TABLES["mentions"]]
DEEDS = [
    Deed(of, weight, _lines(tell), _lines(reply), _lines(ask), answer)
    for of, weight, tell, reply, ask, answer in _TABLES["deeds"]
]
ABOUTS = [(of, _lines(say), reply) for of, say, reply in _TABLES["abouts"]]
FACTS = [Fact(bool(both), *lines) for both, *lines in _TABLES["facts"]]
PAIRS, OWN_AND_FRIEND = _TABLES["pairs"], _TABLES["own_and_friend"]
FORMS = {"she": ("she", "her", "her"), "he": ("he", "him", "his"), "it": ("it", "it", "its")}
TITLES = {"she": ("mrs ", "ms "), "he": ("mr ",)}
GIVEN = {"noun", "x", "xs", "o", "y", "ys", "Y", "my", "your", "they", "They", "them", "their", "Their", "is", "n", "m"}
"""Slots that a person has; all others are values of what is told."""
PRONOUNS = {"they", "They", "them", "their", "Their"}
"""Slots of which tinychat knows nothing before the user said he or she."""
SAID = (
    *(line for lines in (*NAMING.values(), *ASKING.values()) for line in lines),
    *(line for entry in (*MENTIONS, *ABOUTS) for line in entry[1]),
    *(line for deed in DEEDS for line in (*deed.tell, *deed.ask)),
    *(line for fact in FACTS for line in (*fact.tell, *fact.ask, *fact.correct)),
    *(line for tell, _, *questions in PAIRS for lines in (tell, *questions) for line in lines),
    *(line for lines in (OWN_AND_FRIEND[0], *(ask for ask, _ in OWN_AND_FRIEND[2:])) for line in lines),
    *OWN["told"],
    *OWN["asked"],
)
"""All that a user says: a twelfth of the wordings is held out."""
MISREADINGS = [*ASKING["mixed_up"], *(line for fact in FACTS for line in fact.reply if not slots_of(line))]
LONGER, CORRECTED, BETWEEN, MISREAD = 0.7, 0.16, 0.4, 0.03
"""Probabilities that a short talk is made longer, a name corrected, something else said, a line misread."""


@dataclass
class Person:
    """Somebody told of, a pet included."""

    of: str
    noun: str
    they: str
    is_the: bool = False
    name: str = ""
    nickname: str = ""
    start: int = 0
    """Number of turns before this one was told of."""
    told: list[tuple[Deed, Values, str]] = field(default_factory=list)
    """What was told, its values and the message."""
    named_in: str = ""
    """The message that told the name."""


def _filled(lines: Lines, values: Values) -> list[str]:
    return [line for line in lines if slots_of(line) <= values.keys()]


def _cap(text: str) -> str:
    return text[0].upper() + text[1:]


class World:
    """Those whom a user tells of in one talk."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.dice = talk, talk.dice
        self.people: list[Person] = []
        self.last: Person | None = None
        self.used = set(talk.facts.values())
        self.before = " ".join(turn.user.lower() for turn in talk.turns) + " " + " ".join(talk.facts)
        self.fresh = 0
        """Number of turns when a deed was told last."""
        self.foreign = ""
        """What was said of other things since."""

    def name(self) -> str:
        """Return a new name."""
        while True:
            name = self.talk.new_name()
            if name not in self.used and name.lower() not in self.before:
                self.used.add(name)
                return name

    def values(self, line: str, given: Values) -> Values:
        """Return the given values and new ones for the other slots of a wording."""
        found = dict(given)
        for slot in sorted(slots_of(line) - given.keys()):
            found[slot] = self.name() if slot in "nm" else self.talk.word(self.dice.choice(SLOTS[slot]))
        return found

    def meet(self, of: str = "") -> Person:
        """Return somebody of whom nothing was said yet."""
        while True:
            kind = (
                of or ("she", "he", "either", "titled", "pet", "lost", "new")[self.dice.weighted((5, 5, 4, 3, 7, 1, 1))]
            )
            noun = self.dice.choice(PEOPLE["pet" if kind == "lost" else kind])
            they = kind if kind in FORMS else self.dice.choice(("she", "he"))
            if kind in ("pet", "lost") and self.dice.chance(0.15):
                they = "it"
            if kind == "new":
                they = "she" if noun.endswith(("girl", "woman", "lady")) else "he"
            if noun.split()[-1] not in self.before and noun not in self.used:
                self.used.add(noun)
                is_the = kind == "new" or (kind == "titled" and self.dice.chance(0.3))
                of = kind if kind in ("titled", "pet", "lost", "new") else "person"
                return Person(of, noun, they, is_the, start=len(self.talk.turns))

    def clear(self, one: Person) -> bool:
        """Return whether a pronoun can only mean this one."""
        words_said = set(re.findall(r"[a-z]+", self.foreign))
        rivals = [other for other in self.people if other is not one and other.they == one.they]
        return not words_said & set(FORMS[one.they]) and (one is self.last or not rivals)

    def forms(self, one: Person, how: str = "") -> Values:
        """Return the slots of a person: `how` is "noun", "name", "they" or "both", else one that is clear."""
        they, them, their = FORMS[one.they]
        noun = one.noun
        if one in self.people and not how and self.dice.chance(0.2):
            short = "pet" if one.of in ("pet", "lost") and self.dice.chance(0.4) else noun.split()[-1]
            if not noun.endswith(("-law", "daughter", "son", "pig")) and all(
                other is one or not (other.noun.endswith(short) or (short == "pet" and other.of == "pet"))
                for other in self.people
            ):
                noun = short
        my, your = ("the " + noun,) * 2 if one.is_the else ("my " + noun, "your " + noun)
        if not how:
            how = self.dice.choice(
                ("they", "they", "noun", "noun", "name") if self.clear(one) else ("noun", "noun", "name")
            )
        if how in ("name", "both") and not one.name:
            how = "noun"
        x = {"noun": my, "they": they, "name": one.name, "both": f"{my} {one.name}"}[how]
        y = self.dice.choice((your, your, one.name or your, f"{your} {one.name}".strip()))
        if how == "name":
            y = one.name
        values = {"noun": noun, "my": my, "your": your, "x": x, "xs": their if how == "they" else x + "'s", "y": y}
        values |= {"o": them if how == "they" else x, "ys": y + "'s", "Y": _cap(y), "they": they, "them": them}
        values |= {"their": their, "They": _cap(they), "Their": _cap(their), "is": "was" if one.of == "lost" else "is"}
        said = " ".join(turn.user.lower() for turn in self.talk.turns[one.start :])
        if (
            how == "they"
            or one.noun in PEOPLE.get(one.they, []) + PEOPLE["new"]
            or re.search(rf"\b({they}|{them}|{their})", said)
        ):
            values["known"] = ""
        return values | ({"n": one.name} if one.name else {}) | ({"m": one.nickname} if one.nickname else {})

    def say(self, said: Lines, replies: Lines | str, values: Values, *, is_open: bool = False) -> Values | None:
        """Add a turn, if there are lines with these values; `is_open`: other slots of what is said get new ones."""
        lines = list(said) if is_open else _filled(said, values)
        if not lines or not self.talk.left:
            return None
        for _ in range(TRIES):
            wording = choose(self.dice, lines)
            if is_held_out(SAID, wording) == self.talk.held_out:
                break
        values = self.values(wording, values) if is_open else values
        if isinstance(replies, str):
            self.talk.add_wording(wording, replies, values, SAID)
            return values
        possible = _filled(replies, values)
        if "x" in values and "known" not in values and not slots_of(wording) & PRONOUNS:
            possible = [reply for reply in possible if not slots_of(reply) & PRONOUNS] or possible
        if not possible:
            return None
        self.talk.add_wording(wording, possible, values, SAID)
        return values

    def quote(self, asked: Lines, message: str, answer: str, values: Values) -> None:
        """Add a question that is answered by a quote of a message, which holds the answer."""
        self.say(asked, ANSWER, values | {"v": quote(message, answer)})

    def tell_name(self, one: Person, lines: Lines, replies: Lines) -> None:
        """Add a turn in which a name is told, and perhaps a correction or a nickname."""
        talk, dice = self.talk, self.dice
        one.name = self.name()
        if one.of == "titled" and dice.chance(0.35):
            one.name = talk.word(dice.choice(TITLES[one.they])) + one.name
        said_before = {slot: value for _, values, _ in one.told for slot, value in values.items()}
        said = self.say(lines, replies, said_before | self.forms(one, "noun") | {"n": one.name}, is_open=True)
        message = self.talk.turns[-1].user if said else ""
        one.named_in = message
        new = (said or {}).keys() - GIVEN
        told = [deed for deed in DEEDS if deed.of == one.of and set() < slots_of(deed.answer) - GIVEN <= new]
        known = [deed for deed, *_ in one.told]
        one.told += [(deed, dict(said or {}), message) for deed in told if deed not in known]
        self.last = one
        if said and talk.left > 1 and dice.chance(CORRECTED):
            wrong, one.name = one.name, self.name()
            self.correct_name(one, wrong)
        elif said and talk.left > 2 and dice.chance(0.06):
            one.nickname = self.name()
            self.say(NAMING["nick"], NAMING["nicked"], self.forms(one, "noun"))

    def correct_name(self, one: Person, wrong: str) -> None:
        """Add a turn that corrects a name."""
        self.say(NAMING["correct"], NAMING["corrected"], self.forms(one, "noun") | {"m": wrong})
        one.named_in = self.talk.turns[-1].user

    def introduce(self, one: Person) -> None:
        """Tell of somebody: with the name, before it, or without it."""
        talk, dice = self.talk, self.dice
        is_pet = one.of in ("pet", "lost")
        named = NAMING["petreply" if is_pet else "reply"]
        if one.of not in ("lost", "new") and (talk.left < 3 or dice.chance(0.36)):
            if dice.chance(0.3) and talk.left > 1:
                one.name = self.name()
                self.people.append(one)
                self.tell(one, how="both")
                one.named_in = one.told[-1][2] if one.told else talk.turns[-1].user
                return
            self.tell_name(one, NAMING["wrong" if dice.chance(0.06) else "noun"], named)
            self.people.append(one)
            return
        entry = dice.choice([entry for entry in MENTIONS if entry[0] == one.of])
        is_asked = dice.chance(0.5)
        self.say(entry[1], entry[3 if is_asked else 2], self.forms(one, "noun"), is_open=True)
        self.people.append(one)
        self.last = one
        if is_asked or dice.chance(0.85):
            if not is_asked and talk.left > 2 and dice.chance(0.3):
                self.tell(one)
            bare = [line for line in NAMING["bare"] if is_pet or "years_old" not in slots_of(line)]
            bare = bare[:8] if one.of == "lost" else bare
            lines = (
                bare if is_asked and dice.chance(0.75) else NAMING["pronoun"] + NAMING["petname"] * (one.of == "pet")
            )
            if talk.left > 1 and one.of != "lost" and dice.chance(0.05):
                lines = ASKING["once_more"]
                named = ASKING["answer"]
            elif entry[4] and (one.of == "lost" or dice.chance(0.7)):
                named = entry[4]
            if talk.left:
                lines = [line for line in lines if not (is_pet and ("parents" in line or "first name" in line))]
                lines = [line for line in lines if not slots_of(line) - GIVEN] if dice.chance(0.4) else lines
                self.tell_name(one, lines, named)

    def tell(self, one: Person, how: str = "", deed: Deed | None = None) -> None:
        """Add a turn in which somebody is, has or did something; with a chance that tinychat takes it for the user."""
        known = [told for told, *_ in one.told]
        kind = one.of if one.of in ("pet", "lost") else "person"
        fitting = [deed for deed in DEEDS if deed not in known and deed.of in (kind, "any" if kind != "lost" else "")]
        if not fitting:
            return
        deed = deed if deed in fitting else fitting[self.dice.weighted([deed.weight for deed in fitting])]
        given = self.forms(one, how)
        is_misread = self.talk.left > 2 and self.dice.chance(MISREAD)
        lines = [line for line in deed.tell if how != "both" or slots_of(line) & {"x", "o"}]
        values = self.say(lines, MISREADINGS if is_misread else deed.reply, given, is_open=True)
        self.last, self.fresh = one, len(self.talk.turns)
        if values:
            found = {slot: value for slot, value in values.items() if slot not in GIVEN}
            one.told.append((deed, found, self.talk.turns[-1].user))
        if values and is_misread:
            again = self.forms(one, "name" if one.name and self.dice.chance(0.5) else "noun")
            replies = [line for line in deed.reply if not line.startswith("<")] or ["Tell me more!"]
            self.say(
                ASKING["notme"], [f"{line} {self.dice.choice(replies)}" for line in ASKING["sorry"]], values | again
            )

    def between(self) -> None:
        """Add turns about something else."""
        start = len(self.talk.turns)
        kind = self.dice.weighted((6, 1, 2))
        self.talk.length -= 1  # leaves a turn for the question
        if kind == 0:
            situations.play(self.dice.choice(list(situations.SITUATIONS.values())), self.talk)
        else:
            self.dice.choice((fun.SCENES, numbers.SCENES)[kind - 1]).play(self.talk)
        self.talk.length += 1
        self.foreign += " ".join(f" {turn.user} " for turn in self.talk.turns[start:]).lower()
        self.foreign += " she he it her his him" if any("n" in turn.values for turn in self.talk.turns[start:]) else ""

    def ask_name(self, one: Person) -> None:
        """Ask for the name of somebody, who somebody is, or who is meant."""
        given, dice = self.forms(one), self.dice
        if given["x"] == one.name:
            given = self.forms(one, "noun")
        if not one.name:
            self.say(ASKING["did" if dice.chance(0.2) else "name"], ASKING["nameless"], given)
            if self.talk.left and dice.chance(0.7):
                self.tell_name(one, ASKING["lastly"], ASKING["learnt"])
            return
        is_clear = self.clear(one)
        is_it, is_not = (
            [line for line in ASKING[key] if is_clear or not slots_of(line) & PRONOUNS] for key in ("is_it", "is_not")
        )
        if one.nickname and is_clear and dice.chance(0.4):
            self.say(NAMING["asknick"], NAMING["answernick"], given)
        elif dice.chance(0.12):
            self.say(ASKING["who"], ASKING["whois"], given)
        elif dice.chance(0.06):
            self.say(ASKING["did"], ASKING["yes"], given)
        elif dice.chance(0.08):
            self.say(is_it, ASKING["it_is"], given)
        elif dice.chance(0.06):
            self.say(is_not, ASKING["not_it"], given | {"m": self.name()})
        elif one is self.last and not self.foreign and dice.chance(0.06):
            self.say(ASKING["mean"], ASKING["meant"], given)
        else:
            self.quote(ASKING["name"], one.named_in, one.name, given)
            if self.talk.left > 1 and dice.chance(0.05):
                wrong, one.name = one.name, self.name()
                self.correct_name(one, wrong)
        self.last = one

    def ask_deed(self, one: Person) -> None:
        """Ask for something told of somebody."""
        deed, values, message = self.dice.choice(one.told)
        given = values | self.forms(one)
        is_shared = sum(deed is other for person in self.people for other, *_ in person.told) > 1
        lines = [line for line in deed.ask if not is_shared or slots_of(line) & {"x", "xs", "o"}]
        answers = [deed.answer, deed.answer]
        if (
            self.fresh == len(self.talk.turns)
            and deed is one.told[-1][0]
            and one is self.last
            and self.dice.chance(0.3)
        ):
            lines = list(ASKING["again"][:3])
        elif len(one.told) == 1 and self.dice.chance(0.1):
            lines = list(ASKING["again"][3:])
        if lines[0] in ASKING["again"]:
            answers = [f"{start} {deed.answer}" for start in ("You told me that", "You said that")]
            given["y"] = given["your"] if one is self.last else given["y"]
        elif lines == list(deed.ask) and deed.answer.startswith("<y> ") and self.clear(one):
            lines = [line for line in lines if slots_of(line) & {"x", "xs", "o"}] or lines
            answers[1] = "<They> " + deed.answer[4:]
        naming = [line for line in lines if slots_of(line) & {"x", "xs", "o"}]
        if naming and lines[0] not in ASKING["again"]:  # the message may say no more than "she"
            told = (value for _, value in sorted(values.items()) if value and value.lower() in message.lower())
            self.quote(_filled(naming, given), message, next(told, ""), given)
        else:
            self.say(_filled(lines, given), answers, given)
        self.last = one

    def ask(self) -> None:
        """Ask something of one of those told of."""
        talk, dice = self.talk, self.dice
        one = dice.choice(self.people)
        if dice.chance(0.07):
            stranger = self.meet()
            if dice.chance(0.3):
                self.say(ASKING["who"][:6], ASKING["stranger"], {"n": self.name()})
                return
            stranger.is_the = False
            self.say(ASKING["name"], ASKING["unknown"], self.forms(stranger, "noun"))
        elif "name" in talk.facts and dice.chance(0.2):
            self.say(OWN["asked"], OWN["answer"], self.forms(one, "noun") | {"n": talk.facts["name"]})
        elif "name" not in talk.facts and dice.chance(0.03):
            self.say(OWN["asked"], OWN["unknown"], self.forms(one, "noun"))
        elif one.told and (not one.name or dice.chance(0.5)):
            self.ask_deed(one)
        else:
            self.ask_name(one)
        if talk.left > 1 and dice.chance(0.14):
            self.say(ASKING["right"], ASKING["praised"], self.forms(one, "noun"))


def _tell_own_name(world: World) -> None:
    name = world.name()
    world.say(OWN["told"], OWN["reply"], {"n": name})
    world.talk.facts["name"] = name


def _lengthen(talk: Talk) -> None:
    if talk.left < 5 and talk.dice.chance(LONGER):
        talk.length = max(talk.length, min(8, len(talk.turns) + talk.dice.between(3, 6)))


def people(talk: Talk) -> None:
    """Tell of one to three people or pets, and ask who and what they are, perhaps after other topics."""
    _lengthen(talk)
    world, dice = World(talk), talk.dice
    if talk.left == 1:
        one = world.meet("pet" if dice.chance(0.3) else "she" if dice.chance(0.5) else "he")
        lines, replies = (ASKING["once"], ASKING["answer"]) if dice.chance(0.5) else (ASKING["name"], ASKING["unknown"])
        one.name = world.name()
        world.say(lines, replies, world.forms(one, "noun"))
        return
    if "name" not in talk.facts and talk.left > 3 and dice.chance(0.2):
        _tell_own_name(world)
    deed = None
    while talk.left > 1 and len(world.people) < 3 and (not world.people or dice.chance(0.3)):
        one = world.meet()
        world.introduce(one)
        while talk.left > 1 and one in world.people and dice.chance(0.45):
            world.tell(one, deed=deed if dice.chance(0.5) else None)
            deed = one.told[-1][0] if one.told else None
    while talk.left > 1 and dice.chance(BETWEEN):
        world.between()
    while talk.left and dice.chance(0.93):
        if talk.left > 1 and dice.chance(0.2):
            one = dice.choice(world.people)
            of = [say_reply for say_reply in ABOUTS if say_reply[0] in ("any", one.of if one.of == "pet" else "person")]
            if one.of != "lost":
                _, say, reply = dice.choice(of)
                world.say(say, reply, world.forms(one))
                world.last = one
        world.ask()
        if talk.left > 1 and dice.chance(0.25):
            world.between()
    for one in world.people:
        key = "pet" if one.of in ("pet", "lost") else one.noun
        if one.name and key not in talk.facts:
            talk.facts |= {key: one.name} | ({"pet kind": one.noun} if key == "pet" else {})


def pair(talk: Talk) -> None:
    """Tell of two at once, and ask for one or both."""
    _lengthen(talk)
    world, dice = World(talk), talk.dice
    if talk.left == 1:
        people(talk)
        return
    is_own = "name" not in talk.facts and dice.chance(1 / (1 + len(PAIRS)))
    tell, reply, *questions = OWN_AND_FRIEND if is_own else dice.choice(PAIRS)
    values = {slot: dice.choice(PEOPLE[slot]) for slot in ("she", "he")}
    while values["she"] == values["he"]:
        values["he"] = dice.choice(PEOPLE["he"])
    said = world.say(tell, reply, {slot: talk.word(noun) for slot, noun in values.items()}, is_open=True)
    if not said:
        return
    message = talk.turns[-1].user
    if is_own:
        talk.facts["name"] = said["n"]
    if talk.left > 1 and dice.chance(BETWEEN):
        world.between()
    for question in dice.sample(questions, len(questions)):
        ask, answers = question if is_own else (question, ANSWER)
        pronouns = set(re.findall(r"[a-z]+", world.foreign)) & {*FORMS["she"], *FORMS["he"]}
        lines = [line for line in ask if not pronouns or slots_of(line) or "my" in line.split()]
        if talk.left:
            world.say(lines or ask, answers, said | {"v": quote(message, said["n"])})


def facts(talk: Talk) -> None:
    """Tell up to three facts of the user, and ask for one of them, or for the name."""
    _lengthen(talk)
    world, dice = World(talk), talk.dice
    possible = [fact for fact in FACTS if fact.ask[0] not in talk.topics_told]
    possible = [fact for fact in possible if not fact.is_also_memory or not set(talk.facts) - {"name"}]
    if talk.left == 1 or dice.chance(0.06):
        fact = dice.choice(possible)
        world.say(fact.ask, fact.unknown, {}, is_open=True)
        return
    if "name" not in talk.facts and talk.left > 2 and dice.chance(0.25):
        _tell_own_name(world)
    told: list[tuple[Fact, Values, str]] = []
    while talk.left > 1 and (not told or (len(told) < 3 and dice.chance(0.5))):
        fact = told[-1][0] if told and dice.chance(0.15) else dice.choice(possible)
        values = world.say(fact.tell, fact.reply, {}, is_open=True)
        if not values:
            break
        talk.topics_told.add(fact.ask[0])
        if fact.correct and talk.left > 1 and dice.chance(0.3):
            slot = min(slots_of(fact.correct[0]))
            values = world.values(f"<{slot}>", {key: value for key, value in values.items() if key != slot})
            world.say(fact.correct, (f"(Ah|Oh), <{slot}>, (noted|I see)!", f"(Sorry|All right): <{slot}>."), values)
        told.append((fact, values, talk.turns[-1].user))
    while talk.left > 1 and dice.chance(BETWEEN):
        world.between()
    if talk.left > 1 and dice.chance(0.2):
        has_name = "name" in talk.facts
        values = {"n": talk.facts["name"]} if has_name else {}
        world.say(OWN["asked"], OWN["answer"] if has_name else OWN["unknown"], values)
    for fact, values, message in dice.sample(told, len(told)):
        alike = [other for other, *_ in told if other is fact]
        lines = [line for line in fact.ask if slots_of(line)] if len(alike) > 1 else list(fact.ask)
        if lines and talk.left and dice.chance(0.85):
            is_last = fact is told[-1][0] and not world.foreign and len(told) == 1
            if is_last and dice.chance(0.08):
                again = [
                    f"{start} {fact.answer[0][0].lower()}{fact.answer[0][1:]}"
                    for start in ("You told me that", "You said")
                ]
                world.say(ASKING["again"][:3], again, values)
            else:
                slot = min(slots_of(fact.answer[0]) & values.keys(), default="")
                world.quote(lines, message, values.get(slot, ""), values)


SCENES: Scenes = (
    Scene("who is who", 22.0, people),
    Scene("two people at once", 6.0, pair),
    Scene("facts about others", 10.0, facts),
)
