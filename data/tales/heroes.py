"""Draw the hero of a tale: a name, an animal, a thing, a person, a pair, or whoever tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from grammar import Dice, listed
from grammar import a as regular_a

from tales.tables import table

BEGINNINGS = listed("""A Al An Ba Bar Be Ben Bi Bo Bri Bro Bu Cal Ca Co Cor Da Dan De Do Dru Du E El Em Fa Fi Fen
Flo Fri Ga Ge Gil Go Gri Gru Ha Hal He Ho Hu I Im Is Ja Jo Ju Ka Kel Ki Ko La Le Li Lo Lu Ma Mar Me Mi Mo Mu Na Ne Ni
No Nu O Ol Or Pa Pe Pi Plu Po Pri Qui Ra Re Ri Ro Ru Sa Se Shi Si Sno So Su Ta Te Thi Ti To Tri Tu U Ul Va Ve Vi Vo Wa
We Wi Wo Ya Ye Yo Za Ze Zi Zo Zu Fli Sku Glo Ble Dri Spo Twi Squi Wu Xa Qua Cha Ku Kwa Ng Sva Tsu""")
MIDDLES = listed("""b bb bl br c ck d dd dl f ff g gg l ll ld lf lk lm lw m mb mm mp n nd ng nk nn nt p pp r rb rd
rg rk rl rm rn rp rr rt rv s sh ss st t th tt v w x z zz lib lin mer min nar rab rin ril tam tol vel bert dor gim""")
SHE_ENDS = listed("a ia ie ina ette ora ula ela ika issa ola y ine ita")
HE_ENDS = listed("o el in us um ert ard ock on ian i ic or is")
NOUN_ENDS = listed("le ock in orb et ump oo er ix ip uzz og ling ble ot ick umpus orp et a")

PRONOUNS = {
    "she": ("her", "her", "herself"),
    "he": ("him", "his", "himself"),
    "it": ("it", "its", "itself"),
    "they": ("them", "their", "themselves"),
    "I": ("me", "my", "myself"),
    "we": ("us", "our", "ourselves"),
}
ONLY_ONE = ("first", "last", "smallest", "biggest", "oldest", "youngest")
"""Adjectives that need “the”."""


@dataclass(frozen=True)
class Hero:
    """Who a tale is about, and how it is called."""

    name: str
    """What it is called after the first mention: “Emma”, “the dragon”, “my grandmother”, “I”."""
    he: str
    """Its pronoun, a key of `PRONOUNS`."""
    who: tuple[str, ...]
    """Noun phrases of a first mention."""
    a_who: tuple[str, ...] = ()
    """Noun phrases of a first mention after “there was”; empty if there are none."""
    kinds: tuple[str, ...] = ()
    """What a hero with a name is: “an elephant”."""
    words: frozenset[str] = frozenset()
    """Nouns that nobody else in the tale may have."""
    has_owner_form: bool = True
    """Whether a first mention may be possessive: “the king's hat”."""
    is_reserved: bool = False
    """Whether its name is reserved for the held-out split."""

    @property
    def is_plural(self) -> bool:
        """Whether verbs after it are plural."""
        return self.he in ("they", "we")

    @property
    def speaks_of_itself(self) -> bool:
        """Whether the hero tells the tale."""
        return self.he in ("I", "we")

    def slots(self) -> dict[str, str]:
        """Return the words of templates that name the hero or agree with it."""
        him, his, himself = PRONOUNS[self.he]
        plural, own = self.is_plural, self.speaks_of_itself
        forms = {
            "name": self.name,
            "names": his if own else owner(self.name),
            "whom": him if own else self.name,
            "he": self.he, "him": him, "his": his, "himself": himself,
            "was": "were" if plural else "was",
            "is": "are" if plural else "am" if own else "is",
            "has": "have" if plural or own else "has",
            "s": "" if plural or own else "s",
            "i": "we" if plural else "I", "am": "are" if plural else "am",
        }  # fmt: skip
        forms |= {key.capitalize(): capital(forms[key]) for key in ("name", "names", "he", "his", "whom")}
        return forms | {"I": capital(forms["i"])}


def a(noun: str) -> str:
    """Return the noun with “a” or “an”."""
    return f"a {noun}" if noun.startswith("unicorn") else regular_a(noun)


