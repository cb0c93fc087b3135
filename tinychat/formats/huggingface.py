"""Folders of `transformers`: opened where they lie, and written.

Reading maps the weights under our names; those in another layout, such as fused queries, keys and values, are copied.
Writing makes one of a model of such a shape, which most tools read: the type that it had, or the first that fits. Any
other model brings its own code: see `huggingface_writer.py`.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, product, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.corpus.types import Mode
from tinychat.errors import ModelError
from tinychat.formats.huggingface_writer import TARGET_TOKENIZER, read_stored_weights, write_folder
from tinychat.formats.own_code import MODEL_TYPE, convert_to_own_code, convert_weights, read_config
from tinychat.formats.pickles import read_torch
from tinychat.formats.text_files import TextFiles, read_settings, read_text_files
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import check_shapes, checked_config, weight_shapes
from tinychat.store.models import (
    CONFIG,
    MAX_CONFIG,
    WEIGHTS,
    ForeignModel,
    ModelInfo,
    read_object,
)
from tinychat.store.weights import DAMAGED, MappedTensor, map_tensors
from tinychat.tokenizer.tokenizer import load_tokenizer
from tinychat.untrusted import read_json

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    Weights = dict[str, Tensor]

INDEX = ".index.json"
"""Ending of a file that says in which of several files each tensor is."""
PICKLED = Path("pytorch_model.bin")
"""Weights as older versions saved them."""
WEIGHT_FILES = (WEIGHTS, WEIGHTS + INDEX, PICKLED.name, PICKLED.name + INDEX)
"""Files of weights; the first that is there counts."""
MAX_CONTEXT, MAX_LAYERS = 1 << 16, 1 << 12
"""A context with rotary positions is cut to this length, which all engines take; maximum of what a config repeats."""
MAX_INDEX = 64 << 20
"""Maximum size of the index in bytes."""
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


@dataclass(frozen=True)
class Architecture:
    """Model type of `transformers`."""

    model_type: str
    class_name: str
    required: Mapping[str, Any]
    """Fields of our architecture and the only values that the model type supports."""
    to_config: Callable[[Mapping[str, Any]], dict[str, Any]]
    """From our architecture to fields of `transformers`' config; `from_config` goes back."""
    from_config: Callable[[Mapping[str, Any]], dict[str, Any]]
    names: Mapping[str, str]
    """Names of modules: ours → those of `transformers`; `{}` stands for the layer."""
    transposed: bool = False
    """Whether matrices in the layers are [in, out], as in GPT-2, instead of [out, in]."""
    fused: str = ""
    """Name of the module that holds queries, keys and values, if they are one: all queries first."""
    fused_by_head: bool = False
    """Whether it holds query, key and value of the first head, then those of the second, and so on."""
    tied: bool = False
    """Default of `tie_word_embeddings`."""
    varies: tuple[str, ...] = ()
    """Fields of `required` that may have any value, which `to_config` writes."""


PROJECTIONS = ("query", "key", "value")
IGNORED = re.compile(r"\.((attn|attention)\.(masked_)?bias|rotary_emb\.inv_freq)$")
"""Names of constants in files of older versions."""
REQUIRED = {
    "norm_position": "pre", "norm_affine": True, "final_norm": True, "output_projection": True, "qk_norm": False,
    "scale_embedding": False, "previous_token_embeddings": 0, "bigram_embedding": False, "turn_attention": False,
    "ngram_order": 0, "n_encoder_layer": 0, "scale_scores": True, "parallel": False, "rotary_fraction": 1.0,
    "attention_window": None, "qkv_bias": None,
}  # fmt: skip


def _gpt2_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "n_positions": ours["context_length"], "n_embd": ours["d_model"], "n_layer": ours["n_layer"],
        "n_head": ours["n_head"], "n_inner": ours["d_ff"],
        "activation_function": _their_activation(ours), "layer_norm_epsilon": ours["norm_eps"],
        "resid_pdrop": ours["dropout"], "embd_pdrop": ours["dropout"], "attn_pdrop": ours["dropout"],
        "scale_attn_weights": ours["scale_scores"],
    }  # fmt: skip


