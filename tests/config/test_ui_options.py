"""Interface options: their sources and precedence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tinychat.cli.main import tinychat
from tinychat.cli.options import load_ui_options
from tinychat.config.precedence import Origin
from tinychat.config.ui_options import UI_OPTIONS, UiOptions, UiOptionStore
from tinychat.errors import SettingError, UsageError


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
