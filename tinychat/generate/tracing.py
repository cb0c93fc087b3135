"""Trace the prediction of one token: the operations of `model/` and `sampling.py`, one after the other.

The operations are written out here a second time, in the words of textbooks: one head at a time, and each step by
itself. A test compares them with the model for every architecture.

Shapes: see `model/transformer.py`. A text is one row, without its axis.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from tinychat.config.settings import describe_sampling
from tinychat.errors import GenerationError
from tinychat.generate.computation import Computation, Derivation, Matrix, Operation, figure
from tinychat.generate.engine import Request, nonfinite_error
from tinychat.generate.operations import Tracer
from tinychat.generate.sampling import divide_by_temperature, draw, filter_logits, stack_biases
from tinychat.model.attention import (
    Attention,
    Learned,
    RotaryTables,
    Sinusoidal,
    TurnAttention,
    TurnMasks,
)
from tinychat.model.ngrams import MIN_PROBABILITY, TokenContext
from tinychat.model.transformer import (
    NO_TOKEN,
    Block,
    FeedForward,
    Residual,
    Stack,
    Transformer,
)

MAX_NUMBERS = 2**28
"""Maximum number of numbers that a trace keeps: 1 GB."""
SEPARATOR = " · "

PUT_THERE = "This one was put there, by a person, a setting or a search, or the weights were others."
DECODED_IN = "The answer was decoded in {}, where the probabilities are slightly different."

Label = Callable[[int], str]
"""Returns the text of a token."""


def trace(
    model: Transformer,
    request: Request,
    label: Label,
    source_label: Label,
    *,
    window: Sequence[int],
    uniform: float | None = None,
    drawn: int | None = None,
    shift: tuple[int, Tensor] | None = None,
    precision: str | None = None,
) -> Computation:
    """Trace the prediction of the token after `window`, and the draw with the settings of the request.

    Args:
        model: in evaluation mode.
        request: its ids before the token, its settings and its source.
        label: of the tokens of the decoder.
        source_label: of those of the encoder.
        window: the newest ids of the request, those that the model sees.
        uniform: the random number that drew the token; None if it is not known.
        drawn: id of the token that was drawn; None if it is not known.
        shift: the index of a block of the decoder and what steering adds after it, [D]; None: nothing.
        precision: the one that the answer was decoded in; None: that of the model.

    Raises:
        GenerationError: If the computation is too large to be kept, or gives NaN or infinite logits.
    """
    config = model.config
    _check_size(model, len(window), len(request.source or ()))
    tracer = Tracer()
    encoded: Matrix | None = None
    if model.encoder is not None and request.source is not None:
        encoded = _Stack(tracer, model.encoder, "encoder", source_label, list(request.source), None).run()
    ids = list(window)
    states = _Stack(tracer, model.decoder, "decoder", label, ids, encoded, shift).run()
    tracer.part = "output"
    vocabulary = [label(id) for id in range(config.vocab_size)]
    last = tracer.take_last(states)
    shared = " It is the embedding table: the two are tied." if config.tie_embeddings else ""
    logits = tracer.linear(
        last, model.head, "logits" if model.ngrams is None else "scores", "head", "W", "b",
        "A score for each token of the vocabulary, from the last token alone." + shared,
        columns=vocabulary, weight="decoder.embedding" if config.tie_embeddings else "head",
    )  # fmt: skip
    if model.ngrams is not None:
        logits = _mix_ngrams(tracer, model, logits, last, ids, vocabulary)
    if not bool(logits.values.isfinite().all()):
        raise nonfinite_error()
    chosen = _draw(tracer, logits, request, uniform, drawn, precision)
    focused = [one if one.output.shape[1] != config.vocab_size else _look_at(one, chosen) for one in tracer.operations]
    end = request.end_ids
    result = f"the next token: {label(chosen)!r}" + (", which ends the answer" if chosen in end else "")
    return Computation(f"the token after {' '.join(map(label, ids[-4:]))}", tuple(focused), result)


def _look_at(operation: Operation, column: int) -> Operation:
    return replace(operation, focus=(operation.output.shape[0] - 1, column))


def _check_size(model: Transformer, length: int, source: int) -> None:
    config = model.config
    width = 20 * max(config.d_model, config.feed_forward_width)  # all matrices of a layer with a row for each token
    in_decoder = 3 * config.n_head * length * (length + source) + length * width
    in_encoder = 3 * config.n_head * source**2 + source * width
    if config.n_layer * in_decoder + config.n_encoder_layer * in_encoder > MAX_NUMBERS:
        raise GenerationError(
            f"the computation is too large to be shown: {config.n_layer} layers for {length:,} tokens",
            "begin a new conversation with /clear, or open a smaller model",
        )


class _Stack:
    """Traces an encoder or decoder on the ids of one text; a decoder may attend to `encoded` [S, D]."""

    def __init__(
        self, tracer: Tracer, stack: Stack, name: str, label: Label, ids: Sequence[int], encoded: Matrix | None,
        shift: tuple[int, Tensor] | None = None,
    ) -> None:  # fmt: skip
        self._tracer, self._stack, self._name, self._ids, self._encoded = tracer, stack, name, list(ids), encoded
        self._labels = [label(id) for id in ids]
        self._label, self._config, self._shift = label, stack.config, shift

    def run(self) -> Matrix:
        """Trace all of it; return the final states [T, D]."""
        tracer, stack = self._tracer, self._stack
        tracer.part = f"{self._name} · input" if self._config.encoder_decoder else "input"
        x = self._embed()
        positions = torch.arange(len(self._ids), device=stack.embedding.weight.device)
        tables = stack.position.rotary_tables(positions)
        for layer, block in enumerate(stack.blocks):
            assert isinstance(block, Block)
            x = self._run_block(block, x, tables, layer)
            if self._shift is not None and self._shift[0] == layer:
                x = self._steer(x, self._shift[1], layer)
        if stack.norm is not None:
            tracer.part = f"{self._name} · output" if self._config.encoder_decoder else "output"
            about = "The last norm: each row gets the mean 0 and the variance 1." if _centres(stack.norm) else RMS_ABOUT
            x = tracer.normalize(x, stack.norm, f"{self._name}.norm", tracer.new_state(), about)
        return x

    def _embed(self) -> Matrix:
        """Return the embeddings of the ids with all that is added to them, [T, D]."""
        tracer, stack, ids, labels = self._tracer, self._stack, self._ids, self._labels
        device = stack.embedding.weight.device
        numbers = Matrix("ids", torch.tensor(ids, device=device).unsqueeze(1), labels, ("id",), is_whole=True)
        tracer.record(
            "tokens", "ids = the token's number in the vocabulary",
            "The text, cut into tokens: the model sees their numbers alone.",
            [], ["→"], numbers,
        )  # fmt: skip
        table = self._table("E", stack.embedding, "embedding", self._label)
        about = "Each token has a row of learned numbers in the embedding table: its embedding."
        x = tracer.look_up(table, ids, "embedding", tracer.new_state(), about, labels)
        terms = [x]
        for distance, embedding in enumerate(stack.earlier, start=1):
            assert isinstance(embedding, nn.Embedding)
            rows = [ids[index - distance] + 1 if index >= distance else 0 for index in range(len(ids))]
            table = self._table(f"E-{distance}", embedding, f"earlier.{distance - 1}", self._label_or_none)
            where = "before it" if distance == 1 else f"{distance} before it"
            about = f"Previous-token embeddings: a second table for the token {where}; row `none` where there is none."
            terms.append(tracer.look_up(table, rows, f"token {where}", f"e-{distance}", about, labels))
        if stack.pairs is not None:
            size = stack.embedding.num_embeddings
            previous = [0, *(id + 1 for id in ids[:-1])]
            rows = [before * size + id for before, id in zip(previous, ids, strict=True)]
            table = self._table(
                "P", stack.pairs, "pairs", lambda row: self._label_or_none(row // size) + self._label(row % size)
            )
            about = "Bigram embedding: a table with a row for each pair of a token and the one before it."
            terms.append(tracer.look_up(table, rows, "pair of tokens", "pair", about, labels))
        if len(terms) > 1:
            x = tracer.add(terms, "sum", tracer.new_state(), "All embeddings of a token are added.")
        if self._config.scale_embedding:
            width = self._config.d_model
            about = f"Embeddings are multiplied by √{width}, the root of their width."
            x = tracer.scale(x, width**0.5, f"× √{width}", "scaling", tracer.new_state(), about)
        places = self._positions()
        if places is not None:
            about = "The position is added to the embedding: the same token is another vector in another place."
            x = tracer.add([x, places], "position added", tracer.new_state(), about)
        return x

    def _positions(self) -> Matrix | None:
        """Return what is added for the positions, [T, D]; None if nothing is."""
        encoding, tracer = self._stack.position, self._tracer
        length, width = len(self._ids), self._config.d_model
        if isinstance(encoding, Learned):
            table = self._table("W_P", encoding.table, "position.table", lambda row: str(row + 1))
            about = "Each position has a row of learned numbers."
            return tracer.look_up(table, range(length), "positions", "pos", about, self._labels)
        if not isinstance(encoding, Sinusoidal):
            return None
        output = Matrix("pos", encoding.table[:length].to(self._stack.embedding.weight.dtype), self._labels)

        def derive(row: int, column: int) -> Derivation:
            power = column // 2 * 2 / width
            value = (math.cos if column % 2 else math.sin)(row / 10_000**power)
            return Derivation(value, f"{'cos' if column % 2 else 'sin'}({row} / 10000^{power:g})")

        about = "Nothing is learned here: odd columns are sines of the position (from 0 on), even ones cosines."
        formula = "pos = sin(position / 10000^(2k/d)), cos(position / 10000^(2k/d))"
        return tracer.record("positions", formula, about, [], ["→"], output, derive)

    def _steer(self, x: Matrix, vector: Tensor, layer: int) -> Matrix:
        """Return the states x [T, D] after a layer with what steering adds to each, [D]."""
        tracer = self._tracer
        tracer.part = SEPARATOR.join([f"layer {layer + 1}", "steering"])
        direction = Matrix("s", vector.expand(x.values.shape), x.rows)
        about = "One operation, not taken apart: the direction from one text to the other, times its strength."
        tracer.record("direction", "s = the same row for each token", about, [], ["→"], direction)
        about = "Steering adds it to the residual stream, at every token."
        return tracer.add([x, direction], "steered", tracer.new_state(), about)

    def _run_block(self, block: Block, x: Matrix, tables: RotaryTables | None, layer: int) -> Matrix:
        layers = len(self._stack.blocks)
        parts = [self._name] * self._config.encoder_decoder + [f"layer {layer + 1}"] * (layers > 1)
        name = f"{self._name}.blocks.{layer}"

        def attend(kind: str, encoded: Matrix | None) -> Callable[[Matrix, nn.Module, str], Matrix]:
            def run(x: Matrix, attention: nn.Module, weight: str) -> Matrix:
                assert isinstance(attention, Attention)
                if isinstance(attention, TurnAttention):
                    return self._attend_to_turns(x, attention, weight, [*parts, kind])
                turns, window = (None, None) if encoded else (tables, self._config.window(layer))
                return self._attend(x, attention, weight, turns, window, encoded, [*parts, kind])

            return run

        out = self._add(x, block.attention, f"{name}.attention", [*parts, "attention"], attend("attention", None))
        if block.cross_attention is not None and self._encoded is not None:
            kind = "cross-attention"
            run = attend(kind, self._encoded)
            out = self._add(out, block.cross_attention, f"{name}.cross_attention", [*parts, kind], run)
        if block.feed_forward is None:
            return out
        given, kind = x if block.parallel else out, "feed-forward"
        parts = [*parts, kind]
        return self._add(given, block.feed_forward, f"{name}.feed_forward", parts, self._feed_forward, onto=out)

    def _add(
        self, x: Matrix, residual: Residual, weight: str, parts: list[str],
        run: Callable[[Matrix, nn.Module, str], Matrix], onto: Matrix | None = None,
    ) -> Matrix:  # fmt: skip
        """Trace a sublayer with its norm and its residual connection, to its input or `onto` another matrix."""
        tracer = self._tracer
        tracer.part = SEPARATOR.join(parts)
        about = LAYER_ABOUT if _centres(residual.norm) else RMS_ABOUT
        norm = f"{weight}.norm"
        given = tracer.normalize(x, residual.norm, norm, "n", about) if residual.pre else x
        out = run(given, residual.sublayer, f"{weight}.sublayer")
        tracer.part = SEPARATOR.join(parts)
        about = "The residual connection: what this part has found is added to what went into it."
        x = tracer.add([x if onto is None else onto, out], "residual", tracer.new_state(), about)
        return (
            x
            if residual.pre
            else tracer.normalize(
                x, residual.norm, norm, tracer.new_state(), LAYER_ABOUT if _centres(residual.norm) else RMS_ABOUT
            )
        )

    def _attend(
        self, x: Matrix, attention: Attention, weight: str, tables: RotaryTables | None, window: int | None,
        encoded: Matrix | None, parts: list[str],
    ) -> Matrix:  # fmt: skip
        """Trace attention, one head after the other, [T, D]."""
        tracer, width = self._tracer, self._config.head_width
        divisor, written = (width**0.5, f"√{width}") if self._config.scale_scores else (1.0, "")
        heads, keys, values = [], dict[int, Matrix](), dict[int, Matrix]()
        source, whose = (x, "token") if encoded is None else (encoded, "token of the encoder")
        for head in range(attention.n_head):
            tracer.part = SEPARATOR.join([*parts, *[f"head {head + 1}"] * (attention.n_head > 1)])
            group = head // (attention.n_head // attention.kv_heads)
            part, shared = (slice(one * width, (one + 1) * width) for one in (head, group))
            about = "A query for each token: what it looks for."
            query = tracer.linear(
                x, attention.query, "Q", "queries", "W_Q", "b_Q", about, weight=f"{weight}.query", part=part
            )
            query = self._place(query, attention.query_norm, f"{weight}.query_norm", tables, "queries")
            if group not in keys:
                of = f" Heads {head + 1} to {head + attention.n_head // attention.kv_heads} share these."
                of *= attention.n_head != attention.kv_heads
                about = f"A key for each {whose}: what queries are compared with.{of}"
                key = tracer.linear(
                    source, attention.key, "K", "keys", "W_K", "b_K", about, weight=f"{weight}.key", part=shared
                )
                keys[group] = self._place(key, attention.key_norm, f"{weight}.key_norm", tables, "keys")
                about = f"A value for each {whose}: what it passes on to those that look at it.{of}"
                values[group] = tracer.linear(
                    source, attention.value, "V", "values", "W_V", "b_V", about, weight=f"{weight}.value", part=shared
                )
            key = keys[group]
            turned = Matrix(f"{key.name}ᵀ", key.values.t(), (), key.rows)
            about = "How much each token (row) looks at each other one (column): the dot product of query and key."
            scores = tracer.multiply(
                query, turned, None, "scores", "S", about, divisor=divisor, written=written
            )  # fmt: skip
            if encoded is None and self._name == "decoder":
                scores = tracer.mask(scores, "mask", "M", window)
            about = "Each row becomes positive numbers that sum to 1: the attention weights."
            weights = tracer.softmax(scores, "softmax", "A", about)
            about = "Each token gets a mixture of the values, in the proportions of its attention weights."
            name = "Z" if attention.n_head == 1 else f"Z{head + 1}"
            heads.append(tracer.multiply(weights, values[group], None, "weighted sum", name, about))
        return self._join(heads, attention, weight, parts)

    def _attend_to_turns(self, x: Matrix, attention: TurnAttention, weight: str, parts: list[str]) -> Matrix:
        """Trace attention to turns, [T, D]: the scores of each head, their sum, and what each gathers."""
        tracer, width, ids = self._tracer, self._config.head_width, torch.tensor([self._ids], device=x.values.device)
        divisor, written = (width**0.5, f"√{width}") if self._config.scale_scores else (1.0, "")
        config, slots = self._config, torch.arange(len(self._ids), device=ids.device)
        turns = TurnMasks.find(ids, slots, config.turn_token, config.reply_token, config.kv_heads)
        tracer.part = SEPARATOR.join(parts)
        is_pooled = self._mark_turns("message", "each token of the message", turns.is_pooled[0], x)
        kept = turns.keep(torch.eye(len(self._ids), device=ids.device).expand(*turns.kept.shape, -1))[0]  # [G, T, T]
        heads, scored, keys, values = [], [], dict[int, Matrix](), dict[int, Matrix]()
        names = [[f"head {head + 1}"] * (attention.n_head > 1) for head in range(attention.n_head)]
        groups = [head // (attention.n_head // attention.kv_heads) for head in range(attention.n_head)]
        for head, group in enumerate(groups):
            tracer.part = SEPARATOR.join([*parts, *names[head]])
            part, shared = (slice(one * width, (one + 1) * width) for one in (head, group))
            if group not in keys:
                about = "A key for each token: what it says of its turn."
                key = tracer.linear(
                    x, attention.key, "K", "keys", "W_K", "b_K", about, weight=f"{weight}.key", part=shared
                )
                about = "A gate for each token: how much its key counts."
                gate = tracer.linear(
                    x, attention.turn_gate, "g", "gates", "W_g", "b_g", about,
                    weight=f"{weight}.turn_gate", part=slice(group, group + 1),
                )  # fmt: skip
                gate = tracer.activate(gate, "sigmoid", torch.sigmoid, "g'")
                key = tracer.scale_rows(key, gate, "K'", "Words that tell more than others get more weight.")
                about = "The key of a turn is the sum over its message, here up to each token (1: the token counts)."
                keys[group] = tracer.multiply(is_pooled, key, None, "keys of turns", "K''", about)
                about = "A value for each token: what it passes on."
                value = tracer.linear(
                    x, attention.value, "V", "values", "W_V", "b_V", about, weight=f"{weight}.value", part=shared
                )
                which = f"token {group + 1} of the message, or its last so far,"
                is_kept = self._mark_turns("kept", which, kept[group], x)
                about = "The value of a turn is that of one token: each head keeps another one of the first."
                value = tracer.multiply(is_kept, value, None, "values of turns", "V'", about)
                about = "“No turn” has a value of zeros."
                values[group] = tracer.put_zeros_first(value, "no turn", "no turn", "V''", about)
            about = "A query for each token: what it looks for."
            query = tracer.linear(
                x, attention.query, "Q", "queries", "W_Q", "b_Q", about, weight=f"{weight}.query", part=part
            )
            about = "What the current turn has said so far is looked for, too: messages that are alike are found."
            query = tracer.add([query, keys[group]], "with the turn's key", "Q'", about)
            query = self._place(query, attention.query_norm, f"{weight}.query_norm", None, "queries")
            key = self._place(keys[group], attention.key_norm, f"{weight}.key_norm", None, "keys")
            turned = Matrix(f"{key.name}ᵀ", key.values.t(), (), key.rows)
            about = "How well each turn up to a token (column) fits what the head looks for: query times key."
            name = "S" if attention.n_head == 1 else f"S{head + 1}"
            scored.append(tracer.multiply(query, turned, None, "scores", name, about, divisor=divisor, written=written))
        tracer.part = SEPARATOR.join(parts)
        about = "All heads look at the same turn: the one that they together find."
        scores = scored[0] if len(scored) == 1 else tracer.add(scored, "sum of the heads", "S", about)
        about = "Each token has a score for “no turn”: the higher, the less it needs one."
        none = tracer.linear(x, attention.no_turn, "N", "no turn", "W_n", "b_n", about, weight=f"{weight}.no_turn")
        scores = tracer.mask_turns(none, scores, turns.ends[0], "mask", "M")
        about = "Each row becomes positive numbers that sum to 1: the attention weights."
        weights = tracer.softmax(scores, "softmax", "A", about)
        about = "Each token gets a mixture of the turns' values, in the proportions of its attention weights."
        for head, group in enumerate(groups):
            tracer.part = SEPARATOR.join([*parts, *names[head]])
            name = "Z" if attention.n_head == 1 else f"Z{head + 1}"
            heads.append(tracer.multiply(weights, values[group], None, "weighted sum", name, about))
        return self._join(heads, attention, weight, parts)

    def _mark_turns(self, name: str, which: str, marks: Tensor, x: Matrix) -> Matrix:
        """Record which tokens [T, T] of a row's turn count."""
        output = Matrix(name, marks.to(x.values.dtype), x.rows, self._labels)

        def derive(row: int, column: int) -> Derivation:
            return Derivation(output[row, column], f"{output[row, column]:.0f}")

        formula = f"{name} = 1 for {which} of the row's turn, no later than the row"
        about = "Nothing is learned here: tokens of the chat template tell where turns and their replies begin."
        return self._tracer.record(name, formula, about, [], ["→"], output, derive)

    def _join(self, heads: list[Matrix], attention: Attention, weight: str, parts: list[str]) -> Matrix:
        """Put what the heads have gathered side by side, and trace the output projection, if there is one."""
        tracer = self._tracer
        tracer.part = SEPARATOR.join(parts)
        together = tracer.concatenate(heads, "Z")
        if attention.output is None:
            return together
        about = "A linear layer after the heads mixes what they have gathered."
        return tracer.linear(
            together, attention.output, "O", "output projection", "W_O", "b_O", about, weight=f"{weight}.output"
        )

    def _place(self, x: Matrix, norm: nn.Module | None, weight: str, tables: RotaryTables | None, name: str) -> Matrix:
        """Normalize and rotate queries or keys [T, K], where the architecture does."""
        if norm is not None:
            about = f"The {name} are normalized, so that no score depends on their length."
            x = self._tracer.normalize(x, norm, weight, f"{x.name}'", about)
        return self._tracer.rotate(x, tables, f"{x.name}'")

    def _feed_forward(self, x: Matrix, layer: nn.Module, weight: str) -> Matrix:
        """Trace a feed-forward, [T, D]."""
        assert isinstance(layer, FeedForward)
        tracer, kind = self._tracer, self._config.feed_forward
        about = f"Each token by itself: from {self._config.d_model} numbers to {layer.up.out_features}."
        up = tracer.linear(x, layer.up, "U", "up", "W_U", "b_U", about, weight=f"{weight}.up")
        if layer.gate is None:
            hidden = tracer.activate(up, kind, layer.activation, "H")
        else:
            about = "A second linear layer, which will gate the first."
            gate = tracer.linear(x, layer.gate, "G", "gate", "W_G", "b_G", about, weight=f"{weight}.gate")
            hidden = tracer.gate(tracer.activate(gate, kind, layer.activation, "G'"), up, "H")
        about = f"And back to {self._config.d_model} numbers."
        return tracer.linear(hidden, layer.output, "F", "down", "W_D", "b_D", about, weight=f"{weight}.output")

    def _table(self, name: str, embedding: nn.Embedding, weight: str, label: Label) -> Matrix:
        labels = [label(row) for row in range(embedding.num_embeddings)]
        return Matrix(name, embedding.weight.detach(), labels, weight=f"{self._name}.{weight}.weight")

    def _label_or_none(self, row: int) -> str:
        return self._label(row - 1) if row else "none"


