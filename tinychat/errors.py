"""Every error that a person can cause or meet, as one family.

TinychatError                exit code 1
├── UsageError               exit code 2: the call itself is wrong
│   └── SettingError         a setting was given a value that it cannot take
├── SourceError              a text cannot be found or read
├── TokenizerError           a tokenizer cannot be made, read or used
├── ModelError               a model cannot be found, read or built
├── RunError                 a training run cannot start, go on or be found
├── GenerationError          the model gave something that no token can be drawn from
└── Interrupted              exit code 130: the person stopped it

Each says what was wrong with the value seen (`problem`) and what to do (`remedy`): one or two lines, printed by
the faces alone.
"""


class TinychatError(Exception):
    """What went wrong, and what to do about it.

    Args:
        problem: what was wrong, with the value seen; a sentence without a full stop.
        remedy: what to do; empty where there is nothing to do.
    """

    exit_code = 1

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}\n{self.remedy}" if self.remedy else self.problem


def failure(error: OSError) -> str:
    """What the system would not do, in one line: `/runs/novel/model: No space left on device`."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


class UsageError(TinychatError):
    """The call itself is wrong: an unknown option, a missing argument, two that exclude each other."""

    exit_code = 2


class SettingError(UsageError):
    """A setting was given a value that it cannot take."""

    def __init__(self, name: str, expected: str, seen: object) -> None:
        super().__init__(f"{name.replace('_', '-')} takes {expected}, not {seen!r}")
        self.name = name
        self.expected = expected
        self.seen = seen


class SourceError(TinychatError):
    """A text cannot be found or read."""


class TokenizerError(TinychatError):
    """A tokenizer cannot be made, read or used."""


class ModelError(TinychatError):
    """A model cannot be found, read or built."""


class RunError(TinychatError):
    """A training run cannot start, go on or be found."""


class GenerationError(TinychatError):
    """The model gave something that no token can be drawn from."""


class Interrupted(TinychatError):
    """The person stopped it."""

    exit_code = 130
