"""The next token of one sequence on a CPU: what `Transformer.forward` gives, in a part of the time for a small model.

There calling takes longer than computing. So one vector goes through functions here instead of rows through modules,
and what an encoder said is turned into keys and values once, not at each token.

Shapes: D d_model, H heads, K width of one head, S cache slots in use or source, V vocabulary.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.attention import Attention, Cache
from tinychat.model.layers import FeedForward, Position, RMSNorm, Turns
from tinychat.model.ngrams import Seen
from tinychat.model.transformer import Block, Memory, Residual, Transformer

Vectors = Callable[[Tensor], Tensor]
"""makes a vector of another one"""


class Stepper:
    """Feeds a model one token after the other.

    Args:
        model: in evaluation mode; its weights may change, but not the tensors that hold them.
    """

    def __init__(self, model: Transformer) -> None:
        decoder = model.decoder
        self.model = model
        self._layers = [_Layer(cast(Block, block), decoder.position) for block in decoder.blocks]
        self._norm = _norm(decoder.norm)
        self._head = _product(model.head)
        self._places = torch.arange(model.config.context)
        self._memory: Memory | None = None

    @staticmethod
    def serves(model: Transformer) -> bool:
        """Whether a model is on a CPU, in f32."""
        return model.head.weight.device.type == "cpu" and model.head.weight.dtype == torch.float32

    def step(self, id: int, place: int, cache: Cache, memory: Memory | None = None) -> Tensor:
        """The logits of what follows a token, [V].

        Args:
            id: the token.
            place: where it stands; the cache has taken up what is before, and takes up the token.
            cache: of one row.
            memory: of one source.
        """
        decoder = self.model.decoder
        if memory is not self._memory:
            self._memory = memory
            for layer in self._layers:
                layer.read(memory)
        cache.ids[0, cache.looks_back + place] = id
        known, positions = cache.ids[:, place : place + cache.looks_back + 1], self._places[place : place + 1]
        x = decoder.embed(known[:, cache.looks_back :], known, positions)[0, 0]  # [D]
        turns = decoder.position.turns(positions)
        for layer, keys, values in zip(self._layers, cache.keys, cache.values, strict=True):
            x = layer.step(x, turns, keys[0], values[0], place)
        x = self._norm(x)
        logits = self._head(x)
        if self.model.ngrams is None:
            return logits
        history = cache.ids[:, cache.looks_back :][:, : place + 1]
        mixed: Tensor = self.model.ngrams(logits[None, None], x[None, None], Seen(known, history, positions))
        return mixed[0, 0]


class _Layer:
    """A block."""

    def __init__(self, block: Block, position: Position) -> None:
        self._position = position
        self._attention = _Attention(block.attention)
        self._cross_attention = None if block.cross_attention is None else _Attention(block.cross_attention)
        self._feed_forward = None if block.feed_forward is None else _feed_forward(block.feed_forward)
        self._read: tuple[Tensor, Tensor] | None = None

    def read(self, memory: Memory | None) -> None:
        """Takes up what an encoder said."""
        if self._cross_attention is not None:
            self._read = None if memory is None else self._cross_attention.read(memory.states, self._position)

    def step(self, x: Tensor, turns: Turns, keys: Tensor, values: Tensor, place: int) -> Tensor:
        """[D] → [D]; of keys and values [H_kv, all slots, K], those at `place` are written."""
        attention, rotate = self._attention, self._position.rotate
        seen = attention.before(x)
        keys[:, place], values[:, place] = rotate(attention.key(seen), turns), attention.value(seen)
        query = rotate(attention.query(seen), turns)
        x = attention.after(x + attention.look(query, keys[:, : place + 1], values[:, : place + 1]))
        if self._cross_attention is not None and self._read is not None:
            cross = self._cross_attention
            x = cross.after(x + cross.look(cross.query(cross.before(x)), *self._read))
        return x if self._feed_forward is None else self._feed_forward(x)


class _Attention:
    """Attention of one vector, in steps, and what comes before and after it."""

    def __init__(self, residual: Residual) -> None:
        self._inner = attention = cast(Attention, residual.sublayer)
        self._query, self._key, self._value = map(_product, (attention.query, attention.key, attention.value))
        self._output = _same if attention.output is None else _product(attention.output)
        self._normalize = _same if attention.qk_norm is None else attention.qk_norm.forward
        self.before, self.after = _around(residual)

    def query(self, x: Tensor) -> Tensor:
        """[D] → [H, K]."""
        return self._normalize(self._query(x).view(self._inner.n_head, -1))

    def key(self, x: Tensor) -> Tensor:
        """[D] → [H_kv, K]."""
        return self._normalize(self._key(x).view(self._inner.kv_heads, -1))

    def value(self, x: Tensor) -> Tensor:
        """[D] → [H_kv, K]."""
        return self._value(x).view(self._inner.kv_heads, -1)

    def read(self, states: Tensor, position: Position) -> tuple[Tensor, Tensor]:
        """What an encoder said, [1, S, D], as keys and values [H_kv, S, K]."""
        _, keys, values = self._inner.project(states, position, None, states)
        return keys[0], values[0]

    def look(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[H, K] and twice [H_kv, S, K] → [D]; as `attend`, with each query beside its key."""
        heads, _, width = keys.shape
        scores = torch.bmm(query.view(heads, -1, width), keys.transpose(1, 2)).mul_(width**-0.5)  # [H_kv, H / H_kv, S]
        return self._output(torch.bmm(scores.softmax(-1), values).view(-1))


def _feed_forward(residual: Residual) -> Vectors:
    inner = cast(FeedForward, residual.sublayer)
    up, output, activation = _product(inner.up), _product(inner.output), inner.activation
    gate = None if inner.gate is None else _product(inner.gate)
    before, after = _around(residual)

    def feed(x: Tensor) -> Tensor:
        seen = before(x)
        hidden: Tensor = activation(up(seen)) if gate is None else activation(gate(seen)) * up(seen)
        return after(x + output(hidden))

    return feed


def _around(residual: Residual) -> tuple[Vectors, Vectors]:
    """What comes before a sublayer, and what after its sum."""
    norm = _norm(residual.norm)
    return (norm, _same) if residual.pre else (_same, norm)


def _norm(norm: nn.Module | None) -> Vectors:
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: F.layer_norm(x, shape, weight, bias, eps)
    if isinstance(norm, RMSNorm):
        (width,), weight, eps = norm.normalized_shape, norm.weight, cast(float, norm.eps)

        def normalize(x: Tensor) -> Tensor:
            normed: Tensor = x * (torch.dot(x, x).item() / width + eps) ** -0.5
            return normed if weight is None else normed.mul_(weight)

        return normalize
    return _same


def _product(linear: nn.Linear) -> Vectors:
    weight, bias = linear.weight, linear.bias
    return (lambda x: torch.mv(weight, x)) if bias is None else (lambda x: torch.addmv(bias, weight, x))


def _same(x: Tensor) -> Tensor:
    return x
