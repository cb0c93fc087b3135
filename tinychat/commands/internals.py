"""`/attention` and `/lens`: what the heads of a model look at, and what each of its layers would say."""

from collections.abc import Sequence

from tinychat.commands.branching import token_place
from tinychat.commands.command import command
from tinychat.commands.inspecting import last_answer
from tinychat.commands.results import HeatMap, HeatMaps, Result, SmallMap, Table
from tinychat.conversation import Turn
from tinychat.errors import UsageError
from tinychat.generate.engine import window_start
from tinychat.generate.looking import Head
from tinychat.session import Session
from tinychat.textutil import percent, visible
from tinychat.tokenizer.tokenizer import Tokenizer

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


@command("attention", "inside", "what heads look at", usage="[LAYER [HEAD]]", example="/attention 2 1")
def attention(session: Session, text: str) -> Result:
    """What the heads of attention looked at in the last prompt and answer: of all layers, of one, or of one head.

    A map has a row for each token, in which its columns are the tokens that it may look at: the brighter, the more it
    does. A head is named for what most of its weight goes to: the first token, the previous one, itself, the same one
    where it came before, or what followed that (induction); else for how many tokens it is spread over. `cross` behind
    the numbers shows how a translation model looks at what it translates.
    """
    from tinychat.model.config import ModelConfig

    words = text.lower().split()
    cross = words[-1:] == [CROSS]
    config = ModelConfig.from_dict(session.model.architecture)
    if cross and not config.encoder_decoder:
        raise UsageError(f"{session.model.name} has no encoder to look at", f"`{CROSS}` is for translation models")
    numbers = words[:-1] if cross else words
    if len(numbers) > 2:
        raise UsageError(f"/attention takes a layer and a head, not {text!r}", "for example `/attention 2 1`")
    layer, head = _number(numbers[:1], config.n_layer, "layer"), _number(numbers[1:], config.n_head, "head")
    turn = last_answer(session)
    if layer is None or head is None:
        return _small_maps(session, turn, layer, cross)
    return _whole_map(session, turn, layer, head, cross)


@command("lens", "inside", "what each layer says", usage="[N]", example="/lens 5")
def lens(session: Session, text: str) -> Result:
    """What each layer would have said at the Nth token of the last answer: a logit lens. Without N, at the last one.

    The head of the model reads what stands in the residual stream after each layer; the last row is what the model
    says. Where that is mixed with counts of n-grams and matches, each has its row, with its share in the mixture.
    """
    turn = last_answer(session)
    place = token_place(text, len(turn.tokens), "lens")
    name = session.tokenizer.token_text
    said = turn.tokens[place]
    voices = session.engine.lens(
        session.ids_before(turn, place), said.id, source=session.prompting.source(turn.prompt), likeliest=CANDIDATES
    )
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
        f"token {place + 1} of {len(turn.tokens)}: {name(said.id)!r}",
        right=tuple(range(1, 4 if mixed else 3)),
        notes=tuple(notes),
    )


def _small_maps(session: Session, turn: Turn, layer: int | None, cross: bool) -> HeatMaps:
    """The heads of all layers, or of one."""
    ids = session.ids_before(turn, len(turn.tokens))
    source = session.prompting.source(turn.prompt)
    layers = session.engine.heads(ids, source=source, layer=layer, cross=cross, cells=FINEST)
    what = _sequence(session, ids)
    if cross:
        what += f" look at the {len(source or ())} of the prompt"
    grid = tuple(
        tuple(
            SmallMap(f"{number} {place} {_pattern(head)}", _seen(head.cells, cross))
            for place, head in enumerate(heads, 1)
        )
        for number, heads in enumerate(layers, 1 if layer is None else layer + 1)
    )
    if layer is None:
        note = "a row for each layer; `/attention LAYER` shows one larger"
        return HeatMaps(f"attention, by layer and head: {what}", grid, (note,))
    return HeatMaps(
        f"layer {layer + 1}, by head: {what}", grid, (f"`/attention {layer + 1} HEAD` shows one with its tokens",)
    )


def _sequence(session: Session, ids: Sequence[int]) -> str:
    """How many tokens there are, or how many of them the model still sees."""
    start = window_start(len(ids), session.engine.context)
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
    return tuple(tuple(row if cross else row[: ahead + place]) for place, row in enumerate(cells, 1))


def _whole_map(session: Session, turn: Turn, layer: int, head: int, cross: bool) -> HeatMap:
    """One head, with the tokens."""
    ids = session.ids_before(turn, len(turn.tokens))
    source = session.prompting.source(turn.prompt)
    told = session.engine.heads(ids, source=source, layer=layer, cross=cross, cells=1)[0][head]
    cells = session.engine.attention(ids, layer, head, source=source, cross=cross, newest=NEWEST)
    window = ids[window_start(len(ids), session.engine.context) :]
    labels = _labels(session.tokenizer, window)
    columns = _labels(session.reader, source) if cross and source else labels
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


def _number(words: Sequence[str], most: int, name: str) -> int | None:
    """A layer or a head, from 0; None where none is given."""
    if not words:
        return None
    (word,) = words
    if not word.isdecimal() or not 1 <= int(word) <= most:
        raise UsageError(f"there is no {name} {word}", f"the {name}s of this model are 1 to {most}")
    return int(word) - 1


COMMANDS = (attention, lens)
