"""The model: ids → embeddings → blocks → logits; a decoder, or an encoder and a decoder.

Shapes: B batch, T time, S source or cache slots, D d_model, H heads, K width of one head, V vocabulary.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.errors import ModelError
from tinychat.model.attention import Attention, Cache, additive
from tinychat.model.config import ModelConfig
from tinychat.model.layers import POSITIONS, Dropout, FeedForward, make_norm
from tinychat.model.ngrams import NGrams, Seen

IGNORED = -100
"""A target that the loss passes over: padding."""
NO_TOKEN = -1
"""What stands behind the end of a source that is shorter than others of its batch."""
ALONE = 0.3
"""how much the layers learn to predict by themselves, beside learning to predict together with counts"""


class Memory(NamedTuple):
    """What an encoder made of a source."""

    states: Tensor
    """[B, S, D]"""
    mask: Tensor
    """[B, 1, 1, S], added to the scores of attention: 0 at its tokens, −∞ behind its end"""


class Residual(nn.Module):
    """Adds what a sublayer makes; the only place that knows whether the norm comes before or after."""

    def __init__(self, config: ModelConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model)
        self.sublayer = sublayer
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, *args: object, **kwargs: object) -> Tensor:
        made: Tensor = self.sublayer(self.norm(x) if self.pre else x, *args, **kwargs)
        x = x + (self.dropout(made) if self.training else made)
        return x if self.pre else self.norm(x)


class Block(nn.Module):
    """Self-attention, attention to the encoder where there is one, feed-forward where there is one."""

    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        self.attention = Residual(config, Attention(config))
        self.cross_attention = Residual(config, Attention(config)) if cross else None
        self.feed_forward = Residual(config, FeedForward(config)) if config.feed_forward != "none" else None

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory | None, **places: object) -> Tensor:
        """x: [B, T, D]; `places` are what attention needs to know of positions and the cache."""
        x = self.attention(x, mask, **places)
        if self.cross_attention is not None and memory is not None:
            x = self.cross_attention(x, memory.mask, memory=memory.states, **places)
        return x if self.feed_forward is None else self.feed_forward(x)


class Stack(nn.Module):
    """Embeddings, blocks and a final norm: the encoder and the decoder are both this."""

    def __init__(self, config: ModelConfig, vocab_size: int, n_layer: int, cross: bool) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        # Row 0 of each is that of id −1: nothing stands before.
        self.earlier = nn.ModuleList(nn.Embedding(vocab_size + 1, config.d_model) for _ in range(config.earlier_tokens))
        self.pairs = nn.Embedding((vocab_size + 1) * vocab_size, config.d_model) if config.token_pairs else None
        self.position = POSITIONS[config.position](config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(n_layer))
        self.compiled: list[Callable[..., Tensor]] = []
        """the blocks as they are computed in training; empty where they are not compiled"""
        self.norm = make_norm(config, config.d_model) if config.final_norm and config.norm_position == "pre" else None

    def embed(self, ids: Tensor, known: Tensor, positions: Tensor) -> Tensor:
        """[B, T] ids → [B, T, D]; `known` [B, looks_back + T] are they with those before them, −1 where none is."""
        x: Tensor = self.embedding(ids)
        time, before = ids.shape[1], self.config.looks_back
        for distance, table in enumerate(self.earlier, start=1):
            x = x + table(known[:, before - distance :][:, :time] + 1)
        if self.pairs is not None:
            previous = known[:, before - 1 :][:, :time] + 1
            x = x + self.pairs(previous * self.embedding.num_embeddings + ids)
        if self.config.scale_embedding:
            x = x * self.config.d_model**0.5
        x = self.dropout(self.position.embed(x, positions))
        # Under autocast all that follows is of its type, so that nothing is turned back and forth between the layers.
        kind = x.device.type
        return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x

    def forward(
        self,
        ids: Tensor,
        known: Tensor,
        mask: Tensor | None,
        positions: Tensor,
        *,
        memory: Memory | None = None,
        cache: Cache | None = None,
        used: int | None = None,
    ) -> Tensor:
        """[B, T] ids → [B, T, D].

        Args:
            known: as `embed` takes it.
            mask: True where a token may look, [B or 1, 1, T, S]; None: everywhere.
        """
        x = self.embed(ids, known, positions)
        mask = None if mask is None else additive(mask, x.dtype)
        turns = self.position.turns(positions)
        places = {"position": self.position, "positions": positions, "turns": turns, "cache": cache, "used": used}
        blocks: Iterable[Callable[..., Tensor]] = (self.training and self.compiled) or self.blocks
        for layer, block in enumerate(blocks):
            x = block(x, mask, memory, layer=layer, **places)
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """A decoder-only or encoder-decoder transformer, with every option of `ModelConfig`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        encoder_vocab_size = config.source_vocab_size or config.vocab_size
        self.encoder = (
            Stack(config, encoder_vocab_size, config.n_encoder_layer, cross=False) if config.encoder_decoder else None
        )
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
        memory: Memory | None = None,
        cache: Cache | None = None,
        start: int | Tensor = 0,
        used: int | None = None,
        folds: Tensor | None = None,
    ) -> Tensor:
        """The logits of what follows each token.

        Args:
            ids: [B, T]. What stands behind the end of a shorter row changes nothing before it: a cache, too, is written
                over there before anything looks.
            memory: what `encode` made of the source.
            cache: what was seen before; it takes up what is new.
            start: the place of the first of `ids`; [B] where the rows differ.
            used: how many slots of the cache to look at; None: all that can have been written.
            folds: [B], the fold of the counted text that each row stands in: see `NGrams`.

        Returns:
            [B, T, V].
        """
        x, seen = self._decode(ids, memory, cache, start, used)
        logits: Tensor = self.head(x)
        return logits if self.ngrams is None else self.ngrams(logits, x, seen, folds)

    def _decode(
        self,
        ids: Tensor,
        memory: Memory | None,
        cache: Cache | None = None,
        start: int | Tensor = 0,
        used: int | None = None,
    ) -> tuple[Tensor, Seen]:
        """What the layers make of ids, [B, T, D]."""
        time = ids.shape[1]
        steps = torch.arange(time, device=ids.device)
        if isinstance(start, int):
            positions, used = steps + start, used or start + time  # [T]
        else:
            positions = steps + start.unsqueeze(1)  # [B, T]
        slots = steps if cache is None else torch.arange(used or cache.length, device=ids.device)
        mask: Tensor | None = None
        if time > 1 or isinstance(start, Tensor):  # a single new token with no slot behind it sees them all
            mask = (slots <= positions.unsqueeze(-1)).unsqueeze(-3)  # [1 or B, 1, T, S]: nothing that comes later
        known = self._known(ids) if cache is None else cache.with_earlier(ids, positions)
        x = self.decoder(ids, known, mask, positions, memory=memory, cache=cache, used=used)
        history = ids if cache is None else cache.ids[:, cache.looks_back :][:, : len(slots)]
        return x, Seen(known, history, positions)

    def _known(self, ids: Tensor) -> Tensor:
        """[B, looks_back + T]: ids with those before them, of which there are none."""
        return F.pad(ids, (self.config.looks_back, 0), value=-1)

    def encode(self, source: Tensor) -> Memory:
        """What the encoder makes of sources [B, S], `NO_TOKEN` behind the ends of shorter ones. It looks both ways.

        Raises:
            ModelError: the model has no encoder.
        """
        if self.encoder is None:
            raise ModelError("this model has no encoder", "only a translation model reads a source")
        mask, ids = (source != NO_TOKEN)[:, None, None, :], source.clamp(min=0)
        states = self.encoder(ids, self._known(ids), mask, torch.arange(source.shape[1], device=source.device))
        return Memory(states, additive(mask, states.dtype))

    def loss(
        self, ids: Tensor, targets: Tensor, *, source: Tensor | None = None, folds: Tensor | None = None
    ) -> Tensor:
        """Mean cross-entropy in nats of `targets` [B, T], passing over those that are `IGNORED`; a scalar, in f32.

        In training its gradient is also that of what the layers say alone, where n-grams are counted: they are to know
        the language themselves, not only what counting leaves open.

        Args:
            source: [B, S], as `encode` takes it.
            folds: as `forward` takes it.
        """
        x, seen = self._decode(ids, None if source is None else self.encode(source))
        logits: Tensor = self.head(x)
        if self.ngrams is None:
            return cross_entropy(logits, targets)
        loss = cross_entropy(self.ngrams(logits, x, seen, folds), targets)
        if self.training:
            alone = cross_entropy(logits, targets)
            loss = loss + ALONE * (alone - alone.detach())
        return loss

    def new_cache(self, batch: int) -> Cache:
        """An empty cache for so many rows, in the weights' own type."""
        return Cache(self.config, batch, self.head.weight.device, self.head.weight.dtype)

    def compile(self, *, on: bool = True) -> None:
        """Lets the blocks be compiled for training, at its next step, or no longer.

        Evaluation and decoding, where shapes change all the time, are as they were.
        """
        for stack in self.stacks:
            stack.compiled = [torch.compile(block, dynamic=False) for block in stack.blocks] if on else []

    def matrices(self) -> list[nn.Parameter]:
        """The matrices inside the blocks: those that Muon orthogonalizes."""
        return [weight for stack in self.stacks for weight in stack.blocks.parameters() if weight.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        """All other parameters: embeddings, head, biases, the weights of norms."""
        matrices = {id(weight) for weight in self.matrices()}
        return [weight for weight in self.parameters() if id(weight) not in matrices]

    @property
    def parameter_count(self) -> int:
        """Every parameter, a shared one once."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The encoder, where there is one, and the decoder."""
        return (self.decoder,) if self.encoder is None else (self.encoder, self.decoder)

    def _initialize(self) -> None:
        """Sets the first weights, as `ModelConfig.initialization` names them; `torch` leaves them alone."""
        if self.config.initialization == "torch":
            return
        outputs = {module.output for module in self.modules() if isinstance(module, Attention | FeedForward)}
        zero = self.config.initialization == "zero"
        layers = max(1, self.config.n_layer + self.config.n_encoder_layer)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.2 if zero else 0.02)
            elif isinstance(module, nn.Linear):
                std = 0.5 * module.in_features**-0.5 if zero else 0.02
                if module in outputs:
                    std = 0.0 if zero else std * (2 * layers) ** -0.5
                if module is self.head and zero:
                    std = 0.0
                if module is not self.head or not self.config.tie_embeddings:
                    nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if self.ngrams is not None:
            self.ngrams.initialize()


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """In nats, of [B, T, V] and [B, T], passing over targets that are `IGNORED`: their mean or `sum`, in f32."""
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction=reduction)
