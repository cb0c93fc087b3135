"""Looks inside a model: records with numpy arrays, whose axes are named in brackets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tinychat.api.answers import Answer
from tinychat.api.arguments import check_whole
from tinychat.commands.inspect import bar_chart, head_map, head_maps, lens_table, shade
from tinychat.commands.results import BarChart, HeatMap, HeatMaps, Table
from tinychat.errors import UsageError
from tinychat.generate.engine import window_start
from tinychat.session.inspection import (
    ScoredText,
    entropy_of,
    ids_before,
    lens_at,
    most_surprising,
    probabilities_at,
    rank_of,
    score_text,
)
from tinychat.session.open_model import OpenModel
from tinychat.textutil import count, escape_controls, percent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_WEIGHTS = 1 << 24
"""Maximum number of attention weights in one record: half a gigabyte while they are read."""


@dataclass(frozen=True, repr=False)
class Score(ScoredText):
    """How likely a model finds a text; `Model.score` returns one.

    `tokens` are its tokens, each with `id`, `text`, `logprob` and `entropy`; the first one is not scored. `loss` is
    the mean surprisal in nats per scored token, `perplexity` its exponential, and `bits_per_character` compares models
    whatever their tokens.
    """

    text: str = ""
    model: str = ""
    """Name of the model, or its path."""

    @property
    def logprobs(self) -> "NDArray[np.float64]":
        """Log-probabilities in nats, [tokens]; NaN where a token is not scored."""
        return _array([token.logprob for token in self.tokens])

    @property
    def entropies(self) -> "NDArray[np.float64]":
        """Entropies of the predictions in nats, [tokens]; NaN where a token is not scored."""
        return _array([token.entropy for token in self.tokens])

    def __repr__(self) -> str:
        bits = self.bits_per_character
        per_character = "" if bits is None else f" · {bits:.3f} bits/char"
        tokens = count(len(self.tokens), "token")
        perplexity = f"perplexity {self.perplexity:,.2f}"
        return f"<Score of {tokens} · {perplexity}{per_character} · {escape_controls(self.model)}>"

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.shaded_text(shade(self))


class Alternative(NamedTuple):
    """A token that could have come."""

    id: int
    text: str
    probability: float
    """Under the model, before temperature and filters."""
    after: float
    """Probability of being drawn, after temperature and filters."""


@dataclass(frozen=True, repr=False, eq=False)
class Why:
    """Alternatives to a token of an answer; `Model.why` returns one. All arrays begin with the likeliest token."""

    answer: Answer
    index: int
    """Index of the token in the answer, from 0."""
    rank: int
    """Rank of the token, from 1, which is the likeliest."""
    ids: "NDArray[np.int64]"
    """Ids of all tokens of the vocabulary, [vocabulary]."""
    logprobs: "NDArray[np.float64]"
    """Their log-probabilities in nats under the model, before temperature and filters, [vocabulary]."""
    probabilities: "NDArray[np.float64]"
    """Their probabilities of being drawn, after temperature and filters, [vocabulary]; 0 if they are filtered out."""
    surprisal: float
    """−log₂ of the probability of the token under the model, in bits."""
    entropy: float
    """Entropy of the model's prediction, in bits: the surprisal that it expected."""
    _chart: BarChart = field(repr=False)
    _texts: Sequence[str] = field(repr=False)

    @property
    def token(self) -> str:
        """Text of the token."""
        return self.answer.tokens[self.index].text

    def top(self, number: int = 5) -> list[Alternative]:
        """Return the likeliest tokens, at most as many as were shown."""
        rows = zip(self.ids, self._texts, self.logprobs, self.probabilities, strict=False)
        found = (Alternative(int(id), text, math.exp(logprob), float(after)) for id, text, logprob, after in rows)
        return [one for _, one in zip(range(number), found, strict=False)]

    def __repr__(self) -> str:
        lines = [f"<Why {self.token!r}: {self._chart.title}>"]
        for bar in self._chart.bars:
            after = "" if bar.after is None else f"{percent(bar.after):>9}"
            lines.append(f"{'›' if bar.marked else ' '} {percent(bar.fraction):>8}{after}  {bar.label}")
        return escape_controls("\n".join(lines))

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.bars(self._chart)


