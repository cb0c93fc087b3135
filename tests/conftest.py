"""What all tests share: a home of their own, and the mirror of data sets where there is one."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's data folder that starts empty; no setting leaks in from the machine."""
    folder = tmp_path / "home"
    for name in list(os.environ):
        if name.startswith("TINYCHAT_") and name != "TINYCHAT_MIRROR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TINYCHAT_HOME", str(folder))
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a mirror the tests that need it are left out, and the last lines say so."""
    if os.environ.get("TINYCHAT_MIRROR"):
        return
    needing = [item for item in items if item.get_closest_marker("mirror")]
    if needing:
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)
        config.stash[LEFT_OUT] = len(needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were left out for want of data."""
    count = terminalreporter.config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(f"{count} tests left out: they need TINYCHAT_MIRROR, a folder of data sets")


LEFT_OUT = pytest.StashKey[int]()
