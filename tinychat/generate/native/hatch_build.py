"""Compile the native engine when the package is built or installed, if there is a C compiler."""

import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileKernel(BuildHookInterface):
    """Puts the library beside its source; without a compiler, the package is built without it.

    One that is there already, compiled from the same sources, stays. The wheel is for all versions of Python on one
    platform: Python's own headers are not used, the library is loaded by `ctypes`.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from tinychat.generate.native.build import Unavailable, compile_kernel, shipped_file

        path = shipped_file()
        for older in path.parent.glob("kernel-*.so"):
            if older != path:
                older.unlink()
        try:
            if not path.exists():
                compile_kernel(path)
        except Unavailable as error:
            self.app.display_warning(f"{error.problem}: torch makes the tokens instead")
            return
        build_data["artifacts"].append(str(path.relative_to(Path(self.root))))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"


def _platform() -> str:
    """Return the platform as the name of a wheel spells it: the library is for this machine's processors alone."""
    name = sysconfig.get_platform().replace("universal2", platform.machine())
    return name.replace("-", "_").replace(".", "_")
