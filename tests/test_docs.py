"""Tables in docs/, the manual page, keywords of Python are generated: `python tests/test_docs.py` does so again."""

import io
import itertools
import json
import re
import runpy
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from tinychat.cli.main import COMMANDS as CLI_COMMANDS
from tinychat.cli.main import tinychat as cli
from tinychat.commands import COMMANDS
from tinychat.commands.registry import CATEGORIES
from tinychat.config.option import Option
from tinychat.config.settings import SETTINGS, UI_OPTIONS, Settings
from tinychat.corpus.registry import KNOWN
from tinychat.evaluate.perplexity import Score
from tinychat.events import EVENTS
from tinychat.formats.registry import FORMATS
from tinychat.repl.render.results import KEYS
from tinychat.serve.options import SERVER_OPTIONS
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.lesson import list_lessons
from tinychat.session.session import Session
from tinychat.session.transcript import transcript_of
from tinychat.store.models import open_info
from tinychat.store.paths import bundled_models
from tinychat.train.recipe import RECIPE_FIELDS, SECTIONS, list_recipes
from tinychat.train.report import RunSummary

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
KEYWORDS = ROOT / "tests" / "api" / "keywords.py"
"""Generates the types of keywords in Python."""
MAN_PAGE = ROOT / "tests" / "man_page.py"
"""Generates the manual page."""
DOCS = [README, *sorted((ROOT / "docs").glob("*.md"))]
MAX_README_LINES = 200


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; bars in cells are escaped."""
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    heads = list(columns)
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(words: Iterable[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def options_table(options: Mapping[str, Option]) -> str:
    return table(
        ("name", "flags", "takes", "default", "what it does"),
        (
            (
                f"`{name}`",
                code(dict.fromkeys((*option.flags, option.flag))),
                option.expected,
                option.show(option.default),
                option.help,
            )
            for name, option in options.items()
        ),
    )


def environment_table() -> str:
    rows = ((f"`{option.variable}`", f"`{name}`") for name, option in (UI_OPTIONS | SETTINGS).items())
    return table(("variable", "sets"), rows)


def commands_table() -> str:
    listed = sorted(COMMANDS.values(), key=lambda command: CATEGORIES.index(command.category))
    rows = (
        (f"`{command.synopsis}`", code(f"/{alias}" for alias in command.aliases), command.help.split("\n")[0])
        for command in listed
    )
    return table(("command", "also", "what it does"), rows)


def command_line_tables() -> str:
    """Return a table of options for each command, without settings and recipe fields, which have their own tables."""
    context = click.Context(cli, info_name="tinychat", **cli.context_settings)
    parts = ["### `tinychat`", "", own_options(cli)]
    for name, (_, about) in CLI_COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        parts += ["", *usage(command, click.Context(command, info_name=name, parent=context), about)]
        if isinstance(command, click.Group):
            for below, nested in command.commands.items():
                inner = click.Context(command, info_name=name, parent=context)
                about = (nested.help or "").splitlines()[0]
                parts += ["", *usage(nested, click.Context(nested, info_name=below, parent=inner), about)]
    return "\n".join(parts)


def usage(command: click.Command, context: click.Context, about: str) -> list[str]:
    words = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    return [f"### `{' '.join([context.command_path, *words])}`", "", about, "", own_options(command)]


def own_options(command: click.Command) -> str:
    options = [option for option in command.params if isinstance(option, click.Option)]
    names = {option.name for option in options}
    elsewhere: set[str | None] = {"help", "version", "debug"}
    if {"top_p", "n_layer"} & names:  # the command takes all settings, or all recipe fields
        elsewhere |= {*SETTINGS, *RECIPE_FIELDS, "greedy"}
    rows = [(f"`{spelled(option)}`", option.help or "") for option in options if option.name not in elsewhere]
    return table(("option", "what it does"), rows) if rows else "It has no options of its own."


def spelled(option: click.Option) -> str:
    """Return the flags and the placeholder of an option: `-p, --prompt TEXT`."""
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = "" if option.is_flag else option.metavar or "|".join(choices) or option.type.name.split()[0].upper()
    return f"{', '.join(option.opts)} {value}".rstrip()


def recipe_fields_tables() -> str:
    sections = []
    for section in SECTIONS:
        chosen = {name: field for name, field in RECIPE_FIELDS.items() if field.section == section}
        sections.append(f"### [{section}]\n\n" + options_table(chosen))
    return "\n\n".join(sections)


def recipes_table() -> str:
    rows = (
        (
            f"`{info.name}`",
            info.about,
            f"{info.author}, [{info.title}]({info.source}), {info.year}" if info.title else "",
        )
        for info in list_recipes()
    )
    return table(("recipe", "what it makes", "whose work it follows"), rows)


def datasets_table() -> str:
    rows = (
        (f"`{name}`", known.description, f"{known.bytes / 1e6:.1f} MB", known.licence) for name, known in KNOWN.items()
    )
    return table(("name", "what it holds", "size", "licence"), rows)


def formats_table() -> str:
    rows = ((f"`{name}`", format.description) for name, format in FORMATS.items() if format.write)
    return table(("`--to`", "what it writes"), rows)


def lessons_table() -> str:
    rows = (
        (str(one.number), f"`{one.name}`", one.about, str(one.minutes), ", ".join(step.title for step in one.steps[1:]))
        for one in list_lessons()
    )
    return table(("", "lesson", "what it is about", "minutes", "steps"), rows)


def events_table() -> str:
    rows = ((f"`{name}`", code(field.name for field in fields(kind))) for name, kind in EVENTS.items())
    return table(("`event`", "other keys"), rows)


def keys_of(kind: type, without: Iterable[str] = ()) -> Callable[[], str]:
    return lambda: code(field.name for field in fields(kind) if field.name not in without)


def sample_transcript() -> dict[str, Any]:
    transcript: dict[str, Any] = json.loads(transcript_of("smalltalk", Settings(), Conversation([Turn("hello there")])))
    return transcript


def recorded_steps(command: str) -> str:
    """Return what a command writes on a dumb terminal about a toy, after an answer."""
    from tinychat.commands.results import Steps
    from tinychat.repl.render.steps import plain_lines
    from tinychat.repl.render.terminal import Terminal

    session = Session()
    session.settings.set("engine", "torch")
    session.open_model(str(ROOT / "tests" / "toys" / "statquest"))
    list(session.answer("what is statquest"))
    result = COMMANDS.dispatch(session, command)
    assert isinstance(result, Steps)
    terminal = Terminal(io.StringIO(), lambda: (80, 24), colour=False, dumb=True)
    return "\n".join(["```", *plain_lines(terminal, result.computation), "```"])


TABLES: dict[str, Callable[[], str]] = {
    "settings": lambda: options_table(SETTINGS),
    "server options": lambda: options_table(SERVER_OPTIONS),
    "interface options": lambda: options_table(UI_OPTIONS),
    "environment": environment_table,
    "commands": commands_table,
    "command line": command_line_tables,
    "recipe fields": recipe_fields_tables,
    "recipes": recipes_table,
    "data sets": datasets_table,
    "formats": formats_table,
    "events": events_table,
    "lessons": lessons_table,
    "eval keys": keys_of(Score, without=["notices"]),
    "runs keys": keys_of(RunSummary),
    "transcript keys": lambda: code(sample_transcript()),
    "steps of statquest": lambda: recorded_steps("/steps"),
    "training step of statquest": lambda: recorded_steps("/steps train"),
    "turn keys": lambda: code(sample_transcript()["turns"][0]),
}


def with_tables(text: str) -> str:
    """Return a document with its tables regenerated, each between `<!-- name -->` and `<!-- end -->`."""

    def replace(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n{TABLES[found[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- (?!end)([\w ]+) -->\n.*?<!-- end -->", replace, text, flags=re.DOTALL)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_the_tables_are_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == with_tables(text), "run `python tests/test_docs.py`"


def test_every_table_is_in_a_document() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in DOCS)
    assert [name for name in TABLES if f"<!-- {name} -->" not in texts] == []


def test_links_point_to_files() -> None:
    folders = (ROOT / name for name in ("data", "docs", "models", "tests", "tinychat"))
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in itertools.chain(ROOT.glob("*.md"), *(folder.rglob("*.md") for folder in folders))
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_all_optional_packages_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8").partition("## Optional packages")[2]
    for_users = set(project["optional-dependencies"]) - {"test", "test-llama", "wasm"}
    assert re.findall(r"^\| `(\w+)` ", text, re.MULTILINE) == sorted(for_users)


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_the_pages_of_models_that_have_answered_are_as_large_as_told() -> None:
    from tinychat.formats.page import render_page
    from tinychat.generate.native.engine import choose_precision

    text = " ".join((ROOT / "docs" / "html.md").read_text(encoding="utf-8").split())
    told = {name: float(size) for name, size in re.findall(r"`([\w-]+)`(?: is)? ([\d.]+) MB", text)}
    infos = [open_info(path.parent) for path in bundled_models().glob("*/config.json")]
    for info in infos:
        choose_precision(info, threads=1)  # what int8 costs is measured, and decides the precision of the page
    assert told == pytest.approx({info.name: len(render_page(info).encode()) / 1e6 for info in infos}, abs=0.1)


@pytest.mark.parametrize("words", ["make chat", "make test", "pip install ."])
def test_the_readme_starts_with_the_commands(words: str) -> None:
    assert words in "\n".join(README.read_text(encoding="utf-8").splitlines()[:12])


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


def files_in_the_tree() -> set[str]:
    """Return the files in the README's tree: a folder, then `file: phrase · file: phrase`, over several lines."""
    block = README.read_text(encoding="utf-8").partition("## Where things are")[2]
    names: list[str] = []
    folder = ""
    for line in re.findall(r"^    (.*)", block, flags=re.MULTILINE):
        start, entries = re.fullmatch(r"(\S+/)? +(.*)", line).groups()  # type: ignore[union-attr]
        folder = folder if start is None else start.removeprefix("tinychat/")
        names += [folder + entry.partition(":")[0] for entry in entries.split(" · ")]
    return {name if Path(name).suffix else f"{name}.py" for name in names}


