"""`tinychat serve`: a model behind OpenAI's HTTP interface."""

import importlib.util
from typing import Any

import click

from tinychat.cli.completion import complete_models
from tinychat.cli.options import add_flags, debug_option, load_server_options, make_session, setting_options
from tinychat.cli.output import echo
from tinychat.errors import UsageError
from tinychat.serve.options import SERVER_OPTIONS
from tinychat.textutil import count

LIBRARIES = ("starlette", "uvicorn")


@click.command("serve")
@click.argument("model", required=False, shell_complete=complete_models)
@add_flags(SERVER_OPTIONS.values())
@click.option("-v", "--verbose", is_flag=True, help="write a line to stderr for each request")
@setting_options
@debug_option
def serve(model: str | None, verbose: bool, **flags: Any) -> None:
    """Serve MODEL to OpenAI's clients: completions and chat completions, streamed or whole.

    Settings hold for requests that do not name them.
    """
    if missing := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
        raise UsageError(f"serve needs {' and '.join(missing)}", "pip install 'tinychat[serve]'")
    options = load_server_options(flags)
    options.check_key()
    session = make_session(flags | {"model": model})

    from tinychat.serve.server import Server

    def report(line: str) -> None:
        echo(f"tinychat: {line}", err=True)

    server = Server(
        session.model, session.settings.current, options, log=report if verbose else lambda line: None, report=report
    )
    echo(f"{session.model.info.summary} · {session.model.engine.about}", err=True)
    echo(f"serving at {server.url} · Ctrl-C ends it")
    server.run()
    echo(f"stopped after {count(server.service.scheduler.num_finished, 'answer')}", err=True)
