"""Memory within the conversation: what the person tells about themselves, and later asks for.

A `Kind` of fact knows how it is told, asked for and answered. Values are said back exactly as the person typed them,
so that a small model learns to copy, and many names are made of syllables, so that it can't learn them by heart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from grammar import Lines

from smalltalk import words
from smalltalk.talk import Scenes, Talk


class Kind(NamedTuple):
    """One kind of fact; `<v>` is its value, `<p>` its second value (the kind of pet) where it has one."""

    key: str
    value: Callable[[Talk], str]
    tell: Lines
    noted: Sequence[str]
    ask: Lines
    answer: Sequence[str]
    unknown: Sequence[str]
    thing: str


REMEMBER = "(do you remember|do you know|can you tell me|tell me|remind me|say|what was it again,|do you still know)"


def one_of(items: Sequence[str]) -> Callable[[Talk], str]:
    """A value from a list, as the person types it."""
    return lambda talk: talk.word(talk.dice.choice(items))


def _favourite(thing: str, items: Sequence[str]) -> Kind:
    return Kind(
        f"favourite {thing}", one_of(items),
        (f"my favourite {thing} is <v>", f"the {thing} i (like best|love most|like most) is <v>",
         f"<v> is my favourite {thing}",
         f"i think the best {thing} is <v>", f"(remember|note|you should know), my favourite {thing} is <v>"),
        (f"(Good to know|How nice), your favourite {thing} is <v>!",
         f"(Noted|Good choice): your favourite {thing} is <v>.",
         f"I will remember: your favourite {thing} is <v>."),
        (f"what is my favourite {thing}?", f"what's my favourite {thing}( again|)?",
         f"(which|what) {thing} do i (like best|love|like most)?",
         f"{REMEMBER} my favourite {thing}", f"what did i say is my favourite {thing}?",
         f"my favourite {thing} is what?"),
        (f"Your favourite {thing} is <v>.", f"You said your favourite {thing} is <v>.",
         f"It is <v>: that is your favourite {thing}."),
        (f"You have not told me your favourite {thing}( yet|).",
         f"I don't know your favourite {thing}( yet|). What is it?"),
        f"favourite {thing}",
    )  # fmt: skip


KINDS: tuple[Kind, ...] = (
    Kind(
        "name", Talk.new_name,
        ("my name is <v>", "(i'm|i am) <v>", "(call me|you can call me|please call me|people call me|they call me)"
                                             " <v>", "(it's|this is) <v>( here| speaking|)",
         "(hi|hello|hey)(,|!|) (i'm|i am|my name is|my name's|this is|it's) <v>", "<v> is my name", "the name is <v>",
         "i am called <v>",
         "(hi|hello|hey|ok)(,|) my name is <v>(,| and) what is yours?", "<v> here", "my friends call me <v>",
         "i'm <v>, nice to meet you",
         "(remember|please remember|note)(:|) my name is <v>"),
        ("(Nice|Good|Lovely) to meet you, <v>!( I'm tinychat.| What shall we talk about?| How are you?|)",
         "(Hello|Hi), <v>! (I'm tinychat.|How are you?|A nice name!|What shall we do?)",
         "(Welcome|Pleased to meet you), <v>!( I will remember that.|)"),
        ("what is my name?", "what's my name( again| please|)?", "who am i?",
         "(do you remember|do you know|do you still know) my name( please| tinychat|)?",
         "(say|tell me|can you say|can you tell me) my name( please| again| now|)", "what am i called?",
         "what did i say my name (is|was)?", "how am i called?",
         "(have you forgotten|did you forget|you forgot) (my name|who i am)?", f"{REMEMBER} who i am"),
        ("Your name is <v>.", "You are <v>.", "You told me: your name is <v>.", "You are <v>, (of course|I remember)."),
        ("You have not told me your name( yet|).( What is it?|)",
         "I don't know your name( yet|).( What is it?| Please tell me.|)",
         "You did not say. (What is your name|Who are you)?"),
        "name",
    ),
    Kind(
        "pet", lambda talk: talk.word(talk.dice.choice(words.PET_NAMES)) if talk.dice.chance(0.5) else talk.new_name(),
        ("(i have|i've got|we have|there is) <a:p> (called|named) <v>", "my <p> is (called|named) <v>",
         "my <p>'s name is <v>", "the name of my <p> is <v>",
         "<v> is my <p>", "we call our <p> <v>", "(my pet is|i live with) <a:p>, (its|the) name is <v>",
         "i have a pet, <a:p> (called|named) <v>"),
        ("(How nice|How lovely), <a:p> called <v>!", "(Hello|Say hello) to <v> the <p>( from me|)!",
         "I like the name <v> for <a:p>.", "(Noted|I see): your <p> is called <v>."),
        ("what is my <p> called?", "what's my <p>'s name( again|)?", "what is the name of my <p>?", "who is my <p>?",
         "how is my <p> called?",
         f"{REMEMBER} the name of my <p>", f"{REMEMBER} what my <p> is called", "my <p>, what was its name?",
         "what did i call my <p>?"),
        ("Your <p> is called <v>.", "The name of your <p> is <v>.", "That is <v>, your <p>."),
        ("You have not told me about your <p>( yet|).", "I don't know the name of your <p>( yet|)."),
        "<p>",
    ),
    Kind(
        "number", lambda talk: str(talk.dice.between(1, 99) if talk.dice.chance(0.7) else talk.dice.between(100, 999)),
        ("(remember|keep|note|store|save|hold on to|please remember|please keep) (the number|this number:|number)"
         " <v>( for me| please|)", "my (lucky |secret |)number is <v>",
         "(keep|remember) <v> for me( please|)", "the number is <v>(, remember it|, keep it|)",
         "i give you a number: <v>"),
        ("(Okay|Noted|Done), I (keep|hold) <v>.", "Your number <v> is safe with me.", "I will remember <v>."),
        ("what (is|was) (the|my) number?", "(which|what) number did i (give you|tell you|say)?",
         "what's my number( again|)?", f"{REMEMBER} (my|the) number",
         "what number do you (keep|hold|remember)( for me|)?", "give me back my number",
         "the number( please| again|)?"),
        ("The number is <v>.", "Your number is <v>.", "You gave me <v>.", "I kept it: <v>."),
        ("You have not given me a number( yet|).", "I don't know your number( yet|)."),
        "number",
    ),
    Kind(
        "town", one_of(words.TOWNS),
        ("(i live in|i'm from|i am from|i come from|my home is in|my town is|my home is) <v>",
         "i live in <v>( now| with my family| and like it|)",
         "(we moved to|i was born in|i write to you from) <v>"),
        ("(How nice|Lovely)! What is <v> like?", "<v>! I (only know|like) the name. What is it like?",
         "(Noted|I see): your home is <v>."),
        ("where do i live?", "where am i from?", "(which|what) town (do i live in|am i from)?",
         f"{REMEMBER} where i (live|come from|am from)", "what is my town?",
         "where did i say i (live|come from)?", "where is my home?"),
        ("You are from <v>.", "Your home is <v>.", "You told me: <v>."),
        ("You have not told me where you live( yet|).", "I don't know where you live( yet|)."),
        "home town",
    ),
    Kind(
        "friend", Talk.new_name,
        ("my (best |good |)friend is (called|named) <v>", "my friend's name is <v>", "<v> is my (best |)friend",
         "i have a friend (called|named) <v>",
         "the name of my friend is <v>"),
        ("(Say hello to|Greet) <v> from me!", "A friend called <v>, how nice!",
         "(Noted|I see): your friend is called <v>."),
        ("what is my friend called?", "what's my friend's name( again|)?", "who is my friend?",
         f"{REMEMBER} the name of my friend", "what is the name of my friend?",
         f"{REMEMBER} what my friend is called"),
        ("Your friend is called <v>.", "The name of your friend is <v>.", "That is <v>, your friend."),
        ("You have not told me about your friend( yet|).", "I don't know the name of your friend( yet|)."),
        "friend",
    ),
    Kind(
        "age", lambda talk: str(talk.dice.between(6, 89)),
        ("(i'm|i am) <v>( years old|)", "my age is <v>",
         "i (turned|turn|became) <v> (today|last week|this year|yesterday)"),
        ("A (fine|good) age: you are <v>.", "(Noted|I see): you are <v>."),
        ("how old am i?", "what is my age?", f"{REMEMBER} (my age|how old i am)", "what age am i?", "my age is what?"),
        ("You are <v>.", "You are <v> years old.", "You told me: <v>."),
        ("You have not told me your age( yet|).", "I don't know your age( yet|)."),
        "age",
    ),
    Kind(
        "job", one_of(words.JOBS),
        ("(i work as|i am|i'm|my job is) <a:v>", "(for a living |by trade |)i am <a:v>", "i have a job, i'm <a:v>"),
        ("How interesting, you are <a:v>!", "(Noted|I see): you are <a:v>.", "A good job! What does <a:v> do all day?"),
        ("what is my job?", "what do i do( for a living|)?", "what do i work as?",
         f"{REMEMBER} (my job|what i do|what i work as)", "what did i say my job is?"),
        ("You are <a:v>.", "You told me that you are <a:v>.", "Your job: you are <a:v>."),
        ("You have not told me your job( yet|).", "I don't know your job( yet|)."),
        "job",
    ),
    Kind(
        "word",
        lambda talk: talk.word(talk.dice.choice(words.THINGS)) if talk.dice.chance(0.5) else talk.new_name().lower(),
        ("(the|my) (secret|magic) word is <v>", "(remember|keep) the word <v>( for me|)",
         "i tell you a (secret |magic |)word: <v>", "(our|the) password is <v>"),
        ("(Noted|Okay), the word is <v>.", "I keep the word <v> (safe|well).", "I will remember the word <v>."),
        ("what (is|was) the (secret |magic |)word?", "(which|what) word did i tell you?",
         f"{REMEMBER} the (secret |magic |)word", "the (secret |magic |)word( please|)?",
         "what is the password?"),
        ("The word is <v>.", "You told me the word <v>.", "I kept it: <v>."),
        ("You have not told me a word( yet|).", "I don't know your word( yet|)."),
        "word",
    ),
    _favourite("colour", words.COLOURS),
    _favourite("food", words.FOODS),
    _favourite("animal", words.ANIMALS),
    _favourite("drink", words.DRINKS),
    _favourite("sport", words.SPORTS),
    _favourite("season", words.SEASONS),
    _favourite("day", words.DAYS),
    _favourite("hobby", words.HOBBIES),
)  # fmt: skip
WEIGHTS = [8.0, 4.0, 3.0, 1.6, 2.2, 1.0, 1.2, 1.4, *[1.0] * 8]


def choose(talk: Talk) -> Kind:
    """A kind of fact, the name most often."""
    return KINDS[talk.dice.weighted(WEIGHTS)]


def tell(talk: Talk, kind: Kind) -> None:
    """The person tells a fact; a later telling of the same kind replaces it."""
    value = kind.value(talk)
    while value in talk.facts.values():
        value = kind.value(talk)
    pet = talk.word(talk.dice.choice(words.PETS))
    told = kind.tell
    if kind.key in talk.facts and isinstance(told, tuple):
        told = tuple("(no, now|i changed my mind,|actually,|sorry, i mean) " + line for line in told[:1])
        pet = talk.facts.get("pet kind", pet)
    talk.facts[kind.key] = value
    if kind.key == "pet":
        talk.facts["pet kind"] = pet
    talk.turn(told, kind.noted, v=value, p=pet)


def ask(talk: Talk, kind: Kind) -> None:
    """The person asks for it again."""
    talk.ask(kind.ask, kind.answer, v=talk.facts[kind.key], p=talk.facts.get("pet kind", ""))


def never_told(talk: Talk) -> None:
    """The person asks for something they never said."""
    kind = choose(talk)
    while kind.key in talk.facts:
        kind = choose(talk)
    talk.ask(kind.ask, kind.unknown, p=talk.dice.choice(words.PETS))


def forget(talk: Talk) -> None:
    """What the bot knows about the person, all in one."""
    known = [kind for kind in KINDS if kind.key in talk.facts and kind.key not in ("pet", "number", "word")]
    question = (
        "what do you know about me?|(what have i|what did i) (told you|tell you) (about me|about myself)?"
        "|tell me (something |)about me"
    )
    if not known:
        talk.ask(
            question,
            (
                "(Nothing|Very little) yet. (May I know your name|What is your name)?",
                "(Only what you type here|Not much): tell me your name, (please|if you like).",
            ),
        )
        return
    kind = talk.dice.choice(known)
    talk.ask(question, kind.answer, v=talk.facts[kind.key])


SCENES: Scenes = ((2.4, never_told), (0.8, forget))
