"""Small facts: animals, colours, opposites, plurals, capitals, days, months, letters and what things are for.

Each kind of fact is a table with its questions and answers; a follow-up (“and <x>?”) may ask for another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from grammar import Lines

from smalltalk import fact_tables as tables
from smalltalk.talk import Scene, Scenes, Talk

Row = dict[str, str]


class Fact(NamedTuple):
    """One kind of fact; follow-up questions name the `x` of a row."""

    topic: str
    weight: float
    rows: Sequence[Row]
    questions: Lines
    answers: Sequence[str]
    follow_ups: bool = True


def pairs(text: str) -> list[Row]:
    """Parse rows from “x=y, x=y, …”."""
    return [dict(zip("xy", entry.strip().split("="), strict=True)) for entry in text.split(",")]


def both_ways(rows: list[Row]) -> list[Row]:
    """Return the rows followed by their reversed copies."""
    return rows + [{"x": row["y"], "y": row["x"]} for row in rows]


def following(names: Sequence[str], step: int) -> list[Row]:
    """Pair each name with the one `step` positions later, wrapping around."""
    return [{"x": name, "y": names[(at + step) % len(names)]} for at, name in enumerate(names)]


WHICH = "(what|which)"
PLEASE = "(can you tell me|do you know|tell me|say)"
CAPITAL_OF = (
    "what is the capital (city |)of <x>?", "what's the capital of <x>?", "(the |)capital of <x>(?|)",
    "<x>: capital(?|)", f"{PLEASE} the capital of <x>", "(which|what) city is the capital of <x>( please|)?",
    "name the capital of <x>", "what is <x>'s capital?", "<x> capital(?|)", "(what is|what's|) the main city of <x>?",
    "do you know (what|which city) the capital of <x> is?",
    "(what is|what's|name|tell me|say|give me|i need|i want to know) the (capital|capital city) of <x>( please|"
    " again| now|)",
    "(do you know|tell me|say|can you say|please say) (what|which city) (the capital|the capital city) of <x> is("
    " please|)",
    "(what is|what's|tell me|say|do you know|) <x>'s (capital|capital city)( please| again|)?",
    "(which|what) is the (capital|capital city) of <x>( please| again|)?",
)  # fmt: skip
"""questions for a country's capital, known or not"""


def beside(what: str, word: str) -> tuple[str, ...]:
    """Return questions for the next or previous day, month or letter."""
    return (
        f"{WHICH} {what} (comes|is|comes right|is right) {word} <x>( please|)?",
        f"(tell me|say|do you know|name) (the {what} {word}|which {what} comes {word}|what {what} is"
        f" {word}) <x>( please|)",
        f"(the|what is the) {what} (right |){word} <x>( please|)?",
    )


