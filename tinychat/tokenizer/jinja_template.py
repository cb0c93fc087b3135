"""Chat templates of `transformers`: texts in the language of jinja2, which a conversation is rendered with and encoded.

A template is a program of others. jinja2's sandbox keeps it from the objects of Python, but neither from endless loops
nor from filling the memory; so it runs in a process of its own, `render_worker`, whose time, memory and files are
limited. The process starts while the model loads, and stays for all conversations.
"""

import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tinychat.corpus.types import Message
from tinychat.errors import TokenizerError
from tinychat.textutil import shorten
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate, group_turns
from tinychat.tokenizer.tokenizer import Tokenizer

MAX_TEMPLATE = 1 << 18
"""Maximum number of characters of a template."""
MAX_WAIT = 60.0
"""Seconds after which a process that has not answered is ended, on however busy a machine."""
ATTEMPTS = 4
"""How often the newest message is made shorter until it fits: its ids may differ where it is cut."""
WORKER = Path(__file__).with_name("render_worker.py")
ENVIRONMENT = ("TZ", "LANG", "LC_ALL", "LC_TIME", "LD_LIBRARY_PATH")
"""Variables that the process inherits: a template may write the date."""
REMEDY = "without its chat_template in the folder, the model only continues texts"
BEGIN_MARK, END_MARK = "\U000f0000", "\U000f0001"
"""Private characters around the name of a special token in what people type; `transformers` has the same."""

Entry = dict[str, str]
"""A message as templates know it: `{"role": "user", "content": "hello"}`."""


