"""How tinychat is opened, looks and is typed at: what a person sets for the faces, and no engine ever sees.

Declared once, as the settings are: flags, environment variables, the config file, `/settings` and the README's table
are read from here.
"""

from dataclasses import dataclass

from tinychat.config.option import Options, option
from tinychat.config.precedence import LayeredOptions

DEFAULT_MODEL = "smalltalk"


@dataclass(frozen=True, slots=True)
class UiOptions:
    """A snapshot of every option.

    Raises:
        SettingError: a value is of the wrong type, or no choice.
    """

    model: str = option(DEFAULT_MODEL, "the model to open: a name or a folder", flags=("-m",), metavar="MODEL")
    plain: bool = option(
        False, "lines of text alone, for screen readers and slow lines: nothing is drawn anew", switch=True
    )
    private: bool = option(False, "keep neither the conversation nor what is typed", switch=True)
    keys: str = option("auto", "the key bindings of the prompt; auto asks ~/.inputrc", choices=("auto", "emacs", "vi"))
    theme: str = option(
        "dark", "the background that colours are to be read on; none has no colours", choices=("dark", "light", "none")
    )

    def __post_init__(self) -> None:
        UI_OPTIONS.parse_fields(self)


UI_OPTIONS = Options.of(UiOptions)
"""Every option by its name, in the order in which they are shown."""


class UiOptionStore(LayeredOptions[UiOptions]):
    """The options in force, which know where each of them came from."""

    def __init__(self) -> None:
        super().__init__(UI_OPTIONS, UiOptions)
