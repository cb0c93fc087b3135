"""Train tokenizers: one function for each kind of vocabulary, and a table of them.

`char`       every character of the text. A `BPE` without merges: the library itself then drops unknown characters.
`word`       words, runs of spaces and punctuation marks; unknown words are spelled in characters.
`whitespace` words between spaces; unknown words are dropped. For texts of very few different words.
`wordpiece`  pieces of words over the 256 bytes, so that any text can be encoded. Greedy longest match (Wu et al. 2016,
             "Google's Neural Machine Translation System", §4.1), with one namespace for beginnings and continuations.
`bpe`        byte pair encoding over the 256 bytes as in GPT-2 (Sennrich et al. 2016; Radford et al. 2019, §2.2), which
             most other tools read.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers

from tinychat.corpus.corpus import Corpus
from tinychat.corpus.types import Chunk
from tinychat.errors import TokenizerError
from tinychat.tokenizer.library import BYTE_CODES, SPACE, call
from tinychat.tokenizer.tokenizer import SEGMENT, SPECIAL_TOKENS, Tokenizer, cut, gather

WORD_PATTERN = r"[\p{L}\p{M}\p{N}_]{1,32}| {1,32}|\n{1,8}|[^\p{L}\p{M}\p{N}_ \n]"

LONGEST_RUN = 64
"""Maximum number of letters, or of signs, in a word that is cut into pieces.

Greedy matching tries all ends of a word: without a maximum, a text without spaces would cost unbounded time.
"""

_PIECE_WORDS = (
    r"\n{8}|\n{4}|\n{2}|\t{8}|\t{4}|\t{2}"
    rf"| ?'?[\p{{L}}\p{{M}}]{{1,{LONGEST_RUN}}}"  # a space or an apostrophe belongs to the word that it precedes
    rf"| ?\p{{N}}| ?'?[^\s\p{{L}}\p{{M}}\p{{N}}']{{1,{LONGEST_RUN}}}| ?'|\s"
)
PIECE_PATTERN = r" {1,15}(?= )|" + _PIECE_WORDS
"""Cuts a text into the words whose pieces are learned; `piece_pattern` returns the one that a trained vocabulary keeps.

Whether a word goes on from one character to the next depends on these two alone: one ends before an apostrophe that
follows no space, and between a letter and any other sign; for runs of spaces, see `piece_pattern`. A piece that was
learned within words thus lies within a word wherever it matches, and the longest match over a whole text, as other
tools take it, finds the same pieces.

