"""Optimizers: each is one function in a table, which gives the optimizers that step together."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from tinychat.model.transformer import Transformer
from tinychat.train.distributed import by_matrix
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""a, b, c of X ← aX + b(XXᵀ)X + c(XXᵀ)²X (Jordan et al. 2024)"""
ITERATIONS = 5


class Muon(Optimizer):
    """Momentum, orthogonalized (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

    Each matrix moves by the matrix nearest to its momentum all of whose singular values are about 1.

    Args:
        matrices: parameters of two dimensions.
        lr: how far; a matrix with more rows than columns goes √(rows / columns) times as far.
        momentum: of the running mean of gradients, looked ahead as Nesterov does.
        weight_decay: matrices shrink by lr · weight_decay a step.
        dtype: that Newton-Schulz steps are computed in.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        lr: float = 0.03,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        values = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(matrices, values)
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; matrices of one shape are orthogonalized together, as one product for all is quicker."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for (rows, columns), matrices in shapes.items():
                ahead = self._looked_ahead(matrices, group["momentum"])
                updates = by_matrix(orthogonalize, ahead, self.dtype)
                length = group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=length)

    def _looked_ahead(self, matrices: list[nn.Parameter], momentum: float) -> Tensor:
        """The momenta as Nesterov takes them, in f32: [N, rows, columns]."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - momentum)
        return torch.stack(torch._foreach_lerp(gradients, momenta, momentum)).float()


def orthogonalize(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Brings all singular values near 1 by Newton-Schulz steps.

    Args:
        matrices: [N, rows, columns], f32.
        dtype: to compute in; bf16 takes half the time of f32 where the machine has it, and makes models as good.

    Returns:
        Of that shape and `dtype`; singular values from about 0.7 to 1.2.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2).contiguous() if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(dtype)
    for _ in range(ITERATIONS):
        squares = x @ x.transpose(1, 2)  # [N, rows, rows]
        x = torch.baddbmm(x, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if tall else x


def _rates(recipe: Recipe) -> tuple[float, float]:
    rate, embedding_rate = PEAK_LEARNING_RATES[recipe.optimizer]
    return recipe.learning_rate or rate, recipe.embedding_learning_rate or embedding_rate


def _decayed(model: Transformer, recipe: Recipe) -> list[dict[str, Any]]:
    """Matrices shrink; what has one dimension, such as a bias, does not."""
    matrices = [weight for weight in model.parameters() if weight.dim() >= 2]
    others = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _muon(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    rate, embedding_rate = _rates(recipe)
    matrices = model.matrices()
    dtype = torch.bfloat16 if recipe.precision == "bf16" else torch.float32
    muon = Muon(matrices, rate, recipe.momentum, recipe.weight_decay, dtype=dtype) if matrices else None
    betas = (recipe.beta1, recipe.beta2)
    adam = AdamW(model.others(), embedding_rate, betas=betas, weight_decay=0.0, fused=True)
    return [adam] if muon is None else [muon, adam]


def _adamw(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    betas = (recipe.beta1, recipe.beta2)
    return [AdamW(_decayed(model, recipe), _rates(recipe)[0], betas=betas, fused=True)]


def _adam(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    betas = (recipe.beta1, recipe.beta2)
    return [Adam(_decayed(model, recipe), _rates(recipe)[0], betas=betas, fused=True)]


def _sgd(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    return [SGD(_decayed(model, recipe), _rates(recipe)[0], momentum=recipe.momentum)]


OPTIMIZERS: dict[str, Callable[[Transformer, Recipe], list[Optimizer]]] = {
    "muon": _muon,
    "adamw": _adamw,
    "adam": _adam,
    "sgd": _sgd,
}
"""How each is made; the rates that suit it stand in `recipe.py`."""


def make_optimizers(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    """The optimizers that the recipe names; each group remembers its highest rate as `highest_lr`."""
    optimizers = OPTIMIZERS[recipe.optimizer](model, recipe)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["highest_lr"] = group["lr"]
    return optimizers


def set_rate(optimizers: Iterable[Optimizer], factor: float) -> float:
    """Sets every rate to its highest times `factor`; returns the first."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    for group in groups:
        group["lr"] = group["highest_lr"] * factor
    return float(groups[0]["lr"])
