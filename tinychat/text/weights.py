"""`novel.txt:2`: a source with a weight, which says how much of a mix it is to be."""

import glob
import math
import re
from pathlib import Path

from tinychat.errors import UsageError

_WEIGHTED = re.compile(r"(.+):([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf|nan)", re.IGNORECASE | re.DOTALL)


def split_weight(source: str) -> tuple[str, float | None]:
    """A source and its weight; None where it has none. A path that is there is a path, whatever it ends with.

    Raises:
        UsageError: the weight is not above 0 and finite.
    """
    found = _WEIGHTED.fullmatch(source)
    if found is None or _is_path(source):
        return source, None
    name, weight = found[1], float(found[2])
    if not 0 < weight < math.inf:
        raise UsageError(f"the weight of {name} is {found[2]}", "a weight is a number above 0, as in novel.txt:2")
    return name, weight


def with_weight(source: str, weight: float | None) -> str:
    """What `split_weight` takes apart."""
    return source if weight is None else f"{source}:{weight!r}"


def _is_path(source: str) -> bool:
    path = Path(source).expanduser()
    return path.exists() or next(glob.iglob(str(path), recursive=True), None) is not None  # noqa: PTH207
