"""The model: ids → embeddings → blocks → logits; a decoder, or an encoder and a decoder.

Shapes: B batch, T time, S source or cache slots, D d_model, H heads, K width of one head, V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.errors import ModelError
from tinychat.model.attention import Attention, Cache, additive
from tinychat.model.config import ModelConfig
from tinychat.model.layers import Dropout, FeedForward, make_norm, make_position
from tinychat.model.ngrams import NGrams

IGNORED = -100
"""A target that the loss passes over: padding."""
NO_TOKEN = -1
"""What stands behind the end of a source that is shorter than others of its batch."""
ALONE = 0.3
"""how much the layers learn to predict by themselves, beside learning to predict together with counts"""


class Residual(nn.Module):
    """Adds what a sublayer makes; the only place that knows whether the norm comes before or after."""

    def __init__(self, config: ModelConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model)
        self.sublayer = sublayer
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, *args: object, **kwargs: object) -> Tensor:
        if self.pre:
            return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))  # type: ignore[no-any-return]
        return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Self-attention, attention to the encoder where there is one, feed-forward where there is one."""

    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        self.attention = Residual(config, Attention(config))
        self.cross_attention = Residual(config, Attention(config)) if cross else None
        self.feed_forward = Residual(config, FeedForward(config)) if config.feed_forward != "none" else None

    def forward(
        self, x: Tensor, mask: Tensor | None, memory: Tensor | None, memory_mask: Tensor | None, **places: object
    ) -> Tensor:
        """x: [B, T, D]; `places` are what attention needs to know of positions and the cache."""
        x = self.attention(x, mask, **places)
        if self.cross_attention is not None:
            x = self.cross_attention(x, memory_mask, **places | {"memory": memory})
        return x if self.feed_forward is None else self.feed_forward(x)


class Stack(nn.Module):
    """Embeddings, blocks and a final norm: the encoder and the decoder are both this."""

    def __init__(self, config: ModelConfig, vocab_size: int, n_layer: int, cross: bool) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        # Row 0 of each of these stands for «nothing before»: id −1.
        self.earlier = nn.ModuleList(nn.Embedding(vocab_size + 1, config.d_model) for _ in range(config.earlier_tokens))
        self.pairs = nn.Embedding((vocab_size + 1) * vocab_size, config.d_model) if config.token_pairs else None
        self.position = make_position(config)
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
        cache: Cache | None = None,
        used: int | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """[B, T] ids → [B, T, D].

        Args:
            known: as `embed` takes it.
            mask: True where a token may look, [B or 1, 1, T, S]; None: everywhere.
            memory_mask: the same, for `memory`.
        """
        x = self.embed(ids, known, positions)
        mask, memory_mask = additive(mask, x.dtype), additive(memory_mask, x.dtype)
        places = {"position": self.position, "positions": positions, "cache": cache, "used": used}
        blocks: Iterable[Callable[..., Tensor]] = (self.training and self.compiled) or self.blocks
        for layer, block in enumerate(blocks):
            x = block(x, mask, memory, memory_mask, layer=layer, **places)
        return x if self.norm is None else self.norm(x)


