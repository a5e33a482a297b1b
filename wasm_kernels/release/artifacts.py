"""The files of a release: built into one folder, then looked at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

from wasm_kernels import libraries, systems, wheels
from wasm_kernels.release import ReleaseError
from wasm_kernels.release.archives import contents, kind_of, packed

NPM_LIMIT = 750_000
"""Bytes of the npm tarball without the models in it and what their licences ask for. Most of them are nine modules
of kernels: docs/notes.md."""
STALE = re.compile(r"webrnn-\d+\.\d+\.\d+.*(\.whl|\.tar\.gz|\.tgz|\.cdx\.json)|SHA256SUMS")

Say = Callable[[str], None]


def build(root: Path, output: Path, version: str, with_site: bool, say: Say) -> list[Path]:
    """All of them. What an earlier release left in the folder goes first."""
    for file in output.glob("*") if output.exists() else ():
        if STALE.fullmatch(file.name):
            file.unlink()
    # Archives have times of their own, the same for every build.
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    makers: dict[str, Callable[[], Path]] = {
        f"wheel {name}": lambda system=system: wheels.build(system, output)  # type: ignore[misc]
        for name, system in (*systems.SYSTEMS.items(), ("pyodide", None))
    }
    makers["sdist"] = lambda: wheels._hatchling("sdist", output, {})
    makers["npm"] = lambda: _npm(root, output)
    if with_site:
        makers["site"] = lambda: _site(root, output, version)
    files = []
    for number, (name, make) in enumerate(makers.items(), 1):
        say(f"[{number}/{len(makers)}] {name} ...")
        try:
            files.append(make())
        except wheels.WheelError as error:
            raise ReleaseError(f"{name}: {error}") from error
        say(f"  {files[-1].name}, {files[-1].stat().st_size:,} bytes")
    return files


def _npm(root: Path, output: Path) -> Path:
    """In a process of its own, which reads the version anew."""
    command = [sys.executable, "-m", "web_demo.packaging.npm_package", "--output", str(output)]
    _run(command, root, "the npm package")
    return next(output.glob("webrnn-*.tgz"))


def _site(root: Path, output: Path, version: str) -> Path:
    folder = root / "build" / "release-site"
    command = [sys.executable, "-m", "web_demo.site", "--output", str(folder), "--same-each-time"]
    _run(command, root, "the site")
    files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    made = output / f"webrnn-{version}-site.tar.gz"
    made.write_bytes(packed(files, "webrnn"))
    return made


def _run(command: Sequence[str], root: Path, what: str) -> None:
    paths = os.pathsep.join([str(root / "runtime"), str(root)])
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{what} was not made:\n{done.stdout}{done.stderr}")


def problems(files: Sequence[Path], version: str) -> Iterator[str]:
    """What is wrong with the files of a release."""
    kinds = [kind_of(file.name) for file in files]
    for kind, expected in (("wheel", len(systems.SYSTEMS) + 1), ("sdist", 1), ("npm", 1)):
        if kinds.count(kind) != expected:
            yield f"{kinds.count(kind)} files are of the kind {kind}, expected {expected}"
    for file in files:
        yield from (f"{file.name}: {problem}" for problem in file_problems(file, version))


def file_problems(file: Path, version: str) -> Iterator[str]:
    kind, inside = kind_of(file.name), contents(file)
    if not re.match(rf"webrnn-{re.escape(version)}[-.]", file.name):
        yield f"its name is not of version {version}"
    if kind == "wheel":
        yield from _metadata_problems(_only(inside, r"webrnn-[^/]+\.dist-info/METADATA"), version)
        if not any(re.fullmatch(r"[^/]+\.dist-info/licenses/LICENSE", name) for name in inside):
            yield "it has no LICENSE"
        yield from wheels.size_problems(file)
        system = next((each for each in systems.SYSTEMS.values() if file.name.endswith(f"-{each.wheel_tag}.whl")), None)
        if system is not None:
            try:
                yield from wheels.problems(file, system)
            except libraries.LibraryError as error:
                yield str(error)
        elif "-pyemscripten_" not in file.name:
            yield "it is for no system that webrnn has wheels for"
    elif kind == "sdist":
        yield from _metadata_problems(inside.get("PKG-INFO"), version)
        yield from (f"it has no {name}" for name in ("LICENSE", "pyproject.toml") if name not in inside)
    elif kind == "npm":
        yield from npm_problems(inside, version)


def _only(inside: Mapping[str, bytes], pattern: str) -> bytes | None:
    found = [data for name, data in inside.items() if re.fullmatch(pattern, name)]
    return found[0] if len(found) == 1 else None


def _metadata_problems(data: bytes | None, version: str) -> Iterator[str]:
    if data is None:
        yield "it does not say what it is"
        return
    said = Parser().parsestr(data.decode(), headersonly=True)
    for field, expected in (("Name", "webrnn"), ("Version", version)):
        if said[field] != expected:
            yield f"its metadata have {field} {said[field]}, expected {expected}"


def npm_problems(inside: Mapping[str, bytes], version: str) -> Iterator[str]:
    """What is wrong with the files of an npm package."""
    try:
        package = json.loads(inside["package.json"])
    except (KeyError, ValueError):
        yield "it has no package.json that can be read"
        return
    for field, expected in (("name", "webrnn"), ("version", version), ("type", "module")):
        if package.get(field) != expected:
            yield f"its package.json has {field} {package.get(field)!r}, expected {expected!r}"
    for field in ("description", "license", "exports", "files", "engines", "publishConfig"):
        if not package.get(field):
            yield f"its package.json has no {field}"
    for field in ("dependencies", "peerDependencies", "optionalDependencies", "scripts"):
        if package.get(field):
            yield f"its package.json has {field}: the package needs none, and the SBOM would not know of them"
    for target in sorted(set(_targets(package.get("exports")))):
        name = target.removeprefix("./")
        if "*" in name:
            head, _, tail = name.partition("*")
            if not any(each.startswith(head) and each.endswith(tail) for each in inside):
                yield f"it exports {target}, and nothing is there"
        elif name not in inside:
            yield f"it exports {target}, which is not there"
    yield from (f"it has no {name}" for name in ("README.md", "LICENSE", "NOTICE") if name not in inside)
    size = weightless_bytes(inside)
    if size > NPM_LIMIT:
        yield f"it has {size:,} bytes without its models, and the limit is {NPM_LIMIT:,}"


def weightless_bytes(inside: Mapping[str, bytes]) -> int:
    """The size of the npm tarball without models and the notice that they ask for."""
    rest = {name: data for name, data in inside.items() if not name.startswith("plans/") and name != "NOTICE"}
    return len(packed(rest, "package"))


def _targets(export: Any) -> Iterator[str]:
    if isinstance(export, str):
        yield export
    elif isinstance(export, dict):
        for each in export.values():
            yield from _targets(each)
