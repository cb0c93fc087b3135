"""Statements about anything, which no other topic knows: the bot takes up their noun, and asks instead of guessing.

They are sentences of `phrases`, so that a message of unknown words is not taken for the known one that shares a word
with it; with what people add to them: a greeting, thanks, a farewell, or that they were misunderstood.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from grammar import Dice, Lines, listed
from phrases import english
from phrases.draft import Draft
from phrases.make import draw
from phrases.nouns import BY_NAME
from phrases.tables import WORDS

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

_TABLES = words.table(__file__)
SHAPES: dict[str, list[str]] = _TABLES["shapes"]
VERBS = [(re.compile(rf"(?:\b|(?='))(?:{verbs}) $"), replies) for verbs, replies in _TABLES["verbs"].items()]
"""What may stand before a noun phrase, and replies that fit it."""
TURNED: dict[str, str] = dict(pair.split("=") for pair in listed(_TABLES["turned"], ","))
"""Words of the person, and what the reply makes of them."""
_TURN = re.compile(
    r"\b("
    + "|".join(sorted(TURNED, key=len, reverse=True))
    + r")\b(?!')(?! (?:morning|afternoon|evening|week|weekend|month|year|summer|winter)\b)",
    re.IGNORECASE,
)
_MANY = {word.english for kind in WORDS.values() for word in kind if word.many}
_ONE = {word.english for kind in WORDS.values() for word in kind if not word.many} | set(BY_NAME)
_PLURALS = _MANY | {english.plural(word) for word in _ONE}
_ALL = sorted({word for word in _ONE | _PLURALS if word.islower()}, key=len, reverse=True)
_PEOPLE = {word.english for kind in ("person", "person_s", "kin", "person1") for word in WORDS[kind]} | set(
    listed(
        "mother father mum dad parents grandmother grandfather grandparents aunt uncle sister brother sisters brothers"
        " cousin wife husband daughter son niece nephew children doctor boss colleague neighbours friends men women"
    )
)
_ARTICLE = r"(?:a|an|the|my|our|his|her|their|this|that|these|those|some|two|three|four|five|six|seven|many)"
NOUN = re.compile(
    rf"(?<![\w-])({_ARTICLE}) ((?:(?!(?:of|to|in|is|was)\b)[a-z-]+ )?)({'|'.join(map(re.escape, _ALL))})\b(?!')"
)
BARE = re.compile(
    rf"\b(?:like|likes|love|loves|of|eat|eats|ate|drink|drinks|drank|buy|bought|prefer) ({'|'.join(_ALL)})$"
)
THERE = re.compile(r"There(?:'s| is| are| was| were) (?!no\b|not\b|nothing|nobody|more|less)([\w -]+?) ((?:in|on|under"
                   r"|behind|next to|in front of|near|at|between|beside|inside|above|opposite|by) .+)")  # fmt: skip
WISH = re.compile(
    r"(?:I|We|He|She|They|My \w+|Our \w+|The \w+)(?: would like|'d like| want| wants| wanted| hope| hopes| plan| plans"
    r"| need| needs| am going|'m going|'re going|'s going| are going| is going| have| has| had) to (?!be\b|have\b)(.+)"
)
IS_LIKE = re.compile(
    r"(?:I|We|He|She|They|It|[A-Z]\w+ (?:\w+ )?\w+)(?:'m| am|'re| are|'s| is| was| were) ((?:very|too|so|a little|quite"
    r"|always) )?((?:more )?[a-z]+(?:er|y|ful|ive|ish|ous|al|ant|ent|ed|ic|ble|less|id))(?: than .+)?"
)
NOT = re.compile(r"\b(not|never|nobody|nothing|no|none|\w+n't|cannot|neither)\b")
LONGEST_TURNED = 9
"""Words of a sentence that a reply turns round."""
BEGINNING = re.compile(r"(I|We|My|Our|He|She|They|His|Her|Their|The|This|That|There|It|Nobody|Somebody|Someone)\b")
"""Of a statement, not of a request."""
OTHER_TOPICS = re.compile(
    r" [A-Z][a-z]|\d|\b(you|yours?|sick|ill|hurts?|pain|fever|doctor|hospital|tired|sad|sorry|afraid|angry|cry\w*|died"
    r"|dead|throat|aches?|cough|war|broken?|lost|stole\w*|accident|happy|birthday|married|baby|won|weather|rain\w*|snow\w*|hungry|thirsty"
    r"|bored|name|called|favou?rite|joke|riddle|story)\b"
)
"""Names and numbers, and what has replies of its own."""
SHORTEST = 4
"""In words."""

SAID = _TABLES["said"]
STATES = listed(SAID["states"], ",")


class Echo(NamedTuple):
    """Replies that take something up, and what they take up."""

    shape: str
    replies: Lines
    values: dict[str, str]


def turned(text: str) -> str:
    """Return the text as the other side says it: “I lost my key” → “you lost your key”."""
    changed = _TURN.sub(lambda found: TURNED[found[0].lower()], text)
    return changed[0].lower() + changed[1:]


def echo(dice: Dice, sentence: str) -> Echo | None:
    """Return replies that take up the sentence, drawn from what they could take up; None where that is nothing."""
    found: list[tuple[float, str, dict[str, str]]] = []
    said = turned(sentence)
    is_denied = bool(NOT.search(sentence))
    if match := THERE.fullmatch(sentence):
        shape = "there_are" if re.match(r"There('s| is| was)\b", sentence) is None else "there_is"
        found.append((4.0, shape, {"np": turned(match[1]), "p": turned(match[2])}))
    elif not is_denied:
        if match := WISH.fullmatch(sentence):
            found.append((3.0, "wish", {"vp": turned(match[1])}))
        if match := IS_LIKE.fullmatch(sentence):
            found.append((2.5, "adjective", {"adj": (match[1] or "") + match[2]}))
        if match := BARE.search(sentence):
            found.append((3.0, "bare", {"np": match[1]}))
    begun = sentence[0].lower() + sentence[1:]
    if not is_denied and (nouns := list(NOUN.finditer(begun))):
        match = nouns[0] if dice.chance(0.8) else dice.choice(nouns)
        values = {"np": turned("".join((match[1], " ", match[2], match[3])))}
        many = match[3] in _PLURALS
        if match[3] in _PEOPLE:
            found.append((6.0, "people" if many else "person", values))
        else:
            fitting = [replies for verb, replies in VERBS if verb.search(begun[: match.start()])]
            if fitting and not many and dice.chance(0.8):
                return Echo("verb", fitting[0], values)
            found.append((6.0, "things" if many else "thing", values))
    if len(sentence.split()) <= LONGEST_TURNED:
        found.append((1.0 if found else 2.0, "denied" if is_denied else "said", {"t": said}))
    if not found:
        return None
    _, shape, values = found[dice.weighted([weight for weight, *_ in found])]
    return Echo(shape, SHAPES[shape], values)


def statement(talk: Talk) -> str:
    """Return a sentence of `phrases`, without its full stop, that has no topic of its own here."""
    while True:
        sentence = draw(talk.dice, Draft(talk.dice, held_out=False)).english
        if (
            BEGINNING.match(sentence)
            and sentence.endswith(".")
            and len(sentence.split()) >= SHORTEST
            and not OTHER_TOPICS.search(sentence)
        ):
            return sentence.rstrip(".")


def tell(talk: Talk) -> None:
    """Add one to three statements, each with a reply that takes something up, and sometimes what follows."""
    while True:
        said = statement(talk)
        found = echo(talk.dice, said)
        values = found.values if found else {}
        replies = found.replies if found and talk.dice.chance(0.92) else SAID["interest"]
        if talk.dice.chance(0.12):
            begun = [line for line in replies if not line.startswith("<")] or SAID["interest"]
            talk.turn(SAID["greeted"], [talk.dice.choice(SAID["greeting"]) + line for line in begun], s=said, **values)
        else:
            before = f"{statement(talk)}. " if talk.dice.chance(0.15) else ""
            after = said if said.startswith("I") or before else said[0].lower() + said[1:]
            talk.turn(SAID["stated"], replies, s=before + after, **values)
        if talk.left and talk.dice.chance(0.3):
            follow(talk, values)
        if not talk.left or talk.dice.chance(0.5):
            break
    if talk.left and talk.dice.chance(0.3):
        misunderstood(talk)
    elif talk.left and talk.dice.chance(0.3):
        end(talk)


def follow(talk: Talk, values: dict[str, str]) -> None:
    """Add an answer of the person to what the bot asked about a noun, or a question about what was said."""
    kind = talk.dice.weighted((3.0, 1.0, 1.0))
    if "np" in values and kind < 2:
        talk.turn((SAID["answers"], SAID["why_asked"])[kind], (SAID["further"], SAID["curious"])[kind], **values)
    elif "t" in values or "np" in values:
        talk.turn(SAID["recalled"], "You said that <t>." if "t" in values else "You told me about <np>.", **values)


def end(talk: Talk) -> None:
    """Add a statement that ends with thanks or a farewell."""
    user, replies = talk.dice.choice(SAID["ends"])
    talk.turn(user, replies, s=statement(talk))


def misunderstood(talk: Talk) -> None:
    """Add that the bot has misunderstood."""
    if talk.dice.chance(0.4):
        talk.turn(SAID["is_not_so"], SAID["not_so"], w=talk.dice.choice(STATES))
    else:
        talk.turn(SAID["misunderstood"], SAID["sorry"])


SCENES: Scenes = (
    Scene("chatter", 50.0, tell),
    Scene("ends of chatter", 8.0, end),
    Scene("misunderstood", 8.0, misunderstood),
)
