"""Dropout drops the share that it is asked for, by numbers that follow from the seed."""

import pytest
import torch
from torch import Tensor

from tinychat.model.dropout import Dropout, dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(7, 11, 1301), (100_001,)])
def test_dropout_drops_its_share_and_keeps_the_mean(share: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = torch.ones(shape, requires_grad=True)
    y = dropout(x, share)
    kept = y != 0
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - share)), rtol=1e-3, atol=0)
    deviation = (share * (1 - share) / x.numel()) ** 0.5
    assert abs((~kept).float().mean().item() - share) < 4 * deviation
    neighbours = (kept.flatten()[1:] & kept.flatten()[:-1]).float().mean().item()  # they are cut out of one number
    assert abs(neighbours - (1 - share) ** 2) < 8 * deviation
    y.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert torch.equal(x.grad, y)


def test_dropout_follows_from_the_seed_and_is_for_training_alone() -> None:
    x, layer = torch.randn(3, 50), Dropout(0.3)

    def dropped(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return layer(x)  # type: ignore[no-any-return]

    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(layer.eval()(x), x)
