"""Commands that look inside: token probabilities, surprisal, tokens, attention, the logit lens, the computation."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tinychat.commands.conversation import branch_at, explain_no_tokens
from tinychat.commands.registry import Suggestion, command, first_word, parse_number, parse_token, unquote
from tinychat.commands.results import (
    Bar,
    BarChart,
    HeatMap,
    HeatMaps,
    Pieces,
    Result,
    ShadedText,
    SmallMap,
    Steps,
    StreamAnswer,
    Table,
    TokenBrowser,
)
from tinychat.config.settings import SETTINGS, Settings, describe_sampling
from tinychat.errors import UsageError
from tinychat.events import Token
from tinychat.generate.engine import Head, LensRow, TokenProbability, uniform, window_start
from tinychat.session.conversation import Turn
from tinychat.session.inspection import (
    ScoredText,
    entropy_of,
    ids_before,
    lens_at,
    most_surprising,
    probabilities_at,
    rank_of,
    request_at,
    score_answer,
    score_text,
)
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session
from tinychat.textutil import count, percent, visible
from tinychat.tokenizer.tokenizer import Tokenizer

MAX_ALTERNATIVES = 8
"""Number of tokens shown by `/why`."""
CROSS = "cross"
"""Argument of `/attention` for attention to the encoder."""
HOW_TO_READ_LENS = "downwards, each row adds what one more layer has learned; all before sampling"
HOW_TO_READ_MIXTURE = "the last row, of which each share is a part, is what the model says"
"""How to read a table: a line below each."""
PUT_THERE = "the token chosen was put there, by a person, a setting or a search"
"""Note on a token that the filters would have removed."""
TO_PROMPT = "→"
"""Mark of a head's attention to the encoder beside that to the tokens before."""
MAX_CELLS = 96
"""Maximal number of rows and columns of a small map."""
MAX_ROWS = 256
"""Maximal number of rows of a map of one head."""
MIN_PATTERN_WEIGHT = 0.3
"""Attention weight from which a head is named for a pattern."""
MIN_LISTED_WEIGHT = 0.05
"""Attention weight from which a pattern is listed for a head shown alone."""
TRAIN = "train"
"""Argument of `/steps` for a training step."""
MAX_CANDIDATES = 5
"""Number of tokens in a row of `/lens`."""
MIN_PROBABILITY = 0.001
"""Probability from which candidates after the first are shown."""


@command("why", "inside", "token probabilities", usage="[N]", example="/why 5")
def why(session: Session, text: str) -> Result:
    """Show what else the Nth token of the last answer could have been.

    On the left how likely the model found each token, before sampling; on the
    right after temperature and filters such as top-p. `›` marks the one chosen.
    ←/→ go through the answer from its most surprising token; -1 is the last.
    """
    turn = last_answer(session)
    odds_at = cache(lambda index: probabilities_at(session.model, turn, index))

    def bars_at(index: int) -> BarChart:
        return bar_chart(session.model, turn, index, odds_at(index))

    def branch_from(index: int, bar: int) -> StreamAnswer:
        shown = _shown(odds_at(index), turn.tokens[index], session.model.tokenizer)
        return branch_at(session, turn, index, [shown[bar].id])

    count = len(turn.tokens)
    return TokenBrowser(_parse_token(text, turn, "why"), count, bars_at, branch_from)


@command("color", "inside", "shaded by surprisal", aliases=("colour",))
def color(session: Session, text: str) -> Result:
    """Show the last answer with each token coloured by its surprisal.

    A token's surprisal is −log₂ of its probability: 1 bit for 1 in 2, 3 bits
    for 1 in 8. The upper bar under a token shows it: high where the model was
    surprised. The lower one is the entropy: the surprisal that it expected.
    """
    return shade(score_answer(session.model, last_answer(session)))


@command("score", "inside", "how likely a text is", usage="TEXT", example="/score to be or not")
def score(session: Session, text: str) -> Result:
    """Score a text: colour each token by its surprisal (see `/help color`).

    Perplexity is how many equally likely tokens would surprise as much.
    Bits per character compare models, whatever their tokens.
    The text begins a document or a chat; tokens without context do not count.
    """
    text = unquote(text)
    if not text:
        raise UsageError("/score needs a text", "for example `/score to be or not`")
    return shade(score_text(session.model, text))


