"""Counting and comparing up to twenty, adding and subtracting up to a hundred, and refusals of larger numbers."""

from __future__ import annotations

from grammar import listed

from smalltalk import fact_tables as tables
from smalltalk.talk import Scene, Scenes, Talk

LIMIT, SUM_LIMIT = 20, 100
BY_TENS = 0.55
"""probability that a sum or difference is beyond `LIMIT`: tens and ones are then worked out one after the other"""
WORDS = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen "
    "nineteen twenty"
)

SUMS = (
    "(what is|what's|how much is|calculate|work out|compute|add|tell me|) <a> (plus|+|and) <b>( make|)?",
    "(add|sum|put together) <a> (and|to|with) <b>", "(add|sum|sum up) <a> (and|with) <b>( for me| please|)",
    "<a> (plus|+|added to) <b> (is|equals|makes|gives)( what| how much|)?",
    "i have <a> (apples|coins|eggs|stones|books|cookies) and (get|find|buy) <b> more, how many( have i| is that| in"
    " all|)?",
    "what do <a> and <b> make( together|)?", "<a>+<b>(?|=|)", "can you add <a> and <b>?", "the sum of <a> and <b>?",
    "<a> + <b>( =|=|)(?|)", "(do you know|do you know what|can you calculate|what will be) <a> (plus|+) <b>( is|)?",
    "(there are|we have|she has|my friend has) <a> (birds|cats|pens|cups|sweets|marbles) and <b> more (come|join), how"
    " many( in all| now| are there|)?",
    "if i have <a> (apples|pens|coins) and you give me <b>( more|), how many do i have( then| now|)?",
    "(quick|math|maths|easy|sum): <a> (plus|+) <b>?", "<a> and <b> more( is| makes| are|)?",
    "(what is|how much is|tell me|) <a> (increased|raised) by <b>?",
    "(please |can you |now |)(increase|raise) (<a>|the number <a>) by <b>( for me|)",
    "(if you|when i|let us|) (add|increase|raise) <a> (and|by) <b>, (how much is it|what do i get|what is it)?",
    "(what do i|what do you|what will i) get (from|for|with) <a> (plus|and|+) <b>?",
    "(i start with|start with|take) <a> and (add|get|put) <b>( more|)(, how many is that|, what is it|)?",
    "(please |can you |now |)(add|sum|put together) <a> (and|to|with|plus) <b>( for me| please|)",
    "(total|altogether|the total of): <a> (and|plus) <b>", "(solve|what is|whats|what's|calculate|do) <a>+<b>(?|)",
    "(solve|do|answer|find) <a> (+|plus) <b>", "(can|could|would) you (tell me|say|work out) what <a> (plus|+) <b>"
    " (is|makes)?",
    "i (had|got) <a> (apples|coins|eggs|books|cookies|sweets) and (got|found|bought|was given) <b> more, how many"
    " (do i have|have i|are there|is that)( now|)?",
    "what do (you|i|we) get (when|if) (you|i|we) add <a> (and|to) <b>?", "i want to know (what is |) <a> (+|plus) <b>",
)  # fmt: skip
SUM_ANSWERS = ("<x> plus <y> is <z>.", "I count: <x> plus <y> is <z>.", "<x> and <y> make <z>: <x> plus <y> is <z>.")
DIFFERENCES = (
    "(what is|what's|how much is|calculate|work out|compute|tell me|) <a> (minus|-|take away|less) <b>?",
    "(take|subtract) <b> from <a>", "(take|subtract|remove) <b> from <a>(, how much is it|, what is left| please|)",
    "<a> (minus|-|take away) <b> (is|equals|makes|gives)( what| how much|)?",
    "i have <a> (apples|coins|eggs|stones|books|cookies) and (lose|eat|give away|drop) <b>, how many are left?",
    "what is left of <a> without <b>?", "<a>-<b>(?|=|)", "the difference of <a> and <b>?",
    "how much is <a> if i take away <b>?",
    "<a> - <b>( =|=|)(?|)", "(do you know|can you calculate|what will be) <a> (minus|-) <b>?", "<a> (without|less)"
    " <b>?",
    "(there are|we have|she has|my friend has) <a> (birds|cats|pens|cups|sweets|marbles) and <b> (go|leave|are gone),"
    " how"
    " many( are left| remain| stay|)?",
    "if i have <a> (apples|pens|coins) and (eat|lose|give you) <b>, how many do i have( left| then|)?",
    "(quick|math|maths|easy): <a> (minus|-) <b>?", "what is <b> less than <a>?",
    "(what is|how much is|tell me|) <a> (reduced|lowered|made smaller) by <b>?",
    "(please |can you |now |)(reduce|lower) (<a>|the number <a>) by <b>( for me|)",
    "(please |can you |now |)(take|subtract|remove) <b> (from|away from|off) <a>( for me| please|)",
    "(if you|when i|let us|) (take|subtract|remove) <b> (from|away from) <a>, (how much is it|what do i get|what is"
     " it|what"
    " is left)?",
    "(i start with|start with) <a> and (take away|lose|remove) <b>(, how many is that|, what is it|, what is left|)?",
    "(what do i|what do you|what will i) get (from|for|with) <a> (minus|-|less|take away) <b>?",
    "(the difference|what is the difference) (of|between) <a> and <b>?", "(how far|how much) is it from <b> to <a>?",
    "(solve|what is|whats|what's|calculate|do) <a>-<b>(?|)", "(solve|do|answer|find) <a> (-|minus) <b>",
    "(can|could|would) you (tell me|say|work out) what <a> (minus|-|take away) <b> (is|makes|leaves)?",
    "i (had|got) <a> (apples|coins|eggs|books|cookies|sweets) and (ate|lost|sold|gave away|dropped) <b>, how many (are"
    " left|do i have|have i|remain|do i have left)( now|)?",
    "what do (you|i|we) get (when|if) (you|i|we) take <b> (away |) from <a>?",
    "what is left (when|if) (you|i|we) take <b> (away |) from <a>?", "i want to know (what is |) <a> (-|minus) <b>",
    "(take|subtract) <b> (away |) from <a>", "take (away |) <b> from <a>( please| now|)(.|?|)",
)  # fmt: skip
DIFFERENCE_ANSWERS = (
    "<x> minus <y> is <z>.",
    "I count: <x> minus <y> is <z>.",
    "<x> without <y> leaves <z>: <x> minus <y> is <z>.",
)


