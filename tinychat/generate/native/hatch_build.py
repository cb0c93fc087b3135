"""Compile the native engine when the package is built or installed, if there is a C compiler."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileKernel(BuildHookInterface):
    """Puts the library beside its source; without a compiler, the package is built without it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from tinychat.generate.native.build import Unavailable, compile_kernel, shipped_file

        path = shipped_file()
        for older in path.parent.glob("kernel-*.so"):
            older.unlink()
        try:
            compile_kernel(path)
        except Unavailable as error:
            self.app.display_warning(f"{error.problem}: torch makes the tokens instead")
            return
        build_data["artifacts"].append(str(path.relative_to(Path(self.root))))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