FACTS: tuple[Fact, ...] = (
    Fact("animal sounds", 3.0, pairs(tables.SOUNDS),
         ("(what sound|what noise|which sound) does <a:x> make?", "what does (<a:x>|the <x>) say?",
          "how does <a:x> (sound|go|talk)?",
          f"{PLEASE} what <a:x> says", "(the sound|the noise) of <a:x>?", "(make|do|imitate) <a:x>( for me| please|)",
          "what do you hear from <a:x>?", "<a:x> (says|goes|makes)( what|)?", "the <x> (says|goes)( what|...)?",
          "what does"
          " a (little |big |)<x> say?", "which noise do you hear when <a:x> is near?"),
         ("<a:x> says <y>.", "<a:x> goes <y>!", "The <x> says <y>.")),
    Fact("which animal says it", 1.0, [row for row in pairs(tables.SOUNDS) if tables.SOUNDS.count("=" + row["y"]) == 1],
         ("(which|what) animal (says|goes|makes the sound) <y>?", "who says <y>?", "what goes <y>?",
          "(<y>! |)what animal is that, <y>?",
          "(tell me|say|do you know) (which|what) animal (says|goes) <y>( please|)"),
         ("<y> is what <a:x> says.", "<y> says the <x>."), False),
    Fact("colours of things", 3.0, pairs(tables.COLOURS),
         ("what colour (is|has) <x>?", "(which|what) colour (does <x> have|would you say <x> is)?",
          f"{PLEASE} the colour of <x>",
          "the colour of <x>?", "what is the colour of <x>?", "how would you paint <x>?", "name the colour of <x>",
          "what color is <x>?", "<x> has (what|which) colour?",
          "(what|which) colour (is|has) <x>( please|)?", "(tell me|say|name|do you know) (the colour of <x>|what"
          " colour <x>"
          " is|which colour <x> has)( please|)", "what (is|would be) the colour of <x>( please|)?", "what colour do"
          " i need to (draw|paint) <x>?"),
         ("<x> is <y>.", "The colour of <x> is <y>.", "I would paint <x> <y>.")),
    Fact("opposites", 7.0, both_ways(pairs(tables.OPPOSITES)),
         ("what is the opposite of <x>?", "what's the opposite of <x>?", "(the |)opposite of <x>(?|)",
          "<x> and its opposite?",
          f"{PLEASE} the opposite of <x>", "what is not <x> but the (opposite|other way)?",
          "give me the opposite of <x>",
          "if it is not <x>, what is the opposite?", "(which|what) word is the opposite of <x>?", "opposite: <x>",
          "what is the (contrary|reverse|antonym) of <x>?", "(the |)antonym of <x>?", "opposite of <x> is( what|...|)?",
          "i need a word for not <x>, the opposite", "say the opposite( word|) of <x>", "<x> - opposite?",
          "how do you call"
          " the opposite of <x>?"),
         ("The opposite of <x> is <y>.", "Not <x> but <y>: the opposite of <x> is <y>.", "<x> has the opposite <y>.")),
    Fact("plurals", 4.5, [{"x": word, "y": plural} for word, plural in tables.plurals().items()],
         ("what is the plural of <x>?", "what's the plural of <x>?", "(the |)plural of <x>(?|)", "one <x>, two what?",
          "one <x>, two ...",
          f"{PLEASE} the plural of <x>", "how do you (say|write) more than one <x>?", "what do you call two of a <x>?",
          "make <x> plural", "more than one <x> is?", "what is <x> in the plural?", "how do you make the plural of"
          " <x>?",
          "<x> - plural?", "plural for <x>( please|)?", "i have one <x>, if i have two i have two what?"),
         ("The plural of <x> is <y>.", "One <x>, two <y>.", "More than one <x>: <y>.")),
    Fact("the next day", 2.2, following(tables.DAYS, 1),
         (f"{WHICH} day (comes after|follows|is after|is the day after) <x>?", "what comes after <x>?",
          "what is the day after <x>?",
          "(if|when) today is <x>, what is tomorrow?", "today is <x>, (what is|what's|so what is) tomorrow?",
          "(what|which) day"
          " do we have after <x>?", "next day after <x>?", f"{PLEASE} the day after <x>", "<x>, and then?",
          "the day after <x>?", *beside("day", "after")),
         ("After <x> comes <y>.", "The day after <x> is <y>.", "After <x> it is <y>.")),
    Fact("the day before", 1.5, following(tables.DAYS, -1),
         (f"{WHICH} day (comes before|is before|is the day before) <x>?", "what comes before <x>?",
          "what is the day before <x>?",
          "(if|when) today is <x>, what was yesterday?", f"{PLEASE} the day before <x>", "the day before <x>?",
          *beside("day", "before")),
         ("Before <x> comes <y>.", "The day before <x> is <y>.", "Before <x> it is <y>.")),
    Fact("the next month", 2.2, following(tables.MONTHS, 1),
         (f"{WHICH} month (comes after|follows|is after) <x>?", "what comes after <x>?", "what is the month after <x>?",
          "(if|when) it is <x>, what is next month?", f"{PLEASE} the month after <x>", "<x>, and then?",
          "the month after <x>?", *beside("month", "after")),
         ("After <x> comes <y>.", "The month after <x> is <y>.", "After <x> it is <y>.")),
    Fact("the month before", 1.5, following(tables.MONTHS, -1),
         (f"{WHICH} month (comes before|is before) <x>?", "what comes before <x>?", "what is the month before <x>?",
          "(if|when) it is <x>, what was last month?", f"{PLEASE} the month before <x>", "the month before <x>?",
          *beside("month", "before")),
         ("Before <x> comes <y>.", "The month before <x> is <y>.", "Before <x> it is <y>.")),
    Fact("seasons", 0.8, pairs("spring=summer, summer=autumn, autumn=winter, winter=spring"),
         (f"{WHICH} season (comes after|follows|is after) <x>?", "what is the season after <x>?",
          "the season after <x>?", *beside("season", "after")),
         ("After <x> comes <y>.", "The season after <x> is <y>.", "After <x> it is <y>.")),
    Fact("capitals", 9.0, pairs(f"{tables.CAPITALS}, {tables.OTHER_NAMES}"),
         (*CAPITAL_OF, "(which|what) capital (city |)does <x> have?",
          "where does the government of <x> sit?", "i have to know the capital of <x>", "capital city of <x>?"),
         ("The capital of <x> is <y>.", "<x> has the capital <y>.", "In <x> the capital is <y>.")),
    Fact("countries of capitals", 1.4, pairs(tables.CAPITALS),
         ("<y> is the capital of (what|which country)?", "(which|what) country has the capital <y>?",
          "in which country is <y>?",
          "what country is <y> (in|the capital of)?", "where is <y>?", "where on earth is <y>?",
          "(tell me|say|do you know) (which country|what country) (has the capital <y>|<y> is in|<y> is the capital"
          " of)("
          " please|)"),
         ("<y> is the capital of <x>.", "<y> is in <x>.", "I know <y>: it is the capital of <x>."), False),
    Fact("capitals it never learned", 1.6, [{"x": country, "y": ""} for country in tables.OTHER_COUNTRIES],
         CAPITAL_OF,
         ("I don't know the capital of <x>. I know fifty, and not that one.",
          "The capital of <x> is not (among my fifty|one I learned).",
          "Sorry, I never learned the capital of <x>.")),
    Fact("young animals", 1.8, pairs(tables.YOUNG),
         ("what (is a baby|do you call a baby|do we call a young) <x>( called|)?", "(the |)young of <a:x>?",
          "what is a young <x>?",
          f"{PLEASE} what a baby <x> is called", "name a baby <x>", "(the word|a word) for a baby <x>?"),
         ("A baby <x> is called <a:y>.", "A young <x> is <a:y>.")),
    Fact("legs", 1.4, pairs(tables.LEGS),
         ("how many legs (does <a:x> have|has <a:x>|has <a:x> got)?", f"{PLEASE} how many legs <a:x> has",
          "the legs of <a:x>, how many?",
          "count the legs of <a:x>", "(tell me|say|do you know) how many legs (<a:x> has|does <a:x> have)( please|)"),
         ("<a:x> has <y> legs.", "The <x> has <y> legs.")),
    Fact("what animals eat", 1.4, pairs(tables.EATS),
         ("what does <a:x> eat?", "what do you feed <a:x>?", "what should i (give|feed to) <a:x>?",
          "(the |)food of <a:x>?",
          f"{PLEASE} what <a:x> eats", "what would <a:x> like for lunch?"),
         ("<a:x> eats <y>.", "The <x> eats <y>.", "<a:x> likes to eat <y>.")),
    Fact("where animals live", 1.4, pairs(tables.LIVES),
         ("where does <a:x> live?", "where can i find <a:x>?", "what is the home of <a:x>?",
          f"{PLEASE} where <a:x> lives",
          "where is <a:x> at home?", "(the |)home of <a:x>?",
          "(tell me|say|do you know) where (<a:x> lives|<a:x> is at home|i can find <a:x>)( please|)"),
         ("<a:x> lives <y>.", "You find <a:x> <y>.", "The <x> lives <y>.")),
    Fact("what things are for", 2.0, pairs(tables.USES),
         ("what is <a:x> for?", "what do you do with <a:x>?", "why do people have <a:x>?", "what can i do with <a:x>?",
          f"{PLEASE} what <a:x> is for", "what is the use of <a:x>?", "how do you use <a:x>?",
          "(tell me|say|do you know) what (<a:x> is for|the use of <a:x> is|you do with <a:x>|i can do with <a:x>)("
          " please|)"),
         ("You use <a:x> to <y>.", "<a:x> is there to <y>.", "With <a:x> you can <y>.")),
    Fact("meanings", 2.6, pairs(tables.MEANINGS),
         ("what is <a:x>?", "what's <a:x>?", "what does <x> mean?", "explain <x>( to me|)", "define <x>",
          f"{PLEASE} what <a:x> is",
          "the meaning of <x>?", "what do you know about <a:x>?", "what is meant by <x>?"),
         ("<a:x> is <y>.", "A word I know: <a:x> is <y>.", "I think <a:x> is <y>.")),
    Fact("kinds of things", 1.6, pairs(tables.KINDS),
         ("is <a:x> a (fruit|vegetable|animal|bird|fish|tool|colour)( or something else|)?",
          "what kind of thing is <a:x>?",
          "(fruit or vegetable|animal or plant|what), <a:x>?", "<a:x>, what is it?"),
         ("<a:x> is <y>.", "I think <a:x> is <y>.")),
    Fact("how many", 1.6, pairs(tables.HOW_MANY),
         ("how many <x>?", f"{PLEASE} how many <x>", "how many, <x>?", "i forgot how many <x>"),
         ("There are <y> <x>.", "I count <y> <x>.")),
    Fact("shapes", 1.5, pairs(tables.SHAPES),
         ("how many (sides|corners) (does|has) <a:x>( have|)?", f"{PLEASE} how many sides <a:x> has",
          "the sides of <a:x>?"),
         ("<a:x> has <y> sides.", "The <x> has <y> sides.")),
    Fact("the next letter", 1.5, [{"x": this,
    "y": that} for this, that in zip(tables.LETTERS, tables.LETTERS[1:], strict=False)],
         (f"{WHICH} letter (comes after|follows|is after) <x>?", "the letter after <x>?",
          f"{PLEASE} the letter after <x>",
          "in the alphabet, what comes after <x>?", "what is the next letter after <x>?", *beside("letter", "after")),
         ("After <x> comes <y>.", "The letter after <x> is <y>.")),
    Fact("the letter before", 1.0, [{"x": that,
    "y": this} for this, that in zip(tables.LETTERS, tables.LETTERS[1:], strict=False)],
         (f"{WHICH} letter (comes before|is before) <x>?", "the letter before <x>?", f"{PLEASE} the letter before <x>",
          "in the alphabet, what comes before <x>?", *beside("letter", "before")),
         ("Before <x> comes <y>.", "The letter before <x> is <y>.")),
    Fact("rhymes", 1.6, [{"x": word,
        "y": other} for group in tables.RHYMES for word in group for other in group if word != other],
         ("what rhymes with <x>?", "(give me|tell me|say|find|i need) a rhyme for <x>", "a word that rhymes with <x>?",
          "(a |)rhyme for <x>?", "which word rhymes with <x>?",
          "(tell me|say|find|give me) (a word that rhymes with <x>|what rhymes with <x>|a rhyme for <x>)( please|)"),
         ("A rhyme for <x> is <y>.", "With <x> rhymes <y>.", "For <x> I know the rhyme <y>.")),
)  # fmt: skip


