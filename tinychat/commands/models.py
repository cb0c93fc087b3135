"""`/model`, `/models`, `/show`: which models there are, and which one speaks."""

from tinychat.commands import completing
from tinychat.commands.command import command
from tinychat.commands.results import Architecture, Message, Result, Table
from tinychat.model.config import ModelConfig
from tinychat.model.diagram import make_diagram
from tinychat.session import Session
from tinychat.store.models import ModelInfo, find_model, list_bundled_models, list_models, read_info
from tinychat.textutil import compact

HOW_TO_TALK = {
    "chat": "say something",
    "completion": "type how a text begins, and it goes on",
    "translation": "type a text to translate",
}
WHAT_IT_DOES = {"chat": "answers in turns", "completion": "goes on with a text", "translation": "translates"}


def introduce(info: ModelInfo) -> Message:
    """Says that a model is open, and how to talk to it."""
    return Message((f"{info.summary} is open: {HOW_TO_TALK[info.mode]}",), (info.about,) if info.about else ())


@command(
    "model", "models", "open another one", usage="[NAME]", example="/model smalltalk", aliases=("load",),
    complete=completing.models,
)  # fmt: skip
def model(session: Session, text: str) -> Result:
    """Open a model by its name or folder, and begin a new conversation; without a name, say what there is to open.

    That is the models that come with tinychat, and the one that is open.
    """
    if not text:
        return _offer(session)
    info = session.choose_model(text)
    session.preload()
    return introduce(info)


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
