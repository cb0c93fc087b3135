"""The program `tinychat`, also `python -m tinychat`: SIGINT and the standard streams, from its first line to its last.

Until the command line runs, and again after it, there is nothing to clean up: SIGINT ends the process at once.
"""

# Built in or loaded already; others, even `signal`, take milliseconds, in which SIGINT would print a traceback.
import _signal  # type: ignore[import-not-found]
import os
import sys

INTERRUPTED = 130
"""Exit code of a process that SIGINT has ended."""


def leave(*_: object) -> None:
    """End the process at once."""
    os._exit(INTERRUPTED)


# A shell starts background jobs with SIGINT ignored: then it stays so.
HANDLES_INTERRUPTS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if HANDLES_INTERRUPTS:
    _signal.signal(_signal.SIGINT, leave)


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _replace_closed_streams()
    try:
        from tinychat.cli.main import run
        from tinychat.generate.loading import THREAD_ENVIRONMENT
        from tinychat.interrupts import raise_once
    except (ImportError, MemoryError, OSError) as error:  # too little memory, or an incomplete installation
        sys.stderr.write(f"tinychat: cannot start: {str(error) or 'out of memory'}\n")
        _exit(1)
    for name, value in THREAD_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    code = INTERRUPTED
    try:
        if HANDLES_INTERRUPTS:
            raise_once(leave)
        code = run(sys.argv[1:])
        if HANDLES_INTERRUPTS:
            _signal.signal(_signal.SIGINT, leave)
    except KeyboardInterrupt:  # just before or after `run` itself handles it; never twice
        pass
    _exit(code)


def _replace_closed_streams() -> None:
    """Open the null device for each standard stream that is closed: else the next file would get its number.

    Reading from a closed stdin and writing to a closed stdout still fail; what is written to a closed stderr is lost.
    """
    for number, name, flags, mode in (
        (0, "stdin", os.O_WRONLY, "r"),
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="replace"))  # noqa: PTH123, SIM115


def _exit(code: int) -> None:
    """Exit quietly, whatever the streams are connected to."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # a full disk or a closed pipe; Python would try again, and print a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if code == INTERRUPTED:  # a thread may be importing torch: if the interpreter were finalized now, it could abort
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
