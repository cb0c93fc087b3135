"""Counting and comparing, adding and taking away up to a hundred, tables to ten, and refusals of larger numbers."""

from __future__ import annotations

from functools import partial

from grammar import Lines, listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

LINES = words.lines(__file__)
SUMS, DIFFERENCES = LINES["sums"], LINES["differences"]
LIMIT, SUM_LIMIT, TABLES = 20, 100, 10
BARE = 0.45
"""Probability that a sum or difference needs one step only, as the second number has no ones or no tens."""
HOLDERS, COUNTED = (listed(LINES[name], ",") for name in ("holders", "counted"))
"""What holds so many of a thing each, and things."""
ONES, TENS = words.LISTS["ones"], words.LISTS["tens"]
WORDS = [*ONES, *(f"{ten}-{one}".removesuffix("-zero") for ten in TENS for one in ONES[:10]), "a hundred"]


def number(talk: Talk, value: int, in_words: float = 0.16) -> str:
    """Return the number as this person writes it, mostly in digits."""
    return WORDS[value] if value <= SUM_LIMIT and talk.dice.chance(in_words) else str(value)


def worked_out(first: int, sign: str, second: int) -> str:
    """Return a sum or difference without its full stop: first the tens, then the ones, or why it ends."""
    tens, ones = second // 10 * 10, second % 10
    steps, total = [], first
    for part in (tens, ones) if tens and ones else (second,):
        result = total + part if sign == "plus" else total - part
        if not 0 <= result <= SUM_LIMIT:
            limit = "past a hundred" if result > 0 else "below zero"
            steps.append(f"{total} {sign} {part} goes {limit}, and I stop there")
            break
        steps.append(f"{total} {sign} {part} is {result}")
        total = result
    return (f"{first} {sign} {second}: " if tens and ones else "") + ", ".join(steps)


def pair(talk: Talk, sign: str) -> tuple[int, int]:
    """Return two numbers whose sum or difference is within the range."""
    dice = talk.dice
    if dice.chance(BARE):
        second = dice.between(0, 10) if dice.chance(0.85) else 10 * dice.between(1, 9)
        first = dice.between(0, SUM_LIMIT - second)
    else:
        total = dice.between(11, SUM_LIMIT) if dice.chance(0.7) else dice.between(11, 40)
        second = dice.between(11, total)
        first = total - second
    return (first, second) if sign == "plus" else (first + second, second)


def calculate(talk: Talk, sign: str) -> None:
    """Add a sum or difference, and how the person goes on: doubts, corrections, praise, and more of them."""
    first, second = pair(talk, sign)
    values, total = _sum(talk, first, sign, second)
    talk.ask(SUMS if sign == "plus" else DIFFERENCES, LINES["worked_out"], **values)
    while talk.left and talk.dice.chance(0.38):
        kind = talk.dice.weighted((3, 3, 1, 4, 2))
        if kind == 0:
            talk.turn(LINES["check"], ("I count again: <sum>.", "Yes: <sum>."), sum=values["sum"])
        elif kind == 1:
            claim(talk, LINES["claims"], values, total, "I count again: ")
        elif kind == 2:
            talk.turn(LINES["praise"], LINES["thanks"])
        else:
            sign = talk.dice.choice(("plus", "minus"))
            first, second = pair(talk, sign) if kind == 3 else (total, talk.dice.between(1, 10))
            values, total = _sum(talk, first, sign, second)
            say = LINES["and_sum" if kind == 3 else "on_sum"]
            talk.turn(say, LINES["worked_out"], op=operator(talk, sign), **values)
            if not 0 <= total <= SUM_LIMIT:
                return


def _sum(talk: Talk, first: int, sign: str, second: int) -> tuple[dict[str, str], int]:
    """Return the numbers as this person writes them with what they make, and the result."""
    values = {"a": number(talk, first), "b": number(talk, second), "sum": worked_out(first, sign, second)}
    return values, first + second if sign == "plus" else first - second


def operator(talk: Talk, sign: str) -> str:
    """Return the word or sign that the person writes."""
    return talk.dice.choice(("plus", "+") if sign == "plus" else ("minus", "-", "take away"))


def claim(talk: Talk, lines: Lines, values: dict[str, str], total: int, lead: str) -> None:
    """Add a result that the person claims, which the bot checks."""
    near = [total + by for by in (-10, -2, -1, 1, 2, 10) if 0 <= total + by <= SUM_LIMIT]
    said = total if talk.dice.chance(0.5) else talk.dice.choice(near)
    verdict = "(You are right|You are right, thank you|That is right)!" if said == total else "So it is not <w>."
    talk.turn(lines, f"{lead}<sum>. {verdict}", **(values | {"w": str(said)}))