SUM_STEPS = (
    "<x> plus <y>: <tens> and <ones>, that makes <z>.",
    "Tens <tens>, ones <ones>: <x> plus <y> is <z>.",
)
DIFFERENCE_STEPS = (
    "<x> minus <y>: <x> less <tens> is <rest>, less <ones> is <z>.",
    "First <x> less <tens> is <rest>, then less <ones>: <z>.",
)


def number(talk: Talk, value: int, in_words: float = 0.22) -> str:
    """Return the number as this person writes it, mostly in digits."""
    return WORDS[value] if value <= LIMIT and talk.dice.chance(in_words) else str(value)


def add_tens(talk: Talk) -> None:
    """Add a sum of at most a hundred, worked out in tens and ones."""
    total = talk.dice.between(LIMIT + 1, SUM_LIMIT)
    first = talk.dice.between(1, total - 1)
    second = total - first
    tens, ones = first // 10 * 10 + second // 10 * 10, first % 10 + second % 10
    values = {"a": number(talk, first), "b": number(talk, second), "x": str(first), "y": str(second)}
    talk.ask(SUMS, SUM_STEPS, tens=str(tens), ones=str(ones), z=str(total), **values)


def take_away_tens(talk: Talk) -> None:
    """Add a difference of numbers up to a hundred, worked out by first taking away the tens."""
    first = talk.dice.between(LIMIT + 1, SUM_LIMIT)
    second = talk.dice.between(1, first)
    tens, ones = second // 10 * 10, second % 10
    values = {"a": number(talk, first), "b": number(talk, second), "x": str(first), "y": str(second)}
    values |= {"tens": str(tens), "rest": str(first - tens), "ones": str(ones), "z": str(first - second)}
    talk.ask(DIFFERENCES, DIFFERENCE_STEPS, **values)


