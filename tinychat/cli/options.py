"""Flags, made from the tables of settings; and the settings that they, the environment and the config file make."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from tinychat.errors import SettingError, UsageError
from tinychat.layers import Layer
from tinychat.session import DEFAULT_MODEL, Session
from tinychat.setting import Setting
from tinychat.settings import SETTINGS, SettingStore
from tinychat.store.config import read_config
from tinychat.store.places import config_file

F = TypeVar("F", bound=Callable[..., Any])

NORMALIZE = {"token_normalize_func": lambda name: name.replace("_", "-"), "help_option_names": ["-h", "--help"]}
"""`_` for `-` is accepted everywhere."""

PRIVATE = "TINYCHAT_PRIVATE"
YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0", "")


def setting_options(function: F) -> F:
    """Adds a flag for each setting, and `--greedy` and `--sample`."""
    sampling = (
        click.Option(["--greedy/--sample", "greedy"], default=None, help="take the likeliest token always, or draw"),
    )
    options = [_option(setting) for setting in SETTINGS.values()]
    options[1:1] = sampling
    for option in reversed(options):
        _add(function, option)
    return function


def model_option(function: F) -> F:
    """Adds `-m/--model`."""
    _add(function, click.Option(["-m", "--model", "model"], metavar="MODEL", help="a model's name or folder"))
    return function


def debug_option(function: F) -> F:
    """Adds `--debug`; `main` looks for it itself, so that it counts from the first moment."""
    _add(function, click.Option(["--debug"], is_flag=True, expose_value=False, help="show tracebacks"))
    return function


def json_option(function: F) -> F:
    """Adds `--json`."""
    _add(function, click.Option(["--json", "as_json"], is_flag=True, help="as JSON"))
    return function


def make_session(given: Mapping[str, Any], model: str | None = None) -> Session:
    """A session with its settings in order (config file, environment, flags), and the model named or the default one.

    Raises:
        TinychatError: a value is wrong, or the model is not there.
    """
    settings, configured_model = load_settings()
    set_flags(settings, given)
    session = Session(settings)
    session.open_model(model or configured_model)
    return session


def load_settings() -> tuple[SettingStore, str]:
    """The settings that the config file and the environment make, and the name of the model that they name.

    Raises:
        UsageError: a value is wrong.
    """
    settings = SettingStore()
    config = read_config()
    model = str(config.pop("model", DEFAULT_MODEL))
    config.pop("private", None)
    _set_all(settings, config, Layer.FILE, str(config_file()))
    environment = {
        name: os.environ[setting.variable] for name, setting in SETTINGS.items() if setting.variable in os.environ
    }
    _set_all(settings, environment, Layer.ENVIRONMENT, "the environment")
    return settings, os.environ.get("TINYCHAT_MODEL") or model


def is_private() -> bool:
    """Whether the environment or the config file says that no conversation is to be kept.

    Raises:
        UsageError: it says neither yes nor no.
    """
    given = str(os.environ.get(PRIVATE, read_config().get("private", False)))
    if given.lower() not in (*YES, *NO):
        raise UsageError(f"private is yes or no, not {given!r}", f"it is set by {PRIVATE}, or in {config_file()}")
    return given.lower() in YES


def set_flags(settings: SettingStore, given: Mapping[str, Any]) -> None:
    """Takes the flags that were given; those that were not are None, or empty."""
    values = {name: given[name] for name in SETTINGS if given.get(name) not in (None, ())}
    for name in values:
        if SETTINGS[name].kind is tuple:  # each as it is typed: `none`, and `\\n` for a new line
            values[name] = [text for one in values[name] for text in SETTINGS[name].parse(one)]
    settings.update(values, Layer.FLAG)
    if given.get("greedy") is True:
        if float(values.get("temperature", 0)):
            raise UsageError(f"--greedy is temperature 0, not {values['temperature']}", "give one of the two")
        settings.set("temperature", 0, Layer.FLAG)
    elif given.get("greedy") is False:
        settings.sample(Layer.FLAG)


def _set_all(settings: SettingStore, values: Mapping[str, Any], layer: Layer, place: str) -> None:
    try:
        settings.update(values, layer)
    except SettingError as error:
        raise UsageError(f"{place}: {error.problem}") from None
    except UsageError as error:
        raise UsageError(f"{place}: {error.problem}", error.remedy) from None


def _option(setting: Setting) -> click.Option:
    flags = [*setting.flags, setting.flag, *(f"--{alias}" for alias in setting.aliases)]
    metavar = "|".join(setting.choices) if setting.choices else "TEXT" if setting.kind is tuple else "N"
    default = setting.show(setting.default)
    text = setting.help + (f" [{default}]" if default != "–" else "")
    return click.Option([*flags, setting.name], metavar=metavar, multiple=setting.kind is tuple, help=text)


def _add(function: Callable[..., Any], option: click.Option) -> None:
    """What click's own decorators do, for an option that is made by a program."""
    params: list[click.Parameter] = getattr(function, "__click_params__", [])
    params.append(option)
    function.__click_params__ = params  # type: ignore[attr-defined]