def add(talk: Talk) -> None:
    """Add a sum of at most a hundred, rarely of three small numbers."""
    if talk.dice.chance(0.95):
        calculate(talk, "plus")
        return
    first, second, third = (talk.dice.between(1, 10) for _ in range(3))
    reply = f"{worked_out(first, 'plus', second)}, {worked_out(first + second, 'plus', third)}."
    talk.ask(LINES["three"], reply, a=number(talk, first), b=number(talk, second), c=number(talk, third))


def judge(talk: Talk) -> None:
    """Add a sum with a result, which the bot checks."""
    sign = talk.dice.choice(("plus", "minus"))
    first, second = pair(talk, sign)
    values = {"a": str(first), "b": str(second), "op": operator(talk, sign), "sum": worked_out(first, sign, second)}
    claim(talk, LINES["judge"], values, first + second if sign == "plus" else first - second, "")


def multiply(talk: Talk) -> None:
    """Add a product from the tables to ten, or one beyond them, which the bot refuses."""
    again = False
    while talk.left and (not again or talk.dice.chance(0.3)):
        first, second = talk.dice.between(1, TABLES), talk.dice.between(1, TABLES)
        first = 0 if talk.dice.chance(0.03) else first
        reply: Lines = "<a> times <b> is <y>."
        if talk.dice.chance(0.15):
            first = talk.dice.between(11, 99)
            if talk.dice.chance(0.4):
                first, second = second, first
            reply = LINES["beyond_tables"]
        said = {"a": str(first), "b": str(second), "y": str(first * second)}
        said |= {"holders": talk.dice.choice(HOLDERS), "things": talk.dice.choice(COUNTED)}
        if max(first, second) <= TABLES and talk.dice.chance(0.2):
            said |= {"a": WORDS[first], "b": WORDS[second]}
            reply = f"{first} times {second} is <y>."
        talk.turn(LINES["times_again" if again else "times"], reply, **said)
        again = True
        if talk.left and reply is not LINES["beyond_tables"] and talk.dice.chance(0.08):
            talk.turn(LINES["check"], ("Yes: <last>", "My table says so: <last>"), last=talk.turns[-1].assistant)


def divide(talk: Talk) -> None:
    """Add a division that comes out even, or one that the tables do not know."""
    second, result = talk.dice.between(1, TABLES), talk.dice.between(1, TABLES)
    known = talk.dice.chance(0.8)
    first = second * result if known else talk.dice.between(101, 999)
    reply = ("<a> divided by <b> is <y>.", "<a> divided by <b> is <y>, as <y> times <b> is <a>.")
    beyond = "<a> is beyond my tables: (they end at ten|I only know them to ten)."
    talk.ask(LINES["divided"], reply if known else beyond, a=str(first), b=str(second), y=str(result))


def too_much(talk: Talk) -> None:
    """Add a sum outside the range, which the bot refuses instead of guessing."""
    dice, kind = talk.dice, talk.dice.below(7)
    if kind < 3:
        sign = "plus" if kind else "minus"
        first = dice.between(20, 99) if kind else dice.between(0, 90)
        second = dice.between(101 - first, 99) if kind else dice.between(first + 1, 99)
        talk.ask(SUMS if kind else DIFFERENCES, LINES["worked_out"], **_sum(talk, first, sign, second)[0])
    elif kind == 3:
        large, other = str(dice.between(101, 9999)), str(dice.between(2, 999))
        talk.ask((*SUMS, *DIFFERENCES), LINES["past_a_hundred"], a=large, b=other)
    elif kind == 4:
        talk.ask(LINES["too_far"], LINES["far"], b=str(dice.between(LIMIT + 1, 1000)))
    else:
        talk.ask(LINES["too_much"], LINES["beyond"], a=str(dice.between(2, 99)), b=str(dice.between(2, 20)))


