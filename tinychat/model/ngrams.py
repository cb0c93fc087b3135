"""What counting says comes next: n-grams of the training text, which the layers weigh, and mix with what they say.

The distribution after a context of k tokens is that after its last k − 1, corrected by what was counted (MacKay, Peto
1995, §3: a hierarchical Dirichlet language model): p_k(v) = (count_k(v) + α_k · p_{k−1}(v)) / (total_k + α_k), from
p_{−1} = 1 / V. How strong a shorter context is, α_k, the layers say anew at each place.

A text predicts itself too well: its counts would be trusted as they deserve in no other text. So the text falls into
folds, and in training a token is predicted from the counts of the other folds alone. (To leave out nothing but the
token itself, Ney et al. 1994, does not suffice: the names of a scene come again in that scene, and nowhere else.)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tinychat.model.config import LARGEST_TABLE, LONGEST_MATCH, ModelConfig
from tinychat.model.matches import Matches

FEWEST_MEETINGS = 2
"""A context that was met less often says nothing that its last tokens do not say as well."""
MOST_COUNTED = 4_000_000
"""tokens; what follows common contexts is known by then"""
FIRST_STRENGTH = 2.0
"""log α at first"""
FIRST_SHARES = (-1.0, -3.0)
"""log odds, at first, of what the layers say, and of what matches, against what is counted"""
HIGHEST_STRENGTH = 30.0
"""log α, at most, and with a minus at least: far beyond all that is ever counted"""
LEAST = 1e-12
"""probability that any token has: the logarithm of 0 has no gradient"""

Ids = npt.NDArray[np.integer]


class Seen(NamedTuple):
    """The tokens that a model sees when it says what follows each of the last T."""

    known: Tensor
    """[B, looks_back + T], these T with those before them; −1 where there is none"""
    history: Tensor
    """[B, S], the ids from place 0 on"""
    positions: Tensor
    """[T] or [B, T], the places of these T"""


class NGrams(nn.Module):
    """Counts, and how they are weighed.

    A context of tokens t₁ … t_k is the number whose digits in base V are t₁ + 1 … t_k + 1: no two contexts have the
    same, and longer ones have higher ones. Contexts are held in that order, and what follows each, one after the other.
    """

    contexts: Tensor
    """[N] their numbers; the first is 0, the empty context"""
    widths: Tensor
    """[N] how many different tokens follow each"""
    tokens: Tensor
    """[sum of widths] which"""
    counts: Tensor
    """[sum of widths] how often each was met"""
    powers: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vocab_size, self.longest = config.vocab_size, config.ngram_order - 1
        self.trust = nn.Linear(config.d_model, 1)
        """what the logarithm of the probabilities is multiplied by"""
        self.share = nn.Linear(config.d_model, 2)
        """log odds of what the layers say, and of what matches, against what is counted"""
        self.matches = Matches()
        self.worth = nn.Parameter(torch.zeros(LONGEST_MATCH + 1))
        """how much the log odds of what matches grow with its length"""
        self.strength = nn.Linear(config.d_model, config.ngram_order)
        """log α of each length"""
        self.variety = nn.Parameter(torch.zeros(config.ngram_order))
        """how much log α grows with the logarithm of how many different tokens follow (Witten, Bell 1991)"""
        powers = torch.tensor([self.vocab_size**place for place in range(self.longest)], dtype=torch.long)
        self.register_buffer("powers", powers, persistent=False)
        # Nothing is counted yet: there is the empty context, and nothing follows it.
        self._hold(torch.zeros(1, dtype=torch.long), *(torch.zeros(size, dtype=torch.short) for size in (1, 0, 0)))
        self.own: Folds | None = None
        """in training: what was counted in each fold"""
        self.initialize()

    def initialize(self) -> None:
        """Sets the first weights: the counts are taken as they are, everywhere."""
        for layer, bias in ((self.trust, 1.0), (self.strength, FIRST_STRENGTH)):
            nn.init.zeros_(layer.weight)
            nn.init.constant_(layer.bias, bias)
        nn.init.zeros_(self.share.weight)
        with torch.no_grad():
            self.share.bias.copy_(torch.tensor(FIRST_SHARES))
        nn.init.zeros_(self.worth)
        self.matches.initialize()

    def count(self, folds: Sequence[Ids]) -> None:
        """Counts a text that is to be trained on.

        Args:
            folds: its parts, [N] each; of each the first `MOST_COUNTED` / folds tokens are counted.
        """
        counted = [fold[: MOST_COUNTED // len(folds)] for fold in folds]
        meetings = FEWEST_MEETINGS
        while (levels := count_levels(counted, self.vocab_size, self.longest, meetings)) is None:
            meetings += max(1, meetings // 2)
        contexts, widths, tokens, counts = (
            torch.from_numpy(np.concatenate(values, axis=-1)).to(self.powers.device)
            for values in zip(*levels, strict=True)
        )
        self._hold(contexts, widths.short(), tokens.short(), counts.sum(0).int())
        self.own = Folds(self.all, widths, tokens, counts)

    def forward(self, logits: Tensor, x: Tensor, seen: Seen, folds: Tensor | None = None) -> Tensor:
        """The logarithm of the mixture of what the layers say, what is counted and what matches, in shares they say.

        Args:
            logits: [B, T, V], what the layers say.
            x: [B, T, D], what the layers make of the last T tokens.
            folds: [B], the fold that each row stands in, whose counts are left out; None: none is left out.

        Returns:
            [B, T, V], f32.
        """
        said, shares = self.voices(logits, x, seen, folds)
        return (shares.unsqueeze(-2) @ said).squeeze(-2).clamp(min=LEAST).log()

    def voices(self, logits: Tensor, x: Tensor, seen: Seen, folds: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What the layers, the counts and the matches say, [B, T, 3, V], and the share of each, [B, T, 3]; f32.

        Arguments as for `forward`. Where nothing matches, the last has no probabilities and no share.
        """
        counted = (self.trust(x).float() * self.counted(seen.known, x, folds)).softmax(dim=-1)
        matched, lengths = self.matches(seen.history, seen.positions, self.vocab_size)
        layers, matches = self.share(x).float().unbind(dim=-1)  # [B, T]
        matches = (matches + self.worth.float()[lengths]).masked_fill(lengths == 0, -torch.inf)
        shares = torch.stack((layers, torch.zeros_like(layers), matches), dim=-1).softmax(dim=-1)
        return torch.stack((logits.float().softmax(dim=-1), counted, matched), dim=-2), shares

    def counted(self, known: Tensor, x: Tensor, folds: Tensor | None = None) -> Tensor:
        """The logarithm of the probability of each token of the vocabulary by the counts: [B, T, V], f32."""
        nodes = self._nodes(known, x.shape[1])  # [B, T, n]: shortest context first
        met, total, variety = (values[nodes] for values in self.all.buffers())  # [B, T, n, V], [B, T, n], [B, T, n]
        if folds is not None and self.own is not None:
            places = nodes + folds[:, None, None] * (len(self.contexts) + 1)
            own, total, variety = (values[places] for values in self.own.buffers())
            met = met - own
        strength = self.strength(x).float() + self.variety * variety
        alpha = strength.clamp(-HIGHEST_STRENGTH, HIGHEST_STRENGTH).exp()
        passed_on = alpha / (total + alpha)  # [B, T, n]: the share of the shorter context
        # What reaches each length from the longest: 1, passed_on_n, passed_on_n · passed_on_{n−1} …
        reach = torch.cat((torch.ones_like(alpha[..., :1]), passed_on.flip(-1).cumprod(-1)), dim=-1).flip(-1)
        weights = reach[..., 1:] / (total + alpha)
        mixed: Tensor = (weights.unsqueeze(-2) @ met.float()).squeeze(-2)  # [B, T, V]
        return (mixed + reach[..., :1] / self.vocab_size).clamp(min=LEAST).log()

    def _nodes(self, known: Tensor, time: int) -> Tensor:
        """The row of a table for the context of each length, of each place; the last row where it was not met."""
        before = known.shape[1] - time
        digits = torch.stack([known[:, before - back :][:, :time] + 1 for back in range(self.longest)], dim=-1)
        keys = torch.where(digits.cummin(-1).values > 0, (digits * self.powers).cumsum(-1), -1)
        places = torch.searchsorted(self.contexts, keys).clamp_(max=len(self.contexts) - 1)
        nodes = torch.where(self.contexts[places] == keys, places, len(self.contexts))
        return torch.cat((torch.zeros_like(nodes[..., :1]), nodes), dim=-1)

    def _hold(self, contexts: Tensor, widths: Tensor, tokens: Tensor, counts: Tensor) -> None:
        """Takes up counts, and lays them out for looking up."""
        for name, values in (("contexts", contexts), ("widths", widths), ("tokens", tokens), ("counts", counts)):
            self.register_buffer(name, values)
        self.all = Lookup(widths, tokens, counts, self.vocab_size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Makes room for as many contexts as are loaded, if they can be counts of this vocabulary."""
        found = (state_dict.get(prefix + name) for name in ("contexts", "widths", "tokens", "counts"))
        held = [
            values.to(self.powers.device)
            for values in found
            if isinstance(values, Tensor) and values.dim() == 1 and not values.is_floating_point()
        ]
        if len(held) == 4:
            contexts, widths, tokens, counts = held
            if (
                not all(map(torch.equal, held, (self.contexts, self.widths, self.tokens, self.counts)))
                and 0 < len(contexts) == len(widths) <= max(1, LARGEST_TABLE // self.vocab_size)
                and len(tokens) == len(counts) == int(widths.clamp(min=0).sum())
                and all(bool((values >= 0).all()) for values in (widths, tokens, counts))
                and bool((tokens < self.vocab_size).all())
            ):
                self._hold(contexts, widths, tokens, counts)
        super()._load_from_state_dict(state_dict, prefix, *others)


class Lookup(nn.Module):
    """Counts laid out as a table: a row for each context, and an empty one behind them.

    Args:
        widths: [N], as `NGrams` has them.
        tokens: [sum of widths], likewise.
        counts: [sum of widths], likewise.
    """

    table: Tensor
    """[N + 1, V]"""
    totals: Tensor
    """[N + 1], the sum of each row"""
    varieties: Tensor
    """[N + 1], log(1 + how many of a row are not 0)"""

    def __init__(self, widths: Tensor, tokens: Tensor, counts: Tensor, vocab_size: int) -> None:
        super().__init__()
        # bf16 tells counts up to 256 apart, and higher ones to a part in 256.
        table = torch.zeros(len(widths) + 1, vocab_size, dtype=torch.bfloat16, device=counts.device)
        if len(tokens):
            table[_rows(widths), tokens.long()] = counts.to(table.dtype)
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("totals", table.sum(1, dtype=torch.float32), persistent=False)
        self.register_buffer("varieties", (table > 0).sum(1).float().log1p(), persistent=False)


class Folds(nn.Module):
    """What each fold has of the counts, and what is left without it; fold after fold.

    Args:
        everything: the counts of all folds.
        widths: [N], as `NGrams` has them.
        tokens: [sum of widths], likewise.
        counts: [F, sum of widths], those of each fold.
    """

    table: Tensor
    """[F · (N + 1), V], what the fold has; where that is more than 255, so many of it"""
    totals: Tensor
    """[F · (N + 1)], the sum of what the others have in each row"""
    varieties: Tensor
    """[F · (N + 1)], log(1 + how many that is not 0 for)"""

    def __init__(self, everything: Lookup, widths: Tensor, tokens: Tensor, counts: Tensor) -> None:
        super().__init__()
        rows, columns = _rows(widths), tokens.long()
        table = torch.zeros(len(counts), *everything.table.shape, dtype=torch.uint8, device=counts.device)
        table[:, rows, columns] = counts.clamp(max=255).to(table.dtype)
        left = everything.table[rows, columns].float() - table[:, rows, columns]  # [F, sum of widths]
        totals = torch.zeros(table.shape[:2], device=counts.device)
        varieties = totals.index_add(1, rows, (left > 0).float()).log1p()
        self.register_buffer("table", table.flatten(0, 1), persistent=False)
        self.register_buffer("totals", totals.index_add(1, rows, left).flatten(), persistent=False)
        self.register_buffer("varieties", varieties.flatten(), persistent=False)


def _rows(widths: Tensor) -> Tensor:
    """The row of each entry."""
    return torch.arange(len(widths), device=widths.device).repeat_interleave(widths.long())


class Level(NamedTuple):
    """The contexts of one length, in the order of their numbers, and what was counted after them."""

    contexts: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    """[folds, sum of widths]"""


def count_levels(folds: Sequence[Ids], vocab_size: int, longest: int, meetings: int) -> list[Level] | None:
    """Counts what follows the contexts that were met so often.

    Args:
        folds: [N] each; no n-gram goes from one to the next.
        longest: the tokens of the longest context.
        meetings: how often a context was met, at least.

    Returns:
        Contexts of 0 tokens, of 1 and so on; None where there are too many for a table.
    """
    ids = np.concatenate(folds).astype(np.int64)
    fold_of = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    begins = np.flatnonzero(np.diff(fold_of, prepend=-1))
    contexts = np.zeros(1, dtype=np.int64)
    nodes = np.zeros(len(ids), dtype=np.int64)  # of the context before each token; −1 where it is not kept
    levels: list[Level] = []
    for _ in range(longest + 1):
        places = np.flatnonzero(nodes >= 0)
        grams = nodes[places] * vocab_size + ids[places]
        met = np.bincount(grams, minlength=len(contexts) * vocab_size)
        different = np.flatnonzero(met)
        numbers = np.full(len(met), -1, dtype=np.int64)
        numbers[different] = np.arange(len(different))
        by_fold = np.bincount(fold_of[places] * len(different) + numbers[grams], minlength=len(folds) * len(different))
        levels.append(
            Level(
                contexts,
                np.bincount(different // vocab_size, minlength=len(contexts)),
                different % vocab_size,
                by_fold.reshape(len(folds), len(different)),
            )
        )
        kept = different[met[different] >= meetings]
        if not len(kept):
            break
        # An n-gram that is kept is the context of the token after it.
        contexts = contexts[kept // vocab_size] * vocab_size + kept % vocab_size + 1
        if (sum(len(level.contexts) for level in levels) + len(contexts)) * vocab_size > LARGEST_TABLE:
            return None
        numbers[:] = -1
        numbers[kept] = np.arange(len(kept))
        nodes = np.full(len(ids) + 1, -1, dtype=np.int64)
        nodes[places + 1] = numbers[grams]
        nodes = nodes[:-1]
        nodes[begins] = -1
    return levels
