"""Call the `tokenizers` library on files of others: nothing in them makes it wait, panic or fill the memory.

`check_file` refuses what the library would take too long for or stumble over later; `call` turns what is left, such as
a regular expression that backtracks without end, into one error.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, ParamSpec, TypeVar

import tokenizers
from tokenizers import decoders

from tinychat import untrusted
from tinychat.errors import TokenizerError

P = ParamSpec("P")
T = TypeVar("T")

MAX_GAP = 1 << 16
"""Ids of a vocabulary with N tokens are below 2 N + MAX_GAP: some are left out, but not so many."""
MAX_PARTS = 1_000
"""Maximum number of objects in the steps before and after the model."""
MAX_PATTERN = 20_000
"""Maximum number of characters of a regular expression."""
MAX_PATTERN_DEPTH = 32
"""Maximum depth of nested groups in a regular expression: time grows with the square of that of look-aheads."""
MAX_REPEATS = 100_000
"""Maximum number of characters and classes in a regular expression whose counted repetitions are written out."""

MAX_REPLACEMENT = 8
"""Maximum number of characters that a decoder puts in the place of others."""

_ITEM = re.compile(
    r"\\(?P<call>g)|\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\[\s\S]|(?P<open>[(\[])|(?P<close>[)\]])|\{(?P<counts>\d*,?\d*)\}|[\s\S]"
)
"""Parts of a regular expression that add to its size."""

_BYTE_TOKEN = re.compile("<0x[0-9A-F]{2}>")
_PLAIN_BYTES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_CODES = {chr(byte): byte for byte in _PLAIN_BYTES} | {
    chr(0x100 + index): byte for index, byte in enumerate(sorted({*range(256)} - {*_PLAIN_BYTES}))
}
"""The bytes of the visible characters that represent them in byte-level vocabularies (Radford et al. 2019)."""
SPACE = "▁"
"""Character that stands for a space, or for the one before a word, in vocabularies such as those of SentencePiece."""
_TO_BYTES = dict.fromkeys(range(256), "\uffff") | {ord(char): chr(byte) for char, byte in BYTE_CODES.items()}
"""For `translate`: makes each such character the one whose code is its byte, and others one that is no byte."""

_lock = threading.Lock()


def call(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call a function of the library, which panics, with a message on stderr, where others raise.

    What other threads write to stderr meanwhile comes a little later.

    Raises:
        TokenizerError: If the library raises an error or panics.
    """
    sink, panicked = _sink(), False
    with _lock:
        try:
            stderr = os.dup(2)
        except OSError:  # it is closed
            stderr = -1
        try:
            if stderr >= 0:
                os.dup2(sink, 2)
            return function(*arguments, **options)
        except Exception as error:  # the library raises no narrower one
            raise _describe(error) from None
        except BaseException as error:
            panicked = type(error).__name__ == "PanicException"
            if not panicked:
                raise
            raise _describe(error) from None
        finally:
            if stderr >= 0:
                os.dup2(stderr, 2)
                os.close(stderr)
                if size := os.lseek(sink, 0, os.SEEK_CUR):
                    if not panicked:
                        os.write(2, os.pread(sink, size, 0))
                    os.ftruncate(sink, 0)
                    os.lseek(sink, 0, os.SEEK_SET)


