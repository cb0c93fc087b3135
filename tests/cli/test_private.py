"""How a private session is requested: by flag, environment or config file."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinychat.cli.main import run


class AtTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def is_private(monkeypatch: pytest.MonkeyPatch, letters: Path) -> Callable[..., bool]:
    """A function that returns whether the REPL that a call opens is private."""
    opened: list[bool] = []

    def open_repl(session: Any, *, debug: bool) -> int:
        opened.append(session.ui_options.current.private)
        return 0

    def is_private(*arguments: str) -> bool:
        with monkeypatch.context() as here:
            here.setattr(sys, "stdin", AtTerminal())
            here.setattr(sys, "stdout", AtTerminal())
            assert run(["-m", str(letters), *arguments]) == 0
        return opened[-1]

    monkeypatch.setattr("tinychat.repl.app.run", open_repl)
    return is_private


def test_the_flag_the_environment_and_the_config_file_make_it_private(
    is_private: Callable[..., bool], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_private()
    assert is_private("--private")
    (home / "config.toml").write_text("private = true")
    assert is_private()
    monkeypatch.setenv("TINYCHAT_PRIVATE", "no")
    assert not is_private()
    monkeypatch.setenv("TINYCHAT_PRIVATE", "1")
    assert is_private()


def test_a_value_that_is_no_truth_value_is_an_error(
    is_private: Callable[..., bool], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TINYCHAT_PRIVATE", "perhaps")
    with pytest.raises(AssertionError):
        is_private()
    assert "TINYCHAT_PRIVATE: private takes true or false, not 'perhaps'" in capsys.readouterr().err
