"""From prompts to streams of records: the loop that the REPL, the pipe and the JSON output share.

A `PromptEncoder` turns a prompt into ids, an `Answer` the tokens of one sequence into records; a `Batch` extends many
at once with one engine, a call at a time; `drive` runs batches until all their answers are finished.
"""

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from tinychat.config.settings import UNFILTERED, Settings, describe_sampling
from tinychat.corpus.types import Message
from tinychat.errors import Interrupted
from tinychat.events import (
    AvoidedText,
    Candidates,
    Finished,
    FinishReason,
    Notice,
    Record,
    SettingsChanged,
    Token,
    TopLogprob,
)
from tinychat.generate.bans import BanWatch, Redraw, has_banned
from tinychat.generate.beam_search import BeamSearch
from tinychat.generate.choices import Choices
from tinychat.generate.controls import Controls
from tinychat.generate.engine import (
    Engine,
    Request,
    SampledToken,
    TokenProbability,
    next_seed,
    uniform,
    window_start,
    window_stride,
)
from tinychat.generate.vocabulary import Vocabulary
from tinychat.pattern import find_pattern
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import LONGEST_WHOLE, Tokenizer

MAX_CALL_SECONDS = 0.015
"""Duration of a call of the engine: keys and Ctrl-C act within this time."""

MAX_TOKEN_CHARACTERS = 64
"""Characters that a token has at most, on average over a context."""


