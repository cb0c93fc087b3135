"""`/copied`: what stands word for word in an answer and the training text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.commands.conversation import explain_no_tokens
from tinychat.commands.registry import command, complete_paths, split_words
from tinychat.commands.results import Message, Result, Table
from tinychat.errors import SourceError, UsageError
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import read_training
from tinychat.textutil import percent
from tinychat.untrusted import expand_home

if TYPE_CHECKING:
    from tinychat.corpus.corpus import Passage, SourceCorpus

HOW_TO_READ_SPANS = "long ones were learned by heart"
"""How to read the table: a line below it."""
MIN_SPAN = 12
"""Number of characters of a span; any two texts of a language share shorter ones."""
MAX_SPANS = 8
BUNDLED_TEXT = "smalltalk.jsonl"
"""Training text of the bundled model, which tinychat can generate again byte for byte."""
RECIPE = "the recipe's own text"
ELSEWHERE = "`/copied FILE` looks in another text"


@command(
    "copied", "inside", "learned by heart?", usage="[TEXT…]", example="/copied my-novel.txt", complete=complete_paths
)
def copied(session: Session, text: str) -> Result:
    """Find what stands word for word in the last answer and the training text.

    Spans of 12 characters or more are listed, longest first, each with the place
    where the text has it first. Long ones were learned by heart, not made up.
    TEXT is another text to search, if the training text is no longer there.
    """
    from tinychat.corpus.overlap import find_copies

    if not session.turns:
        raise explain_no_tokens(session, "there is no answer to look into yet")
    answer = next(filter(None, (turn.answer.strip() for turn in reversed(session.turns))), "")
    if not answer:
        raise UsageError("the last answer has no text", "/retry answers its prompt again")
    name, training = session.model.name, read_training(session.model.info.folder)
    corpus = _read_corpus(name, training, split_words(text))
    data = training.get("data", {})
    is_own = corpus.fingerprint == data.get("fingerprint")
    fraction = data.get("train_tokens", 1) / max(1, data.get("tokens", 1)) if is_own else 1.0
    min_length = min(MIN_SPAN, len(answer))
    copies = find_copies(answer, _training_passages(corpus, fraction), min_length)
    notes = []
    if not is_own:
        reason = "this is another text than" if text else "the text has changed since"
        notes.append(f"{reason} {name} was trained on{'' if text else ' it'}")
    elif fraction < 1:
        notes.append(f"looked at: the {percent(fraction, 0)} of the text that {name} was trained on")
    if training.get("from"):
        notes.append(f"{name} was begun from {training['from'].get('name')}, whose text was not looked at")
    if not copies:
        return Message((f"no {min_length} characters in a row stand word for word in {corpus.name}",), tuple(notes))
    length = sum(len(copy.text) for copy in copies)
    times = Counter(copy.text for copy in copies)
    first = {copy.text: copy.passage for copy in reversed(copies)}
    rows = [
        (f"{len(span):,}", _location(first[span]), repr(span) + (f", {count} times" if count > 1 else ""))
        for span, count in times.items()
    ]
    more = f", and {len(rows) - MAX_SPANS} more" if len(rows) > MAX_SPANS else ""
    notes.insert(0, f"spans of {min_length} characters or more{more} · {HOW_TO_READ_SPANS}")
    title = f"{percent(length / len(answer), 0)} of the answer stands word for word in {corpus.name}"
    return Table(("characters", "first place", "span"), tuple(rows[:MAX_SPANS]), title, right=(0,), notes=tuple(notes))


def _read_corpus(model: str, training: Mapping[str, Any], typed: list[str]) -> "SourceCorpus":
    """Read the typed sources or, without any, those that a model was trained on."""
    from tinychat.corpus.corpus import TextCorpus
    from tinychat.corpus.readers import InlineTexts
    from tinychat.corpus.sources import read_sources

    own = training.get("recipe", {}).get("data", {})
    if own.get("texts") and not typed:
        return TextCorpus(RECIPE, own.get("mode") or "completion", [InlineTexts(tuple(own["texts"]), RECIPE)])
    sources = typed or list(own.get("sources", ()))
    if not sources:
        raise UsageError(f"{model} does not tell what it was trained on", ELSEWHERE)
    options = {} if typed else {key: own.get(key) for key in ("column", "field", "mode")}
    for source in sources:
        _check_available(source)
    try:
        if not typed:
            _check_finite(sources)
        return read_sources(sources, cache=paths.datasets_folder(), mirror=paths.mirror(), **options)
    except SourceError:
        if typed:
            raise
        where = ", ".join(sources)
        raise UsageError(f"the text of {model} cannot be read: {where}", _remedy(sources, training)) from None


def _check_available(source: str) -> None:
    """Check that a data set is on this machine: `/copied` downloads nothing."""
    from tinychat.corpus.registry import KNOWN, is_complete
    from tinychat.corpus.sources import split_weight

    name = split_weight(source)[0].partition("/")[0]
    known = KNOWN.get(name)
    if known and not expand_home(source).exists():
        mirror = None if known.is_generated else paths.mirror()
        if not is_complete(known, (mirror or paths.datasets_folder()) / name):
            verb, does = ("make", "makes") if known.is_generated else ("get", "fetches")
            raise UsageError(f"the data set {name} is not here", f"`tinychat data {verb} {name}` {does} it")


def _check_finite(sources: Sequence[str]) -> None:
    """Check that no source of a model, which may be another person's, is a stream: reading one may wait for ever.

    Raises:
        SourceError: If one is standard input, a pipe or a device.
    """
    from tinychat.corpus.sources import STDIN, check_is_file, split_weight

    for name in (split_weight(source)[0] for source in sources):
        if name == STDIN:
            raise SourceError("standard input is no text of a model")
        path = expand_home(name)
        if path.exists() and not path.is_dir():
            check_is_file(path)


def _remedy(sources: Sequence[str], training: Mapping[str, Any]) -> str:
    count, seed = training.get("data", {}).get("documents"), training.get("seed")
    if list(sources) == [BUNDLED_TEXT] and None not in (count, seed):
        make = f"tinychat data make smalltalk --count {count} --seed {seed} --out corpus"
        return f"`{make}` makes it anew; then `/copied corpus/train.jsonl`"
    return ELSEWHERE


def _training_passages(corpus: "SourceCorpus", fraction: float) -> "Iterator[Passage]":
    """Yield the passages in the first `fraction` of each text, leaving out the held-out rest."""
    for source in corpus.sources:
        end = round(source.corpus.characters * fraction)
        for passage in source.corpus.passages():
            if passage.before >= end:
                break
            room = end - passage.before
            yield passage if len(passage.text) <= room else passage._replace(text=passage.text[:room])


def _location(passage: "Passage") -> str:
    """Return the location of a passage: `input.txt, line 1,234`."""
    file = Path(passage.file)
    return f"{file.name if file.is_absolute() else file}, {passage.unit} {passage.number:,}"


COMMANDS = (copied,)