def count(talk: Talk, lines: str) -> None:
    """Add counting forwards or backwards, between two numbers or from or to one."""
    dice = talk.dice
    low, high = 1, dice.choice((*range(3, LIMIT + 1), 3, 5, 5, 6, 7, 8, 9, 10, 10, 10))
    if lines in ("count_up", "count_down"):
        low = dice.choice((1, 1, 1, 0, 2, 3, 4, 5, 6, 8, 10, 12))
        high = min(LIMIT, low + dice.between(2, 11))
    run = range(high, low - 1, -1) if "down" in lines else range(low, high + 1)
    values = {"a": number(talk, run[0], 0.3), "b": number(talk, run[-1], 0.3), "list": ", ".join(map(str, run))}
    talk.ask(LINES[lines], ("<list>.", "(Ready|Here I go): <list>."), **values)


def neighbour(talk: Talk) -> None:
    """Add a question for the number before or after."""
    word, step = talk.dice.choice((("after", 1), ("before", -1)))
    value = talk.dice.between(1, (LIMIT if talk.dice.chance(0.5) else SUM_LIMIT) - 1)
    replies = (f"{word.capitalize()} <x> comes <y>.", f"The number {word} <x> is <y>.")
    talk.ask(LINES[word], replies, a=number(talk, value), x=str(value), y=str(value + step))


def double(talk: Talk) -> None:
    """Add a question for twice a number or for its half."""
    value = talk.dice.between(1, LIMIT if talk.dice.chance(0.6) else SUM_LIMIT // 2)
    values = {"a": number(talk, value), "b": number(talk, 2 * value), "x": str(value), "y": str(2 * value)}
    half = talk.dice.chance(0.4)
    twice = ("Twice <x> is <y>.", "Two times <x> is <y>.")
    talk.ask(LINES["double_2" if half else "double"], "Half of <y> is <x>." if half else twice, **values)


def even_or_odd(talk: Talk) -> None:
    """Add a question whether a number is even or odd."""
    value = talk.dice.between(1, LIMIT if talk.dice.chance(0.5) else SUM_LIMIT)
    values = {"a": number(talk, value), "x": str(value), "y": "odd" if value % 2 else "even"}
    talk.ask(LINES["even_or_odd"], ("<x> is <y>.", "<x> is an <y> number."), **values)


def compare(talk: Talk) -> None:
    """Add a question which number is bigger or smaller."""
    this, that = talk.dice.sample(range((LIMIT if talk.dice.chance(0.5) else SUM_LIMIT) + 1), 2)
    more = talk.dice.chance(0.6)
    winner, loser = (max(this, that), min(this, that)) if more else (min(this, that), max(this, that))
    values = {"word": "bigger" if more else "smaller", "winner": str(winner), "loser": str(loser)}
    replies = ("<winner> is <word> than <loser>.", "The <word> one is <winner>.")
    lines = [*LINES["compare"], *LINES["compare"], *LINES["more" if more else "less"]]
    talk.ask(lines, replies, a=number(talk, this), b=number(talk, that), **values)


def compare_sizes(talk: Talk) -> None:
    """Add a question which animal or thing is bigger or smaller."""
    scale = words.TABLES[talk.dice.choice(("sizes", "sizes", "thing_sizes"))]
    small, big = sorted(talk.dice.sample(range(len(scale)), 2))
    more = talk.dice.chance(0.65)
    winner, loser = (scale[big], scale[small]) if more else (scale[small], scale[big])
    this, that = (winner, loser) if talk.dice.chance(0.5) else (loser, winner)
    values = {"this": this, "that": that, "winner": winner, "loser": loser, "word": "bigger" if more else "smaller"}
    if talk.dice.chance(0.3):
        yes = "yes" if this == winner else "no"
        talk.ask(LINES["compare_sizes_2"], f"<winner> is <word> than <loser>, so {yes}.", **values)
    else:
        talk.ask(LINES["compare_sizes"], LINES["compared"], **values)


SCENES: Scenes = (
    Scene("adding", 45.0, add),
    Scene("taking away", 45.0, partial(calculate, sign="minus")),
    Scene("sums that are too much", 5.0, too_much),
    Scene("checking sums", 7.0, judge),
    Scene("tables", 8.0, multiply),
    Scene("dividing", 2.0, divide),
    Scene("counting up", 3.0, partial(count, lines="count_up")),
    Scene("counting to a number", 4.0, partial(count, lines="count_to")),
    Scene("counting down", 3.0, partial(count, lines="count_down")),
    Scene("counting down to one", 1.4, partial(count, lines="count_down_from")),
    Scene("neighbours of numbers", 2.2, neighbour),
    Scene("doubles", 4.0, double),
    Scene("even and odd", 1.2, even_or_odd),
    Scene("comparing numbers", 8.0, compare),
    Scene("comparing sizes", 28.0, compare_sizes),
)
