"""Answers prompts in order without a terminal: from piped stdin, `-p`, or JSON Lines.

The prompts read so far are answered as one batch while a thread goes on reading stdin. No prompt waits for a batch to
fill, so that a co-process gets each answer before it sends its next prompt.
"""

import math
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, BinaryIO

from tinychat.cli.json_lines import Line, id_of, parse_line, record_of
from tinychat.cli.output import echo, write
from tinychat.config.option import Origin, unescape
from tinychat.errors import TinychatError, UsageError
from tinychat.events import Candidates, ChoiceProbabilities, Finished, Notice, Token
from tinychat.generate.answer import Answer
from tinychat.generate.engine import derive_seed, fresh_seed
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.session.conversation import Turn
from tinychat.session.dialogue import Dialogue
from tinychat.session.messages import messages_of
from tinychat.session.session import Session
from tinychat.textutil import json_line
from tinychat.untrusted import replace_surrogates

CHUNK_SIZE = 1 << 16
"""Bytes to read at once, at most."""
MAX_QUEUED = 1 << 24
"""Bytes of memory from which on the prompts that wait are enough, so that none of stdin is read meanwhile."""


@dataclass(frozen=True)
class PipeOptions:
    """How prompts are read and completions written; each field is the value of the flag of that name."""

    echo: bool = False
    null: bool = False
    escapes: bool = False
    conversation: bool = False
    whole: bool = False
    jsonl: bool = False
    logprobs: int | None = None
    verbose: bool = False


def answer_prompts(session: Session, options: PipeOptions, prompts: Sequence[str] = ()) -> int:
    """Answer prompts, read from stdin if there are none, and write the completions to stdout; return the exit code.

    Raises:
        TinychatError: If the options exclude each other, or the model cannot be used.
    """
    if options.logprobs is not None and not options.jsonl:
        raise UsageError("--logprobs needs --jsonl", "log-probabilities are written as JSON")
    if options.whole and options.conversation:
        raise UsageError("--whole and --conversation exclude each other", "--whole makes all of stdin a single prompt")
    session.model.preload()
    # The raw file: a thread blocked in a buffered one holds its lock, and Python could not exit.
    source = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    return _Pipe(session, options, prompts or _read(source, options.whole), are_flags=bool(prompts)).run()


def _read(source: BinaryIO, whole: bool) -> Iterator[str]:
    """Yield the lines of a stream without their line ends, or all of it.

    Bytes that are not UTF-8 become lone surrogates (`surrogateescape`), as Python makes of those of an argument.
    """
    line, mark = bytearray(), "\ufeff"  # with which some programs, most of them on Windows, begin a file
    while data := source.read(CHUNK_SIZE):
        first, *others = (data,) if whole else data.split(b"\n")
        line += first
        for other in others:
            # CRLF ends a line, too: no model knows a CR, since training texts have none.
            yield line.decode("utf-8", "surrogateescape").removeprefix(mark).removesuffix("\r")
            line, mark = bytearray(other), ""
    if (last := line.decode("utf-8", "surrogateescape").removeprefix(mark)) or whole:
        yield last


@dataclass
class _Job:
    """A prompt and the answer generated so far, of which `written` tokens are written."""

    position: int
    line: Line
    error: str | None = None
    tokens: list[Token] = field(default_factory=list)
    written: int = 0
    is_echoed: bool = False
    chosen_from: dict[str, Any] = field(default_factory=dict)
    finished: Finished | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or self.finished is not None

    def text(self, start: int = 0) -> str:
        return "".join(token.text for token in self.tokens[start:])


