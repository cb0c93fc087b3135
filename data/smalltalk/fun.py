"""Original jokes with explanations, riddles with hints, and a small quiz."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from grammar import Lines, a

from smalltalk import numbers, words
from smalltalk.talk import Scene, Scenes, Talk


class Joke(NamedTuple):
    """A joke and what is funny about it."""

    about: str
    question: str
    answer: str
    why: str


class Riddle(NamedTuple):
    """A riddle, a hint, and a guess that is nearly right."""

    text: str
    answer: str
    hint: str
    near: str


LINES = words.lines(__file__)
JOKES = tuple(Joke(*line) for line in LINES["jokes"])
RIDDLES = tuple(Riddle(*line) for line in LINES["riddles"])
GUESSES = tuple(dict.fromkeys(a(thing) for thing in (*words.ANIMALS, *words.THINGS, *words.FRUITS, *words.JOBS)))

RIDDLE = "<text> What am I?"


def new_joke(talk: Talk) -> Joke:
    """Return a joke that nobody told in this conversation yet."""
    return talk.dice.choice([joke for joke in JOKES if all(joke.question not in turn.assistant for turn in talk.turns)])


def new_riddle(talk: Talk) -> Riddle:
    """Return a riddle that was not asked in this conversation yet."""
    return talk.dice.choice(
        [riddle for riddle in RIDDLES if all(riddle.text not in turn.assistant for turn in talk.turns)]
    )


def tell_joke(talk: Talk, request: Lines) -> None:
    """Add a joke, either at once or with the person asking back, and how they go on."""
    joke = new_joke(talk)
    say(talk, joke, request)
    told = [joke]
    while talk.left and talk.dice.chance(0.5):
        kind = talk.dice.weighted((4, 2, 2, 4, 1))
        if kind == 0:
            talk.turn(LINES["why"], "<why>", why=told[-1].why)
            if talk.left and talk.dice.chance(0.25):
                talk.turn(LINES["got_it"], LINES["good"])
        elif kind == 1:
            talk.turn(LINES["laughs"], LINES["glad"])
        elif kind == 2:
            talk.turn(LINES["groans"], LINES["sorry"])
        elif kind == 3:
            told.append(new_joke(talk))
            say(talk, told[-1], LINES["more"])
        else:
            joke = talk.dice.choice(told)
            talk.turn(LINES["why_about"], joke.why, about=joke.about)


def say(talk: Talk, joke: Joke, request: Lines) -> None:
    """Add the joke itself."""
    values = {"question": joke.question, "answer": joke.answer, "kind": "joke"}
    add = talk.ask if request is LINES["joke_requests"] else talk.turn
    if talk.left < 2 or talk.dice.chance(0.65):
        add(request, "<question> <answer>", **values)
        return
    add(request, "<question>", **values)
    word = joke.question.split()[0].lower()
    talk.turn(LINES["asks_back"], "<answer>", word=word, **values)


def joke(talk: Talk) -> None:
    """Add a request for a joke, sometimes about something."""
    kind = talk.dice.weighted((8, 1, 1, 0.5))
    joke = talk.dice.choice(JOKES)
    if kind == 0:
        tell_joke(talk, LINES["joke_requests"])
    elif kind == 1:
        talk.ask(LINES["about"], f"{joke.question} {joke.answer}", about=joke.about)
    elif kind == 2:
        known = {joke.about for joke in JOKES}
        about = talk.dice.choice([word for word in (*words.ANIMALS, *words.THINGS, *words.JOBS) if word not in known])
        joke = talk.dice.choice([joke for joke in JOKES if len(f"{joke.question} {joke.answer}".split()) < 17])
        talk.ask(
            LINES["about"], f"I know no joke about <a:about>, but this: {joke.question} {joke.answer}", about=about
        )
    else:
        talk.turn(LINES["why_about"], joke.why, about=joke.about)
    if kind in (1, 3) and talk.left and talk.dice.chance(0.3):
        talk.turn(LINES["why"], joke.why) if kind == 1 else talk.turn(LINES["got_it"], LINES["good"])


def their_joke(talk: Talk) -> None:
    """Add a joke that the person tells, at once or in turns, and perhaps whether tinychat laughed."""
    joke = talk.dice.choice(JOKES)
    word = joke.question.split()[0].lower()
    if talk.dice.chance(0.5):
        talk.turn(LINES["whole_joke"], LINES["they_laugh"], question=joke.question, answer=joke.answer)
    else:
        talk.ask(LINES["their_joke"], "(Yes, please|Oh yes|Gladly)! (Tell me|Go on|I am listening).")
        if talk.left < 2:
            return
        talk.turn("(ok, |ok: |so, |)<question>", f"(I don't know|No idea|Tell me): {word}?", question=joke.question)
        talk.turn(LINES["their_answer"], LINES["they_laugh"], answer=joke.answer)
    if talk.left and talk.dice.chance(0.35):
        talk.turn(LINES["laughed"], LINES["inside"])


def ask_riddle(talk: Talk, request: Lines) -> None:
    """Add a riddle, the person's guesses (right, nearly right or wrong), a hint, giving up, and what follows."""
    riddle = new_riddle(talk)
    (talk.ask if request is LINES["riddle_requests"] else talk.turn)(request, RIDDLE, text=riddle.text, kind="riddle")
    while talk.left and talk.dice.chance(0.9):
        kind = talk.dice.weighted((3, 4, 1, 1.5, 2, 1))
        if kind < 3:
            others = GUESSES if talk.dice.chance(0.6) else tuple(other.answer for other in RIDDLES)
            wrong = talk.dice.choice([guess for guess in others if guess not in (riddle.answer, riddle.near)])
            guess = (riddle.answer, wrong, riddle.near)[kind]
            values = {"guess": guess, "bare": guess.split(" ", 1)[-1], "hint": riddle.hint}
            talk.turn(LINES["guess"], LINES[("yes", "no", "close")[kind]], **values)
        elif kind == 3:
            asked = LINES["yes_hint" if talk.turns[-1].assistant.endswith("hint?") else "hint"]
            talk.turn(asked, ("Here is a hint: <hint>", "A hint: <hint>"), hint=riddle.hint)
        elif kind == 4:
            talk.turn(LINES["give_up"], LINES["solution"], answer=riddle.answer)
        if kind in (0, 4) and talk.left and talk.dice.chance(0.3):
            talk.turn(LINES["solved"], LINES["after_riddle"])
        if kind == 5 or (kind in (0, 4) and talk.left and talk.dice.chance(0.4)):
            riddle = new_riddle(talk)
            talk.turn(LINES["more"], RIDDLE, text=riddle.text, kind="riddle")
        elif kind in (0, 4):
            return