def _gpt2_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    if theirs.get("scale_attn_by_inverse_layer_idx"):
        raise ModelError("its scores are divided by the number of the layer, which is not known here")
    return {
        "context_length": theirs["n_positions"], "d_model": theirs["n_embd"], "n_layer": theirs["n_layer"],
        "n_head": theirs["n_head"], "d_ff": theirs.get("n_inner"), "norm_eps": theirs.get("layer_norm_epsilon", 1e-5),
        "feed_forward": _activation(theirs, "activation_function", "gelu_new"),
        "dropout": theirs.get("resid_pdrop", 0.0), "scale_scores": theirs.get("scale_attn_weights", True),
    }  # fmt: skip


def _llama_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_position_embeddings": ours["context_length"], "hidden_size": ours["d_model"],
        "num_hidden_layers": ours["n_layer"], "num_attention_heads": ours["n_head"],
        "num_key_value_heads": ours["n_kv_head"] or ours["n_head"],
        "head_dim": ours["d_head"] or ours["d_model"] // ours["n_head"],
        "intermediate_size": ours["d_ff"] or 8 * ours["d_model"] // 3,
        "rms_norm_eps": ours["norm_eps"], "rope_theta": ours["rotary_base"], "hidden_act": "silu",
        "attention_bias": False, "mlp_bias": False, **_their_scaling(ours),
    }  # fmt: skip


def _llama_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    if theirs.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ModelError(f"the activation {_shorten(theirs['hidden_act'])} is not known here", "known: silu")
    if biased := next((name for name in ("attention_bias", "mlp_bias") if theirs.get(name)), ""):
        raise ModelError(f"{biased} is true: a model with biases there is not known here")
    rotary, context_length = _rotary(theirs, base=10_000.0, fraction=1.0), _whole(theirs, "max_position_embeddings")
    if rotary["rotary_fraction"] != 1:  # `transformers` ignores it, or fails, depending on the version
        problem = f"partial_rotary_factor is {_shorten(rotary['rotary_fraction'])}, which is not known here"
        raise ModelError(problem, "known for gpt_neox")
    return {
        "context_length": min(context_length, MAX_CONTEXT), "d_model": theirs["hidden_size"],
        "n_layer": theirs["num_hidden_layers"], "n_head": theirs["num_attention_heads"],
        "n_kv_head": theirs.get("num_key_value_heads"), "d_head": theirs.get("head_dim"),
        "d_ff": theirs["intermediate_size"], "norm_eps": theirs.get("rms_norm_eps", 1e-6), **rotary,
    }  # fmt: skip


def _mistral_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    return _llama_to(ours) | {"sliding_window": ours["attention_window"]}


def _qwen_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"L": "sliding_attention", "G": "full_attention"}
    layer_types = [kinds[kind] for kind in _window_kinds(ours)]
    return _mistral_to(ours) | {"use_sliding_window": "L" in _window_kinds(ours), "layer_types": layer_types}


def _mistral_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    window, kinds = theirs.get("sliding_window"), theirs.get("layer_types")
    if theirs.get("use_sliding_window") is False or (type(window) is int and window >= MAX_CONTEXT):
        window = None
    if isinstance(kinds, list) and kinds:
        pattern = _pattern(kinds, "full_attention", "sliding_attention")
    elif "use_sliding_window" in theirs:  # Qwen's older files: the first layers are global
        layers, first = _whole(theirs, "num_hidden_layers"), _whole(theirs, "max_window_layers")
        pattern = "".join("L" if layer >= first else "G" for layer in range(min(layers, MAX_LAYERS)))
    else:
        pattern = "L"
    window = window if "L" in pattern else None
    return _llama_from(theirs) | {"attention_window": window, "window_pattern": pattern if window else "L"}