def test_the_tree_names_every_file_of_the_package_and_no_other() -> None:
    package = ROOT / "tinychat"
    there = {path.relative_to(package) for kind in ("py", "c", "h") for path in package.rglob(f"*.{kind}")}
    named = files_in_the_tree()
    files = {path.as_posix() for path in there if not path.name.startswith("__") or path.as_posix() in named}
    assert sorted(named - files) == []
    assert sorted(files - named) == []


def test_the_keys_of_the_overview_are_in_the_table_of_keys() -> None:
    table = (ROOT / "docs/commands.md").read_text().partition("### Keys")[2].partition("\n## ")[0]
    keys = re.findall(r"\b(?:F\d|Ctrl-\w|Alt-\w+)", " ".join(words for _, words in KEYS))
    assert len(keys) > 5
    assert [key for key in keys if key not in table] == []


def test_the_keywords_of_python_are_the_settings_and_the_fields_of_a_recipe() -> None:
    keywords = runpy.run_path(str(KEYWORDS))
    assert keywords["FILE"].read_text("utf-8") == keywords["source"](), "run `python tests/test_docs.py`"


def test_the_manual_page_names_every_command_and_flag() -> None:
    page = runpy.run_path(str(MAN_PAGE))
    text = page["FILE"].read_text("ascii")
    assert text == page["page"](), "run `python tests/test_docs.py`"
    plain = text.replace("\\-", "-")
    assert [name for name in CLI_COMMANDS if f".SS \\&tinychat {name} " not in plain] == []
    options = (SETTINGS | UI_OPTIONS | RECIPE_FIELDS | SERVER_OPTIONS).values()
    missing = [one.name for one in options if not re.search(rf"{one.flag}\b(?!-)", plain)]
    assert missing == ["sources"]  # those are arguments


@pytest.mark.slow
def test_the_manual_page_is_sound() -> None:
    if not shutil.which("groff"):
        pytest.skip("groff, which draws manual pages, is not installed")
    call = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", runpy.run_path(str(MAN_PAGE))["FILE"]]
    drawn = subprocess.run(call, check=True, capture_output=True, text=True)
    assert drawn.stderr == ""
    assert "tinychat data get" in drawn.stdout


if __name__ == "__main__":
    runpy.run_path(str(KEYWORDS), run_name="__main__")
    man_page = runpy.run_path(str(MAN_PAGE))
    man_page["FILE"].write_text(man_page["page"](), encoding="ascii")
    for path in DOCS:
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