class _Pipe:
    """Reads prompts, generates their answers as a batch, and writes them in order.

    With `are_flags`, they come from `-p`: of those, only objects are JSON, any other text is what it says.
    """

    def __init__(
        self, session: Session, options: PipeOptions, prompts: Iterable[str], *, are_flags: bool = False
    ) -> None:
        self._session, self._options, self._are_flags = session, options, are_flags
        self._prompts: queue.SimpleQueue[str | OSError | None] = queue.SimpleQueue()
        self._has_all_prompts = False
        self._room, self._num_queued, self._is_over = threading.Condition(), 0, False
        threading.Thread(target=self._queue, args=(prompts,), name="prompts", daemon=True).start()
        self._given = [one.name for one, _, origin in session.settings.effective_values() if origin > Origin.MODEL]
        seed = session.settings.current.seed
        self._seed = fresh_seed() if seed is None else seed
        self._jobs: deque[_Job] = deque()
        self._answering: dict[Answer, _Job] = {}
        self._dialogue = Dialogue(session.model, self._seed) if options.conversation else None
        self._num_read = 0
        self._failed = self._interrupted = self._has_told_encoding = False

    def run(self) -> int:
        """Answer all prompts and return the exit code."""
        engine = self._session.model.engine
        if self._options.verbose:
            echo(f"tinychat: {engine.about}", err=True)
        batch = AnswerBatch(engine, lambda: self._interrupted)
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.SIG_IGN:  # as a shell does for jobs in the background
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            for answer, record in drive(batch, admit=lambda: self._admit(batch), outlives=self._outlives):
                job = self._answering[answer]
                match record:
                    case Token():
                        job.tokens.append(record)
                    case Notice(text):
                        self._log(job, text)
                    case ChoiceProbabilities(choices):
                        job.chosen_from["choice_probabilities"] = [choice._asdict() for choice in choices]
                    case Candidates(answers):
                        # An empty candidate has −∞, which JSON cannot hold.
                        job.chosen_from["candidates"] = [
                            {"text": text, "logprob": one if math.isfinite(one) else None} for text, one in answers
                        ]
                    case Finished():
                        job.finished = record
                        del self._answering[answer]
        finally:
            signal.signal(signal.SIGINT, before)
            with self._room:
                self._is_over = True
                self._room.notify()
        return 130 if self._interrupted else int(self._failed)

    def _queue(self, prompts: Iterable[str]) -> None:
        """Queue prompts, in a thread, until the run is over; pause while those that wait take `MAX_QUEUED` bytes."""
        try:
            for prompt in prompts:
                with self._room:
                    self._room.wait_for(lambda: self._num_queued < MAX_QUEUED or self._is_over)
                    self._num_queued += sys.getsizeof(prompt)
                if self._is_over:
                    return
                self._prompts.put(prompt)
        except OSError as error:  # stdin is closed, or its terminal is gone
            self._prompts.put(error)
        finally:
            self._prompts.put(None)

    def _next_prompt(self) -> str | None:
        """Return the next prompt; None if none is left or read yet. Waits 0.1 s if there is nothing else to do."""
        try:
            prompt = None if self._has_all_prompts else self._prompts.get(block=not self._jobs, timeout=0.1)
        except queue.Empty:
            return None
        if isinstance(prompt, OSError):
            raise prompt
        self._has_all_prompts = prompt is None
        if prompt is not None:
            with self._room:
                self._num_queued -= sys.getsizeof(prompt)
                self._room.notify()
        return prompt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:  # the second Ctrl-C
            raise KeyboardInterrupt
        self._interrupted = True

    def _admit(self, batch: AnswerBatch) -> bool:
        """Write what is ready and add waiting prompts to the batch; return whether anything is left to do."""
        self._write()
        if not self._jobs and (self._has_all_prompts or self._interrupted):
            return False
        batch_size = 1 if self._options.conversation else batch.engine.batch_size
        while batch.num_sequences < batch_size and len(self._jobs) < 4 * batch_size and not self._interrupted:
            prompt = self._next_prompt()
            if prompt is None:
                break
            job = _Job(self._num_read, Line("", self._session.settings.current))
            self._num_read += 1
            if self._is_json(prompt) and not prompt.strip():
                continue
            self._jobs.append(job)
            try:
                answer = self._begin(job, prompt)
                self._answering[answer] = job
                batch.add(answer)
            except TinychatError as error:
                if not self._options.jsonl:
                    raise
                if self._is_json(prompt):
                    job.line = replace(job.line, id=id_of(prompt))
                self._fail(job, error)
        return True

    def _outlives(self, answer: Answer, error: TinychatError) -> bool:
        """Note an error of one answer in its line of JSON; return whether there is one, so that the others go on."""
        if self._options.jsonl:
            self._fail(self._answering.pop(answer), error)
        return self._options.jsonl

    def _fail(self, job: _Job, error: TinychatError) -> None:
        job.error = str(error).replace("\n", "; ")
        self._failed = True

    def _begin(self, job: _Job, prompt: str) -> Answer:
        """Return the answer of a line: text, or JSON with settings of its own."""
        model = self._session.model
        job.line = line = self._parse(self._to_text(job, prompt))
        if line.notice:
            self._log(job, line.notice)
        if unknown := model.unknown_notice(line.prompt):
            self._log(job, unknown.text)
        for notice in model.notices(line.settings):
            self._log(job, notice.text)
        seed, top_logprobs = line.own.get("seed"), self._options.logprobs or 0
        dialogue = self._dialogue
        if dialogue is None:
            seed = derive_seed(self._seed, job.position) if seed is None else seed
            if line.messages is None:
                return model.make_answer(
                    line.prompt, settings=lambda: line.settings, seed=seed, top_logprobs=top_logprobs
                )
            dialogue = Dialogue(model, turns=line.turns)
        return dialogue.make_answer(
            line.prompt, lambda: line.settings, seed=seed, index=job.position, top_logprobs=top_logprobs
        )

    def _to_text(self, job: _Job, prompt: str) -> str:
        """Return a prompt with `�` for what is not UTF-8, which is told once; JSON has to be UTF-8."""
        text = replace_surrogates(prompt)
        if text != prompt and self._is_json(prompt):
            raise UsageError("the line is not UTF-8", "JSON Lines have to be")
        if text != prompt and not self._has_told_encoding:
            self._log(job, "not UTF-8: what cannot be read is �")
            self._has_told_encoding = True
        return text

    def _is_json(self, prompt: str) -> bool:
        return self._options.jsonl and (not self._are_flags or prompt.lstrip().startswith("{"))

    def _parse(self, prompt: str) -> Line:
        settings, model = self._session.settings.current, self._session.model
        if self._is_json(prompt):
            line = parse_line(prompt, settings, model)
        else:
            line = Line(unescape(prompt) if self._options.escapes else prompt, settings)
        if self._dialogue is None or not self._options.jsonl:
            return line
        if line.messages is not None:
            raise UsageError("messages are a conversation of their own", "leave out --conversation")
        return line if model.info.mode == "translation" else replace(line, messages=messages_of(self._dialogue.turns))

    def _write(self) -> None:
        """Write the finished answers in order, and the new tokens of the first unfinished one."""
        while self._jobs:
            job = self._jobs[0]
            if not self._options.jsonl:
                self._write_text(job)
            if not job.done:
                return
            if self._options.verbose and (end := job.finished):
                speed = f"{end.tokens_per_second:,.0f} tok/s"
                self._log(job, f"{end.tokens:,} tokens, {speed}, stop: {end.reason}, seed {end.seed}")
            if self._options.jsonl:
                write(json_line(self._as_json(job)), end="\n")
            if self._dialogue is not None and job.error is None:
                self._dialogue.add(Turn(job.line.prompt, saved_text=job.text()))
            self._jobs.popleft()

    def _write_text(self, job: _Job) -> None:
        new = job.text(job.written)
        if self._options.echo and not job.is_echoed and (new or job.done):
            new, job.is_echoed = job.line.prompt + new, True
        job.written = len(job.tokens)
        end = "" if not job.done else "\0" if self._options.null else "\n"
        if new or end:
            write(new, end)

    def _as_json(self, job: _Job) -> dict[str, Any]:
        if job.finished is None:
            return {"error": job.error, "line": job.position + 1, **job.line.id}
        record = record_of(
            job.line, job.tokens, job.finished, model=self._session.model.reference, given=self._given,
            has_logprobs=self._options.logprobs is not None,
        )  # fmt: skip
        return record | job.chosen_from

    def _log(self, job: _Job, text: str) -> None:
        echo(f"tinychat: prompt {job.position + 1}: {text}", err=True)
