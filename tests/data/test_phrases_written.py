"""Sentences written one by one, with their translations: well formed, each once, and drawn in several ways."""

import importlib
import random
import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest

Draw = Callable[..., tuple[str, str]]


@pytest.fixture
def written(programs: None) -> ModuleType:
    return importlib.import_module("phrases.written")


class Dice(random.Random):
    """Dice with which the events of the given probabilities happen, and no others."""

    def __init__(self, *happening: float) -> None:
        super().__init__(7)
        self.happening = happening

    def chance(self, probability: float) -> bool:
        return probability in self.happening


@pytest.fixture
def draw(written: ModuleType) -> Draw:
    """Return a function that draws from the given pairs, with dice of the given probabilities."""

    def draw(*pairs: tuple[str, str], happening: tuple[float, ...] = ()) -> tuple[str, str]:
        english, spanish = written.draw(Dice(*happening), [written.Pair(*pair) for pair in pairs])
        return english, spanish

    return draw


def test_each_sentence_is_written_properly_and_once(written: ModuleType) -> None:
    pairs = written.pairs()
    for english, spanish in pairs:
        for side in (english, spanish):
            assert side[-1] in ".?!", side
            assert side == " ".join(side.split())
            assert not re.match(r"\W*[a-záéíóúñ]", side), side
        assert spanish.count("¿") == spanish.count("?"), spanish
        assert spanish.count("¡") == spanish.count("!"), spanish
    assert len(pairs) == 86_316
    assert max(Counter(spanish for _, spanish in pairs).values()) == 1


@pytest.mark.parametrize(
    "word", ["apartment", "movie", "neighbor", "color", "favorite", "soccer", "vacation", "cookie"]
)
def test_words_of_america_are_there_too(written: ModuleType, word: str) -> None:
    """So that `translate` knows them: the grammar writes flat, film, neighbour."""
    assert sum(word in re.findall(r"\w+", pair.english.lower()) for pair in written.pairs()) >= 10


def test_a_sentence_comes_as_it_is_written(draw: Draw) -> None:
    assert draw(("Lola's asleep.", "Lola duerme.")) == ("Lola's asleep.", "Lola duerme.")


def test_another_name_stands_in_on_both_sides(written: ModuleType, draw: Draw) -> None:
    english, spanish = draw(("Did Lola call Lola?", "¿Llamó Lola a Lola?"), happening=(written.RENAMED,))
    name = english.split()[1]
    assert name != "Lola"
    assert (english, spanish) == (f"Did {name} call {name}?", f"¿Llamó {name} a {name}?")


def test_a_name_of_the_held_out_part_never_stays(draw: Draw) -> None:
    english, spanish = draw(("Ramona left.", "Ramona se fue."))
    assert "Ramona" not in english + spanish
    assert english.split()[0] == spanish.split()[0]


@pytest.mark.parametrize(
    "pair",
    [
        ("Rose loves Paris.", "A Rosa le encanta París."),
        ("She lives in El Salvador.", "Vive en El Salvador."),
        ("He was born in Rosario.", "Nació en Rosario."),
        ("The San Carlos hospital is full.", "El hospital San Carlos está lleno."),
        ("We flew to Carlos Paz.", "Volamos a Carlos Paz."),
    ],
)
def test_what_is_no_name_of_a_person_on_both_sides_stays(
    written: ModuleType, draw: Draw, pair: tuple[str, str]
) -> None:
    assert draw(pair, happening=(written.RENAMED,)) == pair


@pytest.mark.parametrize(
    ("pair", "opened"),
    [
        (("I'm very tired.", "Estoy muy cansado."), ("But I'm very tired.", "Pero estoy muy cansado.")),
        (("The bus is late.", "El autobús llega tarde."), ("But the bus is late.", "Pero el autobús llega tarde.")),
        (("He saw Lola.", "Lola lo vio."), ("But he saw Lola.", "Pero Lola lo vio.")),
        (("Where are you?", "¿Dónde estás?"), ("Hey, where are you?", "Oye, ¿dónde estás?")),
        (
            ("My cousin is in Milan.", "Mi prima está en Milán."),
            ("But my cousin is in Milan.", "Pero mi prima está en Milán."),
        ),
        (("He did it.", "Hizo eso."), ("But he did it.", "Pero hizo eso.")),
        (("Where is Lola?", "¿Lola dónde está?"), ("Hey, where is Lola?", "Oye, ¿Lola dónde está?")),
    ],
)
def test_words_come_before_a_statement_or_a_question(
    written: ModuleType, draw: Draw, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str], opened: tuple[str, str]
) -> None:
    monkeypatch.setattr(written, "BEFORE_STATEMENTS", (("pero", "but"),))
    monkeypatch.setattr(written, "BEFORE_QUESTIONS", (("oye,", "hey,"),))
    assert draw(pair, happening=(written.OPENED,)) == opened


