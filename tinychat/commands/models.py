"""Which models there are and which one speaks, what models can be trained like, and what each is made of."""

from typing import TYPE_CHECKING

from tinychat.commands.registry import command, complete_models, complete_recipes
from tinychat.commands.results import Architecture, Message, Result, Table
from tinychat.model.config import ModelConfig
from tinychat.model.diagram import make_diagram
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, find_model, list_bundled_models, list_models, read_info
from tinychat.textutil import compact, count

if TYPE_CHECKING:
    from tinychat.train.recipe import Recipe

HOW_TO_TALK = {
    "chat": "say something",
    "completion": "type how a text begins, and it goes on",
    "translation": "type a text to translate",
}
WHAT_IT_DOES = {"chat": "answers in turns", "completion": "goes on with a text", "translation": "translates"}

SIZES = ("vocab_size", "n_layer", "n_head", "d_model", "context_length")
"""What must be said before shapes and parameters are known."""
EXAMPLE_VOCABULARY = 65


def introduce(info: ModelInfo) -> Message:
    """Says that a model is open, and how to talk to it."""
    return Message((f"{info.summary} is open: {HOW_TO_TALK[info.mode]}",), (info.about,) if info.about else ())


@command(
    "model", "models", "open another one", usage="[NAME]", example="/model smalltalk", aliases=("load",),
    complete=complete_models,
)  # fmt: skip
def model(session: Session, text: str) -> Result:
    """Open a model by its name or folder, and begin a new conversation; without a name, say what there is to open.

    That is the models that come with tinychat, and the one that is open.
    """
    if not text:
        return _offer(session)
    return introduce(session.choose_model(text).info)


def _offer(session: Session) -> Table:
    """The bundled models and the one that is open, with what each is for."""
    offered = list_bundled_models()
    if session.info and not any(is_open(session, info) for info in offered):
        offered.insert(0, session.info)
    rows = (("›" * is_open(session, info), info.name, WHAT_IT_DOES[info.mode], info.about) for info in offered)
    notes = ("/model NAME opens one · /models lists yours, too · /show says what it is made of",)
    return Table(("", "model", "", "about"), tuple(rows), notes=notes)


def is_open(session: Session, info: ModelInfo) -> bool:
    """Whether it is the model at hand."""
    return session.info is not None and session.info.folder.resolve() == info.folder.resolve()


@command("models", "models", "list all", aliases=("ls", "list"))
def models(session: Session, text: str) -> Result:
    """List the models there are: bundled ones and your own."""
    rows = (
        (
            "›" * is_open(session, info),
            info.name,
            info.mode,
            info.tokenizer_kind,
            compact(info.parameters),
            info.about,
        )
        for info in list_models()
    )
    columns = ("", "model", "mode", "tokenizer", "parameters", "about")
    return Table(columns, tuple(rows), right=(4,), notes=("/model NAME opens one, /train TEXT makes one",))


@command("show", "models", "what it is made of", usage="[NAME]", aliases=("info",), complete=complete_models)
def show(session: Session, text: str) -> Result:
    """What a model is made of, part by part, and how data flows through it."""
    return describe_model(read_info(find_model(text)) if text else session.model.info)


def describe_model(info: ModelInfo) -> Architecture:
    """What a model is made of.

    Raises:
        ModelError: its architecture cannot be.
    """
    diagram = make_diagram(ModelConfig.from_dict(info.architecture))
    chosen = (f"{name} {value}" for name, value in info.architecture.items() if value not in (None, False))
    return Architecture(info.summary, diagram, (*filter(None, (info.about,)), ", ".join(chosen), f"in {info.folder}"))


@command(
    "recipes", "training", "to train by", usage="[NAME]", example="/recipes shakespeare", complete=complete_recipes
)
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
    notes.append(_plan(recipe))
    text = "" if recipe.sources or recipe.texts else "TEXT "
    notes.append(f"train it: train {text}--recipe {name}")
    vocab_size = recipe.vocab_size or EXAMPLE_VOCABULARY
    config = recipe.model_config(vocab_size, vocab_size if recipe.mode == "translation" else None)
    return Architecture(f"{info.name}: {info.about}", make_diagram(config), tuple(notes), is_sized=not left_open)


def _plan(recipe: "Recipe") -> str:
    """`tinyshakespeare · adam · 20 epochs · 64 windows a step · dropout 0.1`."""
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
