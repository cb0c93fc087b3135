"""Command-line flags, made from the option tables, and the settings in force: a flag, a variable or a config file's."""

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tinychat.cli.completion import complete_values
from tinychat.config.option import VARIABLE_PREFIX, LayeredOptions, Option, Options, Origin
from tinychat.config.settings import GREEDY, SETTINGS, UI_OPTIONS, SettingStore, UiOptions, UiOptionStore
from tinychat.errors import ModelError, SettingError, UsageError
from tinychat.serve.options import SERVER_OPTIONS, ServerOptions, ServerOptionStore
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.untrusted import read_toml

F = TypeVar("F", bound=Callable[..., Any])

debug_option = click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
"""The flag is declared for the help only: `main` looks for it in `sys.argv`."""

ALL_OPTIONS = UI_OPTIONS | SETTINGS | Options([GREEDY]) | SERVER_OPTIONS
"""All options that the config file and environment variables may set."""

MIN_SIMILARITY, MIN_PATH_SIMILARITY = 0.75, 0.9
"""Of the names of two environment variables, without and with `TINYCHAT_`, if one is a misspelling of the other."""
MAX_CONFIG = 1 << 20
"""Maximum size of the config file, in bytes."""

json_option = click.option("--json", "as_json", is_flag=True, help="write JSON")


def setting_options(function: F) -> F:
    """Add a flag for each setting, `--greedy` and `--sample` to a command."""
    greedy = click.option("--greedy/--sample", default=None, help="always take the most likely token, or sample")
    temperature, *others = SETTINGS.values()
    return add_flags([temperature])(greedy(add_flags(others)(function)))


def add_flags(options: Iterable[Option]) -> Callable[[F], F]:
    """Return a decorator that adds the flags of options to a command, in their order."""
    flags = [_make_flag(option) for option in options]

    def add(function: F) -> F:
        for flag in reversed(flags):
            function = flag(function)
        return function

    return add


def _make_flag(option: Option) -> Callable[[F], F]:
    """Return the click option of an option, with all its flags."""
    short, aliases = (flag for flag in option.flags if flag != option.flag), (f"--{one}" for one in option.aliases)
    names = [*short, option.flag, *aliases, option.name]
    if option.switch:
        return click.option(*names, is_flag=True, default=None, help=option.help)
    default = option.show(option.default)
    text = option.help + (f" [{default}]" if default != "–" else "")
    return click.option(
        *names, metavar=option.usage, multiple=option.kind is tuple, help=text, shell_complete=complete_values(option)
    )


def make_session(flags: Mapping[str, Any]) -> Session:
    """Return a session with the settings in force and the model that they name, or the default model.

    Raises:
        TinychatError: If a value is wrong, or the model cannot be opened; one that no flag named, by its source.
    """
    settings, ui_options = load_settings(flags)
    session = Session(settings, ui_options)
    try:
        session.open_model(ui_options.current.model)
    except ModelError as error:
        sources = {Origin.FILE: str(paths.config_file()), Origin.ENVIRONMENT: UI_OPTIONS["model"].variable}
        source = sources.get(ui_options.origin("model"))
        raise ModelError(f"{source}: {error.problem}" if source else error.problem, error.remedy) from None
    return session


def load_ui_options(flags: Mapping[str, Any] | None = None) -> UiOptions:
    """Return the interface options in force, for a command without a session.

    Raises:
        UsageError: If a name or a value is wrong.
    """
    return load_settings(flags)[1].current


def load_settings(flags: Mapping[str, Any] | None = None) -> tuple[SettingStore, UiOptionStore]:
    """Return the settings and interface options from the config file, the environment and the flags: the last wins.

    A flag that is not given is None or empty. An error in another value names its source, such as the config file.

    Raises:
        UsageError: If a name or a value is wrong.
    """
    settings, ui_options, flags = SettingStore(), UiOptionStore(), flags or {}
    _load((UI_OPTIONS, ui_options), (SETTINGS, settings))
    set_flags(settings, flags)
    ui_options.update({name: flags[name] for name in UI_OPTIONS if flags.get(name) is not None}, Origin.FLAG)
    return settings, ui_options


