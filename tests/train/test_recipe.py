"""A recipe is declared once; flags, TOML and checks agree with it. The rate over a run, and when the run is over."""

import dataclasses
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.errors import RunError, SettingError, UsageError
from tinychat.model.config import ARCHITECTURE, ModelConfig
from tinychat.train.recipe import (
    MODEL_FIELDS,
    RECIPE_FIELDS,
    SCHEDULES,
    Budget,
    Recipe,
    Schedule,
    choose_recipe,
    list_recipes,
    load_recipe,
    lr_factor,
)


def test_every_field_says_what_it_is_and_what_it_takes() -> None:
    for name, field in RECIPE_FIELDS.items():
        assert field.name == name
        assert field.help
        assert field.expected
        assert field.flag == ("--from" if name == "from_model" else "--" + name.replace("_", "-"))
        assert RECIPE_FIELDS.find(field.flag.removeprefix("--")) is field


def test_the_model_section_is_the_architecture() -> None:
    of_text = {"vocab_size", "source_vocab_size", "turn_token", "reply_token"}
    fields = {field.name for field in dataclasses.fields(ModelConfig)} - of_text
    assert set(MODEL_FIELDS) == fields
    for name in MODEL_FIELDS:
        left_open = dataclasses.replace(ARCHITECTURE[name], default=None, optional=True, absent="auto", section="model")
        assert RECIPE_FIELDS[name] == left_open


@pytest.mark.parametrize("info", list_recipes(), ids=lambda info: info.name)
def test_recipes_that_come_with_it_load_and_say_what_they_are(info) -> None:
    assert info.about
    load_recipe(info.name).model_config(65)


def test_the_default_recipe_comes_first() -> None:
    assert list_recipes()[0].name == "default"


TEXTS = st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"]))


@given(
    st.builds(
        Recipe,
        sources=st.lists(TEXTS, max_size=3).map(tuple),
        minutes=st.none() | st.floats(0.01, 1000),
        n_layer=st.none() | st.integers(0, 100),
        qk_norm=st.none() | st.booleans(),
        norm=st.none() | st.sampled_from(["layernorm", "rmsnorm", "none"]),
        dropout=st.none() | st.floats(0, 0.9),
        sample_prompt=st.none() | st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    )
)
@pytest.mark.slow
def test_toml_holds_all_of_a_recipe(recipe: Recipe) -> None:
    assert Recipe.from_toml(recipe.to_toml()) == recipe


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("n-layer", "4", 4),
        ("dropout", "0.1", 0.1),
        ("qk_norm", "no", False),
        ("norm", "none", "none"),
        ("norm", "auto", None),
        ("d_ff", "none", None),
        ("minutes", "auto", None),
        ("sources", "C:\\new\\text.txt", ("C:\\new\\text.txt",)),
        ("sources", "-", ("-",)),
        ("column", "Text", "Text"),
        ("sample_prompt", "ROMEO:\n", ("ROMEO:\n",)),
        ("sample_prompt", ["ROMEO:", "JULIET:"], ("ROMEO:", "JULIET:")),
        ("sample_prompt", "auto", None),
    ],
)
def test_typed_values_are_read(name: str, typed: object, value: object) -> None:
    assert RECIPE_FIELDS.find(name).parse(typed) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layer", "many"),
        ("n_layer", -1),
        ("n_layer", True),
        ("dropout", "nan"),
        ("dropout", 1.5),
        ("minutes", 0),
        ("qk_norm", "perhaps"),
        ("norm", "batchnorm"),
        ("seed", None),
        ("sources", ("",)),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=name.replace("_", "-")):
        Recipe().merged({name: value})


def test_an_unknown_field_gets_the_nearest_name() -> None:
    with pytest.raises(RunError) as error:
        Recipe().merged({"n_layers": 3})
    assert "n_layer?" in error.value.remedy


def test_what_says_the_length_takes_the_place_of_what_said_it_before() -> None:
    recipe = Recipe(steps=100).merged({"minutes": "2"})
    assert (recipe.minutes, recipe.steps) == (2.0, None)
    recipe = recipe.merged({"steps": 7})
    assert (recipe.minutes, recipe.steps) == (None, 7)
    recipe = recipe.merged({"epochs": "1.5"})
    assert (recipe.minutes, recipe.steps, recipe.epochs) == (None, None, 1.5)
    with pytest.raises(UsageError, match="--minutes and --epochs"):
        recipe.merged({"minutes": 1, "epochs": 2})


