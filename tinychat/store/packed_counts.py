"""Pack n-gram counts for a weight file: about a byte for each pair of a context and a token that followed it.

A context is never written down. Its last token followed the context before it, so the pair of these two is an entry as
well: a bit of that entry says that the pair is a context itself. Contexts come in the order of those bits, from the
empty one on; so each level of the tree of contexts stands whole before the next one (see `NGrams`). What follows a
context has also followed its suffix, the context without its first token. So an entry's token is given by its rank
among the tokens that follow the suffix, which are few; ranks ascend, and the gaps between them are small. They are
written as Rice codes (Rice, Plaunt 1971): some low bits as they are, the rest in unary. Four pairs in five occur up to
three times, which two bits say.

Shapes: N contexts, E entries, L levels, B counts of 4 or more, M counts of 255 or more.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tinychat.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

PREFIX = "ngrams."
UNPACKED = tuple(f"{PREFIX}{name}" for name in ("contexts", "widths", "tokens", "counts"))
"""In memory: numbers of contexts [N], how many entries each has [N], and the entries' tokens [E] and counts [E]."""
PACKED = tuple(
    f"{PREFIX}{name}"
    for name in (
        "quotients", "remainders", "remainder_bits", "counts", "byte_counts", "large_counts", "is_first", "is_context",
    )
)  # fmt: skip
"""In a file: of the gap before each entry's rank, as many zero bits as its high bits say and a one [E ones]; its low
bits, the lowest first; how many those are at each level [L]; counts up to 3, four a byte, or 0 for others [⌈E / 4⌉];
those others up to 254 [B], or 255 for larger ones [M]; and bits of entries, eight a byte [⌈E / 8⌉]: whether an entry is
the first of its context, and whether it makes a context itself."""
PER_BYTE, SMALL = 4, 3
"""How many small counts a byte holds, and the largest of them."""
LARGE = 255
"""Stands for a count that is too large for a byte."""
MOST_LOW_BITS = 15
LARGEST_CONTEXT_KEY = 2**62
"""Limit of the 64-bit keys of n-gram contexts: a vocabulary of 65 allows n-grams of 11 tokens, one of 1,024 of 7."""

_newest: "deque[tuple[list[Tensor], int, dict[str, Tensor]]]" = deque(maxlen=1)
"""The counts packed last: a trainer saves its model many times, and its counts never change."""


def longest_ngram(vocab_size: int) -> int:
    """Return the highest `ngram_order` for the size of a vocabulary."""
    order = 1
    while (vocab_size + 1) ** (order + 1) < LARGEST_CONTEXT_KEY:
        order += 1
    return order


def pack_counts(weights: "Mapping[str, Tensor]", vocab_size: int) -> "dict[str, Tensor]":
    """Return counts as they are stored in a file; contexts that nothing follows are left out.

    Args:
        weights: has the tensors `UNPACKED`: contexts that are all reached from the empty one, whose suffixes are there,
            too, and are followed by all that follows them.
        vocab_size: of the tokens.

    Raises:
        ModelError: If some context is not reached, or its suffix is not there, or does not have all followers.
    """
    import torch

    given = [weights[name].detach().cpu() for name in UNPACKED]
    if not any(size == vocab_size and all(map(torch.equal, given, others)) for others, size, _ in _newest):
        arrays = pack_arrays(*(tensor.numpy() for tensor in given), vocab_size=vocab_size)
        given = [tensor.clone() for tensor in given]
        _newest.append((given, vocab_size, {name: torch.from_numpy(values) for name, values in arrays.items()}))
    return dict(_newest[-1][-1])


