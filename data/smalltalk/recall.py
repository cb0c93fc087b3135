"""Questions for anything that the person said some turns ago, which tinychat says it did not keep.

No list of facts can hold all that people tell in passing. So a question is built from the words of an earlier message,
whatever it was about. Models of this size quote the wrong message, or words that nobody said (see EXPERIMENTS.md), so
the reply is an honest one; what they can keep in mind are the facts of `memory` and `others`.
"""

from __future__ import annotations

import re

from grammar import listed

from smalltalk import chatter, messages, others, words
from smalltalk.situations import NEWS, SITUATIONS
from smalltalk.talk import Talk, Turn

_TABLES = words.table(__file__)
RECALLED, NEVER, FROM_NOTHING = 0.15, 0.12, 0.015
"""probabilities that the person asks for something that they said, or then for what they did not; the latter also where
they have told nothing"""
SHORTEST, LONGEST = 4, 16
"""in words: a message that is asked for"""
LEADS, COMMON = frozenset(listed(_TABLES["leads"])), frozenset(listed(_TABLES["common"]))
_TIME = re.compile(rf"\b(?:{'|'.join(listed(_TABLES['times'], ','))})\b")
_NOUN = re.compile(r"\b(my|our|the|a|an|his|her|their|some) ((?:new|old|big|little|small|best|first|late) )?([a-z]+)\b")
_I_DID = re.compile(r"(?:i|we) ([a-z]+(?: (?:to|up|out|at|for|about|into|on|in|with))?)(?: (.+))?")
_OTHER = re.compile(r"((?:my|our|the|his|her) (?:[a-z]+ )?[a-z]+|[a-z]+) ([a-z]+(?:'s)?)(?: (.+))?")
_PERSONAL = re.compile(r"(?:i|im|ive|we|it|its|there|this|that|you|what|how|who|let|please|say|tell|give)\b")
KINDS = ("about", "named", "what", "whole", "subject", "time", "never")
TOPICS = {kind: f"said before: {kind}" for kind in KINDS}
TOLD = {topic for topic, situation in SITUATIONS.items() if situation.mood in NEWS} | {
    scene.topic for module in (chatter, others) for scene in module.SCENES
}
"""topics of what people tell"""


def ask(talk: Talk) -> bool:
    """Perhaps add a question for an earlier message; return whether there is one."""
    told = [questions for turn in talk.turns if _is_told(turn) and (questions := _questions(turn.user))]
    if not talk.dice.chance(RECALLED if told else FROM_NOTHING):
        return False
    if not told or talk.dice.chance(NEVER):
        return _ask_in_vain(talk)
    kind, values = talk.dice.choice(talk.dice.choice(told))
    talk.topic = TOPICS[kind]
    template = _TABLES[kind] if values.get("when") else _TABLES[kind].replace("( <when>|)", "")
    forgot = messages.KINDS["ask_back"]
    talk.ask(template, f"{forgot.opening} {forgot.more}", **values)
    return True


def _ask_in_vain(talk: Talk) -> bool:
    thing = talk.word(talk.dice.choice(words.THINGS))
    if any(thing.lower() in f"{turn.user} {turn.assistant}".lower() for turn in talk.turns):
        return False
    talk.topic = TOPICS["never"]
    talk.ask(_TABLES["never"], _TABLES["nothing"], x=thing)
    return True


def _is_told(turn: Turn) -> bool:
    """Return whether a message tells something that one may ask for."""
    count = len(turn.user.split())
    return SHORTEST <= count <= LONGEST and turn.topic in TOLD and not re.search(r'["?/()|<>]', _quoted(turn.user))


def _quoted(text: str) -> str:
    """Return a message without what stands at its end, and is no word."""
    return re.sub(r"[^\w)]+$", "", text)


def _questions(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return templates of questions for a message, each with its values."""
    found: list[tuple[str, dict[str, str]]] = []
    said = re.sub(r"[^\w' -]+", " ", _quoted(text).lower()).split()
    while said and said[0] in LEADS:
        said = said[1:]
    line = " ".join(said)
    time = _TIME.search(line)
    when = time[0] if time else ""
    timeless = " ".join(_TIME.sub(" ", line).split())
    for phrase_found in _NOUN.finditer(line):
        article, adjective, noun = phrase_found.groups()
        if noun not in COMMON and len(noun) > 2:
            phrase = f"{'the' if article in ('a', 'an', 'some') else article} {adjective or ''}{noun}"
            found.append(("about", {"np": phrase, "noun": noun}))
    for name in re.findall(r"(?<=[a-z] )[A-Z][a-z]{2,}", text):
        found += [("named", {"name": name})] * 2
    other = None if _PERSONAL.match(timeless) else _OTHER.fullmatch(timeless)
    if (match := _I_DID.fullmatch(timeless)) and match[1].split()[0] not in COMMON:
        values = {"s": timeless.split()[0], "verb": match[1], "object": match[2] or "", "when": when}
        found += [("what", values)] * 2
        if match[2]:
            found += [("whole", values)] * 2
    elif other and other[3] and other[1].split()[-1] not in COMMON:
        found += [("subject", {"who": other[1], "verb": other[2], "rest": f"{other[2]} {other[3]}"})] * 3
    if when:
        found.append(("time", {"when": when}))
    return found
