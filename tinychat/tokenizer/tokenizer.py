"""Encode text as token ids and decode them. All tokenizers use the `tokenizers` library; ours are lossless.

Encoding treats special tokens in a text as plain characters: users cannot forge the end of a message by typing it.
"""

import codecs
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from tinychat.atomic import atomic_write
from tinychat.errors import TokenizerError
from tinychat.tokenizer.library import SPACE, TokenTexts, call, check_file, read_decoder, undo_clean_up
from tinychat.untrusted import read_text, replace_surrogates

if TYPE_CHECKING:  # numpy is imported for long texts alone: prompts are short
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.unsignedinteger[Any]]

SPECIAL_TOKENS = {
    "end": ("<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>", "<eos>", "[SEP]"),
    "begin": ("<|begin|>", "<|begin_of_text|>", "<s>", "<bos>", "[CLS]"),
    "user": ("<|user|>",),
    "assistant": ("<|assistant|>",),
    "pad": ("<|pad|>", "<pad>", "[PAD]"),
    "unknown": ("<unk>", "[UNK]"),
}
"""Names of special tokens by role; new tokenizers use the first of each."""

LONGEST_UNCUT = 1 << 18
"""Characters after which a text is cut even where that may change its tokens."""

LONGEST_WHOLE = 1 << 15
"""Characters up to which a text is encoded as a whole even if only its beginning or end is needed."""

MARGIN = 16
"""Ids next to a cut that do not count: a tokenizer that does not split texts into words may choose others there."""

SEGMENT = 1 << 14
"""Minimum characters of a piece: small enough to share the work among processors."""

ESCAPED_BYTE = re.compile(r"(?<!\\)((?:\\\\)*)\\udc([89a-f][0-9a-f])")
r"""A byte as Python writes what `surrogateescape` makes of it, after an even number of backslashes."""

_CUT = re.compile(r"[^\W_](?=[ \n])|\S\n(?=\S)")
"""After a letter or digit before a space, or after a single newline: no tokenizer that splits a text into words has a
token across these positions, or splits the text before them differently because of what follows."""


