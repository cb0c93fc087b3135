"""Messages in many words, as people type them, that no grammar makes: the reply fits their kind, whatever they say.

They are lines of `messages/*.txt`, in groups of one kind that have something in common: `# kind: what it is`, then the
messages.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from grammar import Dice, Lines, choose, is_reserved

from smalltalk import fun, stories, words
from smalltalk.evidence import Evidence
from smalltalk.talk import Scene, Scenes, Talk

TOPIC = "messages in many words"
HELD_OUT = 25
"""One message in so many is held out."""
OPENING_ONLY = 0.1
"""Probability that a reply goes on with nothing."""
SUPPORTED = 0.33
"""Probability of the mood of a statement or the kind of a question, by the words of all other messages, from which a
reply takes a side: see evidence.py."""
GUESSED = 0.6
"""The same for a text of no known kind; of those held out, 81 % are then of the likeliest kind."""
JOINED, MOOD_JOINED = 0.15, 0.1
"""Probabilities that a question or a request, or news of a mood, follows a short statement in the same message."""
GREETED, SIGHED, GREETED_BACK = 0.2, 0.1, 0.7
"""Probabilities that a statement at the beginning follows a greeting or a sigh, and that the greeting is returned."""
LONGEST_JOINED = 9
"""In words."""
LATER = frozenset(("ask_back", "complain", "filler", "bye"))
"""Kinds of messages that begin no conversation."""
WEIGHT = 2900.0
"""Makes them a sixth of all turns."""


class Kind(NamedTuple):
    """Replies to all messages of a kind."""

    opening: str
    more: str
    checked: str
    """A regular expression that a fitting reply matches."""


class Variant(NamedTuple):
    """What requests of a kind hear if their words match."""

    kind: str
    where: re.Pattern[str]
    replies: str


class Message(NamedTuple):
    """Something that a person typed."""

    text: str
    kind: str


_TABLES = words.table(__file__)
KINDS = {
    entry["name"]: Kind(f"({'|'.join(entry['opening'])})", f"({'|'.join(entry['more'])})", entry["checked"])
    for entry in _TABLES["kind"]
}
VARIANTS = [
    Variant(
        entry["kind"],
        re.compile(rf"(?i)\b(?:{entry['where']})\b"),
        f"({'|'.join(entry['opening'])}) "
        + (f"({'|'.join(entry['more'])})" if "more" in entry else KINDS[entry["kind"]].more),
    )
    for entry in _TABLES["variant"]
]
WITH_VARIANTS = frozenset(variant.kind for variant in VARIANTS)
NEUTRAL_REPLIES: list[str] = _TABLES["neutral"]
UNKNOWN_REPLIES: list[str] = _TABLES["unknown"]
MOODS = frozenset(_TABLES["moods"])
"""Kinds of statements, to which also a neutral reply fits."""
ALIKE: dict[str, frozenset[str]] = {kind: frozenset(kinds) for kinds in _TABLES["alike"] for kind in kinds}
"""Kinds of statements whose replies fit one another."""
REMARKS = frozenset(_TABLES["remarks"])
"""Kinds of what is said in a conversation that has no mood."""
ASKING = frozenset(_TABLES["asking"])
"""Kinds of questions and requests: they decide what to reply, whatever was said before them."""
WANTING = frozenset(_TABLES["wanting"])
"""Kinds that are drawn twice as often."""
SUGGESTED = frozenset(_TABLES["suggested"])
"""Those of them that hear a suggestion, which fits nothing else: without evidence, what fits any plea for advice."""
MADE: dict[str, Callable[[Talk], str]] = {
    "want_joke": lambda talk: "{0.question} {0.answer}".format(fun.new_joke(talk)),
    "want_riddle": lambda talk: fun.RIDDLE.replace("<text>", fun.new_riddle(talk).text),
    "want_story": stories.new_story,
}
"""Kinds of requests whose reply is not of `messages.toml`."""
ASKED = (ASKING | WANTING) - MADE.keys()
"""Kinds of questions and requests whose reply is."""
GREETINGS: list[str] = _TABLES["greeted"]
SIGHS: list[str] = _TABLES["sighed"]
FAREWELLS: list[str] = _TABLES["farewells"]
THANKS: list[str] = _TABLES["thanks"]
REACTIONS: list[str] = _TABLES["reactions"]
"""What people say of a reply before they go on in the same message."""
_ASKS = re.compile(
    r"(?i)((who|what|wat|when|where|why|how)'?s?|whose|which|any|do|does|did|are|is|was|were|can|could|will|would|wont|have|has|should|"
    r"tell|say|give|make|write|show|help|explain|teach|guess|sing|remind|translate|spell|please|ask)\b"
)
_GROUP = re.compile(r"# (\w+): ")


def _read(path: Path) -> list[Message]:
    messages: list[Message] = []
    kind = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := _GROUP.match(line):
            kind = found[1]
        elif line:
            messages.append(Message(line, kind))
    return messages


MESSAGES = [message for path in sorted(Path(__file__).with_suffix("").glob("*.txt")) for message in _read(path)]
HELD_OUT_MESSAGES = [message for message in MESSAGES if is_reserved(HELD_OUT, message.text)]
TRAINED = [message for message in MESSAGES if not is_reserved(HELD_OUT, message.text)]


HELD_OUT_DRAWN, TRAINED_DRAWN = (
    messages + [message for message in messages if message.kind in WANTING] for messages in (HELD_OUT_MESSAGES, TRAINED)
)


def _statements(messages: list[Message], *kinds: str) -> list[str]:
    """Return the short messages that state something, as the beginnings of longer ones."""
    return [
        message.text.rstrip(".")
        for message in messages
        if message.kind in kinds and len(message.text.split()) <= LONGEST_JOINED and not message.text.endswith("?")
    ]


HELD_OUT_STATEMENTS, TRAINED_STATEMENTS = (
    _statements(messages, "plan", "told", "glad", "funny", "annoyed", "bye")
    for messages in (HELD_OUT_MESSAGES, TRAINED)
)
HELD_OUT_REMARKS, TRAINED_REMARKS = (_statements(messages, "told") for messages in (HELD_OUT_MESSAGES, TRAINED))
HELD_OUT_REQUESTS, TRAINED_REQUESTS = (
    [message for message in messages if message.kind in ASKED] for messages in (HELD_OUT_MESSAGES, TRAINED)
)
HELD_OUT_GOODBYES, TRAINED_GOODBYES = (
    [message.text for message in messages if message.kind == "bye"] for messages in (HELD_OUT_MESSAGES, TRAINED)
)


def fitting(kind: str) -> str:
    """Return a regular expression that is found in fitting replies to messages of the kind."""
    neutral = "|I see|I hear you|I'm with you|tell me (a little |)more" if kind in MOODS else ""
    return f"(?i)(?<![a-z])(?:{KINDS[kind].checked}{neutral})"


def is_request(text: str) -> bool:
    """Return whether a text asks for something, by its first word and its end."""
    return text.endswith("?") or bool(_ASKS.match(text))


@functools.cache
def _evidence() -> Evidence:
    return Evidence((message.text, message.kind) for message in TRAINED)


@functools.cache
def kinds_of(text: str, own: str = "") -> dict[str, float]:
    """Return the probability of each kind for a text; one to train on, of the kind `own`, is left out."""
    return _evidence().of(text, own)


def support(text: str, kind: str, own: str = "") -> float:
    """Return the probability that a text is of a kind, or of one like it."""
    return odds(kinds_of(text, own), kind)


def odds(found: dict[str, float], kind: str) -> float:
    """Return the probability of a kind or of one like it, from those of all kinds."""
    return sum(found[one] for one in sorted(ALIKE.get(kind, {kind})))


def answer(text: str) -> Lines:
    """Return what to reply to a statement of no known kind: as the likeliest demands, if it is likely enough."""
    found = kinds_of(text)
    likeliest = max(sorted(MOODS | REMARKS), key=found.__getitem__)
    if found[likeliest] < GUESSED:
        return NEUTRAL_REPLIES
    return f"{KINDS[likeliest].opening} {KINDS[likeliest].more}"


def replies_to(text: str, kind: str) -> str:
    """Return what a text of the kind may hear: of a variant, if its words match one."""
    own = f"{KINDS[kind].opening} {KINDS[kind].more}"
    return next((one.replies for one in VARIANTS if one.kind == kind and one.where.search(text)), own)


def reply_to(dice: Dice, message: Message) -> Lines:
    """Return what to reply: as its kind demands, as far as the words of other messages tell the kind."""
    kind = KINDS[message.kind]
    if support(message.text, message.kind, message.kind) < SUPPORTED:
        if message.kind in MOODS:
            return NEUTRAL_REPLIES
        if message.kind in ASKING:
            return UNKNOWN_REPLIES
        if message.kind in SUGGESTED:
            kind = KINDS["advice"]
            return f"{kind.opening} {kind.more}"
    if dice.chance(OPENING_ONLY) and message.kind not in {"despair", "ask_self", *WITH_VARIANTS}:
        return kind.opening
    return replies_to(message.text, message.kind)


def _fits(kind: str, talk: Talk) -> bool:
    """Return whether a message of the kind may come next."""
    if kind == "hello":
        return not talk.turns
    if kind == "answer":
        return bool(talk.turns) and talk.turns[-1].assistant.endswith("?")
    return bool(talk.turns) or kind not in LATER


def aside(talk: Talk) -> str:
    """Return a word on the last reply, behind which the person goes on in the same message."""
    return choose(talk.dice, REACTIONS)


def statement(talk: Talk, *, of_no_mood: bool = False) -> str:
    """Return something short that the person tells before they go on in the same message."""
    if of_no_mood:
        told = talk.dice.choice(HELD_OUT_REMARKS if talk.held_out else TRAINED_REMARKS)
    else:
        told = talk.dice.choice(HELD_OUT_STATEMENTS if talk.held_out else TRAINED_STATEMENTS)
    return told if told[-1] in "!)" else told + talk.dice.choice((".", ".", ",", "..."))


def _after_statement(talk: Talk, text: str, *, of_no_mood: bool = False) -> str:
    """Return the text behind a short statement."""
    return f"{statement(talk, of_no_mood=of_no_mood)} {text}"


def leave(talk: Talk) -> None:
    """Add a message that ends the conversation: with a reason, or whatever else, and a farewell or thanks behind it."""
    kind = KINDS["bye"]
    if talk.dice.chance(0.25):
        goodbyes = HELD_OUT_GOODBYES if talk.held_out else TRAINED_GOODBYES
        talk.add_message(talk.dice.choice(goodbyes), f"{kind.opening} {kind.more}")
        return
    thanks = talk.dice.chance(0.15)
    farewell = choose(talk.dice, THANKS if thanks else FAREWELLS)
    # A farewell alone is trained on; what is held out is the statement before it.
    text = _after_statement(talk, farewell) if talk.held_out or talk.dice.chance(0.8) else farewell
    opening = KINDS["praise"].opening if thanks else kind.opening
    if re.search(r"\b(gn|(good ?|)night|sleep well|bed)\b", farewell, re.IGNORECASE):
        opening = "Good night(!|, and sleep well!|, and take care!)"
    talk.add_message(text, f"{opening} {kind.more}")


def request(talk: Talk) -> None:
    """Add a question or a request, and a reply of its kind."""
    requests = HELD_OUT_REQUESTS if talk.held_out else TRAINED_REQUESTS
    ask(talk, talk.dice.choice(requests))


def ask(talk: Talk, message: Message) -> None:
    """Add a question or a request, and what is asked for, or a reply of its kind."""
    make = MADE.get(message.kind)
    reply = reply_to(talk.dice, message) if make is None else make(talk)
    talk.add_message(message.text, reply, kind=message.kind)


def say(talk: Talk) -> None:
    """Add a message, and a reply of its kind."""
    drawn = HELD_OUT_DRAWN if talk.held_out else TRAINED_DRAWN
    message = talk.dice.choice(drawn)
    while not _fits(message.kind, talk):
        message = talk.dice.choice(drawn)
    text = message.text
    if message.kind in ASKING | WANTING and talk.dice.chance(JOINED):
        text = _after_statement(talk, text)
    elif message.kind in MOODS and talk.dice.chance(MOOD_JOINED):
        text = _after_statement(talk, text, of_no_mood=True)
    if message.kind in MADE:
        talk.add_message(text, MADE[message.kind](talk), kind=message.kind)
        return
    reply = reply_to(talk.dice, message)
    if not talk.turns and message.kind in MOODS | {"told"}:
        if talk.dice.chance(GREETED):
            text = f"{choose(talk.dice, GREETINGS)} {text}"
            if talk.dice.chance(GREETED_BACK):
                reply = [f"(Hello|Hi)! {line}" for line in ([reply] if isinstance(reply, str) else reply)]
        elif talk.dice.chance(SIGHED):
            text = f"{choose(talk.dice, SIGHS)} {text}"
    talk.add_message(text, reply, kind=message.kind)


SCENES: Scenes = (Scene(TOPIC, WEIGHT, say),)
