"""`pyodide build` and `pyodide build-recipes` in the root of debian.py; emcc compiles all three side modules."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyodide_pkg import core, distribution, recipe
from wasm_kernels.hatch_hook import PYODIDE_ABI

from . import debian, stand_in
from .debian import Root

HOME = core.ROOT / "build" / "pyodide-build"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
#: Inside the root.
PYODIDE_ROOT = "/work/cross/xbuildenv/pyodide-root"
ENVIRONMENT = {
    "PATH": "/venv/bin:/usr/bin:/bin",
    "PYODIDE_ROOT": PYODIDE_ROOT,
    "NO_COLOR": "1",
    "WEBRNN_TOOLCHAIN": "emcc",
    # emcc builds everything, or the build fails: without zig it cannot be otherwise. deflate is for other wheels
    "IGNORED_BUILD_REQUIREMENTS": "ziglang deflate",
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "/wheels",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
NUMPY_RECIPE = """\
package:
  name: numpy
  version: {version}
  top-level: [numpy]
source:
  url: {address}/{file_name}
  sha256: {sha256}
build:
  vendor-sharedlib: false
  unvendor-tests: false
"""


def prepare() -> tuple[Root, stand_in.Versions]:
    """The root with pyodide-build in it, ready to build the sources as they are. Seconds if it is there already."""
    python = stand_in.python_of(core.VERSION)
    root = debian.ensure(HOME, python)
    emcc = subprocess.run(root.command("emcc", "-v"), capture_output=True, text=True).stderr
    stand_in.require_emcc(emcc)
    info = json.loads((core.ensure() / distribution.LOCK).read_text())["info"]
    found = stand_in.versions(core.VERSION, info, emcc, PYODIDE_ABI)
    _install(root, python)
    work = root.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    stand_in.write(root.folder / PYODIDE_ROOT.removeprefix("/"), found)
    shutil.copytree(recipe.write(work / "recipes") / "source", work / "source")
    return root, found


def requirements() -> str:
    """What is installed beside emcc: pyodide-build, and what builds webrnn but for zig."""
    needed = tomllib.loads((core.ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    ignored = ENVIRONMENT["IGNORED_BUILD_REQUIREMENTS"].split()
    return "\n".join([REQUIREMENTS.read_text().rstrip(), *(n for n in needed if not n.startswith(tuple(ignored))), ""])


def _install(root: Root, python: str) -> None:
    """The pip of this machine downloads, so that its settings count; the one inside installs, without a network."""
    wanted, ready = requirements(), root.folder / "venv" / "ready.txt"
    if ready.exists() and ready.read_text() == wanted:
        return
    print("installing pyodide-build", flush=True)
    for name in ("venv", "wheels"):
        shutil.rmtree(root.folder / name, ignore_errors=True)
    wheels = root.folder / "wheels"
    wheels.mkdir()
    (wheels / "requirements.txt").write_text(wanted)
    machine = platform.machine()
    platforms = [f"--platform={name}_{machine}" for name in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    download = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    options = ["--only-binary=:all:", f"--python-version={python}", *platforms, f"--dest={wheels}"]
    log = HOME / "install.log"
    debian.call("pip download", [*download, *options, "--requirement", str(wheels / "requirements.txt")], log)
    debian.call("venv", root.command(f"python{python}", "-m", "venv", "--without-pip", "/venv"), log)
    pip = next(wheels.glob("pip-*.whl")).name
    install = ["/venv/bin/python", "-m", "pip", "install", "--no-deps", "--requirement", "/wheels/requirements.txt"]
    environment = {**ENVIRONMENT, "PYTHONPATH": f"/wheels/{pip}"}
    debian.call("pip install", root.command(*install, environment=environment), log)
    ready.write_text(wanted)


def build(root: Root) -> Path:
    """The wheel that `pyodide build` makes of the source distribution."""
    command = root.command(
        "pyodide", "build", ".", "--outdir", "/work/dist", cwd="/work/source", environment=ENVIRONMENT
    )
    debian.call("pyodide build", command, HOME / "build.log")
    return _taken(root.folder / "work" / "dist", HOME / "dist")


def build_recipes(root: Root) -> Path:
    """The wheel that `pyodide build-recipes` makes, beside numpy's and the lock file that names both."""
    entry = json.loads((core.ensure() / distribution.LOCK).read_text())["packages"]["numpy"]
    folder = core.CACHE / distribution.PACKAGES_FOLDER
    distribution.fetch_packages(core.ensure() / distribution.LOCK, folder)
    with _served(folder) as address:
        numpy = root.folder / "work" / "recipes" / "numpy"
        numpy.mkdir()
        (numpy / "meta.yaml").write_text(NUMPY_RECIPE.format(address=address, **entry))
        options = ["--recipe-dir=/work/recipes", "--install", "--install-dir=/work/installed", "--force-rebuild"]
        command = root.command("pyodide", "build-recipes", "webrnn", *options, cwd="/work", environment=ENVIRONMENT)
        debian.call("pyodide build-recipes", command, HOME / "build-recipes.log")
    made = _taken(root.folder / "work" / "installed", HOME / "recipes")
    _check_lock(made)
    return made


def _taken(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    found = sorted(target.glob("webrnn-*.whl"))
    if len(found) != 1:
        raise core.SetupError(f"{source} has {len(found)} wheels of webrnn, not one")
    return found[0]


def _check_lock(wheel: Path) -> None:
    """The lock file of build-recipes names the wheel as that of our own distribution does."""
    entry: dict[str, Any] = json.loads((wheel.parent / distribution.LOCK).read_text())["packages"].get("webrnn", {})
    said = {name: entry.get(name) for name in ("file_name", "depends", "imports")}
    if said != {"file_name": wheel.name, "depends": ["numpy"], "imports": ["webrnn"]}:
        raise core.SetupError(f"the lock file of build-recipes says of webrnn {said}")
    if wrong := distribution.check(wheel.parent):
        raise core.SetupError(f"not as the lock file of build-recipes says: {', '.join(wrong)}")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """pyodide-build takes a wheel that is built already from an address only."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
