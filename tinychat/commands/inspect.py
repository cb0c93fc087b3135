"""Looking into answers: why a token was chosen, how likely a text is, what tokens it is made of, what heads look at and
layers say, and what was learned by heart.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.commands.conversation import branch_at
from tinychat.commands.registry import command, complete_paths, parse_number, parse_token, split_words, unquote
from tinychat.commands.results import (
    Answer,
    Bar,
    Bars,
    HeatMap,
    HeatMaps,
    Message,
    Result,
    Shaded,
    SmallMap,
    Table,
    Walk,
)
from tinychat.config.settings import Settings, describe_sampling
from tinychat.errors import SourceError, UsageError
from tinychat.events import Token
from tinychat.generate.engine import Request, TokenProbability, window_start
from tinychat.generate.introspection import Head
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import read_training
from tinychat.textutil import count, percent, visible
from tinychat.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tinychat.corpus.corpus import Passage, SourceCorpus

BARS = 8
"""alternatives shown"""

CROSS = "cross"
"""the word for attention to the encoder"""
FINEST = 96
"""rows and columns that small maps have at most; a screen has hardly more"""
NEWEST = 256
"""rows of a whole map, at most"""
NOTABLE = 0.3
"""the share from which on a head is named for what it looks at"""
WORTH_A_WORD = 0.05
"""the share from which on it is told of a head that is shown alone"""
CANDIDATES = 5
"""tokens of each row of `/lens`, at most"""
WORTH_NAMING = 0.001
"""the probability of all of these but the first, at least"""

LEAST = 12
"""characters of a span: shorter ones come again in any two texts of a language"""
SPANS = 8
"""that are shown"""
BUNDLED_TEXT = "smalltalk.jsonl"
"""what the bundled model was trained on: tinychat makes it anew, the same byte for byte"""
RECIPE = "the recipe's own text"
ELSEWHERE = "`/copied FILE` looks in another text"


@command("why", "inside", "the odds of a token", usage="[N]", example="/why 5")
def why(session: Session, text: str) -> Result:
    """How likely the model found the Nth token of the last answer, and what else it might have said.

    Without N, the last one; -2 is the last but one. The probabilities are the model's own, and those after temperature
    and filters as the token was drawn. ←/→ walk through the answer; ↑/↓ mark a token, and Enter goes on from there
    with that one.
    """
    turn = last_answer(session)
    odds_at = cache(lambda position: _odds(session, turn, position))

    def at(position: int) -> Bars:
        return _bars(session, turn, position, odds_at(position))

    def choose(position: int, bar: int) -> Answer:
        return branch_at(session, turn, position, [_shown(odds_at(position), turn.tokens[position])[bar].id])

    count = len(turn.tokens)
    return Walk(parse_token(text, count, "why"), count, at, choose)


@command("color", "inside", "shaded by surprise", aliases=("colour",))
def color(session: Session, text: str) -> Result:
    """The last answer again, each token shaded by how likely the model found it.

    Under it a line of how surprising each token was, and one of how open it was what would come: the entropy.
    """
    turn, model = last_answer(session), session.model
    given = [(turn.given, None)] if turn.given else []
    entropies: list[float] = []
    if model.prompt_encoder.source_tokenizer is None:
        count = len(turn.tokens)
        entropies = model.engine.entropies(model.ids_before(turn, count))[-count:]
    return _shaded([*given, *((token.text, token.logprob) for token in turn.tokens)], entropies)


@command("score", "inside", "how likely a text is", usage="TEXT", example="/score to be or not")
def score(session: Session, text: str) -> Result:
    """How likely the model finds a text: perplexity, bits per character, and each token shaded by it.

    The text stands by itself, as the beginning of a document; in a chat, as the first thing said. What no token stands
    before is not predicted and does not count.
    """
    text = unquote(text)
    if not text:
        raise UsageError("/score needs a text", "for example `/score to be or not`")
    model = session.model
    if model.prompt_encoder.source_tokenizer is not None:
        raise UsageError("a translation model has no odds for a text alone", "/why tells those of its answers")
    ids = model.prompt_encoder.encode_text(text)
    if len(ids) < 2:
        raise UsageError(f"nothing can be predicted in {text!r}: it is one token or none", "give a longer text")
    decoder = model.tokenizer.stream()
    texts = [decoder.push(id) for id in ids]
    texts[-1] += decoder.flush()
    logprobs = [None, *model.engine.score(ids)]
    return _shaded(zip(texts, logprobs, strict=True), model.engine.entropies(ids), _unknown(model, text))


@command(
    "tokens", "inside", "the pieces of a text", usage="[TEXT]", example="/tokens to be or not", aliases=("tokenize",)
)
def tokens(session: Session, text: str) -> Result:
    """The pieces into which the model's tokenizer cuts a text, with their ids; without a text, the last prompt."""
    if not text:
        if not session.turns:
            raise UsageError("there is no text to cut", "for example `/tokens to be or not`")
        text = session.turns[-1].prompt
    pieces = session.model.source_tokenizer.pieces(text)
    notes = (f"{len(pieces):,} tokens for {len(text):,} characters", *_unknown(session.model, text))
    return Message(("  ".join(f"{piece!r} {id}" for piece, id in pieces),), notes)


