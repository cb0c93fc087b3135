"""Dropout, which on a CPU draws its random numbers in a third of the time."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero a fraction `rate` < 1 of the activations in training, scale up the rest (Srivastava et al. 2014, §4)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate) if self.training else x


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zero a fraction of x [...] and divide the rest by 1 − rate, on a CPU rounded to a multiple of 1 / 65,536.

    On a CPU, torch draws one random number for each activation, which takes a quarter of a training step. Cutting four
    16-bit numbers out of each 64-bit one takes a third of that.
    """
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    if not (threshold := round(rate * 2**16)):
        return x
    kept: Tensor = keep_mask(x.detach(), threshold)
    return x * kept.to(x.dtype).mul(2**16 / (2**16 - threshold))


@torch.library.custom_op("tinychat::keep_mask", mutates_args=())  # opaque, so that a compiler cannot redo the drawing
def keep_mask(x: Tensor, threshold: int) -> Tensor:
    """Return a random mask of the shape of x [...], False with probability threshold / 65,536."""
    drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    return drawn.view(torch.int16)[: x.numel()].view(x.shape) >= threshold - 2**15


@keep_mask.register_fake
def _(x: Tensor, threshold: int) -> Tensor:
    return torch.empty_like(x, dtype=torch.bool)