def pack_arrays(*unpacked: "npt.NDArray[np.integer[Any]]", vocab_size: int) -> "dict[str, npt.NDArray[Any]]":
    """Return what `pack_counts` does of arrays, without torch."""
    import numpy as np

    contexts, widths, tokens, counts = (values.astype(np.int64) for values in unpacked)
    contexts, widths = contexts[widths > 0], widths[widths > 0]
    if contexts[:1].any():  # those of another tool may lack the empty one
        raise _contradiction()
    lengths = _lengths(contexts, vocab_size)
    starts = np.cumsum(widths) - widths
    is_first = np.zeros(len(tokens), dtype=bool)
    is_first[starts] = True
    numbers = np.repeat(contexts, widths)
    longest = contexts.max(initial=0)
    may_be = numbers <= (longest - 1) // vocab_size  # else the number of the pair might not fit in 64 bits
    pairs = np.where(may_be, numbers, 0) * vocab_size + tokens + 1
    is_context = may_be & np.isin(pairs, contexts)
    if is_context.sum() != max(0, len(contexts) - 1):
        raise _contradiction()
    levels = np.repeat(lengths, widths)  # [E]
    ranks = _ranks(contexts, lengths, starts, widths, tokens, vocab_size)
    gaps = np.diff(ranks, prepend=0) - 1
    gaps[is_first] = ranks[is_first]
    if (gaps < 0).any():  # tokens of the empty context that do not ascend
        raise _contradiction()
    low_bits = np.array([_fewest_bits(gaps[levels == level]) for level in range(levels.max(initial=-1) + 1)], np.uint8)
    widths_of_low = low_bits[levels].astype(np.int64)
    quotients = np.zeros(int((gaps >> widths_of_low).sum()) + len(gaps), dtype=bool)
    quotients[np.cumsum((gaps >> widths_of_low) + 1) - 1] = True
    places = np.arange(MOST_LOW_BITS)
    remainders = (gaps[:, None] >> places & 1)[places < widths_of_low[:, None]]
    small = np.where((counts >= 1) & (counts <= SMALL), counts, 0).astype(np.uint8)
    quads = np.pad(small, (0, -len(small) % PER_BYTE)).reshape(-1, PER_BYTE)
    packed = (
        np.packbits(quotients, bitorder="little"),
        np.packbits(remainders.astype(bool), bitorder="little"),
        low_bits,
        (quads << np.arange(0, 8, 2, dtype=np.uint8)).sum(axis=1, dtype=np.uint8),
        counts[small == 0].clip(max=LARGE).astype(np.uint8),
        counts[counts >= LARGE].astype(np.int32),
        np.packbits(is_first, bitorder="little"),
        np.packbits(is_context, bitorder="little"),
    )
    return dict(zip(PACKED, packed, strict=True))


