"""Pairs from Spanish to English: reproducible, in one wording, and said in many ways."""

import hashlib
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.data.conftest import Pairs, split

pytestmark = pytest.mark.slow  # generating a corpus takes seconds

DATA = Path(__file__).parents[2] / "data"
Make = Callable[..., tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def splits(known: Make) -> tuple[Pairs, Pairs]:
    train, held_out = known("phrases-es-en", 20_000, 1000)
    return split(train), split(held_out)


@pytest.fixture(scope="module")
def train(splits: tuple[Pairs, Pairs]) -> Pairs:
    return splits[0]


class Dice:
    """Dice with which the events of the given probabilities happen, and no others."""

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
    assert digest == "a0ab0401c9746a99450c3318d724a87786ae27550f469170116214552e05edc1"
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


def test_the_parts_share_hardly_a_sentence(splits: tuple[Pairs, Pairs]) -> None:
    train, held_out = ({spanish for spanish, _ in part} for part in splits)
    # A sentence may come of several frames, of which only one is held out.
    assert len(train & held_out) < 0.02 * len(held_out)


@pytest.mark.usefixtures("programs")
def test_english_of_the_grammar_is_written_in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    back = importlib.import_module("phrases.back")
    monkeypatch.setattr(back, "WRITTEN", 0.0)
    for english, _ in back.pairs(10_000, 1):
        assert not re.search(r"\b(?:I am|[Yy]ou are|[Dd]o not|[Cc]annot)\b (?=\w)", english)
        assert not re.search(r"\b(?:elevator|apartment|lorry|movie|gray|parcel|jumper)s?\b", english)
        assert english[-1] in ".?!"


@pytest.mark.usefixtures("programs")
def test_what_was_written_stays_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    back = importlib.import_module("phrases.back")
    monkeypatch.setattr(back, "FIXED", 0.0)
    monkeypatch.setattr(back, "SPOKEN_PATTERNS", 0.0)
    monkeypatch.setattr(back, "WRITTEN", 1.0)
    monkeypatch.setattr(back, "_written", lambda: (back.Pair("Turn off the gas.", "Cierra el gas."),))
    monkeypatch.setattr(back.written, "pairs", back._written)
    assert {pair.english for pair in back.pairs(3, 1) if "," not in pair.english} <= {
        "Turn off the gas.",
        "Turn off the gas. Turn off the gas.",
    }


def test_spanish_is_said_and_typed_in_many_ways(train: Pairs) -> None:
    def share(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> float:
        return sum(bool(re.search(pattern, spanish, flags)) for spanish, _ in train) / len(train)

    assert 0.01 < share(r"\busted(es)?\b", re.IGNORECASE) < 0.1
    assert 0.002 < share(r"\b(?:carros?|celulares|celular|jugo|papas?)\b") < 0.05
    assert 0.1 < share(r"^[^A-ZÁÉÍÓÚ¿¡]*[^.?!]$") < 0.3
    assert 0.01 < share(r"^[A-ZÁÉÍÓÚ][^¿]*\?$") < 0.1


def test_no_part_has_a_sentence_of_the_suites(splits: tuple[Pairs, Pairs], known: Make) -> None:
    plain = str.maketrans("áéíóú", "aeiou")

    def words(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.lower().translate(plain)))

    said = {words(spanish) for part in known("phrases-es-en") for spanish, _ in split(part)}
    said |= {
        words(one) for part in known("phrases-es-en") for both, _ in split(part) for one in re.split("[.?!]", both)
    }
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
        ("You like tea.", "Te gusta el té.", False, "A usted le gusta el té."),
        ("Do you like your job?", "¿Te gusta tu trabajo?", True, "¿Les gusta su trabajo?"),
        ("I hope you can read.", "Espero que puedas leer.", False, "Espero que usted pueda leer."),
        ("You never drink.", "Nunca bebes.", True, "Ustedes nunca beben."),
        ("You were tired.", "Estabas cansado.", True, "Usted estaba cansado."),
        ("Do you feel like eating?", "¿Tienes ganas de comer?", False, "¿Tiene usted ganas de comer?"),
        # What stays familiar beside the verb keeps all of it so.
        ("Did you do it yourself?", "¿Lo hiciste tú mismo?", False, "¿Lo hiciste tú mismo?"),
        ("Can you hear yourself?", "¿Puedes oírte a ti?", False, "¿Puedes oírte a ti?"),
        ("Can I help you if you like?", "¿Puedo ayudarte si quieres?", False, "¿Puedo ayudarte si quieres?"),
        ("Bring it to me when you come.", "Tráemelo cuando vengas.", False, "Tráemelo cuando vengas."),
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
        ("If he comes, I'll go.", "Si él viene, me iré.", "Si viene, me iré."),
        ("He was young.", "Él era joven.", "Él era joven."),  # so was I
        ("He did it himself.", "Lo hizo él mismo.", "Lo hizo él mismo."),
        ("They don't eat.", "Ellos no comen.", "No comen."),
        ("She works.", "Ella trabaja.", "Ella trabaja."),
        ("It's for him.", "Es para él.", "Es para él."),
        ("He likes tea.", "A él le gusta el té.", "A él le gusta el té."),
        ("Does he work?", "¿Trabaja él?", "¿Trabaja él?"),
    ],
)
def test_he_and_they_may_be_left_out(spoken: ModuleType, english: str, written: str, dropped: str) -> None:
    assert spoken.as_said(Dice(spoken.DROPPED), spoken.Pair(english, written)) == (english, dropped)


@pytest.mark.parametrize(
    ("english", "written", "added"),
    [
        ("I work.", "Trabajo.", "Yo trabajo."),
        ("I don't get up.", "No me levanto.", "Yo no me levanto."),
        ("You sing well.", "Cantas bien.", "Tú cantas bien."),
        ("We live here.", "Vivimos aquí.", "Nosotros vivimos aquí."),
        ("I dropped the plate.", "Se me cayó el plato.", "Se me cayó el plato."),
        ("I like tea.", "Me gusta el té.", "Me gusta el té."),
    ],
)
def test_a_pronoun_may_be_written_before_its_verb(spoken: ModuleType, english: str, written: str, added: str) -> None:
    assert spoken.as_said(Dice(spoken.ADDED), spoken.Pair(english, written)) == (english, added)


def test_people_type_less_than_they_should(spoken: ModuleType) -> None:
    def typed(said: str, *happening: float) -> str:
        return spoken.as_typed(Dice(*happening), said)

    assert typed("¿Dónde está Tomás?", spoken.WITHOUT_OPENING) == "Dónde está Tomás?"
    assert typed("¿Dónde está Tomás?", spoken.IN_LOWER_CASE) == "dónde está tomás"
    assert typed("¿Dónde está Tomás?", spoken.IN_LOWER_CASE, spoken.IN_PLAIN_LETTERS) == "donde esta tomas"
    assert typed("¿Está aquí?", spoken.IN_LOWER_CASE) == "está aquí?"  # else it would be no question
    assert typed("El niño está aquí.", spoken.IN_LOWER_CASE, spoken.IN_PLAIN_LETTERS) == "el niño esta aqui"


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
        ("The TV in my apartment is new.", "The television in my flat is new."),
        ("Write to anna@mail.com.", "Write to anna@mail.com."),
        ("Who is it?", "Who is it?"),
        ("The swimming pool is near the exam.", "The swimming pool is near the exam."),
    ],
)
def test_one_wording(spoken: ModuleType, english: str, written: str) -> None:
    assert spoken.in_one_wording(english) == written
    assert spoken.in_one_wording(written) == written
