"""A command for each setting, made from the table of settings; and those that act on several."""

from collections.abc import Iterator

from tinychat.commands.registry import Command, Suggestion, command
from tinychat.commands.results import Change, Message, Result, Table
from tinychat.config.option import Option
from tinychat.config.settings import LOADING, SETTINGS
from tinychat.config.ui_options import UI_OPTIONS
from tinychat.errors import UsageError
from tinychat.session.session import Session

ORIGINS = ("default", "model", "config file", "environment", "flag", "command")
"""What each `Origin` is called."""


def change(session: Session, name: str, value: object) -> Change:
    """Sets one setting.

    Raises:
        UsageError: there is no such setting, or it cannot take that value.
    """
    setting = (SETTINGS | UI_OPTIONS).find(name)
    if setting.name in UI_OPTIONS:
        raise UsageError(
            f"{setting.spelling} is chosen when tinychat starts", f"`tinychat {setting.flag}`, or config.toml"
        )
    old = show(session, setting)
    session.settings.set(setting.name, value)
    new = show(session, setting)
    if setting.name in LOADING and old != new and session.info is not None:
        session.reopen_model(str(session.info.folder))
    return Change(setting.spelling, old, new)


def nudge(session: Session, name: str, step: float) -> Change:
    """Moves a number by a step, as far as its bounds allow."""
    setting = SETTINGS[name]
    value = getattr(session.settings.current, name) + step
    if setting.low is not None:
        value = max(value, setting.low)
    if setting.high is not None:
        value = min(value, setting.high)
    return change(session, name, setting.kind(round(value, 6)))


def switch(session: Session) -> Change:
    """From sampling to greedy, or back."""
    return sample(session) if session.settings.current.greedy else change(session, "temperature", 0)


def sample(session: Session) -> Change:
    """Draws tokens, at the last temperature above 0."""
    setting = SETTINGS["temperature"]
    old = show(session, setting)
    session.settings.sample()
    return Change(setting.spelling, old, show(session, setting))


def show(session: Session, setting: Option) -> str:
    """The value in force, as a person would type it."""
    return setting.show(getattr(session.settings.current, setting.name))


def values_of(session: Session, setting: Option) -> Iterator[Suggestion]:
    """Values that the setting can take, the one in force first, with its bounds and what more of it does."""
    now, default = setting.typed(getattr(session.settings.current, setting.name)), setting.typed(setting.default)
    yield Suggestion(now, f"now · {setting.meaning}")
    for value in dict.fromkeys((*setting.choices, *setting.values, default)):
        about = [setting.values.get(value, ""), "default" if value == default else ""]
        if value != now:
            yield Suggestion(value, " · ".join(filter(None, about)))


def _setting_command(setting: Option) -> Command:
    def show_or_change(session: Session, text: str) -> Result:
        if text:
            return change(session, setting.name, text)
        origin = ORIGINS[session.settings.origin(setting.name)]
        return Message(
            (f"{setting.spelling} {show(session, setting)}",),
            (setting.help, f"{setting.expected} · default {setting.show(setting.default)} · now from: {origin}"),
        )

    def complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
        return values_of(session, setting) if len(words) == 1 else iter(())

    return Command(
        name=setting.spelling,
        function=show_or_change,
        theme="settings",
        help=f"{setting.help}\nTakes {setting.expected}; default {setting.show(setting.default)}.",
        usage=f"[{setting.usage}]",
        example=f"/{setting.spelling} {setting.example}",
        aliases=setting.aliases,
        while_busy=setting.name not in LOADING,
        complete=complete,
    )


@command("greedy", "settings", while_busy=True)
def greedy(session: Session, text: str) -> Result:
    """Always take the likeliest token: temperature 0."""
    return change(session, "temperature", 0)


@command("sample", "settings", while_busy=True)
def sample_again(session: Session, text: str) -> Result:
    """Draw tokens by their probability again, at the last temperature above 0."""
    return sample(session)


@command("settings", "settings", aliases=("parameters",))
def settings(session: Session, text: str) -> Result:
    """All settings: their values, where these come from, what they do."""
    rows = (
        (setting.spelling, setting.show(value), ORIGINS[origin], setting.help)
        for setting, value, origin in (*session.settings.in_force(), *session.ui_options.in_force())
    )
    return Table(("setting", "value", "from", "what it does"), tuple(rows))


def _names_and_values(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if len(words) == 1:
        yield from (Suggestion(setting.spelling, setting.help) for setting in SETTINGS.values())
    elif len(words) == 2:
        try:
            yield from values_of(session, SETTINGS.find(words[0]))
        except UsageError:
            return


@command(
    "set", "settings", usage="NAME VALUE", example="/set top-p 0.9", while_busy=True, complete=_names_and_values
)  # fmt: skip
def set_(session: Session, text: str) -> Result:
    """Change a setting: the long form of `/top-p 0.9`."""
    name, _, value = text.partition(" ")
    if not value.strip():
        raise UsageError(f"/set takes a name and a value, not {text!r}", "for example `/set top-p 0.9`")
    return change(session, name, value.strip())


def _names(session: Session, words: list[str]) -> Iterator[Suggestion]:
    return _names_and_values(session, words) if len(words) == 1 else iter(())


@command("reset", "settings", usage="[NAME]", example="/reset temperature", complete=_names)
def reset(session: Session, text: str) -> Result:
    """Take back what commands have changed: one setting, or all of them."""
    chosen = [SETTINGS.find(text)] if text else list(SETTINGS.values())
    old = {setting.name: show(session, setting) for setting in chosen}
    session.settings.reset(text or None)
    lines = [
        Change(setting.spelling, old[setting.name], new).text
        for setting in chosen
        if (new := show(session, setting)) != old[setting.name]
    ]
    return Message(tuple(lines) or ("nothing to take back",))


COMMANDS = (*map(_setting_command, SETTINGS.values()), greedy, sample_again, settings, set_, reset)
