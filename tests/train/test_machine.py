"""What this machine can train."""

import pytest

from tinychat.errors import RunError
from tinychat.model.config import ModelConfig
from tinychat.train.machine import check_memory
from tinychat.train.planner import Machine


def test_a_model_that_no_memory_holds_is_refused() -> None:
    machine = Machine("cpu", "f32", 1)
    check_memory(ModelConfig(100), machine)
    huge = ModelConfig(100, n_layer=1 << 12, d_model=1 << 15)
    with pytest.raises(RunError, match="52777B parameters need at least 1,055,531 GB of memory, and this machine has "):
        check_memory(huge, machine)
    check_memory(huge, Machine("cuda", "bf16", 1))
