"""Text ↔ token ids. Every tokenizer is one of the `tokenizers` library, saved in its format; ours are lossless.

Encoding treats special tokens in a text as plain characters: nobody can forge the end of a turn by typing it.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from tokenizers import decoders, models

from tinychat.atomic import atomic_write
from tinychat.errors import TokenizerError
from tinychat.text.cutting import cut, cut_all, gather
from tinychat.text.streaming import ByteStream, StreamDecoder, WindowStream
from tinychat.text.vocabularies import BYTE_CODES, read_bert_vocabulary, train_vocabulary

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tinychat.text.corpus import Corpus
    from tinychat.text.ids import Ids

ROLES = {
    "end": ("<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>", "<eos>", "[SEP]"),
    "begin": ("<|begin|>", "<|begin_of_text|>", "<s>", "<bos>", "[CLS]"),
    "user": ("<|user|>",),
    "bot": ("<|bot|>",),
    "pad": ("<|pad|>", "<pad>", "[PAD]"),
    "unknown": ("<unk>", "[UNK]"),
}
"""What a special token is for, and what it is called; the first name is ours."""

TRAINING_CHARACTERS = 20_000_000
"""characters after which pieces of words are learned from a sample"""

LONGEST_UNCUT = 1 << 18
"""characters after which a text is cut even where that may cost a token"""


class Tokenizer:
    """One tokenizer.

    Args:
        inner: of the `tokenizers` library.
    """

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.encode_special_tokens = True
        inner.no_truncation()
        inner.no_padding()
        self.inner = inner
        self.vocab_size: int = max(inner.get_vocab().values(), default=-1) + 1
        self._specials = {id for id, token in inner.get_added_tokens_decoder().items() if token.special}

    @cached_property
    def dtype(self) -> "np.dtype[np.unsignedinteger[Any]]":
        """The smallest type that holds its ids."""
        import numpy as np  # which is imported for long texts alone: prompts are short

        return np.dtype(np.uint16 if self.vocab_size <= 65_535 else np.uint32)

    @cached_property
    def kind(self) -> str:
        """`char`, `word`, `whitespace`, `wordpiece`, or the library's name of another model: `bpe`, `unigram`."""
        model = self.inner.model
        if isinstance(model, models.BPE) and model.ignore_merges and isinstance(self.inner.decoder, decoders.Metaspace):
            return "whitespace"
        if isinstance(model, models.BPE) and model.ignore_merges and isinstance(self.inner.decoder, decoders.Fuse):
            return "char" if self.inner.pre_tokenizer is None else "word"
        return type(self.inner.model).__name__.lower()

    @cached_property
    def fingerprint(self) -> str:
        """Tells it from any tokenizer that would encode or decode otherwise."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def has_spaces_in_words(self) -> bool:
        """Whether tokens of words hold the space before them: the first word of a text is then another token."""
        return any(piece[:1] == b" " and piece.strip() for piece in self._bytes_of or [])

    def special(self, role: str) -> int | None:
        """The special token for a role, a key of `ROLES`; None where there is none."""
        return next((id for name in ROLES[role] if (id := self.token_id(name)) is not None), None)

    def token_id(self, name: str) -> int | None:
        """The special token of that name; None where there is none."""
        id = self.inner.token_to_id(name)
        return id if id in self._specials else None

    # --- text → ids ---------------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """The ids of a text; characters that the vocabulary lacks are left out, or unknown where there is a token."""
        if self._characters is not None:
            return [self._characters[char] for char in text if char in self._characters]
        return list(self.inner.encode(_sound(text), add_special_tokens=False).ids)

    def encode_array(self, text: str) -> "Ids":
        """The same as `encode`, quickly for long texts."""
        import numpy as np

        return np.concatenate([np.zeros(0, self.dtype), *self.encode_pieces([text])])

    def encode_pieces(self, pieces: Iterable[str]) -> "Iterator[Ids]":
        """The ids of one text that comes in pieces: joined, those of the whole text."""
        if self._characters is not None:
            yield from map(self._look_up, pieces)
            return
        # The library lets go of Python while it works: meanwhile the ids of the texts before are taken over.
        begun: Future[list[tokenizers.Encoding]] | None = None
        with ThreadPoolExecutor(1) as thread:
            for texts in gather(self._cut_all(pieces)):
                next_one = thread.submit(self._encode_batch, texts)
                if begun is not None:
                    yield from map(self._take, begun.result())
                begun = next_one
            if begun is not None:
                yield from map(self._take, begun.result())

    def encode_batch(self, texts: Sequence[str]) -> "list[Ids]":
        """The ids of each text, all processors sharing the work."""
        if self._characters is not None:
            return [self._look_up(text) for text in texts]
        return [self._take(encoding) for encoding in self._encode_batch(texts)]

    def unknown(self, text: str) -> list[str]:
        """The characters that the vocabulary lacks, or the words where it has nothing else; each once, in order."""
        if self.kind == "whitespace":
            return [word for word in dict.fromkeys(_sound(text).split()) if not self.encode(word)]
        return [char for char in dict.fromkeys(_sound(text)) if not self._knows(char)]

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """What a text is cut into, with the ids."""
        return [(self.token_text(id), id) for id in self.encode(text)]

    # --- ids → text ---------------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens have none, and bytes that make no character are shown as \ufffd."""
        if self._bytes_of is not None:
            return b"".join(map(self._bytes_of.__getitem__, ids)).decode("utf-8", "replace")
        return str(self.inner.decode(list(ids)))

    def stream(self) -> StreamDecoder:
        """Decodes as ids come: joined, what `decode` gives for all."""
        if self._bytes_of is not None:
            return ByteStream(self._bytes_of)
        return WindowStream(self.decode, self._specials, self._single_bytes)

    def token_text(self, id: int) -> str:
        r"""What a token looks like by itself; a byte that is only a part of a character as `\xe4`."""
        if self._bytes_of is None or id in self._specials:
            return (self.inner.id_to_token(id) or "").replace("▁", " ")
        return self._bytes_of[id].decode("utf-8", "backslashreplace")

    def count_characters(self, ids: "npt.NDArray[np.integer[Any]]") -> int:
        """How many characters of text the ids stand for; special tokens stand for none."""
        import numpy as np

        blocks = (ids[start : start + (1 << 18)] for start in range(0, len(ids), 1 << 18))
        if self._bytes_of is None:
            return sum(len(self.decode(block.tolist())) for block in blocks)
        begun = np.array(
            [sum(byte & 0xC0 != 0x80 for byte in data) for data in self._bytes_of]
        )  # characters begin there
        return sum(int(begun[block].sum()) for block in blocks)

    # --- files --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """As `tokenizer.json` holds it."""
        return str(self.inner.to_str(pretty=True))

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer of a `tokenizer.json`.

        Raises:
            TokenizerError: it is none.
        """
        try:
            return cls(tokenizers.Tokenizer.from_str(text))
        except Exception as error:  # the library raises no narrower one
            raise TokenizerError(f"this is no tokenizer.json: {error}") from None

    def save(self, path: Path) -> None:
        """Writes a `tokenizer.json`, whole or not at all."""
        atomic_write(path, self.to_json())

    # --- how it is done -----------------------------------------------------------------------------------------

    @cached_property
    def _bytes_of(self) -> list[bytes] | None:
        """The bytes of UTF-8 that each token stands for; None where a token's text depends on its neighbours."""
        decoder = self.inner.decoder
        if not isinstance(decoder, decoders.Fuse | decoders.ByteLevel):
            return None
        named = BYTE_CODES if isinstance(decoder, decoders.ByteLevel) else {}
        out: list[bytes] = []
        for id in range(self.vocab_size):
            token = "" if id in self._specials else self.inner.id_to_token(id) or ""
            if all(char in named for char in token):
                out.append(bytes(named[char] for char in token))
            else:
                out.append(token.encode("utf-8"))
        return out

    @cached_property
    def _single_bytes(self) -> set[int]:
        """The tokens for bytes, `<0xE7>`, that other tokenizers have for characters without a token."""
        return {id for token, id in self.inner.get_vocab().items() if re.fullmatch("<0x[0-9A-F]{2}>", token)}

    @cached_property
    def _characters(self) -> dict[str, int] | None:
        """For characters alone: the id of each."""
        if self.kind != "char":
            return None
        return {token: id for token, id in self.inner.get_vocab(with_added_tokens=False).items() if len(token) == 1}

    @cached_property
    def _table(self) -> "npt.NDArray[np.int32]":
        """The same by their codes, −1 for none; the last entry is for all codes above."""
        import numpy as np

        ids = self._characters or {}
        table = np.full(max(map(ord, ids), default=0) + 2, -1, np.int32)
        for char, id in ids.items():
            table[ord(char)] = id
        return table

    def _look_up(self, text: str) -> "Ids":
        """As `encode`, for characters alone."""
        import numpy as np

        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ids = self._table[np.minimum(codes, len(self._table) - 1)]
        return ids[ids >= 0].astype(self.dtype)

    def _encode_batch(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        return self.inner.encode_batch_fast([_sound(text) for text in texts], add_special_tokens=False)

    def _take(self, encoding: tokenizers.Encoding) -> "Ids":
        import numpy as np

        # An `array` takes a list over in a third of the time that numpy does.
        return np.frombuffer(array("I", encoding.ids), np.uintc).astype(self.dtype)

    def _cut_all(self, pieces: Iterable[str]) -> Iterator[str]:
        """Texts with the same ids, joined, as the pieces of one text."""
        held = ""
        for piece in pieces:
            *texts, held = self._cut(held + piece)
            yield from texts
        yield held

    @cached_property
    def _is_cuttable(self) -> bool:
        """Whether a text may be cut before a space: not where a text's beginning is encoded in its own way."""
        pieces = ("ab", " cd.\n", "ef", "\n\ngh")
        return [id for piece in pieces for id in self.encode(piece)] == self.encode("".join(pieces))

    def _cut(self, text: str) -> list[str]:
        """Pieces with the same ids as the whole; the last one waits for what comes."""
        pieces = cut(text) if self._is_cuttable else [text]
        rest = pieces[-1]
        if len(rest) < LONGEST_UNCUT:
            return pieces
        # no word has ended for long: the splits of the tokenizer itself, but for the last, which may yet change
        splitter = self.inner.pre_tokenizer
        places = [end for _, (_, end) in splitter.pre_tokenize_str(rest)] if splitter is not None else []
        end = next((place for place in reversed(places) if place < len(rest) - 100), len(rest))
        return [*pieces[:-1], rest[:end], rest[end:]]

    def _knows(self, char: str) -> bool:
        if self._bytes_of is not None:
            return self.decode(self.encode(char)) == char
        ids = self.encode(char)
        return bool(ids or char.isspace()) and self.special("unknown") not in ids


def train_tokenizer(
    kind: str, corpus: "Corpus", vocab_size: int | None = None, specials: Sequence[str] = ()
) -> Tokenizer:
    """Makes a tokenizer for a text.

    Args:
        kind: `char`, `wordpiece`, `word` or `whitespace`.
        corpus: the text; of a very long one, an even sample is enough but for `char`.
        vocab_size: the most tokens; None: as many as suit the kind.
        specials: the roles to have special tokens for, keys of `ROLES`.

    Raises:
        TokenizerError: there is no such kind, or the vocabulary is too small for it.
    """
    step = 1 if kind == "char" else 1 + corpus.characters // TRAINING_CHARACTERS
    texts = islice(cut_all(corpus.chunks()), 0, None, step)
    return Tokenizer(train_vocabulary(kind, texts, vocab_size, [ROLES[role][0] for role in specials]))


def load_tokenizer(path: Path) -> Tokenizer:
    """Reads a `tokenizer.json`, a BERT `vocab.txt`, or that of a folder.

    Raises:
        TokenizerError: it is missing, or neither.
    """
    if path.is_dir():
        found = [path / name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()]
        if not found:
            raise TokenizerError(f"{path} holds neither tokenizer.json nor vocab.txt")
        path = found[0]
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TokenizerError(f"{path} is no tokenizer: it is not UTF-8") from None
    try:
        return Tokenizer(read_bert_vocabulary(text)) if path.suffix == ".txt" else Tokenizer.from_json(text)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error.problem}", error.remedy) from None


def _sound(text: str) -> str:
    """The text without halves of characters, which are no Unicode and which the library refuses."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
