"""Flags, made from the tables of options; and the settings that they, the environment and the config file make.

The user's config file: settings by their names, and the model to open.
"""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from tinychat.config.option import Option
from tinychat.config.precedence import Origin
from tinychat.config.settings import SETTINGS, SettingStore
from tinychat.config.ui_options import UI_OPTIONS, UiOptions, UiOptionStore
from tinychat.errors import SettingError, UsageError
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.paths import config_file

F = TypeVar("F", bound=Callable[..., Any])

debug_option = click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
"""`main` looks for it itself, so that it counts from the first moment."""

json_option = click.option("--json", "as_json", is_flag=True, help="as JSON")


def setting_options(function: F) -> F:
    """Adds a flag for each setting, and `--greedy` and `--sample`."""
    greedy = click.option("--greedy/--sample", "greedy", default=None, help="take the likeliest token always, or draw")
    temperature, *others = SETTINGS.values()
    return add_flags([temperature])(greedy(add_flags(others)(function)))


def ui_option_flags(*names: str) -> Callable[[F], F]:
    """Adds a flag for each of these options of the face."""
    return add_flags(UI_OPTIONS[name] for name in names)


def add_flags(options: Iterable[Option]) -> Callable[[F], F]:
    """Return a decorator that adds the flags of options to a command, in their order."""
    flags = [_make_flag(option) for option in options]

    def add(function: F) -> F:
        for flag in reversed(flags):
            function = flag(function)
        return function

    return add


def _make_flag(option: Option) -> Callable[[F], F]:
    """Return what adds the flags of an option to a command."""
    names = [*(flag for flag in option.flags if flag != option.flag), option.flag]
    names += [*(f"--{alias}" for alias in option.aliases), option.name]
    if option.switch:
        return click.option(*names, is_flag=True, default=None, help=option.help)
    default = option.show(option.default)
    text = option.help + (f" [{default}]" if default != "–" else "")
    return click.option(*names, metavar=option.usage, multiple=option.kind is tuple, help=text)


def make_session(given: Mapping[str, Any]) -> Session:
    """A session with its settings in order (config file, environment, flags), and the model named or the default one.

    Raises:
        TinychatError: a value is wrong, or the model is not there.
    """
    settings, ui_options = load_settings(given)
    session = Session(settings, ui_options)
    session.open_model(ui_options.current.model)
    return session


def load_ui_options(given: Mapping[str, Any] | None = None) -> UiOptions:
    """The options of the face in force, for a command that has no session.

    Raises:
        UsageError: a name or a value is wrong.
    """
    _, ui_options = load_settings(given)
    return ui_options.current


def load_settings(given: Mapping[str, Any] | None = None) -> tuple[SettingStore, UiOptionStore]:
    """The settings and the options of the face that the config file, the environment and flags make.

    Args:
        given: the flags; those that were not given are None, or empty.

    Raises:
        UsageError: a name or a value is wrong.
    """
    settings, ui_options, given = SettingStore(), UiOptionStore(), given or {}
    for name, value in read_config().items():
        _set(settings, ui_options, name, value, Origin.FILE, str(config_file()))
    for name, option in (UI_OPTIONS | SETTINGS).items():
        if value := os.environ.get(option.variable):
            _set(settings, ui_options, name, value, Origin.ENVIRONMENT, option.variable)
    set_flags(settings, given)
    ui_options.update({name: given[name] for name in UI_OPTIONS if given.get(name) is not None}, Origin.FLAG)
    return settings, ui_options


def set_flags(settings: SettingStore, given: Mapping[str, Any]) -> None:
    """Takes the flags that were given; those that were not are None, or empty."""
    values = {name: given[name] for name in SETTINGS if given.get(name) not in (None, ())}
    for name in values:
        if SETTINGS[name].kind is tuple:  # each as it is typed: `none`, and `\\n` for a new line
            values[name] = [text for one in values[name] for text in SETTINGS[name].parse(one)]
    settings.update(values, Origin.FLAG)
    if given.get("greedy") is True:
        if float(values.get("temperature", 0)):
            raise UsageError(f"--greedy is temperature 0, not {values['temperature']}", "give one of the two")
        settings.set("temperature", 0, Origin.FLAG)
    elif given.get("greedy") is False:
        settings.sample(Origin.FLAG)


def _set(
    settings: SettingStore, ui_options: UiOptionStore, name: str, value: object, origin: Origin, index: str
) -> None:
    """Sets one of either; what is wrong with it is told with its place."""
    try:
        found = (UI_OPTIONS | SETTINGS).find(name)
        (ui_options if found.name in UI_OPTIONS else settings).set(found.name, value, origin)
    except UsageError as error:
        remedy = "correct it, or take it out" if isinstance(error, SettingError) else error.remedy
        raise UsageError(f"{index}: {error.problem}", remedy) from None


# ---- from tinychat.cli.options ----


EXAMPLE = 'model = "smalltalk"\ntemperature = 0.7\ntop_p = 0.9\n'


def read_config() -> dict[str, Any]:
    """What the file holds, `-` in names as `_`; empty where there is none.

    Raises:
        UsageError: it is no TOML, or cannot be read.
    """
    path = paths.config_file()
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}", "correct it, or move it away") from None
    return {name.replace("-", "_"): value for name, value in values.items()}
