"""The house: a file imports only what lies below it, in no circle, and heavy libraries only where they belong."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import tinychat

PACKAGE = Path(tinychat.__file__).parent

FLOORS = (
    "",  # errors, events, atomic, interrupts, textutil, untrusted: the standard library alone
    "config",
    "corpus",
    "tokenizer",
    "store",
    "model",
    "formats",
    "generate",
    "train",
    "session",
    "serve",
    "evaluate",
    "commands",
    "repl/render",
    "api",
    "repl",
    "cli",
)
"""Folders from the ground up: the files of each import one another, without a circle, and those of the floors below."""

LIBRARIES = {
    "torch": {"model", "generate", "train", "evaluate"},
    "lightning_fabric": {"train"},
    "tokenizers": {"tokenizer"},
    "jinja2": {"tokenizer"},
    "prompt_toolkit": {"repl", "repl/render"},
    "rich": {"repl", "repl/render", "cli"},
    "PIL": {"api", "repl/render"},
    "llm": {"api"},
    "click": {"cli"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
}
"""Folders that may import a library at the top of a file. Others may import torch inside functions, the rest never."""

LAZY = {"torch", "safetensors"}

WITHOUT_TORCH = {
    "api/model.py",
    "api/runs.py",
    "generate/engine.py",
    "model/config.py",
    "model/shapes.py",
    "train/batches.py",
    "train/checkpoint.py",
    "train/data.py",
    "train/event_log.py",
    "train/launch.py",
    "train/loggers.py",
    "train/planner.py",
    "train/recipe.py",
    "train/report.py",
    "train/sizes.py",
    "train/split.py",
}
"""Files that the REPL and the command line read before anything is trained or generated."""

WRITERS = {"tinychat.cli.output", "tinychat.repl.render.console", "tinychat.repl.render.terminal"}
"""The files that write to a terminal: they escape what drives it, so all others write through them."""

LONGEST = 700


def floor_of(module: str) -> str:
    """The folder of a module: `tinychat.repl.render.plot` lies in `repl/render`."""
    *folders, _ = module.split(".")[1:]
    return "/".join(folders[:1] if folders[:1] == ["generate"] else folders)


def dotted(path: Path) -> str:
    """The dotted name of a file of the package."""
    return ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))


MODULES = {
    dotted(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.stem.startswith("__") and path.parent.name != "remote_code"
}
"""The files of the package's modules, without `__init__` and `__main__`, by their dotted names.

Those in `formats/remote_code` are data: they are copied to exported folders, and never imported by tinychat.
"""


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def graph() -> dict[str, set[str]]:
    """The modules of the package that each of them imports."""
    return {module: {other for other in imports(tree_of(module)) if other in MODULES} for module in MODULES}


def imports(tree: ast.AST, *, top_only: bool = False) -> Iterator[str]:
    """The modules that a file imports: at its top, or anywhere, in functions and under `TYPE_CHECKING` too."""
    for node in ast.iter_child_nodes(tree) if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def broken_walls(module: str, tree: ast.AST) -> list[str]:
    """The imports of a module that the floors or the libraries' places forbid."""
    own, broken = floor_of(module), []
    for other in imports(tree):
        library = other.split(".")[0]
        if other in MODULES and FLOORS.index(floor_of(other)) > FLOORS.index(own):
            broken.append(f"{module} imports {other}, which lies above it")
        if library in LIBRARIES and own not in LIBRARIES[library] and library not in LAZY:
            broken.append(f"{module} imports {other}, which belongs to {sorted(LIBRARIES[library])}")
    for other in imports(tree, top_only=True):
        if other.split(".")[0] == "torch" and own not in LIBRARIES["torch"]:
            broken.append(f"{module} imports {other} before it is needed")
    return broken


