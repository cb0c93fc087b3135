"""The Shannon game: a person and a model predict a text, and both pay for it in bits.

After C. E. Shannon, "Prediction and Entropy of Printed English" (Bell System Technical Journal 30, 1951): a person's
guesses, each marked right or wrong, are a code for the text, since an identical twin would make the same guesses. The
person pays the length of that code: the probability p that a guess is right is estimated from earlier guesses of its
kind; a right guess costs −log₂ p, a wrong one −log₂ (1 − p). The model pays −log₂ of its probability of the text. Both
are complete codes: the sum of 2^−bits over all continuations is 1, so that the rules favour neither.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tinychat.generate.engine import TokenProbability
from tinychat.tokenizer.tokenizer import Tokenizer

Kind = Literal["single", "sure", "again"]
"""A first guess, a guess that the person is sure of, a guess after a wrong one."""

PRIOR: dict[Kind, tuple[float, float]] = {"single": (1.0, 1.0), "sure": (4.5, 0.5), "again": (0.5, 1.5)}
"""Initial counts of right and wrong guesses of each kind, for estimates of 1/2, 9/10 and 1/4."""
CHOICES = 7
"""Number of tokens to choose from, besides `OTHER`."""
MIN_PROBABILITY = 1e-12
"""Probability of a text that the model takes to be impossible."""
OTHER = ""
"""The guess that the next token is none of the choices."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a guess."""

    verdict: Literal["right", "wrong", "revealed"]
    text: str
    """The guess if it was right or wrong, or else the text that was revealed."""
    probability: float = 0.0
    """The model's probability of the text that came; 0 if the guess was wrong."""


@dataclass
class GameScore:
    """The bits paid so far, and the number of characters that they paid for."""

    person: float = 0.0
    model: float = 0.0
    characters: int = 0

    @property
    def winner(self) -> Literal["person", "model", "nobody"]:
        """The side that paid less, to a tenth of a bit."""
        lead = round(self.model - self.person, 1)
        return "nobody" if not lead else "person" if lead > 0 else "model"


class Game:
    """A game over one text, of which the beginning is known.

    With a character tokenizer, the person guesses any character; with others, one of the likeliest tokens, or `OTHER`.
    `ids` are those of all that the model reads before the text, and of the text; guessing begins at index `start`, at
    least 1. `probabilities` returns the model's probabilities of the token after some ids, the likeliest first; end and
    role tokens are excluded, since more text always follows. `beginning` is what the person sees of the text at first.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        ids: Sequence[int],
        start: int,
        probabilities: Callable[[Sequence[int]], Sequence[TokenProbability]],
        beginning: str = "",
    ) -> None:
        self.score = GameScore()
        self.text = beginning
        """The known text: the beginning, and all that was revealed since."""
        self.choices: tuple[str, ...] = ()
        """Texts of the tokens to choose from; empty if any character may be guessed."""
        self.remaining: frozenset[str] = frozenset()
        """Possible guesses that have not been made at this token."""
        self._tokenizer, self._ids, self._probabilities = tokenizer, ids, probabilities
        self._index = start - 1
        self._decoder = tokenizer.stream()
        self._counts = {kind: list(counts) for kind, counts in PRIOR.items()}
        # Within a text: at its beginning, a token that is only a space would have no text either.
        self._special_ids = {
            id
            for id in range(tokenizer.vocab_size)
            if tokenizer.is_special(id) or not tokenizer.decode([id], begins_text=False)
        }
        texts = map(tokenizer.token_text, range(tokenizer.vocab_size)) if tokenizer.kind == "char" else ()
        self._characters = frozenset(text for text in texts if len(text) == 1)
        self.has_choices = not self._characters
        """Whether tokens are chosen; otherwise, characters are typed."""
        self._advance()

    @property
    def is_over(self) -> bool:
        return self._index >= len(self._ids)

    @property
    def bits(self) -> float:
        """The bits that the person has paid, those of wrong guesses at this token included."""
        return self.score.person + (0.0 if self.is_over else self._spent)

    @property
    def rest(self) -> str:
        """The text that is not known yet."""
        return self._tokenizer.decode(self._ids[self._index :])

    def guess(self, text: str, *, sure: bool = False) -> list[Outcome]:
        """Guess the next characters, one by one up to the first wrong one, or else one of the choices or `OTHER`.

        A person who types several characters is taken to be sure of them. There is at least one outcome unless the
        game is over.
        """
        guesses = [text] if self.has_choices else list(text)
        outcomes: list[Outcome] = []
        for guess in guesses:
            if self.is_over or (outcomes and outcomes[-1].verdict != "right"):
                break
            kind: Kind = "sure" if sure or len(guesses) > 1 else "single"
            outcomes += self._guess_one(guess, kind if self.remaining == self._candidates else "again")
        return outcomes

    def give_up(self) -> list[Outcome]:
        """Reveal the next character or token; it costs as much as each of the remaining guesses."""
        self._spent += math.log2(len(self.remaining)) + self._other_bits
        return [self._reveal("revealed")]

    def _guess_one(self, guess: str, kind: Kind) -> list[Outcome]:
        if guess not in self.remaining:  # known to be wrong, and free
            return [Outcome("wrong", guess)]
        counts = self._counts[kind]
        is_right = guess == self._truth
        p_right = counts[0] / sum(counts)
        counts[0 if is_right else 1] += 1
        self._spent -= math.log2(p_right if is_right else 1 - p_right)
        if is_right:
            self._spent += self._other_bits
            return [self._reveal("revealed" if guess == OTHER else "right")]
        self.remaining -= {guess}
        return [Outcome("wrong", guess), *(self.give_up() if len(self.remaining) == 1 else ())]

    def _reveal(self, verdict: Literal["right", "revealed"]) -> Outcome:
        """Add the next text to the known one and its bits to the score, and advance."""
        outcome = Outcome(verdict, self._text, self._probability)
        self.score.person += self._spent
        self.score.model -= math.log2(self._probability)
        self.score.characters += len(self._text)
        self.text += self._text
        self._advance()
        return outcome

    def _advance(self) -> None:
        """Go to the next token to guess; tokens that hold parts of a character are revealed free of charge."""
        self._index += 1
        while not self.is_over:
            id = self._ids[self._index]
            is_complete = not self._decoder.pending
            self._text = self._decoder.push(id)
            if is_complete and self._text:
                self._prepare(id)
                return
            self.text += self._text
            self._index += 1

    def _prepare(self, id: int) -> None:
        """Compute the possible guesses at the token that has this id, and the bits to pay for it."""
        tokens = [one for one in self._probabilities(self._ids[: self._index]) if one.id not in self._special_ids]
        probabilities = {one.id: math.exp(one.logprob) for one in tokens}
        total = sum(probabilities.values())
        self._probability = max(probabilities[id] / total, MIN_PROBABILITY)
        self._spent, self._other_bits = 0.0, 0.0
        if not self.has_choices:
            self._truth, self._candidates = self._text, self._characters
        else:
            texts = {one.id: self._tokenizer.token_text(one.id) for one in tokens[:CHOICES]}
            self.choices = tuple(sorted(texts.values()))  # sorted, so as not to reveal the order of probabilities
            self._truth = texts.get(id, OTHER)
            self._candidates = frozenset({*self.choices, OTHER})
            if self._truth == OTHER:  # to name the token among all others costs the person as much as the model
                others = 1 - sum(probabilities[one] for one in texts) / total
                self._other_bits = max(0.0, math.log2(max(others, MIN_PROBABILITY) / self._probability))
        self.remaining = self._candidates
