"""`python -m tests.foreign.install [SYSTEM ...]`: wheels as a user has them, installed into empty environments.

| wheel | where | what |
|---|---|---|
| linux-x86_64 | an empty virtual environment without compilers | smoke.py, the commands; nothing is written there |
| linux-x86_64 | the C library musl | plans, by harness.c |
| linux-aarch64 | Debian's Python under qemu | smoke.py |
| linux-armv7l, windows-amd64 | qemu, wine | plans, by harness.c |
| pyodide | Node | smoke.py |
| sdist | an empty folder | the wheel of linux-x86_64, byte for byte |

pip takes all of them for their systems, those for macOS and Windows on ARM too. Results have the bits of this tree's
build.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wasm_kernels import systems
from wasm_kernels.systems import System
from webrnn.bench.models import streaming_gru

from . import plans, roots, smoke

SMOKE = Path(smoke.__file__)
HARNESS = ("linux-armv7l", "windows-amd64")
#: Seconds that an installation may take a processor: that is known on a busy machine, too.
LONGEST = 10.0


NOT_SOURCES = {".git", ".cache", ".venv", "__pycache__", "_kernels", "node_modules", "tests"}


#: Its version ends the name; beside it a release has the site.
SDIST = "webrnn-*[0-9].tar.gz"


class Wrong(Exception):
    """A wheel is not as it should be."""


def the_one(folder: Path, pattern: str) -> Path:
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise Wrong(f"{folder} has {len(files)} files {pattern}: empty it, then make wheels")
    return files[0]


def run(command: Sequence[object], **options: Any) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise Wrong(f"{command[0]} ... {command[-1]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def pip(*arguments: object) -> None:
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments])


def environment(folder: Path, wheel: Path, shared: bool = False) -> Path:
    """A virtual environment with the wheel, and its Python. What it needs comes from PyPI, or is shared with this
    environment, which is quicker."""
    import numpy

    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    if shared:
        packages = next((folder / "lib").glob("python*/site-packages"))
        (packages / "shared.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n")
    else:
        pip("--python", python, "install", "--quiet", f"numpy=={numpy.__version__}", "wasmtime==50.0.1")
    start, before = time.perf_counter(), os.times()
    options = ["--quiet", "--no-index", "--no-deps", "--only-binary", ":all:"]
    pip("--python", python, "install", *options, wheel)
    elapsed, after = time.perf_counter() - start, os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"  installed in {elapsed:.1f} s, {seconds:.1f} s of a processor; {wheel.stat().st_size:,} bytes", flush=True)
    if seconds > LONGEST:
        raise Wrong(f"installing takes {seconds:.1f} s of a processor, and at most {LONGEST:g} are allowed")
    return python


def model(folder: Path) -> Path:
    file = folder / "gru.onnx"
    file.write_bytes(streaming_gru())
    return file


def settings(folder: Path, shared: bool) -> dict[str, str]:
    """Of a user without compilers, whose home is empty. What wasmtime has compiled may be shared."""
    own = {"PATH": "/nowhere", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return {**own, "XDG_CACHE_HOME": cache} if shared else own


def compare(found: dict[str, Any], file: Path, label: str) -> None:
    """Builds there have the bits of those here: fused with fused, others with others."""
    ours = smoke.results(str(file))
    wanted = dict(ours["builds"].values())
    builds = found["builds"]
    different = [spec for spec, (is_fused, digest) in builds.items() if digest != wanted[is_fused]]
    if different or not builds or found["plan"] != ours["plan"]:
        raise Wrong(f"{', '.join(different) or 'the plan'} gives other bits than here")
    print(f"  {label}: a GRU, a stream and an export have the bits of this machine on {', '.join(builds)}", flush=True)


def commands(file: Path, folder: Path) -> Iterator[list[object]]:
    """What `webrnn` does that needs files of the wheel, beside Python ones."""
    sizes = ["--size", "steps=3"]
    yield ["run", file, *sizes]
    yield ["export", file, "--output", folder / "gru.rnn", "--carry", "h_in=h_out"]
    yield from (["profile", file, *sizes, "--backend", spec] for spec in ("native", "wasm:simd"))
    yield ["bench", "gru_128_t1", "--backend", "native,wasm:relaxed", "--seconds", "0.1"]


COMMANDS = """
import json, sys
from webrnn.cli import main
for arguments in json.loads(sys.argv[1]):
    assert not main(arguments), arguments
