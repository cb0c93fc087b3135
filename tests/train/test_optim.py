"""Optimizers: the table, Muon against its definition, and that all of them learn."""

import pytest
import torch

from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.train.optim import OPTIMIZERS, Muon, make_optimizers, orthogonalize, set_learning_rate
from tinychat.train.recipe import RECIPE_FIELDS, Recipe


def test_the_recipe_knows_every_optimizer() -> None:
    assert RECIPE_FIELDS["optimizer"].choices == tuple(OPTIMIZERS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 64, 16), (2, 16, 64)])
def test_singular_values_come_near_one(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    made = orthogonalize(matrices, dtype=dtype).float()
    values = torch.linalg.svdvals(made)
    assert values.min() > 0.5
    assert values.max() < 1.3
    # The singular vectors stay: what is made lies in the direction of what was given.
    nearest = torch.linalg.svd(matrices, full_matrices=False)
    agreement = ((nearest.U @ nearest.Vh) * made).sum(dim=(1, 2)) / min(shape[1:])
    assert (agreement > 0.75).all()


@pytest.mark.parametrize("shape", [(2, 64, 16), (2, 16, 64), (2, 16, 33)])
def test_long_matrices_are_orthogonalized_as_the_definition_says(shape: tuple[int, ...]) -> None:
    """Also those with singular values a thousandth of the largest, which squares see as a millionth."""
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    matrices = matrices * torch.logspace(0, -3, shape[2])
    x = matrices.double() / matrices.double().norm(dim=(1, 2), keepdim=True)
    for _ in range(5):
        squares = x @ x.mT if shape[1] <= shape[2] else x.mT @ x
        factor = -4.7750 * squares + 2.0315 * squares @ squares
        x = 3.4445 * x + (factor @ x if shape[1] <= shape[2] else x @ factor)
    torch.testing.assert_close(orthogonalize(matrices).double(), x, atol=1e-4, rtol=0)


def test_muon_moves_as_its_definition_says() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(8, 4))
    before, momentum = weight.detach().clone(), torch.zeros(8, 4)
    optimizer = Muon([weight], lr=0.1, momentum=0.9, weight_decay=0.5)
    for _ in range(3):
        gradient = torch.randn(8, 4)
        weight.grad = gradient
        optimizer.step()
        momentum = 0.9 * momentum + 0.1 * gradient
        update = orthogonalize((0.1 * gradient + 0.9 * momentum)[None])[0]
        before = before * (1 - 0.1 * 0.5) - 0.1 * 2**0.5 * update
    torch.testing.assert_close(weight.detach(), before)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns(name: str) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(11, context_length=16, n_layer=1, n_head=1, d_model=32))
    optimizers = make_optimizers(model, Recipe(optimizer=name))
    owned = [weight for optimizer in optimizers for group in optimizer.param_groups for weight in group["params"]]
    assert {id(weight) for weight in owned} == {id(weight) for weight in model.parameters()}
    assert len(owned) == len({id(weight) for weight in owned})
    ids = torch.arange(33).remainder(11)[None]
    losses = []
    for _ in range(40):
        loss = model.loss(ids[:, :16], ids[:, 1:17])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_rates_are_shares_of_the_highest() -> None:
    model = Transformer(ModelConfig(11, context_length=16, n_layer=1, n_head=1, d_model=32))
    optimizers = make_optimizers(model, Recipe(learning_rate=0.2, embedding_learning_rate=0.1))
    assert set_learning_rate(optimizers, 0.5) == pytest.approx(0.1)
    assert set_learning_rate(optimizers, 0.25) == pytest.approx(0.05)
    assert [group["lr"] for optimizer in optimizers for group in optimizer.param_groups] == pytest.approx([0.05, 0.025])


def test_a_tied_head_is_stepped_once() -> None:
    model = Transformer(ModelConfig(11, context_length=16, n_layer=1, n_head=1, d_model=32, tie_embeddings=True))
    groups = [group for optimizer in make_optimizers(model, Recipe()) for group in optimizer.param_groups]
    owned = [id(weight) for group in groups for weight in group["params"]]
    assert len(owned) == len(set(owned))
