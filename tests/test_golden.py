"""What holds for each bundled model that is there: small, in the package, and it says what its card says it did."""

import tomllib
from pathlib import Path

import pytest

from tinychat.origins import Origin
from tinychat.session import Session
from tinychat.store import places
from tinychat.store.models import read_card, read_info, read_training
from tinychat.train.recipe import list_recipes

NAMES = [name for name in ("smalltalk", "tales", "translate") if (places.bundled_models() / name).is_dir()]
LARGEST, ALL = 5_000_000, 15_000_000
"""parameters of one; bytes of all in the repository"""
ROOT = Path(__file__).parent.parent


def folder(name: str) -> Path:
    return places.bundled_models() / name


GREEDY = [
    (name, asked, said)
    for name in NAMES
    for asked, said in read_training(folder(name)).get("greedy", {}).get("answers", [])
]


@pytest.mark.parametrize(("name", "asked", "said"), GREEDY)
def test_it_says_what_it_said_when_it_was_made(name: str, asked: str, said: str) -> None:
    session = Session()
    session.open_model(str(folder(name)))
    most = read_training(folder(name))["greedy"]["max_tokens"]
    session.settings.update({"temperature": 0, "max_tokens": most, "precision": "f32"}, Origin.FLAG)
    list(session.answer(asked))
    assert session.turns[0].answer == said
    assert said.splitlines()[0] in read_card(folder(name))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_made_by_the_recipe_of_its_name(name: str) -> None:
    info = read_info(folder(name))
    assert info.parameters <= LARGEST
    assert info.name == name
    assert name in [recipe.name for recipe in list_recipes()]
    assert read_training(folder(name))["seconds"] < 40 * 60


def test_all_of_them_are_small() -> None:
    assert sum(path.stat().st_size for name in NAMES for path in folder(name).iterdir()) <= ALL


def test_they_come_with_the_package() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    for name in NAMES:
        assert build["wheel"]["force-include"][f"models/{name}"] == f"tinychat/bundled/{name}"
        assert f"models/{name}" in build["sdist"]["include"]


@pytest.mark.parametrize(("name", "figure", "least"), [("translate", "exact_match", 0.9)])
def test_it_is_as_good_as_it_should_be(name: str, figure: str, least: float) -> None:
    if name in NAMES:  # weights come when they are final
        assert read_training(folder(name))["held_out"][figure] >= least
