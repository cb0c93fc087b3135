"""The README's tables are made from the tables of the program: `python tests/test_readme.py` writes them anew."""

import re
from pathlib import Path

import pytest

from tinychat.commands import COMMANDS
from tinychat.commands.registry import THEMES
from tinychat.face import FACE
from tinychat.settings import SETTINGS

README = Path(__file__).parent.parent / "README.md"


def settings_table() -> str:
    rows = ["| setting | flags | default | |", "| --- | --- | --- | --- |"]
    for name, setting in SETTINGS.items():
        flags = " ".join(f"`{flag}`" for flag in (*setting.flags, setting.flag))
        text = setting.help.replace("|", r"\|")
        rows.append(f"| `{name}` | {flags} | {setting.show(setting.default)} | {text} |")
    return "\n".join([*rows, "", "`--greedy` is temperature 0, by definition; `--sample` draws."])


def face_table() -> str:
    rows = ["| option | flags | default | |", "| --- | --- | --- | --- |"]
    for name, option in FACE.items():
        flags = " ".join(f"`{flag}`" for flag in (*option.flags, option.flag))
        choices = " (" + ", ".join(f"`{choice}`" for choice in option.choices) + ")" if option.choices else ""
        rows.append(f"| `{name}` | {flags} | {option.show(option.default)} | {option.help}{choices} |")
    return "\n".join(rows)


def commands_table() -> str:
    rows = ["| command | |", "| --- | --- |"]
    for theme in THEMES:
        for command in COMMANDS.values():
            if command.theme == theme:
                text = command.help.split("\n")[0].replace("|", r"\|")
                rows.append(f"| `{command.synopsis.replace('|', chr(92) + '|')}` | {text} |")
    return "\n".join(rows)


TABLES = {"settings": settings_table, "face": face_table, "commands": commands_table}


def with_tables(text: str) -> str:
    """The README with its tables made anew, between `<!-- name -->` and `<!-- end -->`."""
    for name, table in TABLES.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        assert between.search(text), f"the README has no place for {name}"
        text = between.sub(lambda found, table=table: found[1] + table() + found[2], text)  # type: ignore[misc]
    return text


def test_the_tables_of_the_readme_are_those_of_the_program() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == with_tables(text), "run `python tests/test_readme.py`"


@pytest.mark.parametrize("words", ["make chat", "make test", "pip install ."])
def test_the_readme_leads_with_the_commands(words: str) -> None:
    assert words in "\n".join(README.read_text(encoding="utf-8").splitlines()[:12])


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