def unpack_counts(packed: "Mapping[str, Tensor]", vocab_size: int) -> "dict[str, Tensor]":
    """Return the counts in a file as `UNPACKED`: the inverse of `pack_counts`.

    Raises:
        ModelError: If they contradict one another.
    """
    import numpy as np
    import torch

    large_counts = f"{PREFIX}large_counts"
    if any(packed[name].dtype != (torch.int32 if name == large_counts else torch.uint8) for name in PACKED):
        raise _contradiction()
    unary, low, low_bits, quads, bytes_, large, *bits = (packed[name].numpy() for name in PACKED)
    quotients = np.diff(np.flatnonzero(np.unpackbits(unary, bitorder="little")), prepend=-1) - 1  # [E]
    size = len(quotients)
    small = (quads[:, None] >> np.arange(0, 8, 2, dtype=np.uint8) & SMALL).reshape(-1)[:size]
    is_first, is_context = (np.unpackbits(each, bitorder="little")[:size].astype(bool) for each in bits)
    starts = np.flatnonzero(is_first)
    if (
        any(len(each) != -(-size // 8) for each in bits)
        or starts[:1].any()
        or (size > 0) != (len(starts) > 0)
        or is_context.sum() != max(0, len(starts) - 1)
        or (low_bits > MOST_LOW_BITS).any()
        or len(quads) != -(-size // PER_BYTE)
        or (small == 0).sum() != len(bytes_)
        or (bytes_ == LARGE).sum() != len(large)
        or (large < LARGE).any()
    ):
        raise _contradiction()
    others = bytes_.astype(np.int32)
    others[others == LARGE] = large
    counts = small.astype(np.int32)
    counts[small == 0] = others
    widths = np.diff(starts, append=size)
    low = np.unpackbits(low, bitorder="little")
    contexts, tokens = _follow(quotients, low, low_bits.tolist(), starts, is_context, vocab_size)
    unpacked = (contexts, widths.astype(np.int32) if size else np.zeros(1, np.int32), tokens.astype(np.int16), counts)
    return {name: torch.from_numpy(values) for name, values in zip(UNPACKED, unpacked, strict=True)}


def _lengths(contexts: "npt.NDArray[np.int64]", vocab_size: int) -> "npt.NDArray[np.int64]":
    """Return the number of tokens of each context, [N]."""
    import numpy as np

    shortest, highest = [1], contexts.max(initial=0)  # the lowest numbers of contexts of 1, 2, … tokens
    most = longest_ngram(vocab_size)
    while shortest[-1] <= highest:
        if len(shortest) > most:
            raise _contradiction()
        shortest.append(shortest[-1] * vocab_size + 1)
    return np.searchsorted(np.array(shortest[:-1], dtype=np.int64), contexts, side="right")


def _ranks(
    contexts: "npt.NDArray[np.int64]",
    lengths: "npt.NDArray[np.int64]",
    starts: "npt.NDArray[np.int64]",
    widths: "npt.NDArray[np.int64]",
    tokens: "npt.NDArray[np.int64]",
    vocab_size: int,
) -> "npt.NDArray[np.int64]":
    """Return the rank of each entry's token among those that follow its context's suffix, [E]."""
    import numpy as np

    powers = np.array([vocab_size**length for length in range(lengths.max(initial=0))], dtype=np.int64)
    after = lengths > 0
    of_rest = powers[lengths[after] - 1]  # [N − 1]
    lowest = (powers.cumsum() - powers)[lengths[after] - 1]  # numbers of the suffixes' length begin there
    suffixes = contexts[after] - (contexts[after] - lowest) // of_rest * of_rest
    rows = np.searchsorted(contexts, suffixes)
    cells = np.repeat(np.arange(len(contexts)), widths) * vocab_size + tokens  # [E], ascending
    ranks = tokens.copy()
    if len(rows):
        first = int(widths[0])
        begins = np.repeat(rows, widths[1:])
        found = np.searchsorted(cells, begins * vocab_size + tokens[first:])
        found_cells = cells[found.clip(max=len(cells) - 1)]
        if not (contexts[rows] == suffixes).all() or not (found_cells == begins * vocab_size + tokens[first:]).all():
            raise _contradiction()
        ranks[first:] = found - starts[begins]
    return ranks


def _fewest_bits(gaps: "npt.NDArray[np.int64]") -> int:
    """Return the number of low bits with which the Rice codes of some gaps take the fewest bits."""
    return min(range(MOST_LOW_BITS + 1), key=lambda bits: int((gaps >> bits).sum()) + bits * len(gaps))


def _follow(
    quotients: "npt.NDArray[np.int64]",
    low: "npt.NDArray[np.uint8]",
    low_bits: list[int],
    starts: "npt.NDArray[np.int64]",
    is_context: "npt.NDArray[np.bool_]",
    vocab_size: int,
) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]":
    """Return the numbers of the contexts [N], and the tokens of the entries [E], level by level.

    Args:
        quotients: [E], high bits of the gaps.
        low: low bits of all gaps, one after the other.
        low_bits: how many those of an entry are, at each level.
        starts: [N], the first entry of each context.
        is_context: [E], whether an entry makes a context.
        vocab_size: of the tokens.
    """
    import numpy as np

    size = len(quotients)
    contexts, suffixes = np.zeros((2, max(1, len(starts))), dtype=np.int64)
    tokens = np.zeros(size, dtype=np.int64)
    made = np.where(is_context, is_context.cumsum(), 0)  # [E], the context that each entry makes; 0: none
    ends = np.append(starts[1:], size)
    begin, end, used, level, most = 0, min(1, len(starts)), 0, 0, longest_ngram(vocab_size)
    while begin < end:
        if level > most:  # its number would not fit in 64 bits
            raise _contradiction()
        rows = np.repeat(np.arange(begin, end), ends[begin:end] - starts[begin:end])
        entries = slice(starts[begin], ends[end - 1])
        bits = low_bits[level] if level < len(low_bits) else 0
        lows = low[used : used + len(rows) * bits]
        used += len(lows)
        if len(lows) < len(rows) * bits:
            raise _contradiction()
        steps = (quotients[entries] << bits) + lows.reshape(len(rows), bits) @ (1 << np.arange(bits)) + 1
        sums = steps.cumsum()
        ranks = sums - (sums - steps)[starts[rows] - starts[begin]] - 1
        is_maker = is_context[entries]
        makers = made[entries][is_maker]
        if level == 0:
            tokens[entries] = ranks
            known = (ranks < vocab_size).all()
        else:
            same = starts[suffixes[rows]] + ranks  # the entries of the suffixes
            known = bool((same < ends[suffixes[rows]]).all()) and bool(made[same[is_maker]].all())
            if known:
                tokens[entries] = tokens[same]
                suffixes[makers] = made[same[is_maker]]
        if not known:
            raise _contradiction()
        contexts[makers] = contexts[rows[is_maker]] * vocab_size + tokens[entries][is_maker] + 1
        begin, end, level = end, end + len(makers), level + 1
    if begin < len(starts) or level != len(low_bits) or -(-used // 8) * 8 != len(low):
        raise _contradiction()
    return contexts, tokens


def _contradiction() -> ModelError:
    return ModelError("the n-gram counts contradict one another", "the model is damaged: train it again")
