"""Render a chat template: a program of its own, in a process with little time and memory, and no files.

`jinja_template` runs it on templates of others. Its input is lines of JSON: first the template, then one object for
each rendering, whose line of output is `{"text": …}` or `{"error": …}`.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

SECONDS = 1.0
"""Maximum processor time of a rendering; the process ends if one takes longer."""
MEMORY = 512 << 20
"""Maximum size of the process, in bytes."""
MAX_GROWTH = 16
"""Maximum number of characters of a text for each character of what it is made of, beyond `MAX_BASE`."""
MAX_BASE = 1 << 20


def main() -> None:
    """Render conversations until the input ends; its first argument is the path to import from, a list in JSON."""
    sys.path[:] = json.loads(sys.argv[1])
    _import_all()
    source = json.loads(sys.stdin.buffer.readline())
    _limit()
    render: Callable[[Mapping[str, Any], int], str] | None = None
    replies = os.fdopen(1, "wb", buffering=0)
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            render = render or _compile(source)
            reply = {"text": render(json.loads(line), MAX_BASE + MAX_GROWTH * len(line))}
        except MemoryError:
            reply = {"error": f"it needs more than {MEMORY >> 20} MB of memory"}
        except RecursionError:
            reply = {"error": "it is nested too deep, or calls itself without end"}
        except Exception as error:  # the template decides which
            reply = {"error": " ".join(str(error).split())[:300] or type(error).__name__}
        data = json.dumps(reply).encode() + b"\n"
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(data)


def _import_all() -> None:
    """Import what jinja2 imports when it is first needed: later there are no files."""
    import codecs
    import html  # noqa: F401
    import pprint  # noqa: F401
    import random  # noqa: F401
    import textwrap  # noqa: F401

    import jinja2.constants
    import jinja2.debug
    import jinja2.ext
    import jinja2.sandbox  # noqa: F401

    codecs.lookup("unicode-escape")
    time.localtime()  # reads the time zone


def _limit() -> None:
    """Limit the process: nothing in a template may open a file or start a process, should the sandbox have a hole."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0), (resource.RLIMIT_NOFILE, 3),
    ):  # fmt: skip
        with suppress(OSError, ValueError):  # macOS has no limit of this kind
            resource.setrlimit(kind, (limit, limit))


def _compile(source: str) -> Callable[[Mapping[str, Any], int], str]:
    """Return a function that renders a template with values, up to a number of characters, as `transformers` does."""
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class GenerationTag(Extension):
        """`{% generation %} … {% endgeneration %}` marks what an assistant says, for training; it renders as it is."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    class SafeNamespace(Namespace):
        """A namespace whose names do not begin with an underscore."""

        def __init__(*args: Any, **kwargs: Any) -> None:  # a template may set `self`
            self, *rest = args
            values = dict(*rest, **kwargs)
            for name in values:
                _refuse_private(name)
            Namespace.__init__(self, values)

        def __setitem__(self, name: str, value: Any) -> None:
            _refuse_private(name)
            super().__setitem__(name, value)

    def _refuse_private(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"{name[:40]!r} cannot be set in a namespace")

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def to_json(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals |= {
        "raise_exception": raise_exception, "strftime_now": lambda form: datetime.now().strftime(form),
        "dict": lambda *args, **kwargs: dict(*args, **kwargs), "namespace": SafeNamespace,
    }  # fmt: skip
    template = environment.from_string(source)

    def render(values: Mapping[str, Any], limit: int) -> str:
        pieces, size = [], 0
        for piece in template.generate(**values):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise TemplateError(f"it writes more than {limit:,} characters")
        return "".join(pieces)

    return render


if __name__ == "__main__":
    main()
