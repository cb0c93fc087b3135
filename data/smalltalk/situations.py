"""Turns about people's lives and about tinychat, and replies that fit the mood and take up a word.

The tables are in `situations/`; `situations/slots.toml` says how they are read.
"""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import NamedTuple

from grammar import Lines, plainest

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk
from smalltalk.typing_style import FACES, LEADS

ECHO, LEAD, ENDING, FACE = 0.8, 0.14, 0.1, 0.12
"""Probabilities that a reply takes up a word of what was said, if one does, and of what people add."""
GO_ON, MOST_TURNS = 0.6, 4
"""Probability that the person goes on, and the most turns that one situation takes."""
MISTAKEN = 0.03
"""Probability that a reply misses the point, and the person says so."""
UNSURE = 0.04
"""Probability that a reply to news takes no side: the likeliest one where a model cannot tell what the news is."""
NAMED, ASKED_NAME = 0.15, 0.5
"""Probabilities that the person adds a name to news of somebody or of a pet, and then asks for it later."""
NEWS = frozenset(("sorrow", "worry", "ailment", "gladness", "news"))
SAD = frozenset(("sorrow", "worry", "ailment", "despair"))
_FILES = sorted(Path(__file__).with_suffix("").glob("*.toml"))
TABLES = [tomllib.loads(path.read_text(encoding="utf-8")) for path in _FILES]
TALKING = next(table for table in TABLES if "objections" in table)
OBJECTIONS: dict[str, list[str]] = TALKING["objections"]
"""What people say of a reply that misses the point, by kind: see talking.toml."""
UNSURE_REPLIES: str = TALKING["unsure"]["replies"]
NAMES: dict[str, list[str]] = TALKING["names"]
"""How people add a name, what they hear then by mood, and how they ask for it."""
_NAMED_SLOTS = frozenset(("pet", "kin", "old", "child", "partner", "friend"))
LONGEST_AGAIN = 18
"""In words: a reply that may follow an apology."""
_SLOT = re.compile(r"<(?:a:)?(\w+)>")
_NAME_OF = re.compile(rf"<({'|'.join(sorted(_NAMED_SLOTS))})>(?: <n>|.* (?:name(?: is| was|'s)?|called),? <n>$)")
"""Somebody whom a wording names."""


class Exchange(NamedTuple):
    """Lines that a person may say, and replies."""

    say: tuple[str, ...]
    reply: tuple[str, ...]


class Situation(NamedTuple):
    """Something that people say, and how they may go on once tinychat replied."""

    exchange: Exchange
    then: tuple[Exchange, ...]
    mood: str


def exchange(entry: dict[str, list[str]]) -> Exchange:
    """Return the lines and replies of an entry."""
    return Exchange(tuple(entry["say"]), tuple(entry.get("reply", ())))


def mood_of(talk: Talk) -> str:
    """Return the mood of what the person told last, or nothing if that was no situation."""
    return next((SITUATIONS[turn.topic].mood for turn in talk.turns[:-4:-1] if turn.topic in SITUATIONS), "")


def slots_of(template: str) -> set[str]:
    """Return the names of the slots of a template."""
    return set(_SLOT.findall(template))


SLOTS = words.named([entry for table in TABLES for entry in table.get("slots", ())])
MOODS = {mood["name"]: tuple(map(exchange, mood["then"])) for table in TABLES for mood in table.get("mood", ())}
_ENTRIES = [entry for table in TABLES for entry in table.get("situation", ())]
SITUATIONS = {
    entry["topic"]: Situation(
        exchange(entry),
        tuple(map(exchange, entry.get("then", []))) * 2 + MOODS.get(entry.get("mood", ""), ()),
        entry.get("mood", "talk"),
    )
    for entry in _ENTRIES
}


def play(situation: Situation, talk: Talk) -> None:
    """Add a turn in which the person tells something, and perhaps others in which they go on."""
    values: dict[str, str] = {}
    # Nobody in despair gets a reply that misses the point.
    if talk.left > 1 and situation.mood != "talk" and talk.dice.chance(MISTAKEN) and situation.mood != "despair":
        mistake(situation, talk, values)
        said = [situation.exchange]
    else:
        said = [add(situation.exchange, talk, values, situation.mood)]
    whose = _named(talk.turns[-1].wording)
    while talk.left and len(said) < MOST_TURNS and talk.dice.chance(GO_ON):
        possible = [then for then in situation.then if then not in said]
        if not possible:
            break
        said.append(add(talk.dice.choice(possible), talk, values, situation.mood))
    if whose and talk.left and talk.dice.chance(ASKED_NAME):
        asked, answers = ([line.replace("WHO", f"<{whose}>") for line in NAMES[key]] for key in ("ask", "answer"))
        talk.ask(asked, answers, **values)


