"""The user's config file: settings by their names, and the model to open."""

import tomllib
from typing import Any

from tinychat.errors import UsageError
from tinychat.store import places

EXAMPLE = 'model = "smalltalk"\ntemperature = 0.7\ntop_p = 0.9\n'


def read_config() -> dict[str, Any]:
    """What the file holds, `-` in names as `_`; empty where there is none.

    Raises:
        UsageError: it is no TOML, or cannot be read.
    """
    path = places.config_file()
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}", "correct it, or move it away") from None
    return {name.replace("-", "_"): value for name, value in values.items()}
