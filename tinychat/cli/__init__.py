"""The command line: parse, call, print."""

from tinychat.cli.main import main

__all__ = ["main"]
