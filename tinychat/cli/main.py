"""`tinychat`: opens the REPL at a terminal, answers prompts from a pipe, and dispatches to the other commands."""

import dataclasses
import difflib
import errno
import importlib
import os
import shlex
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tinychat import __version__
from tinychat.cli.completion import VARIABLE as COMPLETION_VARIABLE
from tinychat.cli.completion import complete
from tinychat.cli.options import add_flags, debug_option, make_session, setting_options
from tinychat.cli.output import echo, echo_problem
from tinychat.config.settings import UI_OPTIONS
from tinychat.errors import TinychatError, UsageError, check_memory_limit, describe_import_error, describe_os_error
from tinychat.textutil import shorten

COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("tinychat.cli.train", "Train a model on your own text."),
    "eval": ("tinychat.cli.evaluate", "Score a model on a text, or run a suite of checks."),
    "serve": ("tinychat.cli.serve", "Serve a model to OpenAI's clients."),
    "bench": ("tinychat.cli.evaluate", "Measure the speed of a model on this machine."),
    "models": ("tinychat.cli.manage", "List the models."),
    "show": ("tinychat.cli.manage", "Show the architecture of a model, and how it was trained."),
    "runs": ("tinychat.cli.manage", "List the training runs, or compare some."),
    "rm": ("tinychat.cli.manage", "Remove models and their runs."),
    "rename": ("tinychat.cli.manage", "Rename a model and its run."),
    "recipes": ("tinychat.cli.manage", "List the training recipes, or show one."),
    "data": ("tinychat.cli.manage", "List the known data sets, or get one."),
    "config": ("tinychat.cli.manage", "Show the folders in use, and where each setting comes from."),
    "export": ("tinychat.cli.manage", "Export a model for another tool."),
    "import": ("tinychat.cli.manage", "Import a model from another tool."),
}
"""Module and help line of each command, so that `--help` imports none of them."""
ELSEWHERE = {"list": "models", "ls": "models"}
"""Words that other tools have as commands, and the same here."""
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_REPORT = 2_000
"""Maximum number of characters of a problem, and of its remedy: an argument or a variable may hold a megabyte."""
MEMORY_REMEDY = "end other programs, or raise the limit of this one (`ulimit -v`)"


class Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name == "train":  # it imports numpy, whose libraries end a process that has too little memory
            check_memory_limit()
        function = {"import": "import_", "eval": "eval_"}.get(name, name)
        command = getattr(importlib.import_module(COMMANDS[name][0]), function)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, context: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete commands from the table, which imports none of them, and options."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=about) for name, (_, about) in COMMANDS.items()]
        return [one for one in found if one.value.startswith(incomplete)] + click.Command.shell_complete(
            self, context, incomplete
        )

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, but suggest a remedy for an unknown command."""
        is_typed = bool(args) and not args[0].startswith("-") and not context.resilient_parsing
        if is_typed and self.get_command(context, args[0]) is None:
            if args[0] == "help":
                near = [" ".join([*(name for name in args[1:2] if name in COMMANDS), "--help"])]
            elif args[0] in ELSEWHERE:
                near = [ELSEWHERE[args[0]]]
            else:
                near = difflib.get_close_matches(args[0].lower(), COMMANDS, n=1)
            remedy = f"did you mean `tinychat {near[0]}`?" if near else "put a prompt after -p, a model after -m"
            raise UsageError(f"there is no command {args[0]!r}", remedy)
        return super().resolve_command(context, args)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={  # inherited by all commands
        "token_normalize_func": lambda name: name.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    help="Train a tiny language model on your own text, talk to it, and see why it says what it says.\n\n"
    "At a terminal, this opens the REPL; otherwise each line of stdin is a prompt.",
)
@click.version_option(__version__, "-V", "--version", prog_name="tinychat", message="%(prog)s %(version)s")
@click.option(
    "-p", "--prompt", "prompts", multiple=True, metavar="TEXT", help="answer this prompt and exit; may be repeated"
)
@setting_options
@click.option("--echo", is_flag=True, help="put the prompt before its completion")
@click.option("-0", "--null", is_flag=True, help="end each completion with NUL, not a new line")
@click.option("-e", "--escapes", is_flag=True, help=r"read \n and \t in prompts as escapes")
@click.option("--conversation", is_flag=True, help="treat the prompts as turns of one conversation")
@click.option("--whole", is_flag=True, help="treat all of stdin as one prompt")
@click.option("--jsonl", is_flag=True, help="read and write JSON Lines")
@click.option(
    "--logprobs", type=click.IntRange(0, 1000), metavar="K", help="with --jsonl: add the K most likely tokens"
)
@click.option(
    "-v", "--verbose", is_flag=True, help="write the engine to stderr, and speed, seed and finish reason of each answer"
)
@add_flags(UI_OPTIONS.values())
@debug_option
@click.pass_context
def tinychat(context: click.Context, /, prompts: tuple[str, ...], **flags: Any) -> int:
    """Open the REPL, or answer prompts."""
    if context.invoked_subcommand is not None:
        _refuse_flags_before(context, context.invoked_subcommand)
        return 0
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    session = make_session(flags)
    if at_terminal and not prompts:
        from tinychat.repl.app import run

        return run(session, debug="--debug" in sys.argv)
    from tinychat.cli.pipe import PipeOptions, answer_prompts

    options = PipeOptions(**{field.name: flags[field.name] for field in dataclasses.fields(PipeOptions)})
    return answer_prompts(session, options, prompts)


def _refuse_flags_before(context: click.Context, name: str) -> None:
    """Check that no flag stands before a command, which would not get it; `--debug` may, as it is found anywhere.

    Raises:
        UsageError: If one does.
    """
    command = tinychat.get_command(context, name)
    taken = {parameter.name: parameter for parameter in (command.params if command else ())}
    for flag in tinychat.params:
        source = context.get_parameter_source(flag.name or "")
        if not flag.expose_value or source is not ParameterSource.COMMANDLINE:
            continue
        if (own := taken.get(flag.name)) is None:
            remedy = f"`tinychat {name} --help` lists what it takes"
        elif isinstance(own, click.Argument):
            remedy = f"put it after the command: `tinychat {name} {shlex.quote(context.params[own.name or ''])}`"
        else:
            remedy = f"put it after the command: `tinychat {name} {own.opts[0]} …`"
        raise UsageError(f"{'/'.join(flag.opts)} stands before {name}, which would not get it", remedy)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; an error is written to stderr as the problem and its remedy."""
    try:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            return complete(tinychat, instruction)
        code = _call(arguments)
        sys.stdout.flush()
        return code
    except TinychatError as error:
        return _report(error.problem, error.remedy, error.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx:
            command = error.ctx.command_path
        else:  # click does not tell the command of an option without its value
            command = " ".join(["tinychat", *(name for name in arguments[:1] if name in COMMANDS)])
        return _report(error.format_message().rstrip("."), f"see `{command} --help`", error.exit_code)
    except (KeyboardInterrupt, click.Abort, EOFError):
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe. Python must not fail when it flushes the rest of the buffer on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # such as a full disk, or a folder without write permission
        if error.errno == errno.EBADF and not error.filename:  # see `__main__`
            return _report("stdin or stdout is closed", "connect it to a file, a pipe or /dev/null", 1)
        return _report(describe_os_error(error), "", 1)
    except MemoryError:
        return _report("out of memory", MEMORY_REMEDY, 1)
    except ModuleNotFoundError as error:
        return _report(f"{error.name} is not installed, and this needs it", f"pip install {error.name}", 1)
    except ImportError as error:
        return _report(describe_import_error(error), MEMORY_REMEDY, 1)
    except Exception as error:
        if str(error) == "can't start new thread":
            return _report("the system allows no more threads or memory", MEMORY_REMEDY, 1)
        # A bug: one line, and a traceback with --debug.
        return _report(f"unexpected {type(error).__name__}: {error}", "run it again with --debug and report it", 1)


def _call(arguments: list[str]) -> int:
    # click's own `main` would exit with code 1 if the reader closes the pipe.
    try:
        with tinychat.make_context("tinychat", arguments) as context:
            result = tinychat.invoke(context)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    return result if isinstance(result, int) else 0


def _report(problem: str, remedy: str, code: int) -> int:
    if "--debug" in sys.argv:  # of whichever command
        echo(traceback.format_exc(), err=True, end="")
    with suppress(OSError):  # nobody can be told if stderr is full or closed
        echo_problem(shorten(problem, MAX_REPORT), shorten(remedy, MAX_REPORT))
    return code