def _unknown(model: OpenModel, text: str) -> tuple[str, ...]:
    unknown = model.source_tokenizer.unknown(text)
    return ("unknown to this model, left out: " + " ".join(map(repr, unknown)),) if unknown else ()


def last_answer(session: Session) -> Turn:
    """Return the newest turn in which the model has said something."""
    turn = next((turn for turn in reversed(session.turns) if turn.tokens), None)
    if turn is None:
        raise UsageError("there is no answer to look into yet", "type a prompt first")
    return turn


def _settings_at(session: Session, turn: Turn, position: int) -> Settings:
    return turn.settings_at(position) or session.settings.current


def _odds(session: Session, turn: Turn, position: int) -> list[TokenProbability]:
    """Return every token that could have come at a position (from 0) of an answer, the likeliest first.

    The model is asked anew, for that position alone, so that making answers costs nothing extra.
    """
    model, settings = session.model, _settings_at(session, turn, position)
    ids, source = model.ids_before(turn, position), model.prompt_encoder.encode_source(turn.prompt)
    return model.engine.probabilities(Request(0, ids, position, settings, seed=0, source=source))


def _shown(odds: list[TokenProbability], token: Token) -> list[TokenProbability]:
    """The likeliest, and the one that was chosen."""
    return odds[:BARS] + [one for one in odds[BARS:] if one.id == token.id]


def _bars(session: Session, turn: Turn, position: int, odds: list[TokenProbability]) -> Bars:
    rank, chosen = next((rank, one) for rank, one in enumerate(odds, 1) if one.id == turn.tokens[position].id)
    entropy = -sum(math.exp(one.logprob) * one.logprob for one in odds) / math.log(2)
    name = session.model.tokenizer.token_text
    shown = _shown(odds, turn.tokens[position])
    texts = [token.text for token in turn.tokens]
    return Bars(
        f"token {position + 1} of {len(texts)} · rank {rank:,} of {len(odds):,} · log-probability {chosen.logprob:z.2f}"
        f" · entropy {entropy:z.1f} bits",
        tuple(Bar(repr(name(one.id)), math.exp(one.logprob), one is chosen, one.probability) for one in shown),
        (f"before and after {' · '.join(describe_sampling(_settings_at(session, turn, position)))}",),
        ((turn.given or "") + "".join(texts[:position]), texts[position], "".join(texts[position + 1 :])),
    )


def _shaded(
    tokens: Iterable[tuple[str, float | None]], entropies: Sequence[float], notes: tuple[str, ...] = ()
) -> Shaded:
    """Tokens and their log-probabilities as a shaded text, with entropies (nats), and what these say of all of it.

    A token that holds only a part of a character adds to the surprise of the one that completes it.
    """
    pieces: list[tuple[str, float | None]] = []
    logprobs: list[float] = []
    characters, waiting = 0, 0.0
    for text, logprob in tokens:
        if logprob is None:
            pieces += [(text, None)] if text else []
            continue
        logprobs.append(logprob)
        characters += len(text)
        waiting -= logprob / math.log(2)
        if text:
            pieces.append((text, waiting))
            waiting = 0.0
    loss = -sum(logprobs) / len(logprobs)
    facts = [f"perplexity {math.exp(loss):,.2f}" if loss < 700 else "perplexity inf"]
    if characters:
        facts.append(f"{loss / math.log(2) * len(logprobs) / characters:.3f} bits/char")
    facts.append(count(len(logprobs), "token"))
    return Shaded(tuple(pieces), (" · ".join(facts), *notes), tuple(entropy / math.log(2) for entropy in entropies))


