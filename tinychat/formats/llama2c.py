"""Files of llama2.c: a `.bin` with the weights of a Llama, opened where it lies, and a `tokenizer.bin` beside it.

Versions: 0, whose header is seven numbers, 1, and 2, whose matrices are in 8 bits. Writing makes version 0, which the
program `run` reads. It begins each text with token 1 and a space, and ends where token 1 comes again: what is written
has our end token there, or else a newline, which is never the likeliest.
"""

import math
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder
from tinychat.errors import ModelError, TokenizerError
from tinychat.formats import fitting
from tinychat.formats.vocabularies import (
    BYTES,
    MAX_TOKENS,
    PortableVocabulary,
    describe_vocabulary,
    in_letters,
    make_scored_bytes,
    make_sentencepiece,
)
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import check_shapes, checked_config, weight_shapes
from tinychat.store.models import CONFIG, ForeignModel, ModelInfo, read_tokenizers, read_weights
from tinychat.store.weights import MappedTensor
from tinychat.tokenizer.library import SPACE
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.untrusted import open_regular, read_bytes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

VOCABULARY, WEIGHTS = "tokenizer.bin", "model.bin"
MAGIC = 0x616B3432
HEADER = "<7i"
"""d_model, d_ff, n_layer, n_head, n_kv_head, vocab_size (negative in version 0 if the head has weights of its own), and
context_length."""
HEADER_SIZE = 256
"""Size of the header of versions 1 and 2 in bytes."""
EPSILON, ROTARY_BASE = 1e-5, 10_000.0
"""Constants of its program."""
MAX_PIECE = 1024
"""Maximum length of a token in bytes."""
RARE, CONTEXTS = 8, 256
"""Number of tokens that stand for those that we lack, and of those after which they are to be the least likely."""
SHAPES = {"llama": fitting.LLAMA | {"n_kv_head": fitting.ANY}}
UNKNOWN, BEGIN = 0, 1
NAMES = ("<unk>", "<|endoftext|>", "</s>")
"""Names of the first three tokens; the second, between texts, is the end token that `run` stops at."""

EMBEDDING, NORM, HEAD = "decoder.embedding.weight", "decoder.norm.weight", "head.weight"
ATTENTION_NORM, FEED_FORWARD_NORM = "attention.norm", "feed_forward.norm"
ATTENTION = tuple(f"attention.sublayer.{part}" for part in ("query", "key", "value", "output"))
FEED_FORWARD = tuple(f"feed_forward.sublayer.{part}" for part in ("gate", "output", "up"))


def _in_layers(config: ModelConfig, *parts: str) -> list[str]:
    """Return the names of weights of all layers, one part after the other."""
    return [f"decoder.blocks.{layer}.{part}.weight" for part in parts for layer in range(config.n_layer)]


