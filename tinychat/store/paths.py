"""Where things lie: the user's data folder and what is in it, the bundled models, the mirror of data sets.

`TINYCHAT_HOME` moves all of the user's own into one folder; else each lies where the system wants it.
"""

import os
from pathlib import Path

import platformdirs

APP = "tinychat"


def _home() -> Path | None:
    given = os.environ.get("TINYCHAT_HOME")
    return Path(given).expanduser().absolute() if given else None


def data_folder() -> Path:
    """The user's own models, runs and transcripts."""
    return _home() or Path(platformdirs.user_data_dir(APP, appauthor=False))


def models_folder() -> Path:
    """The user's own models, a folder each."""
    return data_folder() / "models"


def runs_folder() -> Path:
    """Training runs, a folder each."""
    return data_folder() / "runs"


def transcripts_folder() -> Path:
    """Conversations that were kept without being asked for, a file each."""
    return data_folder() / "transcripts"


def kept_transcripts() -> list[Path]:
    """Those that are there, the newest first; files that a person has put there are none of them."""
    return sorted(transcripts_folder().glob("????-??-??-??????*.json"), reverse=True)


def history_file() -> Path:
    """What was typed at the prompt."""
    return data_folder() / "history"


def cache_folder() -> Path:
    """What can be made or fetched again: token ids, data sets."""
    home = _home()
    return home / "cache" if home else Path(platformdirs.user_cache_dir(APP, appauthor=False))


def datasets_folder() -> Path:
    """Downloaded data sets, a folder each."""
    return cache_folder() / "data"


def ids_folder() -> Path:
    """Token ids of texts, in memory-mapped files."""
    return cache_folder() / "ids"


def config_file() -> Path:
    """The user's settings, in TOML."""
    home = _home()
    return (home or Path(platformdirs.user_config_dir(APP, appauthor=False))) / "config.toml"


def mirror() -> Path | None:
    """A local folder of known data sets, named by `TINYCHAT_MIRROR`."""
    given = os.environ.get("TINYCHAT_MIRROR")
    return Path(given).expanduser() if given else None


def bundled_models() -> Path:
    """The models that come with tinychat: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "bundled"
    return installed if installed.is_dir() else package.parent / "models"