@command(
    "tokens",
    "inside",
    "the pieces of a text",
    usage="[TEXT]",
    example="/tokens to be or not",
    aliases=("tokenize", "token"),
)
def tokens(session: Session, text: str) -> Result:
    """Show the tokens of a text, or of the last prompt, with their ids.

    A model reads numbers: the id of each piece of the text in its vocabulary.
    Frequent words are one piece; rare ones are spelled in several. A space
    belongs to the word after it, so `the` and ` the` are different tokens.
    """
    if not unquote(text) and not session.turns:
        raise UsageError("there is no text to cut", "for example `/tokens to be or not`")
    text = unquote(text) or session.turns[-1].prompt
    model, tokenizer = session.model, session.model.source_tokenizer

    def named(ids: Iterable[int]) -> tuple[str, ...]:
        return tuple(f"{tokenizer.quoted(id)} {id}" for id in ids)

    ids = tokenizer.encode(text)
    pieces = named(ids)
    as_prompt = model.prompt_encoder.encode_text(text) if model.prompt_encoder.template else ids
    notes = (
        f"{len(pieces):,} tokens for {len(text):,} characters · each piece stands before its id in the vocabulary",
        *([f"as a prompt: {'  '.join(named(as_prompt))}"] if as_prompt[-len(ids) :] != ids else []),
        *([notice.text] if (notice := session.model.unknown_notice(text)) else []),
    )
    return Pieces(pieces, notes)


def last_answer(session: Session) -> Turn:
    """Return the newest turn whose answer has tokens."""
    turn = next((turn for turn in reversed(session.turns) if turn.tokens), None)
    if turn is None:
        raise explain_no_tokens(session, "there is no answer to look into yet")
    return turn


def _parse_token(text: str, turn: Turn, name: str, remedy: str = "") -> int:
    """Return the index of the token that was typed; without a number, that of the most surprising one."""
    if text:
        return parse_token(text, len(turn.tokens), name, remedy)
    return most_surprising(turn)


def _shown(probabilities: list[TokenProbability], token: Token, tokenizer: Tokenizer) -> list[TokenProbability]:
    """Return the likeliest tokens, and the drawn one if it is not among them.

    Where it replaces the end of the prompt, only those that could have.
    """
    if token.replaced:
        typed = _replaced_text(token, tokenizer)
        probabilities = [one for one in probabilities if tokenizer.token_text(one.id).startswith(typed)]
    rest = probabilities[MAX_ALTERNATIVES:]
    return probabilities[:MAX_ALTERNATIVES] + [one for one in rest if one.id == token.id]


def bar_chart(model: OpenModel, turn: Turn, index: int, probabilities: list[TokenProbability]) -> BarChart:
    """Return what the token at an index of an answer could have been, from the probabilities there."""
    token = turn.tokens[index]
    rank, entropy = rank_of(probabilities, token.id), entropy_of(probabilities) / math.log(2)
    drawn = probabilities[rank - 1]
    name = model.tokenizer.quoted
    texts = [token.text for token in turn.tokens]
    settings = model.settings_at(turn, index)
    after = _describe_filters(settings)
    if settings.choices:
        after += f" · choices {SETTINGS['choices'].show(settings.choices)}"
    return BarChart(
        f"token {index + 1} of {len(texts)} · rank {rank:,} of {len(probabilities):,}"
        f" · surprisal {-drawn.logprob / math.log(2):z.1f} bits · entropy {entropy:z.1f} bits",
        tuple(
            Bar(name(one.id), math.exp(one.logprob), one is drawn, one.probability)
            for one in _shown(probabilities, token, model.tokenizer)
        ),
        notes=(*_healed(token, model.tokenizer), *_avoided(token), *[PUT_THERE] * (not drawn.probability)),
        context=(turn.text_before(index), texts[index], "".join(texts[index + 1 :])),
        headings=("before sampling", f"after {after}"),
    )


def _describe_filters(settings: Settings) -> str:
    """Return `temp 0.8 · top-p 0.95`, `temp 0 · greedy`, or `temp 0 · beams 4`: a beam search is not greedy."""
    *words, last = describe_sampling(settings)
    if settings.num_beams > 1:
        last = f"beams {settings.num_beams}"
    return " · ".join([*words, last] if last != "sample" else words)


