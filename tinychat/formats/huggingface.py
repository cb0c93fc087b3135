"""Import and export models of `transformers`.

GPT-2 and Llama are the architectures that most tools read. Export refuses any other model and names the fields that
prevent it.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder
from tinychat.errors import ModelError, TokenizerError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import check_shapes, checked_config
from tinychat.store.models import (
    CONFIG,
    MAX_CONFIG,
    TOKENIZER,
    WEIGHTS,
    ModelFiles,
    ModelInfo,
    read_card,
    read_info,
    read_object,
    read_source_tokenizer,
    read_tokenizer,
    read_training,
    read_weights,
    save_model,
)
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.untrusted import refuse_special

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

GPT2_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


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
    transposed: bool
    """Whether matrices in the layers are [in, out], as in GPT-2, instead of [out, in]."""


REQUIRED = {
    "norm_position": "pre", "norm_affine": True, "final_norm": True, "output_projection": True, "qk_norm": False,
    "scale_embedding": False, "previous_token_embeddings": 0, "bigram_embedding": False, "ngram_order": 0,
    "n_encoder_layer": 0,
}  # fmt: skip


def _gpt2_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    activation = next(theirs for theirs, name in GPT2_ACTIVATIONS.items() if name == ours["feed_forward"])
    return {
        "n_positions": ours["context_length"], "n_embd": ours["d_model"], "n_layer": ours["n_layer"],
        "n_head": ours["n_head"], "n_inner": ours["d_ff"],
        "activation_function": activation, "layer_norm_epsilon": ours["norm_eps"],
        "resid_pdrop": ours["dropout"], "embd_pdrop": ours["dropout"], "attn_pdrop": ours["dropout"],
    }  # fmt: skip


def _gpt2_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    activation = str(theirs.get("activation_function", "gelu_new"))
    if activation not in GPT2_ACTIVATIONS:
        raise ModelError(f"the activation {activation!r} is not known here", "known: " + ", ".join(GPT2_ACTIVATIONS))
    return {
        "context_length": theirs["n_positions"], "d_model": theirs["n_embd"], "n_layer": theirs["n_layer"],
        "n_head": theirs["n_head"], "d_ff": theirs.get("n_inner"), "feed_forward": GPT2_ACTIVATIONS[activation],
        "norm_eps": theirs.get("layer_norm_epsilon", 1e-5), "dropout": theirs.get("resid_pdrop", 0.0),
    }  # fmt: skip


def _llama_to(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_position_embeddings": ours["context_length"], "hidden_size": ours["d_model"],
        "num_hidden_layers": ours["n_layer"], "num_attention_heads": ours["n_head"],
        "num_key_value_heads": ours["n_kv_head"] or ours["n_head"],
        "intermediate_size": ours["d_ff"] or 8 * ours["d_model"] // 3,
        "rms_norm_eps": ours["norm_eps"], "rope_theta": ours["rotary_base"], "hidden_act": "silu",
        "attention_bias": False, "mlp_bias": False,
    }  # fmt: skip


def _llama_from(theirs: Mapping[str, Any]) -> dict[str, Any]:
    # Newer versions of transformers store the base in `rope_parameters`.
    rope = theirs.get("rope_parameters")
    base = theirs.get("rope_theta") or (rope.get("rope_theta") if isinstance(rope, dict) else None)
    return {
        "context_length": theirs["max_position_embeddings"], "d_model": theirs["hidden_size"],
        "n_layer": theirs["num_hidden_layers"], "n_head": theirs["num_attention_heads"],
        "n_kv_head": theirs.get("num_key_value_heads"), "d_ff": theirs["intermediate_size"],
        "norm_eps": theirs.get("rms_norm_eps", 1e-6),
        "rotary_base": base or 10_000.0,
    }  # fmt: skip


ARCHITECTURES = (
    Architecture(
        "gpt2",
        "GPT2LMHeadModel",
        REQUIRED | {"norm": "layernorm", "position": "learned", "bias": True, "head_bias": False, "n_kv_head": None},
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
    ),
    Architecture(
        "llama",
        "LlamaForCausalLM",
        REQUIRED
        | {"norm": "rmsnorm", "position": "rotary", "feed_forward": "swiglu", "bias": False, "head_bias": None},
        _llama_to,
        _llama_from,
        {
            "decoder.embedding": "model.embed_tokens",
            "decoder.blocks.{}.attention.norm": "model.layers.{}.input_layernorm",
            "decoder.blocks.{}.attention.sublayer.query": "model.layers.{}.self_attn.q_proj",
            "decoder.blocks.{}.attention.sublayer.key": "model.layers.{}.self_attn.k_proj",
            "decoder.blocks.{}.attention.sublayer.value": "model.layers.{}.self_attn.v_proj",
            "decoder.blocks.{}.attention.sublayer.output": "model.layers.{}.self_attn.o_proj",
            "decoder.blocks.{}.feed_forward.norm": "model.layers.{}.post_attention_layernorm",
            "decoder.blocks.{}.feed_forward.sublayer.gate": "model.layers.{}.mlp.gate_proj",
            "decoder.blocks.{}.feed_forward.sublayer.up": "model.layers.{}.mlp.up_proj",
            "decoder.blocks.{}.feed_forward.sublayer.output": "model.layers.{}.mlp.down_proj",
            "decoder.norm": "model.norm",
            "head": "lm_head",
        },
        transposed=False,
    ),
)


FORMATS: dict[str, str] = {
    "transformers": "a folder for transformers: GPT-2 or Llama, depending on the architecture",
    "tinychat": "a folder to share: weights in bf16, half the size, and no paths of this machine",
}
"""Export formats, with the description of each."""


def export_model(info: ModelInfo, to: str, folder: Path) -> None:
    """Write a model to a folder in another format, a key of `FORMATS`, atomically.

    Raises:
        UsageError: If there is no such format.
        ModelError: If the format does not support the architecture.
    """
    if to not in FORMATS:
        raise UsageError(f"there is no format {to!r}", "formats: " + ", ".join(FORMATS))
    if to == "tinychat":
        _export_tinychat(info, folder)
    else:
        _export_transformers(info, folder)


def _export_tinychat(info: ModelInfo, folder: Path) -> None:
    checked_config(info)
    training = read_training(info.folder, info.files)
    data = training.get("recipe", {}).get("data", {})
    if "sources" in data:
        data["sources"] = [Path(source).name for source in data["sources"]]
    tokenizers = read_tokenizer(info.folder, info.files), read_source_tokenizer(info.folder, info.files)
    shared, card = replace(info, folder=folder), read_card(info.folder, info.files)
    save_model(shared, read_weights(info), *tokenizers, training=training, card=card, precision="bf16")


def _export_transformers(info: ModelInfo, folder: Path) -> None:
    from safetensors.torch import save

    info = replace(info, architecture=checked_config(info).to_dict())
    architecture = _find_architecture(info)
    weights = _convert_weights(architecture, read_weights(info), int(info.architecture["n_layer"]), to_theirs=True)
    tied = bool(info.architecture["tie_embeddings"])
    if tied:
        weights.pop("lm_head.weight", None)
    tokenizer = read_tokenizer(info.folder, info.files)
    config = {
        "model_type": architecture.model_type, "architectures": [architecture.class_name],
        "vocab_size": info.architecture["vocab_size"], "tie_word_embeddings": tied, "torch_dtype": "float32",
        "bos_token_id": None, "eos_token_id": tokenizer.special("end"),
        **architecture.to_config(info.architecture),
    }  # fmt: skip
    with atomic_folder(folder) as draft:
        (draft / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
        tokenizer.save(draft / TOKENIZER)
        (draft / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        # Without this, transformers uses the model type's tokenizer class, which expects other files.
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        (draft / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def import_model(path: Path, name: str, folder: Path) -> ModelInfo:
    """Import a model from a folder of `transformers` or of tinychat at `path`, and write it to `folder`.

    Raises:
        ModelError: If the folder holds no model, or one of an unsupported model type.
    """
    if not os.path.lexists(path / CONFIG):
        raise ModelError(f"{path} holds no {CONFIG}", "give the folder of a model, as transformers saves it")
    files = ModelFiles(path)
    theirs = read_object(path / CONFIG, MAX_CONFIG, files)
    if "architecture" in theirs:
        info = replace(read_info(path, files), files=files)
        checked_config(info)
        weights, tokenizer = read_weights(info), read_tokenizer(path, files)
    else:
        architecture, weights, tokenizer = _read_transformers(path, theirs)
        description = f"imported: {theirs.get('model_type')}"
        info = ModelInfo(name, folder, "completion", architecture, tokenizer.kind, 0, description=description)
    parameters = sum(weight.numel() for weight in {id(weight): weight for weight in weights.values()}.values())
    info = replace(info, name=name, folder=folder, parameters=parameters, files=None)
    training = {"imported_from": str(theirs.get("model_type", "tinychat"))}
    card = f"# {name}\n\n{info.description}\n"
    save_model(info, weights, tokenizer, read_source_tokenizer(path, files), training=training, card=card)
    return info


def _read_transformers(path: Path, theirs: Mapping[str, Any]) -> tuple[dict[str, Any], "Weights", Tokenizer]:
    architecture = next((one for one in ARCHITECTURES if one.model_type == theirs.get("model_type")), None)
    if architecture is None:
        known = ", ".join(one.model_type for one in ARCHITECTURES)
        raise ModelError(f"model type {theirs.get('model_type')!r} is not known here", f"known: {known}")
    tied = bool(theirs.get("tie_word_embeddings", architecture.model_type == "gpt2"))
    try:
        ours = {**architecture.required, **architecture.from_config(theirs)}
        config = ModelConfig.from_dict(ours | {"vocab_size": theirs["vocab_size"], "tie_embeddings": tied})
        tokenizer = load_tokenizer(path)
    except KeyError as error:
        raise ModelError(f"{path / CONFIG} lacks {error}", "is it complete?") from None
    except TokenizerError as error:
        raise ModelError(f"{path} has no tokenizer that can be read: {error.problem}", error.remedy) from None
    found = _read_theirs(path / WEIGHTS)
    # The names of a model saved without its head have no prefix: `wte.weight` instead of `transformer.wte.weight`.
    prefix = "transformer." if architecture.model_type == "gpt2" else "model."
    if not any(name.startswith(prefix) for name in found):
        found = {prefix + name: weight for name, weight in found.items()}
    try:
        weights = _convert_weights(architecture, found, config.n_layer, to_theirs=False)
    except KeyError as error:
        raise ModelError(f"{path / WEIGHTS} lacks {error}", "is it complete?") from None
    shapes = {name: tuple(weight.shape) for name, weight in weights.items() if not (tied and name == "head.weight")}
    check_shapes(config, shapes, f"the weights in {path}")
    if tied:
        weights["head.weight"] = weights["decoder.embedding.weight"]
    return config.to_dict(), weights, tokenizer


def _read_theirs(path: Path) -> "Weights":
    """Read a safetensors file of any types, in f32."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        refuse_special(path, path.stat())
        weights = {name: weight.float() for name, weight in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}", "weights must be one safetensors file") from None
    if name := next((name for name, weight in weights.items() if not weight.isfinite().all()), ""):
        raise ModelError(f"{path} has weights that are NaN or infinite, in {name[:80]}", "is it complete?")
    return weights