def _question(talk: Talk, subject: str) -> tuple[str, str, str, str]:
    """Return a question of the quiz, the fact, the right answer and a wrong one."""
    dice = talk.dice
    if subject == "sums":
        sign = dice.choice(("plus", "minus"))
        first, second = numbers.pair(talk, sign)
        right = first + second if sign == "plus" else first - second
        fact = numbers.worked_out(first, sign, second)
        wrong = right + dice.choice((-1, -2, 1, 10) if right > 1 else (1, 2))
        return f"What is {first} {sign} {second}?", fact, str(right), str(wrong)
    if subject == "times tables":
        first, second = dice.between(2, 10), dice.between(2, 10)
        right = first * second
        fact = f"{first} times {second} is {right}"
        return f"What is {first} times {second}?", fact, str(right), str(right + dice.choice((-first, -1, second, 2)))
    (this, that), (_, other) = (pair.split("=") for pair in dice.sample(words.TABLES[subject], 2))
    kind = subject.removesuffix("s")
    return f"What is the {kind} of {this}?", f"The {kind} of {this} is {that}", talk.word(that), talk.word(other)


def quiz(talk: Talk) -> None:
    """Add questions of the bot, the person's answers, and whether they are right."""
    subject = talk.dice.choice(("sums", "times tables", "capitals", "opposites"))
    question, fact, right, wrong = _question(talk, subject)
    asked = {"sums": "(sums|maths|plus and minus|adding)", "times tables": "(times tables|maths)"}.get(subject, subject)
    talk.ask(tuple(line.replace("<subject>", asked) for line in LINES["quiz"]), "<question>", question=question)
    while talk.left:
        kind = talk.dice.weighted((5, 4, 1))
        said = (right, wrong, "")[kind]
        verdict = ("(You are right|That is right|Well done)!", "So it is not <said>.", "Now you know.")[kind]
        lines, reply = LINES["quiz_pass" if kind == 2 else "quiz_answer"], f"{fact}. {verdict}"
        on = talk.left > 1 and talk.dice.chance(0.5)
        question, fact, right, wrong = _question(talk, subject)
        talk.turn(lines, f"{reply} <question>" if on else reply, said=said, question=question)
        if not on:
            if not talk.left or talk.dice.chance(0.5):
                return
            talk.turn(LINES["next"], "<question>", question=question)


SCENES: Scenes = (
    Scene("jokes", 26.0, joke),
    Scene("a joke of the person", 2.5, their_joke),
    Scene("riddles", 15.0, partial(ask_riddle, request=LINES["riddle_requests"])),
    Scene("quiz", 7.0, quiz),
)
