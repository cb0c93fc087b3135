"""Which matrix products of f32 torch takes."""

import torch


def take_quick_products(device: str) -> None:
    """Lets torch take the quickest products of f32 that a device has: with TF32 on a GPU, in whole f32 on a CPU.

    There it may be oneDNN's in the place of MKL's, which are slow on some processors. On others, with matrix units
    (AMX), oneDNN would round what is multiplied to bf16, and MKL is not slow.
    """
    torch.set_float32_matmul_precision("medium" if device == "cpu" else "high")
    if device == "cpu" and not _are_exact():
        torch.set_float32_matmul_precision("highest")


def _are_exact() -> bool:
    numbers = torch.full((64, 64), 1 + 2**-12)  # bf16 would make ones of them
    return torch.equal(numbers @ torch.eye(64), numbers)
