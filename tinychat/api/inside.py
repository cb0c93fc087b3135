"""What a look inside a model shows: records with numpy arrays, whose axes are named in brackets."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinychat.session.inspection import ScoredText

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Score(ScoredText):
    """How likely a model finds a text; `Model.score` returns one.

    `tokens` are its tokens, each with `id`, `text`, `logprob` and `entropy`; the first one is not scored. `loss` is
    the mean surprisal in nats per scored token, `perplexity` its exponential, and `bits_per_character` compares models
    whatever their tokens.
    """

    text: str = ""
    model: str = ""
    """Name of the model, or its path."""

    @property
    def logprobs(self) -> "NDArray[np.float64]":
        """Log-probabilities in nats, [tokens]; NaN where a token is not scored."""
        return _array([token.logprob for token in self.tokens])

    @property
    def entropies(self) -> "NDArray[np.float64]":
        """Entropies of the predictions in nats, [tokens]; NaN where a token is not scored."""
        return _array([token.entropy for token in self.tokens])

    def __repr__(self) -> str:
        bits = self.bits_per_character
        per_character = "" if bits is None else f" · {bits:.3f} bits/char"
        return f"<Score of {len(self.tokens)} tokens · perplexity {self.perplexity:,.2f}{per_character} · {self.model}>"


def _array(values: "list[float | None]") -> "NDArray[np.float64]":
    import numpy as np

    return np.array([np.nan if value is None else value for value in values])