@dataclass(frozen=True)
class JinjaTemplate(ConversationTemplate):
    """A chat template in the language of jinja2."""

    source: str
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    """Names of tokens that templates use: `bos_token`, `eos_token` and others."""

    def prepare(self) -> None:
        """Start the process that renders."""
        self._process.start()

    def encode_newest(
        self,
        newest_first: Iterable[Message],
        tokenizer: Tokenizer,
        *,
        system: str = "",
        for_answer: bool = False,
        max_length: int | None = None,
    ) -> list[int]:
        """Encode a conversation like `encode`, given its newest message first; reads only as many as there is room for.

        Raises:
            TokenizerError: If the template fails, or needs too much time or memory.
        """
        if max_length is not None and system and len(tokenizer.encode_end(system, max_length)) >= max_length:
            raise _too_long(max_length)
        turns = list[list[Message]]()  # newest first
        count = least = 0  # turns that may fit, and how many ids they have at least
        for turn in group_turns(newest_first):
            turns.append(turn)
            if max_length is not None:
                sizes = [len(tokenizer.encode_end(message.text, max_length)) for message in turn]
                least += sum(max(1, size - 1) for size in sizes)
                if least > max_length or max(sizes) >= max_length:
                    break
            count += 1

        @cache
        def encode(count: int) -> list[int]:
            """Encode the newest turns."""
            messages = [message for turn in reversed(turns[:count]) for message in turn]
            return self._encode(messages, tokenizer, system=system, for_answer=for_answer)

        if max_length is None:
            return encode(count)
        if count and len(encode(count)) > max_length:  # it is the longer the more turns there are
            count = bisect_right(range(1, count), max_length, key=lambda count: len(encode(count)))
        turn = turns[0] if turns else []
        return encode(count) if count else self._shorten(turn, tokenizer, system, for_answer, max_length)

    def _shorten(
        self, turn: Sequence[Message], tokenizer: Tokenizer, system: str, for_answer: bool, max_length: int
    ) -> list[int]:
        """Encode a turn that is too long: of its first message, the end is kept."""
        text_ids = tokenizer.encode_end(turn[0].text, max_length)[-max_length:] if turn else []
        kept = len(text_ids)
        for _ in range(ATTEMPTS):
            text = tokenizer.decode(text_ids[len(text_ids) - kept :], begins_text=False).lstrip("\ufffd")
            messages = [Message(turn[0].role, text), *turn[1:]] if turn else []
            ids = self._encode(messages, tokenizer, system=system, for_answer=for_answer)
            if len(ids) <= max_length:
                return ids
            kept = max(0, kept - (len(ids) - max_length))
        if system:
            raise _too_long(max_length)
        return ids[len(ids) - max_length :]

    def encode_user_text(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """Encode the first message of a user as far as its text goes.

        Raises:
            TokenizerError: If the template fails, or needs too much time or memory.
        """
        rendered = self._process.render([_entry("user", text, tokenizer, END_MARK)])
        return _encode_rendered(rendered.rpartition(END_MARK)[0] or rendered, tokenizer)

    def end_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Return the special token that follows what an assistant says, if one does.

        Raises:
            TokenizerError: If the template fails, or needs too much time or memory.
        """
        ids = tokenizer.encode_with_specials(self._after_answer)[:1]
        return frozenset(id for id in ids if tokenizer.is_special(id))

    def has_system_role(self) -> bool:
        """Return whether the text of a system message before all others is written anywhere.

        Raises:
            TokenizerError: If the template needs too much time or memory.
        """
        return self._has_system_role

    def to_dict(self) -> dict[str, Any]:
        """Return the template as an object of JSON."""
        return {"jinja": self.source, "special_tokens": dict(self.special_tokens)}

    def to_jinja(self) -> str:
        """Return the template."""
        return self.source

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "JinjaTemplate":
        """Create a template from fields that `to_dict` returned.

        Raises:
            ValueError: If a field is unknown or of the wrong type, or the template is too long.
        """
        source, tokens = values.get("jinja"), values.get("special_tokens", {})
        if not isinstance(source, str) or not values.keys() <= {"jinja", "special_tokens"}:
            raise ValueError("a template has `jinja`, a text, and `special_tokens`")
        if not isinstance(tokens, dict) or not all(isinstance(name, str) for name in tokens.values()):
            raise ValueError("special_tokens of the template must be an object of texts")
        if len(source) > MAX_TEMPLATE:
            raise ValueError(f"the template has {len(source):,} characters, over {MAX_TEMPLATE:,}")
        return cls(source, tokens)

    # --- implementation -----------------------------------------------------------------------------------------

    @cached_property
    def _process(self) -> "RenderProcess":
        return RenderProcess(self.source, self.special_tokens)

    @cached_property
    def _after_answer(self) -> str:
        """Return the text after an assistant's message, up to the next one."""
        entries = [{"role": "user", "content": "a"}, {"role": "assistant", "content": f"b{END_MARK}"}]
        _, mark, after = self._process.render(entries).rpartition(END_MARK)
        return after if mark else ""

    @cached_property
    def _has_system_role(self) -> bool:
        entries = [{"role": "system", "content": END_MARK}, {"role": "user", "content": "a"}]
        try:
            return END_MARK in self._process.render(entries)
        except TokenizerError:
            if self._process.fault:
                raise
            return False  # templates refuse roles that they do not know

    def _encode(self, messages: Sequence[Message], tokenizer: Tokenizer, *, system: str, for_answer: bool) -> list[int]:
        entries = [_entry("system", system, tokenizer)] if system else []
        entries += [_entry(message.role, message.text, tokenizer) for message in messages]
        text = self._process.render(entries, for_answer=for_answer)
        if entries and not text:
            raise TokenizerError("the chat template makes an empty text of the conversation", REMEDY)
        return _encode_rendered(text, tokenizer)


def parse_template(values: Mapping[str, Any]) -> ConversationTemplate:
    """Return the template, of either kind, whose `to_dict` returned these values.

    Raises:
        ValueError: If a field is unknown or of the wrong type.
    """
    return (JinjaTemplate if "jinja" in values else ChatTemplate).from_dict(values)


def _too_long(max_length: int) -> TokenizerError:
    problem = f"the system message leaves no room for another one: conversations have {max_length:,} tokens at most"
    return TokenizerError(problem, "give a shorter one, or ask for fewer --max-tokens")


class RenderProcess:
    """A process that renders a template; it starts when it is first needed, and ends with this object."""

    def __init__(self, source: str, values: Mapping[str, str]) -> None:
        self._source, self._values = source, values
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.fault = ""
        """Why the template is not rendered any more: it needed too much; empty if it did not."""

    def start(self) -> None:
        """Start the process, unless it runs."""
        with self._lock:
            self._start()

    def render(self, entries: Sequence[Entry], *, for_answer: bool = False) -> str:
        """Render a conversation.

        Raises:
            TokenizerError: If the template fails, or needs too much time or memory.
        """
        request = {
            **self._values, "messages": entries, "tools": None, "documents": None, "add_generation_prompt": for_answer,
        }  # fmt: skip
        with self._lock:
            if self.fault:
                raise TokenizerError(self.fault, REMEDY)
            process, reply = self._start(), None
            try:
                reply = _exchange(process, json.dumps(request).encode() + b"\n")
            finally:
                if reply is None:  # after Ctrl-C, too: the reply that is still to come is not that to the next request
                    process.kill()
                    self._process = None
            if reply is None:
                self.fault = f"the chat template was stopped: {_describe_end(process.wait())}"
                raise TokenizerError(self.fault, REMEDY)
        answer = json.loads(reply)
        if "error" in answer:
            raise TokenizerError(f"the chat template fails: {shorten(answer['error'], 200)}", REMEDY)
        return str(answer["text"])

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            if importlib.util.find_spec("jinja2") is None:
                raise TokenizerError("the chat template needs jinja2, which is not installed", "`pip install jinja2`")
            command = [sys.executable, "-I", "-S", str(WORKER), json.dumps([path for path in sys.path if path])]
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                    env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                    process_group=0,  # Ctrl-C at the terminal is not for it
                )  # fmt: skip
            except OSError as error:
                problem = f"the process that renders the chat template cannot start: {error.strerror or error}"
                raise TokenizerError(problem, "are too many processes or files open?") from None
            weakref.finalize(self, _end, self._process)
            _write(self._process, json.dumps(self._source).encode() + b"\n")
        return self._process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _write(process: "subprocess.Popen[bytes]", data: bytes) -> bool:
    assert process.stdin is not None
    view = memoryview(data)
    try:
        while view:
            view = view[process.stdin.write(view) :]
    except BrokenPipeError:
        return False
    return True


