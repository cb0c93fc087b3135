"""An answer: from the tokens of one sequence to records, with stop texts, bans and controls."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tinychat.config.settings import UNFILTERED, Settings, describe_sampling
from tinychat.events import AvoidedText, Finished, FinishReason, Notice, Record, SettingsChanged, Token, TopLogprob
from tinychat.generate.bans import BanWatch, Redraw
from tinychat.generate.beam_search import BeamSearch
from tinychat.generate.choices import Choices
from tinychat.generate.controls import Controls
from tinychat.generate.engine import Engine, Request, SampledToken, TokenProbability, next_seed, uniform
from tinychat.generate.healing import HealedStart, Healing
from tinychat.generate.prompts import Source
from tinychat.generate.vocabulary import Vocabulary
from tinychat.textutil import shorten
from tinychat.tokenizer.tokenizer import StreamDecoder, Tokenizer

SHOWN_CHARACTERS = 40
"""Number of characters of a sentence that a notice shows."""
CIRCLE_TOKENS = 40
"""Number of the newest tokens that tell whether an answer repeats itself."""


class Answer:
    """An answer to a prompt of at least one token: it turns sampled tokens into records, each with `top_logprobs`.

    `settings` is called before each call of the engine and for each token. `seed` and `prompt_index` determine the
    random numbers. The tokens of `end_ids` end the answer and are no part of it. An encoder reads `sources`, one after
    the other: where the translation of one ends, its end token is part of the answer, with the white space before the
    next one as its text. Controls need the model's `vocabulary`; without one they are not in force. `logit_bias` is
    added to the logits of its ids. If it `heals` its prompt, `begin_as` is to be called before the first token is
    sampled, as `healing` chooses. `is_cut` says that the prompt was longer, and lost its beginning: a notice tells so.
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
        sources: Sequence[Source] = (),
        vocabulary: Vocabulary | None = None,
        logit_bias: Mapping[int, float] | None = None,
        begins_text: bool = True,
        heals: bool = False,
        is_cut: bool = False,
    ) -> None:
        self.tokenizer, self.settings, self.top_logprobs = tokenizer, settings, top_logprobs
        source = sources[0].ids if sources else None
        self.request = Request(0, list(prompt), 0, settings(), seed, prompt_index, end_ids, source)
        self._sources, self._source_index, self._prompt = sources, 0, tuple(prompt)
        self._earlier = ""  # the translations of the sources before this one
        self._notices = list(_notices(sources))  # that the first records are to be
        self.finished: Finished | None = None
        self._reads_nothing = bool(sources) and all(source.is_blank for source in sources)
        self.is_over = self._reads_nothing
        """Whether the answer ends here: the controls in force forbid every token, or there is nothing to translate."""
        self._vocabulary, self._logit_bias = vocabulary, logit_bias
        self.healing = Healing(vocabulary, prompt) if heals and vocabulary else None
        """How the answer may begin, until it is chosen."""
        self._healed: HealedStart | None = None
        self._start = len(prompt)
        self._set_controls()
        self.request.steering = vocabulary.steering(self.request.settings) if vocabulary else None
        self._bans = BanWatch(bans) if (bans := settings().ban) else None
        self._redraw: Redraw | None = None
        self._avoided: dict[int, tuple[AvoidedText, ...]] = {}  # of the token that will be at an index of the answer
        self._num_redrawn, self._seed = 0, seed
        # `begin`, `regex` and `choices` describe the whole answer, so it is decoded as a new text.
        self._begins_text = begins_text or bool(settings().begin or settings().regex or settings().choices)
        self._decoder = self._new_decoder()
        self._held: list[Token] = []  # tokens in which a stop string may begin
        self._num_yielded = 0
        self._began = time.perf_counter()
        self._is_cut, self._has_noted_context = is_cut, False

    def begin(self) -> None:
        """Start the clock of the answer: the time in which the model loaded does not count."""
        self._began = time.perf_counter()

    def begin_as(self, start: HealedStart | None) -> None:
        """Begin as `healing` has chosen; None: as the model likes."""
        self.healing, self._healed = None, start
        if start is not None:
            self._start -= start.num_replaced
            del self.request.ids[self._start :]
            self._decoder = self._new_decoder()
            self._set_controls()

    def resume(
        self,
        ids: Sequence[int],
        answer_ids: Sequence[int],
        num_generated: int,
        *,
        sources: Sequence[Source] = (),
        source_index: int = 0,
        earlier: str = "",
        healed: HealedStart | None = None,
    ) -> None:
        """Continue an answer that has begun: `ids` are those of the prompt and of the answer so far.

        The decoder joins the next tokens to `answer_ids`; `num_generated` tokens count as generated, in the limit
        `max_tokens` and as the index of the next random number. Of several `sources`, by default those of before, it
        goes on with that of an index, behind the `earlier` translations: then the ids are those of its own alone. If
        the prompt was `healed`, they are without the tokens that the first one replaces.
        """
        self.healing, self._healed = None, healed
        if healed is not None:
            self._decoder = self._new_decoder()
        if sources:
            self._sources, self._notices = sources, []  # which were told where the answer began
        if self._sources:
            self._source_index, self.request.source = source_index, self._sources[source_index].ids
        self._earlier = earlier
        self.request.ids, self.request.num_generated = list(ids), num_generated
        self._start = len(ids) - len(answer_ids)
        self._set_controls()
        self._watch_bans()
        for id in answer_ids:
            self._decoder.push(id)
        if answer_ids:
            self._is_cut = False  # the answer has told so where it began

    def sibling(self, seed: int) -> "Answer":
        """Return an answer that continues the same tokens with other random numbers."""
        request = self.request
        other = Answer(
            self.tokenizer, self._prompt, self.settings, seed=seed, prompt_index=request.prompt_index,
            end_ids=request.end_ids, top_logprobs=self.top_logprobs, sources=self._sources, vocabulary=self._vocabulary,
            logit_bias=self._logit_bias,
            begins_text=self._begins_text, is_cut=self._is_cut,
        )  # fmt: skip
        other.resume(
            request.ids, request.ids[self._start :], request.num_generated, source_index=self._source_index,
            earlier=self._earlier, healed=self._healed,
        )  # fmt: skip
        if self.healing and self._vocabulary:
            other.healing = Healing(self._vocabulary, request.ids)
        return other

    def adopt(self, other: "Answer") -> None:
        """Become what a sibling has become."""
        self.request.ids, self.request.settings = other.request.ids, other.request.settings
        self.request.source, self._source_index = other.request.source, other._source_index
        self._earlier = other._earlier
        self.healing, self._healed, self._start = None, other._healed, other._start

    def search(self) -> BeamSearch:
        """Return a beam search for the rest of the answer, or of the translation of one of several sources."""
        controls, start = self._controls, self._start
        adjust = None if controls is None else lambda ids: controls.biases(ids, start)
        bans, decode = self.request.settings.ban, self._decode
        shown = decode(self.request.ids[start:])
        watch = BanWatch(bans, self._earlier + shown) if bans else None
        allows = None if watch is None else lambda ids: not watch.completes(decode(ids[start:])[len(shown) :])
        return BeamSearch(self.request, self.request.settings.num_beams, adjust, allows, self.top_logprobs)

    def make_choices(self) -> Choices:
        """Return the choices that are set, which are still to be weighed.

        Raises:
            GenerationError: If the answer can be none of them.
        """
        return Choices(self.request, self._start, self.tokenizer, self.top_logprobs)

    def choose(self, choices: Choices, engine: Engine) -> Iterator[Record]:
        """Draw one of the choices, which are weighed, and end with it."""
        yield choices.record
        yield from self.conclude(choices.draw(self.request, self._start), engine)

    def conclude(
        self, tokens: Sequence[SampledToken], engine: Engine, reason: FinishReason = "end"
    ) -> Iterator[Record]:
        """Append tokens that were found together, whatever the settings are by now; then end if they did not.

        If they translate one of several sources to its end, the answer goes on with the next one.
        """
        source_index = self._source_index
        yield from self.update(tokens, engine, together=True)
        if self.finished is None and (self._source_index == source_index or reason != "end"):
            yield from self.finish(reason)

    @property
    def goes_by_sentences(self) -> bool:
        """Whether it translates several sources: then settings that describe a whole answer do not hold for each."""
        return len(self._sources) > 1

    @property
    def ids(self) -> list[int]:
        """The ids of the prompt and of the answer so far."""
        return self.request.ids

    @property
    def text(self) -> str:
        """The text of the answer so far, up to the first stop text."""
        ids = [id for id in self.request.ids[self._start :] if id not in self.request.end_ids]
        text = self._earlier + self._decode(ids, begins_text=self._begins_text)
        ends = [end for stop in self.request.settings.stop if (end := text.find(stop)) >= 0]
        return text[: min(ends, default=None)]

    @property
    def goes_in_circles(self) -> bool:
        """Whether banned texts were drawn again, and most of the newest tokens repeat others."""
        ids = self.request.ids[self._start :][-CIRCLE_TOKENS:]
        runs = list(zip(ids, ids[1:], ids[2:], strict=False))
        return self._num_redrawn > 0 and len(ids) == CIRCLE_TOKENS and len(set(runs)) < len(runs) / 2

    def refresh(self) -> Iterator[Record]:
        """Take a new snapshot of the settings; yield `SettingsChanged` if later tokens are sampled differently.

        The controls in force adjust the odds of the next token.
        """
        previous, self.request.settings = self.request.settings, self.settings()
        if previous is not self.request.settings:
            self._set_controls()
            self._watch_bans()
            if self._vocabulary is not None and previous.steer != self.request.settings.steer:
                self.request.steering = self._vocabulary.steering(self.request.settings)
        if self._controls is not None:
            self.request.biases = self._controls.biases(self.request.ids, self._start)
            self.is_over = self._reads_nothing or self.request.biases is None
            if self._controls.is_done:
                self.request.biases = None
        else:
            self.request.biases, self.is_over = None, self._reads_nothing
        if previous is self.request.settings:
            return
        if self.request.num_generated and (words := describe_sampling(self.request.settings, baseline=previous)):
            yield SettingsChanged(" · ".join(words))

    def update(
        self,
        sampled: Iterable[SampledToken],
        engine: Engine,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        together: bool = False,
    ) -> Iterator[Record]:
        """Append sampled tokens; yield their records, and `Finished` once the answer is over.

        The first token after a change of the settings, or after `should_stop` returns true, is discarded with all that
        follow: both act on the very next token. Tokens that were found `together` are kept whatever the settings are by
        now. Those after a banned text are discarded, and from there on the engine is asked for odds, to draw others.
        """
        yield from map(Notice, self._notices)
        self._notices.clear()
        length = f"longer than the model's context of {engine.context_length} tokens"
        if self._is_cut and not self._has_noted_context:
            self._has_noted_context = True
            yield Notice(f"{length}, answer included: the beginning of the prompt is left out")
        waiting = iter(sampled)
        while (token := next(waiting, None)) is not None:
            settings = self.request.settings if together else self.settings()
            if should_stop() or (settings is not self.request.settings and settings != self.request.settings):
                return
            self.request.ids.append(token.id)
            self.request.num_generated += 1
            if token.id in self.request.end_ids:
                yield from self._next_source(token) if self._has_more_sources else self.finish("end")
                return
            text = self._decoder.push(token.id)
            self._held.append(self._token(token, text))
            begin = None if self._bans is None else self._bans.push(text)
            if begin is not None and not together:
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
            yield Notice(f"prompt and answer are {length}: it sees only their newest part")
        if self.request.left <= 0:
            yield from self.finish("length")

    @property
    def _has_more_sources(self) -> bool:
        return self._source_index + 1 < len(self._sources)

    def _next_source(self, end: SampledToken) -> Iterator[Record]:
        """Begin the translation of the next source; the end token of the last one becomes the space between them."""
        self._source_index += 1
        source = self._sources[self._source_index]
        self._flush()
        self._held.append(self._token(end, source.space))
        self._decoder = self._new_decoder()
        self._bans = None  # what is shown of this translation stays: no token of it is drawn again
        yield from self._release()
        if self.finished is None:
            yield from self._pop_complete()
            self._earlier = self.text + source.space
            self.request.ids, self.request.source, self._start = list(self._prompt), source.ids, len(self._prompt)
            self._avoided.clear()
            self._set_controls()
            self._watch_bans()
            if self.request.left <= 0:
                yield from self.finish("length")

    def _flush(self) -> None:
        """Add the rest of an incomplete character to the token that began it, unless that completes a banned text."""
        rest = self._decoder.flush()
        is_banned = self._bans is not None and self._bans.completes(rest)
        if rest and self._held and not is_banned:
            self._held[-1] = self._held[-1]._replace(text=self._held[-1].text + rest)

    def _watch_bans(self) -> None:
        """Watch for the texts that are banned now, after the answer so far; what has been shown of it stays."""
        self._bans = self._redraw = None
        if texts := self.request.settings.ban:
            shown = self.request.ids[self._start : len(self.request.ids) - len(self._held)]
            self._bans = BanWatch(texts, self._earlier + self._decode(shown))
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
        # What `/continue` goes on from does not count as generated, and the translations of earlier sources do.
        offset = request.num_generated - len(way)

        def draw_uniform(position: int) -> float:
            return uniform(request.seed, request.prompt_index, position + offset)

        while not (drawn := self._redraw.draw(way[:first], draw_uniform)) and first > shown:
            first -= 1  # no other way is left here
            self._redraw.reject(way[: first + 1], first)
        for position in range(first, first + len(drawn)):
            path = (*way[:first], *(token.id for token in drawn[: position - first]))
            self._avoided[position] = self._redraw.avoided(path)
        del request.ids[start + first :], self._held[first - shown :]
        request.num_generated = first + offset
        assert self._bans is not None
        self._bans.truncate(first - shown)
        self._decoder = self._new_decoder()
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
        self._flush()
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
        is_first = len(self.request.ids) == self._start + 1
        replaced = self._healed.num_replaced if self._healed and is_first else None
        return Token(sampled.id, text, sampled.logprob, self._seconds(), likeliest, avoided, replaced)

    def _set_controls(self) -> None:
        first_ids = self._healed.allowed if self._healed else None
        # A control counts the tokens since `_start`, but `max_tokens` those that were generated.
        settings, offset = self.request.settings, len(self.request.ids) - self._start - self.request.num_generated
        if self.goes_by_sentences:
            settings = replace(settings, begin=None, regex=None)
        elif offset:
            settings = replace(settings, max_tokens=max(1, settings.max_tokens + offset))
        self._controls = Controls.of(settings, self._vocabulary, self._logit_bias, first_ids)

    def _new_decoder(self) -> StreamDecoder:
        """Return a decoder for the tokens of the answer from the first one on."""
        skipped = self._healed.num_bytes if self._healed else 0
        return self.tokenizer.stream(begins_text=self._begins_text, skipped=skipped)

    def _decode(self, ids: Sequence[int], *, begins_text: bool = True) -> str:
        """Decode tokens of the answer from the first one on."""
        skipped = self._healed.num_bytes if self._healed else 0
        return self.tokenizer.decode(ids, begins_text=begins_text, skipped=skipped)

    def _seconds(self) -> float:
        return time.perf_counter() - self._began


def _notices(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the notices of what a translation of sources may leave out."""
    for source in sources:
        if source.cut:
            text = shorten(source.cut, SHOWN_CHARACTERS)
            yield f"longer than the context, so that its end is left out: {text}"
        if source.num_sentences > 1:
            yield (
                f"the {source.num_sentences} sentences are translated as one text, as begin, regex and choices "
                "describe all of it: some may be lost"
            )


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of `text` with which `stop` begins."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if text.endswith(stop[:length])), 0)
