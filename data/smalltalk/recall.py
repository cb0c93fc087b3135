"""Questions for anything that the person said some turns ago, which are answered with their own words.

No list of facts can hold all that people tell in passing. So questions are built from the words of an earlier message,
or written for one (`recall.txt`), and the reply quotes the message, or of a long one the part that answers. Messages of
the kind `ask_back`, which refer to nothing in the conversation, are answered by "I'm not sure any more" (see
`messages.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from grammar import is_reserved, listed

from smalltalk import chatter, messages, others, words
from smalltalk.situations import NEWS, SITUATIONS
from smalltalk.talk import Scene, Scenes, Talk, Turn

_TABLES = words.table(__file__)
NEVER, FROM_NOTHING = 0.06, 0.01
"""probabilities that the person, who asks for something that they said, asks for what they did not; the latter also
where they have told nothing"""
ASKED_NOW = 0.4
"""probability that a question that was written for an earlier message is asked at this turn"""
SHORTEST, LONGEST = 4, 30
"""in words: a message that is asked for"""
HELD_OUT = 25
"""one of the messages that questions are written for is held out, of so many"""
SHORT, LONGEST_QUOTED = 20, 14
"""in words: a text up to the first is quoted as a whole; of a longer one a sentence, and of a sentence longer than the
second a clause"""
LEADS, COMMON = frozenset(listed(_TABLES["leads"])), frozenset(listed(_TABLES["common"]))
ANSWER = 'You said: "<v>".'
BASES = dict(entry.split("=") for entry in listed(_TABLES["bases"]))
"""verbs of the past, and what questions make of them (what did i buy?)"""
PEOPLE, VAGUE, PLACES, TOWARDS = (frozenset(listed(_TABLES[name])) for name in ("people", "vague", "places", "towards"))
BASE_VERBS = frozenset(BASES.values()) | PLACES
ADJECTIVES = listed(_TABLES["adjectives"])
NAMES = frozenset(name.lower() for name in words.NAMES)
CALENDAR = frozenset(name.lower() for name in (*words.MONTHS, *words.DAYS))
_TIME = re.compile(rf"\b(?:{'|'.join(listed(_TABLES['times'], ','))})\b")
_PAST = re.compile(r"yesterday|last|this morning|.* ago")
_WHAT_ONE_IS = re.compile(r"\b(?:am|im|i'm|he's|she's|is|was|been|be|as|like|becoming) $")
_NOUN = re.compile(
    rf"\b(my|our|the|a|an|his|her|their|some) ((?:(?:{'|'.join(ADJECTIVES)}) )*)([a-z]+)"
    rf"(?=$| (?:{'|'.join(listed(_TABLES['behind']))})\b)"  # else it may be the first half of a compound
)
_I_DID = re.compile(
    r"(i|we) ([a-z]+(?: (?:to|up|out|at|for|about|into|on|in|with|off|down|away|back|over|together))?)(?: (.+))?"
)
_OTHER = re.compile(r"((?:my|our|the|his|her) (?:[a-z]+ )??[a-z]+|[a-z]+) ([a-z]+)(?: (.+))?")
_PERSONAL = re.compile(
    r"(?:i|im|ive|we|it|its|there|this|that|you|what|how|who|let|please|say|tell|give|he|she|they)\b"
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_OWN_NAME = re.compile(r"(?i)\b(?:i'?m|i am|name is|name's|call me|called|it's|its) $")
_SENTENCE = re.compile(r"(?:[^.!?;:]|[.!?;:](?=\S))+")
_CLAUSES = re.compile(rf",+ +| (?=(?:{'|'.join(listed(_TABLES['joins']))}) )", re.IGNORECASE)
_WORD = re.compile(r"[\w'-]+")
KINDS = (
    "about",
    "which",
    "named",
    "person",
    "what",
    "did",
    "do",
    "where",
    "when",
    "time",
    "happened",
    "who",
    "thing",
    "never",
)
TOPICS = {kind: f"said before: {kind}" for kind in KINDS}
WRITTEN = "said before, in other words"
TOLD = {topic for topic, situation in SITUATIONS.items() if situation.mood in NEWS} | {
    scene.topic for module in (chatter, others) for scene in module.SCENES
}
"""topics of what people tell"""
TOLD_KINDS = messages.MOODS | {"told", "answer"}
"""kinds of messages that tell something"""


Question = tuple[str, dict[str, str]]
"""a kind, whose templates are in the table of that name, and values of their slots"""


class Told(NamedTuple):
    """A message, questions for it, and the part of it that answers them."""

    text: str
    part: str
    questions: tuple[str, ...]


def _read(path: Path) -> list[Told]:
    blocks = (block.splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n"))
    return [Told(text, part.strip("[]"), tuple(questions)) for text, part, *questions in blocks]


ALL = _read(Path(__file__).with_suffix(".txt"))
HELD_OUT_TOLD = [told for told in ALL if is_reserved(HELD_OUT, told.text)]
TRAINED = [told for told in ALL if not is_reserved(HELD_OUT, told.text)]
TRAINED_QUESTIONS = {question for told in TRAINED for question in told.questions}


def tell(talk: Talk) -> None:
    """Add a message for which questions are written, one of them to be asked at a later turn, if there is one."""
    told = talk.dice.choice(HELD_OUT_TOLD if talk.held_out else TRAINED)
    marked = told.text.replace(told.part, f"{{{told.part}}}", 1)
    talk.add_message(marked, messages.answer(told.text))
    found = re.search(re.escape(talk.word(told.part)), talk.turns[-1].user, re.IGNORECASE)
    if found:
        talk.to_ask.append((talk.dice.choice(told.questions), quote(talk.turns[-1].user, found[0])))


def ask(talk: Talk) -> bool:
    """Perhaps add a question for an earlier message; return whether there is one."""
    if talk.to_ask and len(talk.turns) > 1 and (talk.left == 1 or talk.dice.chance(ASKED_NOW)):
        question, part = talk.to_ask.pop(0)
        talk.topic = WRITTEN
        talk.add_message(question, ANSWER, v=_unshouted(part))
        is_held_out = talk.held_out and question not in TRAINED_QUESTIONS
        talk.turns[-1] = talk.turns[-1]._replace(is_held_out=is_held_out)
        return True
    told = [questions for turn in talk.turns if _is_told(turn) and (questions := _questions(turn.user))]
    if not talk.dice.chance(talk.asks_back if told else FROM_NOTHING):
        return False
    if not told or talk.dice.chance(NEVER):
        return _ask_in_vain(talk)
    kind, values = talk.dice.choice(talk.dice.choice(told))
    talk.topic = TOPICS[kind]
    template = _TABLES[kind] if values.get("when") else _TABLES[kind].replace("( <when>|)", "")
    talk.ask(template, ANSWER, **values, v=_unshouted(quote(values["text"], values["key"])))
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
    if messages.is_request(turn.user) or re.search(r'["?/()|<>]', turn.user):
        return False
    return SHORTEST <= count <= LONGEST and (turn.topic in TOLD or turn.kind in TOLD_KINDS)


def _unshouted(text: str) -> str:
    return text.lower() if text.isupper() else text


def parts(text: str) -> list[str]:
    """Return what may be quoted of a text, without marks at the ends: all, its sentences, or clauses of long ones."""
    found = [text]
    if len(text.split()) > SHORT:
        found = []
        for sentence in _SENTENCE.findall(text):
            found += _CLAUSES.split(sentence) if len(sentence.split()) > LONGEST_QUOTED else [sentence]
    return [re.sub(r"^[ ,-]+|[^\w>%]+$", "", part) for part in found if _WORD.search(part)]


def quote(text: str, answer: str) -> str:
    """Return the part of a text in which the answer stands, or the answer itself if it reaches over several."""
    whole = re.compile(rf"(?<![\w'-]){re.escape(answer)}(?![\w'-])", re.IGNORECASE)
    return next((part for part in parts(text) if whole.search(part)), answer)


def _questions(text: str) -> list[Question]:
    """Return questions for a message. Of their values, `key` is a word of the part to quote, and `text` the message."""
    questions: list[Question] = []
    for sentence in _SENTENCE.findall(text):
        said = [word.lower() for word in _WORD.findall(sentence)]
        while said and said[0] in LEADS:
            said = said[1:]
        line = " ".join(said)
        time = _TIME.search(line)
        when = time[0] if time else ""
        timeless = " ".join(_TIME.sub(" ", line).split())
        found = [*_about_things(line), *_about_names(sentence), *_about_deeds(timeless, when)]
        if when and not when.startswith("all "):
            kind, day = ("happened", when) if _PAST.match(when) else ("time", when.removeprefix("on "))
            found.append((kind, {"when": day, "key": when.split()[-1]}))
        questions += [(kind, {**values, "text": text}) for kind, values in found if values["key"] in said]
    return questions


def _about_things(line: str) -> Iterator[Question]:
    for found in _NOUN.finditer(line):
        article, adjective, noun = found.groups()
        if noun in COMMON or noun in VAGUE or noun in ADJECTIVES or len(noun) < 3:
            continue
        if article in ("a", "an") and _WHAT_ONE_IS.search(line[: found.start()]):
            continue
        phrase = f"{'the' if article in ('a', 'an', 'some') else article} {adjective}{noun}"
        yield "about", {"np": phrase, "key": noun}
        if not VAGUE.issuperset(adjective.split()):
            yield "which", {"noun": noun, "key": noun}


def _about_names(sentence: str) -> Iterator[Question]:
    for found in _NAME.finditer(sentence):
        name = found[0]
        if name.lower() in COMMON or name.lower() in CALENDAR or _OWN_NAME.search(sentence[: found.start()]):
            continue
        for kind in ("named", "person") if name.lower() in NAMES else ("named",):
            yield kind, {"name": name, "key": name.lower()}


def _about_deeds(line: str, when: str) -> Iterator[Question]:
    """Yield questions for what the person, or somebody else, did, in a sentence without its time."""
    if match := _I_DID.fullmatch(line):
        who, phrase, what = match.groups()
        verb, _, particle = phrase.partition(" ")
        is_present = verb in BASE_VERBS and verb not in BASES
        does = (is_present or verb in BASES) and verb not in ("have", "had")  # which mostly help another verb
        if not does or not what or (particle == "to" and verb not in TOWARDS):
            return
        values = {"s": who, "verb": phrase, "object": what, "when": when, "key": verb}
        if is_present and verb in PLACES:
            yield from [("where", values)] * 3
        elif is_present:
            yield from [("do", values)] * 3
        else:
            values["base"] = phrase.replace(verb, BASES[verb], 1)
            yield from [("what", values)] * 2 + [("did", values)] * 3
            if when and len(what.split()) < 7:
                yield from [("when", values)] * 2
    elif not _PERSONAL.match(line) and (other := _OTHER.fullmatch(line)) and other[3]:
        who, verb, rest = other.groups()
        head = who.split()[-1]
        does = verb in BASES or (verb.endswith("s") and verb[:-1] in BASE_VERBS)
        if does and head not in COMMON and not rest.startswith("of ") and len(rest.split()) < 7:
            kind = "who" if head in PEOPLE or head in NAMES else "thing"
            yield from [(kind, {"who": who, "rest": f"{verb} {rest}", "key": verb})] * 3


SCENES: Scenes = (Scene(WRITTEN, 320.0, tell),)