@dataclass(frozen=True, repr=False, eq=False)
class Lens:
    """The prediction of a token, part by part of the model (logit lens); `Model.lens` returns one.

    A part is the embeddings, a layer, or one of those that mix n-grams in. The last row is the model's prediction.
    """

    answer: Answer
    index: int
    """Index of the token in the answer, from 0."""
    parts: tuple[str, ...]
    """Names of the parts: `embeddings`, `layer 1` and so on, maybe `counts`, `matches` and `mixture`."""
    ids: "NDArray[np.int64]"
    """Ids of the likeliest tokens, [parts, likeliest]; −1 where a part predicts fewer."""
    probabilities: "NDArray[np.float64]"
    """Their probabilities, [parts, likeliest]; NaN where a part predicts fewer."""
    probability: "NDArray[np.float64]"
    """Probability of the token of the answer, [parts]; NaN where a part predicts nothing."""
    rank: "NDArray[np.int64]"
    """Rank of that token, from 1, [parts]; 0 where a part predicts nothing."""
    share: "NDArray[np.float64]"
    """Share of the part in the mixture, [parts]; NaN where it is no component of one."""
    _table: Table = field(repr=False)

    @property
    def token(self) -> str:
        """Text of the token."""
        return self.answer.tokens[self.index].text

    def __repr__(self) -> str:
        width = max(map(len, self.parts))
        lines = [f"<Lens of {self._table.title}>"]
        lines += [f"  {row[0]:{width}}  {row[-1]}" for row in self._table.rows]
        return escape_controls("\n".join(lines))

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.table(self._table)