def test_a_length_that_the_planner_chooses_is_none() -> None:
    recipe = load_recipe("nanogpt").merged({"minutes": "auto"})
    assert recipe.length == load_recipe("nanogpt").length == {"steps": 5000}
    assert recipe.merged({"minutes": "auto", "epochs": 2}).length == {"epochs": 2}
    assert recipe.merged({"steps": "auto"}).length == {}


@pytest.mark.parametrize(("model", "expected"), [("tales", "continue"), ("auto", "default"), (None, "default")])
def test_the_recipe_depends_on_the_model_to_start_from(model: str | None, expected: str) -> None:
    assert choose_recipe(None, {"from": model}) == load_recipe(expected).merged({"from": model})


def test_texts_stand_instead_of_sources_not_beside_them() -> None:
    own = Recipe(texts=("a", "b"), context_length=3)
    merged = own.merged({"sources": ["novel.txt"]})
    assert (merged.texts, merged.sources, merged.context_length) == ((), ("novel.txt",), None)
    assert Recipe(sources=("novel.txt",)).merged({"texts": ["a"]}).sources == ()
    for recipe in (Recipe(), own):
        with pytest.raises(UsageError, match="--texts are trained on instead of a file"):
            recipe.merged({"sources": ["novel.txt"], "texts": ["hello"], "context_length": 32})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[model", "no TOML"),
        ("[machine]\nn_layer = 3", r"belongs in \[model\]"),
        ("[cooking]\nn_layer = 3", "no place for 'cooking'"),
        ("n_layer = 3", "no place for 'n_layer'"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(RunError) as error:
        Recipe.from_toml(text)
    assert re.search(words, str(error.value))


def test_a_recipe_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(RunError) as error:
        load_recipe("nonsense")
    assert "nanogpt-cpu" in error.value.remedy


# --- the schedule


LINEAR = Schedule("linear", warmup_steps=9, lr_decay_fraction=0.8, min_lr_ratio=0.1)


def test_the_rate_rises_holds_and_falls_to_where_it_should_end() -> None:
    assert lr_factor(LINEAR, 0.0, step=0) == pytest.approx(0.1)
    assert lr_factor(LINEAR, 0.2, step=50) == pytest.approx(1.0)
    assert lr_factor(LINEAR, 0.6, step=50) == pytest.approx(0.55)
    assert lr_factor(LINEAR, 1.0, step=50) == pytest.approx(0.1)


@given(st.sampled_from(list(SCHEDULES)), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_after_the_warm_up_the_rate_never_rises(
    shape: str, lr_decay_fraction: float, final: float, one: float, two: float
) -> None:
    schedule = Schedule(shape, warmup_steps=10, lr_decay_fraction=lr_decay_fraction, min_lr_ratio=final)
    earlier, later = sorted((one, two))
    first, second = (lr_factor(schedule, progress, step=100) for progress in (earlier, later))
    assert 1 + 1e-9 >= first >= second - 1e-9 >= -1e-9


def test_a_budget_of_steps_is_used_after_them() -> None:
    budget = Budget(steps=10)
    assert not budget.is_exhausted(9, seconds=1e6, step_seconds=1)
    assert budget.is_exhausted(10, seconds=0, step_seconds=1)
    assert budget.progress(5, seconds=1e6) == 0.5
    assert budget.expected_steps(3, 0, 1) == 10
    assert budget.remaining(4, 0, step_seconds=2) == 12


def test_a_budget_of_seconds_has_no_room_for_a_step_that_would_end_too_late() -> None:
    budget = Budget(seconds=60)
    assert not budget.is_exhausted(1, seconds=58, step_seconds=1.5)
    assert budget.is_exhausted(1, seconds=59, step_seconds=1.5)
    assert budget.progress(1, seconds=30) == 0.5
    assert budget.expected_steps(100, seconds=30, step_seconds=0.5) == 160
    assert budget.remaining(100, seconds=30, step_seconds=0.5) == 30


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "not UTF-8"),
        (b"about = 5", "about cannot be 5"),
        (b"a" + b".a" * 20_000 + b" = 1", "too many dots"),
        (b"[training]\nsteps = " + b"[" * 5_000, "nested too deep"),
        (b"[training]\nsteps = " + b"1" * 5_000, "digits"),
    ],
)
def test_a_damaged_recipe_is_refused_in_a_line(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "mine.toml").write_bytes(data)
    with pytest.raises(RunError, match=said):
        load_recipe(tmp_path / "mine.toml")


def test_a_pipe_is_no_recipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.toml")
    with pytest.raises(RunError, match="it is a named pipe"):
        load_recipe(tmp_path / "mine.toml")