def _exchange(process: "subprocess.Popen[bytes]", line: bytes) -> bytes | None:
    """Write a line to a process and read one; return None if it ends, or does not answer."""
    assert process.stdout is not None
    if not _write(process, line):
        return None
    poll, deadline, reply = select.poll(), time.monotonic() + MAX_WAIT, bytearray()
    poll.register(process.stdout, select.POLLIN)
    while not reply.endswith(b"\n"):
        if not poll.poll(max(0, deadline - time.monotonic()) * 1000) or not (data := process.stdout.read(1 << 20)):
            return None
        reply += data
    return bytes(reply)


def _describe_end(code: int) -> str:
    """Say why a process ended, by its exit code."""
    if code in (-signal.SIGPROF, -signal.SIGKILL):
        return "it takes too long"
    return "it needs too much memory, or crashes jinja2"


def _entry(role: str, text: str, tokenizer: Tokenizer, end: str = "") -> Entry:
    """Return a message in which the names of special tokens are marked: people cannot forge the end of a message."""
    text = text.replace(BEGIN_MARK, "").replace(END_MARK, "")
    return {"role": role, "content": tokenizer.special_names.sub(f"{BEGIN_MARK}\\g<0>{END_MARK}", text) + end}


def _encode_rendered(text: str, tokenizer: Tokenizer) -> list[int]:
    """Encode a rendered conversation: names of special tokens are tokens, but plain text where they are marked."""
    if BEGIN_MARK not in text and END_MARK not in text:
        return tokenizer.encode_with_specials(text)
    marked = f"{BEGIN_MARK}({tokenizer.special_names.pattern}){END_MARK}|[{BEGIN_MARK}{END_MARK}]"
    first, *pieces = re.split(marked, text)
    ids = tokenizer.encode_with_specials(first)
    newline = tokenizer.encode("\n")
    for index, piece in enumerate(pieces):
        encode = tokenizer.encode_with_specials if index % 2 else tokenizer.encode
        # After a newline, since some tokenizers put a space before the beginning of a text.
        after = encode(f"\n{piece}") if piece else newline
        ids += after[len(newline) :] if after[: len(newline)] == newline else encode(piece)
    return ids