def _gpt_neox_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_position_embeddings": ours["context_length"], "hidden_size": ours["d_model"],
        "num_hidden_layers": ours["n_layer"], "num_attention_heads": ours["n_head"],
        "intermediate_size": ours["d_ff"] or 4 * ours["d_model"], "hidden_act": _their_activation(ours),
        "layer_norm_eps": ours["norm_eps"], "use_parallel_residual": ours["parallel"],
        "rotary_emb_base": ours["rotary_base"], "rotary_pct": ours["rotary_fraction"],
        "hidden_dropout": ours["dropout"], "attention_dropout": ours["dropout"], **_their_scaling(ours),
    }  # fmt: skip


def _gpt_neox_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    if not theirs.get("attention_bias", True):
        raise ModelError("the model has no biases in attention, but elsewhere", "this combination is not known here")
    return {
        "context_length": theirs["max_position_embeddings"], "d_model": theirs["hidden_size"],
        "n_layer": theirs["num_hidden_layers"], "n_head": theirs["num_attention_heads"],
        "d_ff": theirs["intermediate_size"], "feed_forward": _activation(theirs, "hidden_act", "gelu"),
        "norm_eps": theirs.get("layer_norm_eps", 1e-5), "parallel": theirs.get("use_parallel_residual", True),
        **_rotary(theirs, theirs.get("rotary_emb_base", 10_000.0), theirs.get("rotary_pct", 0.25)),
    }  # fmt: skip


def _gpt_neo_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"L": "local", "G": "global"}
    return {
        "max_position_embeddings": ours["context_length"], "hidden_size": ours["d_model"],
        "num_layers": ours["n_layer"], "num_heads": ours["n_head"], "intermediate_size": ours["d_ff"],
        "activation_function": _their_activation(ours), "layer_norm_epsilon": ours["norm_eps"],
        "window_size": ours["attention_window"] or 256,
        "attention_types": [[[kinds[kind]], 1] for kind in _window_kinds(ours)],
        "resid_dropout": ours["dropout"], "embed_dropout": ours["dropout"], "attention_dropout": ours["dropout"],
    }  # fmt: skip


def _gpt_neo_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    kinds, types = theirs.get("attention_layers"), theirs.get("attention_types")
    if not isinstance(kinds, list):
        types = types if isinstance(types, list) else []
        groups = [one for one in types if isinstance(one, list) and len(one) == 2 and isinstance(one[0], list)]
        repeated = (repeat(names, times) for names, times in groups if names and type(times) is int)
        kinds = list(islice(chain.from_iterable(chain.from_iterable(repeated)), MAX_LAYERS))
    pattern = _pattern(kinds or ["global"], "global", "local")
    return {
        "context_length": theirs["max_position_embeddings"], "d_model": theirs["hidden_size"],
        "n_layer": theirs["num_layers"], "n_head": theirs["num_heads"], "d_ff": theirs.get("intermediate_size"),
        "feed_forward": _activation(theirs, "activation_function", "gelu_new"),
        "norm_eps": theirs.get("layer_norm_epsilon", 1e-5), "dropout": theirs.get("resid_dropout", 0.0),
        "attention_window": theirs.get("window_size", 256) if "L" in pattern else None,
        "window_pattern": pattern if "L" in pattern else "L",
    }  # fmt: skip


def _window_kinds(ours: Mapping[str, Any]) -> str:
    """Return the kind of each layer: L for local, G for global."""
    pattern = ours["window_pattern"] if ours["attention_window"] else "G"
    return "".join(pattern[layer % len(pattern)] for layer in range(ours["n_layer"]))


def _their_activation(ours: Mapping[str, Any]) -> str:
    return next(theirs for theirs, name in ACTIVATIONS.items() if name == ours["feed_forward"])