def _names(config: ModelConfig, version: int) -> list[str]:
    """Return the names of all weights, in the order of a version; those without numbers of ours are empty."""
    head = [] if config.tie_embeddings else [HEAD]
    if version:
        norms = _in_layers(config, ATTENTION_NORM, FEED_FORWARD_NORM)
        return [*norms, NORM, EMBEDDING, *_in_layers(config, *ATTENTION, *FEED_FORWARD), *head]
    layers = _in_layers(config, ATTENTION_NORM, *ATTENTION, FEED_FORWARD_NORM, *FEED_FORWARD)
    return [EMBEDDING, *layers, NORM, "", *head]


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """Header of a file."""

    config: ModelConfig
    version: int
    group: int = 1
    """Numbers that share a scale, in version 2."""

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each weight, where it begins and how many numbers it has."""
        shapes = {name: math.prod(shape or ()) for name, shape in weight_shapes(self.config)}
        at = HEADER_SIZE if self.version else struct.calcsize(HEADER)
        for name in _names(self.config, self.version):
            count = shapes[name] if name else self.config.context_length * self.config.head_width  # sines and cosines
            is_quantized = self.version == 2 and "norm" not in name
            yield name, at, count
            at += count + 4 * (count // self.group) if is_quantized else 4 * count
        yield "", at, 0


def recognizes(path: Path) -> bool:
    """Return whether a path is a file of llama2.c, or a folder with one."""
    file = find_file(path)
    if file is None:
        return False
    try:
        read_header(file)
    except ModelError:
        return file.suffix == ".bin" and (file.parent / VOCABULARY).is_file()
    return True


def find_file(path: Path) -> Path | None:
    """Return the file with weights that a path stands for; None if it stands for none."""
    if path.suffix == ".bin":
        return path if path.is_file() and path.name != VOCABULARY else None
    if not (path / VOCABULARY).is_file() or (path / CONFIG).exists():
        return None
    found = [one for one in path.glob("*.bin") if one.name != VOCABULARY]
    return found[0] if len(found) == 1 else None


def read_header(path: Path) -> Header:
    """Read the beginning of a file, and check that its size is what that says.

    Raises:
        ModelError: If it cannot be read, or is no file of llama2.c.
    """
    try:
        with open_regular(path) as file:
            data, size = file.read(HEADER_SIZE), file.seek(0, 2)
        header = _parse_header(data)
        *_, (_, end, _) = header.places()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, struct.error) as error:
        raise ModelError(f"{path} is no file of llama2.c: {error}") from None
    if end != size:
        raise ModelError(f"{path} has {size:,} bytes, and {end:,} is what its header says", "is it complete?")
    return header


def _parse_header(data: bytes) -> Header:
    (magic, version), group = struct.unpack_from("<Ii", data), 1
    if magic != MAGIC:
        version, tied, numbers = 0, None, struct.unpack_from(HEADER, data)
    else:
        numbers = struct.unpack_from(HEADER, data, 8)
        (tied,) = struct.unpack_from("<?", data, 36)
        if version not in (1, 2):
            raise ValueError(f"its version is {version}, and 0 to 2 are known")
        if version == 2:
            (group,) = struct.unpack_from("<i", data, 37)
    d_model, d_ff, n_layer, n_head, n_kv_head, vocab_size, context_length = numbers
    if group < 1 or d_model % group or d_ff % group:
        raise ValueError(f"its groups of {group} do not divide its matrices")
    fields = {
        "d_model": d_model, "d_ff": d_ff, "n_layer": n_layer, "n_head": n_head,
        "n_kv_head": None if n_kv_head == n_head else n_kv_head, "vocab_size": abs(vocab_size),
        "context_length": context_length, "norm_eps": EPSILON, "rotary_base": ROTARY_BASE,
        "tie_embeddings": vocab_size > 0 if tied is None else tied,
    }  # fmt: skip
    try:
        config = ModelConfig.from_dict(fitting.LLAMA | fields)
    except ModelError as error:
        raise ValueError(error.problem) from None
    return Header(config, version, group)


def read(path: Path) -> ModelInfo:
    """Open a file where it lies.

    Raises:
        ModelError: If it is no file of llama2.c, or incomplete.
        TokenizerError: If its vocabulary is missing or cannot be read.
    """
    file = find_file(path)
    assert file is not None
    header = read_header(file)
    config, vocabulary = header.config, file.parent / VOCABULARY
    tokenizer = _read_tokenizer(vocabulary, config.vocab_size)
    return ModelInfo(
        file.resolve().stem, file, "completion", config.to_dict(), tokenizer.kind,
        sum(math.prod(shape or ()) for _, shape in weight_shapes(config)),
        description=f"{file.resolve().stem} of llama2.c",
        foreign=ForeignModel("llama2c", file, lambda: tokenizer, partial(_map_weights, file)),
    )  # fmt: skip


def _map_weights(path: Path) -> dict[str, MappedTensor]:
    """Map the weights under our names; queries and keys are copied, and 8 bits widened to f32."""
    import numpy as np

    header = read_header(path)
    with open_regular(path) as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    config, shapes = header.config, dict(weight_shapes(header.config))
    weights: dict[str, MappedTensor] = {}
    for name, at, count in header.places():
        if not name:
            continue
        shape = shapes[name] or ()
        if header.version == 2 and "norm" not in name:
            numbers = np.frombuffer(memory, np.int8, count, at).astype(np.float32).reshape(-1, header.group)
            scales = np.frombuffer(memory, "<f4", count // header.group, at + count)
            tensor = MappedTensor.from_numpy((numbers * scales[:, None]).reshape(shape), "F32")
        else:
            tensor = MappedTensor.at("F32", shape, memory, at)
        if name.endswith((".query.weight", ".key.weight")):
            tensor = tensor.rearranged(
                lambda array: fitting.from_interleaved(array, config.head_width), f"{name} in {path}"
            )
        weights[name] = tensor
    check_shapes(config, {name: one.shape for name, one in weights.items()}, f"the weights in {path}")
    return weights


def _read_tokenizer(path: Path, vocab_size: int) -> Tokenizer:
    pieces, scores = [], []
    if vocab_size > MAX_TOKENS:
        raise TokenizerError(f"a vocabulary of {vocab_size:,} tokens is too large", f"at most {MAX_TOKENS:,} are read")
    try:
        data, at = read_bytes(path), 4
        for _ in range(vocab_size):
            score, length = struct.unpack_from("<fi", data, at)
            at += 8
            if not 0 <= length <= min(MAX_PIECE, len(data) - at) or not math.isfinite(score):
                raise ValueError("it has a token with an impossible length or score")
            pieces.append(data[at : at + length])
            scores.append(score)
            at += length
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}", "put it beside the weights") from None
    except (ValueError, struct.error) as error:
        raise TokenizerError(f"{path} is no vocabulary of {vocab_size:,} tokens: {error}") from None
    names = dict(enumerate(NAMES[:vocab_size]))
    try:
        texts = [piece.decode().replace(" ", SPACE) for piece in pieces]
    except UnicodeDecodeError:  # we write such files, of byte-level BPE
        return make_scored_bytes(pieces, scores, special=names, begin=BEGIN)
    texts[: len(names)] = names.values()
    return make_sentencepiece(texts, scores, unknown=UNKNOWN, special=dict.fromkeys(names, True), begin=BEGIN)


# --- writing ----------------------------------------------------------------------------------------------------------


def write(info: ModelInfo, folder: Path) -> None:
    """Write a model to a folder, as `model.bin` and `tokenizer.bin` for the program `run`, atomically.

    Raises:
        ModelError: If llama2.c has no such architecture or vocabulary.
    """
    import numpy as np

    config = checked_config(info)
    fitting.find_shape(info, config, SHAPES, "llama2c")
    if not config.norm_eps:
        raise ModelError(f"llama2c cannot hold {info.name}: its norm_eps is 0", "retrain with `--recipe llama`")
    tokenizer, _ = read_tokenizers(info)
    vocabulary = describe_vocabulary(tokenizer, "llama2c")
    if vocabulary.kind == "wordpiece":
        raise ModelError("llama2c has no tokenizer wordpiece", "retrain with `--tokenizer char` or `--tokenizer bpe`")
    end = tokenizer.special("end")
    rows, pieces = _arrange(vocabulary, end)
    begin = vocabulary.pieces.index(b"\n") if end is None and b"\n" in vocabulary.pieces else end
    weights = {name: tensor.numpy() for name, tensor in read_weights(info).items()}
    rare = _rarest(info, config)
    with atomic_folder(folder) as draft:
        with (draft / WEIGHTS).open("wb") as file:
            sizes = (config.d_model, config.feed_forward_width, config.n_layer, config.n_head, config.kv_heads)
            file.write(struct.pack(HEADER, *sizes, -len(rows), config.context_length))
            for name in (*_names(config, 0), *([HEAD] if config.tie_embeddings else ())):
                if name:
                    used = [*rows[:BEGIN], begin, *rows[BEGIN + 1 :]] if name == EMBEDDING else rows
                    array = _to_theirs(name, weights[name], used, rare, config)
                else:  # sines and cosines, which `run` skips
                    array = np.zeros(config.context_length * config.head_width)
                file.write(np.ascontiguousarray(array, "<f4").tobytes())
        longest = max(len(piece) for piece, _ in pieces)
        entries = (struct.pack("<fi", score, len(piece)) + piece for piece, score in pieces)
        (draft / VOCABULARY).write_bytes(struct.pack("<i", longest) + b"".join(entries))


def _arrange(vocabulary: PortableVocabulary, end: int | None) -> tuple[list[int | None], list[tuple[bytes, float]]]:
    """Return which of our tokens each token of theirs is, None for none, and their bytes and scores.

    The first three are <unk>, <s> and </s>, then come the 256 bytes, as `run` supposes, then all others.
    """
    ranks = {left + right: rank for rank, (left, right) in enumerate(vocabulary.merges)}
    ids = {piece: id for id, piece in enumerate(vocabulary.pieces) if id != end}
    rows: list[int | None] = [None, end, None]
    pieces: list[tuple[bytes, float]] = [(name.encode(), 0.0) for name in ("<unk>", "\n<s>\n", "\n</s>\n")]
    for byte, name in enumerate(BYTES):
        id = ids.get(bytes([byte]))
        rows.append(id)
        pieces.append((bytes([byte]) if id is not None and 0 < byte < 0x80 else name.encode(), 0.0))
    taken = {*rows}
    for piece, id in ids.items():
        if id not in taken:
            rows.append(id)
            pieces.append((piece, -float(ranks.get(in_letters(piece), len(ranks)))))
    return rows, pieces


def _rarest(info: ModelInfo, config: ModelConfig) -> list[int]:
    """Return the tokens that are least likely after any other, at most `RARE`."""
    import torch

    from tinychat.model.loading import load_model

    ids = torch.arange(0, config.vocab_size, -(-config.vocab_size // CONTEXTS))
    with torch.inference_mode():
        logprobs = load_model(info)(ids[:, None]).float().log_softmax(-1)  # [N, 1, V]
    return logprobs.mean((0, 1)).argsort()[:RARE].tolist()  # type: ignore[no-any-return]


def _to_theirs(
    name: str, array: "Array", rows: Sequence[int | None], rare: Sequence[int], config: ModelConfig
) -> "Array":
    """Return an array as llama2.c needs it.

    Tokens that we lack get the mean of all rows as embeddings. In the head, it is that of the `rare` ones: their logit
    is never the highest, and they are hardly ever drawn. The epsilon of llama2.c is fixed: a residual stream that is
    scaled by the square root of the quotient of both gives the same norms.
    """
    if name in (EMBEDDING, HEAD):
        mean = (array if name == EMBEDDING else array[list(rare)]).mean(0)
        array = array[[row or 0 for row in rows]]
        array[[index for index, row in enumerate(rows) if row is None]] = mean
    elif name.endswith((".query.weight", ".key.weight")):
        array = fitting.to_interleaved(array, config.head_width)
    if name == EMBEDDING or name.endswith(".output.weight"):
        array = array * math.sqrt(EPSILON / config.norm_eps)
    return array
