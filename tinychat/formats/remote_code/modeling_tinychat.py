"""A tinychat model on one page, for `transformers`: ids → embeddings → blocks → logits.

    model = AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)  # a translator: AutoModelForSeq2SeqLM

In reading order: positions, attention, feed-forward, block, encoder and decoder, n-grams, models. It needs torch and
transformers (4.56 or newer) alone. Dropout, which training uses, is left out. Shapes:

    B  batch: rows             D  d_model                    V  vocabulary
    T  new ids                 H  attention heads            L  lengths of contexts whose followers are counted
    S  all ids so far, or      G  key/value heads            K  width of a head
       those of the encoder
"""

import math
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast, Seq2SeqLMOutput

from .configuration_tinychat import TinychatConfig

NO_TOKEN = -1
"""Id of padding, and of what precedes the first token."""


def before(ids: Tensor, back: int) -> Tensor:
    """Return the id `back` positions before each of ids [B, S]: [B, S]."""
    return F.pad(ids, (back, 0), value=NO_TOKEN)[:, : ids.shape[1]]


def make_norm(config: TinychatConfig, width: int, affine: bool) -> nn.Module:
    """Return the norm that the config names, over a last axis of `width`."""
    if config.norm == "layernorm":
        return nn.LayerNorm(width, config.norm_eps, elementwise_affine=affine, bias=config.bias)
    return nn.RMSNorm(width, config.norm_eps, elementwise_affine=affine) if config.norm == "rmsnorm" else nn.Identity()


# --- positions ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def position_angles(length: int, width: int, base: float, divisors: tuple[float, ...] = (1.0,)) -> Tensor:
    """Return position · base^(−2k/width) / divisor in radians: [length, ⌈width / 2⌉], computed in f64."""
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(base) / width))
    return torch.outer(torch.arange(length, dtype=torch.float64), frequencies / torch.tensor(divisors)).float()


