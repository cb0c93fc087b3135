"""Known data sets: downloaded or generated once, and checked. URLs are files, so no network is used."""

import gzip
import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tinychat.corpus import registry
from tinychat.corpus.registry import KNOWN, DataFile, Dataset, fetch, find_file
from tinychat.corpus.sources import read_sources
from tinychat.errors import Interrupted, SourceError

CONTENT = b"one\ntwo\n" * 20_000


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Return a data set of a plain file and one in an archive."""
    (tmp_path / "plain").write_bytes(CONTENT)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("inner/b.txt", CONTENT[::-1])
    files = (
        DataFile("a.txt", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), (tmp_path / "plain").as_uri()),
        DataFile(
            "b.txt",
            len(CONTENT),
            hashlib.sha256(CONTENT[::-1]).hexdigest(),
            (tmp_path / "packed.zip").as_uri(),
            member="inner/b.txt",
        ),
    )
    dataset = Dataset("toy", "a toy", "ours", "none", files)
    monkeypatch.setitem(registry.KNOWN, "toy", dataset)
    return dataset


def test_a_data_set_is_downloaded_once_and_checked(tmp_path: Path, known: Dataset) -> None:
    told: list[tuple[int, int | None]] = []
    folder = fetch("toy", cache=tmp_path / "cache", progress=lambda done, total: told.append((done, total)))
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]
    assert (folder / "a.txt").read_bytes() == (folder / "b.txt").read_bytes()[::-1] == CONTENT
    assert told == sorted(told)
    assert {total for _, total in told} == {known.bytes}
    told.clear()
    (tmp_path / "plain").unlink()
    assert fetch("toy", cache=tmp_path / "cache", progress=lambda done, total: told.append((done, total))) == folder
    assert told == []


def test_a_file_with_a_wrong_checksum_is_refused(tmp_path: Path, known: Dataset) -> None:
    (tmp_path / "plain").write_bytes(CONTENT + b"!")
    with pytest.raises(SourceError, match="not what was published"):
        fetch("toy", cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "toy").iterdir()) == []
    (tmp_path / "plain").write_bytes(CONTENT)
    folder = fetch("toy", cache=tmp_path / "cache")
    (folder / "a.txt").write_bytes(b"meddled with")
    with pytest.raises(SourceError, match="checksum differs"):
        fetch("toy", cache=tmp_path / "cache")


def test_a_failed_download_is_an_error(tmp_path: Path, known: Dataset) -> None:
    (tmp_path / "packed.zip").write_bytes(b"no zip")
    with pytest.raises(SourceError, match="cannot be downloaded"):
        fetch("toy", cache=tmp_path / "cache")
    (tmp_path / "plain").unlink()
    with pytest.raises(SourceError, match="cannot be downloaded") as caught:
        fetch("toy", cache=tmp_path / "other")
    assert "TINYCHAT_MIRROR" in caught.value.remedy


def test_a_mirror_replaces_downloads(tmp_path: Path, known: Dataset) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "toy").mkdir(parents=True)
    (mirror / "toy" / "a.txt.gz").write_bytes(gzip.compress(CONTENT))
    with pytest.raises(SourceError, match=r"has no toy/b\.txt"):
        fetch("toy", cache=tmp_path / "cache", mirror=mirror)
    (mirror / "toy" / "b.txt").write_bytes(CONTENT[::-1])
    folder = fetch("toy", cache=tmp_path / "cache", mirror=mirror)
    assert find_file(folder, known.files[0]) == mirror / "toy" / "a.txt.gz"
    assert not (tmp_path / "cache").exists()


PROGRAM = """
import os, pathlib, signal, sys
name, _, out, _, seed = sys.argv[1:]
if seed == "12":
    os.kill(os.getpid(), signal.SIGINT)
if seed == "13":
    sys.exit("no luck")
folder = pathlib.Path(out)
folder.mkdir(parents=True, exist_ok=True)
folder.joinpath("train.txt").write_text(f"{name} by seed {seed}")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Return a data set that a program generates."""
    (tmp_path / "make.py").write_text(PROGRAM)
    monkeypatch.setattr(registry, "generators_folder", lambda: tmp_path)
    file = DataFile("train.txt", 13, hashlib.sha256(b"own by seed 1").hexdigest())
    dataset = Dataset("own", "ours", "CC0", "none", (file,), is_generated=True)
    monkeypatch.setitem(registry.KNOWN, "own", dataset)
    return dataset


def test_a_data_set_is_generated_once_and_checked(tmp_path: Path, own: Dataset) -> None:
    made = fetch("own", cache=tmp_path / "cache", mirror=tmp_path / "mirror") / "train.txt"
    assert made == tmp_path / "cache" / "own" / "train.txt"
    assert made.read_text() == "own by seed 1"
    time = made.stat().st_mtime_ns
    assert (fetch("own", cache=tmp_path / "cache") / "train.txt").stat().st_mtime_ns == time
    made.write_text("own by version 0")
    assert (fetch("own", cache=tmp_path / "cache") / "train.txt").read_text() == "own by seed 1"
    made.write_text("own by seed 2")
    with pytest.raises(SourceError, match="its checksum differs") as caught:
        fetch("own", cache=tmp_path / "cache")
    assert caught.value.remedy == "remove it, and it is made anew"
    made.unlink()
    made.parent.rmdir()
    assert (fetch("own", cache=tmp_path / "cache") / "train.txt").read_text() == "own by seed 1"


def test_a_notice_reports_generation_once(tmp_path: Path, own: Dataset) -> None:
    first, second = (read_sources(["own"], cache=tmp_path / "cache") for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.notices == ("own: made by its own program, with seed 1 (`tinychat data make` takes another)",)
    assert second.notices == ()


def test_a_failing_generator_is_an_error(tmp_path: Path, own: Dataset) -> None:
    with pytest.raises(SourceError, match="own cannot be made: no luck"):
        registry.generate("own", tmp_path / "cache" / "own", seed=13)
    assert not (tmp_path / "cache").exists()


def test_a_generator_that_ctrl_c_ends_has_not_failed(tmp_path: Path, own: Dataset) -> None:
    with pytest.raises(Interrupted, match="own was not made: it was stopped"):
        registry.generate("own", tmp_path / "cache" / "own", seed=12)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "dataset", [dataset for dataset in KNOWN.values() if dataset.is_generated], ids=lambda made: made.name
)
def test_generated_files_have_the_known_checksums(generated: Callable[[str], Path], dataset: Dataset) -> None:
    folder = generated(dataset.name)
    for file in dataset.files:
        content = (folder / file.name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(SourceError, match="'tinyshakespere'") as caught:
        fetch("tinyshakespere", cache=Path())
    assert caught.value.remedy == "is it tinyshakespeare?"


@pytest.mark.parametrize("dataset", KNOWN.values(), ids=KNOWN)
def test_every_data_set_is_fully_declared(dataset: Dataset) -> None:
    assert dataset.description
    assert dataset.licence
    assert dataset.split
    assert any(file.is_read for file in dataset.files)
    for file in dataset.files:
        assert file.url.startswith("https://") != dataset.is_generated
        assert len(file.sha256) == 64
        assert file.bytes > 0
