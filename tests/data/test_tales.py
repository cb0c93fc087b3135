"""Tales are reproducible, unique, well formed, and true to their hero from the first sentence to the last paragraph."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinychat.evaluate.suite import read_suite

pytestmark = pytest.mark.slow  # generating a corpus takes seconds

Make = Callable[..., tuple[bytes, bytes]]
SUITE = Path(__file__).parents[2] / "data" / "tales" / "suite.jsonl"
COUNT = 1200


def named(text: str) -> set[str]:
    return set(text.split())


HELD_OUT = named("Anouk Daisy Flora Linnea Minka Saskia Thea Winnie Arlo Jory Elmo Hugo Silas Tarek Ludo Benno")
SHE, HE = {"she", "her", "hers", "herself"}, {"he", "him", "his", "himself"}
OWN = {"she": SHE, "he": HE}


def split(text: bytes) -> list[str]:
    return [json.loads(line)["text"] for line in text.decode().splitlines()]


@pytest.fixture(scope="module")
def splits(known: Make) -> tuple[list[str], list[str]]:
    train, held_out = known("tales", 2500, 500)
    return split(train), split(held_out)


@pytest.fixture(scope="module")
def tales(splits: tuple[list[str], list[str]]) -> list[str]:
    return splits[0]


@pytest.fixture
def told(programs: None) -> list[tuple[Any, str]]:
    """Return heroes, each with its tale."""
    from grammar import Dice
    from tales.telling import Tale

    tales = [Tale(Dice(f"test {index}"), held_out=False) for index in range(COUNT)]
    return [(tale.hero, tale.tell()) for tale in tales]


def test_same_seed_gives_the_same_bytes_everywhere(make: Make) -> None:
    train, held_out = make("tales", seed=7, count=200, held_out=50)
    digest = hashlib.sha256(train + held_out).hexdigest()
    assert digest == "bd0cbd51cfc04a798c627d9311a333e5edcfff6407682736335ebe296508d769"
    assert make("tales", seed=7, count=50)[0] == b"".join(train.splitlines(keepends=True)[:50])


def test_every_tale_is_told_once(splits: tuple[list[str], list[str]]) -> None:
    train, held_out = splits
    assert len(set(train)) == len(train)
    assert not set(train) & set(held_out)


def test_tales_are_50_to_140_words_long(splits: tuple[list[str], list[str]]) -> None:
    for tale in splits[0] + splits[1]:
        assert 50 <= len(tale.split()) <= 140, tale


def test_no_template_shows_through(tales: list[str]) -> None:
    for tale in tales:
        text = re.sub(r"\b(Mrs?)\.", r"\1", tale)
        assert not re.search(r"[<>{}()|_+«»]|  | \n|\n\n| [.,?!]|\.\.|,,|[.!?],|,\.|[.!?,;:]\w", text), tale
        assert not re.search(r"\ba (?!unicorn)[aeiou]\w|\ban [bcdfgjklmnpqrstvwxyz]", text), tale
        assert not re.search(r"\b(\w+) \1\b", text.lower()), tale
        assert tale.count('"') % 2 == 0, tale


def test_every_sentence_begins_and_ends_well(tales: list[str]) -> None:
    for tale in tales:
        for paragraph in tale.split("\n"):
            assert re.fullmatch(r'["A-Z].*[.!?]"?', paragraph), paragraph
        assert not re.search(r"[.!?] [a-z]", re.sub(r'[.!?]" \w+|\bMrs?\.', "", tale)), tale


def test_the_hero_is_in_the_first_and_in_the_last_paragraph(told: list[tuple[Any, str]]) -> None:
    for hero, tale in told:
        first, last = tale.partition("\n")[0], tale.rpartition("\n")[2]
        own = "I|me|my|we|us|our"
        assert re.search(rf"(?i)\b(?:{own if hero.speaks_of_itself else hero.name.split()[-1]})\b", first), tale
        assert re.search(rf"(?i)\b(?:{own if hero.speaks_of_itself else hero.name})\b", last), tale


def test_every_pronoun_is_that_of_the_hero(told: list[tuple[Any, str]]) -> None:
    assert {hero.he for hero, _ in told} == {"she", "he", "it", "they", "I", "we"}
    for hero, tale in told:
        others = set(re.findall(r"\w+", tale.lower())) & ((SHE | HE) - OWN.get(hero.he, set()))
        assert others <= ({"his", "her"} if hero.he == "they" else set()), tale  # “the king and his wife”


def test_verbs_agree_with_heroes(told: list[tuple[Any, str]]) -> None:
    for hero, tale in told:
        if hero.is_plural:
            assert not re.search(rf"(?:\b(?:they|we)|\. {re.escape(hero.name)}) was\b", tale), tale
        if hero.speaks_of_itself:
            assert not re.search(r"\b(?:of|by|for|with|to|at|told|knew|believed|helped) (?:I|we)\b", tale), tale


def test_first_sentences_are_diverse(tales: list[str]) -> None:
    begins = Counter(" ".join(tale.split()[:2]) for tale in tales)
    assert len(begins) > len(tales) // 4
    assert begins.most_common(1)[0][1] < 0.1 * len(tales)
    sentences = {re.split(r"(?<=[.!?])\s", tale)[0] for tale in tales}
    assert len(sentences) > 0.98 * len(tales)


def test_no_sentence_dominates(tales: list[str]) -> None:
    sentences = Counter(sentence for tale in tales for sentence in re.split(r"(?<=[.!?]) |\n", tale))
    assert sentences.most_common(1)[0][1] < 0.06 * len(tales)


@pytest.mark.parametrize(
    ("wish", "end"),
    [
        (r"wanted to see (the sea|a rainbow)\.", r"there was {0}|saw {0}"),
        (r"could not (swim|sing|read)\.", r"could {0}|to {0}"),
        (r"was afraid of (dogs|thunder|water)\.", r"afraid of {0}|Is that all"),
    ],
)
def test_what_was_wished_is_settled(known: Make, wish: str, end: str) -> None:
    wished = 0
    for tale in split(known("tales", 20_000)[0]):
        if found := re.search(wish, tale.partition("\n")[0]):
            wished += 1
            assert re.search("(?i)" + end.format(found[1]), tale.rpartition("\n")[2]), tale
    assert wished > 5


def test_held_out_names_are_never_trained_on(splits: tuple[list[str], list[str]]) -> None:
    train, held_out = (set(re.findall(r"\b[A-Z][a-z]+\b", " ".join(tales))) for tales in splits)
    assert not train & HELD_OUT
    assert held_out >= HELD_OUT


def test_no_tale_has_a_beginning_that_models_are_checked_with(known: Make) -> None:
    beginnings = {check.prompts[0] for check in read_suite(SUITE).checks}
    assert len(beginnings) == 200
    tales = split(known("tales", 20_000)[0])
    for beginning in beginnings:
        assert not any(tale.startswith(beginning) and not tale[len(beginning)].isalpha() for tale in tales), beginning


def test_every_tale_passes_the_checks_of_the_suite(told: list[tuple[Any, str]]) -> None:
    """What is asked of models holds in the corpus, and a tale that lost its hero, or its end, fails."""
    checks = read_suite(SUITE).checks
    groups = Counter(check.group.removesuffix(", kept") for check in checks)
    assert groups == {"hero at the end": 198, "right pronoun": 200, "no loop": 200}
    ends = [check for check in checks if check.prompts == ("A little girl named Emma",)]
    tale = " was sad.\nShe cried.\nThen Emma was glad, and she sang."
    assert [check.accepts(tale) for check in ends] == [True, True, True]
    assert [check.accepts(tale.replace("Then Emma", "Then Anna")) for check in ends] == [False, True, True]
    assert [check.accepts(tale.replace("she sang", "he sang")) for check in ends] == [True, False, True]
    assert [check.accepts(" The others had hurried past." * 3 + tale) for check in ends] == [True, True, False]
    loops = next(check for check in checks if check.group == "no loop")
    for _, tale in told:
        assert loops.accepts(tale), tale