LAYER_ABOUT = "Each row is shifted and scaled to the mean 0 and the variance 1."
RMS_ABOUT = "Each row is scaled, so that the mean of its squares is 1."


def _centres(norm: nn.Module) -> bool:
    return isinstance(norm, nn.LayerNorm)


def _mix_ngrams(
    tracer: Tracer, model: Transformer, logits: Matrix, last: Matrix, ids: list[int], vocabulary: list[str]
) -> Matrix:
    """Trace the mixture with n-gram counts and copies; return its log-probabilities [1, V]."""
    assert model.ngrams is not None
    tracer.part = "n-grams"
    device = logits.values.device
    about = "What the layers alone predict."
    predicted = tracer.softmax(logits, "the layers", "layers", about)
    text = torch.tensor([ids], device=device)
    padded = nn.functional.pad(text, (model.config.lookback, 0), value=NO_TOKEN)[:, -model.config.lookback - 1 :]
    context = TokenContext(padded, text, torch.tensor([len(ids) - 1], device=device))
    components, shares = model.ngrams.components(logits.values[None], last.values[None], context)  # [1, 1, 3, V]
    order = model.config.ngram_order
    tracer.record(
        "counts", "counts = smoothed counts of the training text",
        f"One operation, not taken apart: what followed the last tokens (up to {order - 1}) in the training text.",
        [], ["→"], counts := Matrix("counts", components[0, :, 1], last.rows, vocabulary),
    )  # fmt: skip
    tracer.record(
        "matches", "matches = what followed the same tokens before",
        "One operation, not taken apart: what followed earlier occurrences of the last tokens in the context; all 0 "
        "if they have not occurred.",
        [], ["→"], matches := Matrix("matches", components[0, :, 2], last.rows, vocabulary),
    )  # fmt: skip
    weights = Matrix("shares", shares[0], last.rows, ("layers", "counts", "matches"))
    tracer.record(
        "shares", "shares = a small network of the last row and of how much was counted",
        "One operation, not taken apart: how much each of the three counts in the mixture; they sum to 1.",
        [last], ["→"], weights,
    )  # fmt: skip
    parts = (predicted, counts, matches)

    def derive(row: int, column: int) -> Derivation:
        pairs = [(weights[0, index], part[0, column]) for index, part in enumerate(parts)]
        terms = tuple((f"{figure(a)} × {figure(b)}", a * b) for a, b in pairs)
        return Derivation(math.fsum(value for _, value in terms), "{}", terms, ((0, None), *((0, column),) * 3))

    values = weights.values @ torch.cat([part.values for part in parts])  # [1, 3] · [3, V]
    mixed = Matrix("mixture", values, last.rows, vocabulary)
    tracer.record(
        "mixture", "mixture = the three predictions, each times its share", "The mixture is what the model predicts.",
        [weights, *parts], [",", ",", ",", "="], mixed, derive,
    )  # fmt: skip

    def take_log(row: int, column: int) -> Derivation:
        value = mixed[row, column]
        return Derivation(math.log(max(value, MIN_PROBABILITY)), f"ln({figure(value)})", reads=((row, column),))

    output = Matrix("logits", mixed.values.clamp(min=MIN_PROBABILITY).log(), last.rows, vocabulary)
    return tracer.record(
        "logarithm", "logits = ln(mixture)", "As logarithms they take the place of the layers' logits.",
        [mixed], ["→"], output, take_log,
    )  # fmt: skip


