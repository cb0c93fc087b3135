"""Copy the metrics of a run into formats of other tools, through Lightning Fabric's loggers: TensorBoard and CSV.

They are made of the run's events, and made anew when a run resumes: they hold the same figures. Needs no torch before a
logger is opened.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.errors import UsageError
from tinychat.events import Ended, Evaluated, Event, Stepped
from tinychat.store.runs import RunFolder

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

SAVE_INTERVAL = 5.0
"""Seconds after which figures are written to disk, for tools that follow a run."""
EVALUATION_NAMES = {"val": "val", "train": "evaluated_train"}
"""Prefixes of evaluations, by split; `train_loss` is that of the steps."""


def _open_tensorboard(folder: Path) -> "Logger":
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger

    return TensorBoardLogger(folder, name="tensorboard", version="", flush_secs=int(SAVE_INTERVAL))


def _open_csv(folder: Path) -> "Logger":
    from lightning_fabric.loggers.csv_logs import CSVLogger

    return CSVLogger(folder, name="csv", version="")


LOGGERS: Mapping[str, Callable[[Path], "Logger"]] = {"tensorboard": _open_tensorboard, "csv": _open_csv}
"""Opens a logger that writes to a folder of its name, by the values of the recipe's field `log`."""


def check_loggers(names: Sequence[str]) -> None:
    """Check that the libraries of loggers are installed.

    Raises:
        UsageError: If one is missing.
    """
    if "tensorboard" in names and not any(map(find_spec, ("tensorboard", "tensorboardX"))):
        raise UsageError("--log tensorboard needs a library that is not installed: pip install 'tinychat[log]'")


def metrics_of(event: Event) -> dict[str, float]:
    """Return the metrics in an event by name; none for an event without figures."""
    match event:
        case Stepped():
            return {
                "train_loss": event.loss,
                "learning_rate": event.learning_rate,
                "gradient_norm": event.gradient_norm,
                "tokens_per_second": event.tokens_per_second,
            }
        case Evaluated():
            name = EVALUATION_NAMES[event.split]
            accuracy = {} if event.accuracy is None else {f"{name}_accuracy": event.accuracy}
            return {f"{name}_loss": event.loss} | accuracy
        case Ended():
            return {f"final_{EVALUATION_NAMES[event.split]}_loss": event.loss}
    return {}


class MetricsLog:
    """Writes the metrics of events with some loggers into the folder of a run, first those of the events so far.

    Errors of the disk are ignored: a log never ends a run, and is whole again after the next start.
    """

    def __init__(self, run: RunFolder, names: Iterable[str], events: Iterable[Event]) -> None:
        names = dict.fromkeys(names)
        for name in names:
            shutil.rmtree(run.logs / name, ignore_errors=True)
        self._loggers = [LOGGERS[name](run.logs) for name in names]
        self._saved_at = time.monotonic()
        for event in events if names else ():
            self.write(event)

    def write(self, event: Event) -> None:
        """Write the metrics of an event, if it has any."""
        if not self._loggers or not (metrics := metrics_of(event)):
            return
        is_due = time.monotonic() - self._saved_at >= SAVE_INTERVAL
        for logger in self._loggers:
            with suppress(OSError, ValueError):  # Lightning turns all errors of TensorBoard into ValueError
                logger.log_metrics(metrics, event.step)  # type: ignore[union-attr]
                if is_due:
                    logger.save()
        if is_due:
            self._saved_at = time.monotonic()

    def close(self) -> None:
        for logger in self._loggers:
            with suppress(OSError, ValueError):
                logger.finalize("success")
