"""Statements about anything, which no other topic knows: the bot asks for more instead of guessing what they mean.

They are sentences of `phrases`, so that a message of unknown words is not taken for the known one that shares a word
with it; with what people add to them: a greeting, thanks, a farewell, or that they were misunderstood.
"""

from __future__ import annotations

import re

from grammar import listed
from phrases.draft import Draft
from phrases.make import draw

from smalltalk.talk import Scene, Scenes, Talk

BEGINNING = re.compile(r"(I|We|My|Our|He|She|They|His|Her|Their|The|This|That|There|It|Nobody|Somebody|Someone)\b")
"""of a statement, not of a request"""
OTHER_TOPICS = re.compile(
    r" [A-Z][a-z]|\d|\b(you|yours?|sick|ill|hurts?|pain|fever|doctor|hospital|tired|sad|sorry|afraid|angry|cry\w*|died"
    r"|dead|broken?|lost|stole\w*|accident|happy|birthday|married|baby|won|weather|rain\w*|snow\w*|hungry|thirsty"
    r"|bored|name|called|favou?rite|joke|riddle|story)\b"
)
"""names and numbers, and what has replies of its own"""
SOMEBODY_OF_MINE = re.compile(r"My ([a-z]+) (?!and\b|or\b)")
SHORTEST = 4
"""in words"""

INTEREST = (
    "(Oh|I see|Ah|Oh, I see), (tell me more|go on|I'm listening)!",
    "(Oh, really|Really|Is that so)? (How was it|What happened then|How did that come)?",
    "(Oh, really|Really|Is that so)? (Tell me more about it, please|Then tell me more).",
    "That (sounds like a story|is new to me). (Tell me more|Go on|I'm listening)!",
    "(Thank you for telling me|Good to know|I see). (How do you feel about it|What do you think of it|And then)?",
    "(Interesting|I am all ears|I'm listening)! (What else|How did it go on|And what do you think of it)?",
    "(I know little about that|That is beyond my few words), but (I like to listen|I'm curious). (Tell me more|Go on)!",
)
SOMEBODY = (
    "Your <w>? (Tell me more|I'm listening|Go on)!",
    "(Oh|I see|Ah), your <w>! (What happened then|What do you think of it|How did it go on|And then)?",
)
GREETING = ("(Hello|Hi)! (I'm glad that you tell me|Nice of you to write). (Tell me more|Go on)!",)
FAREWELL = (
    "(Goodbye|Bye|See you)! (Take care|Come back soon|It was nice to talk|Have a good day).",
    "(All right|I see)! (Goodbye|Bye|See you), and (take care|come back soon|thank you for the chat).",
)
GOOD_NIGHT = ("Good night! (Sleep well|Sweet dreams|Rest well|See you tomorrow).",)
WELCOME = (
    "(You are|You're) welcome! (I like to listen|Come back and tell me more|I'm glad to listen).",
    "(My pleasure|Gladly|Any time)! (It is nice to talk with you|Tell me how it goes on).",
)
SORRY = (
    "(Sorry|I'm sorry|Oh, sorry), I (misunderstood|got that wrong|mixed something up). (Tell me once more|What did you"
    " mean)?",
    "(My mistake|Oh dear, my mistake)! I am very small. (Say it in other words|Tell me again), please.",
)
NOT_SO = (
    "(Ah|Oh), not <w>! (Sorry, I misunderstood|My mistake|I mixed that up). (How is it, then|What is it, then)?",
    "(Sorry|I'm sorry), I see: not <w>. Tell me more.",
)
ENDS = (
    ("<s>(. |, | )(thank you|thanks|thx|thank you for listening|thanks for your help|thanks a lot)(!|.|)", WELCOME),
    (
        "<s>(. |, | )(good night|sleep well|good night then|night)(!|.|)|(ok |well, |haha |)i('m| am) (tired|going to"
        " bed|off to bed|getting tired|sleepy)( now|), good night(!|.|)",
        GOOD_NIGHT,
    ),
    (
        "<s>(. |, | )(bye|goodbye|see you|talk to you later|i have to go now, bye|bye bye|see you tomorrow)(!|.|)"
        "|(yes! |ok |well, |)(bye|goodbye|see you)(,| ) <s>",
        FAREWELL,
    ),
)
"""what may follow a statement at the end of a conversation"""
MISUNDERSTOOD = (
    "(no, |nope |no |what? |huh? |hm, |um, |)(that makes no sense|that's not what i (said|meant|asked)|i did not say"
    " that|i didn't mean that|you (don't|do not) understand( me|)|you misunderstood( me|)|what are you talking about"
    "|that is not what i mean|you got me wrong|what do you mean by that|that was not my question)(!|.|?|)"
)
IS_NOT_SO = "(no|nope|but|what?|hey|no no|well)(, | )(i am|i'm) not <w>(!|.||, i said)|(i am|i'm) not <w>(!|.|| at all)"
STATES = listed(
    "ill,sick,sad,tired,hungry,angry,alone,lonely,bored,in bed,at home,at work,a child,a student,in a hurry,afraid,"
    "busy,married,old,late,stressed,hurt,upset,mad,a teacher,at school,happy,nervous,worried,thirsty,lost,drunk,cold",
    ",",
)


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
    """Add one to three statements, each with a reply that asks for more, and sometimes what ends them."""
    while True:
        said = statement(talk)
        somebody = SOMEBODY_OF_MINE.match(said)
        if talk.dice.chance(0.15):
            said += f". {statement(talk)}"
        after = said if said.startswith("I") else said[0].lower() + said[1:]
        if talk.dice.chance(0.12):
            talk.turn("(hi|hello|hey|good morning|good afternoon|good evening)(!|.|,) <s>", GREETING, s=said)
        elif somebody and talk.dice.chance(0.6):
            talk.turn("(|well, |oh, |ok, |so )<s>(.|)", SOMEBODY, s=after, w=somebody[1])
        else:
            talk.turn("(|well, |oh, |ok, |yes, |no, |so |you know, |haha )<s>(.|!|)", INTEREST, s=after)
        if not talk.left or talk.dice.chance(0.5):
            break
    if talk.left and talk.dice.chance(0.3):
        misunderstood(talk)
    elif talk.left and talk.dice.chance(0.3):
        end(talk)


def end(talk: Talk) -> None:
    """Add a statement that ends with thanks or a farewell."""
    user, replies = talk.dice.choice(ENDS)
    talk.turn(user, replies, s=statement(talk))


def misunderstood(talk: Talk) -> None:
    """Add that the bot has misunderstood."""
    if talk.dice.chance(0.4):
        talk.turn(IS_NOT_SO, NOT_SO, w=talk.dice.choice(STATES))
    else:
        talk.turn(MISUNDERSTOOD, SORRY)


SCENES: Scenes = (
    Scene("chatter", 50.0, tell),
    Scene("ends of chatter", 8.0, end),
    Scene("misunderstood", 8.0, misunderstood),
)
