"""The architecture: impossible values are refused when it is read; its diagram says what the modules are."""

import itertools
import math

import pytest
import torch

from tinychat.errors import ModelError
from tinychat.model.config import (
    FEED_FORWARDS,
    NORM_POSITIONS,
    NORMS,
    POSITIONS,
    Diagram,
    ModelConfig,
    make_diagram,
)
from tinychat.model.transformer import Transformer

VOCABULARY = 11
GRID = [
    {"norm": norm, "norm_position": norm_position, "feed_forward": feed_forward, "position": position}
    for norm, norm_position, feed_forward, position in itertools.product(
        NORMS, NORM_POSITIONS, FEED_FORWARDS, POSITIONS
    )
]
VARIANTS = [
    {"n_head": 4, "n_kv_head": 2, "bias": True, "norm_affine": True},
    {"norm": "rmsnorm", "norm_affine": True, "bias": True, "qk_norm": True},
    {"tie_embeddings": True, "head_bias": True},
    {"ngram_order": 5, "d_model": 24},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5},
    {"norm": "rmsnorm", "norm_affine": True, "qk_norm_affine": True, "d_head": 6, "qkv_bias": True, "n_kv_head": 1},
    {"norm_affine": True, "bias": True, "qkv_bias": False, "qk_norm_affine": True, "d_head": 10, "parallel": True},
    {"n_layer": 0, "final_norm": False, "scale_embedding": True, "output_projection": False},
    {"n_encoder_layer": 2, "source_vocab_size": 7, "bias": True, "norm_affine": True, "position": "learned"},
    {"n_encoder_layer": 1, "norm_position": "post", "previous_token_embeddings": 2, "bigram_embedding": True},
]
CONFIGS = [
    ModelConfig(VOCABULARY, **{"context_length": 12, "n_layer": 2, "n_head": 2, "d_model": 8}
                | ({"qk_norm": False} if options.get("norm") == "none" else {}) | options)  # type: ignore[arg-type]
    for options in [*GRID[::11], *VARIANTS]
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("n_layer", 2.5, "it is of type int"),
        ("d_ff", "512", r"it is of type int \| None"),
        ("qk_norm", 2, "it is of type bool"),
        ("norm_eps", None, "it is of type float"),
        ("norm_eps", math.nan, "it must not be negative"),
        ("rotary_base", 0, "it must be at least 1"),
        ("rotary_base", 1e300, "it must be at most 1000000000000"),
        ("norm_eps", 1e308, "it must be at most 1"),
        ("n_layer", 10**12, "it must be at most 4096"),
        ("context_length", 2**31, "it must be at most 131072"),
        ("n_kv_head", True, r"it is of type int \| None"),
        ("dropout", False, "it is of type float"),
        ("n_kv_head", -2, "it must be at least 1"),
        ("d_ff", 0, "it must be at least 1"),
        ("previous_token_embeddings", -1, "it must not be negative"),
        ("n_head", 3, "it must divide d_model, 128"),
        ("d_head", 7, "rotary positions need an even width of the heads, not 7"),
        ("rotary_fraction", 0.001, "it must turn an even number of each head's 64 coordinates, at least 2, not 0"),
        ("rotary_short_wavelength", 4.0, "it needs rotary_long_wavelength, too"),
        ("rotary_long_wavelength", 4.0, "it needs rotary_short_wavelength, too"),
        ("window_pattern", "GX", "it consists of G"),
        ("norm", "batchnorm", "it is one of layernorm, rmsnorm, none"),
    ],
)
def test_impossible_values_are_refused_with_a_remedy(name: str, value: object, remedy: str) -> None:
    with pytest.raises(ModelError, match=remedy) as caught:
        ModelConfig.from_dict({"vocab_size": 65, name: value})
    assert caught.value.problem == f"{name} is {value!r}"


def test_missing_fields_are_named() -> None:
    with pytest.raises(ModelError) as caught:
        ModelConfig.from_dict({"n_layer": 2})
    assert caught.value.problem == "the architecture cannot be read: it lacks vocab_size"


def test_a_huge_table_of_positions_is_refused_with_its_size() -> None:
    ModelConfig(65, context_length=1 << 17, d_model=128, n_head=1)
    with pytest.raises(ModelError, match="a table of rotary positions would have 33,554,432 numbers, over 16,777,216"):
        ModelConfig(65, context_length=1 << 17, d_model=256, n_head=1)
    ModelConfig(65, context_length=1 << 17, d_model=256, n_head=1, position="none")


def test_whole_numbers_are_accepted_as_floats() -> None:
    assert ModelConfig(65, rotary_base=500, dropout=0).rotary_base == 500


def build(config: ModelConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


def test_parameters_are_those_of_the_modules() -> None:
    for config in CONFIGS:
        assert make_diagram(config).parameters == build(config).parameter_count, config


def test_parts_have_the_parameters_of_their_modules() -> None:
    for config in CONFIGS:
        model = build(config)
        for stack in filter(None, (model.encoder, model.decoder)):
            name = "encoder" if stack is model.encoder else "decoder"
            stages = [one for one in make_diagram(config).stages if (one.stack, one.name) == (name, "block")]
            of_blocks = [stage for stage in stages for _ in range(stage.times)]
            for block, stage in zip(stack.blocks, of_blocks, strict=True):
                assert stage.parameters == sum(weight.numel() for weight in block.parameters()), config


@torch.inference_mode()
def test_shapes_are_those_of_what_comes_out() -> None:
    config = ModelConfig(VOCABULARY, context_length=12, n_layer=2, n_head=2, d_model=8, norm_position="post", bias=True)
    model, seen = Transformer(config).eval(), {}
    block = model.decoder.blocks[0]
    assert block.feed_forward is not None
    for name, module in {
        "embedding": model.decoder.embedding, "attention": block.attention.sublayer, "head": model.head,
        "feed-forward": block.feed_forward.sublayer, "norm": block.feed_forward.norm,
    }.items():  # fmt: skip
        module.register_forward_hook(lambda _, __, out, name=name: seen.update({name: tuple(out.shape[1:])}))
    model(torch.zeros(1, 12, dtype=torch.long))
    layers = {layer.name: layer.shape for stage in make_diagram(config).stages for layer in stage.layers}
    assert seen == {name: layers[name] for name in seen}


def order(diagram: Diagram) -> list[tuple[str, str]]:
    return [(layer.name, layer.branch) for stage in diagram.stages for layer in stage.layers]


def test_the_norm_stands_before_or_after_what_it_norms() -> None:
    values = {"context_length": 12, "n_layer": 2, "n_head": 2, "d_model": 8, "feed_forward": "none"}
    assert order(make_diagram(ModelConfig(VOCABULARY, **values))) == [
        ("embedding", ""), ("norm", "beside"), ("attention", "beside"), ("add", "joins"), ("norm", ""), ("head", ""),
    ]  # fmt: skip
    assert order(make_diagram(ModelConfig(VOCABULARY, norm_position="post", **values))) == [
        ("embedding", ""), ("attention", "beside"), ("add", "joins"), ("norm", ""), ("head", ""),
    ]  # fmt: skip


def test_what_is_written_down_is_all_there_is() -> None:
    diagram = make_diagram(CONFIGS[0])
    total = sum(stage["times"] * layer["parameters"] for stage in diagram.to_list() for layer in stage["layers"])
    assert total == diagram.parameters
