"""Paths of user data."""

from pathlib import Path

import pytest

from tinychat.store import paths


def test_the_data_folder_may_begin_with_a_tilde_that_is_no_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(paths.HOME, "~no such user/data")
    monkeypatch.setenv(paths.MIRROR, "~no such user/mirror")
    assert paths.data_folder() == tmp_path / "~no such user" / "data"
    assert paths.mirror() == Path("~no such user/mirror")
