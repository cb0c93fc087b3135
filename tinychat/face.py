"""How tinychat is opened, looks and is typed at: what a person sets for the faces, and no engine ever sees.

Declared once, as the settings are: flags, environment variables, the config file, `/settings` and the README's table
are read from here.
"""

from dataclasses import dataclass

from tinychat.origins import Layered
from tinychat.setting import declared, setting

DEFAULT_MODEL = "smalltalk"


@dataclass(frozen=True, slots=True)
class Face:
    """A snapshot of every option.

    Raises:
        SettingError: a value is of the wrong type, or no choice.
    """

    model: str = setting(DEFAULT_MODEL, str, "the model to open: a name or a folder", flags=("-m",))
    plain: bool = setting(False, bool, "lines of text alone, for screen readers and slow lines: nothing is drawn anew")
    private: bool = setting(False, bool, "keep neither the conversation nor what is typed")
    keys: str = setting(
        "auto", str, "the key bindings of the prompt; auto asks ~/.inputrc", choices=("auto", "emacs", "vi")
    )
    theme: str = setting(
        "dark",
        str,
        "the background that colours are to be read on; none has no colours",
        choices=("dark", "light", "none"),
    )

    def __post_init__(self) -> None:
        for name, one in FACE.items():
            object.__setattr__(self, name, one.parse(getattr(self, name)))


FACE = declared(Face)
"""Every option by its name, in the order in which they are shown."""


class FaceStore(Layered[Face]):
    """The options in force, which know where each of them came from."""

    def __init__(self) -> None:
        super().__init__(FACE, Face)
