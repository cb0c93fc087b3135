"""A command for each setting, made from the table of settings, and commands on several settings."""

import re
from collections.abc import Iterator

from tinychat.commands.registry import Command, Suggestion, chosen_at_start, command, first_word, unquote
from tinychat.commands.results import Change, Message, Result, Table
from tinychat.config.option import Option, Options
from tinychat.config.settings import LOADING, SETTINGS, UI_OPTIONS
from tinychat.errors import UsageError, check_torch
from tinychat.session.session import Session

ORIGIN_NAMES = ("default", "model", "config file", "environment", "flag", "command")
"""Names of the values of `Origin`."""
UNLISTED = ("repetition", "dry", "loading")
"""Sections of settings that few need: the overview of commands leaves them to `/settings`."""
PARAMETER = "parameter"
"""Optional first word of `/set`, from ollama."""
NAME_AND_VALUE = re.compile(r"(?P<name>[^\s=:]+)(?:\s*[=:]\s*|\s+)(?P<value>\S.*)", re.DOTALL)
"""`temperature 0.5`, `temperature=0.5` or `temperature: 0.5`."""


def change(session: Session, name: str, value: object, *, is_typed: bool = True) -> Change:
    """Change a setting; one that a model is loaded with reloads the open model. `is_typed`: see `Option.parse`.

    Raises:
        UsageError: If there is no such setting, it is one of the UI options, or torch finds no such device.
        SettingError: If the setting cannot take the value.
    """
    setting = _find(name, SETTINGS | UI_OPTIONS)
    if setting.name == "model":
        raise UsageError("a model is opened, not set", f"`/model {value}` opens it")
    if setting.name in UI_OPTIONS:
        raise chosen_at_start(setting)
    if setting.name == "device":
        _check_device(setting.parse(value, is_typed=is_typed))
    if setting.name == "system" and setting.parse(value, is_typed=is_typed) and session.info is not None:
        session.model.check_system()
    before, old = session.settings.current, _show(session, setting)
    if setting.merge is not None and (texts := setting.parse(value, is_typed=is_typed)):
        value = setting.merge(getattr(session.settings.current, setting.name), texts)
    session.settings.set(setting.name, value, is_typed=is_typed)
    session.reload_model(before)
    return Change(setting.spelling, old, _show(session, setting))


def _check_device(name: str) -> None:
    """Check that torch finds a device; it is imported only for one that may be missing.

    Raises:
        UsageError: If it does not.
        TinychatError: If torch is not installed.
    """
    if name in ("auto", "cpu"):
        return
    check_torch()

    from tinychat.model.loading import choose_device

    try:
        choose_device(name)
    except UsageError as error:
        raise UsageError(error.problem, "`/device auto` chooses one") from None


def nudge(session: Session, name: str, step: float) -> Change:
    """Change a number by a step, as far as its bounds allow; one that must stay above a bound stays as it is there."""
    setting, old = SETTINGS[name], getattr(session.settings.current, name)
    value = old + step
    if setting.low is not None:
        value = max(value, setting.low)
    if setting.high is not None:
        value = min(value, setting.high)
    value = setting.kind(round(value, 6))
    return change(session, name, old if setting.fault(value) else value)


def toggle_greedy(session: Session) -> Change:
    """Switch from sampling to greedy decoding, or back."""
    return _resume_sampling(session) if session.settings.current.greedy else change(session, "temperature", 0)


def _resume_sampling(session: Session) -> Change:
    setting = SETTINGS["temperature"]
    old = _show(session, setting)
    session.settings.sample()
    return Change(setting.spelling, old, _show(session, setting))


def _find(name: str, options: Options = SETTINGS) -> Option:
    """Return the option of a typed name; the error of one that is unknown spells others as they are typed: `top-p`."""
    try:
        return options.find(name)
    except UsageError as error:
        raise UsageError(error.problem, error.remedy.replace("_", "-")) from None


def _show(session: Session, setting: Option) -> str:
    return setting.show(getattr(session.settings.current, setting.name))


def _change_typed(session: Session, name: str, text: str) -> Change:
    """Change a setting to a typed value; quotation marks keep its spaces, or a word that would stand for no value."""
    setting = SETTINGS.get(name)
    value = unquote(text) if setting is not None and setting.quoted else text
    return change(session, name, value, is_typed=value == text)


def _typed(setting: Option, value: object) -> str:
    """Return a value as it is typed after the command: in quotation marks if it would be another without them."""
    typed = setting.typed(value)
    is_plain = not setting.quoted or (unquote(typed.strip()) == typed and bool(setting.parse(typed)) == bool(value))
    return typed if is_plain else f'"{typed}"'


