"""Build hook: `pip install .` compiles the kernels into the wheel, an editable install into the tree."""

from __future__ import annotations

import platform
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        sys.path.insert(0, self.root)
        from wasm_kernels import build, toolchains

        tool = toolchains.find("zig")
        files = [build.build(build.TARGETS[name], tool, say=self.app.display_info) for name in build.GROUPS["default"]]
        files.append(build.write_bindings())
        build_data["artifacts"] = [file.relative_to(self.root).as_posix() for file in files]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"


def _platform_tag() -> str:
    """The library needs nothing of libc but memcpy, memmove and memset: one Linux wheel serves glibc and musl."""
    if platform.system() == "Linux":
        machine = platform.machine()
        return f"manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