Each digit is a piece of its own (Touvron et al. 2023, Llama, section 2.1): numbers of one length are cut alike.
"""


def piece_pattern(lengths: Iterable[int]) -> str:
    """Return the pattern of a vocabulary of word pieces whose runs of two or more spaces have these lengths.

    Runs in a text are cut into the longest of these, as the longest match does; a single space belongs to what follows.
    """
    return "".join(f" {{{length}}}|" for length in sorted(lengths, reverse=True)) + _PIECE_WORDS


_SPACE_LETTER = "Ġ"
"""Character that stands for the byte of a space in byte-level vocabularies."""

BYTE_LEVEL = ("wordpiece", "bpe")
"""Kinds whose vocabularies have all bytes."""

VOCAB_SIZES = {"char": 2**21, "word": 10_000, "whitespace": 10_000, "wordpiece": 4_096, "bpe": 4_096}
"""Default maximum numbers of tokens; that of `char` exceeds the number of characters."""

TRAINING_CHARACTERS = 20_000_000
"""Characters beyond which a vocabulary is trained on a sample of the text."""


def train_tokenizer(
    kind: str,
    corpus: Corpus,
    vocab_size: int | None = None,
    specials: Sequence[str] = (),
    training_part: Iterable[Chunk] | None = None,
) -> Tokenizer:
    """Train a tokenizer like `train_vocabulary`, on a corpus; all kinds but `char` sample a very long one evenly.

    Words and pieces are those of the `training_part` alone, if there is one: which of them are frequent in the
    validation split must not be known. Single characters are those of the whole corpus: that a character occurs at all
    tells nothing of what follows what, and one that were unknown could not be encoded.

    `specials` are roles of special tokens, keys of `SPECIAL_TOKENS`.

    Raises:
        TokenizerError: If there is no such kind, or the vocabulary is too small for it.
        SourceError: If the corpus cannot be read.
    """
    step = 1 if kind == "char" else 1 + corpus.characters // TRAINING_CHARACTERS
    chunks = corpus.chunks() if kind == "char" or training_part is None else training_part
    texts: Iterable[str] = islice(cut_documents(chunks), 0, None, step)
    if kind == "word" and training_part is not None:
        texts = chain(texts, sorted(count_codes(chunk.text for chunk in corpus.chunks())))
    return Tokenizer(train_vocabulary(kind, texts, vocab_size, [SPECIAL_TOKENS[role][0] for role in specials]))


def train_vocabulary(
    kind: str, texts: Iterable[str], vocab_size: int | None = None, specials: Sequence[str] = ()
) -> tokenizers.Tokenizer:
    """Train a tokenizer of the library, of a kind in `TOKENIZERS`, on a text that comes in pieces.

    `vocab_size` is the maximum number of tokens, special ones included; None: the default of the kind.

    Raises:
        TokenizerError: If there is no such kind, or the vocabulary is too small for it.
    """
    check_kind(kind)
    tokens = VOCAB_SIZES[kind] if vocab_size is None else vocab_size
    if tokens <= len(specials):
        raise TokenizerError(f"a vocabulary of {tokens} tokens has no room for any text", "give it a larger one")
    if kind in BYTE_LEVEL and tokens < (least := len(BYTE_CODES) + len(specials)):
        parts = f"{len(BYTE_CODES)} bytes, {len(specials)} special"
        problem = f"the tokenizer {kind} needs at least {least} tokens ({parts}), not {tokens}"
        raise TokenizerError(problem, "give it a larger one, or use the tokenizer char")
    inner = TOKENIZERS[kind](texts, tokens - len(specials))
    inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return inner


def check_kind(kind: str) -> None:
    """Check that there is a kind of tokenizer.

    Raises:
        TokenizerError: If there is none of that name.
    """
    if kind not in TOKENIZERS:
        raise TokenizerError(f"there is no tokenizer {kind!r}", f"kinds: {', '.join(TOKENIZERS)}, or the path of one")


def cut_documents(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Cut documents into pieces of about `SEGMENT` characters that end at word boundaries."""
    buffer = ""
    for text, ends_document in chunks:
        *pieces, buffer = cut(buffer + text)
        yield from pieces
        if ends_document or len(buffer) > 4 * SEGMENT:
            yield buffer
            buffer = ""


def count_codes(texts: Iterable[str]) -> Counter[str]:
    """Count how often each character occurs."""
    import numpy as np

    counts: Counter[str] = Counter()
    for batch in gather(texts):
        codes = np.frombuffer("".join(batch).encode("utf-32-le"), np.uint32)
        found = np.bincount(codes)
        counts.update({chr(code): int(found[code]) for code in np.flatnonzero(found)})
    return counts


def _train_char(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    """Build a vocabulary of the most frequent characters, in the order of their codes."""
    counts = count_codes(texts)
    return _longest_known(sorted(sorted(counts, key=lambda char: (-counts[char], char))[:size]))


def _train_word(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    """Build a vocabulary of all characters, so that any word can be spelled, and of the most frequent words."""
    words = tokenizers.Tokenizer(models.WordLevel({}, unk_token=""))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(WORD_PATTERN), "isolated")
    words.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=2**31, show_progress=False))
    ids = words.get_vocab()
    by_frequency = sorted(ids, key=ids.__getitem__)
    alphabet = sorted({char for word in by_frequency for char in word})
    tokens = [*alphabet, *(word for word in by_frequency if len(word) > 1)]
    if len(alphabet) > size:
        raise TokenizerError(f"the text has {len(alphabet):,} different characters: {size:,} tokens are too few")
    inner = _longest_known(tokens[:size])
    inner.pre_tokenizer = words.pre_tokenizer
    return inner


def _longest_known(tokens: Sequence[str]) -> tokenizers.Tokenizer:
    """Encode a pre-token as one token if it is known, else as its characters; unknown characters are dropped."""
    inner = tokenizers.Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, [], ignore_merges=True))
    inner.decoder = decoders.Fuse()
    return inner