def capital(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def owner(name: str) -> str:
    """Return the possessive of a name."""
    return name + ("'" if name.endswith("s") and name.startswith(("the ", "two ")) else "'s")


@cache
def words_of(name: str) -> list[str]:
    """Return the entries of a table of heroes.toml, with hyphens as spaces."""
    text: str = table("heroes")[name]
    entries = listed(text, "|") if "|" in text else listed(text)
    return [entry.replace("-", " ") for entry in entries]


def invent(dice: Dice, ends: Sequence[str]) -> str:
    """Return an invented word, such as “Plummo” or “Quintora”."""
    return dice.choice(BEGINNINGS) + dice.choice(MIDDLES) + dice.choice(ends)


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of three letters or more that are not invented."""
    tables = ("she_names", "he_names", "held_out_she", "held_out_he", "surnames", "pet_names")
    return tuple(name for one in tables for name in words_of(one) if len(name) > 2)


def draw_name(dice: Dice, he: str, *, held_out: bool, invented: float = 0.4) -> str:
    """Return a name for this pronoun; one of seven may be that of a pet."""
    if held_out:
        return dice.choice(words_of(f"held_out_{he}"))
    reserved = words_of("held_out_she") + words_of("held_out_he")
    while True:
        if dice.chance(invented):
            name = invent(dice, SHE_ENDS if he == "she" else HE_ENDS)
            if name.startswith(known_names()):
                continue  # “Little Ben” must be able to end there
        else:
            name = dice.choice(words_of(f"{he}_names"))
        if name not in reserved:
            return name


def a_name(dice: Dice, *, held_out: bool) -> Hero:
    """Draw a girl, a boy, a woman or a man with a name."""
    he = dice.choice(("she", "he"))
    name = draw_name(dice, he, held_out=held_out)
    she_kinds, he_kinds = ("girl", "girl", "girl", "woman", "princess"), ("boy", "boy", "boy", "man", "prince")
    kind = dice.choice(she_kinds if he == "she" else he_kinds)
    adjective = dice.choice(("", "", "little ", "little ", "young ", "small ", "clever ", "poor ", "shy "))
    a_kind = a(f"{adjective}{kind}")
    named = a_kind + dice.choice((" named ", " called ", " called ", " by the name of ")) + name
    who = (name, name, name, name, named) if dice.chance(0.8) else (named,)
    a_who = (named, named, a(f"{kind} named {name}"))
    return Hero(name, he, who, a_who, (a_kind,), frozenset({kind}), is_reserved=held_out)


NOUNS = (
    (30, "animals", ("he", "he", "she", "she", "it")),
    (14, "beings", ("he", "she", "it")),
    (16, "people", ("he", "she")),
    (10, "she_nouns", ("she",)),
    (8, "he_nouns", ("he",)),
    (8, "", ("he", "she", "it")),
    (12, "things", ("it",)),
)
"""Weights of tables of nouns, and their pronouns; the one without a name is invented."""


def a_noun(dice: Dice, *, held_out: bool) -> Hero:
    """Draw an animal, a thing, a person or a made-up being."""
    _, group, pronouns = NOUNS[dice.weighted([weight for weight, _, _ in NOUNS])]
    noun = dice.choice(words_of(group)) if group else invent(dice, NOUN_ENDS).lower()
    he = dice.choice(pronouns)
    adjectives = "adjectives"
    if group == "things":
        adjectives = "thing_adjectives"
    elif group in ("animals", "beings") and dice.chance(0.3):
        adjectives = "colours"
    adjective = dice.choice(words_of(adjectives)) + " " if dice.chance(0.45) else ""
    if noun.startswith(adjective) or " " in noun:
        adjective = ""
    rest = " " + dice.choice(words_of("after")) if not adjective and dice.chance(0.12) else ""
    full, short = f"{adjective}{noun}{rest}", f"{adjective}{noun}"
    name = f"the {short}" if dice.chance(0.3) else f"the {noun}"
    words = frozenset({noun, noun.split()[-1]})
    if adjective.strip() in ONLY_ONE:
        return Hero(name, he, (f"the {full}",), (), (), words)
    if (he != "it" and dice.chance(0.12)) or held_out:
        he = he if he != "it" else "she"
        is_pet = group == "animals" and not held_out and dice.chance(0.3)
        called = dice.choice(words_of("pet_names")) if is_pet else draw_name(dice, he, held_out=held_out)
        if called.lower() not in words:
            named = a(short) + dice.choice((" named ", " called ")) + called
            forms = (called, named, f"{called} the {noun}", f"{called} the {short}", f"the {noun} {called}")
            return Hero(called, he, forms, (named,), (a(short),), words, False, held_out)
    return Hero(name, he, (f"the {full}", f"the {full}", a(full)), (a(full),), (), words, not rest)


def a_title(dice: Dice, *, held_out: bool) -> Hero:
    """Draw a person with a title or an adjective before the name."""
    he = dice.choice(("she", "he"))
    title = dice.choice(words_of(f"titles_{he}"))
    has_surname = title.rstrip(".") in ("Mr", "Mrs", "Miss", "Dr", "Doctor", "Professor")
    has_surname = has_surname or (title == "Captain" and dice.chance(0.7))
    if has_surname and not held_out:
        name = (
            dice.choice(words_of("surnames")) if dice.chance(0.7) else draw_name(dice, he, held_out=False, invented=1)
        )
    else:
        name = draw_name(dice, he, held_out=held_out, invented=0.3)
    full = f"{title} {name}"
    is_adjective = title in ("Old", "Little", "Poor", "Young", "Big", "Lazy", "Brave")
    kind = "a woman" if he == "she" else "a man"
    short = name if is_adjective and dice.chance(0.6) else full
    words = frozenset({title.lower(), name.lower()})
    return Hero(short, he, (full,), (f"{kind} called {full}",), (), words, True, held_out)


def a_relative(dice: Dice, *, held_out: bool) -> Hero:
    """Draw somebody's relative, child or pet."""
    he = dice.choice(("she", "he"))
    kind = dice.below(5)
    mine = dice.choice(("my", "my", "my", "our"))
    if kind == 0 or held_out:
        pet = dice.choice(words_of("pets"))
        if not held_out and dice.chance(0.5):
            name = dice.choice(words_of("pet_names"))
        else:
            name = draw_name(dice, he, held_out=held_out)
        return Hero(name, he, (f"{mine} {pet} {name}",), (), (), frozenset({pet}), False, held_out)
    if kind == 1:
        word = dice.choice(("daughter", "sister", "wife") if he == "she" else ("son", "brother", "servant"))
        of = dice.choice(words_of("children"))
        return Hero(f"the {of} {word}", he, (f"the {of} {word}",), (), (), frozenset({of[:-2]}), False)
    if kind == 2:
        word = dice.choice(words_of("pets"))
        return Hero(f"{mine} {word}", he, (f"{mine} {word}",), (), (), frozenset({word}))
    word = dice.choice(words_of(f"{he}_kin" if kind == 3 or dice.chance(0.5) else "any_kin"))
    of = owner(draw_name(dice, dice.choice(("she", "he")), held_out=False)) if dice.chance(0.15) else mine
    return Hero(f"{of} {word}", he, (f"{of} {word}",), (), (), frozenset({word}))


HUMANS = (
    ("old woman", "her"), ("old man", "his"), ("king", "his"), ("queen", "her"), ("witch", "her"), ("boy", "his"),
    ("girl", "her"), ("farmer", "his"),
)  # fmt: skip
"""People in pairs, with their possessives."""


def a_pair(dice: Dice, *, held_out: bool) -> Hero:
    """Draw two or more who do everything together."""
    kind = dice.below(8)
    he, she = dice.choice((("he", "she"), ("she", "he"), ("he", "he"), ("she", "she")))
    first = draw_name(dice, he, held_out=held_out)
    second = draw_name(dice, she, held_out=False)
    his = PRONOUNS[he][1]
    pet, pet_name = dice.choice(words_of("pets")), dice.choice(words_of("pet_names"))
    one, two = dice.sample(words_of("animals"), 2)
    if kind == 0 or (held_out and kind > 2):
        name = f"{first} and {second}"
        return Hero(name, "they", (name,), (), (), frozenset(), False, held_out)
    if kind == 1:
        name = f"{first} and {pet_name}"
        return Hero(name, "they", (f"{first} and {his} {pet} {pet_name}",), (), (), frozenset({pet}), False, held_out)
    if kind == 2:
        other = dice.choice((pet, "brother", "sister", "friend", "grandmother", "grandfather", "father", "mother"))
        name = f"{first} and {his} {other}"
        return Hero(name, "they", (name,), (), (), frozenset({other}), False, held_out)
    if kind == 3:
        word, his = dice.choice(HUMANS)
        other = dice.choice((pet, pet, "wife" if his == "his" else "husband", "friend"))
        both = f"{word} and {his} {other}"
        return Hero(f"the {both}", "they", (f"the {both}", a(both)), (a(both),), (), frozenset({word, other}), False)
    if kind == 4:
        name, both = f"the {one} and the {two}", f"{a(one)} and {a(two)}"
        return Hero(name, "they", (name, both), (both,), (), frozenset({one, two}), False)
    group, number = dice.choice(words_of("groups")), dice.choice(words_of("numbers"))
    adjective = dice.choice(("", "", "", "little ", "old ", "brave ", "silly "))
    adjective = "" if group.startswith(adjective) else adjective
    counted = f"{number} {adjective}{group}"
    name = dice.choice((f"the {group}", f"the {number} {group}"))
    who = (counted, f"the {counted}", f"the {group}")
    return Hero(name, "they", who, (counted,), (), frozenset({group[:-1]}), False)


def a_teller(dice: Dice, *, held_out: bool) -> Hero:
    """Draw “I” or “we”."""
    he = dice.choice(("I", "I", "I", "we"))
    return Hero(he, he, (he,), (), (), frozenset())


DRAWS: tuple[tuple[float, Callable[..., Hero]], ...] = (
    (28, a_name), (42, a_noun), (8, a_title), (7, a_relative), (11, a_pair), (5, a_teller),
)  # fmt: skip


def draw_hero(dice: Dice, *, held_out: bool) -> Hero:
    """Draw a hero; with `held_out`, its name is one of those reserved for that split, if it has one."""
    return DRAWS[dice.weighted([weight for weight, _ in DRAWS])][1](dice, held_out=held_out)