def _named(wording: str) -> str:
    """Return the slot of whoever a wording names, or nothing."""
    found = _NAME_OF.search(wording)
    return found[1] if found else ""


def mistake(situation: Situation, talk: Talk, values: dict[str, str]) -> None:
    """Add a turn with a reply that has nothing to do with it, and one in which the person says so.

    Such replies are many, and each is rare: a model learns what to say afterwards, but none of them.
    """
    say, reply = situation.exchange
    wrong = talk.dice.choice([other for other in SITUATIONS.values() if other.mood != situation.mood])
    lines = tuple(line for line in wrong.exchange.reply if not slots_of(line)) or ("I see. And then?",)
    add(Exchange(say, lines), talk, values, situation.mood)
    objection = _objection(situation, wrong.mood, talk, values)
    right = [
        f"{apology} {line}"
        for apology in OBJECTIONS["apologies"]
        for line in reply
        if slots_of(line) <= values.keys()
        and len(plainest(line).split()) <= LONGEST_AGAIN
        and not ("sorry" in apology and "sorry" in line)
        and not line.startswith("<")
    ]
    talk.add_wording(objection, right or OBJECTIONS["nothing"], dict(values), say)


def _objection(situation: Situation, wrong: str, talk: Talk, values: dict[str, str]) -> str:
    """Return what the person says of a reply of the mood `wrong`, and often what they said, or that in other words."""
    said = talk.turns[-1].wording
    about = [slot for slot in ("pet", "kin", "old", "child", "partner", "friend", "boss", "machine") if slot in values]
    kind = "again" if talk.dice.chance(0.55) else "alone"
    if wrong in SAD and situation.mood in ("gladness", "news") and talk.dice.chance(0.6):
        kind = "glad"
    elif situation.mood in SAD and wrong not in SAD and talk.dice.chance(0.6):
        kind = "sad"
    elif about and talk.dice.chance(0.3):
        return f"{talk.draw_wording(OBJECTIONS['about'])} my <{talk.dice.choice(about)}>"
    objection = talk.draw_wording(OBJECTIONS[kind])
    if kind == "alone" or (kind != "again" and talk.dice.chance(0.5)):
        return objection
    if talk.dice.chance(0.4):
        others = (talk.draw_wording(situation.exchange.say) for _ in range(8))
        said = next((other for other in others if slots_of(other) == slots_of(said)), said)
    return f"{objection} {said}"


def add(exchange: Exchange, talk: Talk, values: dict[str, str], mood: str) -> Exchange:
    """Add a turn and return its exchange; `values` are those of the slots said so far, and stay what they are.

    The reply uses only slots that have a value, and usually one of what was just said.
    """
    lines: Lines = (talk.dice.choice(exchange.say),)
    wording = talk.draw_wording(lines)
    is_statement = mood in NEWS and not wording.endswith("?")
    named = is_statement and "n" not in values and slots_of(wording) & _NAMED_SLOTS and talk.dice.chance(NAMED)
    if named:
        wording = wording.rstrip(".") + talk.draw_wording(NAMES["add"])
    said = slots_of(wording)
    values.update({slot: _draw(slot, talk) for slot in sorted(said) if slot not in values})
    possible = [reply for reply in exchange.reply if slots_of(reply) <= values.keys()]
    echoes = [reply for reply in possible if slots_of(reply) & said]
    replies = echoes if echoes and talk.dice.chance(ECHO) else possible
    is_news = is_statement and not (talk.turns and talk.turns[-1].topic == talk.topic)
    if is_news and talk.dice.chance(UNSURE):
        replies = [UNSURE_REPLIES]
    if named and talk.dice.chance(0.7):
        replies = NAMES[mood]
    leads, endings = LEADS[mood in ("talk", "short")]
    lead = talk.dice.choice(leads) if talk.dice.chance(LEAD) else ""
    end = talk.dice.choice(endings) if not wording.endswith("?") and talk.dice.chance(ENDING) else ""
    if talk.dice.chance(FACE):
        end += " " + talk.dice.choice(FACES[mood]) * (2 if talk.dice.chance(0.2) else 1)
    talk.add_wording(wording, replies, dict(values), lines, lead=lead, end=end)
    return exchange


def _draw(slot: str, talk: Talk) -> str:
    if slot == "xz":
        return talk.new_word()
    return talk.new_name() if slot == "n" else talk.word(talk.dice.choice(SLOTS[slot]))


SCENES: Scenes = tuple(
    Scene(entry["topic"], table.get("share", 1.0) * entry.get("weight", 1.0), partial(play, SITUATIONS[entry["topic"]]))
    for table in TABLES
    for entry in table.get("situation", ())
)
