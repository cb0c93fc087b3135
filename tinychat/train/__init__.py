"""Training: from texts to models.

The package is also the function `tinychat.train`, of the same name: calling it calls `tinychat.api.runs.train`.
"""

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    __doc__ = property(lambda package: package._function().__doc__)

    @staticmethod
    def _function() -> Callable[..., Any]:
        from tinychat.api.runs import train

        return train

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function())

    def __call__(self, *sources: Any, **fields: Any) -> Any:
        return self._function()(*sources, **fields)


sys.modules[__name__].__class__ = _Package
