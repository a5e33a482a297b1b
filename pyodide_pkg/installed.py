"""webrnn's wheel for Pyodide of an installed webrnn: the bytes that `python -m pyodide_pkg.wheel` makes of the sources.

An installation has all that is in it: Python files as they are, and the side modules in the archive of modules.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pyodide_pkg import packing

#: The ABI of Pyodide 314.
TAG = "py3-none-pyemscripten_2026_0_wasm32"
#: Of an installation, what is for other places than a browser.
NOT_PACKED = ("_kernels", "_pyodide", "_web")
METADATA = ("METADATA", "WHEEL", "licenses/LICENSE")


def write_wheel(package: Path, folder: Path) -> Path:
    """Of the installed `package`, into `folder`."""
    info = next(package.parent.glob(f"{package.name}-*.dist-info"))
    wheel = folder / f"{info.name.removesuffix('.dist-info')}-{TAG}.whl"
    wheel.write_bytes(packing.packed(_files(package, info)))
    return wheel


def _files(package: Path, info: Path) -> dict[str, bytes]:
    from webrnn.engine.kernels.loading import module_bytes
    from webrnn.engine.kernels.side_module import VARIANTS, file_name

    home, kernels = package.parent, package / "_kernels"
    files = {
        file.relative_to(home).as_posix(): file.read_bytes()
        for file in package.rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and not file.relative_to(package).parts[0].startswith(NOT_PACKED)
    }
    modules = {name: module_bytes(kernels, name) for name in map(file_name, VARIANTS)}
    manifest = json.loads((kernels / "kernels.json").read_text())
    modules["kernels.json"] = (json.dumps({"kernels": manifest["kernels"]}, indent=1) + "\n").encode()
    files |= {f"{package.name}/_kernels/{name}": data for name, data in modules.items()}
    files |= {f"{info.name}/{name}": (info / name).read_bytes() for name in METADATA}
    tags = re.compile(rb"(?:^Tag: .*\n)+", re.MULTILINE)
    files[f"{info.name}/WHEEL"] = tags.sub(f"Tag: {TAG}\n".encode(), files[f"{info.name}/WHEEL"])
    return files
