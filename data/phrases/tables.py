"""Words by kind, read from the TOML files beside this one, and what fills the slots of phrases."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from phrases import english, spanish
from phrases.calendar import DAYS, MONTHS, NUMBER_WORDS, ORDINALS, hour, of_years
from phrases.draft import Draft
from phrases.names import odd
from phrases.people_words import COUNTRIES, WORK
from phrases.spanish import Gender
from phrases.subjects import Subject

Both = tuple[str, str]
"""The same in English and Spanish."""


def read_table(name: str) -> dict[str, Any]:
    """Read a file of words beside this one."""
    return tomllib.loads((Path(__file__).with_name(f"{name}.toml")).read_text(encoding="utf-8"))


VOCABULARY, VERB_PHRASES, PATTERNS = map(read_table, ("vocabulary", "verb_phrases", "patterns"))


class Word(NamedTuple):
    """A noun: `many` says whether the English one is a plural, `number` is that of the Spanish one."""

    english: str
    spanish: str
    gender: Gender
    number: int
    many: bool
    is_counted: bool
    is_tonic: bool
    """Whether it takes el and un though it is feminine, such as “agua”."""

    def the(self) -> str:
        return f"{'el' if self.is_tonic else spanish.the(self.gender, self.number)} {self.spanish}"

    def a(self) -> str:
        if self.number == 2:
            return f"{'unas' if self.gender == 'f' else 'unos'} {self.spanish}"
        return f"{'una' if self.gender == 'f' and not self.is_tonic else 'un'} {self.spanish}"

    def plural(self) -> Word:
        """Return the word in the plural, if it is counted."""
        if self.many or self.number == 2 or not self.is_counted:
            return self
        return self._replace(
            english=english.plural(self.english), spanish=spanish.plural(self.spanish), number=2, many=True
        )


def read_rows(table: str) -> Iterator[tuple[list[str], str]]:
    """Parse rows `english = spanish`, separated by semicolons; English may have two words for one: `lift/elevator`."""
    for row in table.replace("\n", " ").split(";"):
        if row.strip():
            left, right = row.split("=")
            yield [one.strip() for one in left.split("/")], right.strip()


def read_pairs(table: str) -> tuple[Both, ...]:
    """Parse rows as `read_rows` does, and return a pair for each English word."""
    return tuple((one, right) for words, right in read_rows(table) for one in words)


def _read_words(kind: str, table: str) -> tuple[Word, ...]:
    words = []
    for left, right in read_pairs(table):
        name, _, code = right.rpartition(" ")
        many = (
            code.endswith("p") or kind.endswith("_s") or (code.endswith("s") and left.endswith("s") and left != "news")
        )
        number = 2 if many or code.endswith("s") else 1
        is_counted = not kind.endswith("_m")
        words.append(Word(left, name, cast("Gender", code[0]), number, many, is_counted, code == "fem"))
    return tuple(words)


WORDS = {
    kind: _read_words(kind, table)
    for kind, table in (VOCABULARY["nouns"] | VERB_PHRASES["kinds"] | PATTERNS["kinds"]).items()
}
_WORDINGS = read_table("wordings")
WORDINGS = {name: read_pairs(table) for name, table in _WORDINGS.items()}
ADJECTIVES = {kind: read_pairs(table) for kind, table in VOCABULARY["adjectives"].items()}
ROWS = tuple(
    row
    for tables in (VOCABULARY["nouns"], VERB_PHRASES["kinds"], PATTERNS["kinds"], VOCABULARY["adjectives"], _WORDINGS)
    for table in tables.values()
    for row in read_rows(table)
)
"""All rows of the tables of words, whose English may be two words for one."""
SKILLS = read_pairs(VERB_PHRASES["phrases"]["skill"])
THIS = {("m", 1): "este", ("f", 1): "esta", ("m", 2): "estos", ("f", 2): "estas"}
THAT = {("m", 1): "ese", ("f", 1): "esa", ("m", 2): "esos", ("f", 2): "esas"}

CITIES = WORDINGS["cities"]
TRANSPORT = WORDINGS["transport"]
MEANS = WORDINGS["means"]
SPORTS = WORDINGS["sports"]
HISPANIC_ORDINALS = (
    "primer",
    "segundo",
    "tercer",
    "cuarto",
    "quinto",
    "sexto",
    "séptimo",
    "octavo",
    "noveno",
    "décimo",
)
MONEY = WORDINGS["money"]
OBJECTS = (("me", "me", 0), ("you", "te", 1), ("him", "lo", 2), ("her", "la", 2), ("us", "nos", 3), ("them", "los", 4))
TO_WHOM = ("me", "te", "le", "nos", "les")
AFTER_PREPOSITION = (
    ("me", "mí", 0),
    ("you", "ti", 1),
    ("him", "él", 2),
    ("her", "ella", 2),
    ("us", "nosotros", 3),
    ("them", "ellos", 4),
)
POSSESSIVES = ("mi", "tu", "su", "nuestro", "su")
INDEFINITE = frozenset(("nobody", "no one", "everyone", "everybody", "someone", "somebody", "anyone", "anybody", "who"))


def possessed(person: int, word: Word) -> str:
    """Return a Spanish noun with the possessive of a person."""
    mine = POSSESSIVES[person]
    mine = spanish.inflect(mine, word.gender, word.number) if person == 3 else mine + ("s" if word.number == 2 else "")
    return f"{mine} {word.spanish}"


def with_article(draft: Draft, article: str, word: Word, subject: Subject) -> tuple[str, str]:
    """Return a noun in both languages with an article: a, the, my, this, some, count, pl, bare, or 0 for none."""
    dice = draft.dice
    if article in ("pl", "some", "count"):
        word = word.plural()
    if article == "a" and (word.many or not word.is_counted):
        article = "some" if word.many else "0"
    if article == "count":
        count = dice.between(2, 12) if dice.chance(0.8) else dice.choice((15, 20, 25, 30, 50, 100))
        number, cuantos = NUMBER_WORDS[count]
        if dice.chance(0.35):
            return f"{count} {word.english}", f"{count} {word.spanish}"
        return f"{number} {word.english}", f"{cuantos} {word.spanish}"
    if article == "a":
        return english.with_a(word.english), word.a()
    if article == "some":
        return f"some {word.english}", word.a() if word.number == 2 else word.spanish
    if article == "the":
        return f"the {word.english}", word.the()
    if article == "my":
        mine = "their" if subject.english in INDEFINITE else subject.possessive
        return f"{mine} {word.english}", possessed(subject.person, word)
    if article == "this":
        is_near = dice.chance(0.65)
        one = ("these" if word.many else "this") if is_near else ("those" if word.many else "that")
        return f"{one} {word.english}", f"{(THIS if is_near else THAT)[word.gender, word.number]} {word.spanish}"
    if article == "bare":
        return english.with_a(word.english), word.spanish
    return word.english, word.the() if article == "the0" else word.spanish


def draw(draft: Draft, kinds: str) -> Word:
    """Return a random noun of one of the kinds, which are separated by commas."""
    return draft.dice.choice(WORDS[draft.dice.choice(kinds.split(","))])


def clock(draft: Draft, *, with_article: bool = True) -> Both:
    """Return a time of day: “half past seven”, “las siete y media”."""
    dice = draft.dice
    hours, kind = dice.between(1, 12), dice.below(9)
    word, las = NUMBER_WORDS[hours][0], hour(hours)
    if kind == 0:
        minutes = 5 * dice.below(12)
        return f"{hours}:{minutes:02}", f"{'la' if hours == 1 else 'las'} {hours}:{minutes:02}"
    if kind == 1:
        part, parte = (
            ("a.m.", "de la mañana") if dice.chance(0.4) else ("p.m.", "de la tarde" if hours < 9 else "de la noche")
        )
        if hours == 12:
            hours, part, parte = 11, "p.m.", "de la noche"
        return (
            f"{hours} {part.replace('.', dice.choice(('.', '')))}",
            f"{'la' if hours == 1 else 'las'} {hours} {parte}",
        )
    if kind == 2:
        return f"half past {word}", f"{las} y media"
    if kind == 3:
        return f"a quarter past {word}", f"{las} y cuarto"
    if kind == 4:
        return f"a quarter to {word}", f"{las} menos cuarto"
    if kind == 5:
        minutes = dice.choice((5, 10, 20, 25))
        return f"{NUMBER_WORDS[minutes][0]} past {word}", f"{las} y {NUMBER_WORDS[minutes][1]}"
    if kind == 6:
        at, de = dice.choice((("in the morning", "de la mañana"), ("in the evening", "de la tarde")))
        if at == "in the morning" and hours in (12, 1):
            hours = 8
        if at == "in the evening" and not 4 < hours < 9:
            hours = 7
        return f"{NUMBER_WORDS[hours][0]} {at}", f"{hour(hours)} {de}"
    return (word + " o'clock" if dice.chance(0.3) else word), las


def day(draft: Draft) -> Both:
    """Return a day or date as an adverb: “on Monday”, “el lunes”."""
    dice = draft.dice
    (english_day, dia), (month, mes) = dice.choice(DAYS), dice.choice(MONTHS)
    kind = dice.below(9)
    if kind < 3:
        return f"on {english_day}", f"el {dia}"
    if kind == 3:
        part, parte = dice.choice((("morning", "mañana"), ("afternoon", "tarde"), ("evening", "noche")))
        return f"on {english_day} {part}", f"el {dia} por la {parte}"
    if kind == 4:
        count = dice.between(1, 28)
        number = "uno" if count == 1 else NUMBER_WORDS[count][1]
        return f"on the {ORDINALS[count - 1]} of {month}", f"el {number} de {mes}"
    if kind == 5:
        count = dice.between(1, 31)
        return dice.choice((f"on {count} {month}", f"on {month} {count}")), f"el {count} de {mes}"
    if kind == 6:
        return f"in {month}", f"en {mes}"
    return dice.choice(
        (("tomorrow", "mañana"), ("next week", "la semana que viene"), ("today", "hoy"), ("tonight", "esta noche"))
    )


def price(draft: Draft) -> Both:
    """Return a sum of money in words or digits."""
    dice = draft.dice
    money, dinero = dice.choice(MONEY[:1] if dice.chance(0.55) else MONEY)
    kind = dice.below(7)
    if kind == 0:
        sum_ = f"{dice.between(0, 99)}.{dice.below(10)}{dice.choice('05')}"
        return f"{sum_} {money}", f"{sum_} {dinero}"
    if kind == 1:
        sum_ = str(dice.choice((dice.between(2, 99), dice.between(100, 999), dice.between(1000, 9999))))
        return f"${sum_}", f"${sum_}"
    if kind in (2, 3):
        sum_ = str(
            dice.choice((dice.between(2, 99), dice.between(2, 99), dice.between(100, 999), dice.between(1000, 9999)))
        )
        return f"{sum_} {money}", f"{sum_} {dinero}"
    number, cuantos = amount(draft, feminine=dinero == "libras")
    return f"{number} {money}", f"{cuantos} {dinero}"


HUNDREDS = (
    "",
    "cien",
    "doscientos",
    "trescientos",
    "cuatrocientos",
    "quinientos",
    "seiscientos",
    "setecientos",
    "ochocientos",
    "novecientos",
)


def amount(draft: Draft, *, feminine: bool = False) -> Both:
    """Return a number greater than one in words, as it stands before a noun."""
    dice = draft.dice
    kind = dice.below(8)
    if kind < 5:
        count = dice.between(2, 99)
        return NUMBER_WORDS[count][0], of_years(count, feminine)
    count = dice.between(1, 9)
    if kind == 7:
        if count == 1:
            return "a thousand", "mil"
        return f"{NUMBER_WORDS[count][0]} thousand", f"{of_years(count, feminine)} mil"
    cientos = HUNDREDS[count].removesuffix("os") + ("as" if count > 1 else "") if feminine else HUNDREDS[count]
    return ("a" if count == 1 else NUMBER_WORDS[count][0]) + " hundred", cientos


def number(draft: Draft) -> Both:
    """Return a number in digits or words, most often a small one."""
    count = draft.dice.between(2, 12 if draft.dice.chance(0.6) else 100)
    return (str(count), str(count)) if draft.dice.chance(0.5) else (NUMBER_WORDS[count][0], of_years(count))


def age(draft: Draft) -> Both:
    """Return an age in digits or words."""
    count = draft.dice.between(2, 90)
    return (str(count), str(count)) if draft.dice.chance(0.4) else (NUMBER_WORDS[count][0], of_years(count))


def year(draft: Draft) -> Both:
    """Return a year in digits."""
    value = str(draft.dice.between(1900, 2035))
    return value, value


def city(draft: Draft) -> Both:
    """Return a real city, or an invented one, which is the same in both languages."""
    if draft.dice.chance(0.4):
        name = odd(draft.dice)
        return name, name
    return draft.dice.choice(CITIES)


def country(draft: Draft) -> Both:
    """Return a country."""
    return cast("Both", draft.dice.choice(COUNTRIES)[:2])


def ordinal(draft: Draft) -> Both:
    """Return an ordinal number as it stands before a masculine noun."""
    index = draft.dice.below(10)
    return ORDINALS[index], HISPANIC_ORDINALS[index]


def code(draft: Draft) -> Both:
    """Return what is copied to the letter: a code, a phone number, an address of email or the web."""
    dice = draft.dice
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    kind = dice.below(6)
    digits = "".join(str(dice.below(10)) for _ in range(dice.between(1, 4)))
    if kind == 0:
        text = dice.choice(letters) + digits
    elif kind == 1:
        text = digits + dice.choice(letters)
    elif kind == 2:
        text = dice.choice(letters) + dice.choice(letters) + dice.choice(("", "-")) + digits
    elif kind == 3:
        text = " ".join(
            "".join(str(dice.below(10)) for _ in range(dice.between(2, 4))) for _ in range(dice.between(1, 3))
        )
    else:
        text = digits
    return text, text


def address(draft: Draft) -> Both:
    """Return an address of email, which is copied to the letter."""
    dice = draft.dice
    name, host = (
        odd(dice).lower(),
        odd(dice).lower() if dice.chance(0.5) else dice.choice(("example", "gmail", "mail", "hotmail")),
    )
    name += dice.choice(("", "", str(dice.below(100)), "." + odd(dice).lower()))
    end = dice.choice(("com", "com", "org", "es", "net", "co.uk"))
    text = f"{name}@{host}.{end}"
    return text, text


def simple(pairs: tuple[Both, ...]) -> Callable[[Draft], Both]:
    """Return a function that draws one of some pairs."""
    return lambda draft: draft.dice.choice(pairs)


SLOTS: dict[str, Callable[[Draft], Both]] = {
    "clock": clock,
    "day": day,
    "price": price,
    "number": number,
    "age": age,
    "year": year,
    "city": city,
    "country": country,
    "ordinal": ordinal,
    "code": code,
    "email": address,
    "by": simple(TRANSPORT),
    "means": simple(MEANS),
    "sport": simple(SPORTS),
    "skill": simple(SKILLS),
}
"""Slots that stand for themselves, whoever the subject is."""


def hobby(draft: Draft) -> tuple[str, str, int]:
    """Return something that one likes with its article, and its Spanish number."""
    word = draft.dice.choice(WORDS["hobby"])
    return word.english, word.spanish if word.gender not in ("m", "f") else word.the(), word.number


def job(draft: Draft, subject: Subject) -> tuple[str, str]:
    """Return an occupation with its article, in agreement with the subject."""
    en, man, woman = draft.dice.choice(WORK)
    es = woman if subject.gender == "f" else man
    return (english.plural(en), spanish.plural(es)) if subject.number == 2 else (english.with_a(en), es)


def adjective(draft: Draft, kind: str) -> Both:
    """Return a random adjective of a kind, in the masculine."""
    return draft.dice.choice(ADJECTIVES[kind])


def agree(es: str, gender: Gender, number: int) -> str:
    """Return an adjective in agreement; phrases such as “de madera” and words in -a stay as they are."""
    if es.startswith("de ") or es in ("gratis", "rosa", "naranja", "poco común"):
        return es
    return spanish.inflect(es, gender, number)
