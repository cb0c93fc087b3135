"""Products of f32 on a CPU are those of f32, whatever units the processor has for less."""

from collections.abc import Iterator

import pytest
import torch

from tinychat.model.products import take_quick_products


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("size", [16, 64, 300])
def test_nothing_is_rounded_on_a_cpu(size: int) -> None:
    torch.manual_seed(0)
    take_quick_products("cpu")
    first, second = torch.randn(2, size, size)
    exact = first.double() @ second.double()
    torch.testing.assert_close((first @ second).double(), exact, rtol=1e-5, atol=1e-5 * size**0.5)