# --- what the heads of a model look at, and what each of its layers would say ----------------------------------------


@command("attention", "inside", "what heads look at", usage="[LAYER [HEAD]]", example="/attention 2 1")
def attention(session: Session, text: str) -> Result:
    """What the heads of attention looked at in the last prompt and answer: of all layers, of one, or of one head.

    A map has a row for each token, in which its columns are the tokens that it may look at: the brighter, the more it
    does. A head is named for what most of its weight goes to: the first token, the previous one, itself, the same one
    where it came before, or what followed that (induction); else for how many tokens it is spread over. `cross` behind
    the numbers shows how a translation model looks at what it translates.
    """
    from tinychat.model.config import ModelConfig

    model, words = session.model, text.lower().split()
    cross = words[-1:] == [CROSS]
    config = ModelConfig.from_dict(model.info.architecture)
    if cross and not config.encoder_decoder:
        raise UsageError(f"{model.name} has no encoder to look at", f"`{CROSS}` is for translation models")
    numbers = words[:-1] if cross else words
    if len(numbers) > 2:
        raise UsageError(f"/attention takes a layer and a head, not {text!r}", "for example `/attention 2 1`")
    layer, head = _index(numbers[:1], config.n_layer, "layer"), _index(numbers[1:], config.n_head, "head")
    turn = last_answer(session)
    if layer is None or head is None:
        return _small_maps(model, turn, layer, cross)
    return _whole_map(model, turn, layer, head, cross)


@command("lens", "inside", "what each layer says", usage="[N]", example="/lens 5")
def lens(session: Session, text: str) -> Result:
    """What each layer would have said at the Nth token of the last answer: a logit lens. Without N, at the last one.

    The head of the model reads what stands in the residual stream after each layer; the last row is what the model
    says. Where that is mixed with counts of n-grams and matches, each has its row, with its share in the mixture.
    """
    turn, model = last_answer(session), session.model
    position = parse_token(text, len(turn.tokens), "lens")
    name, said = model.tokenizer.token_text, turn.tokens[position]
    ids, source = model.ids_before(turn, position), model.prompt_encoder.encode_source(turn.prompt)
    voices = model.engine.lens(ids, said.id, source=source, likeliest=CANDIDATES)
    mixed = any(voice.share is not None for voice in voices)
    rows = []
    for voice in voices:
        share = ("" if voice.share is None else _percent(voice.share),) if mixed else ()
        shown = [one for rank, one in enumerate(voice.likeliest) if not rank or one[1] >= WORTH_NAMING]
        likeliest = " · ".join(f"{name(id)!r} {_percent(probability)}" for id, probability in shown)
        told = (_percent(voice.probability), f"{voice.rank:,}") if voice.likeliest else ("", "")
        rows.append((voice.part, *share, *told, likeliest or "nothing in sight is the same"))
    notes = ["each layer as if it were the last; before temperature and filters"]
    if mixed:
        notes.append("the mixture of the last layer, counts and matches is what the model says")
    return Table(
        ("", *(("share",) if mixed else ()), repr(name(said.id)), "rank", "likeliest"),
        tuple(rows),
        f"token {position + 1} of {len(turn.tokens)}: {name(said.id)!r}",
        right=tuple(range(1, 4 if mixed else 3)),
        notes=tuple(notes),
    )


