"""Phrase pairs are reproducible, unique, and grammatical by independent rules."""

import hashlib
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.data.conftest import Pairs, split

pytestmark = pytest.mark.slow  # generating a corpus takes seconds

DATA = Path(__file__).parents[2] / "data"
Make = Callable[..., tuple[bytes, bytes]]


def named(text: str) -> set[str]:
    return set(text.split())


# Independent of the corpus: nouns by gender, adjectives by their four forms.
MASCULINE = named("""
libro coche perro gato sombrero abrigo vestido reloj teléfono zapato tren barco banco hotel museo árbol río
lápiz cuaderno vaso plato cuchillo espejo sillón sofá escritorio mapa paraguas café té queso pan arroz jardín
piso caballo examen problema día
""")
FEMININE = named("""
casa camisa falda chaqueta mesa silla cama puerta ventana llave carta taza botella bolsa lámpara maleta bufanda
corbata gorra playa iglesia escuela tienda plaza calle flor manzana sopa leche cerveza carne vaca oveja gallina
radio foto moto lección canción estación
""")
ARTICLES = {
    "el": ("m", 1), "un": ("m", 1), "este": ("m", 1), "ese": ("m", 1), "nuestro": ("m", 1),
    "la": ("f", 1), "una": ("f", 1), "esta": ("f", 1), "esa": ("f", 1), "nuestra": ("f", 1),
    "los": ("m", 2), "estos": ("m", 2), "esos": ("m", 2), "nuestros": ("m", 2),
    "las": ("f", 2), "estas": ("f", 2), "esas": ("f", 2), "nuestras": ("f", 2),
}  # fmt: skip
ADJECTIVES = {
    form: (gender, number)
    for stem in ["roj", "blanc", "negr", "amarill", "pequeñ", "car", "barat", "nuev", "viej", "limpi", "suci", "bonit"]
    for form, gender, number in (
        (stem + "o", "m", 1), (stem + "a", "f", 1), (stem + "os", "m", 2), (stem + "as", "f", 2),
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def splits(known: Make) -> tuple[Pairs, Pairs]:
    train, held_out = known("phrases", 12_000, 1000)
    return split(train), split(held_out)


@pytest.fixture(scope="module")
def train() -> Pairs:
    """Return pairs of the grammar alone, whose rules hold for nothing that people write freely."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DATA))
        make = importlib.import_module("phrases.make")
        patch.setattr(make, "WRITTEN", 0.0)
        return split("".join(make.make(12_000, 1)).encode())


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def singular(word: str) -> str:
    plain = {"lápices": "lápiz", "jardines": "jardín", "sillones": "sillón", "flores": "flor", "relojes": "reloj"}
    plain |= {"trenes": "tren", "hoteles": "hotel", "árboles": "árbol", "canciones": "canción", "lecciones": "lección"}
    plain |= {
        "estaciones": "estación",
        "exámenes": "examen",
        "paraguas": "paraguas",
        "calles": "calle",
        "llaves": "llave",
    }
    return plain.get(word) or word.removesuffix("s")


def test_same_seed_gives_the_same_bytes_everywhere(make: Make) -> None:
    text, held_out = make("phrases", seed=7, count=2000, held_out=200)
    digest = hashlib.sha256(text + held_out).hexdigest()
    assert digest == "f25fc941e3056017ab08c1fcbe0588157a24cada5336fa80959f712463bea736"
    assert make("phrases", seed=7, count=800)[0] == b"".join(text.splitlines(keepends=True)[:800])


def test_every_english_sentence_comes_once(splits: tuple[Pairs, Pairs]) -> None:
    train, held_out = splits
    assert len({english for english, _ in train}) == len(train)
    # A sentence may come of several frames, of which only one is held out.
    assert len({english for english, _ in train} & {english for english, _ in held_out}) < 0.01 * len(held_out)


def test_there_are_as_many_as_it_says(known: Make) -> None:
    train, held_out = map(split, known("phrases"))
    assert len({english for english, _ in train}) == 600_000
    # A sentence may come of several frames, of which only one is held out.
    assert len({english for english, _ in train} & {english for english, _ in held_out}) < 0.01 * len(held_out)


@pytest.mark.parametrize(
    ("english", "spanish"),
    [
        ("Hello.", "Hola."),
        ("hello", "Hola."),
        ("Thank you.", "Gracias."),
        ("Where is the bathroom?", "¿Dónde está el baño?"),
        ("I am tired.", "Estoy cansado."),
        ("Good morning.", "Buenos días."),
        ("I love you.", "Te quiero."),
        ("How are you?", "¿Cómo estás?"),
        ("What is your name?", "¿Cómo te llamas?"),
        ("Where is Tom?", "¿Dónde está Tom?"),
    ],
)
def test_what_people_try_first_is_there(train: Pairs, english: str, spanish: str) -> None:
    assert (english, spanish) in train


def test_some_come_as_people_type_them(splits: tuple[Pairs, Pairs]) -> None:
    for pairs, share in zip(splits, (0.25, 0.1), strict=True):
        typed = [pair for pair in pairs if pair[0] == pair[0].lower().rstrip(".?")]
        assert share - 0.03 < len(typed) / len(pairs) < share + 0.04


@pytest.mark.parametrize(
    "wrong",
    [
        r"(?:when|as soon as) (?:I|you|he|she|we|they|it)\.(?!\w)",  # a clause without its verb
        r"\bliing\b|\blied (?:down|on)\b|\b(?:grow|hold|set|shut)ed\b|\b(?:set|shut)ing\b",
        r"\b(?:centros|hoteles|habitaciones|pueblos) (?:comercial|doble|individual|barato|pequeño)\b",
        r"\b(?:son|eran|serán) (?!.*[.?!] )[^.?!]*\b(?:fácil|difícil) de\b",
    ],
)
def test_what_was_wrong_once_is_not_there(known: Make, wrong: str) -> None:
    lines = [line for part in known("phrases") for line in part.decode().splitlines()]
    assert [line for line in lines if re.search(wrong, line)] == []


def test_words_of_reserved_combinations_are_trained_on_otherwise(known: Make) -> None:
    train, held_out = (part.decode().splitlines() for part in known("phrases"))
    trained = {word for line in train for word in words(line.partition("\t")[0])}
    # Held-out sentences as people type them have names in lower case, which are reserved or invented.
    said = {
        word for line in held_out if line[0].isupper() for word in re.findall(r"\b[a-z]+\b", line.partition("\t")[0])
    }
    assert len(said) > 800
    assert len(said - trained) <= 2, "words that only the held-out part has, but for invented ones"


def test_marks_pair_and_nothing_is_doubled(train: Pairs) -> None:
    for english, spanish in train:
        assert not re.search(r"  |^ | $| [.,?!]|[<>{}|_=]", english + "\n" + spanish), (english, spanish)
        assert not re.search(r"\b(\w+) \1\b", english.lower().replace("so so", "") + "\n" + spanish.lower()), english
        assert spanish.count("¿") == spanish.count("?"), spanish
        assert spanish.count("¡") == spanish.count("!"), spanish
        if english.endswith(("?", "!")):
            assert spanish.endswith(english[-1]), (english, spanish)
        assert spanish[-1] in ".?!", spanish
        first = spanish.lstrip('¿¡"“$')[0]
        assert first.isupper() or first.isdigit(), spanish


def test_a_and_el_are_contracted(train: Pairs) -> None:
    assert not [spanish for _, spanish in train if re.search(r"\b(a|de) el\b", spanish.lower().replace("él", "ÉL"))]


def test_the_sentences_of_the_everyday_suites_are_kept_apart(known: Make) -> None:
    suites = (DATA / "phrases" / name for name in ("everyday.jsonl", "everyday-kept.jsonl"))
    checks = [json.loads(line) for suite in suites for line in suite.read_text(encoding="utf-8").splitlines()]
    kept = {" ".join(words(check["say"])) for check in checks if "say" in check}
    assert len(kept) == 200
    lines = [english for part in known("phrases") for english, _ in split(part)]
    assert kept & {" ".join(words(one)) for line in lines for one in (line, *re.split(r"(?<=[.?!]) ", line))} == set()


def test_articles_nouns_and_adjectives_agree(train: Pairs) -> None:
    articles = adjectives = 0
    for _, spanish in train:
        said = words(spanish)
        for before, noun, after in zip(said, said[1:], [*said[2:], ""], strict=False):
            gender = "m" if singular(noun) in MASCULINE else "f" if singular(noun) in FEMININE else ""
            if not gender or before not in ARTICLES:
                continue
            assert ARTICLES[before][0] == gender, spanish
            number = ARTICLES[before][1]
            assert noun == "paraguas" or (number == 2) == (noun != singular(noun)), spanish
            articles += 1
            if after in ADJECTIVES:
                assert ADJECTIVES[after] == (gender, number), spanish
                adjectives += 1
    assert articles > 2000
    assert adjectives > 30


def test_predicates_agree_with_their_subjects(train: Pairs) -> None:
    seen = 0
    verbs = "es|son|está|están|era|eran|estaba|estaban"
    pattern = re.compile(rf"^(El|La|Los|Las) (?!agua)(\w+) (?:no )?(?:{verbs})(?: muy| tan| demasiado)? (\w+)\.")
    for _, spanish in train:
        if (found := pattern.match(spanish)) and found[3] in ADJECTIVES:
            assert ADJECTIVES[found[3]] == ARTICLES[found[1].lower()], spanish
            seen += 1
    assert seen > 20


@pytest.mark.parametrize(
    ("english", "spanish"),
    [
        (r"^I (?!like|love|really)", r"^(?!él |ella |ellos )"),
        (r"^She (?!would|likes|loves|really|doesn't like|does not like|'d)", r"\bella\b"),
        (r"^They (?!would|like|love|really|don't like|do not like|'d)", r"\bellos\b"),
        (r"\b(?:not(?! care)|n't|never|nobody)\b", r"\b(?:no|nunca|nadie|casi nunca)\b"),
        (r"^(?![Ii] |[Ww]ill you).*\bwill (?!not)", r"\w(?:é|ás|á|emos|án)\b"),
        (r"^Why ", r"^¿Por qué "),
        (r"^Where (?!did .* go|are you going)", r"^¿(?:D|De d|Ad)ónde "),
        (r"^Who ", r"^¿(?:Q|De q|A q|Con q)uién"),
        (r"(?<!before )\byesterday\b", r"\bayer\b"),
        (r"\btomorrow\b", r"\bmañana\b"),
        (r"\bhungry\b", r"\bhambre\b"),
        (r"^(?:There is|There are) ", r"\bhay\b"),
        (r"\bmine\b", r"\bm[íi][oa]s?\b"),
    ],
)
def test_both_sides_say_the_same(train: Pairs, english: str, spanish: str) -> None:
    said = [pair for pair in train if re.search(english, pair[0]) and not re.search(r"[.?!] ", pair[0])]
    wrong = [pair for pair in said if not re.search(spanish, pair[1], re.IGNORECASE)]
    assert len(said) >= 20
    assert wrong == []


def test_both_languages_name_the_same_people(train: Pairs) -> None:
    for english, spanish in train:
        for name in ("Tom", "Anna", "Carlos", "Lucy") if english[0].isupper() else ():
            assert len(re.findall(rf"\b{name}\b", english)) == len(re.findall(rf"\b{name}\b", spanish)), english


def test_held_out_names_and_combinations_are_never_trained_on(splits: tuple[Pairs, Pairs]) -> None:
    train, held_out = splits
    names = set(words("Felipe George Hugo Oscar Adam Armando Nora Jane Silvia Olivia Grace Ramona"))
    assert not [english for english, _ in train if names & set(words(english))]
    assert names <= {word for english, _ in held_out for word in words(english)}

    def said_of(pairs: Pairs) -> set[tuple[str, str]]:
        """Return the pairs of noun and adjective in predications."""
        pattern = re.compile(r"(?:The|This|That|My|Your) (\w+) (?:is|was)(?: not)?(?: very| too)? (\w+)\.")
        return {(match[1], match[2]) for english, _ in pairs if (match := pattern.fullmatch(english))}

    assert len(said_of(held_out)) > 2
    assert not said_of(train) & said_of(held_out)