def _train_whitespace(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    """Build a vocabulary of the most frequent words; equally frequent ones in order of first occurrence."""
    counts = Counter(word for text in texts for word in text.split())
    # The library splits an unknown word into its characters. The vocabulary has neither the first one nor the others,
    # which get the prefix of continuations: the whole word is dropped.
    ids = {SPACE + word: id for id, (word, _) in enumerate(counts.most_common(size))}
    inner = tokenizers.Tokenizer(models.BPE(ids, [], ignore_merges=True, continuing_subword_prefix="##"))
    metaspace = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    inner.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    return inner


def _train_wordpiece(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    words = _wordpiece({}, PIECE_PATTERN)
    spare = size // 8 + 16  # the pieces that are left out are fewer than this in any common text
    trainer = trainers.WordPieceTrainer(
        vocab_size=size + spare, initial_alphabet=sorted(BYTE_CODES), continuing_subword_prefix="", show_progress=False
    )
    words.train_from_iterator(texts, trainer)
    ids = words.get_vocab()
    pieces = [piece for piece in sorted(ids, key=ids.__getitem__) if _is_piece(piece)][:size]
    lengths = [len(piece) for piece in pieces if len(piece) > 1 and not piece.strip(_SPACE_LETTER)]
    return _wordpiece({piece: id for id, piece in enumerate(pieces)}, piece_pattern(lengths))


def _wordpiece(ids: dict[str, int], pattern: str) -> tokenizers.Tokenizer:
    model = models.WordPiece(ids, unk_token="", continuing_subword_prefix="", max_input_chars_per_word=1000)
    inner = tokenizers.Tokenizer(model)
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    inner.decoder = decoders.ByteLevel()
    return inner


def _is_piece(letters: str) -> bool:
    """Return whether a piece, in letters that represent bytes, is one that a vocabulary keeps.

    Of runs of spaces, those of an odd length are: after the spaces of an indentation, which are even in number, the
    next word still has a space, and is the token that it is elsewhere.
    """
    is_run = len(letters) > 1 and not letters.strip(_SPACE_LETTER)
    return _is_whole(bytes(BYTE_CODES[letter] for letter in letters)) and not (is_run and len(letters) % 2 == 0)


def _is_whole(piece: bytes) -> bool:
    """Return whether a piece consists of whole characters, or is a part of a single one.

    Another one, such as the end of a character and the beginning of the next, could match across two words.
    """
    try:
        return bool(piece.decode())
    except UnicodeDecodeError:
        return all(byte & 0xC0 == 0x80 for byte in piece[1:])


def needs_no_words(tokenizer: Tokenizer) -> bool:
    """Return whether the longest match over a whole text finds the word pieces that a tokenizer finds in its words.

    True means proven for all texts without a run of more than `LONGEST_RUN` letters, or signs: no piece can match
    across the ends of words, see `PIECE_PATTERN`. False means that some might.
    """
    pieces = [tokenizer.token_bytes(id) for id in range(tokenizer.vocab_size) if not tokenizer.is_special(id)]
    pattern = piece_pattern({len(piece) for piece in pieces if len(piece) > 1 and not piece.strip(b" ")})
    expected, found = _wordpiece({}, pattern), tokenizer.inner
    if found.normalizer or _state(found.pre_tokenizer) != _state(expected.pre_tokenizer):
        return False
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    texts = (piece.decode("utf-8", "replace") for piece in pieces)
    return all(map(_is_whole, pieces)) and all(len(call(split.pre_tokenize_str, text)) == 1 for text in texts)


def _state(step: pre_tokenizers.PreTokenizer | None) -> bytes:
    return step.__getstate__() if step else b""


def _train_bpe(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # splits by the expression of GPT-2
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(BYTE_CODES), show_progress=False)
    inner.train_from_iterator(texts, trainer)
    return inner


TOKENIZERS: dict[str, Callable[[Iterable[str], int], tokenizers.Tokenizer]] = {
    "char": _train_char,
    "wordpiece": _train_wordpiece,
    "bpe": _train_bpe,
    "word": _train_word,
    "whitespace": _train_whitespace,
}
"""The kinds of tokenizers by name; a new one is one function and one line."""