@dataclass(frozen=True)
class Part:
    """One row of a model's table: `blocks.0.attention`, `Attention`, 65,536."""

    name: str
    kind: str
    parameters: int


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
        padding: Tensor | None = None,
        cache: Cache | None = None,
        start: int | Tensor = 0,
        used: int | None = None,
        memory: Tensor | None = None,
        memory_padding: Tensor | None = None,
        folds: Tensor | None = None,
    ) -> Tensor:
        """The logits of what follows each token.

        Args:
            ids: [B, T].
            padding: [B, T], True where a token is real. With a cache there is no need: what is written behind the end
                of a row is written over before anything looks at it.
            cache: what was seen before; it takes up what is new.
            start: the place of the first of `ids`; [B] where the rows differ.
            used: how many slots of the cache to look at; None: all that can have been written.
            memory: [B, S, D], what `encode` made of the source.
            memory_padding: [B, S], True where a source token is real.
            folds: [B], the fold of the counted text that each row stands in: see `NGrams`.

        Returns:
            [B, T, V].
        """
        x, places = self._decode(ids, padding, cache, start, used, memory, memory_padding)
        logits: Tensor = self.head(x)
        return logits if self.ngrams is None else self.ngrams(logits, x, *places, folds)

    def _decode(
        self,
        ids: Tensor,
        padding: Tensor | None = None,
        cache: Cache | None = None,
        start: int | Tensor = 0,
        used: int | None = None,
        memory: Tensor | None = None,
        memory_padding: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """What the layers make of ids, [B, T, D]; and what `NGrams` is to know of their places."""
        time = ids.shape[1]
        steps = torch.arange(time, device=ids.device)
        if isinstance(start, int):
            positions, used = steps + start, used or start + time  # [T]
        else:
            positions = steps + start.unsqueeze(1)  # [B, T]
        slots = steps if cache is None else torch.arange(used or cache.length, device=ids.device)
        mask: Tensor | None = None
        # A single new token with no slot behind it sees them all.
        if time > 1 or padding is not None or isinstance(start, Tensor):
            mask = (slots <= positions.unsqueeze(-1)).unsqueeze(-3)  # [1 or B, 1, T, S]: nothing that comes later
            if padding is not None:
                mask = mask & padding[:, None, None, :]
        memory_mask = None if memory_padding is None else memory_padding[:, None, None, :]
        known = (
            F.pad(ids, (self.config.looks_back, 0), value=-1) if cache is None else cache.with_earlier(ids, positions)
        )
        x = self.decoder(ids, known, mask, positions, cache=cache, used=used, memory=memory, memory_mask=memory_mask)
        history = ids if cache is None else cache.ids[:, cache.before :][:, : len(slots)]
        return x, (known, history, positions)

    def encode(self, source: Tensor, padding: Tensor | None = None) -> Tensor:
        """What the encoder makes of source ids [B, S]: [B, S, D]. It looks both ways.

        Args:
            padding: [B, S], True where a token is real.

        Raises:
            ModelError: the model has no encoder.
        """
        if self.encoder is None:
            raise ModelError("this model has no encoder", "only a translation model reads a source")
        mask = None if padding is None else padding[:, None, None, :]
        positions = torch.arange(source.shape[1], device=source.device)
        known = F.pad(source, (self.config.looks_back, 0), value=-1)
        return self.encoder(source, known, mask, positions)  # type: ignore[no-any-return]

    def remember(self, source: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """`encode` for a batch: what it makes of sources [B, S], `NO_TOKEN` behind their ends; and where they are real.

        Both are None where there is no source.
        """
        if source is None:
            return None, None
        real = source != NO_TOKEN
        return self.encode(source.clamp(min=0), real), real

    def loss(
        self, ids: Tensor, targets: Tensor, *, source: Tensor | None = None, folds: Tensor | None = None
    ) -> Tensor:
        """Mean cross-entropy in nats of `targets` [B, T], passing over those that are `IGNORED`; a scalar, in f32.

        In training its gradient is also that of what the layers say alone, where n-grams are counted: they are to know
        the language themselves, not only what counting leaves open.

        Args:
            source: [B, S], what the encoder reads, `NO_TOKEN` behind its end.
            folds: as `forward` takes it.
        """
        memory, memory_padding = self.remember(source)
        # Nothing looks at what stands behind it: padding at the end of a row needs no mask.
        x, places = self._decode(ids, memory=memory, memory_padding=memory_padding)
        logits: Tensor = self.head(x)
        if self.ngrams is None:
            return cross_entropy(logits, targets)
        loss = cross_entropy(self.ngrams(logits, x, *places, folds), targets)
        if self.training:
            alone = cross_entropy(logits, targets)
            loss = loss + ALONE * (alone - alone.detach())
        return loss

    def new_cache(self, batch: int, length: int | None = None, dtype: torch.dtype | None = None) -> Cache:
        """An empty cache for `batch` rows of `length` places (default: the context), in the weights' own type."""
        weight = self.head.weight
        return Cache(self.config, batch, length or self.config.context, weight.device, dtype or weight.dtype)

    def compile(self, *, on: bool = True) -> None:
        """Lets the blocks be compiled for training, at its next step, or no longer.

        Evaluation and decoding, where shapes change all the time, are as they were.
        """
        for stack in filter(None, (self.encoder, self.decoder)):
            stack.compiled = [torch.compile(block, dynamic=False) for block in stack.blocks] if on else []

    def matrices(self) -> list[nn.Parameter]:
        """The matrices inside the blocks: those that Muon orthogonalizes."""
        return [weight for weight in self._block_parameters() if weight.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        """All other parameters: embeddings, head, biases, the weights of norms."""
        matrices = {id(weight) for weight in self.matrices()}
        return [weight for weight in self.parameters() if id(weight) not in matrices]

    def parts(self) -> list[Part]:
        """Each part that holds parameters, in the order in which data flows; a shared matrix counts once."""
        rows: list[Part] = []
        seen: set[int] = set()
        for name, module in self.named_modules():
            own = [weight for weight in module.parameters(recurse=False) if id(weight) not in seen]
            seen.update(map(id, own))
            if own:
                rows.append(Part(name, type(module).__name__, sum(weight.numel() for weight in own)))
        return rows

    @property
    def parameter_count(self) -> int:
        """Every parameter, a shared one once."""
        return sum(weight.numel() for weight in self.parameters())

    def _block_parameters(self) -> Iterator[nn.Parameter]:
        for stack in filter(None, (self.encoder, self.decoder)):
            yield from stack.blocks.parameters()

    def _initialize(self) -> None:
        """Sets the first weights, as `ModelConfig.initialization` names them; `torch` leaves them alone."""
        if self.config.initialization == "torch":
            return
        residual_outputs = {
            id(module.output)
            for module in self.modules()
            if isinstance(module, Attention | FeedForward) and module.output is not None
        }
        zero = self.config.initialization == "zero"
        layers = max(1, self.config.n_layer + self.config.n_encoder_layer)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.2 if zero else 0.02)
            elif isinstance(module, nn.Linear):
                std = 0.5 * module.in_features**-0.5 if zero else 0.02
                if id(module) in residual_outputs:
                    std = 0.0 if zero else std * (2 * layers) ** -0.5
                if module is self.head and zero and not self.config.tie_embeddings:
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