@dataclass(frozen=True, repr=False, eq=False)
class Attention:
    """Attention weights, from 0 to 1; each row sums to 1. `Model.attention` returns one."""

    answer: Answer
    weights: "NDArray[np.float32]"
    """With the axes that `axes` names: [layers, heads, queries, keys], without those that were chosen."""
    axes: tuple[str, ...]
    queries: tuple[str, ...]
    """Texts of the tokens that look: those of the prompt, then those of the answer."""
    keys: tuple[str, ...]
    """Texts of the tokens that they look at: the same, or those of the prompt of a translation model with `cross`."""
    _map: HeatMap | HeatMaps = field(repr=False)

    def __repr__(self) -> str:
        shape = " × ".join(f"{size} {axis}" for size, axis in zip(self.weights.shape, self.axes, strict=True))
        lines = [f"<Attention {shape}: {self._map.title}>"]
        if isinstance(self._map, HeatMaps):
            lines += ["  " + " · ".join(one.caption for one in row) for row in self._map.rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.heat_map(self._map) if isinstance(self._map, HeatMap) else html.heat_maps(self._map)


def score(model: OpenModel, text: str) -> Score:
    """Return the score of a text; see `Model.score`."""
    scored = score_text(model, text)
    return Score(scored.tokens, scored.notices, text, model.reference)


def why(model: OpenModel, answer: Answer, index: int | None) -> Why:
    """Return what a token of an answer could have been; see `Model.why`."""
    import numpy as np

    turn, index = answer.turn, _check_index(answer, index)
    found = probabilities_at(model, turn, index)
    rank = rank_of(found, turn.tokens[index].id)
    return Why(
        answer, index, rank,
        np.array([one.id for one in found]),
        np.array([one.logprob for one in found]),
        np.array([one.probability for one in found]),
        -found[rank - 1].logprob / math.log(2),
        entropy_of(found) / math.log(2),
        bar_chart(model, turn, index, found),
        _Texts(model, [one.id for one in found]),
    )  # fmt: skip


def lens(model: OpenModel, answer: Answer, index: int | None, likeliest: int) -> Lens:
    """Return the prediction of a token of an answer by layers; see `Model.lens`."""
    import numpy as np

    turn, index = answer.turn, _check_index(answer, index)
    rows = lens_at(model, turn, index, likeliest)
    width = max(len(row.likeliest) for row in rows)
    padded = [(*row.likeliest, *[(-1, np.nan)] * (width - len(row.likeliest))) for row in rows]
    return Lens(
        answer, index, tuple(row.part for row in rows),
        np.array([[id for id, _ in row] for row in padded]),
        np.array([[probability for _, probability in row] for row in padded]),
        np.array([row.probability if row.likeliest else np.nan for row in rows]),
        np.array([row.rank if row.likeliest else 0 for row in rows]),
        _array([row.share for row in rows]),
        lens_table(model, turn, index, rows),
    )  # fmt: skip


def attention(model: OpenModel, answer: Answer, layer: int | None, head: int | None, cross: bool) -> Attention:
    """Return attention weights over a prompt and its answer; see `Model.attention`."""
    import numpy as np

    config, turn = model.config, answer.turn
    if cross and not config.encoder_decoder:
        raise UsageError(f"{model.name} has no encoder to look at", "`cross` is for translation models")
    layer, head = _check_number(layer, config.n_layer, "layer"), _check_number(head, config.n_head, "head")
    ids, source = ids_before(model, turn)
    window = ids[window_start(len(ids), model.engine.context_length) :]
    keys = list(source or ()) if cross else window
    layers = 1 if layer else config.n_layer
    if (number := layers * config.n_head * len(window) * len(keys)) > MAX_WEIGHTS:
        problem = f"these are {number:,} weights, of {len(window):,} tokens in {layers * config.n_head:,} heads"
        raise UsageError(problem, "choose a layer, or a shorter text")
    layer_index = None if layer is None else layer - 1
    cells = max(len(window), len(keys))
    heads = model.engine.heads(ids, source=source, layer=layer_index, cross=cross, cells=cells)
    if head is not None:
        heads = [[row[head - 1]] for row in heads]
    weights = np.array([[one.cells for one in row] for row in heads], dtype=np.float32)
    names = ("layers", "heads", "queries", "keys")
    chosen = [axis for axis, number in enumerate((layer, head)) if number is not None]
    shown: HeatMap | HeatMaps
    if layer is not None and head is not None:
        shown = head_map(model, turn, (layer - 1, head - 1), cross, heads[0][0], heads[0][0].cells)
    else:
        shown = head_maps(model, turn, layer_index, {cross: heads})
    tokenizer = model.source_tokenizer if cross else model.tokenizer
    return Attention(
        answer,
        np.squeeze(weights, axis=tuple(chosen)),
        tuple(name for axis, name in enumerate(names) if axis not in chosen),
        tuple(map(model.tokenizer.token_text, window)),
        tuple(map(tokenizer.token_text, keys)),
        shown,
    )


class _Texts(Sequence[str]):
    """The texts of tokens, looked up when they are asked for: a vocabulary is long."""

    def __init__(self, model: OpenModel, ids: Sequence[int]) -> None:
        self._model, self._ids = model, ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self._model.tokenizer.token_text(self._ids[index])


def _check_index(answer: Answer, index: int | None) -> int:
    """Return the index of a token, from 0; of the most surprising one if it is None."""
    length = len(answer.tokens)
    if not length:
        raise UsageError("the answer is empty: no token can be looked into", "try another prompt or seed")
    if index is None:
        return most_surprising(answer.turn)
    index = check_whole("index", index)
    if not -length <= index < length:
        raise UsageError(f"there is no token {index}: the answer has {count(length, 'token')}", "the first one is 0")
    return range(length)[index]


def _check_number(number: int | None, most: int, name: str) -> int | None:
    """Return the number of a layer or head, from 1; None means all."""
    if number is None:
        return None
    number = check_whole(name, number)
    if not 1 <= number <= most:
        raise UsageError(f"there is no {name} {number}", f"the {name}s of this model are 1 to {most}")
    return number


def _array(values: "list[float | None]") -> "NDArray[np.float64]":
    import numpy as np

    return np.array([np.nan if value is None else value for value in values])
