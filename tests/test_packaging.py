"""What is installed: its dependencies, and the wheel, with a compiler and without."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
UNTESTED = ("wasm",)
"""Extras that the tests do without."""


def requirements() -> list[Requirement]:
    """Return what tinychat and its tests need."""
    project = PROJECT["project"]
    extras = (extra for name, extra in project["optional-dependencies"].items() if name not in UNTESTED)
    return list(map(Requirement, [*project["dependencies"], *itertools.chain(*extras)]))


def constraints() -> dict[str, str]:
    """Return the versions that are installed by `make`, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_the_versions_that_were_tested_are_written_down() -> None:
    """`make constraints` adds those of new dependencies."""
    versions = constraints()
    assert [one.name for one in requirements() if canonicalize_name(one.name) not in versions] == []
    assert [one for one in requirements() if not one.specifier.contains(versions[canonicalize_name(one.name)])] == []


def test_newer_versions_are_never_refused() -> None:
    """Somebody's environment has newer ones next month."""
    assert [str(one) for one in requirements() if re.search("[<~]|==", str(one.specifier))] == []


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what a wheel is built from, without a compiled library."""
    folder = tmp_path / "sources"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("tinychat", "data", "models/smalltalk", "models/tales", "models/translate", "models/translate-es-en"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "tinychat.1", folder / "docs")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    return folder


def build(sources: Path, **environment: str) -> Path:
    """Build a wheel, and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--wheel-dir", str(sources / "dist")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    subprocess.run([*command, str(sources)], env=environment, check=True, capture_output=True, timeout=600)
    (wheel,) = (sources / "dist").iterdir()
    return wheel


def answer(wheel: Path, folder: Path, *flags: str) -> str:
    """Return what the package in a wheel answers; its dependencies are those of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    command = [sys.executable, "-m", "tinychat", "-p", "hello", "--greedy", "--verbose", *flags]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "TINYCHAT_HOME": str(folder / "home")},
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.stdout
    return done.stderr


@pytest.mark.slow
def test_one_wheel_serves_all_pythons_of_a_platform(sources: Path, compiled: Path, tmp_path: Path) -> None:
    shutil.copy(compiled, sources / "tinychat" / "generate" / "native" / compiled.name)  # its sources are the same
    wheel = build(sources)
    assert re.fullmatch(r"tinychat-[\d.]+-py3-none-(?!any)\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        assert [Path(name).name for name in archive.namelist() if name.endswith(".so")] == [compiled.name]
        assert any(name.endswith("/data/share/man/man1/tinychat.1") for name in archive.namelist())
    assert "native engine" in answer(wheel, tmp_path / "installed", "--engine", "native")


@pytest.mark.slow
def test_without_a_compiler_there_is_a_wheel_too(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = build(sources, CC=str(tmp_path / "no-compiler"))
    assert wheel.name.endswith("-py3-none-any.whl")
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    assert "torch engine" in answer(wheel, tmp_path / "installed")