def rotary_divisors(config: TinychatConfig, width: int) -> tuple[float, ...]:
    """Return what each rotary frequency is divided by: high ones by less, if the config has wavelengths, [R/2]."""
    short, long = config.rotary_short_wavelength, config.rotary_long_wavelength
    rates = [config.rotary_base ** (-2 * k / width) / math.tau for k in range(width // 2)]  # wavelength⁻¹
    kept = [(rate - 1 / long) / (1 / short - 1 / long) if short and long else 0.0 for rate in rates]
    return tuple(1 / ((1 - share) / config.rotary_factor + share) for share in (min(max(one, 0), 1) for one in kept))


def rotate(x: Tensor, angles: Tensor | None) -> Tensor:
    """Rotate the pairs (k, k + R/2) of queries or keys x [B, H, T, K] by angles [B, 1, T, R/2] (Su et al. 2021)."""
    if angles is None:
        return x
    if (width := 2 * angles.shape[-1]) < x.shape[-1]:
        return torch.cat((rotate(x[..., :width], angles), x[..., width:]), dim=-1)
    cosine, sine = angles.cos().repeat(1, 1, 1, 2).to(x.dtype), angles.sin().to(x.dtype)
    return x * cosine + x.roll(x.shape[-1] // 2, dims=-1) * torch.cat((-sine, sine), dim=-1)


# --- attention, feed-forward, block ---------------------------------------------------------------------------------


class Attention(nn.Module):
    """Multi-head attention to the sequence itself, or to what an encoder has read."""

    def __init__(self, config: TinychatConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.d_head = layer, config.d_head or config.d_model // config.n_head
        self.scale = self.d_head**-0.5 if config.scale_scores else 1.0
        is_local = config.window_pattern[layer % len(config.window_pattern)] == "L"
        self.window = config.attention_window if is_local else None
        width, kv_width = config.n_head * self.d_head, (config.n_kv_head or config.n_head) * self.d_head
        qkv_bias = config.bias if config.qkv_bias is None else config.qkv_bias
        self.query = nn.Linear(config.d_model, width, bias=qkv_bias)
        self.key = nn.Linear(config.d_model, kv_width, bias=qkv_bias)
        self.value = nn.Linear(config.d_model, kv_width, bias=qkv_bias)
        self.output = nn.Linear(width, config.d_model, bias=config.bias) if config.output_projection else None
        self.query_norm, self.key_norm = (
            make_norm(config, self.d_head, config.qk_norm_affine) if config.qk_norm else nn.Identity() for _ in "qk"
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        angles: Tensor | None = None,
        cache: DynamicCache | None = None,
        encoded: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> Tensor:
        """[B, T, D] → [B, T, D]. The mask [B, 1, T, S] is True where a query may attend; `encoded` is [B, S, D]."""
        query = rotate(self.query_norm(self.split_heads(self.query(x))), angles)  # [B, H, T, K]
        if encoded is not None and cache is not None and cache.get_seq_length(self.layer):
            key, value = cache.layers[self.layer].keys, cache.layers[self.layer].values  # the source never changes
        else:
            source = x if encoded is None else encoded
            key = rotate(self.key_norm(self.split_heads(self.key(source))), angles)  # [B, G, T or S, K]
            value = self.split_heads(self.value(source))
            if cache is not None:
                key, value = cache.update(key, value, self.layer)  # [B, G, S, K]
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)  # [B, H, S, K]
        if self.window is not None:  # what is among the newest of all slots that the causal mask allows
            mask = mask & ~F.pad(mask, (0, self.window))[..., self.window :]
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=self.scale)  # [B, H, T, K]
        out = out.transpose(1, 2).flatten(2)  # [B, T, H · K]
        return out if self.output is None else self.output(out)

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H · K] → [B, H, T, K]."""
        return x.view(*x.shape[:2], -1, self.d_head).transpose(1, 2)


class TurnAttention(Attention):
    """Attention to whole turns that are over, or to none: keys are gated sums, values of one token."""

    def __init__(self, config: TinychatConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.turn_token, self.reply_token = config.turn_token, config.reply_token
        qkv_bias = config.bias if config.qkv_bias is None else config.qkv_bias
        self.turn_gate = nn.Linear(config.d_model, config.n_kv_head or config.n_head, bias=qkv_bias)
        self.no_turn = nn.Linear(config.d_model, 1, bias=qkv_bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        angles: Tensor | None = None,
        cache: DynamicCache | None = None,
        encoded: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> Tensor:
        """[B, T, D] → [B, T, D]; `ids` [B, S] are all so far. Positions count for nothing."""
        assert ids is not None
        begins, replies, is_padding = (ids.eq(id) for id in (self.turn_token, self.reply_token, NO_TOKEN))  # [B, S]
        is_token, turn, time = ~is_padding, begins.cumsum(1), x.shape[1]
        same = turn.unsqueeze(2).eq(turn.unsqueeze(1)).tril() & is_token.unsqueeze(1)  # [B, S, S]
        has_reply = (same & replies.unsqueeze(1)).any(-1)
        is_message = ~(has_reply | begins)
        number = same.sum(-1) - (turn > 0).long()  # [B, S]: of the token in its turn, from 1 on
        key = self.split_heads(self.key(x)) * self.turn_gate(x).sigmoid().transpose(1, 2).unsqueeze(-1)  # [B, G, T, K]
        value = self.split_heads(self.value(x))
        if cache is not None:
            key, value = cache.update(key, value, self.layer)  # [B, G, S, K]: of tokens
        pooled, slots = same & is_message.unsqueeze(1), torch.arange(ids.shape[1], device=ids.device)
        is_last = ~F.pad(is_message[:, 1:], (0, 1)).unsqueeze(1) | slots.eq(slots.unsqueeze(1))  # [B, S, S]
        kept, number = torch.arange(1, key.shape[1] + 1, device=ids.device).view(-1, 1, 1), number[:, None, None]
        kept = pooled.unsqueeze(1) & (number.eq(kept) | (number < kept) & is_last.unsqueeze(1))  # [B, G, S, S]
        key, value = pooled.unsqueeze(1).to(x.dtype) @ key, kept.to(x.dtype) @ value  # of turns, up to each token
        query = self.split_heads(self.query(x))  # [B, H, T, K]
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)  # [B, H, S, K]
        scores = self.query_norm(query + key[:, :, -time:]) @ self.key_norm(key).transpose(2, 3) * self.scale
        scores = scores.sum(1, keepdim=True)  # [B, 1, T, S]: all heads look at the same turn
        ends = F.pad(begins[:, 1:], (0, 1)) & is_token  # [B, S]: the last token of a turn
        is_over = ends[:, None, None, :] & (slots < slots[-time:].unsqueeze(-1))  # [B, 1, T, S]
        scores = scores.masked_fill(~is_over, float("-inf"))
        scores = torch.cat((self.no_turn(x).unsqueeze(1), scores), dim=-1)  # [B, 1, T, 1 + S]
        out = (scores.softmax(-1)[..., 1:] @ value).transpose(1, 2).flatten(2)  # [B, T, H · K]
        return out if self.output is None else self.output(out)


class FeedForward(nn.Module):
    """output(activation(up(x))), or output(silu(gate(x)) · up(x)) for `swiglu`."""

    def __init__(self, config: TinychatConfig) -> None:
        super().__init__()
        gated = config.feed_forward == "swiglu"
        width = config.d_ff or (8 * config.d_model // 3 if gated else 4 * config.d_model)
        self.activation = config.feed_forward
        self.up = nn.Linear(config.d_model, width, bias=config.bias)
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if gated else None
        self.output = nn.Linear(width, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # [B, T, d_ff]
        if self.gate is not None:
            up = F.silu(self.gate(x)) * up
        elif self.activation in ("relu", "relu2"):
            up = F.relu(up) if self.activation == "relu" else F.relu(up).square()
        else:
            up = F.gelu(up, approximate="tanh" if self.activation == "gelu_tanh" else "none")
        return self.output(up)


class Residual(nn.Module):
    """A sublayer with its residual connection and norm: x + f(norm(x)), or norm(x + f(x)) where norms come after."""

    def __init__(self, config: TinychatConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model, config.norm_affine)
        self.sublayer = sublayer
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, *args: Any, onto: Tensor | None = None) -> Tensor:
        out = (x if onto is None else onto) + self.sublayer(self.norm(x) if self.pre else x, *args)
        return out if self.pre else self.norm(out)


class Block(nn.Module):
    """Self-attention, then attention to an encoder and feed-forward where the model has them."""

    def __init__(self, config: TinychatConfig, layer: int, cross: bool) -> None:
        super().__init__()
        is_of_turns = config.turn_attention and layer == (config.n_layer - 1) // 2
        self.attention = Residual(config, (TurnAttention if is_of_turns else Attention)(config, layer))
        self.cross_attention = Residual(config, Attention(config, layer)) if cross else None
        self.feed_forward = Residual(config, FeedForward(config)) if config.feed_forward != "none" else None
        self.parallel = config.parallel

    def forward(self, x: Tensor, *own: Any, cross: Any = ()) -> Tensor:
        """[B, T, D] → [B, T, D]; `own` and `cross` are the arguments of the two kinds of attention."""
        out = self.attention(x, *own)
        if self.cross_attention is not None:
            out = self.cross_attention(out, *cross)
        return out if self.feed_forward is None else self.feed_forward(x if self.parallel else out, onto=out)


# --- encoder and decoder --------------------------------------------------------------------------------------------


class Stack(nn.Module):
    """Embeddings, blocks and the final norm: what encoder and decoder have in common."""

    def __init__(self, config: TinychatConfig, vocab_size: int, n_layer: int, cross: bool = False) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        # In the two tables below, row 0 belongs to no token.
        self.earlier = nn.ModuleList(
            nn.Embedding(vocab_size + 1, config.d_model) for _ in range(config.previous_token_embeddings)
        )
        self.pairs = nn.Embedding((vocab_size + 1) * vocab_size, config.d_model) if config.bigram_embedding else None
        if config.position == "learned":
            self.position = nn.ModuleDict({"table": nn.Embedding(config.context_length, config.d_model)})
        self.blocks = nn.ModuleList(Block(config, layer, cross) for layer in range(n_layer))
        has_norm = config.final_norm and config.norm_position == "pre"
        self.norm = make_norm(config, config.d_model, config.norm_affine) if has_norm else nn.Identity()

    def embed(self, ids: Tensor, time: int) -> tuple[Tensor, Tensor | None]:
        """Return embeddings [B, T, D] of the newest of ids [B, S], and their angles [B, 1, T, R/2] if rotary."""
        config, tokens = self.config, ids.clamp(min=0)[:, -time:]  # [B, T]
        x = self.embedding(tokens)
        for distance, table in enumerate(self.earlier, start=1):
            x = x + table(before(ids, distance)[:, -time:] + 1)
        if self.pairs is not None:
            x = x + self.pairs((before(ids, 1)[:, -time:] + 1) * self.embedding.num_embeddings + tokens)
        if config.scale_embedding:
            x = x * config.d_model**0.5
        positions = ((ids != NO_TOKEN).cumsum(-1) - 1).clamp(min=0)[:, -time:]  # [B, T]: padding counts for nothing
        length = max(config.context_length, ids.shape[1])
        if config.position == "learned":
            if length > config.context_length:
                raise ValueError(f"the text has {length} tokens, and the model has {config.context_length} positions")
            x = x + self.position["table"](positions)
        elif config.position == "sinusoidal":
            angles = position_angles(length, config.d_model, 10_000.0).to(x.device)[positions]  # [B, T, ⌈D/2⌉]
            x = x + torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(2)[..., : config.d_model].to(x.dtype)
        elif config.position == "rotary":
            width = int(config.rotary_fraction * (config.d_head or config.d_model // config.n_head))
            rotary = position_angles(length, width, config.rotary_base, rotary_divisors(config, width))  # [length, R/2]
            return x, rotary.to(x.device)[positions].unsqueeze(1)
        return x, None


class Encoder(Stack):
    """Reads a source; each of its tokens attends to all of them."""

    main_input_name = "input_ids"

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """Return states [B, S, D] of ids [B, S], padded behind where the attention mask is 0."""
        ids = input_ids if attention_mask is None else input_ids.masked_fill(attention_mask == 0, NO_TOKEN)
        x, angles = self.embed(ids, ids.shape[1])
        mask = (ids != NO_TOKEN)[:, None, None, :]  # [B, 1, 1, S]
        for block in self.blocks:
            x = block(x, mask, angles)
        return BaseModelOutput(last_hidden_state=self.norm(x))


class Decoder(Stack):
    """Predicts the next token from those before it, and from what an encoder has read."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        cache: DynamicCache | None = None,
        cross_cache: DynamicCache | None = None,
        encoded: Tensor | None = None,
        encoded_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return states [B, T, D] of new ids [B, T], and all ids so far [B, S].

        The attention mask [B, T or S] is 0 at padding, which comes first. `cache` holds what precedes the new ids;
        `encoded` [B, S, D] is the encoder's output, and its mask [B, S] is 0 at padding.
        """
        time = input_ids.shape[1]
        ids = input_ids if attention_mask is None else input_ids.masked_fill(attention_mask[:, -time:] == 0, NO_TOKEN)
        if cache is not None:  # n-grams and embeddings look back at ids, so these are kept as keys of one more layer
            if len(cache.layers) == len(self.blocks):
                cache.layers.append(DynamicLayer())
            ids = cache.update(ids[:, None, :, None], ids[:, None, :, None], len(self.blocks))[0][:, 0, :, 0]
        x, angles = self.embed(ids, time)
        slots = torch.arange(ids.shape[1], device=ids.device)  # [S]
        own = slots[-time:].unsqueeze(-1)  # [T, 1]
        mask = (slots < own) & (ids != NO_TOKEN)[:, None, None, :] | (slots == own)  # [B, 1, T, S]: causal
        if encoded_mask is not None:
            encoded_mask = encoded_mask[:, None, None, :] != 0  # [B, 1, 1, S]
        for block in self.blocks:
            x = block(x, mask, angles, cache, None, ids, cross=(encoded_mask, None, cross_cache, encoded))
        return self.norm(x), ids


# --- n-grams --------------------------------------------------------------------------------------------------------

CONTEXT_LENGTHS = (2, 3, 4, 5, 6, 8, 12, 16)
"""Numbers of newest tokens that are looked up earlier in the text itself."""
MAX_RECENT = 8
"""How many of their occurrences count, the newest ones."""
PIECE = 128
"""Predictions at once, which saves memory: each has counts of all tokens after contexts of each length."""
EVIDENCE_WIDTH = 32
MAX_STRENGTH = 30.0
MIN_PROBABILITY = 1e-12


class NGrams(nn.Module):
    """Mix the layers' predictions with what followed the newest tokens in the training text, and earlier in this text.

    The distribution after k tokens is the one after k − 1, corrected by counts (MacKay, Peto 1995):
    p_k(v) = (count_k(v) + α_k · p_{k−1}(v)) / (total_k + α_k), from the uniform one. The layers predict each α_k.

    A context t₁ … t_k, the newest token first, has the number Σ (t_i + 1) · V^(i − 1). `contexts` are these, ascending;
    the n-th is followed by the `tokens` from starts[n] to starts[n + 1], each as often as `counts` says.
    """

    contexts: Tensor
    starts: Tensor
    tokens: Tensor
    counts: Tensor

    def __init__(self, config: TinychatConfig) -> None:
        super().__init__()
        self.config, levels = config, config.ngram_order + len(CONTEXT_LENGTHS)
        self.share = nn.Linear(config.d_model, 1)  # logit of the layers' share in the mixture
        self.strength = nn.Linear(config.d_model, levels)  # log α
        self.variety = nn.Parameter(torch.zeros(levels))  # growth of log α with the log of the number of followers
        self.recency = nn.Parameter(torch.zeros(len(CONTEXT_LENGTHS), MAX_RECENT))  # log of what an occurrence counts
        self.evidence = nn.Linear(2 * levels, EVIDENCE_WIDTH)  # a small network corrects α and share by
        self.correction = nn.Linear(EVIDENCE_WIDTH, levels + 1, bias=False)  # how much was counted
        self.register_buffer("contexts", torch.zeros(config.ngram_contexts, dtype=torch.int64))  # ascending
        self.register_buffer("starts", torch.zeros(config.ngram_contexts + 1, dtype=torch.int32))
        self.register_buffer("tokens", torch.zeros(config.ngram_entries, dtype=torch.int16))
        self.register_buffer("counts", torch.zeros(config.ngram_entries, dtype=torch.int32))

    def forward(self, logits: Tensor, x: Tensor, ids: Tensor) -> Tensor:
        """Return log-probabilities [B, T, V], given the layers' logits [B, T, V] and states x [B, T, D], ids [B, S]."""
        time, vocab_size = logits.shape[1:]
        counts = torch.stack(self.count_in_training_text(ids, time) + self.count_in_context(ids, time), dim=2)
        totals, varieties = counts.sum(-1), (counts > 0).sum(-1).float().log1p()  # [B, T, L], of counts [B, T, L, V]
        evidence = torch.cat((totals.log1p(), varieties), dim=-1).to(x.dtype)
        corrections = self.correction(F.relu(self.evidence(evidence))).float()  # [B, T, L + 1]
        strength = self.strength(x).float() + self.variety * varieties + corrections[..., :-1]
        alpha = strength.clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()  # [B, T, L]
        share = (self.share(x).float() + corrections[..., -1:]).sigmoid()  # [B, T, 1]
        predicted = torch.full_like(counts[:, :, 0], 1 / vocab_size)  # [B, T, V]
        for level in range(counts.shape[2]):
            weight = alpha[:, :, level, None]
            predicted = (counts[:, :, level] + weight * predicted) / (totals[:, :, level, None] + weight)
        mixed = share * logits.float().softmax(-1) + (1 - share) * predicted
        return mixed.clamp(min=MIN_PROBABILITY).log()

    def count_in_training_text(self, ids: Tensor, time: int) -> list[Tensor]:
        """Return what followed the newest 0, 1, 2, … tokens in the training text: [B, T, V] for each length."""
        found: list[Tensor] = []
        vocab_size = self.config.vocab_size
        keys, is_known = torch.zeros_like(ids[:, -time:]), torch.ones_like(ids[:, -time:], dtype=torch.bool)  # [B, T]
        for length in range(self.config.ngram_order):
            rows = torch.searchsorted(self.contexts, keys).clamp(max=len(self.contexts) - 1)
            widths = (self.starts[rows + 1] - self.starts[rows]) * (is_known & (self.contexts[rows] == keys))
            begins, widths = self.starts[rows].flatten(), widths.flatten()  # [B · T]
            owners = torch.arange(len(widths), device=ids.device).repeat_interleave(widths)  # [entries found]
            entries = torch.arange(len(owners), device=ids.device) + (begins + widths - widths.cumsum(0))[owners]
            counts = torch.zeros(len(widths), vocab_size, device=ids.device)
            counts[owners, self.tokens[entries].long()] = self.counts[entries].float()
            found.append(counts.view(*keys.shape, vocab_size))
            newest = before(ids, length)[:, -time:]
            keys, is_known = keys + (newest + 1) * vocab_size**length, is_known & (newest != NO_TOKEN)
        return found

    def count_in_context(self, ids: Tensor, time: int) -> list[Tensor]:
        """Return what followed the newest 2, 3, … tokens earlier in the text, likewise."""
        found: list[Tensor] = []
        slots = torch.arange(ids.shape[1], device=ids.device)  # [S]
        same = (slots < slots[-time:].unsqueeze(-1)).expand(len(ids), -1, -1)  # [B, T, S]: are the last tokens equal?
        if not self.config.matches:
            same = torch.zeros_like(same)
        for length in range(1, CONTEXT_LENGTHS[-1] + 1):
            token = before(ids, length - 1)  # [B, S]
            own = token[:, -time:, None]  # [B, T, 1]
            same = same & (token[:, None, :] == own) & (own != NO_TOKEN)
            if length in CONTEXT_LENGTHS:
                newest = torch.where(same, slots, NO_TOKEN).topk(min(MAX_RECENT, len(slots))).values  # [B, T, R]
                weights = self.recency[len(found)].float().clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()[: newest.shape[-1]]
                followers = ids.gather(1, (newest + 1).flatten(1)).view_as(newest)
                counts = torch.zeros(*newest.shape[:2], self.config.vocab_size, device=ids.device)
                found.append(counts.scatter_add(2, followers.clamp(min=0), weights * (newest != NO_TOKEN)))
        return found


# --- models ---------------------------------------------------------------------------------------------------------


class TinychatModel(PreTrainedModel, GenerationMixin):
    """Base of both models below: the decoder, n-grams and the head."""

    config_class = TinychatConfig
    _tied_weights_keys = {"head.weight": "decoder.embedding.weight"}
    _no_split_modules = ["Block"]

    def __init__(self, config: TinychatConfig) -> None:
        super().__init__(config)
        if config.n_encoder_layer:
            self.encoder = Encoder(config, config.source_vocab_size or config.vocab_size, config.n_encoder_layer)
        self.decoder = Decoder(config, config.vocab_size, config.n_layer, cross=config.n_encoder_layer > 0)
        self.ngrams = NGrams(config) if config.ngram_order else None
        has_bias = config.bias if config.head_bias is None else config.head_bias
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=has_bias)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embedding if self.config.is_encoder_decoder else self.decoder.embedding

    def get_output_embeddings(self) -> nn.Linear:
        return self.head

    def predict(self, x: Tensor, ids: Tensor, logits_to_keep: int) -> Tensor:
        """Return logits [B, T, V] of states x [B, T, D] after ids [B, S]; of the last `logits_to_keep`, or of all."""
        x = x[:, -logits_to_keep:]
        logits = self.head(x)
        if self.ngrams is None:
            return logits
        known = ids.shape[1] - x.shape[1]
        pieces = [slice(start, start + PIECE) for start in range(0, x.shape[1], PIECE)]
        mixed = [self.ngrams(logits[:, one], x[:, one], ids[:, : known + one.stop]) for one in pieces]
        return torch.cat(mixed, dim=1)


class TinychatForCausalLM(TinychatModel):
    """Continues texts."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: DynamicCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Return logits [B, T, V] of the token after each of `input_ids` [B, T], and the loss of labels [B, T]."""
        if past_key_values is None and use_cache:
            past_key_values = DynamicCache(config=self.config)
        x, ids = self.decoder(input_ids, attention_mask, past_key_values)
        logits = self.predict(x, ids, logits_to_keep)
        loss = None if labels is None else F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past_key_values)