def _pattern(kinds: list[Any], everywhere: str, local: str) -> str:
    """Return our pattern of the kinds of attention in the layers, given the names of the two that are known."""
    if unknown := [kind for kind in kinds if kind not in (everywhere, local)]:
        problem = f"a layer has attention of the kind {_shorten(unknown[0])}, which is not known here"
        raise ModelError(problem, f"known: {everywhere}, {local}")
    return "".join("L" if kind == local else "G" for kind in kinds)


def _activation(theirs: Mapping[str, Any], name: str, default: str) -> str:
    """Return our name of an activation."""
    activation = theirs.get(name, default)
    if activation not in tuple(ACTIVATIONS):
        raise ModelError(f"the activation {_shorten(activation)} is not known here", "known: " + ", ".join(ACTIVATIONS))
    return ACTIVATIONS[activation]


def _rotary(theirs: Mapping[str, Any], base: object, fraction: object) -> dict[str, Any]:
    """Return our fields of rotary positions, given defaults: newer versions of `transformers` keep theirs together."""
    parts = (theirs.get(name) for name in ("rope_scaling", "rope_parameters"))
    part: Mapping[str, Any] = next((one for one in parts if one and isinstance(one, dict)), {})
    rope = {name: value for name, value in (*theirs.items(), *part.items()) if value is not None}
    is_by_layer = any(isinstance(value, dict) for value in part.values())
    kind = "by layer" if is_by_layer else part.get("rope_type", part.get("type", "default"))
    if kind not in ("default", "linear", "llama3"):
        problem = f"its rotary positions are scaled ({_shorten(kind)}), which is not known here"
        raise ModelError(problem, "known: linear, llama3")
    fields = {
        "rotary_base": rope.get("rope_theta", base), "rotary_fraction": rope.get("partial_rotary_factor", fraction),
    }  # fmt: skip
    if kind != "default":
        fields["rotary_factor"] = rope["factor"]
    if kind == "llama3":
        original = {**rope, **theirs}.get("original_max_position_embeddings", theirs["max_position_embeddings"])
        tokens = _positive(original, "original_max_position_embeddings")
        fields["rotary_short_wavelength"] = tokens / _positive(rope["high_freq_factor"], "high_freq_factor")
        fields["rotary_long_wavelength"] = tokens / _positive(rope["low_freq_factor"], "low_freq_factor")
    return fields


