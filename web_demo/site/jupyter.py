"""JupyterLite with Pyodide and webrnn, from what PyPI has and our own distribution of Pyodide.

JupyterLite and its kernel are built in an environment of their own below build/. The packages that the kernel needs in
the page (IPython and what it uses) are wheels of pure Python; they lie beside it, and a lock file names them together
with what the playground's Pyodide has, so that the kernel asks no other host.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyodide_pkg import core

HERE = Path(__file__).parent
BUILD = core.ROOT / "build" / "jupyter"
NOTEBOOK = HERE / "gru.ipynb"
APPS = ("lab", "notebooks")
PAGES = tuple(f"jupyter/{app}/index.html" for app in APPS)
WHEELS, LOCK = "wheels", "pyodide-lock.json"
KERNEL = "@jupyterlite/pyodide-kernel-extension"
POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; base-uri 'self'; form-action 'self'"
)
"""JupyterLab compiles schemas and has scripts and styles in its pages; all the same it asks this site only."""
SETTINGS = {"@jupyterlab/apputils-extension:themes": {"adaptive-theme": True}}
"""Light or dark as the system has it."""
WHEN = "2026-01-01T00:00:00Z"


def write(folder: Path, pyodide: Path, say: Callable[[str], None] = print) -> None:
    """JupyterLite in `folder`, whose Python is the distribution in `pyodide`, somewhere else on the same site."""
    folder, pyodide = folder.resolve(), pyodide.resolve()
    environment = ensure()
    source = BUILD / "source"
    source.mkdir(exist_ok=True)
    (source / "overrides.json").write_text(json.dumps(SETTINGS))
    apps = [part for app in APPS for part in ("--apps", app)]
    _run([environment / "bin" / "jupyter-lite", "build", "--lite-dir", source, "--output-dir", folder, *apps,
          "--no-sourcemaps", "--force"], source)  # fmt: skip
    names = _write_wheels(folder, pyodide)
    _configure(folder, pyodide, names)
    _write_files(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(f"JupyterLite: {size / 2**20:.1f} MB")


def ensure() -> Path:
    """The environment that builds it, and the wheels, made anew if the lists of versions have changed."""
    lists = [HERE / "jupyter-requirements.txt", HERE / "jupyter-wheels.txt"]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in lists)).hexdigest()
    environment, ready = BUILD / "environment", BUILD / "ready"
    with core.only_one(core.CACHE):
        if ready.exists() and ready.read_text() == key:
            return environment
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        venv.create(environment, with_pip=True)
        pip = [environment / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "install", "--no-deps", "--require-hashes", "-r", lists[0]])
        _run([*pip, "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.14",
              "--dest", BUILD / WHEELS, "-r", lists[1]])  # fmt: skip
        ready.write_text(key)
    return environment


def _run(command: list[Any], folder: Path | None = None) -> None:
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        told = (done.stdout + done.stderr)[-2000:]
        raise core.SetupError(f"{told}\nJupyterLite was not built; --no-jupyter leaves it out of the site")


def _write_wheels(folder: Path, pyodide: Path) -> list[str]:
    """The wheels that the kernel loads, and the lock file; returns their names."""
    own = sorted(folder.glob(f"extensions/{KERNEL}/static/pypi/*.whl"))
    kept = [file for file in own if not file.name.startswith("widgetsnbextension")]
    wheels = [*sorted((BUILD / WHEELS).glob("*.whl")), *kept]
    (folder / WHEELS).mkdir()
    lock = json.loads((pyodide / LOCK).read_text())
    for entry in lock["packages"].values():
        entry["file_name"] = f"../../{_place(pyodide, folder)}/{entry['file_name']}"
    for file in wheels:
        shutil.copyfile(file, folder / WHEELS / file.name)
        name, version = file.name.split("-")[:2]
        name = re.sub(r"[-_.]+", "-", name).lower()
        lock["packages"][name] = {
            "name": name,
            "version": version,
            "file_name": f"../../{folder.name}/{WHEELS}/{file.name}",
            "install_dir": "site",
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": [],
            "depends": [],
            "unvendored_tests": False,
        }
    (folder / WHEELS / LOCK).write_text(json.dumps(lock, indent=1))
    return ["micropip", *(name for name, entry in lock["packages"].items() if f"/{WHEELS}/" in entry["file_name"])]


def _place(pyodide: Path, folder: Path) -> str:
    """Of Pyodide on the site. Addresses in the lock file are meant from Pyodide or from the lock file; both are two
    folders deep, so that `../../` is the root of the site either way."""
    place = pyodide.relative_to(folder.parent)
    assert len(place.parts) == 2, place
    return place.as_posix()


def _configure(folder: Path, pyodide: Path, names: list[str]) -> None:
    file = folder / "jupyter-lite.json"
    config = json.loads(file.read_text())
    data = config["jupyter-config-data"]
    data |= {"appName": "webrnn", "contentsAllJsonFile": "all.json"}
    settings = data.setdefault("litePluginSettings", {}).setdefault(f"{KERNEL}:kernel", {})
    settings |= {
        "pyodideUrl": f"./../{_place(pyodide, folder)}/pyodide.mjs",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"lockFileURL": f"./{WHEELS}/{LOCK}", "packages": names},
    }
    file.write_text(json.dumps(config, indent=1))
    for page in folder.rglob("*.html"):
        text = page.read_text()
        policy = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        page.write_text(re.sub(r"<head>", policy, text, count=1))


def _write_files(folder: Path) -> None:
    """The notebook, the listing that a server of Jupyter's would give, and the icons that it would have."""
    icons = folder / "static" / "favicons"
    icons.mkdir(parents=True)
    for kind in ("busy-1", "busy-2", "busy-3", "console", "file", "notebook", "terminal"):
        shutil.copyfile(folder / "icon-120x120.png", icons / f"favicon-{kind}.ico")
    (folder / "files").mkdir(exist_ok=True)
    shutil.copyfile(NOTEBOOK, folder / "files" / NOTEBOOK.name)

    def entry(name: str, kind: str, content: Any, size: int | None) -> dict[str, Any]:
        times = {"created": WHEN, "last_modified": WHEN}
        form = "json" if content else None
        about = {"type": kind, "size": size, "writable": True, "mimetype": None}
        return {"name": name, "path": name, "content": content, "format": form, **about, **times}

    notebook = entry(NOTEBOOK.name, "notebook", None, NOTEBOOK.stat().st_size)
    listing = folder / "api" / "contents" / "all.json"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text(json.dumps(entry("", "directory", [notebook], None)))
