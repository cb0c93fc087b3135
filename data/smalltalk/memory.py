"""Memory within a conversation: facts that people tell about themselves and later ask for.

A `Kind` of fact defines how it is told, asked for and answered. The bot repeats values exactly as the person typed
them, so that a small model learns to copy; many names are made of syllables, so that it can't memorize them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from grammar import Lines

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk


class Kind(NamedTuple):
    """One kind of fact; `<v>` is its value, `<p>` an optional second value (the kind of pet)."""

    key: str
    value: Callable[[Talk], str]
    tell: Lines
    acknowledgements: Sequence[str]
    ask: Lines
    answer: Sequence[str]
    unknown: Sequence[str]
    thing: str


REMEMBER = "(do you remember|do you know|can you tell me|tell me|remind me|say|what was it again,|do you still know)"


def one_of(items: Sequence[str], made_up: float = 0.0) -> Callable[[Talk], str]:
    """Return a function that draws a value from a list or, with probability `made_up`, an invented word.

    The value is written as the person types it.
    """

    def value(talk: Talk) -> str:
        if talk.dice.chance(made_up):
            return talk.word(talk.new_word())
        return talk.word(talk.dice.choice(items))

    return value


def _favourite(thing: str, items: Sequence[str]) -> Kind:
    return Kind(
        f"favourite {thing}", one_of(items, 0.3),
        (f"my favourite {thing} is <v>", f"the {thing} i (like best|love most|like most) is <v>",
         f"<v> is my favourite {thing}",
         f"i think the best {thing} is <v>", f"(remember|note|you should know), my favourite {thing} is <v>",
         f"my fav {thing} is <v>", f"my (number one|top) {thing} is <v>", f"(for me|to me) the best {thing} is <v>",
         f"(btw|by the way|also|fun fact)(,|) my favourite {thing} is <v>", f"favourite {thing}: <v>",
         f"i love <v>, it's my favourite {thing}", f"nothing beats <v>, my favourite {thing}",
         f"of all there are, <v> is my favourite {thing}"),
        (f"(Good to know|How nice), your favourite {thing} is <v>!",
         f"(Noted|Good choice): your favourite {thing} is <v>.",
         f"I will remember: your favourite {thing} is <v>."),
        (f"what is my favourite {thing}?", f"what's my favourite {thing}( again|)?",
         f"(which|what) {thing} do i (like best|love|like most)?",
         f"{REMEMBER} my favourite {thing}", f"what did i say is my favourite {thing}?", f"what was my favourite"
         f" {thing}"
         f"( again|)?", f"my favourite {thing}?", f"(and|so|ok|now), what's my favourite {thing}?", f"which {thing}"
         f" did i"
         f" (say|tell you|mention)( i like|)?", f"do you (recall|know|still know) which {thing} i like( best|)?",
         f"guess my favourite {thing}, i told you",
         f"my favourite {thing} is what?"),
        (f"Your favourite {thing} is <v>.", f"You said your favourite {thing} is <v>.",
         f"You told me that your favourite {thing} is <v>."),
        (f"You have not told me your favourite {thing}( yet|).",
         f"I don't know your favourite {thing}( yet|). What is it?"),
        f"favourite {thing}",
    )  # fmt: skip


def _relative(who: str) -> Kind:
    return Kind(
        who, Talk.new_name,
        (f"my {who} is (called|named) <v>", f"my {who}'s name is <v>", f"<v> is my {who}", f"the name of my {who} is"
         f" <v>",
         f"i have a {who} (called|named) <v>", f"(btw|also|oh and)(,|) my {who} is called <v>"),
        ("(Say hello to|Greet) <v> from me!", f"What a good name for a {who}: <v>!", f"(Noted|I see): your {who} is"
         f" called <v>."),
        (f"what is my {who} called?", f"what's my {who}'s name( again|)?", f"who is my {who}?", f"my {who}'s name?",
         f"{REMEMBER} the name of my {who}", f"what is the name of my {who}?", f"{REMEMBER} what my {who} is called",
         f"what was my {who}'s name( again|)?", f"do you (recall|still know) my {who}'s name?"),
        (f"Your {who} is called <v>.", f"The name of your {who} is <v>.", f"Your {who}'s name is <v>."),
        (f"You have not told me about your {who}( yet|).", f"I don't know the name of your {who}( yet|)."),
        who,
    )  # fmt: skip


KINDS: tuple[Kind, ...] = (
    Kind(
        "name", Talk.new_name,
        ("my name is <v>", "(i'm|i am) <v>", "(call me|you can call me|please call me|people call me|they call me)"
                                             " <v>", "(it's|this is) <v>( here| speaking|)",
         "(hi|hello|hey)(,|!|) (i'm|i am|my name is|my name's|this is|it's) <v>", "<v> is my name", "the name is <v>",
         "(i'm|i am|hi, i am|hi, i'm|hello, i'm|well, i am|so i am|people say i am) (called|named) <v>",
         "(i am|i'm|they say i'm) (usually|mostly|also|always) called <v>", "my (full |first |own |)name"
         " (is|would be) <v>",
         "(my parents|my friends|my family|people|they|some) (called|named|call|name) me <v>",
         "(you can|you may|please|just|do) (call|name) me <v>( please| from now on|)",
         "(the person|the one) (who writes|who types|here|you talk to) is <v>", "(you are|you're) talking (to|with)"
         " <v>",
         "i introduce myself: <v>", "(greetings|hi|hello)( from|,) <v>", "<v> (is what i am called|is how people"
         " call me"
         "|is me|is writing|is typing)", "(everyone|everybody|people|friends) (knows me as|know me as|call me|calls"
         " me) <v>",
         "(my name's|my name is|i'm|i am|it's|this is) <v>( and you|, how are you|, pleased to meet you|, glad to"
         " meet you|, and i"
         " like to chat| by the way)(?|)",
         "(hi|hello|hey|ok)(,|) my name is <v>(,| and) what is yours?", "<v> here", "my friends call me <v>",
         "i'm <v>, nice to meet you", "(everyone|everybody|people) calls me <v>", "i go by <v>", "you (can|may) call"
         " me <v>",
         "(btw|by the way|also|oh and)(,|) (i'm|my name is|i am) <v>", "my first name is <v>", "name's <v>", "its <v>",
         "<v> is (what they call me|my first name)", "(good morning|good evening|good day), (i am|my name is) <v>",
         "i am <v>( and i am new here|, hello|, who are you|, and you|)", "they (named|call) me <v>", "the name's <v>",
         "(remember|please remember|note)(:|) my name is <v>"),
        ("(Nice|Good|Lovely) to meet you, <v>!( I'm tinychat.| What shall we talk about?| How are you?|)",
         "(Hello|Hi), <v>! (I'm tinychat.|How are you?|A nice name!|What shall we do?)",
         "(Welcome|Pleased to meet you), <v>!( I will remember that.|)"),
        ("what is my name?", "what's my name( again| please|)?", "who am i?",
         "(do you remember|do you know|do you still know) my name( please| tinychat|)?",
         "(say|tell me|can you say|can you tell me) my name( please| again| now|)", "what am i called?",
         "what did i say my name (is|was)?", "how am i called?",
         "(have you forgotten|did you forget|you forgot) (my name|who i am)?", f"{REMEMBER} who i am", "my name?",
         "(and|so|ok|now)(,|) (what is|what's) my name?", "what was my name( again|)?", "(say|type|write) my name",
         "which name did i (give you|tell you|say)?", "do you (recall|still remember) (my name|who i am|what i am"
         " called)?",
         "i told you my name, (what is it|what was it)?", "guess my name, i told you", "tell me who i am",
         "(can you|could you|please|) (tell me|remind me of|repeat|recall|say) (my name|what my name is|what i am"
         " called|who i"
         " am)( again| please| once more|)", "(what|which) (is the name|was the name|name) (i gave you|i told"
         " you|of mine)?",
         "(who|to whom) (are you|do you think you are) talking to?", "what do (people|you|they) call me?",
         "do you (still |)(know|remember|recall) (who i am|my name|what i am called|what my name is)( by the way|)?"),
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
         "i have a pet, <a:p> (called|named) <v>", "this is <v>, my <p>", "i (got|bought|found|adopted) <a:p>(, his|"
         " and its|,"
         " her| and its) name is <v>", "my <p> (answers to|goes by) <v>", "(btw|also|oh and)(,|) my <p> is called <v>",
         "(say hi to|meet) <v>, my <p>", "(the|our) <p> at home is called <v>", "i have <a:p>, <v>"),
        ("(How nice|How lovely), <a:p> called <v>!", "(Hello|Say hello) to <v> the <p>( from me|)!",
         "I like the name <v> for <a:p>.", "(Noted|I see): your <p> is called <v>."),
        ("what is my <p> called?", "what's my <p>'s name( again|)?", "what is the name of my <p>?", "who is my <p>?",
         "how is my <p> called?",
         f"{REMEMBER} the name of my <p>", f"{REMEMBER} what my <p> is called", "my <p>, what was its name?",
         "what did i call my <p>?", "what was my <p>'s name( again|)?", "(and|so|ok|now)(,|) what is my <p> called?",
         "my <p>'s name?", "do you (recall|still know) my <p>'s name?", "which name does my <p> have?",
         "what do we call our <p>?", "how do i call my <p>?"),
        ("Your <p> is called <v>.", "The name of your <p> is <v>.", "Your <p>'s name is <v>."),
        ("You have not told me about your <p>( yet|).", "I don't know the name of your <p>( yet|)."),
        "<p>",
    ),
    Kind(
        "number", lambda talk: str(talk.dice.between(1, talk.dice.choice((99, 99, 999, 9999)))),
        ("(remember|keep|note|store|save|hold on to|please remember|please keep) (the number|this number:|number)"
         " <v>( for me| please|)", "my (lucky |secret |)number is <v>",
         "(keep|remember) <v> for me( please|)", "the number is <v>(, remember it|, keep it|)",
         "i give you a number: <v>", "(btw|ok|so|now)(,|) (the|my) number is <v>", "(here is|this is) (a|my) number:"
         " <v>",
         "(memorize|learn|take) (the number|this:|number) <v>", "don't forget <v>", "can you (keep|remember) <v>( for"
         " me|)?",
         "my (house|door|bus|shirt|room) number is <v>"),
        ("(Okay|Noted|Done), I (keep|hold) <v>.", "Your number <v> is safe with me.", "I will remember <v>."),
        ("what (is|was) (the|my) number?", "(which|what) number did i (give you|tell you|say)?",
         "what's my number( again|)?", f"{REMEMBER} (my|the) number",
         "what number do you (keep|hold|remember)( for me|)?", "give me back my number",
         "the number( please| again|)?", "what was the number( again| i told you| i gave you|)?", "(and|so|ok|now)(,"
         "|) my"
         " number?", "(say|repeat|tell me) (the|my) number( again| please|)", "can i have my number back?",
         "do you still have"
         " (the|my) number?", "which number was it?"),
        ("The number is <v>.", "Your number is <v>.", "You gave me <v>.", "I kept it: <v>."),
        ("You have not given me a number( yet|).", "I don't know your number( yet|)."),
        "number",
    ),
    Kind(
        "town", one_of(words.TOWNS, 0.3),
        ("(i live in|i'm from|i am from|i come from|my home is in|my town is|my home is) <v>",
         "i live in <v>( now| with my family| and like it|)",
         "(we moved to|i was born in|i write to you from) <v>", "(btw|also|well)(,|) i live in <v>", "<v> is my home("
         " town|)",
         "i'm (in|living in) <v>( now| right now|)", "my (city|home town) is <v>", "greetings from <v>",
         "i grew up in <v>"),
        ("(How nice|Lovely)! What is <v> like?", "Oh, <v>! I (only know|like) the name. What is it like?",
         "(Noted|I see): your home is <v>."),
        ("where do i live?", "where am i from?", "(which|what) town (do i live in|am i from)?",
         f"{REMEMBER} where i (live|come from|am from)", "what is my town?",
         "where did i say i (live|come from)?", "where is my home?", "what is my (city|home town)?", "where do i come"
         " from?",
         "(and|so|ok|now)(,|) where do i live?", "which (city|town) do i live in?", "do you (recall|still know) where"
         " i live?"),
        ("You are from <v>.", "Your home is <v>.", "You told me: <v>."),
        ("You have not told me where you live( yet|).", "I don't know where you live( yet|)."),
        "home town",
    ),
    Kind(
        "friend", Talk.new_name,
        ("my (best |good |)friend is (called|named) <v>", "my friend's name is <v>", "<v> is my (best |)friend",
         "i have a friend (called|named) <v>",
         "the name of my friend is <v>", "(btw|also|oh and)(,|) my friend is called <v>", "<v> and i are (best "
         "|)friends",
         "i met my friend <v> (today|yesterday)", "my (bff|bestie|pal|buddy) is <v>"),
        ("(Say hello to|Greet) <v> from me!", "A friend called <v>, how nice!",
         "(Noted|I see): your friend is called <v>."),
        ("what is my friend called?", "what's my friend's name( again|)?", "who is my friend?",
         f"{REMEMBER} the name of my friend", "what is the name of my friend?",
         f"{REMEMBER} what my friend is called", "what was my friend's name( again|)?", "my friend's name?",
         "(and|so|ok|now)(,|) what is my friend called?", "do you (recall|still know) my friend's name?"),
        ("Your friend is called <v>.", "The name of your friend is <v>.", "Your friend's name is <v>."),
        ("You have not told me about your friend( yet|).", "I don't know the name of your friend( yet|)."),
        "friend",
    ),
    Kind(
        "age", lambda talk: str(talk.dice.between(6, 89)),
        ("(i'm|i am) <v>( years old|)", "my age is <v>",
         "i (turned|turn|became) <v> (today|last week|this year|yesterday)", "(btw|also)(,|) i am <v> years old",
         "i have <v> years", "i was born <v> years ago", "<v> years old( here| is my age|)"),
        ("A (fine|good) age: you are <v>.", "(Noted|I see): you are <v>."),
        ("how old am i?", "what is my age?", f"{REMEMBER} (my age|how old i am)", "what age am i?", "my age is what?",
        "my age?", "what was my age( again|)?", "(and|so|ok|now)(,|) how old am i?",
         "how many years old am i?", "do you (recall|still know) how old i am?"),
        ("You are <v>.", "You are <v> years old.", "You told me: <v>."),
        ("You have not told me your age( yet|).", "I don't know your age( yet|)."),
        "age",
    ),
    Kind(
        "job", one_of(words.JOBS),
        ("(i work as|i am|i'm|my job is) <a:v>", "(for a living |by trade |)i am <a:v>", "i have a job, i'm <a:v>",
        "i (earn my money|make my living) as <a:v>", "(btw|also)(,|) i work as <a:v>",
         "my profession is <v>"),
        ("How interesting, you are <a:v>!", "(Noted|I see): you are <a:v>.", "A good job! What does <a:v> do all day?"),
        ("what is my job?", "what do i do( for a living|)?", "what do i work as?",
         f"{REMEMBER} (my job|what i do|what i work as)", "what did i say my job is?", "my job?", "what was my job("
         " again|)?",
         "(and|so|ok|now)(,|) what is my job?", "do you (recall|still know) my job?"),
        ("You are <a:v>.", "You told me that you are <a:v>.", "Your job: you are <a:v>."),
        ("You have not told me your job( yet|).", "I don't know your job( yet|)."),
        "job",
    ),
    Kind(
        "word",
        one_of(words.THINGS, 0.6),
        ("(the|my) (secret|magic) word is <v>", "(remember|keep) the word <v>( for me|)",
         "i tell you a (secret |magic |)word: <v>", "(our|the) password is <v>", "my (secret |magic |)word is <v>",
         "(memorize|learn|don't forget) the word <v>",
         "(here is|this is) (a|the) (secret |)word: <v>", "(can you|please) (keep|remember) the word <v>( for me|)?"),
        ("(Noted|Okay), the word is <v>.", "I keep the word <v> (safe|well).", "I will remember the word <v>."),
        ("what (is|was) the (secret |magic |)word?", "(which|what) word did i tell you?",
         f"{REMEMBER} the (secret |magic |)word", "the (secret |magic |)word( please|)?",
         "what is the password?", "what was the (secret |magic |)word again?", "(and|so|ok|now)(,|) the (secret "
         "|)word?",
         "do you (recall|still know) the (secret |)word?", "say the (secret |magic |)word( again| please|)",
         "what is my (secret |magic |)word?"),
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
    _favourite("book", words.BOOKS),
    _favourite("game", words.GAMES),
    _favourite("fruit", words.FRUITS),
    _favourite("flower", words.FLOWERS),
    _favourite("instrument", words.INSTRUMENTS),
    _favourite("subject", words.SUBJECTS),
    _favourite("music", words.MUSIC),
    _favourite("song", words.THINGS),
    _favourite("film", words.BOOKS),
    _favourite("band", words.THINGS),
    _favourite("city", words.TOWNS),
    *map(_relative, ("sister", "brother", "mother", "father", "teacher", "neighbour", "son", "daughter")),
)  # fmt: skip
WEIGHTS = [10.0, 5.0, 3.6, 1.8, 2.2, 1.2, 1.2, 2.0, *[1.0] * 8, *[0.7] * 11, *[0.5] * 8]


NAME = KINDS[0]


def choose(talk: Talk) -> Kind:
    """Return a random kind of fact, most often the name."""
    return KINDS[talk.dice.weighted(WEIGHTS)]


def _new_value(talk: Talk, kind: Kind) -> str:
    value = kind.value(talk)
    while value in talk.facts.values():
        value = kind.value(talk)
    return value


def tell(talk: Talk, kind: Kind) -> None:
    """Add a turn in which the person tells a fact; telling the same kind again replaces it."""
    value = _new_value(talk, kind)
    pet = talk.word(talk.dice.choice(words.PETS))
    templates = kind.tell
    if kind.key in talk.facts and isinstance(templates, tuple):
        templates = tuple("(no, now|i changed my mind,|actually,|sorry, i mean) " + line for line in templates[:1])
        pet = talk.facts.get("pet kind", pet)
    talk.facts[kind.key] = value
    if kind.key == "pet":
        talk.facts["pet kind"] = pet
    talk.turn(templates, kind.acknowledgements, v=value, p=pet)
    talk.facts[kind.key] = talk.turns[-1].values["v"]
    if talk.left > 1 and talk.dice.chance(0.08):
        talk.facts[kind.key] = _new_value(talk, kind)
        said = "(no, i meant|sorry, i meant|sorry, i mean|no, it is|oh no, i mean|no wait,) <v>"
        talk.turn(said, kind.acknowledgements, v=talk.facts[kind.key], p=pet)


def tell_name_only(talk: Talk) -> None:
    """Add the person's name as an answer to the bot's question."""
    name = _new_value(talk, NAME)
    talk.facts["name"] = name
    talk.turn("<v>(.||!)|(i'm|i am|it's|it is|my name is|call me) <v>(.||!)", NAME.acknowledgements, v=name)


def tell_two(talk: Talk) -> None:
    """Add a turn in which the person tells their name and one more fact."""
    name = _new_value(talk, NAME)
    talk.facts["name"] = name
    kind = talk.dice.choice(KINDS[1:])
    value = _new_value(talk, kind)
    talk.facts[kind.key] = value
    pet = talk.word(talk.dice.choice(words.PETS))
    if kind.key == "pet":
        talk.facts["pet kind"] = pet
    more = kind.tell[0] if kind.key != "number" else "my number is <v>"
    talk.turn(
        f"(hi |hi, |hello, |hey |well, |ok |)(i'm|i am|my name is|it's|call me) <n>(,| and|. ) {more}",
        ("(Hello|Hi|Nice to meet you), <n>! (I will remember both|I keep both in mind|Good to know).",
         "(Noted|I see), <n>! (Thank you for telling me|I will remember that).",
         "(Hello|Hi), <n>! (Noted|I see): " + (
             "your <p> is called <v>." if kind.key == "pet" else f"{kind.answer[0][0].lower()}{kind.answer[0][1:]}")),
        n=name, v=value, p=pet,
    )  # fmt: skip


def ask(talk: Talk, kind: Kind) -> None:
    """Add a question for a fact told earlier."""
    talk.ask(kind.ask, kind.answer, v=talk.facts[kind.key], p=talk.facts.get("pet kind", ""))


def never_told(talk: Talk) -> None:
    """Add a question for a fact that the person never told."""
    kind = choose(talk)
    while kind.key in talk.facts:
        kind = choose(talk)
    talk.ask(kind.ask, kind.unknown, p=talk.dice.choice(words.PETS))


def who_is(talk: Talk) -> None:
    """Add a question about a name, either told earlier or unknown."""
    known = [kind for kind in KINDS if kind.key in talk.facts and kind.value == Talk.new_name and kind.key != "name"]
    question = (
        "who is <v>?|do you (know|remember) who <v> is?|(tell me|say) who <v> is|<v>, who is that?"
        "|who was <v>( again|)?"
    )
    if known and talk.dice.chance(0.8):
        kind = talk.dice.choice(known)
        talk.ask(
            question, ("That is your <who>.", "You told me: <v> is your <who>."), v=talk.facts[kind.key], who=kind.thing
        )
        return
    talk.ask(
        question,
        ("I don't know <v>. (Who is that|Is that a friend|Will you tell me)?",
         "I have never (heard of|met) <v>. (Who is that|Will you tell me)?"),
        v=talk.new_name(),
    )  # fmt: skip


def summarize(talk: Talk) -> None:
    """Add a question for everything that the bot knows about the person."""
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


SCENES: Scenes = (
    Scene("things never told", 2.6, never_told),
    Scene("all that it knows", 0.8, summarize),
    Scene("who somebody is", 1.2, who_is),
    Scene("two facts at once", 1.4, tell_two),
)