def _small_maps(model: OpenModel, turn: Turn, layer: int | None, cross: bool) -> HeatMaps:
    """The heads of all layers, or of one."""
    ids = model.ids_before(turn, len(turn.tokens))
    source = model.prompt_encoder.encode_source(turn.prompt)
    layers = model.engine.heads(ids, source=source, layer=layer, cross=cross, cells=FINEST)
    what = _sequence(model, ids)
    if cross:
        what += f" look at the {len(source or ())} of the prompt"
    grid = tuple(
        tuple(
            SmallMap(f"{number} {index} {_pattern(head)}", _seen(head.cells, cross))
            for index, head in enumerate(heads, 1)
        )
        for number, heads in enumerate(layers, 1 if layer is None else layer + 1)
    )
    if layer is None:
        note = "a row for each layer; `/attention LAYER` shows one larger"
        return HeatMaps(f"attention, by layer and head: {what}", grid, (note,))
    return HeatMaps(
        f"layer {layer + 1}, by head: {what}", grid, (f"`/attention {layer + 1} HEAD` shows one with its tokens",)
    )


def _sequence(model: OpenModel, ids: Sequence[int]) -> str:
    """How many tokens there are, or how many of them the model still sees."""
    start = window_start(len(ids), model.engine.context_length)
    return f"the newest {len(ids) - start:,} of {len(ids):,} tokens" if start else f"{len(ids):,} tokens"


def _pattern(head: Head) -> str:
    """What a head looks at, in two words."""
    word, share = _patterns(head)[0]
    return f"{word} {percent(share, 0)}" if share >= NOTABLE else f"spread over {2**head.entropy:.0f}"


def _patterns(head: Head) -> list[tuple[str, float]]:
    """What heads are known to look at, the largest share first."""
    shares = {
        "first": head.first,
        "previous": head.previous,
        "itself": head.itself,
        "same": head.same,
        "induction": head.followed,
    }
    return sorted(shares.items(), key=lambda pattern: -pattern[1])


def _seen(cells: Sequence[Sequence[float]], cross: bool) -> tuple[tuple[float, ...], ...]:
    """The cells that a row may look at: where tokens look at themselves, those up to its own."""
    ahead = 0 if cross else len(cells[0]) - len(cells)
    return tuple(tuple(row if cross else row[: ahead + index]) for index, row in enumerate(cells, 1))


def _whole_map(model: OpenModel, turn: Turn, layer: int, head: int, cross: bool) -> HeatMap:
    """One head, with the tokens."""
    ids = model.ids_before(turn, len(turn.tokens))
    source = model.prompt_encoder.encode_source(turn.prompt)
    told = model.engine.heads(ids, source=source, layer=layer, cross=cross, cells=1)[0][head]
    cells = model.engine.attention(ids, layer, head, source=source, cross=cross, newest=NEWEST)
    window = ids[window_start(len(ids), model.engine.context_length) :]
    labels = _labels(model.tokenizer, window)
    columns = _labels(model.source_tokenizer, source) if cross and source else labels
    facts = [f"{word} {percent(share, 0)}" for word, share in _patterns(told) if share >= WORTH_A_WORD]
    if not cross:
        facts.append(f"{told.distance:.1f} tokens back")
    return HeatMap(
        " · ".join([f"layer {layer + 1} head {head + 1}", *facts, f"entropy {told.entropy:z.1f} bits"]),
        labels[len(labels) - len(cells) :],
        columns,
        _seen(cells, cross),
        marked=max(0, len(cells) - len(turn.tokens)),
        notes=("a row looks at columns, to say the next row",),
    )


def _labels(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(visible(tokenizer.token_text(id)) for id in ids)


def _percent(share: float) -> str:
    return percent(share, 1 if share < 0.0995 else 0)


def _index(words: Sequence[str], count: int, name: str) -> int | None:
    """A layer or a head, from 0; None where none is given."""
    if not words:
        return None
    (word,) = words
    error = UsageError(f"there is no {name} {word}", f"the {name}s of this model are 1 to {count}")
    return parse_number(word, 1, count, error) - 1


# --- what of an answer stands word for word in the text that the model was trained on --------------------------------


@command(
    "copied", "inside", "learned by heart?", usage="[TEXT…]", example="/copied my-novel.txt", complete=complete_paths
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
    name, training = session.model.name, read_training(session.model.info.folder)
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
        return read_sources(sources, cache=paths.datasets_folder(), mirror=paths.mirror(), **facts)
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
        mirror = None if is_made else paths.mirror()
        if not is_there(KNOWN[name], (mirror or paths.datasets_folder()) / name):
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


COMMANDS = (why, color, score, tokens, attention, lens, copied)
