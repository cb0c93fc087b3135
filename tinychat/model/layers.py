"""The parts that have several kinds: norms, feed-forwards, positions. Each kind is one entry in a table.

Shapes here and in the files above: B batch, T time (queries), S source or cache slots (keys), D d_model, H heads,
K width of one head, V vocabulary.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import ModelConfig

# --- norms -------------------------------------------------------------------------------------------------------


def make_norm(config: ModelConfig, width: int, affine: bool | None = None) -> nn.Module:
    """The norm that the configuration names, over the last axis; the identity for `none`."""
    affine = config.norm_affine if affine is None else affine
    match config.norm:
        case "layernorm":  # Ba et al. 2016
            return nn.LayerNorm(width, eps=config.norm_eps, elementwise_affine=affine, bias=config.bias)
        case "rmsnorm":  # Zhang, Sennrich 2019
            return RMSNorm(width, eps=config.norm_eps, elementwise_affine=affine)
        case _:
            return nn.Identity()


class RMSNorm(nn.RMSNorm):
    """x / √(mean(x²) + ε); by hand where nothing is learned: torch takes three times as long for a vector on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.device.type != "cpu" or x.dtype != torch.float32:
            return super().forward(x)
        assert self.eps is not None
        mean = x.square().sum(-1, keepdim=True) / x.shape[-1]
        normed = x * (mean + self.eps).rsqrt()
        return normed if self.weight is None else normed * self.weight


# --- dropout -----------------------------------------------------------------------------------------------------


class Dropout(nn.Module):
    """Sets a share of the activations to 0 in training, and makes the others larger by as much (Hinton et al. 2012).

    Args:
        share: from 0 to below 1.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.share) if self.training else x


def drop(x: Tensor, share: float) -> Tensor:
    """Sets a share of the numbers to 0, and makes the others larger by as much; on a CPU to a part in 65,536.

    By hand on CPU: torch draws a number for each activation there, which takes a quarter of a step. Four are cut out of
    one here, at a third of the time.
    """
    if x.device.type != "cpu":
        return F.dropout(x, share)
    dropped = round(share * 2**16)
    if not dropped:
        return x
    kept: Tensor = draw_kept(x.detach(), dropped)
    return x * kept.to(x.dtype).mul(2**16 / (2**16 - dropped))


@torch.library.custom_op("tinychat::draw_kept", mutates_args=())  # a compiler would draw in its own, slower way
def draw_kept(x: Tensor, dropped: int) -> Tensor:
    """Which numbers of a tensor are kept, where so many of 65,536 are dropped."""
    drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    return drawn.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 2**15


@draw_kept.register_fake
def _(x: Tensor, dropped: int) -> Tensor:
    return torch.empty_like(x, dtype=torch.bool)


# --- feed-forwards -----------------------------------------------------------------------------------------------


class ReLU2(torch.autograd.Function):
    """relu(x)² (So et al. 2021, §3), in fewer passes over memory than autograd makes of it."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        positive = x.relu()
        context.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        positive: Tensor = context.saved_tensors[0]
        return (gradient * positive).mul_(2)


def relu2(x: Tensor) -> Tensor:
    """relu(x)²."""
    squared: Tensor = ReLU2.apply(x)  # type: ignore[no-untyped-call]
    return squared


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # as GPT-2 computes it
    "relu": F.relu,
    "relu2": relu2,
    "swiglu": F.silu,  # Shazeer 2020: the gate's activation
}


class FeedForward(nn.Module):
    """Two matrices with an activation between them; three where it is gated (SwiGLU)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.feed_forward_width
        self.up = nn.Linear(config.d_model, width, bias=config.bias)
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if config.feed_forward == "swiglu" else None
        self.output = nn.Linear(width, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.feed_forward]

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # [B, T, d_ff]
        hidden = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up
        return self.output(hidden)  # type: ignore[no-any-return]  # [B, T, D]


# --- positions ---------------------------------------------------------------------------------------------------


Turns = tuple[Tensor, Tensor] | None
"""The cosines and sines of some places, as `Position.rotate` takes them."""


class Position(nn.Module):
    """How a model knows where a token stands. Two hooks, each the identity by default; this one is no positions.

    `positions` is [T], the same for each row, or [B, T].
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x: [B, T, D], the embeddings."""
        return x

    def turns(self, positions: Tensor) -> Turns:
        """What `rotate` needs to know of the places: the same in all layers."""
        return None

    def rotate(self, x: Tensor, turns: Turns) -> Tensor:
        """x: [B, H, T, K], queries or keys."""
        return x


class Learned(Position):
    """A vector for each place, learned (Gehring et al. 2017)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.context, config.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table(positions)  # type: ignore[no-any-return]


class Sinusoidal(Position):
    """Sines in the even places of the vector, cosines in the odd ones (Vaswani et al. 2017, §3.5)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        angles = _angles(config.context, config.d_model, 10_000.0)  # [context, ⌈D/2⌉]
        table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, : config.d_model]
        self.register_buffer("table", table, persistent=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        table: Tensor = self.table  # type: ignore[assignment]
        return x + table[positions].to(x.dtype)


class Rotary(Position):
    """Turns pairs of query and key coordinates by an angle that grows with the place (Su et al. 2021, §3.2.2).

    A pair is coordinate k and k + K/2, as Llama has it in `transformers`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        angles = _angles(config.context, config.d_head, config.rotary_base)  # [context, K/2]
        self.register_buffer("cosine", torch.cat((angles.cos(), angles.cos()), dim=-1), persistent=False)
        self.register_buffer("sine", torch.cat((-angles.sin(), angles.sin()), dim=-1), persistent=False)

    def turns(self, positions: Tensor) -> Turns:
        cosine: Tensor = self.cosine[positions]  # type: ignore[index]
        sine: Tensor = self.sine[positions]  # type: ignore[index]
        if positions.dim() == 2:
            cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)  # [B, 1, T, K]: the same for each head
        return cosine, sine

    def rotate(self, x: Tensor, turns: Turns) -> Tensor:
        assert turns is not None
        cosine, sine = turns
        if cosine.dtype != x.dtype:
            cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
        return torch.addcmul(x * cosine, x.roll(x.shape[-1] // 2, dims=-1), sine)


def _angles(places: int, width: int, base: float) -> Tensor:
    """place · base^(−2k/width) for each place and each pair of coordinates k."""
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(base) / width))
    return torch.outer(torch.arange(places, dtype=torch.float64), frequencies).float()


POSITIONS: dict[str, type[Position]] = {
    "learned": Learned,
    "none": Position,
    "rotary": Rotary,
    "sinusoidal": Sinusoidal,
}
