"""Paths of user data, caches, bundled models and the mirror of data sets.

`TINYCHAT_HOME` puts all user files into one folder; otherwise they are in the usual folders of the operating system.
"""

import os
from pathlib import Path

import platformdirs

from tinychat.untrusted import expand_home

APP = "tinychat"
HOME, MIRROR = VARIABLES = ("TINYCHAT_HOME", "TINYCHAT_MIRROR")
"""Environment variables that name folders."""
LOG_SUFFIX = ".jsonl"
"""Suffix of the transcripts saved automatically, a line for each turn."""


def _home() -> Path | None:
    return expand_home(home).absolute() if (home := os.environ.get(HOME)) else None


def data_folder() -> Path:
    """Return the folder of the user's models, runs and transcripts."""
    return _home() or Path(platformdirs.user_data_dir(APP, appauthor=False))


def models_folder() -> Path:
    """Return the folder of the user's models, each a folder."""
    return data_folder() / "models"


def runs_folder() -> Path:
    """Return the folder of training runs, each a folder."""
    return data_folder() / "runs"


def transcripts_folder() -> Path:
    """Return the folder of conversations saved automatically, each a file."""
    return data_folder() / "transcripts"


def list_transcripts() -> list[Path]:
    """Return the transcripts saved automatically, newest first; files with other names are ignored."""
    return sorted(transcripts_folder().glob(f"????-??-??-??????*{LOG_SUFFIX}"), reverse=True)


def history_file() -> Path:
    """Return the file of the input history."""
    return data_folder() / "history"


def lessons_file() -> Path:
    """Return the file that keeps how far somebody has come in each lesson."""
    return data_folder() / "lessons.json"


def cache_folder() -> Path:
    """Return the folder of files that can be created or downloaded again: token ids, data sets, the compiled kernel."""
    return home / "cache" if (home := _home()) else Path(platformdirs.user_cache_dir(APP, appauthor=False))


def datasets_folder() -> Path:
    """Return the folder of downloaded data sets, each a folder."""
    return cache_folder() / "data"


def ids_folder() -> Path:
    """Return the folder of encoded texts: token ids in memory-mapped files."""
    return cache_folder() / "ids"


def config_file() -> Path:
    """Return the config file, in TOML."""
    return (_home() or Path(platformdirs.user_config_dir(APP, appauthor=False))) / "config.toml"


def mirror() -> Path | None:
    """Return the local folder of data sets that `TINYCHAT_MIRROR` names; None if it is not set."""
    return expand_home(folder) if (folder := os.environ.get(MIRROR)) else None


def bundled_models() -> Path:
    """Return the folder of bundled models: in an installed package, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "bundled"
    return installed if installed.is_dir() else package.parent / "models"
