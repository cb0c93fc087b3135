"""Products of f32 matrices on a CPU are exact f32, even if the processor has faster units of less precision."""

from collections.abc import Iterator

import pytest
import torch

from tinychat.model.loading import choose_matmul_precision


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("size", [16, 64, 100, 300, 700])
def test_nothing_is_rounded_on_a_cpu(size: int) -> None:
    torch.manual_seed(0)
    choose_matmul_precision("cpu")
    first, second = torch.randn(2, size, size)
    exact = first.double() @ second.double()
    torch.testing.assert_close((first @ second).double(), exact, rtol=1e-5, atol=1e-5 * size**0.5)
