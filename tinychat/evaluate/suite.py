"""Suites: checks of a model's replies, and how many of them pass. A suite is a file of JSON Lines, one check per line.

    {"group": "capitals", "say": "what is the capital of peru?", "pattern": "\\bLima\\b"}
    {"group": "memory", "say": ["i'm Quillon", "how are you?", "what's my name?"], "pattern": "\\bQuillon\\b"}
    {"group": "manners", "say": "hi", "answer": ["Hello!", "Hi!"], "without": "(?i)don't know"}

`say` is a prompt, or the prompts of a conversation, of which the last reply is checked. It passes if it equals one of
`answer`, matches the regular expression `pattern`, and does not match `without`. A line `{"words": "words.txt"}` names
a file beside the suite with the words that replies may have; words of the prompts are allowed too. After a line
`{"loose": true}`, case and punctuation do not count where a reply is compared with `answer`. Neither has other keys.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from tinychat.config.settings import Settings
from tinychat.errors import SourceError, UsageError
from tinychat.events import Finished
from tinychat.generate.answer import Answer
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.pattern import compile_pattern
from tinychat.session.conversation import Turn
from tinychat.session.session import Session
from tinychat.untrusted import MAX_FILE, parse_json, read_text

FIELDS = ("group", "say", "answer", "pattern", "without")
WORDS = "words"
LOOSE = "loose"
WELL_FORMED = "well formed"
"""The group of all replies: a reply passes if it ends by itself and has no unknown words."""
LARGEST_BATCH = 32
"""Number of conversations to hold at once."""
SEED = 1
_MARKS = ".,;:!?¡¿…\"'“”«»"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Check:
    """The prompts of a conversation, and the conditions on its last reply."""

    group: str
    prompts: tuple[str, ...]
    answers: tuple[str, ...] = ()
    """Texts of which the reply must be one; empty: any reply."""
    pattern: re.Pattern[str] | None = None
    without: re.Pattern[str] | None = None
    """Pattern that the reply must not match, whereas it must match `pattern`."""
    is_loose: bool = False
    """Whether case and punctuation are ignored where the reply is compared with `answers`."""

    def accepts(self, reply: str) -> bool:
        """Return whether a last reply meets all conditions; space around it is ignored."""
        reply = reply.strip()
        compared = _loosened if self.is_loose else str
        return not (
            (self.answers and compared(reply) not in map(compared, self.answers))
            or (self.pattern and not self.pattern.search(reply))
            or (self.without and self.without.search(reply))
        )


@dataclass(frozen=True)
class Suite:
    """The checks of a file."""

    checks: tuple[Check, ...]
    words: frozenset[str] | None = None
    """Words that replies may have, in lower case; None: any."""


@dataclass
class Outcome:
    """The conversation and the result of a check."""

    index: int
    """Index of the check in the suite."""
    check: Check
    turns: list[Turn] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """For each reply, why it is not well formed; empty if it is."""

    @property
    def passed(self) -> bool:
        """Whether the last reply meets all conditions."""
        return self.check.accepts(self.turns[-1].answer)


@dataclass
class Tally:
    """The number of checks that passed in a group."""

    passed: int
    count: int

    @property
    def pass_rate(self) -> float:
        """The fraction of checks that passed; 1 for an empty group."""
        return self.passed / self.count if self.count else 1.0


def read_suite(path: Path) -> Suite:
    """Read the checks of a file.

    Raises:
        SourceError: If the file, or its file of words, cannot be read, or holds no check.
        UsageError: If a line is not a valid check.
    """
    checks: list[Check] = []
    words: frozenset[str] | None = None
    is_loose = False
    lines = _read(path, may_be_pipe=True).split("\n")  # a string may hold other ends of lines, such as U+2028
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = parse_json(line)
            if not isinstance(values, dict):
                raise ValueError("it is no object")
            if alone := [name for name in (WORDS, LOOSE) if name in values and len(values) > 1]:
                raise ValueError(f"{alone[0]} stands on a line of its own")
            if WORDS in values:
                words = frozenset(_read(path.parent / str(values[WORDS])).lower().split())
            elif LOOSE in values:
                is_loose = bool(values[LOOSE])
            else:
                checks.append(_parse_check(values, is_loose))
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}", f"a check has {', '.join(FIELDS)}") from None
    if not checks:
        raise SourceError(f"{path} holds no check", "write one a line, as JSON")
    return Suite(tuple(checks), words)


def _read(path: Path, *, may_be_pipe: bool = False) -> str:
    """Read a suite, which may come from `--suite <(make-suite)`, or a file that a suite names."""
    try:
        if may_be_pipe and path.is_fifo():
            with path.open("rb") as pipe:
                return read_text(BytesIO(pipe.read(MAX_FILE + 1)))
        return read_text(path)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parse_check(values: dict[str, Any], is_loose: bool) -> Check:
    """Parse the values of a line; raises a ValueError if they are not a valid check."""
    if unknown := [name for name in values if name not in FIELDS]:
        raise ValueError(f"a check has no {unknown[0]!r}")
    values = {name: value for name, value in values.items() if value is not None}
    prompts, answers = (_parse_texts(values, name) for name in ("say", "answer"))
    if not prompts:
        raise ValueError("say is missing")
    patterns = {
        name: compile_pattern(str(values[name]), name=name) if name in values else None
        for name in ("pattern", "without")
    }
    if not (answers or any(patterns.values())):
        raise ValueError("it says nothing of the reply: answer, pattern or without")
    return Check(str(values.get("group", "")), prompts, answers, **patterns, is_loose=is_loose)


def _loosened(text: str) -> str:
    """Return the words and numbers of a text in lower case, without the marks around them."""
    return " ".join(word for part in text.casefold().split() if (word := part.strip(_MARKS)))


def _parse_texts(values: dict[str, Any], name: str) -> tuple[str, ...]:
    value = values.get(name, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} is a text or a list of texts, not {json.dumps(value)[:40]}")
    return tuple(texts)


def run(
    session: Session, suite: Suite, settings: Settings, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Outcome]:
    """Hold the conversation of every check, many at once; yield each outcome once it is complete, in any order.

    The random numbers depend on the seed of the settings (default: 1), the index of the check and the turn alone. Once
    `should_stop` returns true, the run ends without the remaining outcomes.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    batch = AnswerBatch(session.model.engine, should_stop)
    longest = max(len(check.prompts) for check in suite.checks)
    seed = SEED if settings.seed is None else settings.seed
    waiting = list(enumerate(suite.checks))[::-1]
    running: dict[Answer, Outcome] = {}
    answered: list[Outcome] = []  # conversations with prompts left

    def ask(outcome: Outcome) -> None:
        turns, make_answer = outcome.turns, session.model.make_answer
        prompt, index = outcome.check.prompts[len(turns)], outcome.index * longest + len(turns)
        answer = make_answer(prompt, turns=turns, settings=lambda: settings, seed=seed, index=index)
        turns.append(Turn(prompt))
        running[answer] = outcome
        batch.add(answer)

    def admit() -> bool:
        """Continue the conversations with prompts left, then begin others up to the size of the batch."""
        if should_stop():
            return False
        while answered:
            ask(answered.pop(0))
        while waiting and len(running) < LARGEST_BATCH:
            index, check = waiting.pop()
            ask(Outcome(index, check))
        return False

    for answer, record in drive(batch, admit=admit):
        outcome = running[answer]
        outcome.turns[-1].record(record, answer.request.settings)
        if isinstance(record, Finished) and record.reason != "interrupted":
            del running[answer]
            outcome.faults.append(_fault(outcome, suite.words))
            if len(outcome.turns) < len(outcome.check.prompts):
                answered.append(outcome)
            else:
                yield outcome


def _fault(outcome: Outcome, words: frozenset[str] | None) -> str:
    """Return why the last reply is not well formed; empty if it is."""
    turn = outcome.turns[-1]
    if not turn.answer.strip():
        return "nothing was said"
    if turn.finished is None or turn.finished.reason != "end":
        return "it did not end by itself"
    if words is None:
        return ""
    in_prompts = {word for one in outcome.turns for word in _WORD.findall(one.prompt.lower())}
    unknown = [word for word in _WORD.findall(turn.answer.lower()) if word not in words and word not in in_prompts]
    return f"no word: {unknown[0]}" if unknown else ""


def tally(outcomes: Sequence[Outcome]) -> dict[str, Tally]:
    """Count the checks that passed by group, in the order of their first checks; the last group is `WELL_FORMED`."""
    groups: dict[str, list[bool]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.index):
        groups.setdefault(outcome.check.group, []).append(outcome.passed)
    groups |= {WELL_FORMED: [not fault for outcome in outcomes for fault in outcome.faults]}
    return {group: Tally(sum(passed), len(passed)) for group, passed in groups.items()}