def suggest_values(session: Session, setting: Option) -> Iterator[Suggestion]:
    """Suggest values of a setting, the current one first, with its bounds and its effect."""
    current, default = _typed(setting, getattr(session.settings.current, setting.name)), setting.typed(setting.default)
    yield Suggestion(current, f"now · {setting.meaning}")
    for value in dict.fromkeys((*setting.choices, *setting.values, default)):
        about = [setting.values.get(value, ""), "default" if value == default else ""]
        if value != current:
            yield Suggestion(value, " · ".join(filter(None, about)))


def _setting_command(setting: Option) -> Command:
    def show_or_change(session: Session, text: str) -> Result:
        if setting.kind is not tuple and not (setting.quoted or setting.check):
            text = text.removeprefix("=").strip()
        if text:
            return _change_typed(session, setting.name, text)
        origin = ORIGIN_NAMES[session.settings.origin(setting.name)]
        source = f"{setting.expected} · default {setting.show(setting.default)} · now from: {origin}"
        return Message((f"{setting.spelling} {_show(session, setting)}",), (setting.help, source))

    def describe_state(session: Session) -> tuple[str, ...]:
        origin = ORIGIN_NAMES[session.settings.origin(setting.name)]
        note = f"now {_show(session, setting)} · from: {origin}"
        if session.info and setting.name in session.info.settings:
            note += f" · default of {session.info.name}: {setting.show(session.info.settings[setting.name])}"
        return (note,)

    return Command(
        setting.spelling, show_or_change, "settings",
        f"{setting.help}\n\nTakes {setting.expected}; default {setting.show(setting.default)}.",
        usage=f"[{setting.usage}]", example=f"/{setting.spelling} {setting.example}", aliases=setting.aliases,
        describe_state=describe_state,
        while_busy=setting.name not in LOADING,
        complete=first_word(lambda session, words: suggest_values(session, setting)),
        is_listed=setting.section not in UNLISTED,
    )  # fmt: skip


@command("greedy", "settings", while_busy=True)
def greedy(session: Session, text: str) -> Result:
    """Always take the likeliest token: set the temperature to 0."""
    return change(session, "temperature", 0)


@command("sample", "settings", while_busy=True)
def sample(session: Session, text: str) -> Result:
    """Return from greedy decoding to sampling, at the last temperature above 0."""
    return _resume_sampling(session)


@command("settings", "settings", aliases=("parameters",))
def settings(session: Session, text: str) -> Result:
    """Show all settings: their values, where these come from, and what they do."""
    rows = (
        (setting.spelling, setting.show(value), ORIGIN_NAMES[origin], setting.help)
        for setting, value, origin in (*session.settings.effective_values(), *session.ui_options.effective_values())
    )
    return Table(("setting", "value", "from", "what it does"), tuple(rows), wraps=True)


def _complete_set(session: Session, words: list[str]) -> Iterator[Suggestion]:
    words = words[words[0] == PARAMETER and len(words) > 1 :]
    if len(words) == 1:
        yield from (Suggestion(setting.spelling, setting.help) for setting in SETTINGS.values())
    elif len(words) == 2:
        try:
            yield from suggest_values(session, SETTINGS.find(words[0]))
        except UsageError:
            return


@command("set", "settings", usage="NAME VALUE", example="/set top-p 0.9", while_busy=True, complete=_complete_set)
def set_(session: Session, text: str) -> Result:
    """Change a setting; `/set top-p 0.9` is the long form of `/top-p 0.9`.

    `/set top-p=0.9` and `/set parameter top-p 0.9` do the same. Without a value it shows a setting, alone all of them.
    """
    first, _, rest = text.partition(" ")
    text = rest.strip() if first == PARAMETER else text
    if not text:
        return settings.function(session, "")
    if (match := NAME_AND_VALUE.fullmatch(text)) is None:
        setting = _find(text.rstrip("=: "))
        return _setting_command(setting).function(session, "")
    return _change_typed(session, match["name"], match["value"].strip())


@command("reset", "settings", usage="[NAME]", example="/reset temperature", complete=first_word(_complete_set))
def reset(session: Session, text: str) -> Result:
    """Undo what commands have changed, in one setting or in all of them."""
    to_reset = [_find(text)] if text else list(SETTINGS.values())
    before, old = session.settings.current, [_show(session, setting) for setting in to_reset]
    session.settings.reset(text or None)
    session.reload_model(before)
    changes = [Change(one.spelling, value, _show(session, one)) for one, value in zip(to_reset, old, strict=True)]
    return Message(tuple(one.text for one in changes if one.old != one.new) or ("nothing to take back",))


COMMANDS = (*map(_setting_command, SETTINGS.values()), greedy, sample, settings, set_, reset)
