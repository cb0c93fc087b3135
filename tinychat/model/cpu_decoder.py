"""Decode one sequence token by token on a CPU: the logits of `Transformer.forward`, sooner for a small model.

There, calls take longer than arithmetic. So single vectors pass through functions instead of batches through modules,
and an encoder's output is projected to keys and values once, not at each token.

Shapes: see `transformer.py`; S is the number of slots in use, or of the encoder's positions.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.attention import (
    Attention,
    RMSNorm,
    RotaryTables,
    TurnAttention,
    rotate,
)
from tinychat.model.kv_cache import KVCache
from tinychat.model.ngrams import TokenContext
from tinychat.model.transformer import (
    Block,
    EncoderOutput,
    FeedForward,
    Residual,
    Transformer,
)

VectorFunction = Callable[[Tensor], Tensor]


class CPUDecoder:
    """Decodes one token at a time with a model in evaluation mode, whose weights must stay in the same tensors."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        blocks = enumerate(model.decoder.blocks)
        self._layers = [_Layer(cast(Block, block), model.config.window(layer)) for layer, block in blocks]
        self._norm, self._head = _norm(model.decoder.norm), _linear(model.head)
        self._positions = torch.arange(model.config.context_length)
        self._encoder_output: EncoderOutput | None = None

    @staticmethod
    def supports(model: Transformer) -> bool:
        """Whether the model is on a CPU, in f32."""
        return model.head.weight.device.type == "cpu" and model.head.weight.dtype == torch.float32

    def decode_one_token(
        self, id: int, position: int, cache: KVCache, encoder_output: EncoderOutput | None = None
    ) -> Tensor:
        """Read the token at a position and return the logits of the next one, [V].

        The cache has one row, which holds all earlier positions and takes up this one; `encoder_output` has one source.
        """
        decoder = self.model.decoder
        if encoder_output is not self._encoder_output:
            self._encoder_output = encoder_output
            for layer in self._layers:
                layer.set_encoder_output(encoder_output)
        cache.reserve(position + 1)
        cache.ids[0, cache.lookback + position] = id
        padded_ids = cache.ids[:, position : position + cache.lookback + 1]  # [1, P + 1]
        positions = self._positions[position : position + 1]  # [1]
        x = decoder.embed(padded_ids[:, cache.lookback :], padded_ids, positions)[0, 0]  # [D]
        rotary = decoder.position.rotary_tables(positions)
        history = cache.ids[:, cache.lookback :][:, : position + 1]  # [1, S]
        options: dict[str, Any] = {"positions": positions, "cache": cache, "num_slots": position + 1}
        if self.model.config.turn_layer is not None:
            options["turns"] = self.model.find_turns(history, positions)
        for layer, keys, values in zip(self._layers, cache.keys, cache.values, strict=True):
            x = layer.forward(x, rotary, keys[0], values[0], position, options)
        x = self._norm(x)
        logits = self._head(x)
        if self.model.ngrams is None:
            return logits
        context = TokenContext(padded_ids, history, positions)
        return self.model.ngrams(logits[None, None], x[None, None], context)[0, 0]  # type: ignore[no-any-return]


class _Layer:
    def __init__(self, block: Block, window: int | None) -> None:
        self._window, self._parallel = window, block.parallel
        self._attention = _Attention(block.attention)
        self._turn_attention = block.attention if isinstance(block.attention.sublayer, TurnAttention) else None
        self._cross_attention = None if block.cross_attention is None else _Attention(block.cross_attention)
        self._feed_forward = None if block.feed_forward is None else _feed_forward(block.feed_forward)
        self._encoded: tuple[Tensor, Tensor] | None = None

    def set_encoder_output(self, encoder_output: EncoderOutput | None) -> None:
        """Project an encoder's output to the keys and values of cross-attention."""
        if self._cross_attention is not None:
            self._encoded = None if encoder_output is None else self._cross_attention.encode(encoder_output.states)

    def forward(
        self,
        x: Tensor,
        rotary: RotaryTables | None,
        keys: Tensor,
        values: Tensor,
        position: int,
        options: dict[str, Any],
    ) -> Tensor:
        """[D] → [D]; writes at `position` of keys and values [G, all slots, K]; attention to turns takes `options`."""
        if self._turn_attention is None:
            out = self._attend(x, rotary, keys, values, position)
        else:
            out = self._turn_attention(x[None, None], None, **options)[0, 0]
        if self._cross_attention is not None and self._encoded is not None:
            cross = self._cross_attention
            out = cross.after(out + cross.attend(cross.query(cross.before(out)), *self._encoded))
        return out if self._feed_forward is None else self._feed_forward(x if self._parallel else out, out)

    def _attend(self, x: Tensor, rotary: RotaryTables | None, keys: Tensor, values: Tensor, position: int) -> Tensor:
        attention = self._attention
        normed = attention.before(x)
        keys[:, position], values[:, position] = rotate(attention.key(normed), rotary), attention.value(normed)
        query = rotate(attention.query(normed), rotary)
        seen = slice(0 if self._window is None else max(0, position + 1 - self._window), position + 1)
        return attention.after(x + attention.attend(query, keys[:, seen], values[:, seen]))