def add(talk: Talk) -> None:
    """Add a sum of at most a hundred."""
    if talk.dice.chance(BY_TENS):
        add_tens(talk)
        return
    total = talk.dice.between(0, LIMIT)
    first = talk.dice.between(0, total)
    second = total - first
    talk.ask(
        SUMS, SUM_ANSWERS, a=number(talk, first), b=number(talk, second), x=str(first), y=str(second), z=str(total)
    )
    if talk.left and talk.dice.chance(0.15):
        total = talk.dice.between(0, LIMIT)
        first = talk.dice.between(0, total)
        talk.turn("(and|now|and what is|what about|ok, and) <a> (plus|+|and) <b>?", SUM_ANSWERS, a=number(talk, first),
                  b=number(talk, total - first), x=str(first), y=str(total - first), z=str(total))  # fmt: skip
    elif talk.left and talk.dice.chance(0.2) and total < LIMIT:
        more = talk.dice.between(1, LIMIT - total)
        talk.turn("(and|now|then|ok,|and then) (plus|add|+) <b>( more| to that|)?", SUM_ANSWERS,
                  b=number(talk, more), x=str(total), y=str(more), z=str(total + more))  # fmt: skip


def take_away(talk: Talk) -> None:
    """Add a difference that is not negative."""
    if talk.dice.chance(BY_TENS):
        take_away_tens(talk)
        return
    first = talk.dice.between(0, LIMIT)
    second = talk.dice.between(0, first)
    values = {
        "a": number(talk, first),
        "b": number(talk, second),
        "x": str(first),
        "y": str(second),
        "z": str(first - second),
    }
    talk.ask(DIFFERENCES, DIFFERENCE_ANSWERS, **values)


def too_much(talk: Talk) -> None:
    """Add a sum outside the range, which the bot refuses instead of guessing."""
    kind = talk.dice.below(3)
    if kind == 0:
        first, second = talk.dice.between(101, 999), talk.dice.between(11, 999)
        talk.ask(SUMS, ("(That|The sum) (goes past|is more than) a hundred, and I stop there.",
                        "(Too big for me|That is too big): I only add up to a hundred.",
                        "(My sums end|I stop) at a hundred. (Try smaller numbers|A calculator will know)."),
                 a=str(first), b=str(second))  # fmt: skip
    elif kind == 1:
        second = talk.dice.between(2, LIMIT)
        first = talk.dice.between(0, second - 1)
        talk.ask(DIFFERENCES, ("That goes below zero, and I (stop there|know no numbers there).",
                               "(That is less than zero|That is below zero). I do not (go|count) there, (sorry|I'm"
                               " afraid)."),
                 a=str(first), b=str(second))  # fmt: skip
    else:
        talk.ask("(what is|how much is|calculate|work out|) <a> (times|x|*|divided by|/|to the power of|multiplied"
                 " by) <b>?"
                 "|(what is|find|) the (square|square root|half|cube|logarithm) of <a>?",
                 ("I only (add|know plus) and (take away|minus), (up to a hundred|with small numbers).",
                  "(Plus and minus are|Adding and taking away is) all I (know|can do), (sorry|I'm afraid)."),
                 a=str(talk.dice.between(2, 99)), b=str(talk.dice.between(2, 20)))  # fmt: skip


READY = ("<list>.", "(Ready|Here I go): <list>.")


def count_up(talk: Talk) -> None:
    """Add counting forwards."""
    low = talk.dice.choice((1, 1, 1, 0, 2, 3, 4, 5, 6, 8, 10, 12))
    high = min(LIMIT, low + talk.dice.between(2, 11))
    talk.ask(
        "(count|please count|can you count|count for me|count up|now count|let's count|start counting) from <a> (to|up"
        " to|until) <b>|(count|say the numbers|numbers|give me the numbers from|list the numbers from) <a> to <b>"
        "|(please |can you |now |tiny one, |)(count|count on|say the numbers|write the numbers|list all numbers)("
        " from|) <a> (to|till|until|up to) <b>( for me| please|)|(i want|i need|let me have) the numbers (from|between)"
        " <a> (to|and) <b>",
        READY, a=number(talk, low, 0.3), b=number(talk, high, 0.3), list=", ".join(map(str, range(low, high + 1))),
    )  # fmt: skip


