"""Generate `docs/tinychat.1`, the manual page, from the command line's declarations."""

from collections.abc import Iterator
from pathlib import Path

import click

from tinychat import __version__
from tinychat.cli.main import COMMANDS, tinychat

FILE = Path(__file__).parent.parent / "docs" / "tinychat.1"


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield a command and those below it, each with its context."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                inner = click.Context(below, parent=context, info_name=name, **below.context_settings)
                yield from commands(below, inner)


def page() -> str:
    """Return the manual page."""
    first, *others = commands(tinychat, click.Context(tinychat, info_name="tinychat", **tinychat.context_settings))
    about, _, more = (tinychat.help or "").partition("\n\n")
    lines = [
        f'.TH TINYCHAT 1 "" "tinychat {__version__}" "User Commands"', ".SH NAME", rf"tinychat \- {escape(about)}",
        ".SH SYNOPSIS", rf".B {escape(' '.join(['tinychat', *tinychat.collect_usage_pieces(first[1])]))}",
        ".SH DESCRIPTION", escape(more), ".SH OPTIONS", *options(*first, ()), ".SH COMMANDS",
    ]  # fmt: skip
    known = [option.get_help_record(first[1]) for option in tinychat.get_params(first[1])]
    for command, context in others:
        words = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        help = COMMANDS.get(context.info_name or "", ("", (command.help or "").partition("\n\n")[0]))[1]
        lines += [f".SS {escape(words)}", escape(help), *options(command, context, known)]
    return "\n".join(lines) + "\n"


def options(command: click.Command, context: click.Context, known: object) -> Iterator[str]:
    """Yield the options of a command; those that are `known` from above by their names alone."""
    flags = (one for one in command.get_params(context) if isinstance(one, click.Option))
    records = [record for one in flags if (record := one.get_help_record(context))]
    again = [names for names, help in records if (names, help) in known]  # type: ignore[operator]
    for names, help in records:
        if names not in again:
            yield from (".TP", rf"\fB{escape(names)}\fR", escape(help))
    if again:
        yield from (".PP", "As above: " + escape(", ".join(again)) + ".")


def escape(text: str) -> str:
    """Return a text as roff has it, in ASCII and on one line."""
    text = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return "".join(char if char.isascii() else rf"\[u{ord(char):04X}]" for char in rf"\&{text}")
