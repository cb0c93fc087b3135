"""Commands on models, runs and recipes: list them, open one, show its architecture, remove and rename."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tinychat.commands.conversation import is_transcript
from tinychat.commands.registry import Suggestion, command, first_word, split_words, to_name, to_path
from tinychat.commands.results import Architecture, Message, Question, Result, Table
from tinychat.errors import ModelError, UsageError
from tinychat.formats.registry import list_models, open_model
from tinychat.model.config import ModelConfig, make_diagram
from tinychat.session.session import Session
from tinychat.store.housekeeping import Own, check_new_name, find_own, list_own, read_file_facts, remove, rename
from tinychat.store.models import ModelInfo, Models, list_bundled_models
from tinychat.store.names import join_name
from tinychat.textutil import byte_size, compact, count

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
BUNDLED = "bundled"
"""Date that lists show of a model that comes with tinychat."""
UNKNOWN = "–"

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
        name = to_name(text)
        try:
            return opened_message(session.choose_model(name).info)
        except ModelError as error:
            if is_transcript(to_path(name)) or is_transcript(to_path(f"{name}.json")):
                raise ModelError(error.problem, f"`/open {text}` opens the conversation of that name") from None
            raise
    infos, damaged = list_bundled_models()
    if session.info and not any(_is_open(session, info) for info in infos):
        infos.insert(0, session.info)
    rows = [("›" * _is_open(session, info), info.name, MODE_SUMMARIES[info.mode], info.description) for info in infos]
    rows += [("", one.name, DAMAGED, one.error) for one in damaged]
    notes = ("/model NAME opens one · /models lists yours, too · /show says what it is made of",)
    return Table(("", "model", "", "about"), tuple(rows), notes=notes, wraps=True)


def _is_open(session: Session, info: ModelInfo) -> bool:
    return session.info is not None and session.info.folder.resolve() == info.folder.resolve()


@command("models", "models", "list all", aliases=("ls", "list"))
def models(session: Session, text: str) -> Result:
    """List all models, with date, size on disk and validation loss; damaged ones last, with the reason.

    The bundled ones and your own are listed. Losses are in nats per token, so they compare only between models with the
    same tokenizer and text.
    """
    found = list_models()
    marks = ["›" * _is_open(session, info) for info in found.sound] + [""] * len(found.damaged)
    table = models_table(found)
    rows = tuple((mark, *row) for mark, row in zip(marks, table.rows, strict=True))
    notes = ("/model NAME opens one, /train TEXT makes one, /rm NAME removes one",)
    right = tuple(index + 1 for index in table.right)
    return Table(("", *table.columns), rows, right=right, notes=notes, wraps=True)


def models_table(models: Models) -> Table:
    """Return a table of models; of damaged ones, with the reason."""
    columns = ("model", "mode", "tokenizer", "params", "date", "size", "loss", "about")
    sound = [(one, read_file_facts(one)) for one in models.sound]
    rows: list[tuple[str, ...]] = [
        (
            info.name,
            info.mode,
            info.tokenizer_kind,
            compact(info.parameters),
            f"{facts.date:%Y-%m-%d}" if facts.date else BUNDLED,
            byte_size(facts.bytes),
            f"{facts.loss:.3f}" if facts.loss is not None else UNKNOWN,
            info.description,
        )
        for info, facts in sound
    ]
    rows += [(one.name, DAMAGED, "", "", "", "", "", one.error) for one in models.damaged]
    return Table(columns, tuple(rows), right=(3, 5, 6), wraps=True)


@command("show", "models", "what it is made of", usage="[NAME]", aliases=("info",), complete=complete_models)
def show(session: Session, text: str) -> Result:
    """Show the architecture of a model, layer by layer.

    A vector for each token flows down along the line. A layer beside the line
    reads it and adds its result at ⊕; `4 ×` is four such blocks in a row.
    On the right: positions × width of a layer's result, and its parameters.
    """
    return describe_model(open_model(to_name(text)) if text else session.model.info)


def describe_model(info: ModelInfo) -> Architecture:
    """Return the architecture of a model.

    Raises:
        ModelError: If its configuration is invalid.
    """
    diagram = make_diagram(ModelConfig.from_dict(info.architecture))
    hidden = ["window_pattern"] * (not info.architecture.get("attention_window"))
    hidden += [name for name in ("rotary_fraction", "rotary_factor") if info.architecture.get(name) == 1]
    shown = {name: value for name, value in info.architecture.items() if name not in hidden}
    options = (f"{name} {value}" for name, value in shown.items() if value not in (None, False))
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
        return describe_recipe(text, "/train")
    rows = tuple((recipe.name, recipe.about) for recipe in list_recipes())
    return Table(("recipe", "about"), rows, notes=("/recipes NAME shows what a model of it is made of",))


def describe_recipe(name: str, train: str = "tinychat train") -> Architecture:
    """Return the architecture of a recipe's model, the work that the recipe follows, and its training plan.

    The last note is a line that trains one, for whoever reads it; `train` is the command that trains there.

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
    notes.append(f"{train} {source}--recipe {name}")
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