def count_to(talk: Talk) -> None:
    """Add counting from one."""
    high = talk.dice.choice((*range(2, LIMIT + 1), 3, 5, 5, 6, 7, 8, 9, 10, 10, 10))
    talk.ask(
        "count to <b>|(count|can you count|count up|please count|let's count|now count|just count|try to count|count"
        " for me)( up|) to <b>|(please|now|can you|could you|i want you to|) (count|count up) (to|till|until|up to) <b>"
        "( for me| please|)|(can|do) you (know how to|already) count to <b>?",
        READY, b=number(talk, high, 0.4), list=", ".join(map(str, range(1, high + 1))),
    )  # fmt: skip


def count_down(talk: Talk) -> None:
    """Add counting backwards."""
    low = talk.dice.choice((1, 1, 0, 0, 2, 2, 3, 4, 5, 6, 8, 10, 12))
    high = min(LIMIT, low + talk.dice.between(2, 11))
    talk.ask(
        "(count|please count|can you count|count for me|now count) from <a> to <b>|(count|please count|can you count"
        "|count for me|now count) (down|back|backwards|backward|in reverse) from <a> to <b>"
        "|from <a> (down|back|backwards) to <b>, count|(say the numbers|the numbers) backwards from <a> to <b>"
        "|(please |can you |now |tiny one, |)(count|say the numbers|write the numbers|the numbers|all numbers)"
        " (down|backwards|in reverse)( from|) <a> (to|till|until|down to) <b>( for me| please|)",
        READY, a=number(talk, high, 0.3), b=number(talk, low, 0.3), list=", ".join(map(str, range(high, low - 1, -1))),
    )  # fmt: skip


def count_down_from(talk: Talk) -> None:
    """Add counting backwards to one."""
    high = talk.dice.choice((*range(3, LIMIT + 1), 3, 5, 5, 6, 7, 8, 9, 10, 10, 10))
    talk.ask(
        "count (down|backwards) from <a>|(count|can you count|please count|let's count|now count) (down|backwards"
        "|backward|back|in reverse) from <a>( please| for me|)|(a |)countdown from <a>( please|)|(please |can you |)"
        "(start|do|make) a countdown (from|at) <a>( please|)",
        READY, a=number(talk, high, 0.3), list=", ".join(map(str, range(high, 0, -1))),
    )  # fmt: skip


def neighbour(talk: Talk) -> None:
    """Add a question for the number before or after."""
    step = talk.dice.choice((1, -1))
    value = talk.dice.between(0 if step == 1 else 1, LIMIT - 1 if step == 1 else LIMIT)
    word = "(after|follows)" if step == 1 else "(before)"
    talk.ask(f"(what|which) number (comes|is) {word.replace('|follows', '')} <a>?|the number"
             f" {word.replace('|follows', '')} <a>?"
             + ("|<a>, what is next?|what is one more than <a>?" if step == 1 else "|what is one less than <a>?"),
             ("After <x> comes <y>.", "The number after <x> is <y>.") if step == 1 else ("Before <x> comes <y>.",
              "The number before <x> is <y>."),
             a=number(talk, value), x=str(value), y=str(value + step))  # fmt: skip


