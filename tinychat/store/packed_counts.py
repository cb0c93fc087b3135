"""Pack n-gram counts for a weight file: a byte and a half for each pair of a context and a token that followed it.

A context is never written down. Its last token followed the context before it, so the pair of these two is an entry as
well: a bit of that entry says that the pair is a context itself. Contexts come in the order of those bits, from the
empty one on; so each level of the tree of contexts stands whole before the next one (see `NGrams`). The tokens of a
context ascend. Four pairs in five occur up to three times, which two bits say.

Shapes: N contexts, E entries, B counts of 4 or more, M counts of 255 or more.
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
    f"{PREFIX}{name}" for name in ("tokens", "counts", "byte_counts", "large_counts", "is_first", "is_context")
)
"""In a file: tokens [E]; counts up to 3, four a byte, or 0 for others [⌈E / 4⌉]; those others up to 254 [B], or 255 for
larger ones [M]; and bits of entries, eight a byte [⌈E / 8⌉]: whether an entry is the first of its context, and whether
it makes a context itself."""
PER_BYTE, SMALL = 4, 3
"""How many small counts a byte holds, and the largest of them."""
LARGE = 255
"""Stands for a count that is too large for a byte."""

_newest: "deque[tuple[list[Tensor], int, dict[str, Tensor]]]" = deque(maxlen=1)
"""The counts packed last: a trainer saves its model many times, and its counts never change."""


def pack_counts(weights: "Mapping[str, Tensor]", vocab_size: int) -> "dict[str, Tensor]":
    """Return counts as they are stored in a file; contexts that nothing follows are left out.

    Args:
        weights: has the tensors `UNPACKED`, whose contexts are all reached from the empty one.
        vocab_size: of the tokens.
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
    is_first = np.zeros(len(tokens), dtype=bool)
    is_first[np.cumsum(widths) - widths] = True
    numbers = np.repeat(contexts, widths)
    longest = contexts.max(initial=0)
    may_be = numbers <= (longest - 1) // vocab_size  # else the number of the pair might not fit in 64 bits
    pairs = np.where(may_be, numbers, 0) * vocab_size + tokens + 1
    is_context = may_be & np.isin(pairs, contexts)
    small = np.where((counts >= 1) & (counts <= SMALL), counts, 0).astype(np.uint8)
    quads = np.pad(small, (0, -len(small) % PER_BYTE)).reshape(-1, PER_BYTE)
    packed = (
        tokens.astype(np.uint8 if vocab_size <= 256 else np.int16),
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

    if any(packed[name].is_floating_point() for name in PACKED):
        raise _contradiction()
    tokens, quads, bytes_, large, *bits = (packed[name].numpy() for name in PACKED)
    size = len(tokens)
    small = (quads[:, None] >> np.arange(0, 8, 2, dtype=np.uint8) & SMALL).reshape(-1)[:size]
    is_first, is_context = (np.unpackbits(each, bitorder="little")[:size].astype(bool) for each in bits)
    starts = np.flatnonzero(is_first)
    if (
        any(len(each) != -(-size // 8) for each in bits)
        or not ((tokens >= 0) & (tokens < vocab_size)).all()
        or starts[:1].any()
        or (size > 0) != (len(starts) > 0)
        or is_context.sum() != max(0, len(starts) - 1)
        or (np.diff(tokens.astype(np.int32))[~is_first[1:]] <= 0).any()  # tokens of a context ascend
        or len(quads) != -(-size // PER_BYTE)
        or (small == 0).sum() != len(bytes_)
        or (bytes_ == LARGE).sum() != len(large)
    ):
        raise _contradiction()
    others = bytes_.astype(np.int32)
    others[others == LARGE] = large
    counts = small.astype(np.int32)
    counts[small == 0] = others
    widths = np.diff(starts, append=size)
    contexts = np.zeros(max(1, len(starts)), dtype=np.int64)
    makers = np.flatnonzero(is_context)  # [N - 1], the entries that make the contexts after the empty one
    rows = np.searchsorted(starts, makers, side="right") - 1
    end = 1
    while end < len(contexts):  # level by level: an entry makes a context of its own context, which is known by then
        made = int(np.searchsorted(rows, end)) + 1
        if made <= end:
            raise _contradiction()
        level = slice(end - 1, made - 1)
        contexts[end:made] = contexts[rows[level]] * vocab_size + tokens[makers[level]] + 1
        end = made
    if not (np.diff(contexts) > 0).all():  # they are longer than any that fit in 64 bits
        raise _contradiction()
    unpacked = (contexts, widths.astype(np.int16) if size else np.zeros(1, np.int16), tokens.astype(np.int16), counts)
    return {name: torch.from_numpy(values) for name, values in zip(UNPACKED, unpacked, strict=True)}


def _contradiction() -> ModelError:
    return ModelError("the n-gram counts contradict one another", "the model is damaged: train it again")
