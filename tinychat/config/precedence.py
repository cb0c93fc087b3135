"""Values that know where they came from; the later origin wins."""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Generic, TypeVar

from tinychat.config.option import Option, Options

T = TypeVar("T")


class Origin(IntEnum):
    """Where a value comes from; the later one wins."""

    DEFAULT = 0
    MODEL = 1
    FILE = 2
    ENVIRONMENT = 3
    FLAG = 4
    COMMAND = 5


class LayeredOptions(Generic[T]):
    """The values in force of a table of options.

    `current` is a frozen snapshot, replaced as a whole when a value changes: a thread may read it at any moment.

    Args:
        make: makes a snapshot of values by their names; of those that are not given it has the defaults.
    """

    def __init__(self, options: Options, make: Callable[..., T]) -> None:
        self._options, self._make = options, make
        self._given: dict[Origin, dict[str, Any]] = {origin: {} for origin in Origin}
        self.current: T
        self._refresh()

    def set(self, name: str, given: object, origin: Origin = Origin.COMMAND) -> Any:
        """Sets one option from typed text or a JSON value, and returns the value as read.

        Raises:
            UsageError: there is no such option.
            SettingError: it cannot take that value.
        """
        option = self._options.find(name)
        value = option.parse(given)
        self._given[origin][option.name] = value
        self._refresh()
        return value

    def update(self, values: Mapping[str, object], origin: Origin) -> None:
        """Sets several; all or none."""
        self._given[origin].update(self._parsed(values))
        self._refresh()

    def replace(self, values: Mapping[str, object], origin: Origin) -> None:
        """Sets several and forgets the others of that origin: a model brings its own, whole."""
        self._given[origin] = self._parsed(values)
        self._refresh()

    def reset(self, name: str | None = None) -> None:
        """Takes back what commands set: one option, or all of them."""
        if name is None:
            self._given[Origin.COMMAND].clear()
        else:
            self._given[Origin.COMMAND].pop(self._options.find(name).name, None)
        self._refresh()

    def origin(self, name: str) -> Origin:
        """Where the value in force comes from."""
        key = self._options.find(name).name
        return next((origin for origin in reversed(Origin) if key in self._given[origin]), Origin.DEFAULT)

    def in_force(self) -> Iterator[tuple[Option, Any, Origin]]:
        """Every option with its value, and where that comes from."""
        for name, option in self._options.items():
            yield option, getattr(self.current, name), self.origin(name)

    def _parsed(self, values: Mapping[str, object]) -> dict[str, Any]:
        found = [(self._options.find(name), value) for name, value in values.items()]
        return {option.name: option.parse(value) for option, value in found}

    def _refresh(self) -> None:
        self.current = self._make(**{name: value for origin in Origin for name, value in self._given[origin].items()})
