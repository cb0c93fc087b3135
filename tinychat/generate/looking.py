"""What is seen inside a model: plain numbers, whatever engine they come from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """What a head of attention looks at. Shares are of its weights: means over the queries, but for the first two.

    These leave out the first two queries of a longer sequence, which have hardly anything else to look at.
    """

    first: float
    """share on the first token"""
    entropy: float
    """of the weights of a query, in bits"""
    cells: tuple[tuple[float, ...], ...]
    """[rows][columns], neighbours taken together: the sum over keys of a column, the mean over queries of a row"""
    previous: float = 0.0
    """share on the token before; this one and those below are for self-attention"""
    itself: float = 0.0
    same: float = 0.0
    """share on earlier tokens that are the same as the query's, where there are some"""
    followed: float = 0.0
    """share on what followed these: an induction head (Olsson et al. 2022) looks there"""
    distance: float = 0.0
    """tokens back"""


@dataclass(frozen=True, slots=True)
class Voice:
    """What one part of a model would say next."""

    part: str
    """`embeddings`, `layer 1` and so on; then `counts`, `matches` and `mixture`, where these are mixed with layers"""
    likeliest: tuple[tuple[int, float], ...]
    """ids and their probabilities; none where the part has nothing to say"""
    probability: float
    """of the token that is asked about"""
    rank: int
    """of that token; 1 is the likeliest"""
    share: float | None = None
    """of the part in the mixture; None: it is no part of one"""
