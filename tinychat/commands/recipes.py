"""`/recipes`: what models can be trained like, and what each is made of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tinychat.commands.command import Suggestion, command
from tinychat.commands.results import Architecture, Result, Table
from tinychat.model.diagram import make_diagram
from tinychat.session import Session
from tinychat.textutil import count

if TYPE_CHECKING:
    from tinychat.train.recipe import Recipe

SIZES = ("vocab_size", "n_layer", "n_head", "d_model", "context")
"""What must be said before shapes and parameters are known."""
EXAMPLE_VOCABULARY = 65


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.train.recipe import list_recipes

    if len(words) == 1:
        yield from (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())


@command("recipes", "training", "to train by", usage="[NAME]", example="/recipes shakespeare", complete=_complete)
def recipes(session: Session, text: str) -> Result:
    """List the recipes, or show what the model of one is made of: `/train --recipe NAME` trains it."""
    from tinychat.train.recipe import list_recipes

    if text:
        return describe_recipe(text)
    rows = tuple((recipe.name, recipe.about) for recipe in list_recipes())
    return Table(("recipe", "about"), rows, notes=("/recipes NAME shows what a model of it is made of",))


def describe_recipe(name: str) -> Architecture:
    """What the model of a recipe is made of, whose work that follows, and how it is trained.

    Raises:
        RunError: there is none.
        SettingError: a field cannot take its value.
        ModelError: two choices of it do not fit each other.
    """
    from tinychat.train.recipe import find_recipe, load_recipe

    info, recipe = find_recipe(name), load_recipe(name)
    notes = [f"after {info.origin}"] if info.origin else []
    left_open = [size for size in SIZES if getattr(recipe, size) is None]
    if left_open:
        notes.append(f"chosen from the text, the machine and the time: {', '.join(left_open)}")
    notes.append(_training(recipe))
    text = "" if recipe.sources or recipe.texts else "TEXT "
    notes.append(f"train it: train {text}--recipe {name}")
    vocab_size = recipe.vocab_size or EXAMPLE_VOCABULARY
    config = recipe.model_config(vocab_size, vocab_size if recipe.mode == "translation" else None)
    return Architecture(f"{info.name}: {info.about}", make_diagram(config), tuple(notes), is_sized=not left_open)


def _training(recipe: "Recipe") -> str:
    """`tinyshakespeare · adam · 20 epochs · 64 windows a step · dropout 0.1`."""
    words = [*(recipe.sources or (f"{len(recipe.texts)} texts of its own",)), recipe.optimizer]
    row = "document" if recipe.rows == "documents" else "pair" if recipe.mode == "translation" else "window"
    if recipe.epochs is not None:
        words.append(count(recipe.epochs, "epoch"))
    elif recipe.steps is not None:
        words.append(count(recipe.steps, "step"))
    elif recipe.minutes is not None:
        words.append(f"{recipe.minutes:g} minutes")
    if recipe.batch_size is not None:
        words.append(f"{count(recipe.batch_size, row)} a step")
    if recipe.dropout is not None:
        words.append(f"dropout {recipe.dropout:g}")
    return " · ".join(words)


COMMANDS = (recipes,)
