"""A computation as a list of operations on matrices, each of whose cells can be followed with a pencil.

`tracing.py` records that of a prediction, `evaluate/training_step.py` that of a training step.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

INFINITY = "∞"

Cell = tuple[int | None, int | None]
"""Row and column; None for all of them: (2, None) is a whole row, (None, 0) a whole column."""
Labels = Sequence[str]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix with its name and the labels of its rows and columns; those without labels are numbered from 1."""

    name: str
    values: "Tensor"
    """[rows, columns]."""
    rows: Labels = ()
    columns: Labels = ()
    weight: str = ""
    """Name of the weight that it is, or is a part of; empty if it was computed."""
    is_whole: bool = False
    """Whether its numbers are whole ones, such as ids."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def __getitem__(self, cell: tuple[int, int]) -> float:
        return float(self.values[cell])

    def row(self, index: int) -> list[float]:
        """Return the values of a row."""
        return [float(value) for value in self.values[index].tolist()]

    def column(self, index: int) -> list[float]:
        """Return the values of a column."""
        return [float(value) for value in self.values[:, index].tolist()]

    def figure(self, row: int, column: int) -> str:
        """Return a number as it is shown."""
        value = self[row, column]
        return f"{value:.0f}" if self.is_whole else figure(value)

    def row_label(self, index: int) -> str:
        return self.rows[index] if self.rows else str(index + 1)

    def column_label(self, index: int) -> str:
        return self.columns[index] if self.columns else str(index + 1)


@dataclass(frozen=True)
class Derivation:
    """How one cell was made: `frame` with the sum of the terms in place of its `{}`, if it has one."""

    value: float
    """The cell as computed from these numbers again, in f64."""
    frame: str = "{}"
    terms: tuple[tuple[str, float], ...] = ()
    """Each as it is written, with its value."""
    reads: tuple[Cell | None, ...] = ()
    """For each input the cells that were read; None if none were."""

    def text(self, max_terms: int | None = None) -> str:
        """Write it down, with the `max_terms` largest terms and the sum of the others; None: with all of them."""
        shown = range(len(self.terms))
        words = []
        if max_terms is not None and max_terms < len(self.terms):
            by_size = sorted(shown, key=lambda index: -abs(self.terms[index][1]))
            others = [self.terms[index][1] for index in by_size[max_terms:]]
            words = [f"{figure(math.fsum(others))} (the other {len(others):,})"]
            shown = sorted(by_size[:max_terms])  # type: ignore[assignment]
        total = " + ".join([*(self.terms[index][0] for index in shown), *words])
        return self.frame.replace("{}", total)


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation: it makes `output` of its inputs."""

    part: str
    """Part of the model that it belongs to: `decoder · layer 1 · attention`."""
    name: str
    formula: str
    about: str
    """Explanation, in a sentence or two."""
    inputs: tuple[Matrix, ...]
    signs: tuple[str, ...]
    """Signs before each input but the first, and before the output: `·`, `=`."""
    output: Matrix
    derive: Callable[[int, int], Derivation] | None = None
    """Derives the cell at a row and column of the output; None for an operation that is only named as a whole."""
    focus: tuple[int, int] | None = None
    """Cell of the output to look at first; default: the last row's first."""

    @property
    def first_cell(self) -> tuple[int, int]:
        return self.focus or (self.output.shape[0] - 1, 0)


@dataclass(frozen=True, eq=False)
class Computation:
    """Operations in their order; an input is a weight, or the output of an earlier one, whole or in part."""

    title: str
    operations: tuple[Operation, ...] = field(repr=False)
    result: str = ""
    """The result, in a line."""


def figure(value: float) -> str:
    """Return a number with three decimals, or with fewer if it is large: `-0.372`, `1234.5`, `-∞`."""
    if math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    size = abs(value)
    return f"{value:z.{3 if size < 99.9995 else 1 if size < 99_999.95 else 0}f}" if size < 1e9 else f"{value:.2e}"