def double(talk: Talk) -> None:
    """Add a question for twice a number."""
    value = talk.dice.between(1, LIMIT // 2)
    talk.ask(
        "(what is|how much is|tell me|say|) (twice|the double of|double|two times) <a>( please|)?|double <a>|<a>"
        " doubled( is|)?"
        "|<a> (two times|twice)( is|)?|(please |can you |now |)double (<a>|the number <a>)( for me| please|)",
        ("Twice <x> is <y>.", "Two times <x> is <y>."), a=number(talk, value), x=str(value), y=str(2 * value),
    )  # fmt: skip


def even_or_odd(talk: Talk) -> None:
    """Add a question whether a number is even or odd."""
    value = talk.dice.between(1, LIMIT)
    talk.ask(
        "is <a> (even|odd|even or odd|odd or even|an even number|an odd number)?|<a>, (even or odd|odd or even)?|what"
        " kind"
        " of number is <a>, (odd or even|even or odd)?|(even or odd|odd or even)(,|:) <a>?"
        "|(tell me|say|do you know) (if|whether) (<a>|the number <a>) is (even|odd|even or odd|odd or even)( please|)",
        ("<x> is <y>.", "<x> is an <y> number."),
        a=number(talk, value), x=str(value), y="odd" if value % 2 else "even",
    )  # fmt: skip


def compare(talk: Talk) -> None:
    """Add a question which number is bigger or smaller."""
    first, second = talk.dice.sample(range(LIMIT + 1), 2)
    more = talk.dice.chance(0.6)
    winner, loser = (max(first, second), min(first, second)) if more else (min(first, second), max(first, second))
    talk.ask("(which|what) (number |one |)is <word>, <a> or <b>?|<a> or <b>, (which|what) is <word>?|(which|what) is"
             " the <word> (one|number), <a> or <b>?"
             + ("|(what|which|which one) is more, <a> or <b>?|is <a> more than <b>?" if more else "|which is less,"
             " <a> or <b>?|is <a>"
                                                            " less than <b>?"),
             ("<x> is <word> than <y>.", "The <word> one is <x>.", "It is <x>: <x> is <word> than <y>."),
             a=number(talk, first), b=number(talk, second), word="bigger" if more else "smaller", x=str(winner),
                 y=str(loser))  # fmt: skip


def compare_sizes(talk: Talk) -> None:
    """Add a question which animal or thing is bigger or smaller."""
    scale = talk.dice.choice((tables.SIZES, tables.SIZES, tables.THING_SIZES))
    small, big = sorted(talk.dice.sample(range(len(scale)), 2))
    more = talk.dice.chance(0.65)
    winner, loser = (scale[big], scale[small]) if more else (scale[small], scale[big])
    this, that = (winner, loser) if talk.dice.chance(0.5) else (loser, winner)
    word = "bigger" if more else "smaller"
    if talk.dice.chance(0.3):
        right = this == winner
        talk.ask("is <this> <word> than <that>?|<this> is <word> than <that>, (right|is it not|true)?|tell me, is"
                 " <this> <word> than <that>?",
                 f"<winner> is <word> than <loser>, so {'yes' if right else 'no'}.",
                 this=this, that=that, word=word, winner=winner, loser=loser)  # fmt: skip
        return
    talk.ask("(which|what) is <word>, <this> or <that>?|<this> or <that>, which is <word>?|what is <word>: <this> or"
             " <that>?"
             "|(compare|take) <this> and <that>, which is <word>?|(who|which one) is <word>, <this> or <that>?"
             "|(tell me|say|do you know) (what|which|which one) is <word>(,|:) <this> or <that>( please|)",
             ("<winner> is <word> than <loser>.", "<winner> is the <word> one.",
              "It is <winner>: much <word> than <loser>."),
             this=this, that=that, word=word, winner=winner, loser=loser)  # fmt: skip


SCENES: Scenes = (
    Scene("adding", 48.0, add),
    Scene("taking away", 51.0, take_away),
    Scene("sums that are too much", 1.8, too_much),
    Scene("counting up", 2.2, count_up),
    Scene("counting to a number", 2.2, count_to),
    Scene("counting down", 2.2, count_down),
    Scene("counting down to one", 1.4, count_down_from),
    Scene("neighbours of numbers", 2.2, neighbour),
    Scene("doubles", 2.4, double),
    Scene("even and odd", 0.8, even_or_odd),
    Scene("comparing numbers", 3.6, compare),
    Scene("comparing sizes", 4.6, compare_sizes),
)
