"""The architecture: impossible values are refused when it is read."""

import math

import pytest

from tinychat.errors import ModelError
from tinychat.model.config import ModelConfig


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("n_layer", 2.5, "it is of type int"),
        ("d_ff", "512", r"it is of type int \| None"),
        ("qk_norm", 2, "it is of type bool"),
        ("norm_eps", None, "it is of type float"),
        ("norm_eps", math.nan, "it must not be negative"),
        ("rotary_base", 0, "it must be above 0"),
        ("n_kv_head", -2, "it must be at least 1"),
        ("d_ff", 0, "it must be at least 1"),
        ("previous_token_embeddings", -1, "it must not be negative"),
        ("n_head", 3, "it must divide d_model, 128"),
        ("norm", "batchnorm", "it is one of layernorm, rmsnorm, none"),
    ],
)
def test_impossible_values_are_refused_with_a_remedy(name: str, value: object, remedy: str) -> None:
    with pytest.raises(ModelError, match=remedy) as caught:
        ModelConfig.from_dict({"vocab_size": 65, name: value})
    assert caught.value.problem == f"{name} is {value!r}"


def test_whole_numbers_are_accepted_as_floats() -> None:
    assert ModelConfig(65, rotary_base=500, dropout=0).rotary_base == 500