"""
WEB = """
import sys
from pathlib import Path
from webrnn.demo import amps, site
from webrnn.web import folders, pyodide_source
folder = Path(sys.argv[1])
site.write_page(folder)
assert len(amps.write(folder / "bundled"))
sys.path.insert(0, str(pyodide_source.BROUGHT))
from pyodide_pkg import installed
assert Path(installed.__file__).is_relative_to(folders.PACKAGE)
print(installed.write_wheel(folders.PACKAGE, folder))
"""


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def check_here(wheel: Path, folder: Path, pyodide: Path, shared: bool = False) -> None:
    """`pyodide`: the wheel for Pyodide of the same sources."""
    python, file = environment(folder / "environment", wheel, shared), model(folder)
    own = settings(folder, shared)
    found = json.loads(run([python, SMOKE, file], env=own, cwd=folder))
    home = Path(found["home"])
    if not home.is_relative_to(folder):
        raise Wrong(f"{home} ran instead of the installed one")
    before = state_of(home)
    compare(found, file, "virtual environment")
    first, *others = commands(file, folder)
    run([python.with_name("webrnn"), *first], env=own, cwd=folder)
    run([python, "-c", COMMANDS, json.dumps(others, default=str)], env=own, cwd=folder)
    made = Path(run([python, "-c", WEB, folder / "site"], env=own, cwd=folder).strip())
    if made.name != pyodide.name or made.read_bytes() != pyodide.read_bytes():
        raise Wrong(f"{made.name} of the installation is not the one of the sources")
    if state_of(home) != before:
        raise Wrong("something was written into the installation")
    print("  run, export, profile, bench, the page and its wheel for Pyodide; nothing is written there", flush=True)


def check_tag(system: System, wheel: Path, folder: Path) -> None:
    """pip takes the wheel for each of its tags."""
    for tag in system.tags:
        target = folder / tag
        options = ["--quiet", "--no-index", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11"]
        pip("install", *options, "--platform", tag, "--target", target, wheel)
        if not (target / "webrnn" / "_kernels" / system.library).exists():
            raise Wrong(f"{tag}: no library is installed")
    print(f"  pip takes it for {', '.join(system.tags)}", flush=True)


def library_of(wheel: Path, system: System, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(f"webrnn/_kernels/{system.library}", folder))


def check_plans(system: System, library: Path, libc: str = "") -> None:
    for build, ran, different in plans.compare(system, library, libc):
        if different or not ran:
            raise Wrong(f"{build}: {len(different)} plans of {ran} give other bits, {different[:3]}")
        print(f"  {libc or system.name}: {ran} plans have the bits of this machine on {build}", flush=True)


def check_aarch64(system: System, wheel: Path, folder: Path) -> None:
    machine = system.name.partition("-")[2]
    site, file = roots.packages(machine, wheel, folder / "site"), model(folder)
    python, own = roots.python(machine, site)
    found = json.loads(run([*python, SMOKE, file], env={**os.environ, **own}, cwd=folder))
    if not Path(found["home"]).is_relative_to(folder):
        raise Wrong(f"{found['home']} ran instead of the installed one")
    compare(found, file, "Python under qemu")


def check_pyodide(wheel: Path, folder: Path) -> None:
    from pyodide_pkg import core, distribution

    file, made = model(folder), distribution.ensure()
    if (own := made / wheel.name).read_bytes() != wheel.read_bytes():
        raise Wrong(f"{own} is not the wheel")
    script = core.ROOT / "pyodide_pkg" / "run_python.mjs"
    said = run([core.node(), script, made, "webrnn", SMOKE, file])
    compare(json.loads(said.splitlines()[-1]), file, "Pyodide in Node")


def check_sdist(sdist: Path, folder: Path, wheel: Path) -> None:
    """A wheel of the sources alone, built as pip does it: the same bytes, elsewhere and with other permissions."""
    with tarfile.open(sdist) as archive:
        foreign = [name for name in archive.getnames() if NOT_SOURCES & {*name.split("/")}]
        if foreign:
            raise Wrong(f"the sdist has {foreign[:5]}")
    old = os.umask(0o077)
    try:
        pip("wheel", "--quiet", "--no-deps", "--wheel-dir", folder, sdist)
    finally:
        os.umask(old)
    (made,) = folder.glob("*.whl")
    if made.read_bytes() != wheel.read_bytes():
        raise Wrong("the wheel of the sdist has other bytes than that of the tree")
    print(f"  {sdist.stat().st_size:,} bytes; its wheel is that of the tree, byte for byte", flush=True)


def main(argv: list[str] | None = None) -> int:
    names = [*systems.SYSTEMS, "pyodide", "sdist"]
    parser = argparse.ArgumentParser(
        prog="python -m tests.foreign.install", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("system", nargs="*", choices=[*names, []], metavar="SYSTEM", help=f"any of {', '.join(names)}")
    parser.add_argument("--wheels", type=Path, default=roots.ROOT / "dist", help="their folder (default: dist)")
    arguments = parser.parse_args(argv)

    def found(pattern: str) -> Path:
        return the_one(arguments.wheels, pattern)

    def wheel_of(name: str) -> Path:
        return found(f"*-{systems.SYSTEMS[name].wheel_tag}.whl" if name in systems.SYSTEMS else "*-pyemscripten_*.whl")

    def check(name: str, folder: Path) -> None:
        if name == "sdist":
            check_sdist(found(SDIST), folder, wheel_of(systems.here().name))
            return
        wheel = wheel_of(name)
        if name == "pyodide":
            check_pyodide(wheel, folder)
            return
        system = systems.SYSTEMS[name]
        check_tag(system, wheel, folder)
        if system is systems.here():
            check_here(wheel, folder, wheel_of("pyodide"))
        if name == "linux-x86_64":
            check_plans(system, library_of(wheel, system, folder), "musl")
        elif name == "linux-aarch64":
            check_aarch64(system, wheel, folder)
        elif name in HARNESS:
            check_plans(system, library_of(wheel, system, folder))

    failures = 0
    for name in arguments.system or names:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(name, Path(folder))
            except (Wrong, roots.MissingTool, AssertionError) as error:
                failures += 1
                print(f"  WRONG: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
