"""Questions for anything that the person said some turns ago, which are answered with their own words.

No list of facts can hold all that people tell in passing. So questions are built from the words of an earlier message,
or written for one (`recall.txt`), and the reply quotes the part that answers. Messages of the kind `ask_back`, which
refer to nothing in the conversation, are answered by "I'm not sure any more" (see `messages.toml`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from grammar import is_reserved, listed

from smalltalk import chatter, messages, others, words
from smalltalk.situations import NEWS, SITUATIONS
from smalltalk.talk import Scene, Scenes, Talk, Turn

_TABLES = words.table(__file__)
RECALLED, NEVER, FROM_NOTHING = 0.25, 0.06, 0.01
"""probabilities that the person asks for something that they said, or then for what they did not; the latter also where
they have told nothing"""
ASKED_NOW = 0.4
"""probability that a question that was written for an earlier message is asked at this turn"""
SHORTEST, LONGEST = 4, 30
"""in words: a message that is asked for"""
HELD_OUT = 25
"""one of the messages that questions are written for is held out, of so many"""
SHORT, LONGEST_QUOTED = 8, 14
"""in words: a text up to the first is quoted as a whole, and of a sentence longer than the second a clause"""
LEADS, COMMON = frozenset(listed(_TABLES["leads"])), frozenset(listed(_TABLES["common"]))
ANSWER = 'You said: "<v>".'
BASES = dict(entry.split("=") for entry in listed(_TABLES["bases"]))
"""verbs of the past, and what questions make of them (what did i buy?)"""
_TIME = re.compile(rf"\b(?:{'|'.join(listed(_TABLES['times'], ','))})\b")
_NOUN = re.compile(
    rf"\b(my|our|the|a|an|his|her|their|some) ((?:(?:{'|'.join(listed(_TABLES['adjectives']))}) )*)([a-z]+)\b"
)
_I_DID = re.compile(r"(?:i|we) ([a-z]+(?: (?:to|up|out|at|for|about|into|on|in|with))?)(?: (.+))?")
_OTHER = re.compile(r"((?:my|our|the|his|her) (?:[a-z]+ )??[a-z]+|[a-z]+) ([a-z]+(?:'s)?)(?: (.+))?")
_PERSONAL = re.compile(r"(?:i|im|ive|we|it|its|there|this|that|you|what|how|who|let|please|say|tell|give)\b")
_SENTENCE = re.compile(r"(?:[^.!?;:]|[.!?;:](?=\S))+")
_CLAUSES = re.compile(rf",+ +| (?=(?:{'|'.join(listed(_TABLES['joins']))}) )", re.IGNORECASE)
_WORD = re.compile(r"[\w'-]+")
KINDS = ("about", "named", "what", "did", "whole", "subject", "time", "never")
TOPICS = {kind: f"said before: {kind}" for kind in KINDS}
WRITTEN = "said before, in other words"
TOLD = {topic for topic, situation in SITUATIONS.items() if situation.mood in NEWS} | {
    scene.topic for module in (chatter, others) for scene in module.SCENES
}
"""topics of what people tell"""
TOLD_KINDS = messages.MOODS | {"told", "answer"}
"""kinds of messages that tell something"""


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
    if not talk.dice.chance(RECALLED if told else FROM_NOTHING):
        return False
    if not told or talk.dice.chance(NEVER):
        return _ask_in_vain(talk)
    kind, values = talk.dice.choice(talk.dice.choice(told))
    talk.topic = TOPICS[kind]
    template = _TABLES[kind] if values.get("when") else _TABLES[kind].replace("( <when>|)", "")
    talk.ask(template, ANSWER, **values, v=_unshouted(quote(values["sentence"], values["key"])))
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
    found = []
    for sentence in [text] if len(text.split()) <= SHORT else _SENTENCE.findall(text):
        is_long = len(sentence.split()) > LONGEST_QUOTED
        found += _CLAUSES.split(sentence) if is_long else [sentence]
    return [re.sub(r"^[ ,-]+|[^\w>%]+$", "", part) for part in found if _WORD.search(part)]


def quote(text: str, answer: str) -> str:
    """Return the part of a text in which the answer stands, or the answer itself if it reaches over several."""
    whole = re.compile(rf"(?<![\w'-]){re.escape(answer)}(?![\w'-])", re.IGNORECASE)
    return next((part for part in parts(text) if whole.search(part)), answer)


def _questions(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return templates of questions for a message, each with its values.

    `key` is a word of the part to quote, and `sentence` where it stands.
    """
    questions: list[tuple[str, dict[str, str]]] = []
    for sentence in _SENTENCE.findall(text):
        found: list[tuple[str, dict[str, str]]] = []
        said = [word.lower() for word in _WORD.findall(sentence)]
        while said and said[0] in LEADS:
            said = said[1:]
        line = " ".join(said)
        time = _TIME.search(line)
        when = time[0] if time else ""
        timeless = " ".join(_TIME.sub(" ", line).split())
        for phrase_found in _NOUN.finditer(line):
            article, adjective, noun = phrase_found.groups()
            if noun not in COMMON and len(noun) > 2 and noun in said:
                phrase = f"{'the' if article in ('a', 'an', 'some') else article} {adjective}{noun}"
                found.append(("about", {"np": phrase, "noun": noun, "key": noun}))
        for name in re.findall(r"(?<=[a-z] )[A-Z][a-z]{2,}\b", sentence):
            if name.lower() in said and name.lower() not in COMMON:
                found += [("named", {"name": name, "key": name.lower()})] * 2
        other = None if _PERSONAL.match(timeless) else _OTHER.fullmatch(timeless)
        match = _I_DID.fullmatch(timeless)
        verb = match[1].split()[0] if match else ""
        if match and verb in said and (verb in BASES or verb not in COMMON):
            values = {"s": timeless.split()[0], "verb": match[1], "object": match[2] or "", "when": when, "key": verb}
            found += [("what", values)] * 2
            if verb in BASES:
                base = match[1].replace(verb, BASES[verb], 1)
                found += [("did", {**values, "base": base, "object": match[2] or "that"})] * 3
            if match[2] and len(match[2].split()) < 7:
                found += [("whole", values)] * 2
        elif (
            other
            and other[3]
            and other[2] in said
            and len(other[3].split()) < 7
            and COMMON.isdisjoint((other[1].split()[-1], other[2]))
        ):
            found += [
                ("subject", {"who": other[1], "verb": other[2], "rest": f"{other[2]} {other[3]}", "key": other[2]})
            ] * 3
        if when and when.split()[-1] in said:
            found.append(("time", {"when": when, "key": when.split()[-1]}))
        questions += [(kind, {**values, "sentence": sentence}) for kind, values in found]
    return questions


SCENES: Scenes = (Scene(WRITTEN, 320.0, tell),)
