"""Options of the user interface, which no engine ever sees.

They are declared like settings: flags, environment variables, the config file, `/settings` and the docs are generated
from here.
"""

from dataclasses import dataclass

from tinychat.config.option import Options, option
from tinychat.config.precedence import LayeredOptions

DEFAULT_MODEL = "smalltalk"


@dataclass(frozen=True, slots=True)
class UiOptions:
    """Snapshot of all interface options.

    Raises:
        SettingError: If a value has the wrong type or is not among the choices.
    """

    model: str = option(DEFAULT_MODEL, "model to open: a name or a folder", flags=("-m",), metavar="MODEL")
    plain: bool = option(
        False, "plain lines of text, never redrawn, for screen readers and slow connections", switch=True
    )
    private: bool = option(False, "save neither the conversation nor the input history", switch=True)
    keys: str = option("auto", "key bindings of the prompt; auto reads ~/.inputrc", choices=("auto", "emacs", "vi"))
    theme: str = option(
        "dark", "colours for a dark or a light background; none turns colours off", choices=("dark", "light", "none")
    )

    def __post_init__(self) -> None:
        UI_OPTIONS.parse_fields(self)


UI_OPTIONS = Options.of(UiOptions)
"""Interface options by name, in display order."""


class UiOptionStore(LayeredOptions[UiOptions]):
    """Effective interface options, each with its origin."""

    def __init__(self) -> None:
        super().__init__(UI_OPTIONS, UiOptions)
