"""In a chat, what is learned of what people say: as much of it as a recipe wants, beside all of the answers.

Answers are what a chat model is for, and what people say is far harder to guess: left whole, it would make up most of
the loss. A target that is dropped at random weighs as much, on average, as one that counts by its share.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import Ids
from tinychat.tokenizer.tokenizer import Tokenizer


class Asked(NamedTuple):
    """Chooses what is learned; the choice follows from the seed and the place of the row alone."""

    user: int
    bot: int
    share: float
    seed: int

    def learned(self, ids: Ids, place: int) -> npt.NDArray[np.bool_]:
        """[T], for each id but the first of a row of T + 1 whether it is to be predicted.

        Args:
            ids: of the row; before its first mark, all is learned.
            place: of the row in the whole run.
        """
        is_mark = (ids == self.user) | (ids == self.bot)
        last = np.maximum.accumulate(np.where(is_mark, np.arange(len(ids)), 0))
        answered = np.asarray(ids[last][1:] != self.user)
        random = np.random.Generator(np.random.PCG64((self.seed, place)))
        return answered | (random.random(len(answered)) < self.share)


def find_asked(share: float, template: ChatTemplate | None, tokenizer: Tokenizer, seed: int) -> Asked | None:
    """What chooses for a text; None where all of it is learned, or nothing marks who speaks."""
    if share >= 1 or template is None:
        return None
    user, bot = tokenizer.token_id(template.user), tokenizer.token_id(template.assistant)
    return None if user is None or bot is None else Asked(user, bot, share, seed)