def raw_writes(tree: ast.AST) -> list[str]:
    """The expressions that write to stdout or stderr past the files that escape control characters."""
    wrong = re.compile(
        r"click\.(echo\w*|secho|prompt|confirm|progressbar)|(rich\.)?print|(rich\.console\.)?Console|(traceback\.)?print_exc"
        r"|(sys\.)?(__)?std(out|err)(__)?\.(buffer|write|writelines)|print_formatted_text|\w*terminal\.(control|out)"
    )
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) or id(node) in called]
    return [text for node in nodes if wrong.fullmatch(text := ast.unparse(node).removeprefix("self._"))]


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A circle of imports, its first module again at its end; empty where there is none."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for other in sorted(graph.get(module, ())):
            if circle := visit(other, [*path, module]):
                return circle
        done.add(module)
        return []

    return next((circle for module in graph if (circle := visit(module, []))), [])


@pytest.mark.parametrize("module", MODULES)
def test_no_wall_is_broken(module: str) -> None:
    assert broken_walls(module, tree_of(module)) == []


def test_every_folder_has_a_floor() -> None:
    assert {floor_of(module) for module in MODULES} <= set(FLOORS)


@pytest.mark.slow
def test_no_import_leads_back() -> None:
    assert find_circle(graph()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from tinychat.generate.stream import stream",
        "def f():\n    from tinychat.generate import stream",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tinychat.generate.stream",
    ],
)
def test_a_made_up_circle_is_found(source: str) -> None:
    """`generate.stream` imports `generate.engine`: any import the other way closes a circle."""
    changed = {module: set(others) for module, others in graph().items()}
    assert "tinychat.generate.engine" in changed["tinychat.generate.stream"]
    changed["tinychat.generate.engine"] |= {other for other in imports(ast.parse(source)) if other in MODULES}
    assert set(find_circle(changed)) >= {"tinychat.generate.engine", "tinychat.generate.stream"}


def test_broken_walls_are_found() -> None:
    module = "tinychat.corpus.made_up"
    assert broken_walls(module, ast.parse("from tinychat.model.config import ModelConfig"))
    assert broken_walls(module, ast.parse("from tinychat.model import config"))
    assert broken_walls(module, ast.parse("def f():\n    import click"))
    assert broken_walls(module, ast.parse("import torch"))
    assert not broken_walls(module, ast.parse("def f():\n    import torch"))


@pytest.mark.parametrize("module", sorted(MODULES.keys() - WRITERS))
def test_all_output_is_written_where_it_is_escaped(module: str) -> None:
    assert raw_writes(tree_of(module)) == []


@pytest.mark.parametrize(
    "source",
    [
        "click.echo(text)",
        "write_lines(run, click.echo)",
        "print(text)",
        "sys.stdout.write(text)",
        "sys.stdout.buffer.write(data)",
        "sys.stderr.write(text)",
        "traceback.print_exc()",
        "Console().print(text)",
        "self._terminal.control(text)",
    ],
)
def test_output_past_the_writers_is_found(source: str) -> None:
    assert raw_writes(ast.parse(source))


def test_front_ends_start_without_torch() -> None:
    """One process reads them in turn, and names the first that reads a heavy library."""
    modules = ["tinychat." + name.removesuffix(".py").replace("/", ".") for name in sorted(WITHOUT_TORCH)]
    code = (
        "import importlib, sys\n"
        "for module in sys.argv[1:]:\n"
        "    importlib.import_module(module)\n"
        "    if {'torch', 'lightning_fabric', 'transformers'} & set(sys.modules): sys.exit(module)"
    )
    done = subprocess.run([sys.executable, "-c", code, *modules], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("module", "libraries"),
    [
        ("tinychat.repl.app", {"rich"}),
        ("tinychat.cli.manage", {"rich"}),
        ("tinychat.repl.training_view", {"tinychat.commands", "tokenizers"}),
    ],
)
@pytest.mark.slow
def test_libraries_are_read_only_where_they_are_used(module: str, libraries: set[str]) -> None:
    code = f"import sys, {module}; sys.exit(bool({libraries} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_file_is_too_long() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {path.name: count for path, count in lines.items() if count > LONGEST} == {}
