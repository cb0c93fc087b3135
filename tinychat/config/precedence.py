"""Option values from several sources, of which the later one wins."""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Generic, TypeVar

from tinychat.config.option import Option, Options

T = TypeVar("T")


class Origin(IntEnum):
    """Source of a value, in order of increasing precedence."""

    DEFAULT = 0
    MODEL = 1
    FILE = 2
    ENVIRONMENT = 3
    FLAG = 4
    COMMAND = 5


class LayeredOptions(Generic[T]):
    """Effective values of a table of options.

    `current` is a frozen snapshot, replaced as a whole when a value changes: any thread may read it at any time.

    Args:
        options: the table.
        make: creates a snapshot from values by name; for those left out it uses the defaults.
    """

    def __init__(self, options: Options, make: Callable[..., T]) -> None:
        self._options, self._make = options, make
        self._layers: dict[Origin, dict[str, Any]] = {origin: {} for origin in Origin}
        self.current: T
        self._refresh()

    def set(self, name: str, raw: object, origin: Origin = Origin.COMMAND) -> Any:
        """Set one option from typed text or a JSON value, and return the parsed value.

        Raises:
            UsageError: If there is no such option.
            SettingError: If the value is invalid.
        """
        option = self._options.find(name)
        value = option.parse(raw)
        self._layers[origin][option.name] = value
        self._refresh()
        return value

    def update(self, values: Mapping[str, object], origin: Origin) -> None:
        """Set several options, all or none.

        Raises:
            UsageError: If there is no such option.
            SettingError: If a value is invalid.
        """
        self._layers[origin].update(self._parse(values))
        self._refresh()

    def replace(self, values: Mapping[str, object], origin: Origin) -> None:
        """Set several options, all or none, and drop all other values of the same origin.

        Raises:
            UsageError: If there is no such option.
            SettingError: If a value is invalid.
        """
        self._layers[origin] = self._parse(values)
        self._refresh()

    def reset(self, name: str | None = None) -> None:
        """Undo what commands have set: one option, or all.

        Raises:
            UsageError: If there is no such option.
        """
        if name is None:
            self._layers[Origin.COMMAND].clear()
        else:
            self._layers[Origin.COMMAND].pop(self._options.find(name).name, None)
        self._refresh()

    def origin(self, name: str) -> Origin:
        """Return the origin of an option's effective value.

        Raises:
            UsageError: If there is no such option.
        """
        key = self._options.find(name).name
        return next((origin for origin in reversed(Origin) if key in self._layers[origin]), Origin.DEFAULT)

    def effective_values(self) -> Iterator[tuple[Option, Any, Origin]]:
        """Yield each option with its effective value and the origin of that value."""
        for name, option in self._options.items():
            yield option, getattr(self.current, name), self.origin(name)

    def _parse(self, values: Mapping[str, object]) -> dict[str, Any]:
        found = [(self._options.find(name), value) for name, value in values.items()]
        return {option.name: option.parse(value) for option, value in found}

    def _refresh(self) -> None:
        self.current = self._make(**{name: value for layer in self._layers.values() for name, value in layer.items()})