@pytest.mark.parametrize(
    "pair",
    [
        ("Come here, Ana.", "Ven aquí, Ana."),
        ("You call him, please.", "Llámalo tú, por favor."),
        ("I hope it rains.", "Ojalá llueva."),
        ("You're welcome.", "No hay de qué."),
        ("Lola left.", "Lola se fue."),
        ("My desk.", "Mi escritorio."),
        ("White or red?", "¿Blanco o tinto?"),
    ],
)
def test_no_words_come_before_orders_and_set_phrases(written: ModuleType, draw: Draw, pair: tuple[str, str]) -> None:
    assert draw(pair, happening=(written.OPENED,)) == pair


@pytest.mark.parametrize("event", ["OPENED", "ADDRESSED", "JOINED"])
def test_nothing_is_put_beside_what_is_no_sentence(written: ModuleType, draw: Draw, event: str) -> None:
    phrase = max(written._phrases(), key=lambda pair: (written._is_short_statement(pair), len(pair.english)))
    assert draw(phrase, happening=(getattr(written, event),)) == phrase


@pytest.mark.parametrize(
    ("said", "written_so"),
    [("Padre y hijo.", "Padre e hijo."), ("Agua y hielo.", "Agua y hielo."), ("Y Inés no.", "E Inés no.")],
)
def test_y_is_e_before_the_sound_of_i(draw: Draw, said: str, written_so: str) -> None:
    assert draw(("Any of these.", said)) == ("Any of these.", written_so)


def test_two_short_statements_form_one(written: ModuleType, draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "BETWEEN", (("y", "and"),))
    pairs = (("It was raining.", "Estaba lloviendo."), ("We made ice.", "Hicimos hielo."))
    assert draw(*pairs, happening=(written.JOINED,)) in (
        ("It was raining, and we made ice.", "Estaba lloviendo, e hicimos hielo."),
        ("We made ice, and it was raining.", "Hicimos hielo, y estaba lloviendo."),
    )
    assert draw(("Is it raining?", "¿Llueve?"), happening=(written.JOINED,)) == ("Is it raining?", "¿Llueve?")


def test_somebody_is_addressed_behind_a_sentence(written: ModuleType, draw: Draw) -> None:
    english, spanish = draw(("Come in!", "¡Pasa!"), happening=(written.ADDRESSED,))
    name = english.removeprefix("Come in, ").removesuffix("!")
    assert name.isalpha()
    assert spanish == f"¡Pasa, {name}!"


@pytest.mark.parametrize(
    ("contracted", "whole"),
    [
        ("I'm late and they won't wait.", "I am late and they will not wait."),
        ("Don't tell her you can't come.", "Do not tell her you cannot come."),
        ("You don't smoke, do you?", "You do not smoke, do you?"),
        ("You smoke, don't you?", "You smoke, don't you?"),
        ("Didn't Ana come?", "Didn't Ana come?"),
        ("Why isn't the lift working?", "Why isn't the lift working?"),
        ("She's a nurse.", "She's a nurse."),  # or has
        ("We'd gone, he'll stay.", "We'd gone, he will stay."),
    ],
)
def test_contractions_that_stand_for_one_thing_are_written_in_full(
    written: ModuleType, contracted: str, whole: str
) -> None:
    assert written.in_full(written.Pair(contracted, "")) == (whole, "")


@pytest.mark.parametrize(
    "pair",
    [
        ("Are you coming tomorrow?", "¿Vienen mañana?"),
        ("Open the door!", "¡Abrid la puerta!"),
        ("Sit down!", "¡Siéntense!"),
        ("You're tired.", "Estás cansado."),
        ("You're handsome in your suit.", "Estás guapo con tu traje."),
        ("Stop it, both of you!", "¡Basta ya!"),
        ("Three, two, one...", "Tres..."),
    ],
)
def test_nobody_is_addressed_where_words_tell_who_is_meant(
    written: ModuleType, draw: Draw, pair: tuple[str, str]
) -> None:
    assert draw(pair, happening=(written.ADDRESSED,)) == pair