class Tokenizer:
    """Wraps a tokenizer of the `tokenizers` library: encodes texts as ids and decodes ids as text."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.encode_special_tokens = True
        inner.no_truncation()
        inner.no_padding()
        undo_clean_up(inner)
        self.inner = inner
        self.vocab_size: int = max(inner.get_vocab().values(), default=-1) + 1
        self._specials = {id for id, token in inner.get_added_tokens_decoder().items() if token.special}

    @cached_property
    def dtype(self) -> "np.dtype[np.unsignedinteger[Any]]":
        """The smallest integer type that holds all ids."""
        import numpy as np

        return np.dtype(np.uint16 if self.vocab_size <= 65_535 else np.uint32)

    @cached_property
    def kind(self) -> str:
        """`char`, `word`, `whitespace`, `wordpiece`, or the library's name of another model: `bpe`, `unigram`."""
        model, decoder = self.inner.model, self.inner.decoder
        if isinstance(model, models.BPE) and model.ignore_merges:
            if isinstance(decoder, decoders.Metaspace):
                return "whitespace"
            if isinstance(decoder, decoders.Fuse):
                return "char" if self.inner.pre_tokenizer is None else "word"
        return type(model).__name__.lower()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of `tokenizer.json`: differs for any tokenizer that encodes or decodes differently."""
        import hashlib

        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def has_spaces_in_words(self) -> bool:
        """Whether tokens of words include the space before them: the first word of a text is then a different token."""
        return self.has_fixed_bytes and any(piece[:1] == b" " and piece.strip() for piece in self._bytes_of or [])

    @cached_property
    def is_cut_by_words(self) -> bool:
        """Whether it was trained here on words, or pieces of words, of which the longest that is known is taken."""
        return self.kind in ("word", "wordpiece") and self.inner.post_processor is None

    @cached_property
    def spells_no_words(self) -> bool:
        """Whether it knows words alone: one that the vocabulary lacks is unknown as a whole."""
        return self.kind in ("whitespace", "wordlevel")

    def special(self, role: str) -> int | None:
        """Return the id of the special token for a role, a key of `SPECIAL_TOKENS`; None if there is none."""
        return next((id for name in SPECIAL_TOKENS[role] if (id := self.token_id(name)) is not None), None)

    def special_ids(self, role: str) -> list[int]:
        """Return the id that `special` finds, as a list; an empty one if there is none."""
        return [] if (id := self.special(role)) is None else [id]

    def is_special(self, id: int) -> bool:
        """Return whether an id is that of a special token."""
        return id in self._specials

    @cached_property
    def special_names(self) -> re.Pattern[str]:
        """Matches the names of special tokens, the longest first."""
        names = sorted((self.inner.id_to_token(id) or "" for id in self._specials), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, filter(None, names))) or "(?!)")

    def token_id(self, name: str) -> int | None:
        """Return the id of the special token with a name; None if there is none."""
        id = self.inner.token_to_id(name)
        return id if id in self._specials else None

    @cached_property
    def unknown_id(self) -> int | None:
        """The id of the token that stands for text that the vocabulary lacks; None if there is none."""
        name = getattr(self.inner.model, "unk_token", None)
        id = self.inner.token_to_id(name) if isinstance(name, str) and name else None
        return self.special("unknown") if id is None else id

    @cached_property
    def surroundings(self) -> tuple[list[int], list[int]] | None:
        """The ids that its post-processor adds before and after a text, as `transformers` does; None without one."""
        if self.inner.post_processor is None:
            return None
        encoding = call(self.inner.encode, self.decode([self._some_word]))
        mask = [*encoding.special_tokens_mask, 0]
        start = mask.index(0)
        end = len(encoding.ids) - next((n for n, one in enumerate(reversed(mask[start:-1])) if not one), 0)
        return encoding.ids[:start], encoding.ids[end:]

    def beginning(self, *, is_target: bool = False) -> list[int]:
        """Return what precedes a document: its begin token, or else the end token of the previous one.

        A tokenizer of other tools says itself what it is, except for the target of a translator.
        """
        if self.surroundings is not None and not is_target:
            return self.surroundings[0]
        return self.special_ids("begin") or self.special_ids("end")

    def with_specials(self, names: Iterable[str], max_size: int) -> "Tokenizer":
        """Return a tokenizer of other tools with more special tokens, as far as `max_size` tokens have room for them.

        Like `transformers`, it adds no token to a text unless it has a post-processor that says so.
        """
        inner, room, added = self.inner, max_size - self.vocab_size, list[AddedToken]()
        for name in dict.fromkeys(names):
            is_new = inner.token_to_id(name) is None
            if name and self.token_id(name) is None and room >= is_new:
                added.append(AddedToken(name, special=True, normalized=False))
                room -= is_new
        call(inner.add_special_tokens, added)
        if inner.post_processor is None:
            inner.post_processor = processors.TemplateProcessing("$A")
        return Tokenizer(inner)

    # --- text → ids ---------------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """Encode a text; characters that the vocabulary lacks become the unknown token, or are dropped without one."""
        if self._characters is not None:
            return [self._characters[char] for char in text if char in self._characters]
        return list(call(self.inner.encode, replace_surrogates(text), add_special_tokens=False).ids)

    def encode_with_specials(self, text: str) -> list[int]:
        """Encode a text in which the names of special tokens stand for these tokens: one that a template rendered."""

        def encode() -> list[int]:
            self.inner.encode_special_tokens = False  # `call` runs one call at a time
            try:
                return list(self.inner.encode(text, add_special_tokens=False).ids)
            finally:
                self.inner.encode_special_tokens = True

        text = replace_surrogates(text)
        return call(encode)

    def encode_array(self, text: str) -> "Ids":
        """Encode a text like `encode`, but faster for long texts; returns [T]."""
        import numpy as np

        return np.concatenate([np.zeros(0, self.dtype), *self.encode_pieces([text])])

    def encode_pieces(self, pieces: Iterable[str]) -> "Iterator[Ids]":
        """Encode one text that comes in pieces; yields arrays that, joined, are the ids of the whole text."""
        if self._characters is not None:
            yield from map(self._look_up, pieces)
            return
        # The library releases the GIL while it works: meanwhile the ids of the texts before are converted.
        with ThreadPoolExecutor(1) as thread:
            started = (thread.submit(self._encode_batch, texts) for texts in gather(self._cut_all(pieces)))
            for encoded, _ in pairwise(chain(started, [Future()])):  # once the next one has started
                yield from map(self._to_array, encoded.result())

    def encode_end(self, text: str, length: int) -> list[int]:
        """Encode the end of a text: return its last `length` ids, or more; all ids of a short text.

        The time depends on the length of the end, not on that of the text.
        """
        size = LONGEST_WHOLE
        while size < len(text):
            end, is_cut = self._end(text, size)
            ids = self.encode(end)
            if len(ids) >= length + MARGIN:
                # Where a cut may change ids, those of a longer end have to confirm them. Its length is odd, as runs are
                # split into groups of an even one: these begin elsewhere in it.
                is_sure = is_cut or size > LONGEST_UNCUT
                if is_sure or ids[-length:] == self.encode(self._end(text, 2 * size + 1)[0])[-length:]:
                    return ids[-length:]
            size *= 4
        return self.encode(text) if len(text) <= LONGEST_WHOLE else list(map(int, self.encode_array(text)))

    def encode_start(self, text: str, length: int) -> list[int]:
        """Encode the beginning of a text: return its first `length` ids, or more; all ids of a short text."""
        size = LONGEST_WHOLE
        while size < len(text):
            found = _CUT.search(text, size // 2, size)
            ids = self.encode(text[: found.end() if found else size])
            if len(ids) >= length + MARGIN:
                return ids[:length]
            size *= 4
        return self.encode(text) if len(text) <= LONGEST_WHOLE else list(map(int, self.encode_array(text)))

    def find_stable_end(self, text: str) -> int:
        """Return how many characters of a text have the same ids whatever follows it; 0 if that is not known."""
        if self._characters is not None:
            return len(text)
        if self.inner.pre_tokenizer is None or not self._is_cuttable:
            return 0
        return max((found.end() for found in _CUT.finditer(text)), default=0)

    def encode_batch(self, texts: Sequence[str]) -> "list[Ids]":
        """Encode several texts on all processors; returns the ids of each."""
        if self._characters is not None:
            return [self._look_up(text) for text in texts]
        return [self._to_array(encoding) for encoding in self._encode_batch(texts)]

    def unknown(self, text: str) -> list[str]:
        """Return the characters that the vocabulary lacks (words, if it `spells_no_words`), each once, in order."""
        text = replace_surrogates(text)
        if self.spells_no_words:
            encoded = ((word, self.encode(word)) for word in dict.fromkeys(text.split()))
            return [word for word, ids in encoded if not ids or self.unknown_id in ids]
        return [char for char in dict.fromkeys(text) if not self._knows(char)]

    # --- ids → text ---------------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], *, begins_text: bool = True, skipped: int = 0) -> str:
        """Decode ids; special tokens have no text, and bytes that form no character become \ufffd.

        Some tokenizers add a space before each text; decoding takes it away again, unless the ids continue a text.
        The first `skipped` bytes are left out, if `knows_bytes`.
        """
        if self._bytes_of is not None:
            data = b"".join(_bytes_at(self._bytes_of, id) for id in ids)
            if begins_text and self._adds_space:
                data = data.removeprefix(b" ")
            return data[skipped:].decode("utf-8", "replace")
        if begins_text:
            return str(call(self.inner.decode, list(ids)))
        word = self._some_word
        return self.decode([word, *ids]).removeprefix(self.decode([word]))

    def stream(self, *, begins_text: bool = True, skipped: int = 0) -> "StreamDecoder":
        """Return a decoder for ids that come one at a time; its texts, joined, are what `decode` returns for all."""
        if self._bytes_of is not None:
            return ByteStream(self._bytes_of, skips_space=begins_text and self._adds_space, skipped=skipped)
        return WindowStream(self.decode, self._specials, self._single_bytes, [] if begins_text else [self._some_word])

    def token_text(self, id: int) -> str:
        r"""Return the text of a single token; bytes that are only a part of a character are shown as `\xe4`."""
        if self._bytes_of is None or id in self._specials:
            return (self.inner.id_to_token(id) or "").replace(SPACE, " ")
        return _bytes_at(self._bytes_of, id).decode("utf-8", "backslashreplace")

    def quoted(self, id: int) -> str:
        r"""Return the text of a single token as Python writes it: `' the'`, or `'\xe4'` for a part of a character."""
        if self._bytes_of is None or id in self._specials:
            return repr(self.token_text(id))
        text = repr(_bytes_at(self._bytes_of, id).decode("utf-8", "surrogateescape"))
        return ESCAPED_BYTE.sub(r"\1\\x\2", text)

    def token_bytes(self, id: int, *, begins_text: bool = False) -> bytes:
        """Return the UTF-8 bytes that a token adds to a text; none for a special token, or for an unknown id.

        Where the text of a token depends on its neighbours, those that it adds after a word, or at the beginning.
        """
        if self._bytes_of is not None:
            data = _bytes_at(self._bytes_of, id)
            return data.removeprefix(b" ") if begins_text and self._adds_space else data
        token = self.inner.id_to_token(id)
        if token is None or id in self._specials:
            return b""
        if id in self._single_bytes:
            return bytes.fromhex(token[3:5])
        return self.decode([id], begins_text=begins_text).encode()

    @property
    def knows_bytes(self) -> bool:
        """Whether each token has bytes of its own, apart from a space that a text may begin with."""
        return self._bytes_of is not None

    @property
    def has_fixed_bytes(self) -> bool:
        """Whether the text of a token is the same wherever it stands."""
        return self._bytes_of is not None and not self._adds_space

    def count_characters(self, ids: "npt.NDArray[np.integer[Any]]") -> int:
        """Count the characters of the text of ids, [N]; special tokens have none."""

        blocks = (ids[start : start + (1 << 18)] for start in range(0, len(ids), 1 << 18))
        if not self.has_fixed_bytes:
            return sum(len(self.decode(block.tolist())) for block in blocks)
        counts = self._character_counts
        return sum(int(counts[block].sum()) for block in blocks)

    def find_split(self, ids: "npt.NDArray[np.integer[Any]]", fraction: float) -> int:
        """Return how many of the first ids, [N], hold a fraction of the characters of the text, or just exceed it.

        Where the text of a token depends on its neighbours, that is a fraction of the ids.
        """
        import numpy as np

        if not self.has_fixed_bytes:
            return int(len(ids) * fraction)
        left, counts = int(self.count_characters(ids) * fraction), self._character_counts
        for start in range(0, len(ids), 1 << 18):
            ends = np.cumsum(counts[ids[start : start + (1 << 18)]])
            if ends[-1] >= left:
                return start + (int(np.searchsorted(ends, left)) + 1 if left else 0)
            left -= int(ends[-1])
        return len(ids)

    @cached_property
    def _character_counts(self) -> "npt.NDArray[np.int64]":
        """Number of characters of each token, if its text does not depend on its neighbours."""
        import numpy as np

        first_bytes = (sum(byte & 0xC0 != 0x80 for byte in data) for data in self._bytes_of or [])
        return np.fromiter(first_bytes, np.int64)

    # --- files --------------------------------------------------------------------------------------------------

    def to_json(self, *, first: int | None = None, last: int | None = None) -> str:
        """Return the content of `tokenizer.json`.

        Other tools put the special tokens `first` and `last` around each text, unless the tokenizer has some already.
        """
        inner = self.inner
        if (first, last) != (None, None) and inner.post_processor is None:
            parts = [self.token_text(first)] if first is not None else []
            parts += ["$A", *([self.token_text(last)] if last is not None else [])]
            specials = [(self.token_text(id), id) for id in {first, last} - {None} if id is not None]
            inner = tokenizers.Tokenizer.from_str(inner.to_str())
            inner.post_processor = processors.TemplateProcessing(" ".join(parts), special_tokens=specials)
        return str(inner.to_str(pretty=True))

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """Create a tokenizer from the content of a `tokenizer.json`.

        Raises:
            TokenizerError: If the text is not a tokenizer.
        """
        try:
            check_file(text)
            return cls(call(tokenizers.Tokenizer.from_str, text))
        except TokenizerError as error:
            raise TokenizerError(f"this is no tokenizer.json: {error.problem}") from None

    def save(self, path: Path) -> None:
        """Write a `tokenizer.json`, whole or not at all."""
        atomic_write(path, self.to_json())

    # --- implementation -----------------------------------------------------------------------------------------

    @cached_property
    def _texts(self) -> TokenTexts | None:
        return read_decoder(self.inner)

    @property
    def _adds_space(self) -> bool:
        """Whether a space is put before each text, which decoding takes away again."""
        return self._texts is not None and self._texts.adds_space

    @cached_property
    def _bytes_of(self) -> list[bytes] | None:
        """The UTF-8 bytes of each token; None if the text of a token depends on its neighbours."""
        if self._texts is None:
            return None
        to_bytes, added = self._texts.to_bytes, self.inner.get_added_tokens_decoder()
        names = [""] * self.vocab_size
        for name, id in self.inner.get_vocab().items():
            names[id] = name
        # Added tokens are found in the text itself, so their names are their texts.
        return [
            b"" if id in self._specials else name.encode() if id in added else to_bytes(name)
            for id, name in enumerate(names)
        ]

    @cached_property
    def _single_bytes(self) -> set[int]:
        """The tokens of single bytes, `<0xE7>`, that some tokenizers fall back to."""
        return {id for token, id in self.inner.get_vocab().items() if re.fullmatch("<0x[0-9A-F]{2}>", token)}

    @cached_property
    def _some_word(self) -> int:
        """A token of letters."""
        tokens = ((id, self.decode([id])) for id in range(self.vocab_size) if id not in self._specials)
        return next((id for id, text in tokens if text.strip().isalpha()), 0)

    @cached_property
    def _characters(self) -> dict[str, int] | None:
        """The id of each character, for the kind `char`; None for other kinds."""
        if self.kind != "char":
            return None
        return {token: id for token, id in self.inner.get_vocab(with_added_tokens=False).items() if len(token) == 1}

    @cached_property
    def _table(self) -> "npt.NDArray[np.int32]":
        """The ids by character code, −1 for none; the last entry is for all higher codes."""
        import numpy as np

        ids = self._characters or {}
        table = np.full(max(map(ord, ids), default=0) + 2, -1, np.int32)
        table[[*map(ord, ids)]] = [*ids.values()]
        return table

    def _look_up(self, text: str) -> "Ids":
        """Encode a text like `encode`, for the kind `char`."""
        import numpy as np

        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ids = self._table[np.minimum(codes, len(self._table) - 1)]
        return ids[ids >= 0].astype(self.dtype)

    def _encode_batch(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        texts = [replace_surrogates(text) for text in texts]
        return call(self.inner.encode_batch_fast, texts, add_special_tokens=False)

    def _to_array(self, encoding: tokenizers.Encoding) -> "Ids":
        import numpy as np

        # An `array` copies a list in a third of the time that numpy needs.
        return np.frombuffer(array("I", encoding.ids), np.uintc).astype(self.dtype)

    def _cut_all(self, pieces: Iterable[str]) -> Iterator[str]:
        """Cut a text that comes in pieces into texts whose ids, joined, are those of the whole text."""
        buffer = ""
        for piece in pieces:
            *texts, buffer = self._cut(buffer + piece)
            yield from texts
        yield buffer

    @cached_property
    def _is_cuttable(self) -> bool:
        """Whether a text may be cut before a space: not if the beginning of a text is encoded differently."""
        splitter, normalizer, pieces = self.inner.pre_tokenizer, self.inner.normalizer, ("ab", " cd.\n", "ef", "\n\ngh")
        text = "".join(pieces)
        normalized = text if normalizer is None else call(normalizer.normalize_str, text)
        if splitter is None or len(call(splitter.pre_tokenize_str, normalized)) == 1:
            return False  # a token may span words
        return [id for piece in pieces for id in self.encode(piece)] == self.encode(text)

    def _cut(self, text: str) -> list[str]:
        """Cut a text into pieces with the same ids as the whole; the last piece waits for what follows."""
        pieces = cut(text) if self._is_cuttable else [text]
        rest = pieces[-1]
        if len(rest) < LONGEST_UNCUT:
            return pieces
        # No word has ended for long: cut where the tokenizer itself splits, but not at the end, which may still change.
        splitter = self.inner.pre_tokenizer
        ends = [end for _, (_, end) in call(splitter.pre_tokenize_str, rest)] if splitter is not None else []
        end = next((end for end in reversed(ends) if end < len(rest) - 100), len(rest))
        return [*pieces[:-1], rest[:end], rest[end:]]

    def _end(self, text: str, size: int) -> tuple[str, bool]:
        """Return up to `size` characters of the end of a text, and whether they have the same ids as in the whole."""
        start = max(0, len(text) - size)
        if start == 0 or self._characters is not None:
            return text[start:], True
        found = _CUT.search(text, start, start + size // 2)
        return text[found.end() if found else start :], found is not None and self._is_cuttable

    def _knows(self, char: str) -> bool:
        ids = self.encode(char)
        text = self.decode(ids)
        if self._bytes_of is None or self.inner.normalizer is not None:
            return self.unknown_id not in ids and (char.isspace() or bool(text.strip()))
        return text == char or (self._adds_space and char.isspace())


def _bytes_at(bytes_of: Sequence[bytes], id: int) -> bytes:
    """Return the bytes of a token; none of an id beyond the vocabulary, which a model may have more room for."""
    return bytes_of[id] if id < len(bytes_of) else b""


class ByteStream:
    """Decodes tokens that each stand for some bytes of UTF-8, which are given by id.

    A space at the very beginning is left out if it `skips_space`, and the first `skipped` bytes.
    """

    def __init__(self, bytes_of: Sequence[bytes], *, skips_space: bool = False, skipped: int = 0) -> None:
        self._bytes_of, self._skips_space, self._skipped = bytes_of, skips_space, skipped
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = False

    def push(self, id: int) -> str:
        """Return the text that a token adds; empty while a character is incomplete, which `pending` tells."""
        data = _bytes_at(self._bytes_of, id)
        if self._skips_space and data:
            data, self._skips_space = data.removeprefix(b" "), False
        if self._skipped and data:
            data, self._skipped = data[self._skipped :], 0
        if data.isascii() and not self.pending:
            return data.decode("ascii")  # in a quarter of the decoder's time
        text = self._decoder.decode(data)
        self.pending = bool(self._decoder.getstate()[0])
        return text

    def flush(self) -> str:
        """Return what is left at the end: a character that was never completed, as \ufffd."""
        self.pending = False
        return self._decoder.decode(b"", final=True)


class WindowStream:
    """Decodes tokens whose text depends on their neighbours: decodes the newest ones again with each token.

    `silent` tokens have no text; that of `partial` ones, of a single byte each, is known only when their row has ended.
    The tokens follow those `before`.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        silent: Collection[int],
        partial: Collection[int],
        before: Sequence[int] = (),
    ) -> None:
        self._decode, self._silent, self._partial = decode, silent, partial
        self._ids = [*before]  # those of the last text returned, and all since
        self._num_returned = len(before)  # how many of them were returned
        self.pending = False

    def push(self, id: int) -> str:
        if id in self._silent:
            return ""
        self._ids.append(id)
        return self._new_text(final=False)

    def flush(self) -> str:
        return self._new_text(final=True)

    def _new_text(self, final: bool) -> str:
        before = self._decode(self._ids[: self._num_returned])
        text = self._decode(self._ids)
        self.pending = not final and (text.endswith("\ufffd") or self._ids[-1] in self._partial)
        if self.pending or len(text) <= len(before):
            return ""
        self._ids = self._ids[self._num_returned :]
        self._num_returned = len(self._ids)
        return text[len(before) :]


