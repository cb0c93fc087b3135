"""The kernel is compiled by one process at a time, however many want it and however the one before ended."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tinychat.generate.native import build

COMPILER = """#!/bin/sh
echo $PPID >> {folder}/calls
while [ ! -e {folder}/go ]; do sleep 0.01; done
while [ "$1" != -o ]; do shift; done
echo compiled > "$2"
"""
"""Stands for a compiler: notes the process that called it, and ends when it may."""


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine without a compiled kernel; return the folder of what its compiler notes."""
    path = tmp_path / "cc"
    path.write_text(COMPILER.format(folder=tmp_path))
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    monkeypatch.setattr(
        build, "library_file", lambda: tmp_path / "native" / "kernel.so"
    )  # an installation may ship one
    return tmp_path


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_compiling() -> bool:
    from filelock import Timeout

    try:
        with build.lock(build.library_file()).acquire(blocking=False):
            return False
    except Timeout:
        return True


def callers(folder: Path) -> set[int]:
    path = folder / "calls"
    return {int(line) for line in path.read_text().split()} if path.exists() else set()


def test_one_of_many_processes_compiles(compiler: Path) -> None:
    for _ in range(3):
        build.start_compiling()
    wait_for(lambda: callers(compiler))
    for _ in range(3):
        build.start_compiling()
    assert not build.is_compiled()
    (compiler / "go").touch()
    wait_for(lambda: build.is_compiled() and not is_compiling())
    assert len(callers(compiler)) == 1
    assert sorted(path.name for path in build.library_file().parent.iterdir()) == [build.library_file().name, "lock"]


def test_a_process_that_needs_the_kernel_waits_for_the_one_that_compiles_it(compiler: Path) -> None:
    build.start_compiling()
    wait_for(lambda: callers(compiler))
    (compiler / "go").touch()
    build.compile_once(build.library_file())
    assert len(callers(compiler)) == 1


@pytest.mark.slow
def test_what_a_killed_compilation_leaves_is_in_nobodys_way(compiler: Path) -> None:
    build.start_compiling()
    wait_for(lambda: callers(compiler))
    (killed,) = callers(compiler)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not is_compiling())
    (compiler / "go").touch()
    assert list(build.library_file().parent.glob("tmp*"))
    build.start_compiling()
    wait_for(lambda: build.is_compiled() and not is_compiling())
    assert callers(compiler) > {killed}
    assert not list(build.library_file().parent.glob("tmp*"))