class _Attention:
    """Attention of one vector, in steps, with what precedes and follows it in the block."""

    def __init__(self, residual: Residual) -> None:
        self._inner = attention = cast(Attention, residual.sublayer)
        self._query, self._key, self._value = map(_linear, (attention.query, attention.key, attention.value))
        self._output = _identity if attention.output is None else _linear(attention.output)
        norms = (attention.query_norm, attention.key_norm)
        self._norm_query, self._norm_key = (_identity if norm is None else norm.forward for norm in norms)
        self.before, self.after = _around(residual)

    def query(self, x: Tensor) -> Tensor:
        """[D] → [H, K]."""
        return self._norm_query(self._query(x).view(self._inner.n_head, -1))

    def key(self, x: Tensor) -> Tensor:
        """[D] → [G, K]."""
        return self._norm_key(self._key(x).view(self._inner.kv_heads, -1))

    def value(self, x: Tensor) -> Tensor:
        """[D] → [G, K]."""
        return self._value(x).view(self._inner.kv_heads, -1)

    def encode(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [G, S, K] of an encoder's states [1, S, D]."""
        _, keys, values = self._inner.project(states, encoded=states)
        return keys[0], values[0]

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[H, K] and twice [G, S, K] → [D]: `attention.attend`, with the queries grouped by their keys."""
        heads, _, width = keys.shape
        scores = torch.bmm(query.view(heads, -1, width), keys.transpose(1, 2)).mul_(self._inner.scale)  # [G, H/G, S]
        return self._output(torch.bmm(scores.softmax(-1), values).view(-1))


def _feed_forward(residual: Residual) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of its input and of what its result is added to."""
    inner = cast(FeedForward, residual.sublayer)
    up, output, activation = _linear(inner.up), _linear(inner.output), inner.activation
    gate = None if inner.gate is None else _linear(inner.gate)
    before, after = _around(residual)

    def feed_forward(x: Tensor, onto: Tensor) -> Tensor:
        normed = before(x)
        hidden: Tensor = activation(up(normed)) if gate is None else activation(gate(normed)) * up(normed)
        return after(onto + output(hidden))

    return feed_forward


def _around(residual: Residual) -> tuple[VectorFunction, VectorFunction]:
    """Return what precedes a sublayer and what follows its residual sum: one of them is the norm."""
    norm = _norm(residual.norm)
    return (norm, _identity) if residual.pre else (_identity, norm)


def _norm(norm: nn.Module | None) -> VectorFunction:
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: F.layer_norm(x, shape, weight, bias, eps)
    if isinstance(norm, RMSNorm):
        (width,), weight, eps = norm.normalized_shape, norm.weight, cast(float, norm.eps)

        def normalize(x: Tensor) -> Tensor:
            normed: Tensor = x * (torch.dot(x, x) / width + eps).rsqrt()
            return normed if weight is None else normed.mul_(weight)

        return normalize
    return _identity


def _linear(linear: nn.Linear) -> VectorFunction:
    weight, bias = linear.weight, linear.bias
    return (lambda x: torch.mv(weight, x)) if bias is None else (lambda x: torch.addmv(bias, weight, x))


def _identity(x: Tensor) -> Tensor:
    return x
