"""Operations that record themselves: each is applied to matrices, and can tell how it made any cell of its output.

Shapes: see `model/transformer.py`; also N rows of a table.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tinychat.generate.computation import Cell, Derivation, Labels, Matrix, Operation, figure
from tinychat.model.attention import RotaryTables, rotate

LARGEST_EXPONENT = 50.0
"""Exponent from which a softmax is written with the largest subtracted."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Tracer:
    """Records operations as it applies them."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.part = ""
        self._states = 0

    def record(
        self, name: str, formula: str, about: str, inputs: Sequence[Matrix], signs: Sequence[str], output: Matrix,
        derive: Callable[[int, int], Derivation] | None = None,
    ) -> Matrix:  # fmt: skip
        """Append an operation, and return its output."""
        self.operations.append(Operation(self.part, name, formula, about, tuple(inputs), tuple(signs), output, derive))
        return output

    def new_state(self) -> str:
        """Return the name of the next state of the residual stream: x₀, x₁ and so on."""
        name = "x" + str(self._states).translate(SUBSCRIPTS)
        self._states += 1
        return name

    def look_up(self, table: Matrix, rows: Sequence[int], name: str, out: str, about: str, labels: Labels) -> Matrix:
        """Take rows of a table: [N, D] → [T, D]."""
        output = Matrix(out, table.values[list(rows)], labels)

        def derive(row: int, column: int) -> Derivation:
            value = table[rows[row], column]
            where = f"{table.name}[{table.row_label(rows[row])}, {column + 1}]"
            return Derivation(value, where, reads=((rows[row], column),))

        return self.record(name, f"{out} = rows of {table.name}", about, [table], ["→"], output, derive)

    def add(self, terms: Sequence[Matrix], name: str, out: str, about: str) -> Matrix:
        """Add matrices of one shape."""
        total = terms[0].values
        for term in terms[1:]:
            total = total + term.values

        def derive(row: int, column: int) -> Derivation:
            parts = [term[row, column] for term in terms]
            words = tuple((figure(part), part) for part in parts)
            return Derivation(math.fsum(parts), terms=words, reads=((row, column),) * len(terms))

        formula = f"{out} = {' + '.join(term.name for term in terms)}"
        output = Matrix(out, total, terms[0].rows, terms[0].columns)
        return self.record(name, formula, about, terms, ["+"] * (len(terms) - 1) + ["="], output, derive)

    def scale(self, x: Matrix, factor: float, written: str, name: str, out: str, about: str) -> Matrix:
        """Multiply a matrix by a number."""

        def derive(row: int, column: int) -> Derivation:
            value = x[row, column]
            return Derivation(value * factor, f"{figure(value)} {written}", reads=((row, column),))

        output = Matrix(out, x.values * factor, x.rows, x.columns)
        return self.record(name, f"{out} = {x.name} {written}", about, [x], ["→"], output, derive)

    def multiply(
        self, left: Matrix, right: Matrix, bias: Matrix | None, name: str, out: str, about: str, *,
        divisor: float = 1.0, written: str = "",
    ) -> Matrix:  # fmt: skip
        """Multiply two matrices; add a bias [1, columns], or divide by a number, that is `written` so."""
        product = left.values @ right.values
        if bias is not None:
            product = product + bias.values
        if divisor != 1.0:
            product = product / divisor

        def derive(row: int, column: int) -> Derivation:
            pairs = zip(left.row(row), right.column(column), strict=True)
            terms = [(f"{figure(a)} × {figure(b)}", a * b) for a, b in pairs]
            reads: list[Cell | None] = [(row, None), (None, column)]
            if bias is not None:
                terms.append((figure(bias[0, column]), bias[0, column]))
                reads.append((0, column))
            frame = f"({{}}) / {written}" if written else "{}"
            return Derivation(math.fsum(value for _, value in terms) / divisor, frame, tuple(terms), tuple(reads))

        inputs = [left, right, *([bias] if bias is not None else [])]
        formula = f"{out} = {left.name} · {right.name}" + (f" + {bias.name}" if bias is not None else "")
        formula += f" / {written}" if written else ""
        signs = ["·", *["+"] * (bias is not None), f"/ {written} =" if written else "="]
        return self.record(name, formula, about, inputs, signs, Matrix(out, product, left.rows, right.columns), derive)

    def linear(
        self, x: Matrix, layer: nn.Linear, out: str, name: str, matrix: str, bias: str, about: str, *, weight: str,
        columns: Labels = (), part: slice = slice(None),
    ) -> Matrix:  # fmt: skip
        """Apply a linear layer, or the `part` of it that makes some of its outputs; `weight` is its name."""
        table = Matrix(matrix, layer.weight.detach()[part].t(), columns=columns, weight=f"{weight}.weight")
        vector = None
        if layer.bias is not None:
            # A tied head has a bias of its own.
            owner = "head" if name == "head" else weight
            vector = Matrix(bias, layer.bias.detach()[part].unsqueeze(0), ("",), columns, weight=f"{owner}.bias")
        return self.multiply(x, table, vector, name, out, about)

    def softmax(self, x: Matrix, name: str, out: str, about: str) -> Matrix:
        """Apply softmax to each row."""

        def derive(row: int, column: int) -> Derivation:
            values = x.row(row)
            largest = max(values)
            shift = largest if abs(largest) > LARGEST_EXPONENT else 0.0
            minus = f" - {figure(shift)}" if shift else ""
            terms = tuple((f"exp({figure(value)}{minus})", math.exp(value - shift)) for value in values)
            own, power = terms[column]
            value = power / math.fsum(term for _, term in terms)
            return Derivation(value, f"{own} / ({{}})", terms, ((row, None),))

        formula = f"{out} = exp({x.name}) / sum of the row's exp({x.name})"
        output = Matrix(out, x.values.softmax(dim=-1), x.rows, x.columns)
        return self.record(name, formula, about, [x], ["→"], output, derive)

    def mask(self, scores: Matrix, name: str, out: str, window: int | None) -> Matrix:
        """Set the scores [T, T] of later tokens to −∞, and those of tokens that are not among the newest `window`."""
        newest = len(scores.values) if window is None else window
        every = torch.ones_like(scores.values, dtype=torch.bool)
        hidden = every.triu(1) | every.tril(-newest)

        def derive(row: int, column: int) -> Derivation:
            value = scores[row, column]
            if row - newest < column <= row:
                return Derivation(value, f"{figure(value)} + 0", reads=((row, column),))
            return Derivation(-math.inf, f"{figure(value)} + -∞", reads=((row, column),))

        before = "those before it" if window is None else f"the {window - 1} before it"
        about = f"A token may look at itself and at {before}, not at later ones: their scores become -∞."
        output = Matrix(out, scores.values.masked_fill(hidden, -math.inf), scores.rows, scores.columns)
        formula = f"{out} = {scores.name}, but -∞ where the key is later than the query"
        formula += "" if window is None else f", or {window} or more before it"
        return self.record(name, formula, about, [scores], ["→"], output, derive)

    def mask_turns(self, none: Matrix, scores: Matrix, ends: Tensor, name: str, out: str) -> Matrix:
        """Put the scores of “no turn” [T, 1] before scores [T, T], which become −∞ where `ends` [T, T] is False."""
        values = torch.cat((none.values, scores.values.masked_fill(~ends, -math.inf)), dim=1)  # [T, 1 + T]

        def derive(row: int, column: int) -> Derivation:
            if column == 0:
                return Derivation(none[row, 0], figure(none[row, 0]), reads=((row, 0), None))
            value, is_end = scores[row, column - 1], bool(ends[row, column - 1])
            text = f"{figure(value)} + {'0' if is_end else '-∞'}"
            return Derivation(value if is_end else -math.inf, text, reads=(None, (row, column - 1)))

        labels = ["no turn", *(scores.columns or map(str, range(1, scores.shape[1] + 1)))]
        formula = f"{out} = {none.name} beside {scores.name}, which is -∞ except at the ends of earlier turns"
        about = "Whole turns are looked at, at their last tokens, and only those that are over; or no turn."
        output = Matrix(out, values, scores.rows, labels)
        return self.record(name, formula, about, [none, scores], [",", "→"], output, derive)

    def put_zeros_first(self, x: Matrix, label: str, name: str, out: str, about: str) -> Matrix:
        """Put a row of zeros before those of a matrix: [T, K] → [1 + T, K]."""
        values = torch.nn.functional.pad(x.values, (0, 0, 1, 0))

        def derive(row: int, column: int) -> Derivation:
            if row == 0:
                return Derivation(0.0, "0")
            return Derivation(x[row - 1, column], figure(x[row - 1, column]), reads=((row - 1, column),))

        output = Matrix(out, values, [label, *map(x.row_label, range(x.shape[0]))], x.columns)
        return self.record(name, f"{out} = {x.name} below zeros", about, [x], ["→"], output, derive)

    def normalize(self, x: Matrix, norm: nn.Module, weight: str, out: str, about: str) -> Matrix:
        """Apply LayerNorm or RMSNorm to each row [D]; return x itself if there is no norm."""
        if isinstance(norm, nn.Identity):
            return x
        centres = isinstance(norm, nn.LayerNorm)
        epsilon = float(getattr(norm, "eps", None) or 0.0)
        factors, shifts = (getattr(norm, name, None) for name in ("weight", "bias"))
        inputs, signs = [x], ["→"]
        for values, name, kind, sign in ((factors, "g", "weight", "×"), (shifts, "b", "bias", "+")):
            if values is not None:
                inputs.append(Matrix(name, values.detach().unsqueeze(0), ("",), weight=f"{weight}.{kind}"))
                signs.insert(-1, sign)

        def derive(row: int, column: int) -> Derivation:
            values = x.row(row)
            mean = math.fsum(values) / len(values) if centres else 0.0
            minus = f" - {figure(mean)}" if centres else ""
            squares = [(value - mean) ** 2 for value in values]
            words = [f"({figure(value)}{minus})²" for value in values]
            value = (values[column] - mean) / math.sqrt(math.fsum(squares) / len(values) + epsilon)
            above = f"({figure(values[column])}{minus})" if centres else figure(values[column])
            frame = f"{above} / √(({{}}) / {len(values)} + {epsilon:g})"
            reads: list[Cell | None] = [(row, None)]
            if factors is not None:
                value *= float(factors[column])
                frame += f" × {figure(float(factors[column]))}"
                reads.append((0, column))
            if shifts is not None:
                value += float(shifts[column])
                frame += f" + {figure(float(shifts[column]))}"
                reads.append((0, column))
            return Derivation(value, frame, tuple(zip(words, squares, strict=True)), tuple(reads))

        name = "LayerNorm" if centres else "RMSNorm"
        over = f"({x.name} - mean) / √(variance + ε)" if centres else f"{x.name} / √(mean of squares + ε)"
        formula = f"{out} = {over}" + " × g" * (factors is not None) + " + b" * (shifts is not None)
        return self.record(name, formula, about, inputs, signs, Matrix(out, norm(x.values), x.rows, x.columns), derive)

    def rotate(self, x: Matrix, tables: RotaryTables | None, out: str) -> Matrix:
        """Rotate pairs of coordinates of x [T, K] by the angles of their positions; return x itself for None."""
        if tables is None:
            return x
        cosine, sine = (
            Matrix(name, one.to(x.values.dtype), x.rows) for name, one in zip(("cos", "sin"), tables, strict=True)
        )
        width = cosine.shape[1]
        half = width // 2

        def derive(row: int, column: int) -> Derivation:
            if column >= width:
                return Derivation(x[row, column], figure(x[row, column]), reads=((row, column), None, None))
            own, other = x[row, column], x[row, (column + half) % (2 * half)]
            pairs = ((own, cosine[row, column]), (other, sine[row, column]))
            terms = tuple((f"{figure(a)} × {figure(b)}", a * b) for a, b in pairs)
            return Derivation(math.fsum(value for _, value in terms), "{}", terms, ((row, None), *((row, column),) * 2))

        about = (
            f"Rotary positions: columns k and k + {half} are a point, turned by an angle that grows with the position, "
            f"so that scores depend on distances."
        )
        about += f" The columns from {width + 1} on stay as they are." * (width < x.shape[1])
        turned = rotate(x.values, tables)
        formula = f"{out} = {x.name} × cos + {x.name} with its halves swapped × sin"
        output = Matrix(out, turned, x.rows)
        return self.record("rotation", formula, about, [x, cosine, sine], [",", ",", "→"], output, derive)

    def activate(self, x: Matrix, kind: str, function: Callable[[Tensor], Tensor], out: str) -> Matrix:
        """Apply an activation to each cell."""
        title, write = ACTIVATIONS[kind]

        def derive(row: int, column: int) -> Derivation:
            value, text = write(x[row, column])
            return Derivation(value, text, reads=((row, column),))

        about = "The activation works on each number by itself: without it, two layers could be one."
        output = Matrix(out, function(x.values), x.rows)
        return self.record(title, f"{out} = {title}({x.name})", about, [x], ["→"], output, derive)

    def gate(self, gate: Matrix, up: Matrix, out: str) -> Matrix:
        """Multiply two matrices cell by cell."""

        def derive(row: int, column: int) -> Derivation:
            a, b = gate[row, column], up[row, column]
            return Derivation(a * b, f"{figure(a)} × {figure(b)}", reads=((row, column),) * 2)

        about = "Each number of the one lets through more or less of the other."
        formula, output = (
            f"{out} = {gate.name} × {up.name}, cell by cell",
            Matrix(out, gate.values * up.values, up.rows),
        )
        return self.record("gate", formula, about, [gate, up], ["×", "="], output, derive)

    def scale_rows(self, x: Matrix, factors: Matrix, out: str, about: str) -> Matrix:
        """Multiply each row of x [T, K] by a number of its own, of factors [T, 1]."""

        def derive(row: int, column: int) -> Derivation:
            a, b = x[row, column], factors[row, 0]
            return Derivation(a * b, f"{figure(a)} × {figure(b)}", reads=((row, column), (row, 0)))

        output = Matrix(out, x.values * factors.values, x.rows)
        formula = f"{out} = {x.name} × {factors.name}, row by row"
        return self.record("gated", formula, about, [x, factors], ["×", "="], output, derive)

    def concatenate(self, heads: Sequence[Matrix], out: str) -> Matrix:
        """Put matrices [T, K] side by side."""
        if len(heads) == 1:
            return heads[0]
        width = heads[0].shape[1]

        def derive(row: int, column: int) -> Derivation:
            head, own = divmod(column, width)
            reads = tuple((row, own) if index == head else None for index in range(len(heads)))
            return Derivation(heads[head][row, own], f"{heads[head].name}, column {own + 1}", reads=reads)

        output = Matrix(out, torch.cat([head.values for head in heads], dim=1), heads[0].rows)
        names = ", ".join(head.name for head in heads)
        about = "What the heads have gathered stands side by side again."
        return self.record(
            "all heads", f"{out} = [{names}]", about, heads, [","] * (len(heads) - 1) + ["="], output, derive
        )

    def take_last(self, x: Matrix) -> Matrix:
        """Take the last row."""
        last = x.shape[0] - 1

        def derive(row: int, column: int) -> Derivation:
            return Derivation(x[last, column], figure(x[last, column]), reads=((last, column),))

        about = "Only the last row predicts the next token; the others were needed for their keys and values."
        output = Matrix("last", x.values[last:], x.rows[last:])
        return self.record("last token", f"last = the last row of {x.name}", about, [x], ["→"], output, derive)


def _silu(x: float) -> tuple[float, str]:
    return x / (1 + math.exp(-x)) if x > -700 else 0.0, f"{figure(x)} / (1 + exp({figure(-x)}))"


def _gelu(x: float) -> tuple[float, str]:
    share = (1 + math.erf(x / math.sqrt(2))) / 2
    return x * share, f"{figure(x)} × Φ({figure(x)}) = {figure(x)} × {figure(share)}"


def _gelu_tanh(x: float) -> tuple[float, str]:
    share = (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    return x * share, f"{figure(x)} × (1 + tanh(0.798 × ({figure(x)} + 0.045 × {figure(x)}³))) / 2"


def _sigmoid(x: float) -> tuple[float, str]:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0, f"1 / (1 + exp({figure(-x)}))"


ACTIVATIONS: dict[str, tuple[str, Callable[[float], tuple[float, str]]]] = {
    "gelu": ("GELU", _gelu),
    "gelu_tanh": ("GELU", _gelu_tanh),
    "relu": ("ReLU", lambda x: (max(0.0, x), f"max(0, {figure(x)})")),
    "relu2": ("squared ReLU", lambda x: (max(0.0, x) ** 2, f"max(0, {figure(x)})²")),
    "swiglu": ("SiLU", _silu),
    "sigmoid": ("sigmoid", _sigmoid),
}
"""By `ModelConfig.feed_forward`, or `sigmoid`: the name, and a function that returns the value and writes it."""