def check_file(text: str) -> None:
    """Check the content of a `tokenizer.json`, as far as the library does not.

    Raises:
        TokenizerError: If it is not JSON, contradicts itself, or could keep the library busy for long.
    """
    try:
        values = untrusted.parse_json(text)
    except ValueError as error:
        raise TokenizerError(str(error)) from None
    _require(isinstance(values, dict) and isinstance(values.get("model"), dict), "it has no model")
    added = values.get("added_tokens") or []
    is_list = isinstance(added, list) and all(isinstance(token, dict) for token in added)
    _require(is_list, "its added_tokens are no list of objects")
    model = values["model"]
    ids = _vocabulary(model)
    bound = 2 * (len(ids) + len(added)) + MAX_GAP
    _check_ids(ids, bound)
    _check_added(added, ids, bound)
    _check_unknown(model, ids)
    _check_merges(model)
    _check_steps([values.get(name) for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder")])


def check_pattern(pattern: str) -> None:
    """Check that a regular expression is short, not nested deep, has few counted repetitions, and does not call itself.

    Raises:
        TokenizerError: If it is not.
    """
    _require(len(pattern) <= MAX_PATTERN, f"a regular expression has {len(pattern):,} characters, over {MAX_PATTERN:,}")
    sizes, item = [0], 0  # of each group that is open, and of the last item of the innermost one
    for match in _ITEM.finditer(pattern):
        shown = f"the regular expression {pattern[:40]!r}"
        _require(not match["call"], f"{shown} calls a part of itself")
        if match["open"]:
            sizes.append(0)
            _require(len(sizes) <= MAX_PATTERN_DEPTH, f"{shown} is nested more than {MAX_PATTERN_DEPTH} deep")
            continue
        if match["counts"]:
            times = max([int(count[:9]) for count in match["counts"].split(",") if count], default=1)
            grown = item * (times - 1)
            item *= max(times, 1)
        elif match["close"] and len(sizes) > 1:
            item = grown = sizes.pop()
        else:
            item = grown = 1
        sizes[-1] += grown
        _require(sum(sizes) <= MAX_REPEATS, f"{shown} repeats more than {MAX_REPEATS:,} items")


class TokenTexts(NamedTuple):
    """Texts of the tokens of a tokenizer, if the text of each is the same wherever it stands."""

    to_bytes: Callable[[str], bytes]
    """Return the UTF-8 bytes of a token by its name."""
    adds_space: bool = False
    """Whether decoding leaves out a space at the beginning of the text, since encoding puts one there."""


def read_decoder(inner: tokenizers.Tokenizer) -> TokenTexts | None:
    """Return the texts of tokens according to a tokenizer's decoder; None if they depend on their neighbours."""
    if inner.decoder is None:  # it puts a space between all tokens
        return None
    values = json.loads(inner.decoder.__getstate__())
    steps = values["decoders"] if values["type"] == "Sequence" else [values]
    replaced, adds_space, has_bytes, is_byte_level = list[tuple[str, str]](), False, False, False
    for step in steps:
        match step:
            case {"type": "ByteLevel"}:
                is_byte_level = True
            case {"type": "Fuse"}:
                pass
            case {"type": "ByteFallback"}:
                has_bytes = True
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if (
                old and len(new) <= MAX_REPLACEMENT and not is_byte_level
            ):
                replaced.append((old, new))
            case {"type": "Metaspace", "replacement": str(old), "prepend_scheme": scheme} if not is_byte_level:
                replaced.append((old, " "))
                adds_space = scheme != "never"
            case {"type": "Strip", "content": " ", "start": 1, "stop": 0} if step is steps[-1]:
                adds_space = True
            case _:
                return None

    def to_bytes(name: str) -> bytes:
        if has_bytes and _BYTE_TOKEN.fullmatch(name):
            return bytes.fromhex(name[3:5])
        if is_byte_level:
            try:
                return name.translate(_TO_BYTES).encode("latin-1")
            except UnicodeEncodeError:  # a name of other characters stands for itself
                return name.encode()
        for old, new in replaced:
            name = name.replace(old, new)
        return name.encode()

    return TokenTexts(to_bytes, adds_space)


def undo_clean_up(inner: tokenizers.Tokenizer) -> None:
    """Make a tokenizer decode losslessly: clean-up rewrites text, as `do not` to `don't`."""
    decoder = inner.decoder
    if isinstance(decoder, decoders.WordPiece) and decoder.cleanup:
        inner.decoder = decoders.WordPiece(decoder.prefix, cleanup=False)


def _vocabulary(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids of the tokens of a model, unchecked; those of Unigram are in the order of their list."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):
        pairs = all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in vocabulary)
        _require(pairs, "its vocabulary is no list of tokens with their scores")
        return {token: id for id, (token, _) in enumerate(vocabulary)}
    _require(isinstance(vocabulary, dict), "its model has no vocabulary")
    return dict(vocabulary or {})


def _check_ids(ids: Mapping[str, Any], bound: int) -> None:
    if not all(type(id) is int and 0 <= id < bound for id in ids.values()):
        token, id = next((token, id) for token, id in ids.items() if type(id) is not int or not 0 <= id < bound)
        _require(False, f"the token {_shorten(token)} has the id {_shorten(id)}, of {len(ids):,} tokens")
    if len({*ids.values()}) != len(ids):
        first: dict[int, str] = {}
        token, id = next((token, id) for token, id in ids.items() if first.setdefault(id, token) != token)
        _require(False, f"the tokens {_shorten(first[id])} and {_shorten(token)} have the same id, {id}")


def _check_added(added: list[dict[str, Any]], ids: Mapping[str, int], bound: int) -> None:
    tokens = {id: token for token, id in ids.items()}
    seen: set[str] = set()
    for one in added:
        content: Any = one.get("content")
        id: Any = one.get("id")
        _require(isinstance(content, str) and content, f"the added token {_shorten(content)} is no text")
        valid = type(id) is int and 0 <= id < bound
        _require(valid, f"the added token {_shorten(content)} has the id {_shorten(id)}, of {len(ids):,} tokens")
        agrees = tokens.setdefault(id, content) == content and ids.get(content, id) == id and content not in seen
        _require(agrees, f"the added token {_shorten(content)} has the id {id}, and another token or id has it too")
        seen.add(content)


def _check_unknown(model: Mapping[str, Any], ids: Collection[str]) -> None:
    """Check that the token for unknown text exists, unless no text is unknown: if every byte is a token."""
    if isinstance(model.get("vocab"), list):
        index = model.get("unk_id")
        exists = index is None or (type(index) is int and 0 <= index < len(ids))
        _require(exists, f"its unknown token {_shorten(index)} is not in the vocabulary")
    elif (name := model.get("unk_token")) is not None:
        exists = isinstance(name, str) and (name in ids or BYTE_CODES.keys() <= {*ids})
        _require(exists, f"its unknown token {_shorten(name)} is not in the vocabulary")


def _check_merges(model: Mapping[str, Any]) -> None:
    """Check that the second token of each merge has the prefix that the library cuts off unseen, if there is one."""
    prefix, merges = model.get("continuing_subword_prefix"), model.get("merges")
    if not (prefix and merges):
        return
    _require(isinstance(prefix, str) and isinstance(merges, list), "its merges are no list, or their prefix is no text")
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        valid = isinstance(pair, list) and len(pair) == 2 and str(pair[1]).startswith(prefix)
        _require(valid, f"the second token of its merge {_shorten(merge)} lacks the prefix {prefix!r}")


def _check_steps(steps: Any) -> None:
    """Check the steps before and after the model: their number, regular expressions and lengths."""
    parts = list(_objects(steps))
    _require(len(parts) <= MAX_PARTS, f"its steps have {len(parts):,} parts, over {MAX_PARTS:,}")
    patterns = [part[kind] for part in parts for kind in ("Regex", "String") if isinstance(part.get(kind), str)]
    _require(sum(map(len, patterns)) <= 4 * MAX_PATTERN, "its regular expressions are too long")
    for part in parts:
        if isinstance(part.get("Regex"), str):
            check_pattern(part["Regex"])
        _require(part.get("type") != "FixedLength" or part.get("length") != 0, "it splits text at a length of 0")


def _objects(values: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in parsed JSON, which is not nested deep."""
    if isinstance(values, dict):
        yield values
    if isinstance(values, dict | list):
        for one in values.values() if isinstance(values, dict) else values:
            yield from _objects(one)


def _require(condition: object, problem: str) -> None:
    if not condition:
        raise TokenizerError(problem)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _describe(error: BaseException) -> TokenizerError:
    """Return an error with the first line of the library's."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    problem = f"the tokenizer fails: {line[:200]}"
    return TokenizerError(problem, "its tokenizer.json may be damaged: train or import the model again")


@cache
def _sink() -> int:
    """Return the descriptor of a file in memory; nothing is kept where there are no such files."""
    memfd = getattr(os, "memfd_create", None)
    return memfd("stderr") if memfd else os.open(os.devnull, os.O_RDWR)
