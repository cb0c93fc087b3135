"""The model on one page: ids → embeddings → blocks → logits, decoder-only or encoder-decoder.

In reading order: feed-forward, block, model, loss; `attention.py` holds norms, positions, dropout and attention. Every
option of `ModelConfig` is a branch of one attention and one block. Shapes, here and in the other files of this folder:

    B  batch: rows                   D  d_model                       V  vocabulary
    T  time: query positions         H  attention heads               P  config.lookback: ids before the first input
    S  keys: slots of the cache,     G  key/value heads, G divides H
       or the encoder's positions    K  head width

Names of modules and parameters are part of the file format (`model.safetensors`) and must not change.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.errors import ModelError
from tinychat.model.attention import (
    POSITIONS,
    Attention,
    Dropout,
    TurnAttention,
    TurnMasks,
    additive_mask,
    make_norm,
)
from tinychat.model.config import ModelConfig
from tinychat.model.kv_cache import KVCache
from tinychat.model.ngrams import NGrams, TokenContext

IGNORED = -100
"""Target id that the loss skips: padding."""
NO_TOKEN = -1
"""Id that pads a source shorter than others of its batch."""
ROWS_MULTIPLE = 32
"""On a CPU and without n-grams, a loss is computed at a number of positions that is a multiple of this, unless there
are few."""
LAYERS_LOSS_WEIGHT = 0.3
"""Weight of the layers' own loss beside that of their mixture with counts, in training."""

# --- feed-forward -------------------------------------------------------------------------------------------------


class ReLU2(torch.autograd.Function):
    """relu(x)² of x [...] (So et al. 2021, §3), in fewer passes over memory than autograd takes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x.relu()
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.mul(ctx.saved_tensors[0]).mul_(2)


relu2: Callable[[Tensor], Tensor] = ReLU2.apply
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,  # Hendrycks, Gimpel 2016
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # as in GPT-2
    "relu": F.relu,
    "relu2": relu2,
    "swiglu": F.silu,  # of the gate: Shazeer 2020
}


class FeedForward(nn.Module):
    """output(activation(up(x))), or output(activation(gate(x)) · up(x)) where it is gated (SwiGLU, Shazeer 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.feed_forward_width
        self.up = nn.Linear(config.d_model, width, bias=config.bias)
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if config.feed_forward == "swiglu" else None
        self.output = nn.Linear(width, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.feed_forward]

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # [B, T, d_ff]
        hidden = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up  # [B, T, d_ff]
        return self.output(hidden)  # type: ignore[no-any-return]  # [B, T, D]


# --- block --------------------------------------------------------------------------------------------------------


class EncoderOutput(NamedTuple):
    """The encoder's states of a batch of sources, and what is added to the scores of cross-attention."""

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, 1, 1, S]: 0 at tokens, −∞ at padding


class Residual(nn.Module):
    """A sublayer with its residual connection, norm and dropout: x + f(norm(x)) (pre) or norm(x + f(x)) (post).

    With `onto`, f(norm(x)) is added to that instead of x.
    """

    def __init__(self, config: ModelConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model)
        self.sublayer = sublayer
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, *args: object, onto: Tensor | None = None, **kwargs: object) -> Tensor:
        out: Tensor = self.sublayer(self.norm(x) if self.pre else x, *args, **kwargs)  # [B, T, D]
        x = (x if onto is None else onto) + (self.dropout(out) if self.training else out)
        return x if self.pre else self.norm(x)


class Block(nn.Module):
    """Self-attention, then cross-attention and feed-forward where the architecture has them; or all on one input."""

    def __init__(self, config: ModelConfig, layer: int, cross: bool) -> None:
        super().__init__()
        kind = TurnAttention if layer == config.turn_layer and not cross else Attention
        self.attention = Residual(config, kind(config, layer))
        self.cross_attention = Residual(config, Attention(config, layer)) if cross else None
        self.feed_forward = Residual(config, FeedForward(config)) if config.feed_forward != "none" else None
        self.parallel = config.parallel

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        encoder_output: EncoderOutput | None,
        rows: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        """[B, T, D] → [B, T, D], or [N, D] of N `rows` of the B · T; `options` are the keywords of self-attention."""
        out: Tensor = self.attention(x, mask, **options)
        if self.cross_attention is not None and encoder_output is not None:
            out = self.cross_attention(out, encoder_output.mask, encoded=encoder_output.states)
        if rows is not None:
            x, out = (states.flatten(0, 1).index_select(0, rows) for states in (x, out))
        return out if self.feed_forward is None else self.feed_forward(x if self.parallel else out, onto=out)