# --- removing and renaming --------------------------------------------------------------------------------------------

YES = "--yes"
"""Flag that skips the question."""


def _complete_own(session: Session, words: list[str]) -> Iterable[Suggestion]:
    """Complete the names of one's own models and runs, without those already typed."""
    return (Suggestion(name) for name in list_own() if name not in words[:-1])


@command("rm", "models", "remove", usage="NAME… [--yes]", example="/rm my-novel", complete=_complete_own)
def rm(session: Session, text: str) -> Result:
    """Remove your own models and their runs, after a question; `--yes` skips it.

    A model and the run that made it have one name and go together. The open model, a run that is training and the
    bundled models stay.
    """
    names, asks = _parse_names(text, "rm")
    if not names:
        raise UsageError("/rm needs a name", "for example `/rm my-novel`; /models and /runs list them")
    return _ask(removal_of(names, session), asks=asks)


def removal_of(names: Sequence[str], session: Session | None = None) -> Question:
    """Return the question whether to remove models and runs, and what removes them.

    Raises:
        ModelError: If there is none of a name, or it is bundled.
        RunError: If a run is training.
        UsageError: If the model is open in the session.
    """
    owns = list({own.name: own for own in map(find_own, join_name(names, list_own()))}.values())
    for own in owns:
        if session is not None and _holds_open_model(session, own):
            raise UsageError(f"{own.name} is open", "`/model NAME` opens another one first")

    def act() -> Message:
        for own in owns:
            remove(own)
        return Message(tuple(f"removed: {own.name}" for own in owns))

    shown = ", ".join(f"{own} ({byte_size(own.bytes)})" for own in owns)
    return Question(f"remove {shown}?", act, refused="nothing is removed")


@command("rename", "models", "another name", usage="OLD NEW [--yes]", example="/rename my-novel Novel",
         complete=first_word(_complete_own))  # fmt: skip
def rename_(session: Session, text: str) -> Result:
    """Rename your own model and its run, after a question; `--yes` skips it.

    Names take letters and digits of any script, `-`, `_`, `.` and inner spaces; one with spaces is put between
    quotation marks.
    """
    names, asks = _parse_names(text, "rename")
    if len(names) != 2:
        raise UsageError("/rename needs two names", "for example `/rename my-novel 'My Novel'`")
    old, new = names
    return _ask(renaming_of(old, new, session), asks=asks)


def renaming_of(old: str, new: str, session: Session | None = None) -> Question:
    """Return the question whether to rename a model and its run, and what renames them.

    Raises:
        ModelError: If there is none of the old name, or it is bundled.
        RunError: If the run is training, or the new name is taken.
        UsageError: If the new name is invalid.
    """
    own = find_own(old)
    name = check_new_name(own, new)

    def act() -> Message:
        if session is None:
            rename(own, name)
        else:
            session.rename_model(own, name)
        return Message((f"{own.name} is now {name}",))

    return Question(f"rename {own} to {name!r}?", act, refused="nothing is renamed")


def _parse_names(text: str, command: str) -> tuple[list[str], bool]:
    """Return the names in the arguments of a command, and whether to ask before it acts."""
    words = split_words(text)
    names = [word for word in words if word != YES]
    if unknown := next((name for name in names if name.startswith("--")), None):
        raise UsageError(f"/{command} has no {unknown}", f"it has {YES}: see /help {command}")
    return names, YES not in words


def _ask(question: Question, *, asks: bool) -> Result:
    return question if asks else question.act()


def _holds_open_model(session: Session, own: Own) -> bool:
    if session.info is None:
        return False
    folder = session.info.folder.resolve()
    return any(folder == one.resolve() or folder.parent == one.resolve() for one in own.folders)


COMMANDS = (model, models, show, rm, rename_)
