"""From answers to streams of records: the loop that the REPL, the pipe and the JSON output share.

An `AnswerBatch` extends many answers at once with one engine, a call at a time; `drive` runs batches until all their
answers are finished.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from tinychat.config.settings import Settings
from tinychat.errors import TinychatError
from tinychat.events import Candidates, Finished, FinishReason, Notice, Record, SettingsChanged, Token
from tinychat.generate.answer import Answer
from tinychat.generate.beam_search import BeamSearch
from tinychat.generate.choices import Choices
from tinychat.generate.engine import Engine, next_logprobs, uniform
from tinychat.generate.healing import DRAW
from tinychat.pattern import find_pattern

MAX_CALL_SECONDS = 0.015
"""Duration of a call of the engine: keys and Ctrl-C act within this time."""
MIXED_CALL_SECONDS = 0.002
"""The same where some answers get one token a call, by their controls, and wait for others that get many."""


def count_sequences(settings: Settings) -> int:
    """Return the number of sequences that are extended for one answer: its beams, or the answers it is the best of."""
    if settings.choices:
        return 1
    return settings.num_beams if settings.num_beams > 1 or settings.greedy else settings.best_of


class AnswerBatch:
    """Answers that one engine extends together; answers may join at any time.

    `should_stop` is called before each call of the engine and each token; once it returns true, every answer ends as
    interrupted.
    """

    def __init__(self, engine: Engine, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.engine, self.should_stop = engine, should_stop
        self.answers: list[Answer] = []
        self._groups: dict[Answer, _BestOf] = {}
        self._searches: dict[Answer, BeamSearch] = {}
        self._choosing: set[Answer] = set()
        self._choices: dict[Answer, tuple[tuple[object, ...], Choices]] = {}  # with what they depend on
        self._next_slot = 0

    @property
    def num_sequences(self) -> int:
        """The number of sequences that are extended: an answer may have several."""
        beams = (self._searches[answer].num_beams for answer in self.answers if answer in self._searches)
        return len(self.answers) + sum(num - 1 for num in beams)

    def add(self, answer: Answer) -> None:
        """Add an answer; one that is alone reuses the KV cache of the previous answer."""
        settings = answer.request.settings
        num_candidates = 1 if settings.num_beams > 1 else count_sequences(settings)
        if num_candidates > 1:
            seeds = range(answer.request.seed, answer.request.seed + num_candidates)
            group = _BestOf(answer, [answer.sibling(seed) for seed in seeds])
            self._groups.update(dict.fromkeys(group.candidates, group))
            answers = group.candidates
        else:
            answers = [answer]
        answer.begin()
        for one in answers:
            if self.answers:
                self._next_slot += 1
            one.request.slot = self._next_slot
            one.begin()
            if settings.choices and not one.goes_by_sentences:
                self._choosing.add(one)
            elif settings.num_beams > 1 and one.healing is None:
                self._searches[one] = one.search()
            self.answers.append(one)

    def step(self) -> Iterator[tuple[Answer, Iterator[Record]]]:
        """Call the engine once; yield the new records of each answer. Finished answers leave the batch.

        The records must be consumed before the next answer is asked for.

        Raises:
            GenerationError: If the model gave NaN or infinite logits.
        """
        for answer, records in self._step():
            settings = answer.request.settings
            if settings.regex or settings.begin or settings.ban:
                records = _tell_unmet(answer, records)
            if group := self._groups.get(answer):
                yield group.answer, group.collect(answer, records)
            else:
                yield answer, records
        for answer in self.answers:
            if answer.finished is not None:
                self._forget(answer)
        self.answers = [answer for answer in self.answers if answer.finished is None]

    def _step(self) -> Iterator[tuple[Answer, Iterator[Record]]]:
        if any(answer.healing for answer in self.answers) and not self.should_stop():
            for answer in list(self.answers):
                if answer.healing and answer.finished is None:
                    yield answer, self._check(answer)
            self._heal()
        unfinished: list[Answer] = []
        stop, until = self.should_stop(), time.perf_counter() + MAX_CALL_SECONDS
        for answer in list(self.answers):  # an answer that joins meanwhile is extended in the next step
            if answer.finished is None:
                yield answer, self._check(answer, answer.refresh())
            if answer.finished is not None:  # it was removed
                continue
            search = self._searches.get(answer)
            if stop:
                yield answer, self._interrupt(answer)
            elif answer.request.left <= 0:
                yield answer, answer.finish("length")
            elif answer.is_over:
                yield answer, answer.finish("end")
            elif answer in self._choosing and answer.request.settings.choices:
                yield answer, self._choose(answer, until)
            elif search and search.is_over:
                yield answer, self._conclude(answer, search)
            else:
                unfinished.append(answer)
        if unfinished:
            searched = [(answer, self._searches.get(answer)) for answer in unfinished]
            requests = [search.requests if search else [answer.request] for answer, search in searched]
            top_logprobs = max((search or answer).top_logprobs for answer, search in searched)
            n = 1 if self._searches else max(answer.request.left for answer in unfinished)
            is_mixed = len({answer.request.biases is None for answer in unfinished}) == 2
            seconds = MIXED_CALL_SECONDS if is_mixed else MAX_CALL_SECONDS
            generated = iter(self.engine.extend(list(chain(*requests)), n, top_logprobs, seconds))
            for (answer, search), own in zip(searched, requests, strict=True):
                tokens = [next(generated) for _ in own]
                if search:
                    search.advance(tokens)
                elif answer.finished is None:  # it was not removed
                    yield answer, answer.update(tokens[0], self.engine, self.should_stop)

    def _conclude(self, answer: Answer, search: BeamSearch) -> Iterator[Record]:
        """End an answer with what was found; or search on, for the translation of the next source."""
        yield from answer.conclude(search.best, self.engine)
        if answer.finished is None:
            yield from answer.refresh()
            del self._searches[answer]
            if answer.request.settings.num_beams > 1:  # it may have been set meanwhile
                self._searches[answer] = answer.search()

    def _check(self, answer: Answer, records: Iterable[Record] = ()) -> Iterator[Record]:
        """Yield records, then check the answer before the engine extends all: an error concerns this one alone."""
        yield from records
        self.engine.check(answer.request)

    def _heal(self) -> None:
        """Choose how the answers begin that heal their prompts: a few calls of the engine, for all of them together."""
        healing = [(answer, answer.healing) for answer in self.answers if answer.healing]
        while waiting := [(answer.request, one, ids) for answer, one in healing if (ids := one.ids) is not None]:
            found = next_logprobs(self.engine, [(request, ids) for request, _, ids in waiting])
            for (_, one, _), logprobs in zip(waiting, found, strict=True):
                one.advance(logprobs)
        for answer, one in healing:
            # Candidates for one answer all begin alike: their log-probabilities are compared.
            request = (self._groups[answer].answer if answer in self._groups else answer).request
            answer.begin_as(one.choose(request.settings, uniform(request.seed, request.prompt_index, DRAW)))
            if request.settings.num_beams > 1:
                self._searches[answer] = answer.search()

    def _choose(self, answer: Answer, until: float) -> Iterator[Record]:
        """Weigh the choices of an answer until a time, so that other answers go on; then draw one."""
        choices = self._choices_of(answer)
        if choices.weigh(self.engine, lambda: time.perf_counter() >= until or self.should_stop()):
            yield from answer.choose(choices, self.engine)

    def _choices_of(self, answer: Answer) -> Choices:
        """Return the choices of an answer; those of another one if that differs in its random numbers alone."""
        request = answer.request
        settings = replace(request.settings, seed=None)
        key = (list(request.ids), request.source, request.end_ids, settings, answer.top_logprobs)
        if answer not in self._choices or self._choices[answer][0] != key:
            shared = next((choices for other, choices in self._choices.values() if other == key), None)
            self._choices[answer] = key, shared or answer.make_choices()
        return self._choices[answer][1]

    def remove(self, answer: Answer) -> list[Record]:
        """End an answer as interrupted, also during a step; return its last records, of what there is by now."""
        group = next((group for group in self._groups.values() if group.answer is answer), None)
        records: list[Record] = []
        for one in group.candidates if group else [answer]:
            if one.finished is None:
                ending = self._interrupt(one)
                records += group.collect(one, ending) if group else ending
            self._forget(one)
        self.answers = [one for one in self.answers if one.finished is None]
        return records

    def _interrupt(self, answer: Answer) -> Iterator[Record]:
        search = self._searches.get(answer)
        return answer.conclude(search.best if search else (), self.engine, "interrupted")

    def _forget(self, answer: Answer) -> None:
        self._groups.pop(answer, None)
        self._searches.pop(answer, None)
        self._choosing.discard(answer)
        self._choices.pop(answer, None)

    def close(self) -> None:
        """End unfinished answers as interrupted; their last records are lost."""
        for answer in self.answers:
            if answer.finished is None:
                list(answer.finish("interrupted"))
            if group := self._groups.get(answer):
                group.answer.finished = group.answer.finished or answer.finished
        self.answers = []


def _tell_unmet(answer: Answer, records: Iterator[Record]) -> Iterator[Record]:
    """Yield records; before the last one, a notice if the answer is not as the settings ask, or loops by a ban."""
    for record in records:
        if isinstance(record, Finished):
            settings, text = answer.request.settings, answer.text
            if not text.startswith(settings.begin or ""):
                yield Notice(f"the answer does not begin with {settings.begin!r}: /begin holds from the next one on")
            if settings.regex and not find_pattern(settings.regex).matches(text):
                yield Notice(f"the answer does not match {settings.regex!r}: {UNMET.get(record.reason, UNMET['end'])}")
            if settings.ban and answer.goes_in_circles:
                yield Notice(CIRCLES)
        yield record


UNMET: Mapping[FinishReason, str] = {
    "interrupted": "it was stopped before", "stop": "a stop text ended it", "length": "it had no tokens left",
    "end": "/regex holds from the next one on",
}  # fmt: skip
"""By reason of its end, why an answer is not as asked."""


CIRCLES = "it goes in circles, as texts so common are banned: a repetition-penalty of 1.3 helps"
"""Notice for an answer that repeats itself."""


class _BestOf:
    """The candidates for an answer, of which the best one becomes it.

    The best one has the highest log-probability per token (as with `best_of` of OpenAI's completions).
    """

    def __init__(self, answer: Answer, candidates: list[Answer]) -> None:
        self.answer, self.candidates = answer, candidates
        self._records: dict[Answer, list[Record]] = {one: [] for one in candidates}

    def collect(self, candidate: Answer, records: Iterator[Record]) -> Iterator[Record]:
        """Keep the records of a candidate; once all have ended, yield those of the best one."""
        self._records[candidate] += records
        if self.answer.finished is not None or any(one.finished is None for one in self.candidates):
            return
        ranked = sorted(self.candidates, key=self._score, reverse=True)
        best = ranked[0]
        self.answer.adopt(best)
        *others, last = (record for record in self._records[best] if not isinstance(record, SettingsChanged))
        yield from others
        yield Candidates(tuple((self._text(one), self._score(one)) for one in ranked))
        assert isinstance(last, Finished)
        self.answer.finished = replace(last, seed=self.answer.request.seed)
        yield self.answer.finished

    def _tokens(self, candidate: Answer) -> list[Token]:
        return [record for record in self._records[candidate] if isinstance(record, Token)]

    def _text(self, candidate: Answer) -> str:
        return "".join(token.text for token in self._tokens(candidate))

    def _score(self, candidate: Answer) -> float:
        """Return the mean log-probability of its tokens; −∞ of an empty answer."""
        logprobs = [token.logprob for token in self._tokens(candidate)]
        return sum(logprobs) / len(logprobs) if logprobs else -math.inf


def drive(
    *batches: AnswerBatch,
    admit: Callable[[], bool] = lambda: False,
    outlives: Callable[[Answer, TinychatError], bool] = lambda answer, error: False,
) -> Generator[tuple[Answer, Record]]:
    """Run batches, one for each engine, in turns until all their answers are finished; yield records with their answer.

    The last record of each answer is its only `Finished`. An error, or closing this generator, ends the answers that
    are unfinished: their `finished` says that they were interrupted, and no further record is yielded.

    `admit` is called before each round of steps; it may add answers to the batches. It returns whether to call it again
    even if no answer is left. An error that it raises ends the run.

    `outlives` is called with an error that concerns one answer, such as a pattern that it cannot match. If it returns
    true, this answer leaves without a last record, and the others go on; else the error is raised.

    Raises:
        GenerationError: If the model gave NaN or infinite logits, or an answer cannot be as its settings ask.
    """
    try:
        while admit() or any(batch.answers for batch in batches):
            for batch in batches:
                for answer, records in batch.step():
                    try:
                        for record in records:
                            yield answer, record
                    except TinychatError as error:
                        if not outlives(answer, error):
                            raise
                        batch.remove(answer)
    finally:
        for batch in batches:
            batch.close()


def answer_all(
    engine: Engine, answers: Iterable[Answer], should_stop: Callable[[], bool] = lambda: False
) -> Generator[tuple[Answer, Record]]:
    """Generate answers in batches of the engine's best size, beginning each when there is room; yield as `drive` does.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    batch, waiting = AnswerBatch(engine, should_stop), iter(answers)

    def admit() -> bool:
        while batch.num_sequences < engine.batch_size and (answer := next(waiting, None)) is not None:
            batch.add(answer)
        return False

    return drive(batch, admit=admit)


def stream(engine: Engine, answer: Answer, should_stop: Callable[[], bool] = lambda: False) -> Generator[Record]:
    """Generate one answer; yield its records, the last of them `Finished`.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    batch = AnswerBatch(engine, should_stop)
    batch.add(answer)
    for _, record in drive(batch):
        yield record
