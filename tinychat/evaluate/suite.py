"""A suite: what a model is to answer, check by check, and how often it does. It is JSON Lines, one check a line.

    {"group": "capitals", "say": "what is the capital of peru?", "pattern": "\\bLima\\b"}
    {"group": "memory", "say": ["i'm Quillon", "how are you?", "what's my name?"], "pattern": "\\bQuillon\\b"}
    {"group": "manners", "say": "hi", "answer": ["Hello!", "Hi!"], "without": "(?i)don't know"}

`say` is a prompt, or the turns of a conversation, of which the last reply counts. It passes if it is one of `answer`,
has what `pattern` describes, and has nothing that `without` does: regular expressions of Python. A line
`{"words": "words.txt"}` names a file beside it: the words that replies may have, apart from those that the person said.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinychat.config.settings import Settings
from tinychat.errors import SourceError, UsageError
from tinychat.events import Finished
from tinychat.generate.stream import Answer, Batch, drive
from tinychat.session.conversation import Turn
from tinychat.session.session import Session

FIELDS = ("group", "say", "answer", "pattern", "without")
WORDS = "words"
WELL_FORMED = "well formed"
"""the group of all replies: each is to end by itself, and to have no broken words"""
LARGEST_BATCH = 32
"""conversations that are held at once"""
SEED = 1
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Check:
    """What is said, and what the last reply must be."""

    group: str
    say: tuple[str, ...]
    answers: tuple[str, ...] = ()
    """the texts of which it is to be one; none: any"""
    pattern: re.Pattern[str] | None = None
    without: re.Pattern[str] | None = None

    def accepts(self, reply: str) -> bool:
        """Whether the last reply is as it must be; space around it does not count."""
        reply = reply.strip()
        return not (
            (self.answers and reply not in self.answers)
            or (self.pattern and not self.pattern.search(reply))
            or (self.without and self.without.search(reply))
        )


@dataclass(frozen=True)
class Suite:
    """All checks of a file."""

    checks: tuple[Check, ...]
    words: frozenset[str] | None = None
    """what replies may consist of, in lower case; None: of anything"""


@dataclass
class Outcome:
    """What became of a check; `position` is its own in the suite."""

    position: int
    check: Check
    turns: list[Turn] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """what is wrong with the form of its replies, one by one; empty where nothing is"""

    @property
    def passed(self) -> bool:
        return self.check.accepts(self.turns[-1].answer)


@dataclass
class Tally:
    """How many of a group have passed."""

    passed: int = 0
    count: int = 0

    def add(self, passed: bool) -> None:
        self.passed += passed
        self.count += 1

    @property
    def share(self) -> float:
        return self.passed / self.count if self.count else 1.0


def read_suite(path: Path) -> Suite:
    """Reads the checks of a file.

    Raises:
        SourceError: it, or its file of words, cannot be read.
        UsageError: a line is no check.
    """
    checks: list[Check] = []
    words: frozenset[str] | None = None
    for number, line in enumerate(_read(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError("it is no object")
            if WORDS in values:
                words = frozenset(_read(path.parent / str(values[WORDS])).lower().split())
            else:
                checks.append(_check(values))
        except (ValueError, re.error) as error:
            raise UsageError(f"{path}, line {number}: {error}", f"a check has {', '.join(FIELDS)}") from None
    if not checks:
        raise SourceError(f"{path} holds no check", "write one a line, as JSON")
    return Suite(tuple(checks), words)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _check(values: dict[str, Any]) -> Check:
    """One line as a check; raises ValueError where it is none."""
    unknown = [name for name in values if name not in FIELDS]
    if unknown:
        raise ValueError(f"a check has no {unknown[0]!r}")
    say, answers = (_texts(values, name) for name in ("say", "answer"))
    if not say:
        raise ValueError("say is missing")
    patterns = {name: re.compile(str(values[name])) if name in values else None for name in ("pattern", "without")}
    if not (answers or any(patterns.values())):
        raise ValueError("it says nothing of the reply: answer, pattern or without")
    return Check(str(values.get("group", "")), say, answers, **patterns)


def _texts(values: dict[str, Any], name: str) -> tuple[str, ...]:
    given = values.get(name, [])
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} is a text or a list of texts, not {json.dumps(given)[:40]}")
    return tuple(texts)


def run(
    session: Session, suite: Suite, settings: Settings, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Outcome]:
    """Holds every conversation, many at once; each outcome as soon as it is there, in any order.

    The random numbers follow from the seed of the settings (1 where there is none), the place of the check in the
    suite and the turn alone.
    """
    batch = Batch(session.model.engine, should_stop)
    longest = max(len(check.say) for check in suite.checks)
    waiting = list(enumerate(suite.checks))[::-1]
    going: dict[Answer, Outcome] = {}
    answered: list[Outcome] = []
    """conversations whose next turn is to be asked"""

    def ask(outcome: Outcome) -> None:
        turn = len(outcome.turns)
        prompt = outcome.check.say[turn]
        answer = session.model.make_answer(
            prompt,
            turns=outcome.turns,
            settings=lambda: settings,
            seed=SEED if settings.seed is None else settings.seed,
            index=outcome.position * longest + turn,
        )
        outcome.turns.append(Turn(prompt))
        going[answer] = outcome
        batch.add(answer)

    def admit() -> bool:
        """Ask the next turns of conversations that go on, then begin as many others as there is room for."""
        if should_stop():
            return False
        while answered:
            ask(answered.pop(0))
        while waiting and len(going) < LARGEST_BATCH:
            position, check = waiting.pop()
            ask(Outcome(position, check))
        return False

    for answer, record in drive(batch, admit=admit):
        outcome = going[answer]
        outcome.turns[-1].record(record, answer.request.settings)
        if isinstance(record, Finished) and record.reason != "interrupted":
            del going[answer]
            outcome.broken.append(_fault(outcome, suite.words))
            if len(outcome.turns) < len(outcome.check.say):
                answered.append(outcome)
            else:
                yield outcome


def _fault(outcome: Outcome, words: frozenset[str] | None) -> str:
    """What is wrong with the form of the last reply; nothing where it is well formed."""
    turn = outcome.turns[-1]
    if not turn.answer.strip():
        return "nothing was said"
    if turn.finished is None or turn.finished.reason != "end":
        return "it did not end by itself"
    if words is None:
        return ""
    said = {word for one in outcome.turns for word in _WORD.findall(one.prompt.lower())}
    unknown = [word for word in _WORD.findall(turn.answer.lower()) if word not in words and word not in said]
    return f"no word: {unknown[0]}" if unknown else ""


def tally(outcomes: Sequence[Outcome]) -> dict[str, Tally]:
    """By group, in the order of their first checks; last the form of all replies."""
    groups: dict[str, Tally] = {}
    form = Tally()
    for outcome in sorted(outcomes, key=lambda outcome: outcome.position):
        groups.setdefault(outcome.check.group, Tally()).add(outcome.passed)
        for fault in outcome.broken:
            form.add(not fault)
    return groups | {WELL_FORMED: form}