def _draw(
    tracer: Tracer, logits: Matrix, request: Request, uniform: float | None, drawn: int | None, precision: str | None
) -> int:
    """Trace the settings' filters, the softmax and the draw; return the id of the token."""
    settings = request.settings
    about = "Each logit becomes a probability: they sum to 1."
    own = tracer.softmax(logits, "softmax", "p", about)
    tracer.part = "sampling"
    scores = logits.values.float()
    filtered = filter_logits(scores, settings, [request.ids], stack_biases([request], scores))  # [1, V]
    is_searched = settings.num_beams > 1 or settings.best_of > 1 or bool(settings.choices)
    is_sampled = uniform is not None and not is_searched  # else the token may not be the engine's own choice
    why_other = DECODED_IN.format(precision) if precision and is_sampled else PUT_THERE
    if settings.greedy:
        chosen = int(filtered.argmax(dim=-1))
        changed = own
        if not torch.equal(filtered, scores):
            changed = _apply_settings(tracer, logits, filtered, request)
        if drawn not in (None, chosen):
            return _mark(tracer, changed, drawn, f"The likeliest would be greedy. {why_other}", "that of the answer")
        return _mark(tracer, changed, chosen, "Temperature 0, greedy: the likeliest token is taken.", "the largest")
    after = own
    if not torch.equal(filtered, scores):
        changed = _apply_settings(tracer, logits, filtered, request)
        after = tracer.softmax(changed, "softmax, after the settings", "p'", "The probabilities that are drawn from.")
    running = Matrix("sum", filtered.double().softmax(dim=-1).cumsum(dim=-1), after.rows, after.columns)

    def derive(row: int, column: int) -> Derivation:
        values = after.row(row)[: column + 1]
        return Derivation(math.fsum(values), "{}", tuple((figure(value), value) for value in values), ((row, None),))

    tracer.record(
        "running sum", f"sum = {after.name} of this token and of all before it",
        "Each token gets a stretch from 0 to 1 as long as its probability.",
        [after], ["→"], running, derive,
    )  # fmt: skip
    if uniform is not None:
        chosen = int(draw(filtered, torch.tensor([uniform], dtype=torch.float64, device=filtered.device)))
        about = f"A random number from 0 to 1, {uniform:.6f}, falls into the stretch of one token: that one is drawn."
        if drawn in (None, chosen):
            return _mark(tracer, running, chosen, about, f"the first above {figure(uniform)}")
        about = f"The random number {uniform:.6f} would draw another token. {why_other}"
        return _mark(tracer, running, drawn, about, "that of the answer")
    about = "The random number is not known."
    if drawn is not None:
        return _mark(tracer, running, drawn, f"{about} This is the token of the answer.", "that of the answer")
    chosen = int(filtered.argmax(dim=-1))
    return _mark(tracer, after, chosen, f"{about} This is the likeliest token.", "the largest")


