"""Commands on models and recipes: list them, open one, show its architecture."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinychat.commands.registry import Suggestion, command, first_word, to_name
from tinychat.commands.results import Architecture, Message, Result, Table
from tinychat.model.config import ModelConfig, make_diagram
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, Models, find_model, list_bundled_models, list_models, read_info
from tinychat.textutil import compact, count

if TYPE_CHECKING:
    from tinychat.train.recipe import Recipe

MODE_HINTS = {
    "chat": "say something",
    "completion": "type how a text begins, and it goes on",
    "translation": "type a text to translate",
}
MODE_SUMMARIES = {"chat": "answers in turns", "completion": "goes on with a text", "translation": "translates"}

DAMAGED = "damaged"
"""Mode that lists show of a model that cannot be read."""

SIZES = ("vocab_size", "n_layer", "n_head", "d_model", "context_length")
"""Fields of a recipe that shapes and parameter counts depend on."""
EXAMPLE_VOCAB_SIZE = 65
"""Vocabulary size that the diagram of a recipe without one assumes: that of tinyshakespeare's characters."""


def opened_message(info: ModelInfo) -> Message:
    """Return the message that a model is open, and how to use it."""
    notes = (info.description,) if info.description else ()
    return Message((f"{info.summary} is open: {MODE_HINTS[info.mode]}",), notes)


@first_word
def complete_models(session: Session, words: list[str]) -> Iterable[Suggestion]:
    """Complete the name of a model."""
    return (Suggestion(info.name, info.summary.partition(" ")[2]) for info in list_models().sound)


@command(
    "model", "models", "open another one", usage="[NAME]", example="/model smalltalk", aliases=("load",),
    complete=complete_models,
)  # fmt: skip
def model(session: Session, text: str) -> Result:
    """Open a model by its name or folder and begin a new conversation; without a name, list models to open.

    The list has the models that come with tinychat and the open one.
    """
    if text:
        return opened_message(session.choose_model(to_name(text)).info)
    infos, damaged = list_bundled_models()
    if session.info and not any(_is_open(session, info) for info in infos):
        infos.insert(0, session.info)
    rows = [("›" * _is_open(session, info), info.name, MODE_SUMMARIES[info.mode], info.description) for info in infos]
    rows += [("", one.name, DAMAGED, one.error) for one in damaged]
    notes = ("/model NAME opens one · /models lists yours, too · /show says what it is made of",)
    return Table(("", "model", "", "about"), tuple(rows), notes=notes)


def _is_open(session: Session, info: ModelInfo) -> bool:
    return session.info is not None and session.info.folder.resolve() == info.folder.resolve()


@command("models", "models", "list all", aliases=("ls", "list"))
def models(session: Session, text: str) -> Result:
    """List all models: the bundled ones and your own; damaged ones last, with the reason."""
    columns = ("", "model", "mode", "tokenizer", "parameters", "about")
    found = list_models()
    marks = ["›" * _is_open(session, info) for info in found.sound] + [""] * len(found.damaged)
    rows = tuple((mark, *row) for mark, row in zip(marks, model_rows(found), strict=True))
    return Table(columns, rows, right=(4,), notes=("/model NAME opens one, /train TEXT makes one",))


def model_rows(models: Models) -> list[tuple[str, str, str, str, str]]:
    """Return name, mode, tokenizer, size and description of models; of damaged ones, the reason."""
    sound = [(one.name, one.mode, one.tokenizer_kind, compact(one.parameters), one.description) for one in models.sound]
    return [*sound, *((one.name, DAMAGED, "", "", one.error) for one in models.damaged)]


@command("show", "models", "what it is made of", usage="[NAME]", aliases=("info",), complete=complete_models)
def show(session: Session, text: str) -> Result:
    """Show the architecture of a model, layer by layer, with shapes and parameter counts."""
    return describe_model(read_info(find_model(to_name(text))) if text else session.model.info)


def describe_model(info: ModelInfo) -> Architecture:
    """Return the architecture of a model.

    Raises:
        ModelError: If its configuration is invalid.
    """
    diagram = make_diagram(ModelConfig.from_dict(info.architecture))
    options = (f"{name} {value}" for name, value in info.architecture.items() if value not in (None, False))
    notes = (info.description, ", ".join(options), f"in {info.folder}")
    return Architecture(info.summary, diagram, tuple(filter(None, notes)))


@first_word
def complete_recipes(session: Session, words: list[str]) -> Iterable[Suggestion]:
    """Complete the name of a recipe."""
    from tinychat.train.recipe import list_recipes

    return (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())


@command(
    "recipes", "training", "to train by", usage="[NAME]", example="/recipes shakespeare", complete=complete_recipes
)
def recipes(session: Session, text: str) -> Result:
    """List the recipes, or show the architecture that one trains; `/train --recipe NAME` trains it."""
    from tinychat.train.recipe import list_recipes

    if text:
        return describe_recipe(text)
    rows = tuple((recipe.name, recipe.about) for recipe in list_recipes())
    return Table(("recipe", "about"), rows, notes=("/recipes NAME shows what a model of it is made of",))


def describe_recipe(name: str) -> Architecture:
    """Return the architecture of a recipe's model, the work that the recipe follows, and its training plan.

    Raises:
        RunError: If there is no such recipe.
        SettingError: If a field cannot take its value.
        ModelError: If two choices of the architecture contradict each other.
    """
    from tinychat.train.recipe import find_recipe, load_recipe

    info, recipe = find_recipe(name), load_recipe(name)
    notes = [f"after {info.origin}"] if info.origin else []
    if unset := [size for size in SIZES if getattr(recipe, size) is None]:
        notes.append(f"chosen from the text, the machine and the time: {', '.join(unset)}")
    notes.append(_training_plan(recipe))
    source = "" if recipe.sources or recipe.texts else "TEXT "
    notes.append(f"train it: train {source}--recipe {name}")
    vocab_size = recipe.vocab_size or EXAMPLE_VOCAB_SIZE
    config = recipe.model_config(vocab_size, vocab_size if recipe.mode == "translation" else None)
    return Architecture(f"{info.name}: {info.about}", make_diagram(config), tuple(notes), is_sized=not unset)


def _training_plan(recipe: "Recipe") -> str:
    """Summarize how a recipe trains: `tinyshakespeare · adam · 20 epochs · 64 windows a step · dropout 0.1`."""
    words = [*(recipe.sources or (f"{len(recipe.texts)} texts of its own",)), recipe.optimizer]
    row = "document" if recipe.packing is False else "pair" if recipe.mode == "translation" else "window"
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


COMMANDS = (model, models, show)
