"""All wheels of a release from one machine: `python -m wasm_kernels.wheels [--system S ...] [--output dist]`.

Each system of systems.py gets a wheel, then Pyodide, and the sources. Zig compiles for all of them, so the machine does
not matter, and the same sources give the same bytes. Each wheel is looked at: it is small and has all modules; its
library is for its system, gives what the loader asks for, and needs nothing but what every such system has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from wasm_kernels import build as kernels
from wasm_kernels import libraries, systems
from wasm_kernels.systems import System
from webrnn import packed

ROOT = Path(__file__).resolve().parent.parent

#: Bytes of a wheel, of whatever system.
MAXIMUM = 2_000_000
KERNELS = "webrnn/_kernels/"

#: The machine as headers call it, where wheels have another word.
FORMATS = {"linux": "ELF", "macos": "Mach-O", "windows": "DLL"}

#: Libraries and symbols that every such system has.
LIBRARIES = {
    "linux": (),
    "macos": ("/usr/lib/libSystem.B.dylib",),
    "windows": ("KERNEL32.dll",),
}
SYMBOLS = {
    "linux": r"mem(cpy|move|set)|clock_gettime|sched_yield",
    "macos": r"mem(cpy|move|set)|(__)?bzero|clock_gettime|sched_yield|dyld_stub_binder",
    "windows": "QueryPerformance(Counter|Frequency)|SwitchToThread",
}
#: Without them dyld refuses a library; one for arm64 must be signed.
MARKS = {"macos-x86_64": {"id", "uuid", "macos"}, "macos-arm64": {"id", "uuid", "macos", "signature"}}


class WheelError(Exception):
    """A wheel was not made, or is not as it should be."""


def build(system: System | None, output: Path) -> Path:
    """The wheel of a system, or the one for Pyodide."""
    chosen = {"WEBRNN_SYSTEM": system.name} if system else {"WEBRNN_WHEEL": "pyodide"}
    return _hatchling("wheel", output, chosen)


def _hatchling(kind: str, output: Path, environment: dict[str, str]) -> Path:
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output) as temporary:
        command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", temporary]
        result = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
        if result.returncode:
            raise WheelError(f"not built:\n{result.stdout}{result.stderr}")
        built = next(Path(temporary).iterdir())
        return built.replace(output / built.name)


def problems(wheel: Path, system: System) -> Iterator[str]:
    """What is wrong with a wheel."""
    if not wheel.name.endswith(f"-py3-none-{system.wheel_tag}.whl"):
        yield f"its name does not end in {system.wheel_tag}"
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if re.search(r"\.(so|dylib|dll|pyd)$", name)]
        if found != [KERNELS + system.library]:
            yield f"its libraries are {found}"
            return
        library = libraries.read(archive.read(found[0]))
        for folder in ("", "profile/"):
            manifest = json.loads(archive.read(f"{KERNELS}{folder}kernels.json"))
            if posixpath.normpath(folder + manifest["native"]) != system.library:
                yield f"{folder}kernels.json says {manifest['native']}"
            yield from (f"{found[0]}: {problem}" for problem in library_problems(library, system, manifest))
        yield from module_problems(archive.read(KERNELS + packed.MODULES))


def size_problems(wheel: Path) -> Iterator[str]:
    if (size := wheel.stat().st_size) > MAXIMUM:
        yield f"it has {size:,} bytes, and at most {MAXIMUM:,} are allowed"


def module_problems(archive: bytes) -> Iterator[str]:
    """What of the modules for WebAssembly is not in their archive."""
    modules = packed.unpacked(archive)
    names = [kernels.TARGETS[name].file for name in kernels.GROUPS["modules"]]
    names += [f"profile/wasm_{variant}.wasm" for variant in kernels.VARIANTS]
    for name in names:
        if not modules.get(name, b"").startswith(b"\0asm"):
            yield f"{packed.MODULES} has no {name}"


def library_problems(library: libraries.Library, system: System, manifest: dict) -> Iterator[str]:
    kind, _, machine = system.name.partition("-")
    if (library.kind, library.machine) != (FORMATS[kind], machine):
        yield f"it is {library.kind} for {library.machine}"
    for name in library.needs:
        if name not in LIBRARIES[kind]:
            yield f"it needs {name}"
    for name in library.undefined:
        if not re.fullmatch(SYMBOLS[kind], name):
            yield f"somebody must give it {name}"
    for name in sorted(_expected(system, manifest) - set(library.exported)):
        yield f"it lacks {name}"
    for mark in sorted(MARKS.get(system.name, set()) - library.marks.keys()):
        yield f"it has no {mark}"


def _expected(system: System, manifest: dict) -> set[str]:
    """Symbols that the loader binds."""
    shared = {row["symbol"] for row in manifest["team"] if manifest["threads"]}
    each = [row["symbol"] for part in ("kernels", "threads") for row in manifest[part]]
    return shared | {f"{symbol}_{build}" for symbol in each for build in system.builds()} | {"wr_isa_level"}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wasm_kernels.wheels", description=(__doc__ or "").split("\n\n")[1])
    names = [*systems.SYSTEMS, "pyodide", "sdist"]
    parser.add_argument("--system", nargs="+", choices=names, default=names, metavar="S",
                        help=f"any of {', '.join(names)} (default: all)")  # fmt: skip
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the wheels (default: dist)")
    arguments = parser.parse_args(argv)
    output = arguments.output.resolve()
    failures = 0
    for number, name in enumerate(arguments.system, 1):
        print(f"[{number}/{len(arguments.system)}] {name} ...", flush=True)
        try:
            system = systems.SYSTEMS.get(name)
            file = _hatchling("sdist", output, {}) if name == "sdist" else build(system, output)
            wrong = list(problems(file, system)) if system else []
            wrong += [] if name == "sdist" else size_problems(file)
        except (WheelError, libraries.LibraryError) as error:
            file, wrong = None, [str(error)]
        failures += bool(wrong)
        for problem in wrong:
            print(f"  {problem}", file=sys.stderr)
        if file:
            data = file.read_bytes()
            print(f"  {file.name}\n  {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