def play_fact(fact: Fact, talk: Talk) -> None:
    """Add a question about one row of a table, and perhaps follow-ups about other rows."""
    row = talk.dice.choice(fact.rows)
    talk.ask(fact.questions, fact.answers, **row)
    while fact.follow_ups and talk.left and talk.dice.chance(0.22):
        row = talk.dice.choice(fact.rows)
        talk.turn(
            "(and|what about|how about|and what about|then|ok, and|now) <x>?|(and|same for|now) <x>",
            fact.answers,
            **row,
        )


def true_colour(talk: Talk) -> None:
    """Add a question with a wrong colour: “Is the sky green?” “No, it is blue.”"""
    row = talk.dice.choice([row for row in pairs(tables.COLOURS) if " or " not in row["y"]])
    guess = (
        row["y"]
        if talk.dice.chance(0.5)
        else talk.dice.choice(("red", "blue", "green", "yellow", "white", "black", "pink"))
    )
    yes = guess == row["y"]
    talk.ask(
        "is <x> (really |)<guess>?|<x> is <guess>, (right|is it not|yes or no)?|true or false: <x> is <guess>|would"
        " you say <x> is <guess>?",
        ("Yes, <x> is <y>.", "(Right|True): <x> is <y>.") if yes else ("No, <x> is <y>.",
         "(Not so|False): <x> is <y>."),
        guess=guess, **row,
    )  # fmt: skip


