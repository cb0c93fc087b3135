"""A guessing game: a person says how a text goes on, a model has its odds, and both pay for what comes in bits.

After C. E. Shannon, "Prediction and Entropy of Printed English" (Bell System Technical Journal 30, 1951): guesses, and
whether they were right, are enough for a twin of the person, who would guess alike, to write the text. So the person
pays what telling that takes. Each guess is right with a probability that follows from how often earlier guesses of its
kind were, a right one costs −log₂ of it, a wrong one −log₂ of the rest. The model pays −log₂ of its probability of what
comes. Over all that could come, 2 to the minus bits is 1 for either: nobody can win by the rules alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tinychat.generate.engine import TokenProbability
from tinychat.tokenizer.tokenizer import Tokenizer

Kind = Literal["single", "sure", "again"]
"""a first guess, one that the person is sure of, one after another that was wrong"""

PRIOR: dict[Kind, tuple[float, float]] = {"single": (1.0, 1.0), "sure": (4.5, 0.5), "again": (0.5, 1.5)}
"""right and wrong guesses of each kind that are counted before the first: 1 of 2, 9 of 10, 1 of 4"""
CHOICES = 7
"""pieces to choose from; what is none of them is another choice"""
LEAST = 1e-12
"""probability, for what the model takes to be impossible"""
ELSE = ""
"""the guess that none of the choices comes"""


@dataclass(frozen=True)
class Outcome:
    """What came of a guess.

    `text` is what it was about: the guess where it was right or wrong, what came where it was told. `probability` is
    the model's, of what came; 0 while that is not known.
    """

    verdict: Literal["right", "wrong", "told"]
    text: str
    probability: float = 0.0


@dataclass
class Score:
    """What has been paid so far, in bits, for so many characters."""

    person: float = 0.0
    model: float = 0.0
    characters: int = 0

    @property
    def winner(self) -> Literal["person", "model", "nobody"]:
        """Who paid less, to a tenth of a bit."""
        lead = round(self.model - self.person, 1)
        return "nobody" if not lead else "person" if lead > 0 else "model"


class Game:
    """One text, of which the beginning is known.

    In a model of characters any of them may be guessed; in another one what comes is one of a few pieces, the
    likeliest to the model, or none of them.

    Args:
        tokenizer: of the model.
        ids: the tokens of the text, with what the model has read before it.
        start: the place of the first token to guess, at least 1.
        odds: what the model thinks may come after some tokens, the likeliest first. That no text comes (its end, a mark
            in a conversation) is left out of them: it is known that some does.
        beginning: of the text, as the person sees it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        ids: Sequence[int],
        start: int,
        odds: Callable[[Sequence[int]], Sequence[TokenProbability]],
        beginning: str = "",
    ) -> None:
        self.score = Score()
        self.text = beginning
        """what is known: the beginning, and what has come since"""
        self.choices: tuple[str, ...] = ()
        """the pieces that may be guessed at this place; none where any character may be"""
        self.left: frozenset[str] = frozenset()
        """what has not been guessed yet at this place"""
        self._tokenizer, self._ids, self._odds = tokenizer, ids, odds
        self._place = start - 1
        self._decoder = tokenizer.stream()
        self._counts = {kind: list(counts) for kind, counts in PRIOR.items()}
        self._silent = {id for id in range(tokenizer.vocab_size) if not tokenizer.decode([id])}
        self._characters: frozenset[str] = frozenset()
        if tokenizer.kind == "char":
            texts = map(tokenizer.token_text, range(tokenizer.vocab_size))
            self._characters = frozenset(text for text in texts if len(text) == 1)
        self._go_on()

    @property
    def is_over(self) -> bool:
        """Whether the text has ended."""
        return self._place >= len(self._ids)

    @property
    def bits(self) -> float:
        """What the person has paid, with the wrong guesses at this place."""
        return self.score.person + (0.0 if self.is_over else self._spent)

    @property
    def has_choices(self) -> bool:
        """Whether pieces are to be chosen from; else characters are typed."""
        return not self._characters

    @property
    def rest(self) -> str:
        """What has not come yet."""
        return self._tokenizer.decode(self._ids[self._place :])

    def guess(self, text: str, *, sure: bool = False) -> list[Outcome]:
        """Guesses the next characters, each once those before it have come, up to the first wrong one; or one choice.

        Args:
            text: characters, of which several are sure; or one of the choices, or `ELSE`.
            sure: whether the person is sure of a choice.
        """
        guesses = [text] if self.has_choices else list(text)
        outcomes: list[Outcome] = []
        for guess in guesses:
            if self.is_over or (outcomes and outcomes[-1].verdict != "right"):
                break
            again = self.left != self._all
            kind: Kind = "again" if again else "sure" if sure or len(guesses) > 1 else "single"
            outcomes += self._try(guess, kind)
        return outcomes

    def give_up(self) -> list[Outcome]:
        """Lets the next character or piece be told: it costs as much as any other one that is left."""
        self._spent += math.log2(len(self.left)) + self._beside
        return [self._tell("told")]

    def _try(self, guess: str, kind: Kind) -> list[Outcome]:
        if guess not in self.left:  # it is known to be wrong
            return [Outcome("wrong", guess)]
        counts = self._counts[kind]
        is_right = guess == self._truth
        chance = counts[0] / sum(counts)
        counts[0 if is_right else 1] += 1
        self._spent -= math.log2(chance if is_right else 1 - chance)
        if is_right:
            self._spent += self._beside
            return [self._tell("told" if guess == ELSE else "right")]
        self.left -= {guess}
        return [Outcome("wrong", guess), *(self.give_up() if len(self.left) == 1 else ())]

    def _tell(self, verdict: Literal["right", "told"]) -> Outcome:
        """What comes is known now, and paid for."""
        outcome = Outcome(verdict, self._text, self._probability)
        self.score.person += self._spent
        self.score.model -= math.log2(self._probability)
        self.score.characters += len(self._text)
        self.text += self._text
        self._go_on()
        return outcome

    def _go_on(self) -> None:
        """Goes to the next token; one that is only a part of a character is known at once, and costs nobody a bit."""
        self._place += 1
        while not self.is_over:
            id = self._ids[self._place]
            is_whole = not self._decoder.pending
            self._text = self._decoder.push(id)
            if is_whole and self._text:
                self._begin(id)
                return
            self.text += self._text
            self._place += 1

    def _begin(self, id: int) -> None:
        """What may be guessed at this place, and what it would cost."""
        odds = [one for one in self._odds(self._ids[: self._place]) if one.id not in self._silent]
        chances = {one.id: math.exp(one.logprob) for one in odds}
        text = sum(chances.values())
        self._probability = max(chances[id] / text, LEAST)
        self._spent, self._beside = 0.0, 0.0
        if not self.has_choices:
            self._truth, self._all = self._text, self._characters
        else:
            texts = {one.id: self._tokenizer.token_text(one.id) for one in odds[:CHOICES]}
            self.choices = tuple(sorted(texts.values()))  # by which nothing is told of how likely they are
            self._truth = texts.get(id, ELSE)
            self._all = frozenset({*self.choices, ELSE})
            if self._truth == ELSE:  # which of all the others it is costs the person what it costs the model
                others = 1 - sum(chances[one] for one in texts) / text
                self._beside = max(0.0, math.log2(max(others, LEAST) / self._probability))
        self.left = self._all
