"""Known data sets: fetched once, checked always. Nothing is asked of the network: the addresses are files."""

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest

from tinychat.errors import SourceError
from tinychat.text import datasets
from tinychat.text.datasets import KNOWN, DataFile, Dataset, fetch, find_file

CONTENT = b"one\ntwo\n" * 20_000


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A data set of a plain file and one within an archive."""
    (tmp_path / "plain").write_bytes(CONTENT)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("inner/b.txt", CONTENT[::-1])
    files = (
        DataFile("a.txt", (tmp_path / "plain").as_uri(), len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
        DataFile(
            "b.txt",
            (tmp_path / "packed.zip").as_uri(),
            len(CONTENT),
            hashlib.sha256(CONTENT[::-1]).hexdigest(),
            member="inner/b.txt",
        ),
    )
    dataset = Dataset("toy", "a toy", "ours", "none", files)
    monkeypatch.setitem(datasets.KNOWN, "toy", dataset)
    return dataset


def test_it_is_downloaded_once_and_checked(tmp_path: Path, known: Dataset) -> None:
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


def test_a_file_that_is_not_what_was_published_is_refused(tmp_path: Path, known: Dataset) -> None:
    (tmp_path / "plain").write_bytes(CONTENT + b"!")
    with pytest.raises(SourceError, match="not what was published"):
        fetch("toy", cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "toy").iterdir()) == []
    (tmp_path / "plain").write_bytes(CONTENT)
    folder = fetch("toy", cache=tmp_path / "cache")
    (folder / "a.txt").write_bytes(b"meddled with")
    with pytest.raises(SourceError, match="checksum differs"):
        fetch("toy", cache=tmp_path / "cache")


def test_what_cannot_be_reached_is_told(tmp_path: Path, known: Dataset) -> None:
    (tmp_path / "packed.zip").write_bytes(b"no zip")
    with pytest.raises(SourceError, match="cannot be downloaded"):
        fetch("toy", cache=tmp_path / "cache")
    (tmp_path / "plain").unlink()
    with pytest.raises(SourceError, match="cannot be downloaded") as caught:
        fetch("toy", cache=tmp_path / "other")
    assert "TINYCHAT_MIRROR" in caught.value.remedy


def test_a_mirror_takes_the_place_of_downloading(tmp_path: Path, known: Dataset) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "toy").mkdir(parents=True)
    (mirror / "toy" / "a.txt.gz").write_bytes(gzip.compress(CONTENT))
    with pytest.raises(SourceError, match=r"has no toy/b\.txt"):
        fetch("toy", cache=tmp_path / "cache", mirror=mirror)
    (mirror / "toy" / "b.txt").write_bytes(CONTENT[::-1])
    folder = fetch("toy", cache=tmp_path / "cache", mirror=mirror)
    assert find_file(folder, known.files[0]) == mirror / "toy" / "a.txt.gz"
    assert not (tmp_path / "cache").exists()


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(SourceError, match="'tinyshakespere'") as caught:
        fetch("tinyshakespere", cache=Path())
    assert caught.value.remedy == "is it tinyshakespeare?"


@pytest.mark.parametrize("dataset", KNOWN.values(), ids=KNOWN)
def test_every_data_set_is_told_in_full(dataset: Dataset) -> None:
    assert dataset.about
    assert dataset.licence
    assert dataset.split
    assert any(file.is_read for file in dataset.files)
    for file in dataset.files:
        assert file.url.startswith("https://")
        assert len(file.sha256) == 64
        assert file.bytes > 0