def load_server_options(flags: Mapping[str, Any]) -> ServerOptions:
    """Return the options of the server, from the same sources as `load_settings`.

    Raises:
        UsageError: If a name or a value is wrong.
    """
    store = ServerOptionStore()
    _load((SERVER_OPTIONS, store))
    store.update({name: flags[name] for name in SERVER_OPTIONS if flags.get(name) is not None}, Origin.FLAG)
    return store.current


def _load(*stores: tuple[Options, LayeredOptions[Any]]) -> None:
    """Set options from the config file and the environment; those of other stores are only checked."""
    path, given = paths.config_file(), list[tuple[str, Any, Origin, str]]()
    given += [(name, value, Origin.FILE, str(path)) for name, value in _read_config(path).items()]
    environment = [(name, os.environ.get(option.variable), option.variable) for name, option in ALL_OPTIONS.items()]
    given += [(name, value, Origin.ENVIRONMENT, variable) for name, value, variable in environment if value]
    _check_environment(ALL_OPTIONS)
    given.sort(key=lambda one: one[0] == GREEDY.name)  # after the temperature, which it may contradict
    for name, value, origin, source in given:
        try:
            if isinstance(value, dict):
                raise UsageError(f"there is no table {name!r}", "options stand at the top level, under no [table]")
            option = ALL_OPTIONS.find(name)
            parsed = option.parse(value)
            for table, store in stores:
                if option.name in table:
                    store.set(option.name, value, origin)
                elif option is GREEDY and isinstance(store, SettingStore):
                    store.set_greedy(parsed, origin)
        except UsageError as error:
            remedy = "correct it, or take it out" if isinstance(error, SettingError) else error.remedy
            raise UsageError(f"{source}: {error.problem}", remedy) from None


def _check_environment(options: Options) -> None:
    """Check that no environment variable looks like a misspelt one; other programs may set others, which are ignored.

    Raises:
        UsageError: If one does.
    """
    known = {option.variable for option in options.values()} | set(paths.VARIABLES)
    for variable in os.environ:
        name = variable.upper()
        if not name.startswith(VARIABLE_PREFIX) or name in known:
            continue
        near = difflib.get_close_matches(name, paths.VARIABLES, n=1, cutoff=MIN_PATH_SIMILARITY)
        if option := options.find_near(name.removeprefix(VARIABLE_PREFIX).lower(), MIN_SIMILARITY):
            near.append(options[option].variable)
        if near:
            raise UsageError(f"{variable} is no variable of tinychat", f"did you mean {near[0]}?")


def set_flags(settings: SettingStore, flags: Mapping[str, Any]) -> None:
    """Apply the flags that are given: those that are neither None nor empty.

    Raises:
        UsageError: If a value is wrong, or `--greedy` is given with a temperature.
    """
    values = {name: flags[name] for name in SETTINGS if flags.get(name) not in (None, ())}
    for name in values:
        if SETTINGS[name].kind is tuple:  # each value may be `none` and hold escapes such as `\\n`
            values[name] = [text for value in values[name] for text in SETTINGS[name].parse(value)]
    settings.update(values, Origin.FLAG)
    if flags.get("greedy") is not None:
        settings.set_greedy(flags["greedy"], Origin.FLAG)


def _read_config(path: Path) -> dict[str, Any]:
    """Return the settings of the user's config file, `-` in names replaced by `_`; empty if there is no file."""
    try:
        values = read_toml(path, MAX_CONFIG)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", "correct it, or move it away") from None
    except ValueError as error:
        raise UsageError(f"{path} is no TOML: {error}", "correct it, or move it away") from None
    return {name.replace("-", "_"): value for name, value in values.items()}
