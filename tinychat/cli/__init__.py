"""The command line, built with click."""

from tinychat.cli.main import main

__all__ = ["main"]