def _find_architecture(info: ModelInfo) -> Architecture:
    ours, reasons = info.architecture, []
    for architecture in ARCHITECTURES:
        wrong = {name for name, value in architecture.required.items() if ours[name] != value}
        if ours["head_bias"] in (None, ours["bias"]) and not ours["bias"]:
            wrong.discard("head_bias")
        if architecture.model_type == "gpt2" and ours["feed_forward"] not in GPT2_ACTIVATIONS.values():
            wrong.add("feed_forward")
        if not wrong:
            return architecture
        unsupported = ", ".join(f"{name} {ours[name]}" for name in sorted(wrong))
        reasons.append(f"{architecture.model_type} has no {unsupported}")
    raise ModelError(
        f"transformers has no architecture like that of {info.name}: {'; '.join(reasons)}",
        "train with `--recipe gpt2` or `--recipe llama` for a model that other tools read",
    )


def _convert_weights(architecture: Architecture, weights: "Weights", n_layer: int, *, to_theirs: bool) -> "Weights":
    """Convert weights from our names and layouts to those of `transformers`, or back.

    Raises:
        KeyError: If a weight is missing.
    """
    import torch

    out: Weights = {}
    for ours, theirs in architecture.names.items():
        source, target = (ours, theirs) if to_theirs else (theirs, ours)
        in_layers = "{}" in ours
        for layer, kind in product(range(n_layer if in_layers else 1), ("weight", "bias")):
            weight = weights.get(f"{source.format(layer)}.{kind}")
            if weight is not None:
                is_layer_matrix = in_layers and kind == "weight" and not ours.endswith(".norm")
                weight = weight.T if architecture.transposed and is_layer_matrix else weight
                out[f"{target.format(layer)}.{kind}"] = weight.contiguous()
    for layer, kind in product(range(n_layer if architecture.transposed else 0), ("weight", "bias")):
        fused = f"transformer.h.{layer}.attn.c_attn.{kind}"
        parts = [f"decoder.blocks.{layer}.attention.sublayer.{part}.{kind}" for part in ("query", "key", "value")]
        joined = torch.cat([weights[part] for part in parts]) if to_theirs else weights[fused]
        joined = joined.T if kind == "weight" else joined
        if to_theirs:
            out[fused] = joined.contiguous()
        else:
            out |= {part: piece.contiguous() for part, piece in zip(parts, joined.chunk(3), strict=True)}
    return out
