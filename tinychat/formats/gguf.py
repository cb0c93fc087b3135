"""GGUF, the files of llama.cpp and the programs around it: opened where they lie, and written.

A file holds fields of metadata, the names and places of its tensors, and their numbers, aligned
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Numbers that are not quantized, in our layout, stay mapped
from the file. Llama, GPT-2, Qwen2 and Qwen3 are read, Llama and GPT-2 are written.

A vocabulary of characters is written as byte pairs that build each character from its bytes; one of word pieces as that
of RWKV, whose tokenizer takes the longest known piece, too. It does not split texts into words before, which makes no
difference for vocabularies that are trained now, as `tokenizer.training.needs_no_words` tells.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tinychat.atomic import atomic_folder
from tinychat.config.settings import SETTINGS
from tinychat.errors import ModelError, SettingError, TokenizerError, UsageError
from tinychat.formats import fitting
from tinychat.formats.fitting import ANY
from tinychat.formats.gguf_container import INCOMPLETE, Content, import_library, map_tensor, read_content
from tinychat.formats.vocabularies import (
    BEGUN,
    LETTERS,
    PortableVocabulary,
    describe_vocabulary,
    in_letters,
    make_byte_level,
    make_sentencepiece,
)
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import check_shapes, checked_config, weight_shapes
from tinychat.store.models import CONFIG, ForeignModel, ModelInfo, read_tokenizers, read_weights
from tinychat.store.names import nearest_name
from tinychat.store.weights import MappedTensor
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate
from tinychat.tokenizer.jinja_template import JinjaTemplate, parse_template
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.untrusted import parse_json

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

T = TypeVar("T")

# --- reading ----------------------------------------------------------------------------------------------------------


LAYER = "decoder.blocks.{}."
COMMON = {
    "decoder.embedding": "token_embd", "decoder.norm": "output_norm", "head": "output",
    LAYER + "attention.norm": "blk.{}.attn_norm", LAYER + "attention.sublayer.output": "blk.{}.attn_output",
    LAYER + "feed_forward.norm": "blk.{}.ffn_norm", LAYER + "feed_forward.sublayer.up": "blk.{}.ffn_up",
    LAYER + "feed_forward.sublayer.output": "blk.{}.ffn_down",
}  # fmt: skip
SEPARATE = {LAYER + f"attention.sublayer.{part}": f"blk.{{}}.attn_{part[0]}" for part in ("query", "key", "value")}
FUSED = {LAYER + f"attention.sublayer.{part}": "blk.{}.attn_qkv" for part in ("query", "key", "value")}
HEAD_NORMS = {LAYER + f"attention.sublayer.{part}_norm": f"blk.{{}}.attn_{part[0]}_norm" for part in ("query", "key")}
GATE = {LAYER + "feed_forward.sublayer.gate": "blk.{}.ffn_gate"}


@dataclass(frozen=True)
class Architecture:
    """One of the architectures of llama.cpp."""

    fields: Mapping[str, Any]
    """Fields of ours and the values that all its models have."""
    names: Mapping[str, str]
    """Names of modules: ours → those of llama.cpp; `{}` stands for the layer."""
    is_interleaved: bool = False
    """Whether a rotary pair is k, k + 1 instead of k, k + K/2."""


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(fitting.LLAMA, COMMON | SEPARATE | GATE, is_interleaved=True),
    "qwen2": Architecture(fitting.LLAMA | {"qkv_bias": True}, COMMON | SEPARATE | GATE),
    "qwen3": Architecture(
        fitting.LLAMA | {"qk_norm": True, "qk_norm_affine": True}, COMMON | SEPARATE | GATE | HEAD_NORMS
    ),
    "gpt2": Architecture(fitting.GPT2 | {"bias": True}, COMMON | FUSED | {"decoder.position.table": "position_embd"}),
}
SCALING = ("rotary_factor", "rotary_short_wavelength", "rotary_long_wavelength")
DIVISORS = "rope_freqs.weight"
"""Tensor of what the rotary frequencies of a Llama are divided by."""


def recognizes(path: Path) -> bool:
    """Return whether a path is a GGUF file, or a folder with only one."""
    return find_file(path) is not None


def find_file(path: Path) -> Path | None:
    """Return the GGUF file that a path stands for; None if it stands for none."""
    if path.suffix.lower() == ".gguf":
        return path if path.is_file() else None
    is_folder = path.is_dir() and not (path / CONFIG).exists()
    found = [one for one in path.iterdir() if one.suffix.lower() == ".gguf"] if is_folder else []
    return found[0] if len(found) == 1 else None


def read(path: Path) -> ModelInfo:
    """Open a GGUF file where it lies.

    Raises:
        ModelError: If it cannot be read, or its architecture is not known here.
        TokenizerError: If its vocabulary is not.
    """
    file = find_file(path)
    assert file is not None
    content = read_content(file)
    name = content.get("general.architecture", str)
    if name not in ARCHITECTURES:
        raise ModelError(
            f"the architecture {name[:40]!r} of {file} is not known here", f"known: {', '.join(ARCHITECTURES)}"
        )
    config = _read_config(content, name)
    places = {ours: _find_theirs(name, config, ours) for ours, _ in weight_shapes(config)}
    divisors = {DIVISORS} & content.tensors.keys() if name == "llama" else set()
    _check_tensors(content, divisors | {theirs for theirs, _ in places.values()})
    tokenizer = _read_tokenizer(content)
    template, end = _read_template(content, tokenizer), content.get("tokenizer.ggml.eos_token_id", int, -1)
    parameters = sum(math.prod(shape or ()) for _, shape in weight_shapes(config))
    return ModelInfo(
        file.resolve().stem, file, "chat" if template else "completion", config.to_dict(), tokenizer.kind, parameters,
        template, end_ids=(end,) if end >= 0 else (), description=f"{file.resolve().stem} of llama.cpp ({name})",
        settings=_read_settings(content),
        foreign=ForeignModel("gguf", file, lambda: tokenizer, partial(_map_weights, content, config, places)),
    )  # fmt: skip


def _read_config(content: Content, name: str) -> ModelConfig:
    architecture = ARCHITECTURES[name]

    def get(field: str, kind: type[T], default: T | None = None) -> T:
        return content.get(f"{name}.{field}", kind, default)

    if (parts := content.get("split.count", int, 1)) > 1:
        raise ModelError(
            f"{content.path} is one of {parts} parts of a model", "join them by llama.cpp's llama-gguf-split"
        )
    embedding = content.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{content.path} lacks token_embd.weight", INCOMPLETE)
    if get("expert_count", int, 0):
        raise ModelError(f"{content.path} is a mixture of experts, which is not known here")
    n_head, d_model = get("attention.head_count", int), get("embedding_length", int)
    n_kv_head = get("attention.head_count_kv", int, n_head)
    d_head = get("attention.key_length", int, d_model // max(1, n_head))
    if get("rope.dimension_count", int, d_head) != d_head or get("attention.value_length", int, d_head) != d_head:
        raise ModelError(f"{content.path} has heads of different widths", "only plain models of its kind are known")
    is_gpt2 = name == "gpt2"
    eps = get("attention.layer_norm_epsilon" if is_gpt2 else "attention.layer_norm_rms_epsilon", float)
    fields = {
        "vocab_size": embedding.shape[0], "context_length": get("context_length", int), "d_model": d_model,
        "n_layer": get("block_count", int), "n_head": n_head, "d_head": None if d_head * n_head == d_model else d_head,
        "n_kv_head": None if n_kv_head == n_head else n_kv_head,
        "d_ff": get("feed_forward_length", int), "norm_eps": float(f"{eps:.7g}"),  # it was rounded to 32 bits
        "tie_embeddings": "output.weight" not in content.tensors,
        "rotary_base": get("rope.freq_base", float, 10_000.0),
    }  # fmt: skip
    config = ModelConfig.from_dict(dict(architecture.fields) | fields)
    return config if is_gpt2 else _read_scaling(content, name, config)


def _read_scaling(content: Content, name: str, config: ModelConfig) -> ModelConfig:
    """Return an architecture with the scaling of its rotary positions."""
    refused = ModelError(
        f"{content.path} scales its rotary positions in a way that is not known here", "linear and llama3 are known"
    )
    kind = content.get(f"{name}.rope.scaling.type", str, "linear")
    fields = (f"{name}.rope.scaling.{field}" for field in ("factor", "attn_factor"))
    factor, attention_factor = (content.get(field, float, 1.0) for field in fields)
    factor = factor or content.get(f"{name}.rope.scale_linear", float, 1.0) or 1.0
    if kind == "none":
        factor = 1.0
    elif kind != "linear" or attention_factor != 1:
        raise refused
    place = content.tensors.get(DIVISORS) if name == "llama" else None
    if place is None:
        return replace(config, rotary_factor=factor)
    divisors = [float(number) for number in map_tensor(content, place).to_numpy().flatten()]
    if len(divisors) != config.rotary_width // 2 or not all(1 <= one < math.inf for one in divisors) or factor != 1:
        raise refused
    with suppress(ZeroDivisionError, ModelError):
        config = replace(config, **_fit_scaling(divisors, config.rotary_base))
    if not all(math.isclose(*pair, rel_tol=1e-5) for pair in zip(divisors, config.rotary_divisors(), strict=True)):
        raise refused
    return config


def _fit_scaling(divisors: Sequence[float], base: float) -> dict[str, Any]:
    """Return the fields of ours that give such divisors of rotary frequencies, if any do.

    1 / divisor is a line in the frequency, cut off at 1 and at 1 / the largest one: below the cuts it is as steep as
    between those two neighbours where it is steepest.
    """
    factor = max(divisors)
    if math.isclose(min(divisors), factor, rel_tol=1e-6):
        return {"rotary_factor": float(f"{factor:.6g}")}
    rates = [base ** (-k / len(divisors)) / math.tau for k in range(len(divisors))]  # wavelength⁻¹
    kept = [(1 / one - 1 / factor) / (1 - 1 / factor) for one in divisors]  # 1: as it is, 0: divided in full
    slope, at = max(((kept[k] - kept[k + 1]) / (rates[k] - rates[k + 1]), k) for k in range(len(rates) - 1))
    short, long = (1 / (rates[at] + (share - kept[at]) / slope) for share in (1, 0))
    values = {"rotary_factor": factor, "rotary_short_wavelength": short, "rotary_long_wavelength": long}
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _find_theirs(name: str, config: ModelConfig, ours: str) -> "tuple[str, Callable[[Array], Array] | None]":
    """Return the name of the tensor that holds a weight of ours, and what must be done with its array."""
    architecture = ARCHITECTURES[name]
    module, _, kind = ours.rpartition(".")
    layer = module.split(".")[2] if ".blocks." in module else ""
    pattern = module.replace(f".blocks.{layer}.", ".blocks.{}.") if layer else module
    theirs, part = f"{architecture.names[pattern].format(layer)}.{kind}", module.rpartition(".")[2]
    if "attn_qkv" in theirs:
        begin, width = ("query", "key", "value").index(part) * config.d_model, config.d_model
        return theirs, lambda array: array[begin : begin + width]
    if architecture.is_interleaved and part in ("query", "key"):
        return theirs, lambda array: fitting.from_interleaved(array, config.head_width)
    return theirs, None


def _check_tensors(content: Content, needed: set[str]) -> None:
    """Check that a file has the tensors that its architecture needs, in their shapes, and no other."""
    if missing := next((name for name in needed if name not in content.tensors), ""):
        raise ModelError(f"{content.path} lacks {missing}", INCOMPLETE)
    if unknown := next((name for name in content.tensors if name not in needed), ""):
        problem = f"{content.path} has {unknown[:80]}, which this architecture has not here"
        raise ModelError(problem, "only plain models of its kind are known")


def _map_weights(
    content: Content, config: ModelConfig, places: "Mapping[str, tuple[str, Callable[[Array], Array] | None]]"
) -> dict[str, MappedTensor]:
    """Map the weights under our names and in our layout; quantized ones are widened to f32."""
    weights = {}
    for ours, (theirs, change) in places.items():
        tensor = map_tensor(content, content.tensors[theirs])
        weights[ours] = tensor if change is None else tensor.rearranged(change, f"{theirs} in {content.path}")
    check_shapes(config, {name: one.shape for name, one in weights.items()}, f"the weights in {content.path}")
    return weights


def _read_tokenizer(content: Content) -> Tokenizer:
    """Return the tokenizer, which puts the tokens around a text that llama.cpp puts there."""
    prefix = "tokenizer.ggml."
    if "tokenizer.huggingface.json" in content.fields:
        return Tokenizer.from_json(content.get("tokenizer.huggingface.json", str))
    model, tokens = content.get(prefix + "model", str), content.texts(prefix + "tokens")
    kinds = content.numbers(prefix + "token_type") or [1] * len(tokens)
    if len(kinds) != len(tokens):
        raise TokenizerError(f"{content.path} has {len(tokens):,} tokens, and types of {len(kinds):,}", INCOMPLETE)
    special = {id: kind == 3 for id, kind in enumerate(kinds) if kind in (3, 4)}  # control and user-defined tokens
    splitter, id = content.get(prefix + "pre", str, "gpt-2"), content.get(prefix + "bos_token_id", int, -1)
    has_begin = content.get(prefix + "add_bos_token", bool, model == "llama" or splitter in BEGUN)
    begin = id if has_begin and 0 <= id < len(tokens) else None
    if model == "gpt2":
        return make_byte_level(tokens, content.texts(prefix + "merges"), splitter, special=special, begin=begin)
    if model != "llama":
        raise TokenizerError(f"the vocabulary of {content.path} is of the kind {model[:40]!r}", "known: gpt2, llama")
    scores = content.numbers(prefix + "scores") or [0.0] * len(tokens)
    if len(scores) != len(tokens):
        raise TokenizerError(f"{content.path} has {len(tokens):,} tokens, and scores of {len(scores):,}", INCOMPLETE)
    unknown = next((id for id, kind in enumerate(kinds) if kind == 2), -1)
    has_prefix = content.get(prefix + "add_space_prefix", bool, True)
    return make_sentencepiece(tokens, scores, unknown=unknown, special=special, begin=begin, has_prefix=has_prefix)


SAMPLING = {
    "temperature": "temp", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "repetition_penalty": "penalty_repeat",
}  # fmt: skip
"""Our settings and the ends of the names of theirs, `general.sampling.temp`."""


def _read_settings(content: Content) -> dict[str, Any]:
    """Return the sampling settings that a file suggests; those that have no such value here are left out."""
    settings = {}
    for ours, theirs in SAMPLING.items():
        with suppress(SettingError, UsageError):
            value = content.fields.get(f"general.sampling.{theirs}")
            if value is not None:
                settings[ours] = SETTINGS[ours].parse(float(f"{value:.7g}") if isinstance(value, float) else value)
    return settings


OUR_TEMPLATE = "tinychat.template"


def _read_template(content: Content, tokenizer: Tokenizer) -> ConversationTemplate | None:
    """Return the chat template of a file, in its own form if tinychat wrote it."""
    ids = {role: content.get(f"tokenizer.ggml.{role}_token_id", int, -1) for role in ("bos", "eos")}
    try:
        if OUR_TEMPLATE in content.fields:
            values = parse_json(content.get(OUR_TEMPLATE, str))
            return parse_template(values if isinstance(values, dict) else {"": values})
        source = content.get("tokenizer.chat_template", str, "")
        named = {f"{role}_token": tokenizer.token_text(id) for role, id in ids.items() if tokenizer.is_special(id)}
        return JinjaTemplate.from_dict({"jinja": source, "special_tokens": named}) if source else None
    except ValueError as error:
        raise ModelError(f"{content.path} has a bad chat template: {error}", INCOMPLETE) from None


# --- writing ----------------------------------------------------------------------------------------------------------


SHAPES = {
    "llama": fitting.LLAMA | dict.fromkeys(("n_kv_head", "rotary_base", *SCALING), ANY),
    "gpt2": fitting.GPT2 | {"bias": ANY},
}
"""Architectures that can be written. Biases of GPT-2 that a model lacks are zeros."""
END = "<|end|>"
"""Name of the end token that is added where there is none: llama.cpp would take the token 11 for it."""
IMPOSSIBLE = (LETTERS[0xFF], LETTERS[0xFF])
"""A merge of bytes that no text has: llama.cpp reads no vocabulary without merges."""
OLLAMA_SETTINGS = {"max_tokens": "num_predict"} | {name: name for name in ("temperature", "top_p", "top_k", "min_p")}
"""Names of settings in a `Modelfile`, by ours."""


def write(info: ModelInfo, folder: Path, type: str = "F32") -> None:
    """Write a model to a folder, as a GGUF file and a `Modelfile` for ollama, atomically.

    `type` is that of its matrices: F32, F16 or Q8_0; those whose rows are no whole blocks of 32 are then in F16.

    Raises:
        ModelError: If GGUF has no such architecture or vocabulary, or the package `gguf` is not installed.
    """
    config = checked_config(info)
    shape = fitting.find_shape(info, config, SHAPES, "gguf")
    tokenizer, _ = read_tokenizers(info)
    vocabulary = describe_vocabulary(tokenizer, "gguf")
    end = next(iter(info.end_ids), tokenizer.special("end"))
    needs_end = vocabulary.kind != "wordpiece" and end is None
    end = config.vocab_size if needs_end else end
    library = import_library()
    logging.getLogger("gguf").setLevel(logging.ERROR)
    with atomic_folder(folder) as draft:
        file = f"{nearest_name(info.name)}.gguf"
        writer = library.GGUFWriter(draft / file, shape)
        writer.add_name(info.name)
        if info.description:
            writer.add_description(info.description)
        writer.add_file_type({"F32": 0, "F16": 1, "Q8_0": 7}[type])
        for ours, theirs in SAMPLING.items():
            value = info.settings.get(ours)
            if isinstance(value, float | int):
                add = writer.add_int32 if ours == "top_k" else writer.add_float32
                add(f"general.sampling.{theirs}", value)
        _add_sizes(writer, config, shape)
        _add_vocabulary(writer, tokenizer, vocabulary, config.vocab_size, end, info.template)
        for name, array in _their_weights(info, config, shape, needs_end):
            kind = _choose_type(library, type, name, array)
            writer.add_tensor(name, library.quants.quantize(array, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        (draft / "Modelfile").write_text(_modelfile(info, file), encoding="utf-8")


def _choose_type(library: Any, type: str, name: str, array: "Array") -> Any:
    types = library.GGMLQuantizationType
    if array.ndim < 2 or name.startswith("position_embd"):
        return types.F32
    return types.F16 if type == "Q8_0" and array.shape[-1] % 32 else types[type]


def _add_sizes(writer: Any, config: ModelConfig, shape: str) -> None:
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layer)
    writer.add_feed_forward_length(config.feed_forward_width)
    writer.add_head_count(config.n_head)
    writer.add_head_count_kv(config.kv_heads)
    if shape == "gpt2":
        writer.add_layer_norm_eps(config.norm_eps)
    else:
        writer.add_layer_norm_rms_eps(config.norm_eps)
        writer.add_rope_dimension_count(config.head_width)
        writer.add_key_length(config.head_width)
        writer.add_value_length(config.head_width)
        writer.add_rope_freq_base(config.rotary_base)
        if config.rotary_factor != 1 and config.rotary_short_wavelength is None:
            writer.add_string(f"{shape}.rope.scaling.type", "linear")
            writer.add_float32(f"{shape}.rope.scaling.factor", config.rotary_factor)


def _add_vocabulary(
    writer: Any,
    tokenizer: Tokenizer,
    vocabulary: PortableVocabulary,
    vocab_size: int,
    end: int | None,
    template: ConversationTemplate | None,
) -> None:
    """Write tokens, merges, special tokens and the chat template.

    The model may have more tokens than its tokenizer: those get names that no text has. The end token may be one more.
    """
    is_bpe = vocabulary.kind != "wordpiece"
    texts, kinds = [], []
    encode, special = in_letters if is_bpe else _escape, {*vocabulary.special}
    for id, piece in enumerate(vocabulary.pieces):
        texts.append(piece.decode() if id in special else encode(piece))
        kinds.append(3 if id in special else 1)
    missing = vocab_size - len(texts)
    texts += [f"[unused {index}]" for index in range(missing)] + [END] * (end == vocab_size)
    kinds += [5] * missing + [3] * (end == vocab_size)
    writer.add_tokenizer_model("gpt2" if is_bpe else "rwkv")
    if is_bpe:
        writer.add_tokenizer_pre(vocabulary.splitter or "smollm")
        merges = vocabulary.merges if vocabulary.kind == "bpe" else _merge_bytes(vocabulary.pieces)
        writer.add_token_merges([" ".join(pair) for pair in merges or [IMPOSSIBLE]])
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    begin = next(iter(tokenizer.beginning()), None)
    if end is not None:
        writer.add_eos_token_id(end)
    if end is not None or begin is not None:
        writer.add_bos_token_id(end if begin is None else begin)
    writer.add_add_bos_token(template is None and begin is not None)
    writer.add_add_eos_token(False)
    writer.add_string("tokenizer.huggingface.json", json.dumps(json.loads(tokenizer.to_json()), ensure_ascii=False))
    if template is not None:
        writer.add_chat_template(template.to_jinja())
        writer.add_string(OUR_TEMPLATE, json.dumps(template.to_dict()))


def _escape(piece: bytes) -> str:
    """Return bytes as the vocabulary of RWKV writes them."""
    return "".join(f"\\x{byte:02x}" if byte < 0x21 or byte > 0x7E or byte == 0x5C else chr(byte) for byte in piece)


def _merge_bytes(pieces: Sequence[bytes]) -> list[tuple[str, str]]:
    """Return merges that build each character from its bytes."""
    letters = sorted({in_letters(piece) for piece in pieces})
    return list(dict.fromkeys((one[:at], one[at]) for one in letters for at in range(1, len(one)) if len(one) <= 4))


def _their_weights(info: ModelInfo, config: ModelConfig, shape: str, needs_end: bool) -> "Iterator[tuple[str, Array]]":
    """Yield the names and arrays of a model, in f32; with `needs_end` the end token has the mean of all others.

    The mean's logit is the mean of all logits: it is never the likeliest.
    """
    import numpy as np

    weights = read_weights(info)
    arrays = {name: weights[name].numpy() for name, _ in weight_shapes(config)}  # queries, keys, values: in this order
    for name in ("decoder.embedding.weight", "head.weight"):
        if needs_end and name in arrays:
            arrays[name] = np.concatenate((arrays[name], arrays[name].mean(0, keepdims=True)))
    if shape == "gpt2" and not config.bias:
        widths = {name: len(array) for name, array in arrays.items() if name.endswith(".weight")}
        for name in ("embedding", "position.table"):
            widths.pop(f"decoder.{name}.weight")
        widths.pop("head.weight", None)
        arrays |= {f"{name.removesuffix('weight')}bias": np.zeros(width, np.float32) for name, width in widths.items()}
    fused: dict[str, list[Array]] = {}
    for ours, array in arrays.items():
        theirs, _ = _find_theirs(shape, config, ours)
        if "attn_qkv" in theirs:
            fused.setdefault(theirs, []).append(array)
        else:
            is_rotated = ARCHITECTURES[shape].is_interleaved and ".".join(ours.split(".")[-2:-1]) in ("query", "key")
            yield theirs, fitting.to_interleaved(array, config.head_width) if is_rotated else array
    for theirs, parts in fused.items():
        yield theirs, np.concatenate(parts)
    if shape == "llama" and config.rotary_factor != 1 and config.rotary_short_wavelength is not None:
        yield DIVISORS, np.array(config.rotary_divisors(), np.float32)


def _modelfile(info: ModelInfo, file: str) -> str:
    """Return what `ollama create` reads: the file, the template in the language of Go, and settings."""
    template, lines = info.template, [f"FROM ./{file}"]
    if template is None:
        lines.append('TEMPLATE """{{ .Prompt }}"""')
    elif isinstance(template, ChatTemplate):  # ollama knows the usual ones of others, which are in the file
        user, assistant = template.user + template.user_prefix, template.assistant
        lines.append(
            'TEMPLATE """{{ range .Messages }}{{ if eq .Role "assistant" }}' + assistant + "{{ else }}" + user
            + "{{ end }}{{ .Content }}" + template.end + "{{ end }}" + assistant + '"""'
        )  # fmt: skip
        stops = dict.fromkeys(token for token in (template.end, template.user, template.assistant) if token)
        lines += [f"PARAMETER stop {json.dumps(token)}" for token in stops]
    lines.append(f"PARAMETER num_ctx {info.architecture['context_length']}")
    lines += [
        f"PARAMETER {theirs} {info.settings[ours]}"
        for ours, theirs in OLLAMA_SETTINGS.items()
        if info.settings.get(ours) is not None
    ]
    return "\n".join(lines) + "\n"
