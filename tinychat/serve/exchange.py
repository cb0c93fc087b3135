"""One request for answers, and its response: whole, or as a stream."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from tinychat.errors import TinychatError
from tinychat.events import Finished, Notice, Token
from tinychat.generate.answer import Answer
from tinychat.generate.engine import derive_seed, fresh_seed
from tinychat.generate.stream import count_sequences
from tinychat.serve.requests import ApiError, Ask, Prompt
from tinychat.serve.responses import (
    Choice,
    chunk_of,
    new_response,
    scored_tokens,
    text_of_prompt,
    unscored,
    usage,
    whole_choice,
)
from tinychat.serve.scheduler import (
    AnswerJob,
    EngineError,
    Event,
    Job,
    OverdueError,
    QueueFullError,
    Scheduler,
    Scored,
    ScoreJob,
    Started,
    Stopped,
)
from tinychat.session.dialogue import Dialogue
from tinychat.session.open_model import OpenModel

SEND_SECONDS = 60
"""Seconds in which a client must have taken each part of the response."""
JSON_HEADERS = [(b"content-type", b"application/json")]
STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


class Exchange:
    """One request and its response."""

    def __init__(self, scheduler: Scheduler, model: OpenModel, ask: Ask, deadline: float) -> None:
        self._scheduler, self._model, self._ask, self._deadline = scheduler, model, ask, deadline
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[tuple[Job | None, list[Event]]] = asyncio.Queue()
        self._common = new_response(ask, model.name, is_chunk=ask.stream)
        self._choices: dict[Job, Choice] = {}
        self._unfinished: dict[Job, None] = {}
        self._notices: dict[str, None] = dict.fromkeys(ask.notices)
        self._prompt_tokens = self._completion_tokens = 0

    async def run(self, receive: Receive, send: Send) -> str:
        """Answer, and return the result in words; if the client leaves, nobody goes on."""
        watcher = asyncio.create_task(self._watch(receive))
        try:
            await asyncio.to_thread(self._note_unknown)
            echoes = await self._echo()
            send = partial(_send_in_time, send)
            await (self._stream(echoes, send) if self._ask.stream else self._whole(echoes, send))
            return f"200 · {self._prompt_tokens:,} tokens read, {self._completion_tokens:,} generated"
        finally:
            watcher.cancel()
            self._scheduler.cancel([*self._unfinished])

    def _note_unknown(self) -> None:
        """Note the characters of the prompts that the model does not know."""
        for prompt in self._ask.prompts:
            if notice := self._model.unknown_notice(prompt.text):
                self._notices[notice.text] = None

    async def _watch(self, receive: Receive) -> None:
        """Wait until the client leaves."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._events.put_nowait((None, []))

    async def _echo(self) -> list[list[Token]]:
        """Return the tokens of each prompt that come before its answers, with their log-probabilities if wanted."""
        ask, model = self._ask, self._model
        if not ask.echo or ask.logprobs is None:
            if not ask.generates:  # the prompts are not read, but counted
                self._prompt_tokens = await asyncio.to_thread(
                    lambda: sum(len(_encode_to_score(prompt, model)) for prompt in ask.prompts)
                )
            return [[unscored(text_of_prompt(prompt, model))] if ask.echo else [] for prompt in ask.prompts]
        if model.info.mode == "translation":
            raise ApiError(400, "a translation model scores no text alone", param="echo")
        jobs = [
            ScoreJob(self._post, self._deadline, encode=partial(_encode_to_score, prompt), top_logprobs=ask.logprobs)
            for prompt in ask.prompts
        ]
        self._submit(jobs)
        scores: dict[Job, Scored] = {}
        async for job, event in self._next_events():
            if isinstance(event, Scored):
                scores[job] = event
        if ask.generates:
            self._prompt_tokens = 0  # they are counted when they are read again
        pairs = zip(jobs, ask.prompts, strict=True)
        return await asyncio.to_thread(lambda: [scored_tokens(scores[job], prompt, model) for job, prompt in pairs])

    async def _whole(self, echoes: Sequence[list[Token]], send: Send) -> None:
        """Respond once all answers are there."""
        choices = self._begin(echoes)
        async for job, event in self._next_events():
            self._record(self._choices[job], event)
        found = [whole_choice(self._ask, choice) for choice in choices]
        counts = usage(self._prompt_tokens, self._completion_tokens)
        body = self._common | {"choices": found, "usage": counts} | self._extra()
        await send({"type": "http.response.start", "status": 200, "headers": JSON_HEADERS})
        await send({"type": "http.response.body", "body": json.dumps(body, ensure_ascii=False).encode()})

    async def _stream(self, echoes: Sequence[list[Token]], send: Send) -> None:
        """Respond with server-sent events, as the tokens come."""
        choices, ask = self._begin(echoes), self._ask
        has_begun = False

        async def put(*found: dict[str, Any], **more: Any) -> None:
            nonlocal has_begun
            if not has_begun:  # an error before this has a status of its own
                await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                has_begun = True
            chunk = self._common | {"choices": list(found)} | more
            if ask.include_usage:
                chunk.setdefault("usage", None)
            await send(_sse(chunk))

        try:
            if not self._unfinished:
                await self._put_beginning(choices, put)
            async for job, events in self._rounds():
                if not has_begun:
                    await self._put_beginning(choices, put)
                choice = self._choices[job]
                offset = choice.length
                new = [token for event in events if (token := self._record(choice, event)) is not None]
                if new:
                    await put(chunk_of(ask, choice.index, new, offset=offset))
                if choice.finish_reason is not None:
                    end = chunk_of(ask, choice.index, [], finish_reason=choice.finish_reason)
                    await put(end | {"seed": choice.seed}, **self._extra())
            if ask.include_usage:
                await put(usage=usage(self._prompt_tokens, self._completion_tokens))
        except ApiError as error:
            if not has_begun:
                raise
            await send(_sse(error.body))
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _put_beginning(self, choices: Sequence[Choice], put: Callable[..., Any]) -> None:
        """Send what comes before the generated tokens."""
        for choice in choices:
            if self._ask.is_chat:
                role = {"index": choice.index, "delta": {"role": "assistant", "content": ""}}
                await put(role | {"logprobs": None, "finish_reason": None})
            elif choice.tokens:
                await put(chunk_of(self._ask, choice.index, choice.tokens))
            if choice.finish_reason is not None:
                await put(chunk_of(self._ask, choice.index, [], finish_reason=choice.finish_reason))

    def _begin(self, echoes: Sequence[list[Token]]) -> list[Choice]:
        """Submit the answers; return them, with what of the prompt comes before them."""
        ask = self._ask
        choices = [Choice(index, list(echoes[index // ask.n])) for index in range(ask.n * len(ask.prompts))]
        if not ask.generates:
            for choice in choices:
                choice.finish_reason = "length"
            return choices
        seed = next(seed for seed in (ask.settings.seed, fresh_seed()) if seed is not None)
        for choice in choices:
            prompt = ask.prompts[choice.index // ask.n]
            make = partial(_make_answer, prompt, ask, derive_seed(seed, choice.index))
            job = AnswerJob(self._post, self._deadline, make=make, num_sequences=count_sequences(ask.settings))
            self._choices[job] = choice
        self._submit([*self._choices])
        return choices

    def _submit(self, jobs: Sequence[Job]) -> None:
        try:
            self._scheduler.submit(jobs)
        except TinychatError as error:
            raise to_api_error(error) from None
        self._unfinished |= dict.fromkeys(jobs)

    def _post(self, job: Job, events: list[Event]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._events.put_nowait, (job, events))

    async def _rounds(self) -> AsyncIterator[tuple[Job, list[Event]]]:
        """Yield the events of the jobs until all are over.

        Raises:
            ApiError: If one fails.
            ClientDisconnect: If the client leaves.
        """
        while self._unfinished:
            job, events = await self._events.get()
            if job is None:
                raise ClientDisconnect
            for event in events:
                if isinstance(event, Exception):
                    raise to_api_error(event)
                if isinstance(event, Finished | Scored):
                    del self._unfinished[job]
                if isinstance(event, Started) and (
                    not (choice := self._choices.get(job)) or choice.index % self._ask.n == 0
                ):
                    self._prompt_tokens += event.prompt_tokens
            yield job, events

    async def _next_events(self) -> AsyncIterator[tuple[Job, Event]]:
        """Yield the events one by one; see `_rounds`."""
        async for job, events in self._rounds():
            for event in events:
                yield job, event

    def _record(self, choice: Choice, event: Event) -> Token | None:
        """Note an event of an answer; return it if it is a token."""
        match event:
            case Token():
                choice.add(event)
                self._completion_tokens += 1
                return event
            case Finished():
                choice.end(event)
            case Notice(text):
                self._notices[text] = None
        return None

    def _extra(self) -> dict[str, Any]:
        return {"notices": list(self._notices)} if self._notices else {}


def _make_answer(prompt: Prompt, ask: Ask, seed: int, model: OpenModel) -> Answer:
    """Return an answer to a prompt, the same as to a line of JSON that asks for it."""
    make = model.make_answer if prompt.turns is None else Dialogue(model, turns=prompt.turns).make_answer
    answer = make(
        prompt.text, settings=lambda: ask.settings, seed=seed, top_logprobs=ask.logprobs or 0, logit_bias=ask.logit_bias
    )
    if prompt.ids is not None:
        answer.resume(prompt.ids, (), num_generated=0)
    return answer


def _encode_to_score(prompt: Prompt, model: OpenModel) -> list[int]:
    """Return the ids of a prompt that is scored, as `/score` does: it begins a document or a chat."""
    return model.prompt_encoder.encode_text(prompt.text) if prompt.ids is None else list(prompt.ids)


async def _send_in_time(send: Send, message: MutableMapping[str, Any]) -> None:
    """Send a part of a response.

    Raises:
        ClientDisconnect: If the client does not take it.
    """
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await send(message)
    except TimeoutError:
        raise ClientDisconnect from None


def _sse(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that sends an event of a stream."""
    data = f"data: {json.dumps(values, ensure_ascii=False)}\n\n".encode()
    return {"type": "http.response.body", "body": data, "more_body": True}


def to_api_error(error: Exception) -> ApiError:
    """Return how an error of a job is told to its client."""
    match error:
        case QueueFullError():
            return ApiError.of(error, status=429, code="rate_limit_exceeded", retry_after=1)
        case Stopped() | OverdueError():
            return ApiError.of(error, status=503)
        case EngineError():
            return ApiError.of(error, status=500)
        case TinychatError():
            return ApiError.of(error)
    return ApiError(500, f"unexpected {type(error).__name__}: {error}")
