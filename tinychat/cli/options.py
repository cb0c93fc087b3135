"""Flags, made from the tables of settings; and the settings that they, the environment and the config file make."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from tinychat.errors import SettingError, UsageError
from tinychat.face import FACE, Face, FaceStore
from tinychat.layers import Layer
from tinychat.session import Session
from tinychat.setting import Setting, find
from tinychat.settings import SETTINGS, SettingStore
from tinychat.store.config import read_config
from tinychat.store.places import config_file

F = TypeVar("F", bound=Callable[..., Any])

NORMALIZE = {"token_normalize_func": lambda name: name.replace("_", "-"), "help_option_names": ["-h", "--help"]}
"""`_` for `-` is accepted everywhere."""


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


def face_options(*names: str) -> Callable[[F], F]:
    """Adds a flag for each of these options of the face."""

    def add(function: F) -> F:
        for name in reversed(names):
            _add(function, _option(FACE[name]))
        return function

    return add


def debug_option(function: F) -> F:
    """Adds `--debug`; `main` looks for it itself, so that it counts from the first moment."""
    _add(function, click.Option(["--debug"], is_flag=True, expose_value=False, help="show tracebacks"))
    return function


def json_option(function: F) -> F:
    """Adds `--json`."""
    _add(function, click.Option(["--json", "as_json"], is_flag=True, help="as JSON"))
    return function


def make_session(given: Mapping[str, Any]) -> Session:
    """A session with its settings in order (config file, environment, flags), and the model named or the default one.

    Raises:
        TinychatError: a value is wrong, or the model is not there.
    """
    settings, face = load_settings()
    set_flags(settings, given)
    _set_face_flags(face, given)
    session = Session(settings, face)
    session.open_model(face.current.model)
    return session


def load_settings() -> tuple[SettingStore, FaceStore]:
    """The settings and the options of the face that the config file and the environment make.

    Raises:
        UsageError: a name or a value is wrong.
    """
    settings, face = SettingStore(), FaceStore()
    for name, value in read_config().items():
        _set(settings, face, name, value, Layer.FILE, str(config_file()))
    for name, setting in (FACE | SETTINGS).items():
        if value := os.environ.get(setting.variable):
            _set(settings, face, name, value, Layer.ENVIRONMENT, setting.variable)
    return settings, face


def load_face(given: Mapping[str, Any] | None = None) -> Face:
    """The options of the face in force, for a command that has no session.

    Raises:
        UsageError: a name or a value is wrong.
    """
    _, face = load_settings()
    _set_face_flags(face, given or {})
    return face.current


def _set_face_flags(face: FaceStore, given: Mapping[str, Any]) -> None:
    face.update({name: given[name] for name in FACE if given.get(name) is not None}, Layer.FLAG)


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


def _set(settings: SettingStore, face: FaceStore, name: str, value: object, layer: Layer, place: str) -> None:
    """Sets one of either; what is wrong with it is told with its place."""
    try:
        found = find(FACE | SETTINGS, name)
        (face if found.name in FACE else settings).set(found.name, value, layer)
    except SettingError as error:
        raise UsageError(f"{place}: {error.problem}", "correct it, or take it out") from None
    except UsageError as error:
        raise UsageError(f"{place}: {error.problem}", error.remedy) from None


def _option(setting: Setting) -> click.Option:
    flags = [*setting.flags, setting.flag, *(f"--{alias}" for alias in setting.aliases)]
    if setting.kind is bool:
        return click.Option([*flags, setting.name], is_flag=True, default=None, help=setting.help)
    texts: dict[type, str] = {tuple: "TEXT", str: setting.name.upper()}
    metavar = "|".join(setting.choices) or texts.get(setting.kind, "N")
    default = setting.show(setting.default)
    text = setting.help + (f" [{default}]" if default != "–" else "")
    return click.Option([*flags, setting.name], metavar=metavar, multiple=setting.kind is tuple, help=text)


def _add(function: Callable[..., Any], option: click.Option) -> None:
    """What click's own decorators do, for an option that is made by a program."""
    params: list[click.Parameter] = getattr(function, "__click_params__", [])
    params.append(option)
    function.__click_params__ = params  # type: ignore[attr-defined]