@dataclass(frozen=True)
class PromptEncoder:
    """Encodes prompts for a model as token ids."""

    tokenizer: Tokenizer
    context_length: int
    template: ChatTemplate | None = None
    """of a chat model; None in other modes"""
    source_tokenizer: Tokenizer | None = None
    """of the encoder that reads prompts, in an encoder-decoder model; None in others"""

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids of the tokens that end an answer."""
        return self.template.end_ids(self.tokenizer) if self.template else frozenset(_special(self.tokenizer, "end"))

    def encode(self, prompt: str, history: Iterable[tuple[str, str]] = (), max_tokens: int = 0) -> list[int]:
        """Return the ids that an answer of up to `max_tokens` continues; at least one.

        In a chat, `history` yields the prompts and answers so far, newest first, and is read as far as the context has
        room. Of texts much longer than the context, only the ids of the end are returned.
        """
        if self.source_tokenizer is not None:
            return self.beginning() or [0]
        if self.template is not None:
            turns = ((Message("assistant", answer), Message("user", question)) for question, answer in history)
            newest_first = chain((Message("user", prompt),), chain.from_iterable(turns))
            room = self.room(max_tokens)
            return self.template.encode_newest(newest_first, self.tokenizer, for_answer=True, max_length=room)
        return self.beginning() + self.tokenizer.encode_end(prompt, self.context_length) or [0]

    def room(self, max_tokens: int) -> int:
        """Return the maximum number of ids of a chat's prompt and history: half of the context stays free, at most."""
        return self.context_length - min(max_tokens, self.context_length // 2)

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of a text as in training, without its end token: a document, or in a chat a user's message."""
        if self.template is not None:
            return self.template.encode([Message("user", text)], self.tokenizer)[:-1]
        return self.beginning() + self.tokenizer.encode(text)

    def encode_source(self, prompt: str) -> tuple[int, ...] | None:
        """Return the ids that the encoder reads, truncated to the context; None if there is no encoder."""
        if self.source_tokenizer is None:
            return None
        begin, end = (_special(self.source_tokenizer, role) for role in ("begin", "end"))
        return (*begin, *self.source_tokenizer.encode_start(prompt, self.context_length), *end)[: self.context_length]

    def beginning(self) -> list[int]:
        """Return the token that precedes a document: its begin token, or else the end token of the previous one."""
        return _special(self.tokenizer, "begin") or _special(self.tokenizer, "end")


class RunningText:
    """A conversation with a completion model: one text, which each turn continues, encoded as it grows.

    Once it is long, the oldest ids are dropped, a multiple of what the model's window moves by at once: the model sees
    the same of the rest as of the whole.
    """

    def __init__(self, encoder: PromptEncoder) -> None:
        self._encoder = encoder
        self._ids = encoder.beginning()
        self._num_encoded = 0  # characters
        self._rest = ""  # the end of the text, whose ids may depend on what follows

    def add(self, prompt: str, answer: str) -> None:
        """Append a turn."""
        text = f"{self._rest}{prompt}{answer}\n"
        end, context_length = self._encoder.tokenizer.find_stable_end(text), self._encoder.context_length
        self._ids, self._rest = self._extended(text[:end]), text[end:][-self._longest :]
        self._num_encoded += end
        if self._num_encoded > LONGEST_WHOLE:  # keep more than the context, which a notice tells
            excess = window_start(len(self._ids), context_length) - window_stride(context_length)
            del self._ids[: max(0, excess)]

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of the text and a prompt, at least one; of a prompt much longer than the context, the end."""
        return self._extended(self._rest + prompt) or [0]

    @property
    def _longest(self) -> int:
        """Number of characters of which the last ones fill the context in any case."""
        return max(LONGEST_WHOLE, MAX_TOKEN_CHARACTERS * self._encoder.context_length)

    def _extended(self, text: str) -> list[int]:
        """Return the ids, continued by those of a text."""
        encoder = self._encoder
        if len(text) <= LONGEST_WHOLE:
            return self._ids + encoder.tokenizer.encode(text)
        return encoder.beginning() + encoder.tokenizer.encode_end(text, encoder.context_length)


def _special(tokenizer: Tokenizer, role: str) -> list[int]:
    token = tokenizer.special(role)
    return [] if token is None else [token]


def fresh_seed() -> int:
    """Return a random seed, short enough to type."""
    return secrets.randbits(31)


class Answer:
    """An answer to a prompt of at least one token: it turns sampled tokens into records, each with `top_logprobs`.

    `settings` is called before each call of the engine and for each token. `seed` and `prompt_index` determine the
    random numbers. The tokens of `end_ids` end the answer and are no part of it; an encoder reads `source`. Controls
    need the model's `vocabulary`; without one they are not in force.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        settings: Callable[[], Settings],
        *,
        seed: int,
        prompt_index: int = 0,
        end_ids: frozenset[int] = frozenset(),
        top_logprobs: int = 0,
        source: tuple[int, ...] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.tokenizer, self.settings, self.top_logprobs = tokenizer, settings, top_logprobs
        self.request = Request(0, list(prompt), 0, settings(), seed, prompt_index, end_ids, source)
        self.finished: Finished | None = None
        self.is_over = False
        """Whether the controls in force forbid every token, so that the answer ends here."""
        self._vocabulary, self._controls = vocabulary, Controls.of(settings(), vocabulary)
        self.request.steering = vocabulary.steering(self.request.settings) if vocabulary else None
        self._start = len(prompt)
        self._bans = BanWatch(bans) if (bans := settings().ban) else None
        self._redraw: Redraw | None = None
        self._avoided: dict[int, tuple[AvoidedText, ...]] = {}  # of the token that will be at an index of the answer
        self._num_redrawn, self._seed = 0, seed
        self._decoder = tokenizer.stream()
        self._held: list[Token] = []  # tokens in which a stop string may begin
        self._num_yielded = 0
        self._began = time.perf_counter()
        self._has_noted_context = False

    def begin(self) -> None:
        """Start the clock of the answer: the time in which the model loaded does not count."""
        self._began = time.perf_counter()

    def resume(self, ids: Sequence[int], answer_ids: Sequence[int], num_generated: int) -> None:
        """Continue an answer that has begun: `ids` are those of the prompt and of the answer so far.

        The decoder joins the next tokens to `answer_ids`; `num_generated` tokens count as generated, in the limit
        `max_tokens` and as the index of the next random number.
        """
        self.request.ids, self.request.num_generated = list(ids), num_generated
        self._start = len(ids) - len(answer_ids)
        self._watch_bans()
        for id in answer_ids:
            self._decoder.push(id)

    def sibling(self, seed: int) -> "Answer":
        """Return an answer that continues the same tokens with other random numbers."""
        request = self.request
        other = Answer(
            self.tokenizer, (), self.settings, seed=seed, prompt_index=request.prompt_index, end_ids=request.end_ids,
            top_logprobs=self.top_logprobs, source=request.source, vocabulary=self._vocabulary,
        )  # fmt: skip
        other.resume(request.ids, request.ids[self._start :], request.num_generated)
        return other

    def search(self) -> BeamSearch:
        """Return a beam search for the rest of the answer."""
        controls, start = self._controls, self._start
        adjust = None if controls is None else lambda ids: controls.biases(ids, start)
        bans, decode = self.request.settings.ban, self.tokenizer.decode
        allows = (lambda ids: not has_banned(decode(ids[start:]), bans)) if bans else None
        return BeamSearch(self.request, self.request.settings.num_beams, adjust, allows, self.top_logprobs)

    def weigh_choices(self, engine: Engine, should_stop: Callable[[], bool] = lambda: False) -> Choices:
        """Return the choices that are set, with their probabilities.

        Raises:
            Interrupted: If `should_stop` returns true before they are known.
        """
        return Choices.weigh(engine, self.request, self._start, self.tokenizer, should_stop)

    def choose(self, choices: Choices, engine: Engine) -> Iterator[Record]:
        """Draw one of the choices, and end with it."""
        yield choices.record
        yield from self.conclude(choices.draw(self.request, self._start, self.top_logprobs), engine)

    def conclude(
        self, tokens: Sequence[SampledToken], engine: Engine, reason: FinishReason = "end"
    ) -> Iterator[Record]:
        """Append tokens that were found together, whatever the settings are by now; then end if they did not."""
        settings, self.settings = self.settings, lambda: self.request.settings
        yield from self.update(tokens, engine)
        self.settings = settings
        if self.finished is None:
            yield from self.finish(reason)

    @property
    def ids(self) -> list[int]:
        """The ids of the prompt and of the answer so far."""
        return self.request.ids

    @property
    def text(self) -> str:
        """The text of the answer so far, up to the first stop text."""
        ids = [id for id in self.request.ids[self._start :] if id not in self.request.end_ids]
        text = self.tokenizer.decode(ids)
        ends = [end for stop in self.request.settings.stop if (end := text.find(stop)) >= 0]
        return text[: min(ends, default=None)]

    def refresh(self) -> Iterator[Record]:
        """Take a new snapshot of the settings; yield `SettingsChanged` if later tokens are sampled differently.

        The controls in force adjust the odds of the next token.
        """
        previous, self.request.settings = self.request.settings, self.settings()
        if previous is not self.request.settings:
            self._controls = Controls.of(self.request.settings, self._vocabulary)
            self._watch_bans()
            if self._vocabulary is not None and previous.steer != self.request.settings.steer:
                self.request.steering = self._vocabulary.steering(self.request.settings)
        if self._controls is not None:
            self.request.biases = self._controls.biases(self.request.ids, self._start)
            self.is_over = self.request.biases is None
            if self._controls.is_done:
                self.request.biases = None
        else:
            self.request.biases, self.is_over = None, False
        if previous is self.request.settings:
            return
        if self.request.num_generated and (words := describe_sampling(self.request.settings, baseline=previous)):
            yield SettingsChanged(" · ".join(words))

    def update(
        self, sampled: Iterable[SampledToken], engine: Engine, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """Append sampled tokens; yield their records, and `Finished` once the answer is over.

        The first token after a change of the settings, or after `should_stop` returns true, is discarded with all that
        follow: both act on the very next token. So are those after a banned text, from which on the engine is asked for
        the odds, to draw others.
        """
        waiting = iter(sampled)
        while (token := next(waiting, None)) is not None:
            settings = self.settings()
            if should_stop() or (settings is not self.request.settings and settings != self.request.settings):
                return
            self.request.ids.append(token.id)
            self.request.num_generated += 1
            if token.id in self.request.end_ids:
                yield from self.finish("end")
                return
            text = self._decoder.push(token.id)
            self._held.append(self._token(token, text))
            if self._bans is not None and (begin := self._bans.push(text)) is not None:
                drawn = self._draw_again(begin, engine)
                if not drawn:
                    yield from self.finish("end")
                    return
                waiting = iter(drawn)
            elif self.request.settings.stop:
                yield from self._release()
                if self.finished:
                    return
            else:
                yield from self._pop_complete()
            if self.request.left <= 0:
                break
        if len(self.request.ids) > engine.context_length and not self._has_noted_context:
            self._has_noted_context = True
            length = f"all together longer than the model's context of {engine.context_length} tokens"
            yield Notice(f"{length}: it goes on from the newest part")
        if self.request.left <= 0:
            yield from self.finish("length")

    def _watch_bans(self) -> None:
        """Watch for the texts that are banned now, after the answer so far; what has been shown of it stays."""
        self._bans = self._redraw = None
        if texts := self.request.settings.ban:
            shown = self.request.ids[self._start : len(self.request.ids) - len(self._held)]
            self._bans = BanWatch(texts, self.tokenizer.decode(shown))
            for token in self._held:
                self._bans.push(token.text)

    def _draw_again(self, begin: int, engine: Engine) -> list[SampledToken]:
        """Go back to the held token in which a banned text began; return other tokens, none if there are none.

        The random numbers of the rest of the answer are others: those used so far have led to the banned text.
        """
        request, start = self.request, self._start
        way = tuple(request.ids[start:])
        shown = len(way) - len(self._held)
        first = shown + begin
        if self._redraw is None:
            bans, vocabulary = request.settings.ban, self._vocabulary
            banned = vocabulary.remember(Vocabulary.ids_with, bans) if vocabulary else frozenset()
            odds, decode = partial(self._odds, engine), self.tokenizer.decode
            self._redraw = Redraw(odds, decode, banned, greedy=request.settings.greedy, top_logprobs=self.top_logprobs)
        self._redraw.forget(shown)
        self._redraw.reject(way, first)
        self._num_redrawn += 1
        request.seed = next_seed(self._seed, self._num_redrawn)
        earlier = request.num_generated - len(way)  # what `/continue` goes on from does not count as generated

        def draw_uniform(position: int) -> float:
            return uniform(request.seed, request.prompt_index, position + earlier)

        while not (drawn := self._redraw.draw(way[:first], draw_uniform)) and first > shown:
            first -= 1  # no other way is left here
            self._redraw.reject(way[: first + 1], first)
        for position in range(first, first + len(drawn)):
            path = (*way[:first], *(token.id for token in drawn[: position - first]))
            self._avoided[position] = self._redraw.avoided(path)
        del request.ids[start + first :], self._held[first - shown :]
        request.num_generated = first + earlier
        assert self._bans is not None
        self._bans.truncate(first - shown)
        self._decoder = self.tokenizer.stream()
        for id in request.ids[start:]:
            self._decoder.push(id)
        return drawn

    def _odds(self, engine: Engine, way: Sequence[int], unfiltered: bool) -> list[TokenProbability]:
        """Return the probabilities of the next token after some ids of the answer, before or after the filters."""
        request = replace(self.request, ids=[*self.request.ids[: self._start], *way])
        if self._controls is not None:
            request.biases = self._controls.biases(request.ids, self._start)
        if unfiltered:
            request.settings = replace(request.settings, **UNFILTERED)
        return engine.probabilities(request)

    def finish(self, reason: FinishReason) -> Iterator[Record]:
        """End the answer; yield the records held back, then `Finished`."""
        rest = self._decoder.flush()
        is_banned = self._bans is not None and self._bans.completes(rest)
        if rest and self._held and not is_banned:  # an incomplete character belongs to the token that began it
            self._held[-1] = self._held[-1]._replace(text=self._held[-1].text + rest)
        yield from self._release(reason)

    def _release(self, reason: FinishReason | None = None) -> Iterator[Record]:
        """Yield the held tokens in which no stop string can begin any more; all of them if there is a reason to end.

        The answer ends before a stop string: the token in which one begins is cut short.
        """
        text = "".join(token.text for token in self._held)
        stops = self.request.settings.stop
        found = min((index for stop in stops if (index := text.find(stop)) >= 0), default=None)
        if found is not None or reason is not None:
            self._bans = None  # nothing follows that could complete a banned text
        if found is not None:
            yield from (complete := self._pop_complete(found))
            left = found - sum(len(token.text) for token in complete)
            if self._held and left:
                self._num_yielded += 1
                yield self._held[0]._replace(text=self._held[0].text[:left])
            reason = "stop"
        else:
            overlap = 0 if reason else max((_overlap(text, stop) for stop in stops), default=0)
            yield from self._pop_complete(len(text) - overlap)
        if reason is not None:
            self.finished = Finished(reason, self._num_yielded, self._seconds(), self._seed)
            yield self.finished

    def _pop_complete(self, characters: float = math.inf) -> list[Token]:
        """Remove and return the held tokens within the first `characters`, and before what may become a banned text."""
        complete = len(self._held) - self._decoder.pending  # the last token may end inside a character
        if self._bans is not None:
            complete = min(complete, self._bans.num_free)
        count = 0
        while count < complete and (characters := characters - len(self._held[count].text)) >= 0:
            count += 1
        popped, self._held = self._held[:count], self._held[count:]
        self._num_yielded += count
        if self._bans is not None:
            self._bans.pop(count)
        return popped

    def _token(self, sampled: SampledToken, text: str) -> Token:
        tops = sampled.top_logprobs[: self.top_logprobs]
        likeliest = tuple(TopLogprob(id, self.tokenizer.token_text(id), logprob) for id, logprob in tops)
        avoided = self._avoided.pop(len(self.request.ids) - self._start - 1, ()) if self._avoided else ()
        return Token(sampled.id, text, sampled.logprob, self._seconds(), likeliest, avoided)

    def _seconds(self) -> float:
        return time.perf_counter() - self._began


class Batch:
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
        self._choices: tuple[tuple[object, ...], Choices] | None = None
        self._next_slot = 0

    def add(self, answer: Answer) -> None:
        """Add an answer; one that is alone reuses the KV cache of the previous answer."""
        settings = answer.request.settings
        if settings.best_of > 1 and not (settings.greedy or settings.choices or settings.num_beams > 1):
            seeds = range(answer.request.seed, answer.request.seed + settings.best_of)
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
            if settings.choices:
                self._choosing.add(one)
            elif settings.num_beams > 1:
                self._searches[one] = one.search()
            self.answers.append(one)

    def step(self) -> Iterator[tuple[Answer, Iterator[Record]]]:
        """Call the engine once; yield the new records of each answer. Finished answers leave the batch.

        The records must be consumed before the next answer is asked for.

        Raises:
            GenerationError: If the model gave NaN or infinite logits.
        """
        for answer, records in self._step():
            if answer.request.settings.regex or answer.request.settings.begin:
                records = _tell_unmet(answer, records)
            if group := self._groups.get(answer):
                yield group.answer, group.collect(answer, records)
            else:
                yield answer, records
        for answer in self.answers:
            if answer.finished is not None:
                self._groups.pop(answer, None)
                self._searches.pop(answer, None)
                self._choosing.discard(answer)
        self.answers = [answer for answer in self.answers if answer.finished is None]

    def _step(self) -> Iterator[tuple[Answer, Iterator[Record]]]:
        unfinished: list[Answer] = []
        stop = self.should_stop()
        for answer in list(self.answers):  # an answer that joins meanwhile is extended in the next step
            yield answer, answer.refresh()
            search = self._searches.get(answer)
            if stop:
                yield answer, answer.conclude(search.best if search else (), self.engine, "interrupted")
            elif answer.request.left <= 0:
                yield answer, answer.finish("length")
            elif answer.is_over:
                yield answer, answer.finish("end")
            elif answer in self._choosing and answer.request.settings.choices:
                yield answer, self._choose(answer)
            elif search and search.is_over:
                yield answer, answer.conclude(search.best, self.engine)
            else:
                unfinished.append(answer)
        if unfinished:
            searched = [(answer, self._searches.get(answer)) for answer in unfinished]
            requests = [search.requests if search else [answer.request] for answer, search in searched]
            top_logprobs = max((search or answer).top_logprobs for answer, search in searched)
            n = 1 if self._searches else max(answer.request.left for answer in unfinished)
            generated = iter(self.engine.extend(list(chain(*requests)), n, top_logprobs, MAX_CALL_SECONDS))
            for (answer, search), own in zip(searched, requests, strict=True):
                if search:
                    search.advance([next(generated) for _ in own])
                else:
                    yield answer, answer.update(next(generated), self.engine, self.should_stop)

    def _choose(self, answer: Answer) -> Iterator[Record]:
        try:
            choices = self._choices_of(answer)
        except Interrupted:
            yield from answer.finish("interrupted")
        else:
            yield from answer.choose(choices, self.engine)

    def _choices_of(self, answer: Answer) -> Choices:
        """Return the choices of an answer; those of the previous one if it differs in its random numbers alone."""
        request = answer.request
        key = (request.ids, request.source, replace(request.settings, seed=None))
        if self._choices is None or self._choices[0] != key:
            self._choices = (list(request.ids), *key[1:]), answer.weigh_choices(self.engine, self.should_stop)
        return self._choices[1]

    def close(self) -> None:
        """End unfinished answers as interrupted; their last records are lost."""
        for answer in self.answers:
            if answer.finished is None:
                list(answer.finish("interrupted"))
            if group := self._groups.get(answer):
                group.answer.finished = group.answer.finished or answer.finished
        self.answers = []


def _tell_unmet(answer: Answer, records: Iterator[Record]) -> Iterator[Record]:
    """Yield records; before the last one, a notice if the answer does not begin or match as the settings ask."""
    for record in records:
        if isinstance(record, Finished):
            settings, text = answer.request.settings, answer.text
            if not text.startswith(settings.begin or ""):
                yield Notice(f"the answer does not begin with {settings.begin!r}: /begin holds from the next one on")
            if settings.regex and not find_pattern(settings.regex).matches(text):
                yield Notice(f"the answer does not match {settings.regex!r}: {UNMET.get(record.reason, UNMET['end'])}")
        yield record


UNMET: Mapping[FinishReason, str] = {
    "interrupted": "it was stopped before", "stop": "a stop text ended it", "length": "it had no tokens left",
    "end": "/regex holds from the next one on",
}  # fmt: skip
"""By reason of its end, why an answer is not as asked."""


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
        self.answer.request.ids, self.answer.request.settings = best.request.ids, best.request.settings
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


def drive(*batches: Batch, admit: Callable[[], bool] = lambda: False) -> Iterator[tuple[Answer, Record]]:
    """Run batches, one for each engine, in turns until all their answers are finished; yield records with their answer.

    The last record of each answer is its only `Finished`. An error, or closing this generator, ends the answers that
    are unfinished: their `finished` says that they were interrupted, and no further record is yielded.

    `admit` is called before each round of steps; it may add answers to the batches. It returns whether to call it again
    even if no answer is left. An error that it raises ends the run.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    try:
        while admit() or any(batch.answers for batch in batches):
            for batch in batches:
                for answer, records in batch.step():
                    for record in records:
                        yield answer, record
    finally:
        for batch in batches:
            batch.close()


def stream(engine: Engine, answer: Answer, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
    """Generate one answer; yield its records, the last of them `Finished`.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    batch = Batch(engine, should_stop)
    batch.add(answer)
    for _, record in drive(batch):
        yield record


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of `text` with which `stop` begins."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if text.endswith(stop[:length])), 0)
