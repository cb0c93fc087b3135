"""A text → the vocabulary of a tokenizer: one function for each kind, and the table of them.

`char`       each character that occurs. A `BPE` without merges: the library itself then leaves out other characters.
`word`       words, runs of spaces and marks; a word that is not in the vocabulary is spelled.
`whitespace` whatever stands between spaces; what is not in the vocabulary is left out. For texts of very few words.
`wordpiece`  pieces of words over the 256 bytes, so that any text can be written. Greedy longest match (Wu et al. 2016,
             "Google's Neural Machine Translation System", §4.1), with one namespace for beginnings and continuations.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tinychat.errors import TokenizerError
from tinychat.text.cutting import gather

WORD_PATTERN = r"[\p{L}\p{M}\p{N}_]{1,32}| {1,32}|\n{1,8}|[^\p{L}\p{M}\p{N}_ \n]"

PIECE_PATTERN = (
    r"'(?:s|t|d|m|ll|ve|re)"  # the endings of English contractions
    r"| ?[\p{L}\p{M}]{1,24}| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{1,8}"  # a space belongs to the word that it precedes
    r"|\n{1,8}|[^\S\n]{1,16}(?!\S)|\s"
)
"""All splits are bounded: a text without spaces costs no more time or memory than any other."""

SPACE = "▁"
"""stands for the space before a word"""

_PLAIN_BYTES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_CODES = {chr(byte): byte for byte in _PLAIN_BYTES} | {
    chr(0x100 + place): byte for place, byte in enumerate(sorted({*range(256)} - {*_PLAIN_BYTES}))
}
"""The 256 bytes by the visible characters that stand for them in byte-level vocabularies (Radford et al. 2019)."""

VOCAB_SIZES = {"char": 2**21, "word": 10_000, "whitespace": 10_000, "wordpiece": 4_096}
"""the most tokens where nothing is asked; there are not so many characters"""


def train_vocabulary(
    kind: str, texts: Iterable[str], vocab_size: int | None = None, specials: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer of that kind for a text that comes in pieces.

    Raises:
        TokenizerError: there is no such kind, or the vocabulary is too small for it.
    """
    if kind not in TOKENIZERS:
        raise TokenizerError(f"there is no tokenizer {kind!r}", f"kinds: {', '.join(TOKENIZERS)}, or the path of one")
    tokens = VOCAB_SIZES[kind] if vocab_size is None else vocab_size
    room = tokens - len(specials)
    if room < 1:
        raise TokenizerError(f"a vocabulary of {tokens} tokens has no room for any text", "give it a larger one")
    inner = TOKENIZERS[kind](texts, room)
    inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return inner


def count_codes(texts: Iterable[str]) -> Counter[str]:
    """How often each character occurs."""
    import numpy as np

    counts: Counter[str] = Counter()
    for batch in gather(texts):
        codes = np.frombuffer("".join(batch).encode("utf-32-le"), np.uint32)
        found = np.bincount(codes)
        counts.update({chr(code): int(found[code]) for code in np.flatnonzero(found)})
    return counts


def _train_char(texts: Iterable[str], size: int) -> Tokenizer:
    """The most frequent characters, in the order of their codes."""
    counts = count_codes(texts)
    kept = sorted(counts, key=lambda char: (-counts[char], char))[:size]
    return _longest_known(sorted(kept))


def _train_word(texts: Iterable[str], size: int) -> Tokenizer:
    """Every character, so that any word can be spelled, and the most frequent words."""
    words = Tokenizer(models.WordLevel({}, unk_token=""))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(WORD_PATTERN), "isolated")
    words.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=2**31, show_progress=False))
    ids = words.get_vocab()
    by_frequency = sorted(ids, key=lambda word: ids[word])
    alphabet = sorted({char for word in by_frequency for char in word})
    tokens = [*alphabet, *(word for word in by_frequency if len(word) > 1)]
    if len(alphabet) > size:
        raise TokenizerError(f"the text has {len(alphabet):,} different characters: {size:,} tokens are too few")
    inner = _longest_known(tokens[:size])
    inner.pre_tokenizer = words.pre_tokenizer
    return inner


def _longest_known(tokens: Sequence[str]) -> Tokenizer:
    """Takes a split of the text as one token where it is known, else its characters; unknown ones are left out."""
    inner = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, [], ignore_merges=True))
    inner.decoder = decoders.Fuse()
    return inner


def _train_whitespace(texts: Iterable[str], size: int) -> Tokenizer:
    """The most frequent words, in the order in which they first come where they are as frequent."""
    counts = Counter(word for text in texts for word in text.split())
    words = [word for word, _ in counts.most_common(size)]
    # An unknown word becomes its characters, of which the first is known to no vocabulary and the others, marked as
    # what goes on, neither: so all of it is left out.
    inner = Tokenizer(
        models.BPE(
            {SPACE + word: id for id, word in enumerate(words)}, [], ignore_merges=True, continuing_subword_prefix="##"
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)]
    )
    inner.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    return inner


def _train_wordpiece(texts: Iterable[str], size: int) -> Tokenizer:
    if size < len(BYTE_CODES):
        raise TokenizerError(
            f"word pieces over all bytes need a vocabulary of more than {len(BYTE_CODES)} tokens, not {size}",
            "give it a larger one, or use the tokenizer char",
        )
    inner = Tokenizer(models.WordPiece({}, unk_token="", continuing_subword_prefix="", max_input_chars_per_word=1000))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, initial_alphabet=sorted(BYTE_CODES), continuing_subword_prefix="", show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    return inner


TOKENIZERS: dict[str, Callable[[Iterable[str], int], Tokenizer]] = {
    "char": _train_char,
    "wordpiece": _train_wordpiece,
    "word": _train_word,
    "whitespace": _train_whitespace,
}
"""Each kind by its name; a new one is one function and one line."""


def read_bert_vocabulary(text: str) -> Tokenizer:
    """The tokenizer of a BERT `vocab.txt`, a token a line: the number of the line, from 0, is its id.

    Devlin et al. 2019: splits at spaces and marks, then the longest known piece, `##` before all but a word's first.
    It is uncased where no piece has a capital.

    Raises:
        TokenizerError: it is no such vocabulary.
    """
    tokens = text.removesuffix("\n").split("\n")
    specials = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if token in tokens]
    if "[UNK]" not in specials or len(set(tokens)) != len(tokens):
        raise TokenizerError("this is no BERT vocabulary: it lacks [UNK], or has a line twice")
    uncased = all(token == token.lower() for token in tokens if not token.startswith("["))
    inner = Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=uncased)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece(cleanup=False)  # else it rewrites text: `do not` would become `don't`
    inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return inner
