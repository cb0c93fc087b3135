"""Muon, and a table of functions that make the optimizers of a recipe."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from tinychat.model.transformer import Transformer
from tinychat.train.distributed import map_matrices
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients a, b, c of X ← aX + b(XXᵀ)X + c(XXᵀ)²X (Jordan et al. 2024)."""
ITERATIONS = 5


class Muon(Optimizer):
    """Muon: momentum orthogonalized by Newton-Schulz (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

    The learning rate is multiplied by √(rows / columns) for matrices with more rows than columns. Weight decay is
    decoupled: matrices shrink by lr · weight_decay per step. `dtype` is that of the Newton-Schulz iterations.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        lr: float = 0.03,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the matrices; those of one shape are orthogonalized as one batch, which is faster."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for (rows, columns), matrices in shapes.items():
                momenta = self._nesterov_momenta(matrices, group["momentum"])
                updates = map_matrices(orthogonalize, momenta, self.dtype)
                lr = group["lr"] * max(1.0, rows / columns) ** 0.5
                if group["weight_decay"]:
                    torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_sub_(matrices, updates.to(matrices[0].dtype).unbind(), alpha=lr)

    def _nesterov_momenta(self, matrices: list[Tensor], momentum: float) -> Tensor:
        """Update the momenta and return their Nesterov look-ahead, [N, rows, columns], f32."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - momentum)
        return torch.stack(torch._foreach_lerp(gradients, momenta, momentum)).float()


def orthogonalize(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Orthogonalize matrices [N, rows, columns], f32, by Newton-Schulz iterations (Jordan et al. 2024).

    The result is of `dtype`, with singular values from about 0.7 to 1.2. Computing in bf16, with hardware support,
    takes half the time and trains as well.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2).contiguous() if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(dtype)
    # Squares lose small singular values in bf16, and in the TF32 of a GPU.
    is_exact = dtype == torch.float32 and x.device.type == "cpu"
    x = _iterate_squares(x) if is_exact and x.shape[2] >= 2 * x.shape[1] else _iterate(x)
    return x.transpose(1, 2) if tall else x


def _iterate(x: Tensor) -> Tensor:
    """Return X [N, rows, columns] after the Newton-Schulz iterations."""
    a, b, c = NEWTON_SCHULZ
    for _ in range(ITERATIONS):
        squares = x @ x.transpose(1, 2)  # [N, rows, rows]
        x = torch.baddbmm(x, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x


def _iterate_squares(x: Tensor) -> Tensor:
    """Do the same in three fifths of the time for an X with many columns.

    Each iteration multiplies X by a polynomial in XXᵀ, and all of these commute. So they are multiplied with each other
    first, in the size of XXᵀ.
    """

    def factor_of(squares: Tensor) -> Tensor:
        a, b, c = NEWTON_SCHULZ
        factor = torch.baddbmm(squares, squares, squares, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        return factor

    squares = x @ x.transpose(1, 2)  # [N, rows, rows]
    product = factor = factor_of(squares)
    for _ in range(ITERATIONS - 1):
        squares = factor @ (squares @ factor)
        factor = factor_of(squares)
        product = factor @ product
    return product @ x


def _parameter_groups(model: Transformer, recipe: Recipe) -> list[dict[str, Any]]:
    """Return the parameters in two groups: matrices with weight decay; norms and biases without."""
    matrices = [weight for weight in model.parameters() if weight.dim() >= 2]
    others = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay or 0.0}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _muon(model: Transformer, recipe: Recipe, lr: float, embedding_lr: float) -> list[Optimizer]:
    """Make Muon for the matrices inside the blocks, if there are any, and AdamW for all other parameters."""
    dtype = torch.bfloat16 if recipe.precision == "bf16" else torch.float32
    matrices = model.matrices()
    muon = [Muon(matrices, lr, recipe.momentum, recipe.weight_decay or 0.0, dtype=dtype)] if matrices else []
    betas = (recipe.beta1, recipe.beta2)
    return [*muon, AdamW(model.others(), embedding_lr, betas=betas, weight_decay=0.0, fused=True)]


def _adam(kind: type[Adam | AdamW], model: Transformer, recipe: Recipe, lr: float, _: float) -> list[Optimizer]:
    return [kind(_parameter_groups(model, recipe), lr, betas=(recipe.beta1, recipe.beta2), fused=True)]


def _sgd(model: Transformer, recipe: Recipe, lr: float, _: float) -> list[Optimizer]:
    return [SGD(_parameter_groups(model, recipe), lr, momentum=recipe.momentum)]


OPTIMIZERS: dict[str, Callable[[Transformer, Recipe, float, float], list[Optimizer]]] = {
    "muon": _muon,
    "adamw": partial(_adam, AdamW),
    "adam": partial(_adam, Adam),
    "sgd": _sgd,
}
"""Optimizer name → function of a model, its recipe, and the peak learning rates of matrices and of embeddings."""


def make_optimizers(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    """Make the optimizers of a recipe; each parameter group stores its peak learning rate as `highest_lr`."""
    lr, embedding_lr = PEAK_LEARNING_RATES[recipe.optimizer]
    optimizers = OPTIMIZERS[recipe.optimizer](
        model, recipe, recipe.learning_rate or lr, recipe.embedding_learning_rate or embedding_lr
    )
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["highest_lr"] = group["lr"]
    return optimizers


def set_learning_rate(optimizers: Iterable[Optimizer], factor: float) -> float:
    """Set every learning rate to a fraction of its peak; return the first."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    for group in groups:
        group["lr"] = group["highest_lr"] * factor
    return float(groups[0]["lr"])
