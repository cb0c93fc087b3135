"""Word and chance games: spelling, letters, repetition, knock knock, coins, dice, numbers."""

from __future__ import annotations

from functools import partial

from grammar import Lines, fill

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

LINES = words.lines(__file__)
COMMON = tuple(
    dict.fromkeys([*words.THINGS, *words.ANIMALS, *words.COLOURS, *words.FRUITS, *words.JOBS, *words.plurals()])
)
RHYMING = {
    word: [other for other in group if other != word] for group in map(str.split, LINES["rhymes"]) for word in group
}
FURTHER: tuple[tuple[str, Lines], ...] = (
    ("spell_again", ("Again: <word> is spelled <letters>.", "Once more: <letters>.")),
    ("spell_next", LINES["spelled"]),
    ("how_many", LINES["counted"]),
    ("and_backwards", LINES["backwards"]),
    ("their_letters", "(Yes|Right): <letters>."),
)
"""What follows a word that was spelled."""
ALPHABET = "Here it is: a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t-u-v-w-x-y-z."
NO_RHYME = tuple(word for word in words.EVERYDAY if word not in RHYMING and len(word) > 2)


def _word(talk: Talk, longest: int = 14) -> str:
    """Return a word to spell: mostly a frequent one, sometimes a name or an invented one."""
    while True:
        kind = talk.dice.weighted((30, 50, 6, 14))
        if kind < 2:
            word = talk.dice.choice((COMMON, words.EVERYDAY)[kind])
        else:
            word = talk.new_name() if kind == 2 else talk.new_word()
        if 1 < len(word) <= longest:
            return word


def _values(word: str) -> dict[str, str]:
    """Return the word, its letters forwards and backwards, how many they are, and the first and last one."""
    values = {"word": word, "letters": "-".join(word), "back": "-".join(word[::-1]), "count": str(len(word))}
    return values | {"one": word[:1].lower(), "other": word[-1:].lower()}


def spell(talk: Talk) -> None:
    """Add a word spelled letter by letter, or a few, and how the person goes on."""
    if talk.dice.chance(0.25):
        several = [_word(talk, 8) for _ in range(talk.dice.between(2, 3))]
        some = (", " if talk.dice.chance(0.3) else " and ").join(several)
        talk.ask(LINES["spell_several"], "; ".join(f"{word}: {'-'.join(word)}" for word in several) + ".", some=some)
        return
    word = _word(talk)
    if talk.dice.chance(0.04):
        word = talk.facts.get("name", "")
        reply = LINES["spelled"] if word else "Tell me your name, and I will spell it."
        talk.ask(LINES["my_name"], reply, **_values(word))
        return
    talk.ask(LINES["spell"], LINES["spelled"], **_values(word))
    while talk.left and talk.dice.chance(0.4):
        kind = talk.dice.weighted((3, 5, 1, 1, 1))
        word = _word(talk) if kind == 1 else word
        kind = 4 if kind == 3 and len(word) > 6 else kind
        talk.turn(LINES[FURTHER[kind][0]], FURTHER[kind][1], **_values(word))


def about_word(talk: Talk, say: str, reply: str, longest: int) -> None:
    """Add a question about the letters of a word."""
    talk.ask(LINES[say], LINES[reply], **_values(_word(talk, longest)))


def rhyme(talk: Talk) -> None:
    """Add a request for a rhyme, and others for more of them or for another word."""
    dice = talk.dice
    word, lines = dice.choice(tuple(RHYMING)), LINES["rhyme"]
    while talk.left:
        if dice.chance(0.13):
            unknown = dice.choice(NO_RHYME) if dice.chance(0.8) else talk.new_word()
            talk.turn(lines, LINES["no_rhyme"], word=unknown)
        elif len(RHYMING[word]) > 2 and dice.chance(0.2):
            one, two, three = dice.sample(RHYMING[word], 3)
            talk.turn(LINES["many_rhymes"], f"<word> rhymes with {one}, {two} and {three}.", word=word)
        else:
            left = dice.sample(RHYMING[word], len(RHYMING[word]))
            talk.turn(lines, LINES["one_rhyme"], word=word, other=left.pop())
            while talk.left and left and dice.chance(0.35):
                talk.turn(LINES["more_rhymes"], LINES["another_rhyme"], word=word, other=left.pop())
            if talk.left and not left and dice.chance(0.6):
                talk.turn(LINES["more_rhymes"], "I know no other rhyme for <word>.", word=word)
        if not dice.chance(0.35):
            return
        word, lines = dice.choice(tuple(RHYMING)), LINES["next_rhyme"]


def do_they_rhyme(talk: Talk) -> None:
    """Add a question whether two words rhyme."""
    word = talk.dice.choice(tuple(RHYMING))
    yes = talk.dice.chance(0.5)
    other = talk.dice.choice(RHYMING[word] if yes else [one for one in RHYMING if one not in (word, *RHYMING[word])])
    reply = "Yes, <word> rhymes with <other>." if yes else "No, <word> and <other> do not rhyme."
    talk.ask(LINES["do_they_rhyme"], reply, word=word, other=other)


