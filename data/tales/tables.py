"""The tables of the tales: `tables/NAME.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Return the values of a file of tables."""
    return tomllib.loads(Path(__file__).with_name("tables").joinpath(f"{name}.toml").read_text(encoding="utf-8"))
