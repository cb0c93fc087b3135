"""The operations that are shown are those of the model: each of them, for every architecture, down to its logits."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_introspection import GRID, make, some_ids
from test_transformer import FOREIGN
from test_transformer import GRID as ALL

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate import tracing
from tinychat.generate.computation import Computation, Derivation, Matrix, Operation, figure
from tinychat.generate.engine import Request, Steering, uniform
from tinychat.generate.sampling import probabilities
from tinychat.generate.torch_engine import TorchEngine
from tinychat.generate.tracing import trace
from tinychat.model.transformer import Transformer

SOURCE = (3, 1, 4, 1, 5)
MORE = [  # architectures that the grid of the other tests of introspection lacks
    {"scale_embedding": True, "n_head": 2, "n_kv_head": 1, "qk_norm": False, "bias": True, "norm_affine": True},
    {"norm": "rmsnorm", "norm_affine": True, "norm_position": "post", "feed_forward": "swiglu", "bias": True},
    {"ngram_order": 3, "matches": False, "tie_embeddings": True, "bias": True, "head_bias": True},
    {"n_layer": 0, "n_encoder_layer": 0},
    {"turn_attention": True, "turn_token": 5, "reply_token": 2, "n_head": 2, "n_kv_head": 1, "qkv_bias": True},
    {"n_encoder_layer": 1, "previous_token_embeddings": 2, "bigram_embedding": True, "position": "sinusoidal"},
]

SOME = [options | {"n_layer": 1} for options in GRID[::19]]


def traced(model: Transformer, **settings: object) -> Computation:
    ids = some_ids()[0].tolist()
    source = SOURCE if model.encoder is not None else None
    request = Request(0, ids, 0, Settings(**settings), 1, source=source)  # type: ignore[arg-type]
    return trace(model, request, str, str, window=ids, uniform=0.4)


def cells(operation: Operation) -> Iterator[tuple[int, int, Derivation]]:
    """Derive three cells of an operation's output."""
    assert operation.derive is not None
    rows, columns = operation.output.shape
    for row, column in ((0, columns - 1), (rows // 2, columns // 2), (rows - 1, 0)):
        yield row, column, operation.derive(row, column)


def storage(matrix: Matrix) -> int:
    return matrix.values.untyped_storage().data_ptr()


def check(model: Transformer, options: dict[str, object]) -> None:
    computation = traced(model, temperature=0.7)
    encoder_output = None if model.encoder is None else model.encode(torch.tensor([SOURCE]))
    expected = model(some_ids(), encoder_output=encoder_output)[0, -1]  # [V]
    (logits,) = [one.output for one in computation.operations if one.output.name == "logits"]
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(logits.values[0] / scale, expected / scale, atol=2e-5, rtol=0, msg=f"{options}")
    weights = {weight.untyped_storage().data_ptr(): name for name, weight in model.named_parameters()}
    known: set[int] = set()
    read: set[str] = set()
    for operation in computation.operations:
        for one in operation.inputs:
            if one.weight:
                assert torch.equal(one.values, _part(model.get_parameter(one.weight), one))
                read.add(weights[storage(one)])
            else:  # it was computed before, or is a table of angles
                assert storage(one) in known or one.name in ("cos", "sin"), f"{operation.name} of {options}"
        known.add(storage(operation.output))
        if operation.derive is None:
            assert operation.name in ("tokens", "counts", "matches", "shares", "settings")
            continue
        for row, column, derivation in cells(operation):
            value = operation.output[row, column]
            is_close = value == derivation.value or math.isclose(value, derivation.value, rel_tol=2e-4, abs_tol=2e-5)
            assert is_close, f"{operation.name} of {options}: {value} is not {derivation.text()}"
            assert len(derivation.reads) <= len(operation.inputs)
            assert derivation.text(3)
    unread = {name for name in weights.values() if not name.startswith("ngrams.")} - read
    assert unread == set(), f"{options} also has these"


def _part(weight: torch.Tensor, matrix: Matrix) -> torch.Tensor:
    """Return the part of a weight that a matrix shows, transposed as it is."""
    whole = weight.detach().view(1, -1) if weight.dim() == 1 else weight.detach()
    start = matrix.values.storage_offset() // (1 if weight.dim() == 1 else whole.shape[1])
    if weight.dim() == 1:
        return whole[:, start : start + matrix.shape[1]]
    is_turned = "embedding" not in matrix.weight or matrix.name == "W"
    is_turned = is_turned and not re.search(r"earlier|pairs|table", matrix.weight)
    return whole[start : start + matrix.shape[1]].t() if is_turned else whole


@torch.inference_mode()
@pytest.mark.parametrize(
    "grid",
    [SOME + MORE + FOREIGN, pytest.param(GRID + ALL, marks=(pytest.mark.slow, pytest.mark.long))],
    ids=["some", "all"],
)
def test_the_operations_make_the_logits_of_the_model_and_can_be_checked(grid: list[dict[str, object]]) -> None:
    for options in grid:
        check(make(**options), options)


@torch.inference_mode()
def test_the_draw_is_that_of_the_engine() -> None:
    model, drawn = make(n_layer=1), set()
    for seed in range(12):
        settings = Settings(temperature=1.5, top_p=0.9, repetition_penalty=1.3)
        ids = some_ids()[0].tolist()
        request = Request(0, ids, 0, settings, seed)
        number = uniform(seed, 0, 0)
        computation = trace(model, request, str, str, window=ids, uniform=number)
        after = probabilities(model(some_ids())[:, -1], settings, [ids])[0]
        expected = int((after.cumsum(0) > number).nonzero()[0, 0])
        assert computation.operations[-1].output.row(0).index(1.0) == expected
        assert computation.result == f"the next token: '{expected}'"
        drawn.add(expected)
    assert len(drawn) > 3


@torch.inference_mode()
def test_a_draw_whose_random_number_is_not_known_is_told() -> None:
    model, ids = make(n_layer=1), some_ids()[0].tolist()
    request = Request(0, ids, 0, Settings(temperature=1.0), 1)
    for drawn in (7, None):
        computation = trace(model, request, str, str, window=ids, drawn=drawn)
        last = computation.operations[-1]
        assert last.about.startswith("The random number is not known.")
        expected = int(model(some_ids())[0, -1].argmax()) if drawn is None else drawn
        assert last.output[0, expected] == 1
        assert computation.result == f"the next token: '{expected}'"


@torch.inference_mode()
def test_a_token_that_was_not_drawn_is_not_said_to_be() -> None:
    model, ids = make(n_layer=1), some_ids()[0].tolist()
    likeliest = int(model(some_ids())[0, -1].argmax())
    for temperature, words in ((0.0, "would be greedy"), (1.0, "0.000000 would draw another")):
        request, other = Request(0, ids, 0, Settings(temperature=temperature), 1), (likeliest + 1) % 11 or 1
        computation = trace(model, request, str, str, window=ids, uniform=0.0, drawn=other)
        assert computation.result == f"the next token: '{other}'"
        assert words in computation.operations[-1].about
        assert "put there" in computation.operations[-1].about


@torch.inference_mode()
def test_a_token_that_was_drawn_in_another_precision_is_not_said_to_be_put_there() -> None:
    model, ids = make(n_layer=1), some_ids()[0].tolist()
    other = (int(model(some_ids())[0, -1].argmax()) + 1) % 11 or 1

    def about(uniform: float | None, **settings: object) -> str:
        request = Request(0, ids, 0, Settings(**settings), 1)  # type: ignore[arg-type]
        found = trace(model, request, str, str, window=ids, uniform=uniform, drawn=other, precision="int8")
        return found.operations[-1].about

    for temperature in (0.0, 1.0):
        assert about(0.0, temperature=temperature).endswith(tracing.DECODED_IN.format("int8"))
    assert about(None, temperature=0.0).endswith(tracing.PUT_THERE)  # somebody may have chosen it
    for search in ({"num_beams": 2}, {"best_of": 2}, {"choices": "a,b"}):
        assert about(0.0, temperature=1.0, **search).endswith(tracing.PUT_THERE)


@torch.inference_mode()
def test_steering_is_an_operation_of_its_own() -> None:
    engine, ids = TorchEngine(make()), some_ids()[0].tolist()
    request = Request(0, ids, 0, Settings(temperature=1.0), 1, steering=Steering((1, 2, 3), (4, 5), 3.0, layer=2))
    computation = engine.trace(request, str, str, uniform=0.5)
    assert [one.name for one in computation.operations if one.part == "layer 2 · steering"] == ["direction", "steered"]
    (p,) = [one.output for one in computation.operations if one.output.name == "p"]
    for steering, is_same in ((request.steering, True), (None, False)):
        plain = replace(request, settings=Settings(temperature=1.0, top_p=1.0), steering=steering)
        odds = {one.id: one.probability for one in engine.probabilities(plain)}
        assert (p.row(0) == pytest.approx([odds[id] for id in range(p.shape[1])], abs=1e-5)) == is_same


@torch.inference_mode()
def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MAX_NUMBERS", 1000)
    with pytest.raises(GenerationError, match="too large to be shown"):
        traced(make())


def test_a_derivation_is_shortened_to_its_largest_terms() -> None:
    terms = tuple((f"{number} × 1", float(number)) for number in (1, -9, 2, 5))
    derivation = Derivation(-1.0, "({}) / √2", terms)
    assert derivation.text() == "(1 × 1 + -9 × 1 + 2 × 1 + 5 × 1) / √2"
    assert derivation.text(2) == "(-9 × 1 + 5 × 1 + 3.000 (the other 2)) / √2"


def test_figures_are_as_wide_as_they_need_to_be() -> None:
    numbers = (0.0, -0.0001, 12.3456, -123.456, 123456.7, 1e12, math.inf, -math.inf)
    assert [figure(number) for number in numbers] == [
        "0.000", "0.000", "12.346", "-123.5", "123457", "1.00e+12", "∞", "-∞",
    ]  # fmt: skip


# --- docs/steps.md: the same in plain torch ---

ROOT = Path(__file__).parents[2]
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def scripts() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "steps.md").read_text(encoding="utf-8"), re.DOTALL)


@torch.inference_mode()
def test_the_script_in_the_docs_computes_the_matrices_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinychat.model.loading import load_model
    from tinychat.store.models import read_info

    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(scripts()[0], names)
    info = read_info(ROOT / "tests" / "toys" / "statquest")
    assert sum(weight.numel() for weight in load_file(info.folder / "model.safetensors").values()) == 37
    request = Request(0, [0, 1, 2, 4], 0, Settings(temperature=0.0), 1)
    computation = trace(load_model(info), request, str, str, window=request.ids)
    shown = {one.output.name.translate(SUBSCRIPTS): one.output for one in computation.operations[:-1]}
    assert len(shown) == 15
    for name, matrix in shown.items():
        values = names[name]
        assert isinstance(values, torch.Tensor)
        texts = [[figure(value) for value in row] for row in values.view(matrix.shape).tolist()]
        rows, columns = matrix.shape
        printed = [[figure(matrix[row, column]) for column in range(columns)] for row in range(rows)]
        assert texts == printed, name
