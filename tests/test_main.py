"""The program itself: every way out is clean, whatever is interrupted, closed, full or missing."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

HOOK = """
import _signal, os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
at, count = int(os.environ.pop("INTERRUPT_AT")), -1

def interrupt(frame, event, arg):
    global count
    if count >= 0:
        count += 1
    elif event == "c_return" and arg is _signal.signal and frame.f_globals["__name__"] in NAMES:
        count = 0
    if count == at:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

NAMES = ("__main__", "tinychat.__main__")
if path := os.environ.get("COUNT_FILE"):
    import atexit
    from pathlib import Path
    atexit.register(lambda: Path(path).write_text(str(count)))
sys.setprofile(interrupt)
"""
"""`sitecustomize.py` of a process that gets SIGINT at one of its calls and returns, counted from the moment on at which
the program has set its first handler: no clock, no luck."""
SCRIPT = "import sys\nfrom tinychat.__main__ import main\nsys.exit(main())\n"
"""The script `tinychat` that pip makes."""
CALLS = {"help": ["--help"], "models": ["models"], "prompt": ["-p", "hi"], "repl": []}
MODULE = ["-m", "tinychat"]


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on Python's path whose `sitecustomize` interrupts the process."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "script").write_text(SCRIPT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path / "hook"), *sys.path)))
    return tmp_path


def run(redirections: str, *arguments: str, limit: str = ":") -> Ended:
    """Run the program with redirections of the shell, such as `>&-`, under a limit, such as `ulimit -v 60000`."""
    # Python does not notice that a limit cuts short the bytecode that it writes, and cannot read it again.
    line = ["bash", "-c", f'{limit}; "$@" {redirections}', "bash", sys.executable, "-B", *MODULE, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    return Ended(done.returncode, done.stdout, done.stderr)


def at_terminal(start: Sequence[str], environment: dict[str, str], *, keys: bytes = b"") -> tuple[int, bytes]:
    """Run a program at a terminal, type keys at its prompt, and return its exit code and all that it wrote."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *start], stdin=follower, stdout=follower, stderr=follower, env=os.environ | environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    out, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.05)[0]:
            try:
                out += os.read(leader, 1 << 16)
            except OSError:  # it has ended
                break
        if keys and "›".encode() in out:
            os.write(leader, keys)
            keys = b""
    else:
        process.kill()
    os.close(leader)
    return process.wait(), out


