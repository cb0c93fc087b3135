"""`/copied`: what of an answer stands word for word in the text that the model was trained on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.commands import completing
from tinychat.commands.arguments import split_words
from tinychat.commands.command import command
from tinychat.commands.inspecting import last_answer
from tinychat.commands.results import Message, Result, Table
from tinychat.errors import SourceError, UsageError
from tinychat.session import Session
from tinychat.store import places
from tinychat.store.models import read_training
from tinychat.textutil import percent

if TYPE_CHECKING:
    from tinychat.corpus.corpus import Passage, SourceCorpus

LEAST = 12
"""characters of a span: shorter ones come again in any two texts of a language"""
SPANS = 8
"""that are shown"""
BUNDLED_TEXT = "smalltalk.jsonl"
"""what the bundled model was trained on: tinychat makes it anew, the same byte for byte"""
RECIPE = "the recipe's own text"
ELSEWHERE = "`/copied FILE` looks in another text"


@command(
    "copied", "inside", "learned by heart?", usage="[TEXT…]", example="/copied my-novel.txt", complete=completing.paths
)
def copied(session: Session, text: str) -> Result:
    """What of the last answer stands word for word in the text that the model was trained on, and where.

    Spans of 12 characters or more are shown, the longest first, each with its first place. Without a text, that of the
    model is looked for where it was.
    """
    from tinychat.corpus.overlap import find_copies

    answer = last_answer(session).answer.strip()
    if not answer:
        raise UsageError("the last answer has no text", "type a prompt first")
    name, training = session.model.name, read_training(session.model.folder)
    corpus = _read(name, training, split_words(text))
    data = training.get("data", {})
    is_own = corpus.fingerprint == data.get("fingerprint")
    share = data["train_tokens"] / data["tokens"] if is_own else 1.0
    least = min(LEAST, len(answer))
    copies = find_copies(answer, _beginning(corpus, share), least)
    notes = []
    if not is_own:
        what = "this is another text than" if text else "the text has changed since"
        notes.append(f"{what} {name} was trained on{'' if text else ' it'}")
    elif share < 1:
        notes.append(f"looked at: the {percent(share, 0)} of the text that {name} was trained on")
    if training.get("from"):
        notes.append(f"{name} was begun from {training['from']['name']}, whose text was not looked at")
    if not copies:
        return Message((f"no {least} characters in a row stand word for word in {corpus.name}",), tuple(notes))
    length = sum(len(copy.text) for copy in copies)
    times = Counter(copy.text for copy in copies)
    first = {copy.text: copy.passage for copy in reversed(copies)}
    rows = [
        (f"{len(span):,}", _place(first[span]), repr(span) + (f", {count} times" if count > 1 else ""))
        for span, count in times.items()
    ]
    more = f", and {len(rows) - SPANS} more" if len(rows) > SPANS else ""
    return Table(
        ("characters", "first place", "span"),
        tuple(rows[:SPANS]),
        f"{percent(length / len(answer), 0)} of the answer stands word for word in {corpus.name}",
        right=(0,),
        notes=(f"spans of {least} characters or more{more}", *notes),
    )


def _read(model: str, training: Mapping[str, Any], named: list[str]) -> "SourceCorpus":
    """The text that is named, or that of a model.

    Raises:
        UsageError: it is not at hand.
    """
    from tinychat.corpus.corpus import TextCorpus
    from tinychat.corpus.readers import InlineTexts
    from tinychat.corpus.sources import read_sources

    own = training.get("recipe", {}).get("data", {})
    if own.get("texts") and not named:
        return TextCorpus(RECIPE, own.get("mode") or "completion", [InlineTexts(tuple(own["texts"]), RECIPE)])
    sources = named or list(own.get("sources", ()))
    if not sources:
        raise UsageError(f"{model} does not tell what it was trained on", ELSEWHERE)
    facts = {} if named else {key: own.get(key) for key in ("column", "field", "mode")}
    for source in sources:
        _check_is_here(source)
    try:
        return read_sources(sources, cache=places.datasets_folder(), mirror=places.mirror(), **facts)
    except SourceError:
        if named:
            raise
        where = ", ".join(sources)
        raise UsageError(f"the text of {model} cannot be read: {where}", _remedy(sources, training)) from None


def _check_is_here(source: str) -> None:
    """Nothing is downloaded for a look."""
    from tinychat.corpus.registry import KNOWN, is_there
    from tinychat.corpus.sources import split_weight

    name = split_weight(source)[0].partition("/")[0]
    if name in KNOWN and not Path(source).expanduser().exists():
        is_made = KNOWN[name].is_made
        mirror = None if is_made else places.mirror()
        if not is_there(KNOWN[name], (mirror or places.datasets_folder()) / name):
            remedy = f"`tinychat data make {name}` makes it" if is_made else f"`tinychat data get {name}` fetches it"
            raise UsageError(f"the data set {name} is not here", remedy)


def _remedy(sources: Sequence[str], training: Mapping[str, Any]) -> str:
    if list(sources) == [BUNDLED_TEXT]:
        count, seed = training["data"]["documents"], training["seed"]
        make = f"tinychat data make smalltalk --count {count} --seed {seed} --out corpus"
        return f"`{make}` makes it anew; then `/copied corpus/train.jsonl`"
    return ELSEWHERE


def _beginning(corpus: "SourceCorpus", share: float) -> "Iterator[Passage]":
    """The passages of as much of each text as a model was trained on; the rest measured it."""
    for source in corpus.sources:
        end = round(source.corpus.characters * share)
        for passage in source.corpus.passages():
            if passage.before >= end:
                break
            room = end - passage.before
            yield passage if len(passage.text) <= room else passage._replace(text=passage.text[:room])


def _place(passage: "Passage") -> str:
    """`input.txt, line 1,234`."""
    file = Path(passage.file)
    return f"{file.name if file.is_absolute() else file}, {passage.unit} {passage.number:,}"


COMMANDS = (copied,)
