"""Controls: settings that change the odds of the next token by the text so far, in Python, for every engine alike.

A control adds biases to the logits, after the repetition penalty and before temperature and filters; −∞ forbids a
token. A new one is a setting of the section `control`, or `repetition`, and a function in `MAKERS` that makes it.
Where none is in force, nothing here is run.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from tinychat.config.settings import SETTINGS, Settings
from tinychat.generate.boosts import Boosts
from tinychat.generate.vocabulary import Vocabulary

FORBIDDEN = float("-inf")
"""Bias of a token that must not come next."""
LONGEST_MATCH = 50
"""Tokens that DRY compares at most: the penalty grows with the power of their number."""
MAX_PENALTY = 1e30
"""Largest penalty of DRY, far above any logit and far below the largest float."""


class Control(Protocol):
    """One control, in force."""

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        """Add to the biases [V] of the next token after `ids`, of which those from `start` on are the answer's.

        It is called before each token; `ids` may also be shorter than before, or others: a control that keeps a state
        between calls checks which ids the state is of.
        """


class Controls:
    """The controls in force."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        vocabulary: Vocabulary | None,
        logit_bias: Mapping[int, float] | None = None,
        first_ids: Collection[int] | None = None,
    ) -> "Controls | None":
        """Return the controls that the settings, the biases of tokens and the ids of a first token put in force.

        None if there are none, or no vocabulary.
        """
        active = [name for name in MAKERS if getattr(settings, name) != SETTINGS[name].neutral]
        makers = dict.fromkeys(MAKERS[name] for name in active)  # one control may be that of several settings
        if vocabulary is None or not (active or logit_bias or first_ids is not None):
            return None
        controls = [make(settings, vocabulary) for make in makers]
        if logit_bias:
            controls.append(TokenBiases(logit_bias))
        if first_ids is not None:
            controls.append(FirstToken(first_ids))
        return cls(controls, vocabulary)

    def __init__(self, controls: Sequence[Control], vocabulary: Vocabulary) -> None:
        self._controls, self._zeros = controls, bytes(4 * vocabulary.size)
        self._all_forbidden = array("f", [FORBIDDEN]).tobytes() * vocabulary.size

    @property
    def is_done(self) -> bool:
        """Whether no control adjusts the token for which `biases` was last called, nor any after it."""
        return all(getattr(control, "is_done", False) for control in self._controls)

    def biases(self, ids: Sequence[int], start: int) -> "array[float] | None":
        """Return the biases [V] of the next token; None if every token is forbidden, so that the answer ends here."""
        biases = array("f", self._zeros)
        for control in self._controls:
            control.adjust(biases, ids, start)
        return None if biases.tobytes() == self._all_forbidden else biases


def allow_only(biases: "array[float]", allowed: Iterable[int]) -> None:
    """Forbid all tokens but those allowed."""
    kept = {id: biases[id] for id in allowed}
    biases[:] = array("f", [FORBIDDEN]) * len(biases)
    for id, bias in kept.items():
        biases[id] = bias


# --- penalties --------------------------------------------------------------------------------------------------------


class PresencePenalty:
    """Subtract the penalty from each token that is in the answer already (OpenAI's API reference)."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._penalty = settings.presence_penalty

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        for id in set(ids[start:]):
            biases[id] -= self._penalty


class FrequencyPenalty:
    """Subtract the penalty from each token as often as it is in the answer already (OpenAI's API reference)."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._penalty = settings.frequency_penalty

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        for id, count in Counter(ids[start:]).items():
            biases[id] -= count * self._penalty


class TokenBiases:
    """Add a bias to the logit of each of some tokens (`logit_bias` of OpenAI's API reference)."""

    def __init__(self, biases: Mapping[int, float]) -> None:
        self._biases = biases

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        for id, bias in self._biases.items():
            biases[id] += bias


class FirstToken:
    """Forbid all but some tokens at the beginning of an answer."""

    def __init__(self, allowed: Collection[int]) -> None:
        self._allowed, self.is_done = allowed, False

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        self.is_done = len(ids) > start
        if not self.is_done:
            allow_only(biases, self._allowed)


class NoRepeatNgram:
    """Forbid each token that would repeat n tokens of the prompt or the answer (Paulus et al. 2017, §2.5).

    As in `transformers`, but an answer may always end: its end tokens are never forbidden.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._n, self._end_ids = settings.no_repeat_ngram, vocabulary.end_ids

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        before = self._n - 1
        if before == 0:
            repeated = set(ids)
        else:
            last = list(ids[len(ids) - before :])
            ends = [end for end in _find(ids, ids[-1]) if end >= before]
            repeated = {ids[end] for end in ends if list(ids[end - before : end]) == last}
        for id in repeated - self._end_ids:
            biases[id] = FORBIDDEN


class Dry:
    """DRY, "don't repeat yourself" (text-generation-webui, pull request 5677): penalize what would go on repeating.

    If the last n tokens occurred before, the token that followed them there gets multiplier · base^(n − allowed length)
    subtracted, from n = allowed length on. The n tokens lie between sequence breakers, and no breaker is penalized. The
    tokens with one of the texts of `dry_sequence_breakers` in them are breakers, and special tokens.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._multiplier, self._base = settings.dry_multiplier, settings.dry_base
        self._allowed = settings.dry_allowed_length
        self._breakers = vocabulary.remember(_find_breakers, settings.dry_sequence_breakers)

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        if ids[-1] in self._breakers:
            return
        lengths: dict[int, int] = {}
        for end in _find(ids, ids[-1]):
            if ids[end] in self._breakers:
                continue
            length = 1
            while (
                length < min(end, LONGEST_MATCH)
                and ids[end - length - 1] == ids[-length - 1]
                and ids[-length - 1] not in self._breakers
            ):
                length += 1
            lengths[ids[end]] = max(length, lengths.get(ids[end], 0))
        for id, length in lengths.items():
            if length >= self._allowed:
                biases[id] -= min(self._multiplier * self._base ** (length - self._allowed), MAX_PENALTY)


def _find_breakers(vocabulary: Vocabulary, texts: tuple[str, ...]) -> frozenset[int]:
    """Return the ids of sequence breakers; a text of several tokens breaks at its last one."""
    encoded = [text.encode() for text in texts]
    found = {id for id, piece in enumerate(vocabulary.pieces) if any(text in piece for text in encoded)}
    last = {ids[-1] for ids in map(vocabulary.tokenizer.encode, texts) if ids}
    return vocabulary.silent_ids | vocabulary.end_ids | found | last


def _find(ids: Sequence[int], id: int) -> Iterable[int]:
    """Yield the positions after each occurrence of an id but the last one of `ids`."""
    position, last = 0, len(ids) - 1
    while True:
        try:
            position = ids.index(id, position, last) + 1
        except ValueError:
            return
        yield position


def _guide(settings: Settings, vocabulary: Vocabulary) -> Control:
    from tinychat.generate.guide import Guided  # which imports numpy

    return Guided(settings, vocabulary)


MAKERS: Mapping[str, Callable[[Settings, Vocabulary], Control]] = {
    "presence_penalty": PresencePenalty,
    "frequency_penalty": FrequencyPenalty,
    "no_repeat_ngram": NoRepeatNgram,
    "dry_multiplier": Dry,
    "boost": Boosts,
    "begin": _guide,
    "regex": _guide,
}
"""By setting: makes the control of settings in which it is not neutral."""