def count_moments(hook: Path, arguments: Sequence[str]) -> int:
    """Return the number of calls and returns in an undisturbed run."""
    environment = {"INTERRUPT_AT": "-2", "COUNT_FILE": str(hook / "count")}
    start = [sys.executable, *MODULE, *arguments]
    subprocess.run(start, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
    return int((hook / "count").read_text())


def interrupt(start: Sequence[str], arguments: Sequence[str], moment: int, codes: Sequence[int]) -> None:
    """Run the program, send it SIGINT at a moment, and check that it ends quietly."""
    environment = {"INTERRUPT_AT": str(moment)}
    if arguments:
        done = subprocess.run(
            [sys.executable, *start, *arguments],
            env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        code, err = done.returncode, done.stderr
    else:
        code, out = at_terminal(start, environment, keys=b"\x04")
        err = "".join(
            re.findall(r"Traceback.*|KeyboardInterrupt.*|Exception ignored.*", out.decode("utf-8", "replace"))
        )
    assert (code in codes, err) == (True, ""), f"at moment {moment}: exit code {code}"


@pytest.mark.parametrize("start", ["module", "script"])
@pytest.mark.parametrize(("name", "moment"), [("help", 0), ("models", 50), ("prompt", 3_000), ("repl", 30_000)])
def test_an_interrupted_start_is_quiet(hook: Path, name: str, moment: int, start: str) -> None:
    interrupt(MODULE if start == "module" else [str(hook / "script")], CALLS[name], moment, [130])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_is_quiet_at_every_moment(hook: Path, name: str) -> None:
    """At 50 moments of each call, from the first to the last, some in the clean-up of the interpreter."""
    last = count_moments(hook, CALLS[name]) if CALLS[name] else 400_000  # up to the prompt of the REPL
    for number in range(50):
        start = MODULE if number % 2 else [str(hook / "script")]
        interrupt(start, CALLS[name], last * number // 49, [0, 130])


@pytest.mark.parametrize(
    ("command", "arguments", "code", "said"),
    [
        ("<&-", ["-p", "hi", "--max-tokens", "3"], 0, ""),
        ("<&- 2>&-", ["models"], 0, ""),
        ("<&-", [], 1, "stdin or stdout is closed"),
        ("<&- >&-", ["-p", "hi"], 1, "stdin or stdout is closed"),
        (">&-", ["models"], 1, "stdin or stdout is closed"),
        (">&- 2>&-", ["--help"], 1, ""),
        (">/dev/full", ["models"], 1, "No space left on device"),
        (">/dev/full 2>/dev/full", ["--help"], 1, ""),
    ],
)
def test_closed_and_full_streams(letters: Path, command: str, arguments: list[str], code: int, said: str) -> None:
    ended = run(command, "-m", str(letters), *arguments) if arguments[:1] == ["-p"] else run(command, *arguments)
    assert ended.code == code, ended.err
    assert (said in ended.err) if said else (ended.err == ""), ended.err


def test_a_file_does_not_take_the_place_of_a_closed_stream(letters: Path) -> None:
    """What is opened first, the weights for example, must not get the number of stderr or stdout."""
    before = (letters / "model.safetensors").read_bytes()
    assert run("<&- >&- 2>&-", "-m", str(letters), "-p", "hi", "-v").code == 1
    assert (letters / "model.safetensors").read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
@pytest.mark.parametrize("megabytes", [30, 60])
@pytest.mark.slow
def test_too_little_memory_is_told_in_a_line(megabytes: int) -> None:
    ended = run("", "-m", "translate", "-p", "hi", limit=f"ulimit -v {megabytes}000")
    assert ended.code == 1
    assert re.match(r"tinychat: .*(failed to map|[Mm]emory|cannot load)", ended.err), ended.err
    assert ended.err.count("\n") <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
@pytest.mark.parametrize(
    "command", [["eval", "{}", __file__], ["train", __file__], ["-m", "{}", "-p", "hi", "--engine", "torch"]]
)
def test_what_needs_torch_names_the_limit_of_memory_that_is_too_low(
    command: list[str], home: Path, letters: Path
) -> None:
    ended = run("", *(argument.format(letters) for argument in command), limit="ulimit -v 110000")
    problem = "tinychat: the limit of memory is 107 MB, and this needs at least 900 MB"
    assert (ended.code, ended.err.splitlines()) == (1, [problem, "  raise the limit: `ulimit -v unlimited`"])
    assert not list(home.glob("runs/*"))


@pytest.mark.slow
def test_a_disk_without_room_is_told_in_a_line(home: Path, letters: Path) -> None:
    ended = run("", "import", str(letters), "--name", "copy", limit="ulimit -f 2")
    assert (ended.code, ended.err.count("\n") <= 2) == (1, True), ended.err
    assert "File too large" in ended.err
    assert not list(home.glob("models/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("-p", "hello", "--engine", "torch"), ("train", "text.txt"), ("eval", "tales", "x")]
)
def test_without_torch_what_needs_it_says_so(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the native engine does works without."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *more: None if name == 'torch' else find(name, *more)\n"
    )
    (tmp_path / "text.txt").write_text("to be or not to be")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), *sys.path)))
    assert run("", *arguments) == Ended(
        1, "", "tinychat: torch is not installed, and this needs it\n  pip install torch\n"
    )
    done = run("", "-p", "hello there", "--greedy", "--engine", "native")
    assert (done.code, done.err) == (0, "")