def _text(talk: Talk) -> str:
    """Return something to repeat: words, sentences, names, numbers or letters."""
    dice = talk.dice
    kind = dice.weighted((1, 1, 2, 4, 2, 2, 4, 3, 1, 2))
    if kind == 0:
        return dice.choice(words.EVERYDAY)
    if kind == 1:
        return f"{dice.choice(words.ADJECTIVES)} {dice.choice(COMMON)}"
    if kind == 2:
        return " ".join(talk.new_word() for _ in range(dice.between(1, 3)))
    if kind == 3:
        return " ".join(dice.choice(words.EVERYDAY) for _ in range(dice.between(2, 7)))
    if kind == 4:
        return str(dice.choice(LINES["greetings"]))
    if kind == 5:
        return " ".join(dice.choice((dice.choice(words.EVERYDAY), talk.new_word())) for _ in range(dice.between(2, 4)))
    if kind == 6:
        slots = {slot: dice.choice(words.EVERYDAY) for slot in ("thing", "adjective", "verb")}
        slots |= {"animal": dice.choice(words.ANIMALS), "place": dice.choice(words.THINGS)}
        slots |= {"thing": dice.choice(words.THINGS)} if dice.chance(0.6) else {}
        return fill(dice, LINES["sentences"], slots)
    if kind == 7:
        return dice.choice(("-", "-", " ")).join(_word(talk, 9))
    if kind == 8:
        return dice.choice((" ", ", ")).join(str(dice.between(0, 99)) for _ in range(dice.between(1, 5)))
    return fill(dice, LINES["with_names"], {"name": talk.new_name(), "other": talk.new_name()})


def say_back(talk: Talk) -> None:
    """Add a request to repeat something word for word."""
    talk.turn(LINES["say"], LINES["said"], text=talk.word(_text(talk)))
    while talk.left and talk.dice.chance(0.3):
        if talk.dice.chance(0.5):
            talk.turn(LINES["say_again"], LINES["said"], text=talk.turns[-1].values["text"])
        else:
            talk.turn(LINES["say_next"], LINES["said"], text=talk.word(_text(talk)))


def knock_knock(talk: Talk) -> None:
    """Add a knock-knock joke."""
    talk.turn(LINES["knock_knock"], ("(Who's there|Who is there|Oh, who is there|Yes, who is there)?",))
    if not talk.left:
        return
    who = talk.word(talk.dice.choice(words.THINGS + words.ANIMALS)) if talk.dice.chance(0.5) else talk.new_name()
    talk.turn("<who>(.||!)", "<who> who?", who=who)
    if talk.left:
        talk.turn(LINES["knock_knock_2"], LINES["knock_knock_laugh"], who=who)


def throw(talk: Talk, say: str, reply: str) -> None:
    """Add a toss of a coin or a throw of the dice."""
    values = {"n": talk.dice.choice(("one", "two", "three", "four", "five", "six"))} if say == "dice" else {}
    talk.ask(LINES[say], LINES[reply], **values)


def pick_number(talk: Talk) -> None:
    """Add a request for a number from a range."""
    low, high = talk.dice.choice(((1, 10), (1, 10), (1, 5), (1, 20), (1, 6), (5, 10), (10, 20), (1, 3)))
    number = str(talk.dice.between(low, high))
    talk.ask(LINES["pick_number"], LINES["picked"], a=str(low), b=str(high), n=number)


def rock_paper_scissors(talk: Talk) -> None:
    """Add one round in which the bot states its choice and the winner."""
    beats = {"rock": "scissors", "scissors": "paper", "paper": "rock"}
    mine, yours = talk.dice.choice(tuple(beats)), talk.dice.choice(tuple(beats))
    result = "(Both the same|A draw)! (Again|Once more)?"
    if mine != yours:
        won, lost = (
            "(Mine beats yours|I win this time), (again|one more round)?",
            "(Yours beats mine|You win)! (Well played|Again)?",
        )
        result = won if beats[mine] == yours else lost
    reply = f"(You took|You have) <yours>, (and I took|I have) <mine>. {result}"
    talk.ask(LINES["rock_paper_scissors"], reply, yours=yours, mine=mine)


def would_you_rather(talk: Talk) -> None:
    """Add a choice between two odd wishes."""
    this, that = talk.dice.sample(LINES["wishes"], 2)
    talk.ask(LINES["would_you_rather"], LINES["rather"], this=this, that=that, pick=talk.dice.choice((this, that)))


SCENES: Scenes = (
    Scene("spelling", 60.0, spell),
    Scene("how many letters", 1.5, partial(about_word, say="count_letters", reply="counted", longest=10)),
    Scene("spelling backwards", 1.5, partial(about_word, say="backwards_asked", reply="backwards", longest=6)),
    Scene("the alphabet", 1.2, lambda talk: talk.ask(LINES["alphabet"], ALPHABET)),
    Scene("first letters", 1.0, partial(about_word, say="first", reply="first_is", longest=9)),
    Scene("last letters", 0.8, partial(about_word, say="last", reply="last_is", longest=9)),
    Scene("rhymes", 13.0, rhyme),
    Scene("whether words rhyme", 3.0, do_they_rhyme),
    Scene("saying back", 17.0, say_back),
    Scene("knock knock", 1.0, knock_knock),
    Scene("coins", 0.9, partial(throw, say="coin", reply="coin_fell")),
    Scene("dice", 0.9, partial(throw, say="dice", reply="dice_fell")),
    Scene("picking a number", 0.9, pick_number),
    Scene("rock, paper, scissors", 0.8, rock_paper_scissors),
    Scene("would you rather", 0.9, would_you_rather),
)