StreamDecoder = ByteStream | WindowStream
"""Decodes ids that come one at a time: its texts, joined, are that of all ids decoded at once."""


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from a `tokenizer.json`, from a BERT `vocab.txt`, or from a folder with one of them.

    Raises:
        TokenizerError: If there is no such file, or it is not a tokenizer.
    """
    if path.is_dir():
        found = [path / name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()]
        if not found:
            remedy = "`AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)` of transformers writes the former"
            raise TokenizerError(f"{path} holds neither tokenizer.json nor vocab.txt", remedy)
        path = found[0]
    try:
        text = read_text(path)
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TokenizerError(f"{path} is no tokenizer: {error}") from None
    try:
        return Tokenizer(read_bert_vocabulary(text)) if path.suffix == ".txt" else Tokenizer.from_json(text)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error.problem}", error.remedy) from None


def read_bert_vocabulary(text: str) -> tokenizers.Tokenizer:
    """Create a tokenizer from a BERT `vocab.txt`: a token a line, whose id is the number of the line, from 0.

    Splits at spaces and punctuation, then takes the longest known piece; all but the first piece of a word begin with
    `##` (Devlin et al. 2019). It is uncased if no piece has a capital.

    Raises:
        TokenizerError: If the text is not such a vocabulary.
    """
    tokens = text.removesuffix("\n").split("\n")
    specials = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if token in tokens]
    if "[UNK]" not in specials or len(set(tokens)) != len(tokens):
        raise TokenizerError("this is no BERT vocabulary: it lacks [UNK], or has a line twice")
    uncased = all(token == token.lower() for token in tokens if not token.startswith("["))
    inner = tokenizers.Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=uncased)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece(cleanup=False)  # clean-up rewrites text: `do not` would become `don't`
    inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return inner


def cut(text: str) -> list[str]:
    """Cut a text at positions about `SEGMENT` characters apart into pieces with the same tokens as the whole."""
    ends = [0]
    while found := _CUT.search(text, ends[-1] + SEGMENT):
        ends.append(found.end())
    return [text[start:end] for start, end in zip(ends, [*ends[1:], None], strict=True)]


def gather(texts: Iterable[str], size: int = 64 * SEGMENT) -> Iterator[list[str]]:
    """Gather texts in lists of about `size` characters, to encode many short ones by one call."""
    buffer: list[str] = []
    length = 0
    for text in texts:
        buffer.append(text)
        length += len(text)
        if length >= size:
            yield buffer
            buffer, length = [], 0
    if buffer:
        yield buffer
