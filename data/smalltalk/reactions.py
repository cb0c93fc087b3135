"""Answers to the bot's own questions: yes, no, how and who the person is."""

from __future__ import annotations

import re

from smalltalk import fun, greetings, memory, stories
from smalltalk.talk import Talk

TOPIC = "answers to its questions"

_ABOUT_THE_PERSON = re.compile(r"\b(was it|did you|did it|did they|what happened|how was|who won|how did|is it all)\b")

YES = (
    "(yes|yes please|yeah|sure|ok|okay|please|go on|yep|why not|of course|do it|go ahead|let's hear it|i'd love to"
    "|please"
    " do|gladly|absolutely|alright then|fine|sounds good|yup|ya|yea|k)( tinychat| thanks| please| sure| then| go|)(!|"
    "|.)"
)
NO = (
    "(no|no thanks|no thank you|nope|nah|not now|rather not|not today|maybe later|later|please don't|not really|no"
    " need)"
    "( tinychat| sorry| thanks| please| i'm fine|)(!||.)"
)
ALL_RIGHT = (
    "(All right|Fine|No problem|As you like)! (What else is on your mind|What would you like instead|I'm here if you"
    " need me).",
    "(That is okay|Another time, then|Good, no hurry). (Tell me something|Ask me anything small|What shall we do)"
    "( instead|).",
)
ANECDOTES = (
    "(it was|it's) (great|good|nice|ok|fun|lovely|boring|so so|hard|strange|the best|not bad|too short)( thanks|"
    " really|"
    " actually| i think|)(.||!)",
    "(not really|a little|a lot|very much|quite a bit|i don't remember|hard to say|can't say|i don't want to say|guess)"
    "(.||!|...)",
    "(because|well,) (i like it|it was cold|i was late|it is far|i had time|my friend came|it rained|i was hungry|it's"
    " how i am)(.||)",
)
ACKNOWLEDGEMENTS = (
    "(I see|Ah|Oh, I see)! (Thank you for telling me|That is good to know|Thanks for the answer)( so openly|).",
    "(Interesting|Good to know|Fair enough)! (What else is new|What would you like to talk about|And now)?",
)


def _offered(reply: str) -> str:
    """Return what the bot offered or asked in its last sentence."""
    last = reply.replace("!", ".").split(". ")[-1].lower()
    if not last.endswith("?"):
        return ""
    if "riddle" in last or "joke" in last or "story" in last:
        return next(word for word in ("riddle", "joke", "story") if word in last)
    if "how are you" in last or last in ("and you?", "how about you?"):
        return "well-being"
    if "your name" in last or "who are you" in last or last == "what is yours?":
        return "name"
    return "other" if _ABOUT_THE_PERSON.search(last) else ""


def accept(talk: Talk, offer: str) -> None:
    """Add a yes, followed by what the bot offered."""
    if offer == "joke":
        setup, answer = talk.dice.choice(fun.JOKES)
        talk.turn(YES, "<setup> <answer>", setup=setup, answer=answer)
    elif offer == "riddle":
        text, answer = talk.dice.choice(fun.RIDDLES)
        talk.turn(YES, ("<riddle> What am I?", "<riddle> (Who|What) am I?"), riddle=text)
        if talk.left:
            fun.guess(talk, answer)
    else:
        hero, name = talk.dice.choice(stories.HEROES), talk.dice.choice(stories.NAMES)
        template, values = stories.tell(talk, hero, name)
        talk.turn(YES, template, **values)


def react(talk: Talk) -> bool:
    """Usually answer the bot's last question, and return whether a turn was added."""
    if not talk.turns:
        return False
    offer = _offered(talk.turns[-1].assistant)
    if not offer or not talk.dice.chance(0.22 if offer == "other" else 0.6):
        return False
    talk.topic = TOPIC
    if offer == "well-being" and talk.turns[-1].topic != TOPIC:
        greetings.answer(talk)
    elif offer == "name" and "name" not in talk.facts:
        memory.tell_name_only(talk)
    elif offer in ("joke", "riddle", "story"):
        if talk.dice.chance(0.75):
            accept(talk, offer)
        else:
            talk.turn(NO, ALL_RIGHT)
    elif offer == "other":
        talk.turn(ANECDOTES, ACKNOWLEDGEMENTS)
    else:
        return False
    return True
