"""Vocabularies in the formats of other tools: byte-level BPE, SentencePiece, and what ours look like to them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinychat.errors import ModelError, TokenizerError
from tinychat.tokenizer.library import BYTE_CODES, SPACE
from tinychat.tokenizer.tokenizer import Tokenizer

LETTERS: Mapping[int, str] = {byte: letter for letter, byte in BYTE_CODES.items()}
"""The visible characters that represent bytes in byte-level vocabularies."""
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
"""Tokens of the bytes of characters that a vocabulary of SentencePiece lacks."""
MAX_TOKENS = 1 << 19
"""Maximum number of tokens, and of merges."""
MAX_SPLITTING = 50_000_000
"""Maximum sum of the squared lengths of the pieces of a vocabulary, each of which is cut at all its positions."""

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _split(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL | {"use_regex": False}]}


_digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]}
_llama3, _qwen2 = _split(LLAMA3_PATTERN), _split(LLAMA3_PATTERN.replace("{1,3}", ""))
SPLITTERS: Mapping[str, dict[str, Any]] = {
    "gpt-2": BYTE_LEVEL, "phi-2": BYTE_LEVEL, "mpt": BYTE_LEVEL, "olmo": BYTE_LEVEL, "jais": BYTE_LEVEL,
    "modern-bert": BYTE_LEVEL, "exaone4": BYTE_LEVEL, "trillion": BYTE_LEVEL,
    "smollm": _digits, "starcoder": _digits, "refact": _digits, "command-r": _digits, "codeshell": _digits,
    "llama-bpe": _llama3, "llama3": _llama3, "llama-v3": _llama3, "falcon3": _llama3, "pixtral": _llama3,
    "qwen2": _qwen2, "deepseek-r1-qwen": _qwen2, "stablelm2": _qwen2, "hunyuan": _qwen2,
}  # fmt: skip
"""How texts are split before byte pairs are merged, by the names of llama.cpp: `tokenizer.ggml.pre`."""
BEGUN = frozenset(name for name, splits in SPLITTERS.items() if splits is _llama3)
"""Those with which a text begins with a begin token, unless the file says otherwise."""


def make_byte_level(
    tokens: Sequence[str],
    merges: Sequence[str],
    splitter: str,
    *,
    special: Mapping[int, bool],
    begin: int | None = None,
) -> Tokenizer:
    """Make a byte-level BPE; `special` are the ids of tokens that are never cut, and whether they are special.

    `begin` is the id of the token that a text begins with.

    Raises:
        TokenizerError: If the name of the splitter is not known, or the vocabulary contradicts itself.
    """
    if splitter not in SPLITTERS:
        raise TokenizerError(f"the splitter {splitter[:40]!r} is not known here", f"known: {', '.join(SPLITTERS)}")
    ids = _number(tokens, merges)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    known = [pair for pair in pairs if len(pair) == 2 and {*pair, "".join(pair)} <= ids.keys()]
    splits = SPLITTERS[splitter]
    model = {"type": "BPE", "vocab": ids, "merges": known, "ignore_merges": splits is _llama3}
    return _make(model, tokens, special, begin, pre_tokenizer=splits, decoder=BYTE_LEVEL)


def make_sentencepiece(
    pieces: Sequence[str],
    scores: Sequence[float],
    *,
    unknown: int,
    special: Mapping[int, bool],
    begin: int | None = None,
    has_prefix: bool = True,
) -> Tokenizer:
    """Make a tokenizer that merges the two neighbours whose joined piece has the highest score, as SentencePiece does.

    `special` and `begin` are as in `make_byte_level`; with `has_prefix` a space is put before a text.

    Raises:
        TokenizerError: If the vocabulary contradicts itself.
    """
    ids = _number(pieces)
    merges = _merge_by_scores(pieces, scores, ids, {*special, *(ids[name] for name in BYTES if name in ids)})
    unk_token = pieces[unknown] if 0 <= unknown < len(pieces) else None
    has_bytes = not ids.keys().isdisjoint(BYTES)
    model = {"type": "BPE", "vocab": ids, "merges": merges, "byte_fallback": has_bytes, "unk_token": unk_token,
             "fuse_unk": True}  # fmt: skip
    steps = [{"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]
    decoders = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}]  # fmt: skip
    if has_prefix:
        steps.insert(0, {"type": "Prepend", "prepend": SPACE})
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return _make(
        model, pieces, special, begin,
        normalizer={"type": "Sequence", "normalizers": steps}, decoder={"type": "Sequence", "decoders": decoders},
    )  # fmt: skip


def make_scored_bytes(
    pieces: Sequence[bytes], scores: Sequence[float], *, special: Mapping[int, str], begin: int | None = None
) -> Tokenizer:
    """Make a tokenizer like `make_sentencepiece` of pieces that may be parts of characters.

    `special` are the names of special tokens by their ids; `begin` is as in `make_byte_level`.

    Raises:
        TokenizerError: If the vocabulary contradicts itself.
    """
    names = {name.encode(): bytes([byte]) for name, byte in BYTES.items()}
    tokens = [special.get(id, in_letters(names.get(piece, piece))) for id, piece in enumerate(pieces)]
    ids = _number(tokens)
    model = {"type": "BPE", "vocab": ids, "merges": _merge_by_scores(tokens, scores, ids, special)}
    return _make(
        model, tokens, dict.fromkeys(special, True), begin, normalizer={"type": "Prepend", "prepend": " "},
        pre_tokenizer=BYTE_LEVEL | {"use_regex": False}, decoder=BYTE_LEVEL,
    )  # fmt: skip


def _merge_by_scores(
    pieces: Sequence[str], scores: Sequence[float], ids: Mapping[str, int], whole: Collection[int]
) -> list[tuple[str, str]]:
    """Return all merges that make a piece of two others, those of the highest score first; `whole` ones are not made.

    Raises:
        TokenizerError: If the pieces are too long.
    """
    if sum(len(piece) ** 2 for piece in pieces) > MAX_SPLITTING:
        raise TokenizerError("the pieces of the vocabulary are too long")
    merges: list[tuple[str, str]] = []
    for _, id in sorted((-score, id) for id, score in enumerate(scores)):
        piece = pieces[id]
        if id not in whole and ids.get(piece) == id:
            cuts = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
            pairs = (pair for pair in cuts if pair[0] in ids and pair[1] in ids)
            merges += sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    return merges


def _number(tokens: Sequence[str], merges: Sequence[str] = ()) -> dict[str, int]:
    """Return the ids of tokens; of equal ones the first, and the others get names of their own.

    Raises:
        TokenizerError: If there are too many tokens or merges.
    """
    if max(len(tokens), len(merges)) > MAX_TOKENS:
        raise TokenizerError(f"the vocabulary has more than {MAX_TOKENS:,} tokens or merges")
    ids: dict[str, int] = {}
    for id, token in enumerate(tokens):
        ids[token if token and token not in ids else f"<unused {id}>"] = id
    return ids


def _make(
    model: dict[str, Any], tokens: Sequence[str], special: Mapping[int, bool], begin: int | None, **steps: Any
) -> Tokenizer:
    added = [
        {"id": id, "content": tokens[id], "special": is_special, "normalized": False, "single_word": False,
         "lstrip": False, "rstrip": False}
        for id, is_special in sorted(special.items()) if tokens[id]
    ]  # fmt: skip
    text: dict[str, Any] = {"Sequence": {"id": "A", "type_id": 0}}
    parts, named = [text], {}
    if begin is not None and special.get(begin):
        name = tokens[begin]
        parts.insert(0, {"SpecialToken": {"id": name, "type_id": 0}})
        named = {name: {"id": name, "ids": [begin], "tokens": [name]}}
    surroundings = {"type": "TemplateProcessing", "single": parts, "pair": [*parts, text], "special_tokens": named}
    values = {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": None,
              "post_processor": surroundings, "decoder": None, "model": model}  # fmt: skip
    return Tokenizer.from_json(json.dumps(values | steps))


@dataclass(frozen=True)
class PortableVocabulary:
    """A tokenizer of ours in the terms of other tools."""

    kind: str
    """`char`, `wordpiece` over bytes, or byte-level `bpe`."""
    pieces: list[bytes]
    """The bytes of each token; of special ones their names."""
    special: list[int]
    merges: list[tuple[str, str]]
    """Of a BPE, in letters that represent bytes."""
    splitter: str
    """Of a BPE, a name in `SPLITTERS`."""


def in_letters(piece: bytes) -> str:
    """Return bytes as the letters that represent them in byte-level vocabularies."""
    return "".join(LETTERS[byte] for byte in piece)


def describe_vocabulary(tokenizer: Tokenizer, format: str) -> PortableVocabulary:
    """Return what other tools need to know of a tokenizer.

    Raises:
        ModelError: If it is of a kind that they do not read.
    """
    values = json.loads(tokenizer.to_json())
    model, splits = values["model"], values.get("pre_tokenizer")
    kind, decoder = tokenizer.kind, (values.get("decoder") or {}).get("type")
    remedy = "retrain with `--tokenizer char`, `bpe` or `wordpiece`"
    if kind not in ("char", "wordpiece", "bpe") or (kind != "char" and decoder != "ByteLevel"):
        raise ModelError(f"{format} has no tokenizer like this one, {kind}", remedy)
    splitter = next((name for name, one in SPLITTERS.items() if _is_same(one, splits)), "")
    if kind == "bpe" and (not splitter or values.get("normalizer")):
        raise ModelError(f"{format} has no BPE that splits or rewrites texts like this one", remedy)
    special = [id for id in range(tokenizer.vocab_size) if _is_special(tokenizer, id)]
    pieces = [
        (tokenizer.inner.id_to_token(id) or "").encode() if id in special else tokenizer.token_bytes(id)
        for id in range(tokenizer.vocab_size)
    ]
    merges = [tuple(one.split(" ") if isinstance(one, str) else one) for one in model.get("merges") or ()]
    return PortableVocabulary(kind, pieces, special, merges, splitter)


def _is_special(tokenizer: Tokenizer, id: int) -> bool:
    name = tokenizer.inner.id_to_token(id)
    return name is not None and tokenizer.token_id(name) == id


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    """Return whether two steps split texts in the same way, whatever offsets they report."""
    return bool(_without_offsets(one) == _without_offsets(other))


def _without_offsets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_offsets(one) for key, one in value.items() if key != "trim_offsets"}
    return [_without_offsets(one) for one in value] if isinstance(value, list) else value
