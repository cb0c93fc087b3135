"""`/recipes` and `/show`: what models can be trained like, and what they are made of."""

import pytest
from scripted import Talk

from tinychat.commands.models import describe_recipe
from tinychat.commands.results import Architecture, Table
from tinychat.errors import RunError
from tinychat.model.config import ModelConfig
from tinychat.model.diagram import make_diagram
from tinychat.train.recipe import RecipeInfo, list_recipes

LONGEST = 64
"""characters: a line of 80, with the longest name before it"""


def test_recipes_are_listed_with_a_line_each(talk: Talk) -> None:
    listed = talk.do("/recipes")
    assert isinstance(listed, Table)
    assert [row[0] for row in listed.rows] == [recipe.name for recipe in list_recipes()]


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.name)
def test_each_says_what_it_is_and_whose_work_it_follows(recipe: RecipeInfo) -> None:
    assert 0 < len(recipe.about) <= LONGEST
    if recipe.source:
        assert all((recipe.title, recipe.author, recipe.year))
        assert recipe.source.startswith("https://")


def test_one_is_shown_with_its_parts_and_where_it_comes_from(talk: Talk) -> None:
    shown = talk.do("/recipes nanogpt-cpu")
    assert isinstance(shown, Architecture)
    assert shown.diagram.parameters == 804_096
    assert shown.notes == (
        'after Andrej Karpathy, "nanoGPT", 2022, https://github.com/karpathy/nanoGPT',
        "tinyshakespeare · adamw · 2,000 steps · 12 windows a step · dropout 0",
        "train it: train --recipe nanogpt-cpu",
    )


def test_one_whose_sizes_are_open_says_so() -> None:
    shown = describe_recipe("default")
    assert not shown.is_sized
    assert "n_layer" in shown.notes[0]
    assert shown.notes[-1] == "train it: train TEXT --recipe default"


def test_one_that_is_not_there_is_refused_with_those_that_are(talk: Talk) -> None:
    with pytest.raises(RunError, match="nonsense") as error:
        talk.do("/recipes nonsense")
    assert "nanogpt-cpu" in error.value.remedy


def test_show_draws_the_model_at_hand(talk: Talk) -> None:
    shown = talk.do("/show")
    assert isinstance(shown, Architecture)
    assert shown.title == "parrot (wordpiece, 3.4M, chat)"
    config = ModelConfig.from_dict(talk.session.model.info.architecture)
    assert shown.diagram == make_diagram(config)
    assert f"context {config.context}" in shown.notes[-2]
    assert shown.notes[-1].startswith("in ")
    assert talk.do("/show other").title.startswith("other ")
