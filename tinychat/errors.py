"""All errors that tinychat raises for a user to see.

Each states the problem, with the value that caused it, and the remedy: one or two lines, which only the user interfaces
print.
"""

LEAST_MEMORY = 900 << 20
"""Bytes of address space with which torch loads and a small model is evaluated, on Linux."""
MAX_SHOWN = 500
"""Maximum number of characters of an invalid value in an error."""


class TinychatError(Exception):
    """Base class of all errors: `problem` is a sentence without a full stop, `remedy` advice to the user, if any."""

    exit_code = 1

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}\n{self.remedy}" if self.remedy else self.problem


def check_memory_limit() -> None:
    """Check that this process may take as much address space as torch, numpy and their libraries do.

    With less, some of them would end the process, each with lines of its own.

    Raises:
        TinychatError: If it may not.
    """
    try:
        import resource
    except ImportError:  # there are no such limits
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        problem = f"the limit of memory is {limit >> 20:,} MB, and this needs at least {LEAST_MEMORY >> 20:,} MB"
        raise TinychatError(problem, "raise the limit: `ulimit -v unlimited`")


def check_torch() -> None:
    """Check that torch is installed, and may take as much memory as it does: cheap, and before it is imported.

    Raises:
        TinychatError: If it is not, or may not.
    """
    import importlib.util

    check_memory_limit()
    if importlib.util.find_spec("torch") is None:
        raise TinychatError("torch is not installed, and this needs it", "pip install torch")


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system in one line: `/runs/novel/model: No space left on device`."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def describe_import_error(error: ImportError) -> str:
    """Describe in one line why a library cannot be loaded: it is missing, or does not fit into memory."""
    cause: BaseException = error
    while cause.__cause__ is not None:  # numpy raises pages of advice from the error of the system
        cause = cause.__cause__
    return f"cannot load a library: {' '.join(str(cause).split())[:MAX_SHOWN]}"


class UsageError(TinychatError):
    """Invalid options or arguments: unknown, missing or mutually exclusive."""

    exit_code = 2


class SettingError(UsageError):
    """Invalid value of a setting; `expected` describes the valid ones, `fault` says what is wrong if that is known."""

    def __init__(self, name: str, expected: str, seen: object, fault: str = "") -> None:
        shown = repr(seen)
        if len(shown) > MAX_SHOWN:
            shown = f"{shown[:MAX_SHOWN]}… of {len(shown):,} characters"
        super().__init__(f"{name.replace('_', '-')} takes {expected}, not {shown}" + (f": {fault}" if fault else ""))


class SourceError(TinychatError):
    """A text cannot be found or read."""


class SourceChangedError(SourceError):
    """A text changed while it was read; another reading may succeed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} changed while it was read", "try again when nothing writes to it any more")


class TokenizerError(TinychatError):
    """A tokenizer cannot be trained, read or used."""


class ModelError(TinychatError):
    """A model cannot be found, read or built."""


class RunError(TinychatError):
    """A training run cannot start, resume or be found."""


class GenerationError(TinychatError):
    """The model's output has no token that can be sampled."""


class Interrupted(TinychatError):
    """The user interrupted the program."""

    exit_code = 130
