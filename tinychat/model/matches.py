"""What comes next where the text so far goes on as it did before: names, refrains, whatever counting elsewhere missed.

Each earlier place says what followed it, and weighs the more, the more of the last tokens stand before it as well: an
induction head (Olsson et al. 2022) that need not be learned, or the match model of a compressor (Mahoney 2005, §3.2).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import LONGEST_MATCH

BLOCK = 256
"""places that are looked at together"""
FIRST_WORTH = 1.0
"""log weight, at first, of each token more that is the same"""


class Matches(nn.Module):
    """Weighs earlier places by the number of tokens before them that are the same as the last ones."""

    def __init__(self) -> None:
        super().__init__()
        self.worth = nn.Parameter(torch.empty(1))
        """log weight of an earlier place for each token that is the same"""
        self.distance = nn.Parameter(torch.empty(1))
        """how much log weight falls with the logarithm of the distance"""
        self.initialize()

    def initialize(self) -> None:
        """Sets the first weights: the more tokens are the same the better, near or far."""
        nn.init.constant_(self.worth, FIRST_WORTH)
        nn.init.zeros_(self.distance)

    def forward(self, history: Tensor, positions: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
        """What followed earlier places.

        Args:
            history: [B, S], the ids from place 0 on; those behind the last of `positions` are not looked at.
            positions: [T] or [B, T], the places whose next token is asked for.

        Returns:
            [B, T, V], f32, the probability of each token, 0 everywhere where nothing is the same; and [B, T], the
            number of tokens that are the same at the best place.
        """
        places = positions if positions.dim() == 2 else positions.unsqueeze(0)  # [1 or B, T]
        if history.device.type != "cpu" or places.shape[1] <= BLOCK:
            return self._look(history, places, vocab_size)
        # On a CPU some places at a time: their pairs stay in its cache, and slots that come later need no look.
        blocks = [places[:, first : first + BLOCK] for first in range(0, places.shape[1], BLOCK)]
        looks = [self._look(history[:, : int(block.max()) + 1], block, vocab_size) for block in blocks]
        matched, lengths = zip(*looks, strict=True)
        return torch.cat(matched, dim=1), torch.cat(lengths, dim=1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Takes numbers without a dimension as well, as models had them at first."""
        for name in (prefix + "worth", prefix + "distance"):
            if isinstance(state_dict.get(name), Tensor) and state_dict[name].numel() == 1:
                state_dict[name] = state_dict[name].reshape(1)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _look(self, history: Tensor, places: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
        """As `forward`, with places [1 or B, T]."""
        slots = torch.arange(history.shape[1], device=history.device)
        distances = places.unsqueeze(-1) - slots  # [1 or B, T, S]
        lengths = self._compare(history, places, followed=distances > 0)
        scores = self.worth.float() * lengths - self.distance.float() * distances.clamp(min=1).float().log()
        nothing = lengths == 0
        weights = scores.masked_fill(nothing, -1e9).softmax(dim=-1).masked_fill(nothing, 0)  # [B, T, S]
        followed = F.pad(history[:, 1:], (0, 1)).clamp(min=0)  # [B, S]; slots that hold no token yet have no weight
        if places.shape[1] == 1:
            matched = weights.new_zeros(len(history), 1, vocab_size).scatter_add_(2, followed.unsqueeze(1), weights)
        else:
            matched = weights @ F.one_hot(followed, vocab_size).to(weights.dtype)
        return matched, lengths.amax(dim=-1).int()

    def _compare(self, history: Tensor, places: Tensor, followed: Tensor) -> Tensor:
        """How many of the last tokens are the same before each slot, [B, T, S].

        Args:
            places: [1 or B, T], each one after the one before.
            followed: [1 or B, T, S], whether something has followed the token in a slot.
        """
        time, slots, more = places.shape[1], history.shape[1], LONGEST_MATCH - 1
        # −1 and −2 are no tokens: nothing stands before the first place, and nothing is the same as that.
        steps = places[:, :1] + torch.arange(-more, time, device=history.device)
        tokens = history.short()  # as small as can be: all of this is reading and writing
        last = tokens.gather(1, steps.clamp(min=0).expand(len(history), -1)).masked_fill(steps < 0, -1)
        before = F.pad(tokens, (more, 0), value=-2)
        if time == 1:  # in decoding it is the number of operations that takes time
            alike = last.unsqueeze(1) == before.unfold(1, LONGEST_MATCH, 1)  # [B, S, 12], the last token last
            counts = alike.flip(-1).to(torch.uint8).cumprod(dim=-1).sum(dim=-1).unsqueeze(1)
            return counts * followed
        alike = last.unsqueeze(-1) == before.unsqueeze(1)  # [B, more + T, more + S]
        same = followed & alike[:, more:, more:]
        counts = same.to(torch.uint8)
        for back in range(1, LONGEST_MATCH):
            first = more - back
            same &= alike[:, first : first + time, first : first + slots]
            counts += same.view(torch.uint8)
        return counts
