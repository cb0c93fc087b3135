"""Find what followed the newest earlier occurrences of a context in the same text: the evidence of a cache model.

Kuhn and De Mori (1990) mix a model of the whole language with counts of what was just read. Here, for each of several
lengths k, the last k tokens are looked up in the text before them, and the tokens that followed there are returned.

Shapes: see `transformer.py`; also S slots of a history, K = len(CONTEXT_LENGTHS), R = MAX_RECENT.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT


def recent_followers(history: Tensor, slots: Tensor, vocab_size: int) -> Tensor:
    """Return the tokens that followed the newest earlier occurrences of each slot's contexts, [B, T, K, R].

    There is a context for each of `CONTEXT_LENGTHS`: that many tokens up to the slot. The newest occurrence is first;
    −1 where there are fewer than `MAX_RECENT`.

    Args:
        history: [B, S], token ids, −1 before a row's first; ids behind the last of `slots` are ignored.
        slots: [T] or [B, T], of the history, consecutive in each row.
        vocab_size: The number of different tokens.
    """
    slots = slots.expand(len(history), -1)  # [B, T]
    if slots.shape[1] > 1:
        return ContextIndex(history, vocab_size).followers(slots)
    # For one slot, comparing it with all others is faster than sorting them.
    longest = CONTEXT_LENGTHS[-1]
    windows = F.pad(history, (longest - 1, 0), value=-1).unfold(1, longest, 1).flip(-1)  # [B, S, longest], newest first
    own = windows.gather(1, slots.unsqueeze(-1).expand(-1, -1, longest))  # [B, 1, longest]
    earlier = torch.arange(history.shape[1], device=history.device) < slots  # [B, S]
    same = ((windows == own) & (own >= 0) & earlier.unsqueeze(-1)).long().cumprod(-1).sum(-1)  # [B, S]
    matches = torch.stack([same >= length for length in CONTEXT_LENGTHS], dim=1)  # [B, K, S]
    newer = matches.flip(-1).long().cumsum(-1).flip(-1) - 1  # [B, K, S], number of newer matches
    # One match at most has each number; all others go to an additional column.
    columns = newer.masked_fill(~matches, MAX_RECENT).clamp(max=MAX_RECENT)
    nexts = F.pad(history[:, 1:], (0, 1), value=-1)  # [B, S]
    found = history.new_full((*matches.shape[:2], MAX_RECENT + 1), -1)
    found.scatter_(2, columns, nexts.unsqueeze(1).expand_as(columns))
    return found[:, :, :MAX_RECENT].unsqueeze(1)


class ContextIndex:
    """Links from each slot of a history to the newest earlier one with the same context, for each of K lengths."""

    def __init__(self, history: Tensor, vocab_size: int) -> None:
        batch, length = history.shape
        longest, device = CONTEXT_LENGTHS[-1], history.device
        # Slots are numbered across rows, N in all.
        self._first = length * torch.arange(batch, device=device).unsqueeze(1)  # [B, 1]
        self._slots = batch * length
        # Element 0 stands for no slot at all, then come those of each slot: one, or one for each length.
        self._nexts = F.pad(F.pad(history[:, 1:], (0, 1), value=-1).flatten(), (1, 0), value=-1)  # [1 + N]
        self._links = torch.zeros(1 + len(CONTEXT_LENGTHS) * self._slots, dtype=torch.int32, device=device)
        digits = F.pad(history + 1, (longest, 0))  # 0: no token, so a context that begins before the text is unique
        ranks, ranked = self._first.expand(batch, length), 0  # a number for each different context so far
        for number, size in enumerate(CONTEXT_LENGTHS):
            keys, limit = ranks, self._slots
            for back in range(ranked, size):
                if limit * (vocab_size + 1) >= 1 << 63:  # their numbers would not fit
                    keys, limit = _rank(keys)[0], self._slots
                keys = keys * (vocab_size + 1) + digits[:, longest - back :][:, :length]
                limit *= vocab_size + 1
            ranks, order, same = _rank(keys)
            places, ranked = 1 + number * self._slots + order, size
            self._links[places[1:]] = torch.where(same, places[:-1], 0).int()

    def followers(self, slots: Tensor, reach: int | None = None) -> Tensor:
        """Return what `recent_followers` does for slots [T] or [B, T], from at most `reach` slots before."""
        lengths = len(CONTEXT_LENGTHS)
        begins = 1 + (slots + self._first).flatten()  # [B · T]
        offsets = self._slots * torch.arange(lengths, device=begins.device).unsqueeze(1)  # [K, 1]
        at, chain = (begins + offsets).flatten().int(), []
        for _ in range(MAX_RECENT):  # all lengths at once
            at = self._links.index_select(0, at)
            chain.append(at)
        earlier = (torch.stack(chain, dim=-1).view(lengths, -1, MAX_RECENT) - offsets.unsqueeze(-1).int()).clamp_(min=0)
        if reach is not None:
            earlier.masked_fill_(begins.unsqueeze(-1) - earlier > reach, 0)
        found = self._nexts.index_select(0, earlier.flatten()).view(lengths, -1, MAX_RECENT)  # [K, B · T, R]
        return found.transpose(0, 1).reshape(len(self._first), -1, lengths, MAX_RECENT)


def _rank(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number the different ones of some keys [B, S], ascending.

    Return the number of each, [B, S]; the order of all, [N]; and whether each in that order equals the one before,
    [N − 1].
    """
    ordered, order = keys.flatten().sort(stable=True)
    same = ordered[1:] == ordered[:-1]
    ranks = torch.empty_like(ordered)
    ranks[order] = F.pad((~same).long().cumsum(0), (1, 0))
    return ranks.view(keys.shape), order, same
