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
        batch, self._length = history.shape
        longest, device = CONTEXT_LENGTHS[-1], history.device
        # Slots are numbered across rows; the last element of `_nexts` and of links stands for slot −1: none.
        self._first = self._length * torch.arange(batch, device=device).unsqueeze(1)  # [B, 1]
        self._nexts = F.pad(F.pad(history[:, 1:], (0, 1), value=-1).flatten(), (0, 1), value=-1)
        self._links: list[Tensor] = []
        digits = F.pad(history + 1, (longest, 0))  # 0: no token, so a context that begins before the text is unique
        ranks, ranked = self._first.expand(batch, self._length), 0  # a number for each different context so far
        for size in CONTEXT_LENGTHS:
            keys = ranks
            for back in range(ranked, size):
                keys = keys * (vocab_size + 1) + digits[:, longest - back :][:, : self._length]
            ordered, order = keys.flatten().sort(stable=True)
            same = ordered[1:] == ordered[:-1]
            links = torch.full(self._nexts.shape, -1, dtype=torch.int32, device=device)
            links[order[1:]] = torch.where(same, order[:-1], -1).int()
            self._links.append(links)
            ranks = torch.empty_like(ordered)
            ranks[order] = F.pad((~same).long().cumsum(0), (1, 0))
            ranks, ranked = ranks.view(batch, self._length), size

    def followers(self, slots: Tensor, reach: int | None = None) -> Tensor:
        """Return what `recent_followers` does for slots [T] or [B, T], from at most `reach` slots before."""
        begins = (slots + self._first).flatten()  # [B · T]
        found = []
        for links in self._links:
            chain = [begins]
            for _ in range(MAX_RECENT):
                chain.append(links[chain[-1]])
            earlier = torch.stack(chain[1:], dim=-1)  # [B · T, R]
            if reach is not None:
                earlier = earlier.masked_fill(begins.unsqueeze(-1) - earlier > reach, -1)
            found.append(self._nexts[earlier])
        return torch.stack(found, dim=1).view(len(self._first), -1, len(CONTEXT_LENGTHS), MAX_RECENT)