def _healed(token: Token, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return a note that tells how the first token of an answer goes on with the last word of its prompt."""
    if token.replaced is None:
        return ()
    if token.replaced:
        place = f"in place of {count(token.replaced, 'token')} of the prompt"
        return (f"token healing: {place}, one that begins with {_replaced_text(token, tokenizer)!r}",)
    if token.text[:1].isalnum():
        return ("token healing: the prompt ends within a word, with which this token goes on",)
    return ("token healing: the prompt's last word is whole, so this token does not go on with it",)


def _replaced_text(token: Token, tokenizer: Tokenizer) -> str:
    """Return the end of the prompt that the first token of an answer replaces."""
    return tokenizer.token_text(token.id).removesuffix(token.text)


def _avoided(token: Token) -> tuple[str, ...]:
    """Return a note that tells what was drawn in place of a token, and drawn again as it was banned."""
    drawn = Counter(avoided.text for avoided in token.avoided)
    words = (repr(text) + (f" {times} times" if times > 1 else "") for text, times in drawn.items())
    return (f"banned, and drawn again: {', '.join(words)}",) if drawn else ()


def shade(scored: ScoredText) -> ShadedText:
    """Return a text coloured by surprisal, with notes on its perplexity and bits per character.

    A token that holds only part of a character adds its surprisal to that of the token that completes it.
    """
    pieces: list[tuple[str, float | None]] = []
    entropies: list[tuple[float, ...]] = []
    surprisal = 0.0
    of_piece: tuple[float, ...] = ()
    for token in scored.tokens:
        if token.logprob is None:
            pieces += [(token.text, None)] if token.text else []
            continue
        surprisal -= token.logprob / math.log(2)
        of_piece += ((token.entropy or 0.0) / math.log(2),)
        if token.text:
            pieces.append((token.text, surprisal))
            entropies.append(of_piece)
            surprisal, of_piece = 0.0, ()
    facts = [f"perplexity {scored.perplexity:,.2f}"]
    if (bits := scored.bits_per_character) is not None:
        facts.append(f"{bits:.3f} bits/char")
    facts.append(count(len(scored.scored), "token"))
    has_entropies = all(token.entropy is not None for token in scored.scored)
    return ShadedText(tuple(pieces), (" · ".join(facts), *scored.notices), tuple(entropies) if has_entropies else ())


# --- attention heads and the logit lens -------------------------------------------------------------------------------


@command("attention", "inside", "attention maps", usage="[LAYER [HEAD]]", example="/attention 2 1")
def attention(session: Session, text: str) -> Result:
    """Show which tokens each token attends to: in all layers, one, or one head.

    A row of a map is a token, and its columns are the tokens that it looks at.
    A head's name says at what most: first, previous, itself, same (equal
    tokens), induction (what followed those). `→`, `cross`: the source.
    """
    model, words = session.model, text.lower().split()
    cross, config = words[-1:] == [CROSS], model.config
    if cross and not config.encoder_decoder:
        raise UsageError(f"{model.name} has no encoder to look at", f"`{CROSS}` is for translation models")
    numbers = words[:-1] if cross else words
    if len(numbers) > 2:
        raise UsageError(f"/attention takes a layer and a head, not {text!r}", "for example `/attention 2 1`")
    layer = _parse_index(numbers[:1], config.n_layer, "layer")
    head = _parse_index(numbers[1:], config.n_head, "head")
    turn = last_answer(session)
    ids, source = ids_before(model, turn)
    if layer is None or head is None:
        kinds = [True] if cross else [False] if source is None else [False, True]
        options: dict[str, Any] = {"source": source, "layer": layer, "cells": MAX_CELLS}
        return head_maps(model, turn, layer, {kind: model.engine.heads(ids, cross=kind, **options) for kind in kinds})
    summary = model.engine.heads(ids, source=source, layer=layer, cross=cross, cells=1)[0][head]
    cells = model.engine.attention(ids, layer, head, source=source, cross=cross, newest=MAX_ROWS)
    return head_map(model, turn, (layer, head), cross, summary, cells)


@command("lens", "inside", "logit lens by layer", usage="[N]", example="/lens 5")
def lens(session: Session, text: str) -> Result:
    """Show how the prediction of the Nth token forms from layer to layer.

    A logit lens: each row is what the head makes of the layers so far. The last
    is the prediction, unless n-gram counts and matches have rows and shares.
    The default is the answer's most surprising token; -1 is the last one.
    """
    turn, model = last_answer(session), session.model
    index = _parse_token(text, turn, "lens")
    return lens_table(model, turn, index, lens_at(model, turn, index, MAX_CANDIDATES))


def lens_table(model: OpenModel, turn: Turn, index: int, predictions: Sequence[LensRow]) -> Table:
    """Return the predictions of the token at an index of an answer, a row for each layer."""
    name, token_id = model.tokenizer.quoted, turn.tokens[index].id
    mixed = any(row.share is not None for row in predictions)
    rows = []
    for row in predictions:
        weight = ("" if row.share is None else _percent(row.share),) if mixed else ()
        shown = [one for rank, one in enumerate(row.likeliest) if not rank or one[1] >= MIN_PROBABILITY]
        likeliest = " · ".join(f"{name(id)} {_percent(probability)}" for id, probability in shown)
        token = (_percent(row.probability), f"{row.rank:,}") if row.likeliest else ("", "")
        rows.append((row.part, *weight, *token, likeliest or "no earlier match in the context"))
    columns = ["", name(token_id), "rank", "likeliest"]
    notes = [HOW_TO_READ_LENS]
    if mixed:
        columns.insert(1, "share")
        notes.append(HOW_TO_READ_MIXTURE)
    title = f"token {index + 1} of {len(turn.tokens)}: {name(token_id)}"
    return Table(tuple(columns), tuple(rows), title, right=tuple(range(1, len(columns) - 1)), notes=tuple(notes))


def head_maps(
    model: OpenModel, turn: Turn, layer: int | None, by_kind: Mapping[bool, Sequence[Sequence[Head]]]
) -> HeatMaps:
    """Return small maps of the heads of all layers, or of one, from an index of 0.

    `by_kind` has the heads of each layer for self-attention (False), attention to the encoder (True), or both.
    """
    (ids, source), sentence = ids_before(model, turn), _last_sentence(model, turn)
    start = window_start(len(ids), model.engine.context_length)
    tokens = f"the newest {len(ids) - start:,} of {len(ids):,} tokens" if start else f"{len(ids):,} tokens"
    if True in by_kind:
        only = False not in by_kind
        read = f"sentence {sentence}" if sentence else "the prompt"
        tokens += f"{' look ' if only else f', {TO_PROMPT} '}at the {len(source or ())} of {read}"
    grid = tuple(
        tuple(
            SmallMap(f"{number} {index}{mark}{_main_pattern(head)}", _mask(head.cells, kind))
            for index, head in enumerate(heads, 1)
        )
        for number, layers in enumerate(zip(*by_kind.values(), strict=True), 1 if layer is None else layer + 1)
        for mark, kind, heads in zip((" ", TO_PROMPT), by_kind, layers, strict=False)
    )
    if layer is None:
        title, note = (
            "attention, by layer and head",
            f"{'two rows' if len(by_kind) > 1 else 'a row'} for each layer; `/attention LAYER` shows one larger",
        )
    else:
        title, note = f"layer {layer + 1}, by head", f"`/attention {layer + 1} HEAD` shows one with its tokens"
    notes = [note]
    if sentence:
        notes.append(f"only sentence {sentence}, the last one translated: each is translated by itself")
    return HeatMaps(f"{title}: {tokens}", grid, tuple(notes))


def _last_sentence(model: OpenModel, turn: Turn) -> int:
    """Return the number, from 1, of the last sentence of several that were translated; 0 if only one was."""
    index, _ = model.sentence_before(turn, len(turn.tokens))
    return index + 1 if index else 0


def _main_pattern(head: Head) -> str:
    """Return the main pattern of a head with its weight: `previous 62 %`."""
    name, weight = _patterns(head)[0]
    return f"{name} {percent(weight, 0)}" if weight >= MIN_PATTERN_WEIGHT else f"spread over {2**head.entropy:.0f}"


def _patterns(head: Head) -> list[tuple[str, float]]:
    """Return known patterns of attention with the weight of each, largest first."""
    weights = [("first", head.first), ("previous", head.previous), ("itself", head.itself), ("same", head.same)]
    return sorted([*weights, ("induction", head.followed)], key=lambda pattern: -pattern[1])


def _mask(cells: Sequence[Sequence[float]], cross: bool) -> tuple[tuple[float, ...], ...]:
    """Cut each row after its own column in self-attention, which is causal; keep whole rows in cross-attention."""
    offset = 0 if cross else len(cells[0]) - len(cells)
    return tuple(tuple(row if cross else row[: offset + index]) for index, row in enumerate(cells, 1))


def head_map(
    model: OpenModel, turn: Turn, place: tuple[int, int], cross: bool, summary: Head, cells: Sequence[Sequence[float]]
) -> HeatMap:
    """Return the map of one head at a `place`, its layer and its index, with its tokens."""
    (layer, head), (ids, source) = place, ids_before(model, turn)
    window = ids[window_start(len(ids), model.engine.context_length) :]
    labels = _labels(model.tokenizer, window)
    columns = _labels(model.source_tokenizer, source) if cross and source else labels
    facts = [f"{name} {percent(weight, 0)}" for name, weight in _patterns(summary) if weight >= MIN_LISTED_WEIGHT]
    if not cross:
        facts.append(f"{summary.distance:.1f} tokens back")
    sentence, first = _last_sentence(model, turn), model.sentence_before(turn, len(turn.tokens))[1]
    where = [f"layer {layer + 1} head {head + 1}", *([f"sentence {sentence}"] if sentence else [])]
    title = " · ".join([*where, *facts, f"entropy {summary.entropy:z.1f} bits"])
    rows, marked = labels[len(labels) - len(cells) :], max(0, len(cells) - (len(turn.tokens) - first))
    return HeatMap(title, rows, columns, _mask(cells, cross), marked)


def _labels(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(visible(tokenizer.token_text(id)) for id in ids)


def _percent(fraction: float) -> str:
    return percent(fraction, 1 if fraction < 0.0995 else 0)


def _parse_index(words: Sequence[str], count: int, name: str) -> int | None:
    """Return the index of a layer or head, from 0; None if no number was typed."""
    if not words:
        return None
    error = UsageError(f"there is no {name} {words[0]}", f"the {name}s of this model are 1 to {count}")
    return parse_number(words[0], 1, count, error) - 1


# --- the computation, by hand -----------------------------------------------------------------------------------------


@first_word
def _complete_steps(session: Session, words: list[str]) -> Iterator[Suggestion]:
    yield Suggestion(TRAIN, "a training step: of a toy its first, else on the last answer")


@command("steps", "inside", "a token, by hand", usage="[N|train]", example="/steps 1", complete=_complete_steps)
def steps(session: Session, text: str) -> Result:
    """Walk through the computation of the Nth token of the last answer.

    One operation a screen: ←/→ go on and back, ↑/↓ and Tab show how a number was
    made. Without N it is the most surprising token; one more than there are is
    what would come next. `/steps train` shows a training step.
    """
    if text.lower() == TRAIN:
        from tinychat.evaluate.training_step import Example, trace_training_step

        answered = [turn for turn in session.turns if turn.tokens]
        ids, source = ids_before(session.model, answered[-1]) if answered else ([], None)
        example = Example(ids, len(answered[-1].tokens), source) if answered else None
        return Steps(trace_training_step(session.model.info, example))
    turn, model = last_answer(session), session.model
    count = len(turn.tokens)
    after = f"{count + 1} is what would come after the answer"
    index = count if text == str(count + 1) else _parse_token(text, turn, "steps", after)
    request, number = request_at(model, turn, index), _random_number(session, turn, index)
    labels = map(_make_label, (model.tokenizer, model.source_tokenizer))
    drawn = turn.tokens[index].id if index < count else None
    return Steps(model.engine.trace(request, *labels, uniform=number, drawn=drawn))


def _make_label(tokenizer: Tokenizer) -> Callable[[int], str]:
    """Return a function that labels a token; where all words begin with a space, it is left out."""
    strip = str.strip if tokenizer.kind == "whitespace" else str
    return lambda token: visible(strip(tokenizer.token_text(token)))


def _random_number(session: Session, turn: Turn, index: int) -> float | None:
    """Return the random number that drew the token of an answer, or the one after it; None if it is not known."""
    if turn.finished is None or turn.why_not_reproducible or turn.saved_text is not None:
        return None
    if any(token.avoided for token in turn.tokens[: index + 1]):  # the numbers after a banned text are others
        return None
    return uniform(turn.finished.seed, len(session.model.history(turn.path()[:-1])), index)


COMMANDS = (why, color, score, tokens, attention, lens, steps)
