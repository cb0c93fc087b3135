"""`/model`, `/models`, `/show`: which models there are, and which one speaks."""

from tinychat.commands import completing
from tinychat.commands.command import command
from tinychat.commands.results import Architecture, Message, Result, Table
from tinychat.formatting import compact
from tinychat.model.config import ModelConfig
from tinychat.model.diagram import make_diagram
from tinychat.session import Session
from tinychat.store.models import ModelInfo, find_model, list_models, read_info

HOW_TO_TALK = {
    "chat": "say something",
    "completion": "type how a text begins, and it goes on",
    "translation": "type a text to translate",
}


def introduce(info: ModelInfo) -> Message:
    """Says that a model is open, and how to talk to it."""
    return Message((f"{info.summary} is open: {HOW_TO_TALK[info.mode]}",), (info.about,) if info.about else ())


@command(
    "model", "models", "open another one", usage="[NAME]", example="/model smalltalk", aliases=("load",),
    complete=completing.models,
)  # fmt: skip
def model(session: Session, text: str) -> Result:
    """Open a model by its name or folder, and begin a new conversation; without a name, say which one is open."""
    if not text:
        info = session.model
        return Message((info.summary, *filter(None, (info.about,))), (f"in {info.folder}",))
    info = session.choose_model(text)
    session.preload()
    return introduce(info)


@command("models", "models", "list all", aliases=("ls", "list"))
def models(session: Session, text: str) -> Result:
    """List the models there are: bundled ones and your own."""
    here = session.info.folder.resolve() if session.info else None
    rows = (
        (
            "›" if info.folder.resolve() == here else "",
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


@command("show", "models", "what it is made of", usage="[NAME]", aliases=("info",), complete=completing.models)
def show(session: Session, text: str) -> Result:
    """What a model is made of, part by part, and how data flows through it."""
    return describe_model(read_info(find_model(text)) if text else session.model)


def describe_model(info: ModelInfo) -> Architecture:
    """What a model is made of.

    Raises:
        ModelError: its architecture cannot be.
    """
    diagram = make_diagram(ModelConfig.from_dict(info.architecture))
    chosen = (f"{name} {value}" for name, value in info.architecture.items() if value not in (None, False))
    return Architecture(info.summary, diagram, (*filter(None, (info.about,)), ", ".join(chosen), f"in {info.folder}"))


COMMANDS = (model, models, show)
