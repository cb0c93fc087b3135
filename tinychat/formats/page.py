"""Write a model as one HTML file, in which it answers: no server, no installation, no network.

The file holds the page (`html/`), the kernel in WebAssembly, and the model: weights, tokenizer, card and loss curve.
All that comes from the model is in one compressed block, which the page reads: no text of it is part of the HTML.
"""

import base64
import gzip
import hashlib
import html
import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tinychat
from tinychat.atomic import atomic_write
from tinychat.config.settings import SETTINGS
from tinychat.errors import ModelError, TokenizerError
from tinychat.model.config import ModelConfig
from tinychat.model.kernel_layout import (
    DTYPES,
    encoder_tensor_names,
    has_whole_head,
    is_matrix,
    pack_config,
    pack_encoder_config,
    tensor_names,
)
from tinychat.model.precision import MIN_PARAMETERS, is_int8_accurate, read_losses
from tinychat.model.shapes import checked_config
from tinychat.store.models import (
    ModelInfo,
    map_weights,
    read_card,
    read_tokenizers,
    read_training,
    refuse_infinite,
    without_recipe,
)
from tinychat.store.weights import GROUP, MappedTensor, is_layer_matrix, quantize
from tinychat.textutil import one_line, shorten
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.untrusted import replace_surrogates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.generic]

FOLDER = Path(__file__).with_name("html")
WORKER = ("payload.js", "kernel.js", "worker.js")
"""The parts of the worker's script, in their order."""
SCRIPT = ("tokenizer.js", "prompts.js", "conversation.js", "about.js", "view.js", "settings.js", "page.js")
"""The parts of the page's own script, likewise."""
SHARED_SETTINGS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "max_tokens", "seed")
MAX_TITLE = 80


def write_page(info: ModelInfo, path: Path, precision: str | None = None, chat: Iterable[tuple[str, str]] = ()) -> None:
    """Write a model as one HTML file, whole or not at all.

    `precision` is that of its matrices: int8, but for the head of a small vocabulary, bf16, or f32, as in the file. The
    default is int8; bf16 if int8 is known to cost accuracy; f32 for small models, whose pages int8 would hardly make
    smaller. Matrices that are in int8 in the file stay so. `chat` are prompts and answers that the page begins with, as
    if they had been said there.

    Raises:
        ModelError: If the model is damaged, or the page knows no such model.
        TokenizerError: If the page does not know its tokenizer.
    """
    atomic_write(path, render_page(info, precision, chat))


