"""Tables of the plots' variable parts, read from `tables/PLOT.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

Row = dict[str, str]
"""one case of a plot, keyed by the slots that it fills"""


@cache
def rows(plot: str, table: str) -> list[Row]:
    """Return the rows of one table of a plot."""
    text = Path(__file__).with_name("tables").joinpath(f"{plot}.toml").read_text(encoding="utf-8")
    found: list[Row] = tomllib.loads(text)[table]
    return found