def _their_scaling(ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return how rotary positions are scaled, under the name that all versions of `transformers` know."""
    factor, short, long = (ours[f"rotary_{name}"] for name in ("factor", "short_wavelength", "long_wavelength"))
    if factor == 1:
        return {}
    if short is None:
        return {"rope_scaling": {"rope_type": "linear", "factor": factor}}
    original = int(long) if int(long) == long else ours["context_length"]  # only the quotients matter
    return {
        "rope_scaling": {
            "rope_type": "llama3", "factor": factor, "original_max_position_embeddings": original,
            "low_freq_factor": original / long, "high_freq_factor": original / short,
        },
    }  # fmt: skip


def _positive(value: object, name: str) -> float:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ModelError(f"{name} is {_shorten(value)}, not a number above 0", DAMAGED)
    return value


def _whole(theirs: Mapping[str, Any], name: str) -> int:
    value = theirs[name]
    if type(value) is not int:
        raise ModelError(f"{name} is {_shorten(value)}, not a whole number", DAMAGED)
    return value


def _shorten(value: object) -> str:
    return repr(value)[:40]


LLAMA_LAYER = {
    "attention.norm": "input_layernorm",
    "attention.sublayer.query": "self_attn.q_proj",
    "attention.sublayer.key": "self_attn.k_proj",
    "attention.sublayer.value": "self_attn.v_proj",
    "attention.sublayer.output": "self_attn.o_proj",
    "feed_forward.norm": "post_attention_layernorm",
    "feed_forward.sublayer.gate": "mlp.gate_proj",
    "feed_forward.sublayer.up": "mlp.up_proj",
    "feed_forward.sublayer.output": "mlp.down_proj",
}
QWEN3_NORMS = {"attention.sublayer.query_norm": "self_attn.q_norm", "attention.sublayer.key_norm": "self_attn.k_norm"}
LLAMA_REQUIRED = REQUIRED | {
    "norm": "rmsnorm",
    "position": "rotary",
    "feed_forward": "swiglu",
    "bias": False,
    "head_bias": None,
}


def _llama_names(layer: Mapping[str, str] = LLAMA_LAYER) -> dict[str, str]:
    names = {f"decoder.blocks.{{}}.{ours}": f"model.layers.{{}}.{theirs}" for ours, theirs in layer.items()}
    return {"decoder.embedding": "model.embed_tokens", **names, "decoder.norm": "model.norm", "head": "lm_head"}


ARCHITECTURES = (
    Architecture(
        "gpt2",
        "GPT2LMHeadModel",
        REQUIRED
        | {
            "norm": "layernorm", "position": "learned", "bias": True, "head_bias": False, "n_kv_head": None,
            "d_head": None,
        },
        _gpt2_to,
        _gpt2_from,
        {
            "decoder.embedding": "transformer.wte",
            "decoder.position.table": "transformer.wpe",
            "decoder.blocks.{}.attention.norm": "transformer.h.{}.ln_1",
            "decoder.blocks.{}.attention.sublayer.output": "transformer.h.{}.attn.c_proj",
            "decoder.blocks.{}.feed_forward.norm": "transformer.h.{}.ln_2",
            "decoder.blocks.{}.feed_forward.sublayer.up": "transformer.h.{}.mlp.c_fc",
            "decoder.blocks.{}.feed_forward.sublayer.output": "transformer.h.{}.mlp.c_proj",
            "decoder.norm": "transformer.ln_f",
            "head": "lm_head",
        },
        transposed=True,
        fused="transformer.h.{}.attn.c_attn",
        tied=True,
        varies=("scale_scores",),
    ),
    Architecture("llama", "LlamaForCausalLM", LLAMA_REQUIRED, _llama_to, _llama_from, _llama_names()),
    Architecture(
        "mistral", "MistralForCausalLM", LLAMA_REQUIRED | {"window_pattern": "L"}, _mistral_to, _mistral_from,
        _llama_names(), varies=("attention_window",),
    ),
    Architecture(
        "qwen2", "Qwen2ForCausalLM", LLAMA_REQUIRED | {"qkv_bias": True}, _qwen_to, _mistral_from,
        _llama_names(), varies=("attention_window",),
    ),
    Architecture(
        "qwen3", "Qwen3ForCausalLM", LLAMA_REQUIRED | {"qk_norm": True, "qk_norm_affine": True}, _qwen_to,
        _mistral_from, _llama_names(LLAMA_LAYER | QWEN3_NORMS), varies=("attention_window",),
    ),
    Architecture(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        REQUIRED
        | {
            "norm": "layernorm", "position": "rotary", "bias": True, "head_bias": False, "n_kv_head": None,
            "d_head": None,
        },
        _gpt_neox_to,
        _gpt_neox_from,
        {
            "decoder.embedding": "gpt_neox.embed_in",
            "decoder.blocks.{}.attention.norm": "gpt_neox.layers.{}.input_layernorm",
            "decoder.blocks.{}.attention.sublayer.output": "gpt_neox.layers.{}.attention.dense",
            "decoder.blocks.{}.feed_forward.norm": "gpt_neox.layers.{}.post_attention_layernorm",
            "decoder.blocks.{}.feed_forward.sublayer.up": "gpt_neox.layers.{}.mlp.dense_h_to_4h",
            "decoder.blocks.{}.feed_forward.sublayer.output": "gpt_neox.layers.{}.mlp.dense_4h_to_h",
            "decoder.norm": "gpt_neox.final_layer_norm",
            "head": "embed_out",
        },
        fused="gpt_neox.layers.{}.attention.query_key_value",
        fused_by_head=True,
        varies=("parallel", "rotary_fraction"),
    ),
    Architecture(
        "gpt_neo",
        "GPTNeoForCausalLM",
        REQUIRED
        | {
            "norm": "layernorm", "position": "learned", "bias": True, "qkv_bias": False, "head_bias": False,
            "scale_scores": False, "n_kv_head": None, "d_head": None,
        },
        _gpt_neo_to,
        _gpt_neo_from,
        {
            "decoder.embedding": "transformer.wte",
            "decoder.position.table": "transformer.wpe",
            "decoder.blocks.{}.attention.norm": "transformer.h.{}.ln_1",
            "decoder.blocks.{}.attention.sublayer.query": "transformer.h.{}.attn.attention.q_proj",
            "decoder.blocks.{}.attention.sublayer.key": "transformer.h.{}.attn.attention.k_proj",
            "decoder.blocks.{}.attention.sublayer.value": "transformer.h.{}.attn.attention.v_proj",
            "decoder.blocks.{}.attention.sublayer.output": "transformer.h.{}.attn.attention.out_proj",
            "decoder.blocks.{}.feed_forward.norm": "transformer.h.{}.ln_2",
            "decoder.blocks.{}.feed_forward.sublayer.up": "transformer.h.{}.mlp.c_fc",
            "decoder.blocks.{}.feed_forward.sublayer.output": "transformer.h.{}.mlp.c_proj",
            "decoder.norm": "transformer.ln_f",
            "head": "lm_head",
        },
        tied=True,
        varies=("attention_window",),
    ),
)  # fmt: skip


# --- writing ----------------------------------------------------------------------------------------------------------


def write(info: ModelInfo, folder: Path) -> None:
    """Write a model as a folder of `transformers`, atomically; one of another shape brings its own code."""
    info = replace(info, architecture=checked_config(info).to_dict())
    write_folder(info, folder, _convert(info, read_stored_weights(info)))


def _convert(info: ModelInfo, weights: "Weights") -> "tuple[dict[str, Any], Weights]":
    """Return fields of the `config.json` of a model, and its weights, as `transformers` has them."""
    is_theirs = recognizes(info.folder)
    opened_as = read_object(info.folder / CONFIG, MAX_CONFIG, clamps=True).get("model_type") if is_theirs else None
    own_first = sorted(ARCHITECTURES, key=lambda one: one.model_type != opened_as)
    architecture = next((one for one in own_first if _fits(one, info.architecture)), None)
    if architecture is None:
        return convert_to_own_code(info.architecture, weights)
    fields = {"model_type": architecture.model_type, "architectures": [architecture.class_name]}
    converted = _convert_weights(architecture, weights, info.architecture["n_layer"], info.architecture["n_head"])
    if info.architecture["tie_embeddings"]:
        converted.pop(f"{architecture.names['head']}.weight", None)
    return fields | architecture.to_config(info.architecture), converted


def _fits(architecture: Architecture, ours: Mapping[str, Any]) -> bool:
    """Return whether a model type supports an architecture of ours."""
    required = architecture.required
    if "feed_forward" not in required and ours["feed_forward"] not in ACTIVATIONS.values():
        return False
    defaults = {
        "head_bias": ours["bias"], "qkv_bias": ours["bias"], "n_kv_head": ours["n_head"],
        "d_head": ours["d_model"] // ours["n_head"],
    }  # fmt: skip

    def value_of(fields: Mapping[str, Any], name: str) -> object:
        return defaults.get(name) if fields[name] is None else fields[name]

    compared = (name for name in required if name not in architecture.varies)
    return all(value_of(required, name) == value_of(ours, name) for name in compared)


def _convert_weights(architecture: Architecture, weights: "Weights", n_layer: int, n_head: int) -> "Weights":
    """Convert weights from our names and layouts to those of `transformers`."""
    import torch

    out: Weights = {}
    for ours, theirs in architecture.names.items():
        in_layers = "{}" in ours
        for layer, kind in product(range(n_layer if in_layers else 1), ("weight", "bias")):
            weight = weights.get(f"{ours.format(layer)}.{kind}")
            if weight is not None:
                is_layer_matrix = in_layers and kind == "weight" and not ours.endswith(".norm")
                weight = weight.T if architecture.transposed and is_layer_matrix else weight
                out[f"{theirs.format(layer)}.{kind}"] = weight.contiguous()
    for layer, kind in product(range(n_layer if architecture.fused else 0), ("weight", "bias")):
        parts = [f"decoder.blocks.{layer}.attention.sublayer.{part}.{kind}" for part in PROJECTIONS]
        if architecture.fused_by_head:
            by_head = [weights[part].reshape(n_head, -1, *weights[part].shape[1:]) for part in parts]
            joined = torch.stack(by_head, dim=1).flatten(0, 2)  # [3 · H · K, D] or [3 · H · K]
        else:
            joined = torch.cat([weights[part] for part in parts])
        joined = joined.T if architecture.transposed and kind == "weight" else joined
        out[f"{architecture.fused.format(layer)}.{kind}"] = joined.contiguous()
    return out


# --- reading ----------------------------------------------------------------------------------------------------------


def recognizes(path: Path) -> bool:
    """Return whether a path is a folder that `transformers` saved."""
    try:
        values = read_json(path / CONFIG, MAX_CONFIG, clamps=True)
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and "model_type" in values and "architecture" not in values


def read(path: Path) -> ModelInfo:
    """Open a folder of `transformers` where it lies.

    Raises:
        ModelError: If its model type is not known here, or something is missing.
        TokenizerError: If its tokenizer cannot be read.
    """
    theirs = read_object(path / CONFIG, MAX_CONFIG, clamps=True)
    model_type = theirs.get("model_type")
    try:
        config, map_weights = _read_architecture(model_type, theirs)
    except KeyError as error:
        raise ModelError(f"{path / CONFIG} lacks {error}", "is it complete?") from None
    mode: Mode
    has_two = config.encoder_decoder and os.path.lexists(path / TARGET_TOKENIZER)
    if config.encoder_decoder:
        tokenizer = load_tokenizer(path / TARGET_TOKENIZER if has_two else path)
        mode, texts = "translation", TextFiles(tokenizer, settings=read_settings(path))
    else:
        texts = read_text_files(path, config.vocab_size, theirs.get("eos_token_id"))
        mode = "chat" if texts.template else "completion"
    shapes = dict(weight_shapes(config))
    weights_file = path / next((name for name in WEIGHT_FILES if os.path.lexists(path / name)), WEIGHTS)
    return ModelInfo(
        path.resolve().name, path, mode, config.to_dict(), texts.tokenizer.kind,
        sum(math.prod(shape) for shape in shapes.values() if shape is not None),
        template=texts.template, end_ids=texts.end_ids, settings=texts.settings,
        description=f"{path.resolve().name} of transformers ({model_type})",
        foreign=ForeignModel(
            "transformers", weights_file, lambda: texts.tokenizer, partial(map_weights, weights_file),
            (lambda: load_tokenizer(path)) if has_two else None,
        ),
    )  # fmt: skip


def _read_architecture(
    model_type: object, theirs: Mapping[str, Any]
) -> tuple[ModelConfig, Callable[[Path], dict[str, MappedTensor]]]:
    """Return the architecture in a `config.json`, and a function that maps the weights in a file as ours.

    Raises:
        ModelError: If the model type is not known here.
        KeyError: If a field is missing.
    """
    if model_type == MODEL_TYPE:
        config = read_config(theirs)
        return config, lambda path: convert_weights(dict(_map_files(path)), config, path)
    architecture = next((one for one in ARCHITECTURES if one.model_type == model_type), None)
    if architecture is None:
        known = ", ".join(one.model_type for one in ARCHITECTURES)
        raise ModelError(f"model type {_shorten(model_type)} is not known here", f"known: {known}")
    tied = theirs.get("tie_word_embeddings", architecture.tied)
    values = {**architecture.required, **architecture.from_config(theirs)}
    config = ModelConfig.from_dict(values | {"vocab_size": theirs["vocab_size"], "tie_embeddings": tied})
    if config.attention_width == config.d_model:
        config = replace(config, d_head=None)  # the default: other formats may know no other
    return config, partial(_map_weights, architecture, config)


def _map_weights(architecture: Architecture, config: ModelConfig, path: Path) -> dict[str, MappedTensor]:
    """Map the weights in a file, or in the files of an index, under our names and in our layout.

    Raises:
        ModelError: If one is missing or of another shape, or there is one that the architecture does not have.
    """
    found = dict(_map_files(path))
    # The names of a model saved without its head have no prefix: `wte.weight` instead of `transformer.wte.weight`.
    prefix = architecture.names["decoder.embedding"].split(".")[0] + "."
    if not any(name.startswith(prefix) for name in found):
        found = {prefix + name: tensor for name, tensor in found.items()}
    weights, used = dict[str, MappedTensor](), set[str]()
    for ours, _ in weight_shapes(config):
        theirs, change = _find_theirs(architecture, config, ours)
        if theirs not in found:
            raise ModelError(f"{path} lacks {theirs}", "is it complete?")
        used.add(theirs)
        tensor = found[theirs]
        weights[ours] = tensor if change is None else tensor.rearranged(change, f"{theirs} in {path}")
    unused = (name for name in found if name not in used and not IGNORED.search(name))
    if unknown := next((name for name in unused if name != "lm_head.weight" or not config.tie_embeddings), ""):
        raise ModelError(
            f"{path} has {unknown[:80]}, which a {architecture.model_type} of its {CONFIG} has not", "is it complete?"
        )
    check_shapes(config, {name: one.shape for name, one in weights.items()}, f"the weights in {path}")
    return weights


def _map_files(path: Path) -> Iterator[tuple[str, MappedTensor]]:
    """Yield the tensors of a file, or of those in an index, by their names."""
    if not path.name.endswith(INDEX):
        yield from _map_file(path).items()
        return
    places = read_object(path, MAX_INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise ModelError(f"{path} has no weight_map", DAMAGED)
    for name in sorted(set(places.values())):
        if Path(name).name != name:
            raise ModelError(f"{path} names {name[:80]!r}, which is no file beside it", DAMAGED)
        yield from _map_file(path.parent / name).items()


def _map_file(path: Path) -> dict[str, MappedTensor]:
    if path.suffix != PICKLED.suffix:
        return map_tensors(path, skip_unsupported=True)
    values = read_torch(path)
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds no weights by their names", DAMAGED)
    return {name: one for name, one in values.items() if isinstance(name, str) and isinstance(one, MappedTensor)}


def _find_theirs(
    architecture: Architecture, config: ModelConfig, ours: str
) -> "tuple[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None]":
    """Return the name of the tensor that holds a weight of ours, and what must be done with it."""
    module, _, kind = ours.rpartition(".")
    layer = next(iter(re.findall(r"\.blocks\.(\d+)\.", module)), "")
    pattern = module.replace(f".blocks.{layer}.", ".blocks.{}.") if layer else module
    is_transposed = architecture.transposed and bool(layer) and kind == "weight" and not module.endswith(".norm")
    if pattern in architecture.names:
        return f"{architecture.names[pattern].format(layer)}.{kind}", (lambda array: array.T) if is_transposed else None
    index, heads = PROJECTIONS.index(module.rpartition(".")[2]), config.n_head

    def cut(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        array = array.T if is_transposed else array  # [3 · H · K, D] or [3 · H · K]
        if architecture.fused_by_head:
            return array.reshape(heads, 3, -1, *array.shape[1:])[:, index].reshape(-1, *array.shape[1:])
        size = len(array) // 3
        return array[index * size : (index + 1) * size]

    return f"{architecture.fused.format(layer)}.{kind}", cut
