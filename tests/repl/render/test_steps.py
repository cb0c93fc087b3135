"""Drawing `/steps`: all numbers of a toy on 80×24, heat maps of what is larger, and plain text."""

from pathlib import Path

import pytest
import torch
from prompt_toolkit.utils import get_cwidth
from screens import Screen

from tinychat.commands import COMMANDS
from tinychat.commands.results import Steps
from tinychat.generate.computation import Computation, Matrix
from tinychat.generate.operations import Tracer
from tinychat.repl.render.steps import plain_lines, step_lines
from tinychat.session.session import Session

TOYS = Path(__file__).parents[2] / "toys"


def compute(toy: str, prompt: str, command: str) -> Computation:
    session = Session()
    session.settings.set("engine", "torch")
    session.open_model(str(TOYS / toy))
    list(session.answer(prompt))
    result = COMMANDS.dispatch(session, command)
    assert isinstance(result, Steps)
    return result.computation


@pytest.mark.parametrize(
    ("toy", "prompt", "command"),
    [
        ("statquest", "what is statquest", "/steps"),
        ("statquest", "what is statquest", "/steps train"),
        ("translation", "let's go", "/steps"),
        ("translation", "let's go", "/steps train"),
    ],
)
def test_every_number_of_a_toy_fits_on_80_by_24(toy: str, prompt: str, command: str) -> None:
    computation = compute(toy, prompt, command)
    terminal = Screen().terminal()
    for index, operation in enumerate(computation.operations):
        output = operation.output
        for cell in (None, (0, 0), (output.shape[0] - 1, output.shape[1] - 1)):
            lines = step_lines(terminal, computation, index, cell)
            assert len(lines) <= 22
            assert max(map(get_cwidth, lines)) <= 79
            text = "\n".join(lines)
            for matrix in (*operation.inputs, output):
                rows, columns = matrix.shape
                for row in range(rows):
                    figures = [matrix.figure(row, column) for column in range(columns)]
                    assert any(_has(line, figures) for line in lines), f"{operation.name}: {matrix.name}\n{text}"
            assert cell is None or f"{output.name}[" in text


def _has(line: str, figures: list[str]) -> bool:
    """Return whether the figures stand in a line, in their order."""
    words = line.split()
    return all(figure in words for figure in figures)


def product(size: int) -> Computation:
    tracer = Tracer()
    rows = [f"token{row}" for row in range(size)]
    values = torch.arange(size * size).view(size, size) / size**2
    left, right = Matrix("x", values, rows), Matrix("W", 1 - 2 * values.flip(0), weight="w")
    tracer.multiply(left, right, None, "product", "y", "A product.")
    return Computation("a product", tuple(tracer.operations), "done")


def test_a_large_matrix_is_a_heat_map_around_the_selected_number() -> None:
    terminal = Screen().terminal()
    lines = step_lines(terminal, product(50), 0, (20, 30))
    assert lines[0] == "1/1  product"
    assert len(lines) <= 22
    assert [line.split("W 50×50")[0].split() for line in lines[3:4]] == [["x", "50×50"]]
    assert sum("◆" in line for line in lines) == 1
    (marked,) = [line for line in lines if "◆" in line]
    assert marked.startswith("toke…»")
    assert any(line.startswith("y[token20, 31] = ") for line in lines)
    assert "(the other 4" in "\n".join(lines)
    assert "stronger is larger, of either sign, ╳ is -∞" in lines


def test_the_largest_of_a_vocabulary_are_listed_below_its_heat_map() -> None:
    tracer, words = Tracer(), [f"w{number}" for number in range(300)]
    logits = Matrix("logits", torch.arange(300.0).unsqueeze(0) / 100, ("last",), words)
    tracer.softmax(logits, "softmax", "p", "")
    lines = step_lines(Screen().terminal(), Computation("", tuple(tracer.operations)), 0, None)
    assert any(line.startswith("largest: w299 0.010 · w298 0.010 · ") for line in lines)


def test_in_colour_negative_numbers_are_cold() -> None:
    terminal = Screen().terminal(colour=True)
    lines = "".join(step_lines(terminal, product(50), 0, None))
    assert f"48;5;{terminal.theme.cold[-1]}m" in lines
    assert f"48;5;{terminal.theme.heat[-1]}m" in lines


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (200, 50)])
def test_it_fits_into_any_window(size: tuple[int, int]) -> None:
    terminal = Screen(*size).terminal()
    for cell in (None, (20, 30)):
        lines = step_lines(terminal, product(50), 0, cell)
        assert max(map(get_cwidth, lines)) <= size[0] - 1
        assert len(lines) <= size[1] - 2 or size[1] < 10
        assert any(set("░▒▓█") & set(line) for line in lines) or size[1] < 10


def test_plain_text_has_every_operation_with_a_derivation() -> None:
    computation = product(50)
    text = "\n".join(plain_lines(Screen().terminal(dumb=True), computation))
    assert text.startswith("a product, in 1 steps\n\n1. product\ny = x · W\n")
    assert "x 50×50 …" in text
    assert "y[token49, 1] = " in text
    assert text.endswith("\n\ndone")
    assert max(map(get_cwidth, text.splitlines())) <= 79
