"""The house: a file may import only what lies under it, and heavy libraries only where they belong."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tinychat

PACKAGE = Path(tinychat.__file__).parent

FLOORS = [
    {"errors", "setting", "origins", "settings", "face", "events", "atomic", "textutil"},
    {"corpus"},
    {"tokenizer"},
    {"store"},
    {"model"},
    {"generate"},
    {"train"},
    {"scoring", "conversation", "transcript"},
    {"session", "open_model", "background", "comparing", "guessing", "suite"},
    {"commands", "bench"},
    {"repl"},
    {"cli"},
]
"""From the ground up: each floor may import itself and those under it."""

HOMES = {
    "torch": {"model", "generate", "train", "bench", "scoring"},
    "lightning": {"train"},
    "tokenizers": {"tokenizer"},
    "prompt_toolkit": {"repl"},
    "rich": {"repl", "cli"},
    "PIL": {"repl"},
    "click": {"cli"},
}
"""Where a library may be imported at the top of a file; elsewhere torch is imported inside functions, others never."""

LAZY = {"torch", "safetensors"}

WITHOUT_TORCH = {
    "model/config.py",
    "model/diagram.py",
    "train/recipe.py",
    "train/schedule.py",
    "train/launch.py",
    "train/init_from.py",
    "train/plan.py",
    "train/planner.py",
    "train/control.py",
    "train/processes.py",
    "train/checkpoint.py",
    "train/event_log.py",
    "train/run_summary.py",
    "train/report.py",
    "generate/engine.py",
}


def level(part: str) -> int:
    return next(i for i, floor in enumerate(FLOORS) if part in floor)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if part_of(path) not in ("__init__", "__main__")]


def imports(tree: ast.AST, top_only: bool) -> Iterator[str]:
    """The modules that a file imports; at its top, or anywhere but in `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree) if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def walls_broken(path: Path, source: str) -> list[str]:
    own, tree, broken = part_of(path), ast.parse(source), []
    for module in imports(tree, top_only=False):
        names = module.split(".")
        if names[0] == "tinychat" and len(names) > 1 and level(names[1]) > level(own):
            broken.append(f"{path.name} imports {module}, which lies above it")
        if names[0] in HOMES and own not in HOMES[names[0]] and names[0] not in LAZY:
            broken.append(f"{path.name} imports {module}, which belongs to {sorted(HOMES[names[0]])}")
    for module in imports(tree, top_only=True):
        library = module.split(".")[0]
        if library == "torch" and own not in HOMES["torch"]:
            broken.append(f"{path.name} imports {module} before it is needed")
    return broken


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_wall_is_broken(path: Path) -> None:
    assert walls_broken(path, path.read_text(encoding="utf-8")) == []


def test_the_test_of_walls_finds_a_broken_one() -> None:
    path = PACKAGE / "corpus" / "x.py"
    assert walls_broken(path, "from tinychat.model.config import ModelConfig")
    assert walls_broken(path, "def f():\n    import click")
    assert walls_broken(path, "import torch")
    assert not walls_broken(path, "def f():\n    import torch")


@pytest.mark.parametrize("name", sorted(WITHOUT_TORCH))
def test_what_a_face_reads_first_comes_without_torch(name: str) -> None:
    module = "tinychat." + name.removesuffix(".py").replace("/", ".")
    code = f"import sys, {module}; sys.exit(bool({{'torch', 'lightning', 'transformers'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_file_has_one_idea_and_is_short() -> None:
    long = {path.name: count for path in files() if (count := len(path.read_text("utf-8").splitlines())) > 700}
    assert long == {}
