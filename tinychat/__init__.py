"""tinychat: train a tiny language model on your own text, talk to it, and see why it says what it says.

    import tinychat

    model = tinychat.load("smalltalk")
    print(model.generate("hello there", seed=7))

The names below are imported when they are first used: `import tinychat` alone takes milliseconds.
"""

import importlib

TYPE_CHECKING = False  # what reads types takes it to be true; `typing` would be most of the time of this import
if TYPE_CHECKING:
    from tinychat.api.answers import Answer as Answer
    from tinychat.api.answers import Stream as Stream
    from tinychat.api.inside import Attention as Attention
    from tinychat.api.inside import Lens as Lens
    from tinychat.api.inside import Score as Score
    from tinychat.api.inside import Why as Why
    from tinychat.api.model import Chat as Chat
    from tinychat.api.model import Model as Model
    from tinychat.api.model import load as load
    from tinychat.api.model import models as models
    from tinychat.api.runs import Run as Run
    from tinychat.api.runs import runs as runs
    from tinychat.api.runs import train as train
    from tinychat.errors import GenerationError as GenerationError
    from tinychat.errors import ModelError as ModelError
    from tinychat.errors import RunError as RunError
    from tinychat.errors import SettingError as SettingError
    from tinychat.errors import SourceError as SourceError
    from tinychat.errors import TinychatError as TinychatError
    from tinychat.errors import TokenizerError as TokenizerError
    from tinychat.errors import UsageError as UsageError
    from tinychat.events import Ended as Ended
    from tinychat.events import Evaluated as Evaluated
    from tinychat.events import Failed as Failed
    from tinychat.events import Noticed as Noticed
    from tinychat.events import Planned as Planned
    from tinychat.events import Sampled as Sampled
    from tinychat.events import Saved as Saved
    from tinychat.events import Stepped as Stepped
    from tinychat.events import Token as Token

__version__ = "0.1.0"

_MODULES = {
    "tinychat.api.model": ("load", "models", "Model", "Chat"),
    "tinychat.api.answers": ("Answer", "Stream"),
    "tinychat.api.inside": ("Score", "Why", "Attention", "Lens"),
    "tinychat.api.runs": ("runs", "Run"),
    "tinychat.events": ("Token", "Planned", "Stepped", "Evaluated", "Sampled", "Saved", "Noticed", "Ended", "Failed"),
    "tinychat.errors": (
        "TinychatError", "GenerationError", "ModelError", "RunError", "SettingError", "SourceError", "TokenizerError",
        "UsageError",
    ),
}  # fmt: skip
"""The module of each public name."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_MODULE_OF, "train"]


def __getattr__(name: str) -> object:
    if name == "train":  # the folder of that name, which can be called: as soon as it is imported, it is in this place
        return importlib.import_module("tinychat.train")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
