"""Answers to the bot's own questions, and what people say of its last reply: why?, another one, are you sure?

The tables are in `situations/talking.toml`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from grammar import pattern

from smalltalk import fun, memory, messages, recall, small_words, stories
from smalltalk.situations import SAD, TALKING, Exchange, add, exchange, mood_of
from smalltalk.talk import Talk, Turn, last_sentence

TOPIC, FOLLOW_UP_TOPIC = "answers to its questions", "what people say of its last reply"
ANSWERED, OFFER_ANSWERED, ACCEPTED = 0.5, 0.65, 0.75
"""Probabilities that the person answers a question or an offer, and accepts the offer."""
FOLLOWED = 0.13
"""Probability that the person says something of the last reply."""
_SAID = re.compile(r"^(I (said|asked|only meant): )+", re.IGNORECASE)
LONGEST_REPEATED = 14
"""In words."""


class Answer(NamedTuple):
    """Answers to a kind of question, by the mood of what the person told; any mood if none is given."""

    asked: re.Pattern[str]
    moods: frozenset[str]
    exchange: Exchange


class FollowUp(NamedTuple):
    """What people say after some kinds of replies; without replies, they want another one of that kind."""

    after: frozenset[str]
    weight: float
    exchange: Exchange


def _moods(names: str) -> frozenset[str]:
    return frozenset(name for word in names.split() for name in (SAD if word == "sad" else {word}))


ANSWERS = tuple(
    Answer(re.compile(entry["asked"]), _moods(entry.get("moods", "")), exchange(entry)) for entry in TALKING["answers"]
)
FOLLOW_UPS_AFTER = tuple(
    FollowUp(frozenset(entry["after"].split()), entry.get("weight", 1.0), exchange(entry))
    for entry in TALKING["follows"]
)
YES, NO, ALL_RIGHT = (tuple(TALKING[name]) for name in ("accepting", "declining", "declined"))


def _is_puzzle(reply: str) -> bool:
    """Return whether the reply asks a riddle, or is the first half of a joke."""
    return bool(re.search(r"\b(am I|there|who)\?$", reply)) or any(reply == joke.question for joke in fun.JOKES)


def _offered(question: str) -> str:
    """Return what the bot offered or asked."""
    if found := re.search(r"riddle|joke|story", question):
        return found[0]
    if "how are you" in question or question in ("and you?", "how about you?"):
        return "well-being"
    return "name" if re.search(r"your name|who are you|^what is yours", question) else ""


def tell_another(talk: Talk, kind: str, said: tuple[str, ...]) -> None:
    """Add a wish, followed by a joke, riddle, story or fact."""
    said = tuple(line.replace("<kind>", kind) for line in said)
    if kind == "joke":
        fun.tell_joke(talk, said)
    elif kind == "riddle":
        fun.ask_riddle(talk, said)
    elif kind == "story":
        stories.go(talk, said)
    else:
        last = talk.turns[-1]
        facts = [last.replies] if isinstance(last.replies, str) else last.replies
        others = [fact for fact in facts if not re.fullmatch(pattern(fact, last.values), last.assistant)]
        talk.turn(said, others or facts, **last.values)


def react(talk: Talk) -> bool:
    """Usually answer the bot's last question, or say something of its last reply; return whether a turn was added."""
    if not talk.turns:
        return False
    if talk.dice.chance(FOLLOWED) and follow_up(talk):
        return True
    question = last_sentence(talk.turns[-1].assistant).lower().rsplit(": ", 1)[-1]
    if not question.endswith("?") or _is_puzzle(talk.turns[-1].assistant):
        return False
    offer = _offered(question)
    if not talk.dice.chance(OFFER_ANSWERED if offer else ANSWERED):
        return False
    mood = mood_of(talk)
    if offer == "name" and "name" not in talk.facts:
        talk.topic = TOPIC
        memory.tell_name_only(talk)
    elif offer == "well-being" and talk.turns[-1].topic != TOPIC:
        talk.topic = TOPIC
        small_words.answer(talk)
    elif offer in ("joke", "riddle", "story"):
        talk.topic = TOPIC
        if talk.dice.chance(ACCEPTED):
            tell_another(talk, offer, YES)
        else:
            talk.turn(NO, ALL_RIGHT)
    elif talk.turns[-1].topic in (messages.TOPIC, recall.WRITTEN, recall.THREADED):
        return False  # answers here are to questions of the tables, about other things
    else:
        possible = [one for one in ANSWERS if one.asked.search(question) and mood in (one.moods or {mood})]
        if not possible:
            return False
        talk.topic = TOPIC
        same = [one.exchange for one in possible if one.asked == possible[0].asked]
        add(talk.dice.choice(same), talk, {}, mood or "talk")
    return True


def follow_up(talk: Talk) -> bool:
    """Add what people say of the last reply, if they may, and return whether they did."""
    last = talk.turns[-1]
    kind = _kind(last)
    possible = [one for one in FOLLOW_UPS_AFTER if kind in one.after]
    if not possible or (kind == "record" and talk.dice.chance(0.75)):
        return False
    talk.topic = FOLLOW_UP_TOPIC
    chosen = possible[talk.dice.weighted([one.weight for one in possible])].exchange
    sentence = last_sentence(last.assistant)
    if chosen.reply:
        asked = sentence.rsplit(": ", 1)[-1] if sentence.endswith("?") else sentence
        question = asked if re.match(r"I\b", asked) else asked[0].lower() + asked[1:]
        talk.turn(chosen.say, chosen.reply, last=_SAID.sub("", sentence), question=_SAID.sub("", question))
    else:
        tell_another(talk, kind, chosen.say)
    return True


def _kind(turn: Turn) -> str:
    """Return what kind of reply a turn has: one that may be told again, a question, a claim, or some other."""
    reply = turn.assistant
    if _is_puzzle(reply) or len(last_sentence(reply).split()) > LONGEST_REPEATED:
        return "story" if turn.topic == "stories" else ""
    if turn.topic in ("jokes", "riddles") and not reply.endswith("?"):
        return turn.topic.removesuffix("s")
    if any(reply.startswith(joke.question) for joke in fun.JOKES):
        return "joke"
    if re.match(r"(Once|There once|There was once)\b", reply):
        return "story"
    if turn.topic == "a fun fact":
        return "fact"
    if reply.endswith("?"):
        return "" if _offered(last_sentence(reply).lower()) == "well-being" else "question"
    if turn.topic.startswith("memory") or re.search(r"\d|(?<!\S)/", reply):
        return "record"
    if re.match(r"(The|An?|In|It is|You spell|\w+ is) ", reply):
        return "claim"
    return "statement"