class TinychatForSeq2SeqLM(TinychatModel):
    """Translates: reads a source, writes a target."""

    def get_encoder(self, modality: str | None = None) -> Encoder:
        return self.encoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """Return logits [B, T, V] of the token after each of `decoder_input_ids` [B, T], given a source [B, S].

        Without them, the labels [B, T] are read, each one position later.
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask)
        if decoder_input_ids is None and labels is not None:
            start = self.generation_config.decoder_start_token_id
            decoder_input_ids = F.pad(labels, (1, 0), value=start)[:, :-1].clamp(min=0)
        if past_key_values is None and use_cache:
            past_key_values = EncoderDecoderCache(DynamicCache(config=self.config), DynamicCache(config=self.config))
        encoded = encoder_outputs[0]  # [B, S, D]
        if attention_mask is None:
            attention_mask = torch.ones(encoded.shape[:2], device=encoded.device)
        caches: tuple[Any, Any] = (None, None)
        if past_key_values is not None:
            caches = past_key_values.self_attention_cache, past_key_values.cross_attention_cache
        x, ids = self.decoder(decoder_input_ids, decoder_attention_mask, *caches, encoded, attention_mask)
        logits = self.predict(x, ids, logits_to_keep)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss, logits=logits, past_key_values=past_key_values, encoder_last_hidden_state=encoded
        )
