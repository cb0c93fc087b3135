"""Boosts: a bias for a text, the same however it is cut into tokens."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from tinychat.config.settings import Settings, split_boost
from tinychat.generate.vocabulary import Vocabulary


class _State(NamedTuple):
    """How far the end of a text matches the boosted one."""

    lengths: tuple[int, ...] = ()
    """Numbers of characters of the boosted text that match: several if it repeats itself."""
    is_boundary: bool = True
    """Whether no letter or digit comes before, so that a word may begin."""


class _Bias:
    """The biases of all tokens for one boost, by the state of the text before; kept for all answers."""

    def __init__(self, vocabulary: Vocabulary, text: str, bias: float) -> None:
        self._text, self._bias, self._vocabulary = text.casefold(), bias, vocabulary
        self._tokens = [piece.decode("utf-8", "ignore").casefold() for piece in vocabulary.pieces]
        self._known: dict[_State, dict[int, float]] = {}

    def of_tokens(self, state: _State, incomplete: bytes) -> dict[int, float]:
        """Return the biases that are not 0, by id, after a state; `incomplete` is the begun character after it."""
        if incomplete:  # what a token adds depends on the bytes before
            pieces = self._vocabulary.pieces
            return self._compute(state, [(incomplete + piece).decode("utf-8", "ignore").casefold() for piece in pieces])
        if state not in self._known:
            self._known[state] = self._compute(state, self._tokens)
        return self._known[state]

    def _compute(self, state: _State, tokens: Sequence[str]) -> dict[int, float]:
        before, found = self._worth(state), dict[int, float]()
        for id, token in enumerate(tokens):
            if id in self._vocabulary.end_ids:
                found[id] = -before
            elif token and (state.lengths or self._text[0] in token):  # others neither go on with the text nor begin it
                after, times = self.advance(state, token)
                found[id] = times * self._bias + self._worth(after) - before
        return {id: bias for id, bias in found.items() if bias}

    def _worth(self, state: _State) -> float:
        """Return the part of the bias that the tokens up to a state have got."""
        return self._bias * max(state.lengths, default=0) / len(self._text)

    def advance(self, state: _State, text: str) -> tuple[_State, int]:
        """Return the state after more text in folded case, and how often the boosted text was completed in it."""
        (lengths, is_boundary), times = state, 0
        for char in text:
            longer = [length + 1 for length in lengths if self._text[length] == char]
            if self._text[0] == char and (is_boundary or not char.isalnum()):
                longer.append(1)
            if len(self._text) in longer:
                longer = []
                times += 1
            lengths, is_boundary = tuple(longer), not char.isalnum()
        return _State(lengths, is_boundary), times


class Boost:
    """Adds a bias to the tokens of a text, in either case of letters; a word counts only where it begins.

    Each token gets the part of the bias that its characters are of the text, so that all together get the whole. If
    the text is not completed, the token at which it is left takes back what those before got: other texts neither gain
    nor lose. A text that is one token gets the whole at once, as from `SequenceBiasLogitsProcessor` of `transformers`.
    """

    def __init__(self, text: str, bias: float, vocabulary: Vocabulary) -> None:
        self._bias, self._vocabulary = vocabulary.remember(_Bias, text, bias), vocabulary
        self._restart()

    def _restart(self) -> None:
        self._ids: list[int] = []  # of the answer, which these are of
        self._state, self._incomplete, self._decoder = _State(), b"", self._vocabulary.tokenizer.stream()

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        """See `Control.adjust`."""
        answer = list(ids[start:])
        if answer[: len(self._ids)] != self._ids:
            self._restart()
        for id in answer[len(self._ids) :]:
            self._state, _ = self._bias.advance(self._state, self._decoder.push(id).casefold())
            self._incomplete = self._incomplete + self._vocabulary.pieces[id] if self._decoder.pending else b""
        self._ids = answer
        for id, bias in self._bias.of_tokens(self._state, self._incomplete).items():
            biases[id] += bias


class Boosts:
    """The boosts in force."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._boosts = [Boost(*split_boost(text), vocabulary) for text in settings.boost]

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        """See `Control.adjust`."""
        for boost in self._boosts:
            boost.adjust(biases, ids, start)
