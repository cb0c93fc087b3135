"""Atomic writes of files and folders, also after a crash."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tinychat import atomic
from tinychat.atomic import atomic_file, atomic_folder, atomic_write, remove_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writes_text_as_utf8_and_bytes_as_they_are(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a" / "text.txt", "naïve 语\n")
    atomic_write(tmp_path / "a" / "bytes", b"\r\n\0")
    assert (tmp_path / "a" / "text.txt").read_bytes() == "naïve 语\n".encode()
    assert (tmp_path / "a" / "bytes").read_bytes() == b"\r\n\0"
    assert names(tmp_path / "a") == ["bytes", "text.txt"]


def test_replaces_a_file(tmp_path: Path) -> None:
    atomic_write(tmp_path / "f", "old")
    atomic_write(tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "new"


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "f", tmp_path / "link"
    link.symlink_to(path)
    path.touch()
    for mode in (0o600, 0o640, 0o755):
        path.chmod(mode)
        for named in (path, link):
            atomic_write(named, "text")
            assert stat.S_IMODE(path.stat().st_mode) == mode
    atomic_write(path, "text", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    atomic_write(tmp_path / "f", "old")
    with pytest.raises(TypeError), atomic_file(tmp_path / "f") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "old"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_replaces_a_folder_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
    if not can_exchange:
        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
    for number in range(3):
        with atomic_folder(tmp_path / "model") as draft:
            (draft / "inner").mkdir()
            (draft / "inner" / f"{number}").write_text(str(number))
        assert names(tmp_path) == ["model"]
        assert names(tmp_path / "model" / "inner") == [str(number)]


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "model") as draft:
        (draft / "a").write_text("old")
    with pytest.raises(FileExistsError), atomic_folder(tmp_path / "model") as draft:
        draft.mkdir()
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["a"]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    atomic_write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from tinychat.atomic import atomic_folder\n"
        "with atomic_folder(pathlib.Path(sys.argv[1])) as draft:\n"
        "    (draft / 'half').write_text('x'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model [1]")], check=False)
    assert len(names(tmp_path)) == 1
    with atomic_folder(tmp_path / "model [1]"):
        pass
    assert names(tmp_path) == ["model [1]"]


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic_folder(tmp_path / "model") as draft:
        for name in ("a", "busy", "z"):
            (draft / name).write_text(name)
    unlink = os.unlink

    def refuse(path: str, **options: int) -> None:
        if Path(path).name == "busy":
            raise PermissionError(1, "Operation not permitted", path)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(OSError, match="not all of it could be removed") as caught:
        remove_folder(tmp_path / "model")
    assert list(tmp_path.iterdir()) == [Path(caught.value.filename)]
    assert names(Path(caught.value.filename)) == ["busy"]
