"""Settings and interface options: the tables, parsing, sources and precedence."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tinychat.cli.main import tinychat
from tinychat.cli.options import load_ui_options
from tinychat.config.option import REQUIRED, Option, Options, Origin, join_texts, option, split_texts, unescape
from tinychat.config.settings import (
    CONTROLS,
    LOADING,
    SAMPLING,
    SETTINGS,
    UI_OPTIONS,
    Settings,
    SettingStore,
    SteeringSpec,
    UiOptions,
    UiOptionStore,
    describe_sampling,
    parse_changes,
)
from tinychat.errors import RunError, SettingError, UsageError


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("temperature", "1.2", 1.2),
        ("temp", 0, 0.0),
        ("top-k", "40", 40),
        ("top_k", "none", None),
        ("top-k", "off", None),
        ("TOP-P", "1", 1.0),
        ("seed", 7.0, 7),
        ("stop", r"\n\n", ("\n\n",)),
        ("stop", ["a", "b"], ("a", "b")),
        ("stop", "none", ()),
        ("device", "CPU", "cpu"),
        ("max", "100", 100),
    ],
)
def test_typed_text_and_json_values_are_parsed(name: str, typed: object, value: object) -> None:
    assert SETTINGS.find(name).parse(typed) == value


@pytest.mark.parametrize(
    ("name", "raw", "typed", "value"),
    [
        ("begin", "- ", "- ", "- "),
        ("begin", "-", None, "-"),
        ("system", "None", None, "None"),
        ("stop", "off", (), ("off",)),
        ("stop", None, (), ()),
        ("ban", "-", (), ("-",)),
        ("top_k", "none", None, None),
    ],
)
def test_a_word_for_no_value_is_a_text_in_json_and_python(name: str, raw: object, typed: object, value: object) -> None:
    assert SETTINGS[name].parse(raw) == typed
    assert SETTINGS[name].parse(raw, is_typed=False) == value
    assert getattr(Settings(**{name: value}), name) == value
    store = SettingStore()
    store.replace({name: value}, Origin.MODEL)
    assert getattr(store.current, name) == value


def test_greedy_is_temperature_0_and_false_goes_back_to_sampling() -> None:
    def changes(**values: object) -> dict[str, object]:
        return parse_changes(values, Settings(temperature=0), at_loading=None, last_temperature=0.7)

    assert changes(greedy=True, temperature=0) == changes(greedy=True) == {"temperature": 0.0}
    assert changes(greedy=False) == {"temperature": 0.7}
    assert changes(greedy=False, temperature=1.2) == {"temperature": 1.2}
    assert changes(greedy=None) == {}
    assert parse_changes({"greedy": False}, Settings(temperature=0.3), at_loading=None) == {}
    for values in ({"greedy": True, "temperature": 1.2}, {"greedy": False, "temperature": 0}):
        with pytest.raises(UsageError, match="greedy is temperature 0"):
            changes(**values)
    with pytest.raises(UsageError, match="greedy takes true or false, not 1"):
        changes(greedy=1)


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("temperature", "hot", "temperature takes a number from 0 to 100, not 'hot'"),
        ("temperature", -1, "temperature takes a number from 0 to 100, not -1"),
        ("temperature", math.nan, "temperature takes a number from 0 to 100, not nan"),
        ("temperature", "inf", "temperature takes a number from 0 to 100, not 'inf'"),
        ("temperature", True, "temperature takes a number from 0 to 100, not True"),
        ("temperature", None, "temperature takes a number from 0 to 100, not None"),
        ("top_p", 0, "top-p takes a number above 0 and at most 1, not 0"),
        ("top_k", -1, "top-k takes a whole number from 1 to 2^53 or none, not -1"),
        ("top_k", "2.5", "top-k takes a whole number from 1 to 2^53 or none, not '2.5'"),
        ("max_tokens", "9" * 400, f"max-tokens takes a whole number from 1 to 2^53, not '{'9' * 400}'"),
        ("max_tokens", 2.5, "max-tokens takes a whole number from 1 to 2^53, not 2.5"),
        ("stop", [1], "stop takes text or none, not [1]"),
        ("device", "tpu", "device takes one of auto, cpu, cuda, mps, not 'tpu'"),
    ],
)
def test_an_invalid_value_is_refused_with_the_value_and_the_bounds(name: str, typed: object, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        SETTINGS.find(name).parse(typed)
    assert caught.value.problem == said


@dataclass(frozen=True)
class Oven:
    """One option of each type."""

    size: str = option(REQUIRED, "how large", choices=("small", "large"), aliases=("width",))
    heat: float = option(0.5, "how hot", above=0, high=1)
    minutes: int | None = option(None, "how long", low=1, absent="auto")
    names: tuple[str, ...] | None = option(None, "what is in it", absent="auto", flags=("--dishes",))
    is_on: bool = option(False, "whether it is on")


def test_an_option_has_the_name_and_the_type_of_its_field() -> None:
    table = Options.of(Oven, error=RunError, unknown="an oven has no", remedy="look at it")
    assert [one.name for one in table.values()] == ["size", "heat", "minutes", "names", "is_on"]
    assert [one.type_name for one in table.values()] == ["str", "float", "int | None", "tuple | None", "bool"]
    assert [one.usage for one in table.values()] == ["small|large", "N", "N", "TEXT", "true|false"]
    assert [one.expected for one in table.values()] == [
        "one of small, large", "a number above 0 and at most 1", "a whole number of at least 1 or auto",
        "one or more texts or auto", "true or false",
    ]  # fmt: skip


def test_bounds_of_whole_numbers_are_told_with_all_their_digits() -> None:
    seed = Option("", name="seed", kind=int, low=0, high=2**63 - 1)
    assert seed.expected == "a whole number from 0 to 9223372036854775807"
    assert seed.bounds == "0 to 9223372036854775807"
    assert seed.fault(2**63) == "it must be at most 9223372036854775807"


def test_an_option_is_found_by_name_alias_and_flag_or_the_owners_error_is_raised() -> None:
    table = Options.of(Oven, error=RunError, unknown="an oven has no", remedy="look at it")
    assert table.find("IS-ON") is table["is_on"]
    assert table.find("width") is table["size"]
    assert table.find("dishes") is table["names"]
    for name, remedy in (("minute", "did you mean minutes?"), ("xyzzy", "look at it")):
        with pytest.raises(RunError) as caught:
            table.find(name)
        assert (caught.value.problem, caught.value.remedy) == (f"an oven has no {name!r}", remedy)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("heat", 1, ""),
        ("heat", 0, "it must be above 0"),
        ("heat", 1.5, "it must be at most 1"),
        ("heat", math.nan, "it must be above 0"),
        ("minutes", 0, "it must be at least 1"),
        ("minutes", 10**400, "it must be finite"),
        ("minutes", None, ""),
        ("size", "huge", "it is one of small, large"),
    ],
)
def test_fault_describes_an_invalid_value(name: str, value: object, fault: str) -> None:
    assert Options.of(Oven)[name].fault(value) == fault


@given(st.lists(st.text(st.sampled_from('a ,"\\n\n') | st.characters(), min_size=1), min_size=1))
def test_texts_between_commas_are_split_as_they_were_joined(texts: list[str]) -> None:
    assert split_texts(join_texts(texts)) == tuple(texts)


def test_texts_between_commas_are_typed_without_ceremony() -> None:
    assert split_texts(r' ice cream, " a",,x\,y ,\n, "') == ("ice cream", " a", "x,y", "\n", '"')


def test_sampling_settings_have_a_neutral_value() -> None:
    filters = {"temperature", "top_k", "top_p", "min_p"}
    assert set(SAMPLING) - set(CONTROLS) == filters | {"repetition_penalty", "steer"}
    assert LOADING == ("device", "precision", "engine", "threads")
    plain = Settings(**{name: SETTINGS[name].neutral for name in SAMPLING})
    assert describe_sampling(plain) == ["temp 1", "top-p 1", "sample"]


def test_an_unknown_setting_raises_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no setting 'heat'"):
        SETTINGS.find("heat")


def test_a_snapshot_is_validated_and_hashable() -> None:
    with pytest.raises(SettingError):
        Settings(top_p=2)
    assert len({Settings(), Settings(temperature=0.8), Settings(seed=1)}) == 2
    assert Settings(temperature=0).greedy


def test_the_layer_of_highest_precedence_wins_and_is_the_origin() -> None:
    store = SettingStore()
    for layer, value in ((Origin.COMMAND, 1.5), (Origin.MODEL, 0.5), (Origin.FLAG, 1.0), (Origin.FILE, 0.6)):
        store.set("temperature", value, layer)
    assert (store.current.temperature, store.origin("temperature")) == (1.5, Origin.COMMAND)
    store.reset("temperature")
    assert (store.current.temperature, store.origin("temperature")) == (1.0, Origin.FLAG)
    assert store.origin("top_p") is Origin.DEFAULT


def test_update_sets_all_values_or_none() -> None:
    store = SettingStore()
    with pytest.raises(SettingError):
        store.update({"temperature": 1, "top_p": 7}, Origin.FILE)
    assert store.current == Settings()


def test_replace_drops_the_other_values_of_an_origin() -> None:
    store = SettingStore()
    store.replace({"temperature": 0.3}, Origin.MODEL)
    store.replace({"top_p": 0.5}, Origin.MODEL)
    assert (store.current.temperature, store.current.top_p) == (0.8, 0.5)


def test_sample_returns_to_the_last_temperature_above_zero() -> None:
    store = SettingStore()
    store.set("temperature", 1.3)
    store.set("temperature", 0)
    store.sample()
    assert store.current.temperature == 1.3


def test_greedy_is_a_temperature_of_its_origin() -> None:
    store = SettingStore()
    store.set_greedy(True, Origin.FILE)
    assert (store.current.temperature, store.origin("temperature")) == (0, Origin.FILE)
    store.set_greedy(False, Origin.ENVIRONMENT)
    assert store.current.temperature == 0.8
    store.set("temperature", 1.2, Origin.FLAG)
    with pytest.raises(UsageError, match=r"greedy is temperature 0, not 1\.2"):
        store.set_greedy(True, Origin.FLAG)


def test_sample_leaves_a_temperature_of_the_model_to_the_model() -> None:
    store = SettingStore()
    store.replace({"temperature": 0.5}, Origin.MODEL)
    store.set("temperature", 0)
    store.sample()
    assert (store.current.temperature, store.origin("temperature")) == (0.5, Origin.MODEL)
    store.set("temperature", 0)
    store.replace({"temperature": 0.4}, Origin.MODEL)  # another model is opened
    store.sample()
    assert (store.current.temperature, store.origin("temperature")) == (0.4, Origin.MODEL)


def test_a_snapshot_taken_before_does_not_change() -> None:
    store = SettingStore()
    before = store.current
    store.set("temperature", 2)
    assert before.temperature == 0.8


@given(st.text("\\\n\tntr0é"))
def test_unescape_undoes_escaping(text: str) -> None:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n").replace("\t", r"\t")
    assert unescape(escaped) == text


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
def test_every_setting_is_fully_declared(setting: Any) -> None:
    assert setting.help
    assert setting.example
    assert setting.parse(setting.example) is not None
    assert setting.flag.startswith("--")
    assert setting.variable.startswith("TINYCHAT_")
    assert setting.parse(setting.show(setting.default)) == setting.default


@pytest.fixture
def configure(home: Path) -> Callable[[str], Path]:
    """Return a function that writes the config file."""

    def configure(text: str) -> Path:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(text)
        return home / "config.toml"

    return configure


def test_the_later_source_wins_and_is_reported(
    configure: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_ui_options() == UiOptions("smalltalk", plain=False, private=False, keys="auto", theme="dark")
    configure('model = "mine"\nplain = true\nkeys = "vi"\ntheme = "light"')
    assert load_ui_options() == UiOptions("mine", plain=True, keys="vi", theme="light")
    monkeypatch.setenv("TINYCHAT_THEME", "NONE")
    monkeypatch.setenv("TINYCHAT_PLAIN", "0")
    monkeypatch.setenv("TINYCHAT_KEYS", "")  # ignored
    assert load_ui_options() == UiOptions("mine", plain=False, keys="vi", theme="none")
    assert load_ui_options({"theme": "dark", "plain": None}).theme == "dark"
    output = json.loads(CliRunner().invoke(tinychat, ["config", "--json"]).output)
    origins = {name: output["settings"][name]["from"] for name in UI_OPTIONS}
    assert origins == {
        "model": "file", "plain": "environment", "private": "default", "keys": "file", "theme": "environment",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ('theme = "pink"', "theme takes one of dark, light, none, not 'pink'", "correct it, or take it out"),
        ('plain = "perhaps"', "plain takes true or false, not 'perhaps'", "correct it, or take it out"),
        ("model = 3", "model takes text, not 3", "correct it, or take it out"),
        ("top-p = 2", "top-p takes a number above 0 and at most 1, not 2", "correct it, or take it out"),
        ('tehme = "dark"', "there is no setting 'tehme'", "did you mean theme?"),
        ("[serve]\nport = 1", "there is no table 'serve'", "options stand at the top level, under no [table]"),
        ("greedy = 0.5", "greedy takes true or false, not 0.5", "correct it, or take it out"),
        ("greedy = true\ntemp = 0.7", "greedy is temperature 0, not 0.7", "give one of the two"),
    ],
)
def test_an_error_in_the_config_file_names_the_file_the_option_and_the_value(
    configure: Callable[[str], Path], text: str, problem: str, remedy: str
) -> None:
    path = configure(text)
    with pytest.raises(UsageError) as caught:
        load_ui_options()
    assert (caught.value.problem, caught.value.remedy) == (f"{path}: {problem}", remedy)


def test_interface_options_are_layered() -> None:
    ui_options = UiOptionStore()
    ui_options.set("theme", "light", Origin.FILE)
    ui_options.set("theme", "none", Origin.FLAG)
    assert (ui_options.current.theme, ui_options.origin("theme")) == ("none", Origin.FLAG)
    with pytest.raises(SettingError):
        ui_options.set("keys", "nano")


def test_a_temperature_too_small_to_divide_by_is_greedy() -> None:
    assert Settings(temperature=9e-7).greedy
    assert not Settings(temperature=1e-6).greedy


def test_every_number_of_a_setting_has_bounds_that_fit_in_64_bits() -> None:
    numbers = [one for one in SETTINGS.values() if one.kind is int]
    assert len(numbers) == 8
    for one in numbers:
        assert one.low is not None
        assert one.high is not None
        assert one.high < 2**63
        for value in (one.high + 1, one.low - 2 if one.zero_is_none else one.low - 1, 2**63, 10**400, 1e300):
            with pytest.raises(SettingError):
                one.parse(value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("happy-sad 2", ("happy", "sad", 2.0, None)), ("a-b +2. layer 3", ("a", "b", 2.0, 3)),
        ("a-b  -.5", ("a", "b  -.5", 1.0, None)), ("a-b   layer   12", ("a", "b", 1.0, 12)),
        ("a 1 - b 2.5  layer 4", ("a 1", "b", 2.5, 4)), ("a-b layer 3 layer 4", ("a", "b layer", 3.0, 4)),
    ],
)  # fmt: skip
def test_steering_is_read_in_parts(text: str, parts: tuple[object, ...]) -> None:
    assert SteeringSpec.parse(text) == parts


@pytest.mark.parametrize("run", ["1", " ", " 1", " layer"])
def test_steering_is_read_in_linear_time(run: str) -> None:
    began = time.process_time()
    assert SteeringSpec.parse(f"a-b {run * 50_000}x").strength == 1
    assert time.process_time() - began < 1
