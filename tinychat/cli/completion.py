"""Completion of command lines in bash, zsh and fish, by click: the shell asks, and gets names and values."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from tinychat.config.option import Option

if TYPE_CHECKING:  # it takes milliseconds, and only a shell that completes needs it
    from click.shell_completion import CompletionItem

VARIABLE = "_TINYCHAT_COMPLETE"
"""Environment variable in which the shell says what it asks for."""

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Names = Callable[[], Iterator[tuple[str, str]]]


def complete(command: click.Command, instruction: str) -> int:
    """Write what a shell asks for to stdout, and return the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(command, {}, "tinychat", VARIABLE, instruction)


def complete_names(names: Names, otherwise: str = "file") -> Complete:
    """Return a completer of names, each with its description; where none fits, the shell completes paths itself."""

    def find(context: click.Context, parameter: click.Parameter, begun: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        with suppress(Exception):  # whatever it is, the command itself tells it
            if found := [CompletionItem(_typed(name), help=help) for name, help in names() if name.startswith(begun)]:
                return found
        return [CompletionItem(begun, type=otherwise)]

    return find


def _typed(name: str) -> str:
    """Return a name as the shell takes it: bash inserts a completion as it is, and a space would end the word.

    The script of click reads it without `-r`, which takes one of two backslashes.
    """
    is_quoted = os.environ.get("COMP_WORDS", "").rpartition("\n")[2].startswith(("'", '"'))
    return name.replace(" ", r"\\ ") if os.environ.get(VARIABLE) == "bash_complete" and not is_quoted else name


def complete_values(option: Option) -> Complete:
    """Return a completer of the values of an option."""
    if option.name in ("model", "from_model"):
        return complete_models
    if option.name == "tokenizer":
        return complete_names(_tokenizers)

    def find(context: click.Context, parameter: click.Parameter, begun: str) -> "list[CompletionItem]":
        suggested = {**dict.fromkeys(option.next_choices(begun), ""), **option.values}
        return complete_names(lambda: iter(suggested.items()), "plain")(context, parameter, begun)

    return find


def _models() -> Iterator[tuple[str, str]]:
    from tinychat.formats.registry import list_models

    for info in list_models().sound:
        yield info.name, info.description or info.mode


def _runs() -> Iterator[tuple[str, str]]:
    from tinychat.store.runs import list_runs

    for run in list_runs():
        yield run.name, ""


def _recipes() -> Iterator[tuple[str, str]]:
    from tinychat.train.recipe import list_recipes

    for recipe in list_recipes():
        yield recipe.name, recipe.about


def _formats() -> Iterator[tuple[str, str]]:
    from tinychat.formats.registry import FORMATS

    for name, format in FORMATS.items():
        if format.write:
            yield name, format.description


def _tokenizers() -> Iterator[tuple[str, str]]:
    from tinychat.tokenizer.training import TOKENIZERS

    for name in TOKENIZERS:
        yield name, ""


def _data_sets() -> Iterator[tuple[str, str]]:
    from tinychat.corpus.registry import KNOWN

    for name, known in KNOWN.items():
        yield name, known.description


complete_models, complete_runs = complete_names(_models, "dir"), complete_names(_runs, "plain")
complete_recipes, complete_data_sets = complete_names(_recipes), complete_names(_data_sets)
complete_formats = complete_names(_formats, "plain")