def render_page(info: ModelInfo, precision: str | None = None, chat: Iterable[tuple[str, str]] = ()) -> str:
    """Return the HTML of a page; arguments and errors are those of `write_page`."""
    payload = base64.b64encode(pack_model(info, precision, chat)).decode()
    worker, script = read_scripts(WORKER), read_scripts(SCRIPT)
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_source_hash(script)} 'wasm-unsafe-eval'; style-src {_source_hash(style)}; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy, "title": html.escape(shorten(one_line(info.name), MAX_TITLE)), "style": style,
        "model": payload, "worker": worker, "script": script,
    }  # fmt: skip
    template = (FOLDER / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def read_scripts(names: Iterable[str]) -> str:
    """Return the text of a script: its parts, joined."""
    return "\n".join(['"use strict";', *((FOLDER / name).read_text(encoding="utf-8") for name in names)])


def _source_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def pack_model(info: ModelInfo, precision: str | None = None, chat: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return what a page holds of a model: the length of a header, the header as JSON, then bytes; compressed.

    Raises:
        ModelError: If the model is damaged, or the page knows no such model.
        TokenizerError: If the page does not know its tokenizer.
    """
    config = checked_config(info)
    if precision is None:
        losses = read_losses(info)
        is_accurate = losses is None or is_int8_accurate(losses)
        precision = "f32" if info.parameters <= MIN_PARAMETERS else "int8" if is_accurate else "bf16"
    blocks = [(FOLDER / "kernel.wasm").read_bytes()]
    stacks, parts = _pack_tensors(info, config, precision, blocks)
    header = {
        "kernel": len(blocks[0]), **stacks, "parts": parts, "precision": precision,
        "context_length": config.context_length, "vocab_size": config.vocab_size,
        **_describe(info), **_describe_text(info, *read_tokenizers(info)),
        "chat": [[replace_surrogates(text) for text in turn] for turn in chat],
    }  # fmt: skip
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    whole = b"".join((len(text).to_bytes(4, "little"), text, *blocks))
    return gzip.compress(whole, 9, mtime=0)


def _describe(info: ModelInfo) -> dict[str, Any]:
    """Return what the page tells of a model, and its settings."""
    training = {} if info.foreign else read_training(info.folder, info.files)
    known = ("step", "seconds", "loss", "perplexity", "bits_per_character", "accuracy")
    options = [SETTINGS[name] for name in SHARED_SETTINGS]
    return {
        "name": info.name, "mode": info.mode, "description": info.description, "parameters": info.parameters,
        "tokenizer_kind": info.tokenizer_kind, "version": tinychat.__version__,
        "card": "" if info.foreign else without_recipe(read_card(info.folder, info.files)),
        "curve": training.get("curve") or {}, "text": (training.get("data") or {}).get("name", ""),
        "training": {name: training[name] for name in known if name in training},
        "settings": {option.name: info.settings.get(option.name, option.default) for option in options},
        "help": {option.name: [option.help, option.trend] for option in options},
    }  # fmt: skip


def _describe_text(info: ModelInfo, tokenizer: Tokenizer, source: Tokenizer) -> dict[str, Any]:
    """Return the tokenizers, and the special tokens around prompts and answers."""
    template = info.template if info.mode == "chat" else None
    if info.mode == "chat" and template is None:
        raise ModelError(f"{info.name} is a chat model without a template", "train or import it again")
    marks = None
    if not isinstance(template, ChatTemplate | None):
        raise ModelError(
            f"{info.name} has a chat template of its own, which a page cannot hold", "choose another model"
        )
    if template is not None:
        roles = {"user": template.user, "assistant": template.assistant, "end": template.end}
        marks = {
            **{role: [tokenizer.token_id(name)] if name else [] for role, name in roles.items()},
            "user_prefix": template.user_prefix, "lowercase_all_caps": template.lowercase_all_caps,
        }  # fmt: skip
    ends = {*(template.end_ids(tokenizer) if template else ()), *info.end_ids} or tokenizer.special_ids("end")
    is_translator, encoded = info.mode == "translation", None
    if is_translator:
        edges = {role: source.special_ids(role) for role in ("begin", "end")}
        encoded = {"tokenizer": tokenizer_spec(source), **edges}
    return {
        "source": encoded, "tokenizer": tokenizer_spec(tokenizer), "template": marks,
        "beginning": tokenizer.beginning(is_target=is_translator), "ends": sorted(ends),
    }  # fmt: skip


# --- weights ----------------------------------------------------------------------------------------------------------


def _pack_tensors(
    info: ModelInfo, config: ModelConfig, precision: str, blocks: list[bytes]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Add a model's tensors to the blocks; return what the kernel reads of the model, and what the tensors are.

    The model, and its encoder if it has one, have a configuration, and in the kernel's order the index of each tensor,
    −1 for one that the model lacks. A head that is tied is stored once, as the embedding.
    """
    weights = map_weights(info)
    refuse_infinite(weights, info.weights_file)
    indices, parts = dict[str, int](), list[dict[str, Any]]()
    for name in (*tensor_names(config), *encoder_tensor_names(config)):
        if name not in weights:
            indices[name] = -1
        elif name not in indices:
            indices[name] = len(parts)
            tensor = weights[name]
            numbers = tensor.to_numpy().ravel()
            in_int8 = is_layer_matrix(name) or (is_matrix(name) and not has_whole_head(config))
            if tensor.largest or (in_int8 and precision == "int8"):
                parts.append(_pack_int8(tensor, numbers, blocks))
            elif is_matrix(name) and precision == "bf16" and tensor.dtype != "BF16":
                parts.append(_pack_numbers("BF16", _to_bf16(_to_floats(tensor.dtype, numbers)), blocks))
            else:
                parts.append(_pack_numbers(tensor.dtype, numbers, blocks))
    model = _pack_stack(pack_config(config, precision), tensor_names(config), indices) | {"encoder": None}
    if config.encoder_decoder:
        packed = pack_encoder_config(config, precision)
        model["encoder"] = _pack_stack(packed, encoder_tensor_names(config), indices)
    return model, parts


def _pack_stack(config: bytes, names: Iterable[str], indices: Mapping[str, int]) -> dict[str, Any]:
    return {"config": struct.unpack(f"{len(config) // 4}i", config), "tensors": [indices[name] for name in names]}


def _pack_numbers(dtype: str, numbers: "Numbers", blocks: list[bytes]) -> dict[str, Any]:
    blocks.append(_planes(numbers))
    return {"dtype": DTYPES[dtype], "size": len(blocks[-1])}


def _planes(numbers: "Numbers") -> bytes:
    """Return the first bytes of all numbers, then the second ones, and so on: these compress better."""
    import numpy as np

    return np.frombuffer(numbers.tobytes(), np.uint8).reshape(-1, numbers.itemsize).T.tobytes()


def _to_floats(dtype: str, numbers: "Numbers") -> "npt.NDArray[np.float32]":
    import numpy as np

    if dtype == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)


def _to_bf16(numbers: "npt.NDArray[np.float32]") -> "npt.NDArray[np.uint16]":
    """Round to the nearest, ties to even, like kernel.c."""
    import numpy as np

    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _pack_int8(tensor: MappedTensor, numbers: "Numbers", blocks: list[bytes]) -> dict[str, Any]:
    """Quantize a matrix as kernel.c does: steps up to ±127, and of each group of columns the largest weight.

    The largest weights keep the precision of the file, so that quantizing the result again changes nothing.
    """
    import numpy as np

    rows, columns = tensor.shape
    steps, largest = quantize(_to_floats(tensor.dtype, numbers).reshape(rows, columns))
    stored = largest.ravel()
    if tensor.dtype == "BF16":
        stored = (stored.view(np.uint32) >> 16).astype(np.uint16)
    elif tensor.dtype == "F16":
        stored = stored.astype(np.float16)
    blocks += steps.tobytes(), _planes(stored)
    return {
        "dtype": DTYPES[tensor.dtype], "rows": rows, "columns": columns, "group": GROUP,
        "size": len(blocks[-2]) + len(blocks[-1]),
    }  # fmt: skip


# --- tokenizer --------------------------------------------------------------------------------------------------------

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""Pattern of the library's step `ByteLevel` (Radford et al. 2019)."""
_ESCAPE = r"\\[pP]\{\^?[A-Z][a-z]?\}|\\[sSnrt]|\\[\\^$.*+?()\[\]{}|/]"
_ITEM = re.compile(
    rf"{_ESCAPE}|\[\^?(?:{_ESCAPE}|(?!&&)[^\\\[\]])+\]|\((?:\?[:=!]|(?!\?))|\)"
    r"|(?:[?*+]|\{\d+(?:,\d*)?\})(?:\?|(?![+?]))|[^\\\[\](){}?*+^$.]"
)
"""Parts of a pattern that mean the same in JavaScript: no flags, possessive quantifiers or nested classes."""


_SPACES = {"s": r"\p{White_Space}", "S": r"\P{White_Space}"}


def tokenizer_spec(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what `html/tokenizer.js` needs to know of a tokenizer.

    Raises:
        TokenizerError: If that does not know such a tokenizer.
    """
    file = json.loads(tokenizer.to_json())
    model, kind, normalizer = file["model"], tokenizer.kind, (file["normalizer"] or {}).get("type")
    _require(kind in ("char", "word", "whitespace", "wordpiece", "bpe"), f"of the kind {kind}")
    _require(kind == "whitespace" or tokenizer.has_fixed_bytes, "whose tokens depend on their neighbours")
    _require(normalizer in (None, "NFC", "NFD", "NFKC", "NFKD"), f"with the normalizer {normalizer}")
    added = {token["id"]: token["special"] for token in file["added_tokens"]}
    _require(all(added.values()), "with added tokens that are not special")
    tokens: list[str | None] = [None] * tokenizer.vocab_size
    for token, id in model["vocab"].items():
        tokens[id] = None if id in added else token
    spec = {
        "kind": kind, "tokens": tokens, "normalizer": normalizer, "pattern": None,
        "byte_level": (file["decoder"] or {}).get("type") == "ByteLevel",
    }  # fmt: skip
    if kind in ("char", "whitespace"):
        return spec
    if model["type"] == "BPE":
        _require(not (model["byte_fallback"] or model["unk_token"] or model["end_of_word_suffix"]), "not of bytes")
        merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
        spec |= {"merges": merges, "ignore_merges": bool(model.get("ignore_merges"))}
    if kind == "wordpiece":
        _require(not model["continuing_subword_prefix"], "whose continuations are marked")
    before = file["pre_tokenizer"] or {}
    steps = before["pretokenizers"] if before.get("type") == "Sequence" else [before]
    patterns = [_pattern_of(step) for step in steps]
    found = [pattern for pattern in patterns if pattern]
    _require(len(found) == 1, "that splits texts several times")
    return spec | {"pattern": _to_javascript(found[0])}


def _pattern_of(step: Mapping[str, Any]) -> str:
    """Return the pattern by which a step splits texts; empty if it does not."""
    match step:
        case {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False}:
            return pattern
        case {"type": "ByteLevel", "use_regex": True}:
            return GPT2_PATTERN
        case {"type": "ByteLevel"}:
            return ""
    raise _unknown(f"with the step {step.get('type')}")


def _to_javascript(pattern: str) -> str:
    """Translate a regular expression of the library for the flag `u` of JavaScript."""
    end = 0
    while found := _ITEM.match(pattern, end):
        end = found.end()
    _require(end == len(pattern), f"with the pattern {shorten(pattern[end:], 20)}")
    return re.sub(r"\\(?:([sS])|.)", lambda found: _SPACES[found[1]] if found[1] else found[0], pattern)


def _require(is_known: bool, what: str) -> None:
    if not is_known:
        raise _unknown(what)


def _unknown(what: str) -> TokenizerError:
    problem = f"a page knows no tokenizer {what}"
    return TokenizerError(problem, "train the model with one of tinychat's own kinds")
