"""Questions for anything that the person said some turns ago, which are answered with their own words.

No list of facts can hold all that people tell in passing. So questions are built from the words of an earlier message,
or written for one (`recall/*.txt`), and the reply quotes the message, or of a long one the part that answers. Some
people name a topic in one message, tell its detail in the next, and ask for the detail with the words of the topic
(`recall/threads/*.txt`). Messages of the kind `ask_back`, which refer to nothing in the conversation, are answered by
"I'm not sure any more" (see `messages.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from grammar import is_reserved, listed

from smalltalk import chatter, messages, others, words
from smalltalk.quotes import ANSWER, SENTENCE, WORD, quote
from smalltalk.situations import NEWS, SITUATIONS
from smalltalk.talk import Asked, Scene, Scenes, Talk, Turn

_TABLES = words.table(__file__)
NEVER, FROM_NOTHING = 0.06, 0.01
"""Probabilities that the person, who asks for something that they said, asks for what they did not; the latter also
where they have told nothing."""
ASKED_NOW = 0.4
"""Probability that a question that was written for an earlier message is asked at this turn."""
SHORTEST, LONGEST = 4, 30
"""In words: a message that is asked for."""
HELD_OUT = 25
"""One in so many of the messages that questions are written for is held out."""
QUIZZED, LONGEST_IN_QUIZ, WRITTEN_IN_QUIZ, THREADED_IN_QUIZ = (2, 8), 12, 0.4, 0.2
"""Of a quiz: least and most messages; words of the longest one but for those of threads; the probabilities that the
next message has written questions, and that the next ones are a thread."""
TOPIC_ASKED, ELSE_ASKED = 0.4, 0.5
"""Of a thread: the probabilities that its first message is asked for as well as a later one, and that something else
about it is asked behind it."""
ASKED_ELSE = 0.25
"""Probability that something else is asked before a question of a quiz."""
LEADS, COMMON = frozenset(listed(_TABLES["leads"])), frozenset(listed(_TABLES["common"]))
BASES = dict(entry.split("=") for entry in listed(_TABLES["bases"]))
"""Verbs of the past, and what questions make of them (what did i buy?)."""
PEOPLE, VAGUE, PLACES, STUDIES, TOWARDS, NO_OBJECT = (
    frozenset(listed(_TABLES[name])) for name in ("people", "vague", "places", "studies", "towards", "no_object")
)
BASE_VERBS = frozenset(BASES.values()) | PLACES
ADJECTIVES = listed(_TABLES["adjectives"])
NAMES = frozenset(name.lower() for name in words.NAMES)
CALENDAR = frozenset(name.lower() for name in (*words.MONTHS, *words.DAYS))
_TIME = re.compile(rf"\b(?:{'|'.join(listed(_TABLES['times'], ','))})\b")
_PAST = re.compile(r"yesterday|last|this morning|.* ago")
_DAY = re.compile(r"to(?:day|night|morrow)|this |next |on |at the weekend|the day")
_SOMEWHERE = re.compile(
    r"(?:in|at|near|from|on|by|behind|above) "
    r"(?!(?:the )?(?:morning|evening|afternoon|night|weekend)s?\b|secret|myself|ourselves)"
)
_SOMEBODY = re.compile(
    rf"(?:(?:my|our|the|an?|his|her) )?(?:[a-z]+ )??(?:{'|'.join(sorted(PEOPLE))})"
    r"(?:$| (?:in|at|on|with|for|to|about|from|again|and|that|because|when)\b)"
)
_WHAT_ONE_IS = re.compile(r"\b(?:am|im|i'm|he's|she's|is|was|been|be|as|like|becoming) $")
_NOUN = re.compile(
    rf"\b(my|our|the|a|an|his|her|their|some) ((?:(?:{'|'.join(ADJECTIVES)}) )*)([a-z]+)"
    rf"(?=$| (?:{'|'.join(listed(_TABLES['behind']))})\b)"  # else it may be the first half of a compound
)
_I_DID = re.compile(
    r"(i|we) ([a-z]+(?: (?:to|up|out|at|for|about|into|on|in|with|off|down|away|back|over|together))?)(?: (.+))?"
)
_OTHER = re.compile(r"((?:(my|our|the|his|her) (?:[a-z]+ )??)?[a-z]+) ([a-z]+)(?: (.+))?")
_PERSONAL = re.compile(
    r"(?:i|im|ive|we|it|its|there|this|that|you|what|how|who|let|please|say|tell|give|he|she|they)\b"
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_OWN_NAME = re.compile(r"(?i)\b(?:i'?m|i am|name is|name's|call me|called|it's|its) $")
KINDS = (
    "about",
    "which",
    "named",
    "person",
    "what",
    "did",
    "do",
    "whom",
    "went",
    "where",
    "when",
    "time",
    "happened",
    "who",
    "thing",
    "never",
)
TOPICS = {kind: f"said before: {kind}" for kind in KINDS}
WRITTEN, THREADED = "said before, in other words", "said before, in two messages"
TOLD = {topic for topic, situation in SITUATIONS.items() if situation.mood in NEWS} | {
    scene.topic for module in (chatter, others) for scene in module.SCENES
}
"""Topics of what people tell."""
TOLD_KINDS = messages.MOODS | {"told", "answer"}
"""Kinds of messages that tell something."""


Question = tuple[str, dict[str, str]]
"""A kind, whose templates are in the table of that name, and values of their slots."""


class Told(NamedTuple):
    """A message, questions for it, and the part of it that answers them."""

    text: str
    part: str
    questions: tuple[str, ...]


class Thread(NamedTuple):
    """Messages that a person writes one after the other about one matter, and what else they ask about it."""

    told: tuple[Told, ...]
    asked: messages.Message


def _read(path: Path) -> list[Told]:
    blocks = (block.splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n"))
    return [Told(text, part.strip("[]"), tuple(questions)) for text, part, *questions in blocks]


def _read_threads(path: Path) -> list[Thread]:
    """Read blocks of messages, each with the questions for it (`= …`, `< …`), and of something else that is asked
    (`- kind: …`)."""
    threads: list[Thread] = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        *lines, last = block.splitlines()
        told: list[Told] = []
        for line in lines:
            text = line[2:]
            if line.startswith("= "):
                told.append(Told(text, text, ()))
            else:
                told[-1] = told[-1]._replace(questions=(*told[-1].questions, text))
        kind, _, text = last.removeprefix("- ").partition(": ")
        threads.append(Thread(tuple(told), messages.Message(text, kind)))
    return threads


ALL = [told for path in sorted(Path(__file__).with_suffix("").glob("*.txt")) for told in _read(path)]
HELD_OUT_TOLD = [told for told in ALL if is_reserved(HELD_OUT, told.text)]
TRAINED = [told for told in ALL if not is_reserved(HELD_OUT, told.text)]
HELD_OUT_BRIEF, TRAINED_BRIEF = (
    [one for one in every if one.kind in TOLD_KINDS and SHORTEST <= len(one.text.split()) <= LONGEST_IN_QUIZ]
    for every in (messages.HELD_OUT_MESSAGES, messages.TRAINED)
)
_THREADS = sorted((Path(__file__).with_suffix("") / "threads").glob("*.txt"))
THREADS = [thread for path in _THREADS for thread in _read_threads(path)]
HELD_OUT_THREADS = [thread for thread in THREADS if is_reserved(HELD_OUT, thread.told[0].text)]
TRAINED_THREADS = [thread for thread in THREADS if not is_reserved(HELD_OUT, thread.told[0].text)]
TRAINED_QUESTIONS = {question for told in TRAINED for question in told.questions} | {
    question for thread in TRAINED_THREADS for told in thread.told for question in told.questions
}


def tell(talk: Talk, *, longest: int = LONGEST) -> None:
    """Add a message of up to so many words for which questions are written, one to be asked at a later turn."""
    told = talk.dice.choice(HELD_OUT_TOLD if talk.held_out else TRAINED)
    while len(told.text.split()) > longest:
        told = talk.dice.choice(HELD_OUT_TOLD if talk.held_out else TRAINED)
    marked = told.text.replace(told.part, f"{{{told.part}}}", 1)
    talk.add_message(marked, messages.answer(told.text))
    part = quote(talk.turns[-1].user, talk.word(told.part))
    talk.to_ask.append(Asked(WRITTEN, talk.dice.choice(told.questions), part))


def tell_thread(talk: Talk) -> None:
    """Add the messages of a thread, one of them to be asked for at a later turn, and perhaps its first one, too."""
    thread = talk.dice.choice(HELD_OUT_THREADS if talk.held_out else TRAINED_THREADS)
    asks_else = talk.dice.chance(ELSE_ASKED)
    first, *later = (told for told in thread.told if told.questions)
    wanted = {talk.dice.choice(later)}
    if talk.dice.chance(TOPIC_ASKED):
        wanted.add(first)
    talk.length = max(talk.length, len(talk.turns) + len(thread.told) + asks_else + len(wanted))
    for told in thread.told:
        talk.add_message(told.text, messages.answer(told.text))
        if told in wanted:
            talk.to_ask.append(Asked(THREADED, talk.dice.choice(told.questions), quote(talk.turns[-1].user)))
    if asks_else:
        messages.ask(talk, thread.asked)


def ask(talk: Talk) -> bool:
    """Perhaps add a question for an earlier message; return whether there is one."""
    if talk.to_ask and len(talk.turns) > 1 and (talk.left <= len(talk.to_ask) or talk.dice.chance(ASKED_NOW)):
        _ask_written(talk)
        return True
    # What was quoted, or will be, is left out: the model could copy its own reply.
    quoted = [turn.values["v"].lower() for turn in talk.turns if turn.replies == ANSWER]
    quoted += [part.lower() for part in (*talk.asked_later, *(one.part for one in talk.to_ask))]
    told = [
        questions
        for turn in talk.turns
        if _is_told(turn)
        and not any(part in turn.user.lower() for part in quoted)
        and (questions := _only_of(turn, talk))
    ]
    if not talk.dice.chance(talk.asks_back if told else FROM_NOTHING):
        return False
    if not told or talk.dice.chance(NEVER):
        return _ask_in_vain(talk)
    questions = talk.dice.choice(told)
    kind = talk.dice.choice(sorted({kind for kind, _ in questions}))
    values = talk.dice.choice([values for one, values in questions if one == kind])
    talk.topic = TOPICS[kind]
    template = _TABLES[kind] if values.get("when") else _TABLES[kind].replace("( <when>|)", "")
    talk.ask(template, ANSWER, **values, v=quote(values["text"], values["key"], values["sentence"]))
    return True


def ask_the_rest(talk: Talk) -> None:
    """Add the questions that are still to be asked."""
    while talk.to_ask:
        talk.length += 1
        _ask_written(talk)


def _ask_written(talk: Talk) -> None:
    talk.topic, question, part = talk.to_ask.pop(talk.dice.below(len(talk.to_ask)))
    talk.add_message(question, ANSWER, v=part)
    is_held_out = talk.held_out and question not in TRAINED_QUESTIONS
    talk.turns[-1] = talk.turns[-1]._replace(is_held_out=is_held_out)


def _only_of(turn: Turn, talk: Talk) -> list[Question]:
    """Return questions for the message of a turn by words that no other message has."""
    of_others = " ".join(one.user for one in talk.turns if one is not turn and one.replies != ANSWER).lower()
    said = set(WORD.findall(of_others))
    return [(kind, values) for kind, values in _questions(turn.user) if values["key"] not in said]


def quiz(talk: Talk) -> None:
    """Add some short messages, and then questions for each of them, in any order."""
    brief = HELD_OUT_BRIEF if talk.held_out else TRAINED_BRIEF
    talk.length = 2 * talk.dice.between(*QUIZZED)
    while len(talk.turns) < talk.length // 2:
        if talk.dice.chance(THREADED_IN_QUIZ):
            talk.topic = THREADED
            tell_thread(talk)
        elif talk.dice.chance(WRITTEN_IN_QUIZ):
            talk.topic = WRITTEN
            tell(talk, longest=LONGEST_IN_QUIZ)
        else:
            message = talk.dice.choice(brief)
            while not _questions(message.text):
                message = talk.dice.choice(brief)
            talk.topic = messages.TOPIC
            reply = messages.reply_to(talk.dice, message)
            talk.add_message(message.text, reply, kind=message.kind)
    talk.asks_back = 1.0
    while talk.left:
        if talk.dice.chance(ASKED_ELSE):  # else any question behind short messages would be one for them
            talk.length += 1
            talk.topic = messages.TOPIC
            messages.request(talk)
        elif not ask(talk) and not talk.to_ask:
            break
    talk.length = len(talk.turns)


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


@lru_cache(1 << 10)
def _questions(text: str) -> list[Question]:
    """Return questions for a message; of their values, `key` is a word of `sentence`, which is one of the `text`."""
    questions: list[Question] = []
    for sentence in SENTENCE.findall(text):
        said = [word.lower() for word in WORD.findall(sentence)]
        while said and said[0] in LEADS:
            said = said[1:]
        line = " ".join(said)
        time = _TIME.search(line)
        when = time[0] if time else ""
        timeless = " ".join(_TIME.sub(" ", line).split())
        found = [*_about_things(line), *_about_names(sentence), *_about_deeds(timeless, when)]
        if _PAST.match(when):
            found.append(("happened", {"when": when, "key": when.split()[-1]}))
        elif _DAY.match(when):
            found.append(("time", {"when": when.removeprefix("on "), "key": when.split()[-1]}))
        questions += [
            (kind, {**values, "text": text, "sentence": sentence}) for kind, values in found if values["key"] in said
        ]
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
        who, phrase, what = match.groups(default="")
        yield from _about_own_deed(who, phrase, what, when)
    elif not _PERSONAL.match(line) and (other := _OTHER.fullmatch(line)) and other[4]:
        who, whose, verb, rest = other.groups()
        head = who.split()[-1]
        does = verb in BASES or (verb.endswith("s") and verb[:-1] in BASE_VERBS)
        is_somebody = head in PEOPLE or head in NAMES
        if (
            does
            and head not in COMMON
            and not rest.startswith("of ")
            and len(rest.split()) < 7
            and (is_somebody or whose)
        ):
            yield "who" if is_somebody else "thing", {"who": who, "rest": f"{verb} {rest}", "key": verb}


def _about_own_deed(who: str, phrase: str, what: str, when: str) -> Iterator[Question]:
    """Yield questions for what `who`, the person alone or with others, did: the verb with its particle, the rest."""
    verb, _, particle = phrase.partition(" ")
    values = {"s": who, "verb": phrase, "object": what, "when": when, "key": verb}
    is_present = verb in BASE_VERBS and verb not in BASES
    if not what or not (is_present or verb in BASES) or verb in ("have", "had"):  # which mostly help another verb
        return
    if what.split()[0] in NAMES:  # or a word that is spelled like one
        return
    if is_present and verb in PLACES and _SOMEWHERE.match(f"{particle} {what}".strip()):
        yield "where", {**values, "verb": verb}
    elif particle == "to":
        if verb in TOWARDS and what.split()[0] not in BASE_VERBS:
            yield "went", {**values, "verb": verb, "base": BASES[verb]}
    elif is_present:
        if verb not in PLACES or verb in STUDIES:
            yield "do", values
    elif verb not in NO_OBJECT or particle in ("about", "at", "into"):
        values["base"] = phrase.replace(verb, BASES[verb], 1)
        yield from ((kind, values) for kind in (("whom",) if _SOMEBODY.match(what) else ("what", "did")))
        if (_PAST.match(when) or _DAY.match(when)) and len(what.split()) < 7:
            yield "when", values


SCENES: Scenes = (Scene(WRITTEN, 800.0, tell), Scene(THREADED, 400.0, tell_thread))