# --- model --------------------------------------------------------------------------------------------------------


class Stack(nn.Module):
    """Embeddings, blocks and the final norm: both encoder and decoder."""

    def __init__(self, config: ModelConfig, vocab_size: int, n_layer: int, cross: bool) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        # In the two tables below, row 0 belongs to id −1: no token.
        self.earlier = nn.ModuleList(
            nn.Embedding(vocab_size + 1, config.d_model) for _ in range(config.previous_token_embeddings)
        )
        self.pairs = nn.Embedding((vocab_size + 1) * vocab_size, config.d_model) if config.bigram_embedding else None
        self.position = POSITIONS[config.position](config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer, cross) for layer in range(n_layer))
        self.compiled: list[Callable[..., Tensor]] = []
        """The blocks as training runs them; empty where they are not compiled."""
        self.norm = make_norm(config, config.d_model) if config.final_norm and config.norm_position == "pre" else None

    def embed(self, ids: Tensor, padded_ids: Tensor, positions: Tensor) -> Tensor:
        """Return embeddings [B, T, D] of ids [B, T] at positions [T] or [B, T].

        `padded_ids` [B, P + T] precedes them by the P ids before, −1 where there are none.
        """
        x: Tensor = self.embedding(ids)
        time, before = ids.shape[1], self.config.lookback
        for distance, table in enumerate(self.earlier, start=1):
            x = x + table(padded_ids[:, before - distance :][:, :time] + 1)
        if self.pairs is not None:
            previous = padded_ids[:, before - 1 :][:, :time] + 1
            x = x + self.pairs(previous * self.embedding.num_embeddings + ids)
        if self.config.scale_embedding:
            x = x * self.config.d_model**0.5
        x = self.dropout(self.position.embed(x, positions))
        # Under autocast the residual stream takes its type here, so that no layer converts it back and forth.
        kind = x.device.type
        return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x

    def forward(
        self,
        ids: Tensor,
        padded_ids: Tensor,
        mask: Tensor | None,
        positions: Tensor,
        encoder_output: EncoderOutput | None = None,
        *,
        causal: bool = False,
        rows: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        """Return hidden states [B, T, D]; ids and positions as in `embed`, `options` as in `Block`.

        The mask is [B or 1, 1, T, S], True where a query may attend; None: everywhere. `causal` says that it is the
        causal one of T = S. With `rows` [N], of the B · T, only their states are returned, [N, D].
        """
        x = self.embed(ids, padded_ids, positions)
        masks = dict[int | None, Tensor | None]()
        for window in set(map(self.config.window, range(len(self.blocks)))):
            masks[window] = None if mask is None else additive_mask(mask, x.dtype, window)
        rotary = self.position.rotary_tables(positions)
        blocks: Iterable[Callable[..., Tensor]] = (self.training and self.compiled) or self.blocks
        for layer, block in enumerate(blocks):
            window = self.config.window(layer)
            own, options["causal"] = masks[window], causal and window is None
            of_block = rows if layer == len(self.blocks) - 1 else None
            x = block(x, own, encoder_output, of_block, positions=positions, rotary=rotary, **options)
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """A decoder-only or encoder-decoder transformer (Vaswani et al. 2017), with every option of `ModelConfig`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        source_size = config.source_vocab_size or config.vocab_size
        encoder_layers = config.n_encoder_layer
        self.encoder = Stack(config, source_size, encoder_layers, cross=False) if encoder_layers else None
        self.decoder = Stack(config, config.vocab_size, config.n_layer, cross=config.encoder_decoder)
        self.ngrams = NGrams(config) if config.ngram_order else None
        head_bias = config.bias if config.head_bias is None else config.head_bias
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=head_bias)
        if config.tie_embeddings:
            self.head.weight = self.decoder.embedding.weight  # Press, Wolf 2017
        self._initialize()

    def forward(
        self,
        ids: Tensor,
        *,
        encoder_output: EncoderOutput | None = None,
        cache: KVCache | None = None,
        start: int | Tensor = 0,
        num_slots: int | None = None,
        folds: Tensor | None = None,
        preceding: Tensor | None = None,
        followers: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of the token after each of `ids`, [B, T, V].

        Args:
            ids: [B, T]. Padding behind a shorter row changes nothing before it, and a cache overwrites it before it is
                attended to.
            encoder_output: what `encode` returned for the sources.
            cache: of the positions before `start`; it takes up `ids`.
            start: position of the first of `ids`; [B] where rows differ.
            num_slots: number of slots of the cache to attend to; None: all that can have been written.
            folds: [B], the fold of the counted text that each row is from (see `NGrams`); None: none.
            preceding: [B, P], ids before those of an uncached pass, `NO_TOKEN` where there are none: n-grams see them,
                and so do embeddings of previous tokens, but attention does not.
            followers: [B, T, K, R], what followed earlier occurrences, for n-grams (see `recent_followers`); None: find
                them in `preceding`, `ids` and the cache.
        """
        x, context = self._hidden_states(ids, encoder_output, cache, start, num_slots, preceding)
        context = context._replace(followers=followers)
        logits: Tensor = self.head(x)  # [B, T, V]
        return logits if self.ngrams is None else self.ngrams(logits, x, context, folds)

    def _hidden_states(
        self,
        ids: Tensor,
        encoder_output: EncoderOutput | None,
        cache: KVCache | None = None,
        start: int | Tensor = 0,
        num_slots: int | None = None,
        preceding: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, TokenContext]:
        """Return the decoder's states [B, T, D] of ids [B, T], or of `rows`, and the tokens that n-grams look at."""
        time = ids.shape[1]
        steps = torch.arange(time, device=ids.device)
        if isinstance(start, int):
            positions, num_slots = steps + start, num_slots or start + time  # [T]
        else:
            positions = steps + start.unsqueeze(1)  # [B, T]
        if cache is not None and num_slots is not None:
            cache.reserve(num_slots)
        slots = steps if cache is None else torch.arange(num_slots or cache.length, device=ids.device)  # [S]
        mask: Tensor | None = None
        # One token with no slot behind it may attend to all of them, unless some are outside of a window.
        if time > 1 or isinstance(start, Tensor) or self.config.attention_window is not None:
            mask = (slots <= positions.unsqueeze(-1)).unsqueeze(-3)  # causal: [1 or B, 1, T, S]
        history = ids if preceding is None else torch.cat((preceding, ids), dim=1)  # [B, S]
        ends = positions + (history.shape[1] - time if cache is None else 0)  # [T] or [B, T]
        if cache is None:
            padded_ids = self._pad(history)[:, -(self.config.lookback + time) :]  # [B, P + T]
        else:
            padded_ids = cache.update_ids(ids, positions)
            history = cache.ids[:, cache.lookback :][:, : len(slots)]
        causal = mask is not None and isinstance(start, int) and num_slots == time
        options: dict[str, Any] = {"cache": cache, "num_slots": num_slots, "causal": causal, "rows": rows}
        if self.config.turn_layer is not None:
            options["turns"] = self.find_turns(*((ids, steps) if cache is None else (history, positions)))
        x = self.decoder(ids, padded_ids, mask, positions, encoder_output, **options)
        return x, TokenContext(padded_ids, history, ends)

    def find_turns(self, ids: Tensor, slots: Tensor) -> TurnMasks:
        """Return the turns of ids [B, S], for those at `slots` [T] or [B, T]."""
        config = self.config
        return TurnMasks.find(ids, slots, config.turn_token, config.reply_token, config.kv_heads)

    def _pad(self, ids: Tensor) -> Tensor:
        """[B, T] → [B, P + T]: ids that nothing precedes."""
        return F.pad(ids, (self.config.lookback, 0), value=-1)

    def encode(self, source: Tensor) -> EncoderOutput:
        """Return the encoder's states of sources [B, S], padded with `NO_TOKEN`. Attention is bidirectional.

        Raises:
            ModelError: the model has no encoder.
        """
        if self.encoder is None:
            raise ModelError("this model has no encoder", "only a translation model reads a source")
        mask, ids = (source != NO_TOKEN)[:, None, None, :], source.clamp(min=0)  # [B, 1, 1, S], [B, S]
        states = self.encoder(ids, self._pad(ids), mask, torch.arange(source.shape[1], device=source.device))
        return EncoderOutput(states, additive_mask(mask, states.dtype))

    def loss(
        self,
        ids: Tensor,
        targets: Tensor,
        *,
        source: Tensor | None = None,
        folds: Tensor | None = None,
        preceding: Tensor | None = None,
        followers: Tensor | None = None,
    ) -> Tensor:
        """Return the mean cross-entropy of targets [B, T] after ids [B, T], in nats per target: a scalar, in f32.

        Targets are `IGNORED` where there is none; `source` is [B, S] as in `encode`, `folds`, `preceding` and
        `followers` are as in `forward`. In training, a model with n-grams also gets the gradient of what its layers
        predict alone, so that they learn the language themselves and not only what counts leave open.
        """
        encoder_output = None if source is None else self.encode(source)
        is_target, rows = targets != IGNORED, None
        # In conversations half of the tokens need no head and no feed-forward of the last layer. Their number differs
        # from batch to batch, which neither compiled blocks nor the graphs of a GPU can follow.
        last_block = self.decoder.blocks and not self.decoder.compiled
        if self.ngrams is None and ids.device.type == "cpu" and last_block and not is_target.all():
            rows = is_target.flatten().nonzero().squeeze(1)
            # Some rows come once more, as kernels are prepared and cached for each number of them.
            repeated = rows[: -len(rows) % ROWS_MULTIPLE]
            targets = torch.cat((targets.flatten()[rows], torch.full_like(repeated, IGNORED)))
            rows = torch.cat((rows, repeated))
        x, context = self._hidden_states(ids, encoder_output, preceding=preceding, rows=rows)
        logits: Tensor = self.head(x)
        if self.ngrams is None:
            return cross_entropy(logits, targets)
        context = context._replace(followers=followers)
        mixed, of_layers = self.ngrams.score(logits, x, context, targets.where(is_target, 0), folds)
        if self.training:
            mixed = mixed + LAYERS_LOSS_WEIGHT * (of_layers - of_layers.detach())  # changes the gradient, not the value
        return -(mixed * is_target).sum() / is_target.sum()

    def round_layers(self, dtype: torch.dtype) -> Self:
        """Convert the layers to a type such as bf16, and return the model; n-grams stay as they are, in f32.

        Counts beyond 256 have no bf16, and their small network decides how much all predictions count.
        """
        for child in self.children():
            if child is not self.ngrams:
                child.to(dtype)
        return self

    def new_cache(self, batch: int) -> KVCache:
        """Return an empty cache of `batch` rows, on the weights' device and of their type."""
        return KVCache(self.config, batch, self.head.weight.device, self.head.weight.dtype)

    def compile(self, *, on: bool = True) -> None:
        """Have training run compiled blocks from now on, or plain ones, as evaluation and decoding of any shape do."""
        for stack in self.stacks:
            stack.compiled = [torch.compile(block, dynamic=False) for block in stack.blocks] if on else []

    def matrices(self) -> list[nn.Parameter]:
        """Return the matrices inside the blocks: those that Muon orthogonalizes."""
        return [weight for stack in self.stacks for weight in stack.blocks.parameters() if weight.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        """Return all other parameters: embeddings, head, biases, weights of norms."""
        matrices = {id(weight) for weight in self.matrices()}
        return [weight for weight in self.parameters() if id(weight) not in matrices]

    @property
    def parameter_count(self) -> int:
        """The number of parameters; shared ones count once."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The encoder, where there is one, and the decoder."""
        return (self.decoder,) if self.encoder is None else (self.encoder, self.decoder)

    def _initialize(self) -> None:
        """Set the initial weights by `ModelConfig.initialization`; `torch` leaves torch's defaults."""
        if self.config.initialization == "torch":
            return
        zero = self.config.initialization == "zero"
        outputs = {module.output for module in self.modules() if isinstance(module, Attention | FeedForward)}
        layers = max(1, self.config.n_layer + self.config.n_encoder_layer)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.2 if zero else 0.02)
            elif isinstance(module, nn.Linear):
                if zero:
                    std = 0.0 if module in outputs or module is self.head else 0.5 * module.in_features**-0.5
                else:
                    std = 0.02 * (2 * layers) ** -0.5 if module in outputs else 0.02
                if module is not self.head or not self.config.tie_embeddings:
                    nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if self.ngrams is not None:
            self.ngrams.initialize()


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of logits [..., V] and targets [...] in nats, in f32, skipping `IGNORED` targets."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=IGNORED, reduction=reduction)