def some(talk: Talk) -> None:
    """Add a request for three examples of a kind."""
    kind = talk.dice.choice(tuple(tables.GROUPS))
    one, two, three = talk.dice.sample(tables.GROUPS[kind].split(), 3)
    count = talk.dice.choice(("three", "3", "some", "a few"))
    talk.ask(
        "(name|list|tell me|give me|say|write|i need) <count> <kind>|(can you name|do you know|which are|what are)"
        " <count> <kind>?",
        ("<One>, <two> and <three>.", "Here are three <kind>: <one>, <two> and <three>.",
         "I know <one>, <two> and <three>."),
        count=count, kind=kind, one=one, two=two, three=three, One=one.capitalize(),
    )  # fmt: skip


WHOLE = (
    (tables.DAYS, "days of the week"),
    (tables.SEASONS, "seasons"),
    (tables.MONTHS[:6], "first six months"),
    (tables.MONTHS[6:], "last six months"),
    (("red", "orange", "yellow", "green", "blue", "violet"), "colours of the rainbow"),
    (("a", "e", "i", "o", "u"), "vowels"),
)


def whole(talk: Talk) -> None:
    """Add a request for all days, seasons or months in order."""
    names, kind = talk.dice.choice(WHOLE)
    talk.ask(
        "(list|name|tell me|what are|say|write down|can you list|give me|do you know|recite) (all |)the"
        " <kind>( please| in order| for me|)(?|)|<kind>, (all of them|which are they|in order|list them)( please|)",
        ("The <kind> are <list>.", "Here they are: <list>."),
        kind=kind, list=", ".join(names[:-1]) + " and " + names[-1],
    )  # fmt: skip


SCENES: Scenes = (
    *(Scene(fact.topic, 0.7 * fact.weight, partial(play_fact, fact)) for fact in FACTS),
    Scene("is it that colour?", 0.8, true_colour),
    Scene("three of a kind", 1.2, some),
    Scene("all in order", 0.6, whole),
)
