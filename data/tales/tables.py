"""The tables of the plots: what a tale is about, in `tables/PLOT.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

Row = dict[str, str]
"""one case of a plot; its keys are the slots that it fills"""


@cache
def rows(plot: str, table: str) -> list[Row]:
    """The rows of one table of a plot."""
    text = Path(__file__).with_name("tables").joinpath(f"{plot}.toml").read_text(encoding="utf-8")
    found: list[Row] = tomllib.loads(text)[table]
    return found
