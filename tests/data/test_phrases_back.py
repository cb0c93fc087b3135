"""Pairs from Spanish to English: reproducible, in one wording, and said in many ways."""

import hashlib
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow  # generating a corpus takes seconds

DATA = Path(__file__).parents[2] / "data"
Pairs = list[tuple[str, str]]
Make = Callable[..., tuple[bytes, bytes]]


def split(text: bytes) -> Pairs:
    return [(left, right) for left, right in (line.split("\t") for line in text.decode().splitlines())]


@pytest.fixture(scope="module")
def splits(known: Make) -> tuple[Pairs, Pairs]:
    train, held_out = known("phrases-es-en", 20_000, 1000)
    return split(train), split(held_out)


@pytest.fixture(scope="module")
def train(splits: tuple[Pairs, Pairs]) -> Pairs:
    return splits[0]


class Dice:
    """Dice by which just what has one of some probabilities happens."""

    def __init__(self, *happening: float) -> None:
        self.happening = happening

    def chance(self, probability: float) -> bool:
        return probability in self.happening


@pytest.fixture
def spoken(programs: None) -> ModuleType:
    return importlib.import_module("phrases.spoken")


def test_same_seed_gives_the_same_bytes_everywhere(make: Make) -> None:
    text, held_out = make("phrases-es-en", seed=7, count=2000, held_out=200)
    digest = hashlib.sha256(text + held_out).hexdigest()
    assert digest == "795f04763b9c2afbec334f42834af22dc50c7956e1846f48246a38fd113b1f12"
    assert make("phrases-es-en", seed=7, count=800)[0] == b"".join(text.splitlines(keepends=True)[:800])


@pytest.mark.parametrize(
    ("spanish", "english"),
    [
        ("Hola.", "Hello."),
        ("Gracias.", "Thank you."),
        ("¿Dónde está el baño?", "Where's the bathroom?"),
        ("Estoy cansado.", "I'm tired."),
        ("¿Me puede ayudar?", "Can you help me?"),
        ("¿Cómo estás?", "How are you?"),
    ],
)
def test_what_people_try_first_is_there(known: Make, spanish: str, english: str) -> None:
    assert (spanish, english) in split(known("phrases-es-en")[0])


def test_the_parts_share_no_sentence(splits: tuple[Pairs, Pairs]) -> None:
    train, held_out = ({spanish for spanish, _ in part} for part in splits)
    # A sentence may come of several frames, of which only one is held out.
    assert len(train & held_out) < 0.02 * len(held_out)


def test_english_is_written_in_one_way(train: Pairs) -> None:
    for _, english in train:
        assert not re.search(r"\b(?:I am|[Yy]ou are|[Dd]o not|[Cc]annot|elevator|apartment|lorry)\b (?=\w)", english)
        assert english[-1] in ".?!"


def test_spanish_is_said_and_typed_in_many_ways(train: Pairs) -> None:
    def share(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> float:
        return sum(bool(re.search(pattern, spanish, flags)) for spanish, _ in train) / len(train)

    assert 0.02 < share(r"\busted(es)?\b", re.IGNORECASE) < 0.1
    assert 0.002 < share(r"\b(?:carros?|celulares|celular|jugo|papas?)\b") < 0.05
    assert 0.1 < share(r"^[^A-ZÁÉÍÓÚ¿¡]*[^.?!]$") < 0.3
    assert 0.03 < share(r"^(?!¿).*[^.?!]$|^[^¿]*\?$") < 0.4


def test_no_part_has_a_sentence_of_the_suites(splits: tuple[Pairs, Pairs], known: Make) -> None:
    plain = str.maketrans("áéíóú", "aeiou")

    def words(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.lower().translate(plain)))

    said = {words(spanish) for part in known("phrases-es-en") for spanish, _ in split(part)}
    for name in ("everyday-back.jsonl", "everyday-back-kept.jsonl"):
        checks = [json.loads(line) for line in (DATA / "phrases" / name).read_text(encoding="utf-8").splitlines()]
        asked = {words(check["say"]) for check in checks if "say" in check}
        assert len(asked) == 100
        assert asked & said == set()


@pytest.mark.parametrize(
    ("english", "familiar", "plural", "formal"),
    [
        ("Do you have bread?", "¿Tienes pan?", False, "¿Tiene usted pan?"),
        ("Do you have bread?", "¿Tienes pan?", True, "¿Tienen ustedes pan?"),
        ("You're right.", "Tienes razón.", False, "Usted tiene razón."),
        ("Have you seen my dog?", "¿Has visto a mi perro?", False, "¿Ha visto usted a mi perro?"),
        ("When do you get up?", "¿Cuándo te levantas?", True, "¿Cuándo se levantan ustedes?"),
        ("Can you open your bag?", "¿Puedes abrir tu bolsa?", False, "¿Puede usted abrir su bolsa?"),
        ("Do you want to get up?", "¿Quieres levantarte?", False, "¿Quiere usted levantarse?"),
        ("I love you.", "Te quiero.", False, "Te quiero."),
        ("Can you hear yourself?", "¿Puedes oírte a ti?", False, "¿Puedes oírte a ti?"),
    ],
)
def test_what_is_said_to_you_may_be_formal(
    spoken: ModuleType, english: str, familiar: str, plural: bool, formal: str
) -> None:
    dice = Dice(spoken.FORMAL, spoken.NAMED, *([spoken.PLURAL] if plural else []))
    assert spoken.as_said(dice, spoken.Pair(english, familiar)) == (english, formal)


@pytest.mark.parametrize(
    ("english", "written", "dropped"),
    [
        ("He works.", "Él trabaja.", "Trabaja."),
        ("When he was young, I knew him.", "Cuando él era joven, lo conocía.", "Cuando era joven, lo conocía."),
        ("They don't eat.", "Ellos no comen.", "No comen."),
        ("She works.", "Ella trabaja.", "Ella trabaja."),
        ("It's for him.", "Es para él.", "Es para él."),
        ("He likes tea.", "A él le gusta el té.", "A él le gusta el té."),
        ("Does he work?", "¿Trabaja él?", "¿Trabaja él?"),
    ],
)
def test_he_and_they_may_be_left_out(spoken: ModuleType, english: str, written: str, dropped: str) -> None:
    assert spoken.as_said(Dice(spoken.DROPPED), spoken.Pair(english, written)) == (english, dropped)


def test_words_of_america_stand_in_for_those_of_spain(spoken: ModuleType) -> None:
    pair = spoken.Pair("Where is your car?", "¿Dónde está tu coche?")
    assert spoken.as_said(Dice(spoken.FROM_AMERICA), pair).spanish == "¿Dónde está tu carro?"
    pair = spoken.Pair("I want to buy the computer.", "Quiero comprar el ordenador.")
    assert spoken.as_said(Dice(spoken.FROM_AMERICA), pair).spanish == "Quiero comprar la computadora."


@pytest.mark.parametrize(
    ("english", "written"),
    [
        ("I am not eating an apartment, do not worry.", "I'm not eating a flat, don't worry."),
        ("Do not go.", "Don't go."),
        ("Elevators are grey.", "Lifts are grey."),
        ("The swimming pool is near the exam.", "The swimming pool is near the exam."),
    ],
)
def test_one_wording(spoken: ModuleType, english: str, written: str) -> None:
    assert spoken.in_one_wording(english) == written
    assert spoken.in_one_wording(written) == written