def _apply_settings(tracer: Tracer, logits: Matrix, filtered: Tensor, request: Request) -> Matrix:
    """Record what the settings do to the logits; temperature alone is taken apart."""
    settings = request.settings
    divided = divide_by_temperature(logits.values.float(), settings.temperature) if settings.temperature else None
    if divided is not None and torch.equal(divided, filtered):
        by = f"/ {settings.temperature:g}"
        about = "Below 1, temperature makes likely tokens likelier; above 1, it makes all more alike."
        return tracer.scale(logits, 1 / settings.temperature, by, "temperature", "l", about)
    words = SEPARATOR.join(describe_sampling(settings)) or "the settings"
    output = Matrix("l", filtered, logits.rows, logits.columns)
    about = f"One operation, not taken apart: {words}. What they cut becomes -∞."
    return tracer.record("settings", f"l = logits after {words}", about, [logits], ["→"], output)


def _mark(tracer: Tracer, x: Matrix, chosen: int, about: str, why: str) -> int:
    """Record that a token was chosen, and return its id."""
    output = Matrix(
        "token", nn.functional.one_hot(torch.tensor([chosen]), x.shape[1]), x.rows, x.columns, is_whole=True
    )

    def derive(row: int, column: int) -> Derivation:
        text = f"{figure(x[row, column])} is {'' if column == chosen else 'not '}{why}"
        return Derivation(float(column == chosen), text, reads=((row, column),))

    tracer.record("the draw", f"token = {why}", about, [x], ["→"], output, derive)
    return chosen
