"""What a release is made of, as CycloneDX 1.6 (JSON): its files and their hashes, what is bundled in them with its
licence and origin, what they need to run, and what they were built with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import Requirement

from wasm_kernels.release import ReleaseError
from wasm_kernels.release.archives import contents, kind_of, sha256
from webrnn import packed

COMPILED = {".so", ".dll", ".dylib", ".wasm"}
"""Built from our sources."""
OURS = COMPILED | {
    ".c", ".css", ".d.ts", ".h", ".html", ".ipynb", ".js", ".json", ".map", ".md", ".mjs", ".nam", ".py", ".pyi", ".sh",
    ".svg", ".toml", ".ts", ".txt", ".yaml", ".yml",
}  # fmt: skip
"""Endings of files that are ours unless `bundled` says whose they are. Any other file needs an owner."""
OUR_NAMES = {
    "LICENSE",
    "METADATA",
    "NOTICE",
    "PKG-INFO",
    "RECORD",
    "WHEEL",
    "entry_points.txt",
    "py.typed",
    ".gitignore",
}


@dataclass(frozen=True)
class Origin:
    """A file that a bundled one was made of."""

    name: str
    sha256: str
    package: str = ""
    """As pip spells it, such as silero-vad==6.2.3."""


@dataclass(frozen=True)
class Bundled:
    """A file of others inside of ours."""

    name: str
    licence: str
    """An SPDX identifier."""
    credit: str
    notes: str
    origins: tuple[Origin, ...] = ()


def document(
    files: Sequence[Path], version: str, date: str, project: Mapping[str, Any], bundled: Mapping[str, Bundled]
) -> dict[str, Any]:
    """`project` is pyproject.toml, `bundled` says whose a file is, by its name in the npm package."""
    own = project["project"]
    root = f"webrnn@{version}"
    artifacts = [_artifact(file, version, own["license"], bundled) for file in sorted(files)]
    needed = list(_needed(project))
    required = [row["bom-ref"] for row in needed if row["scope"] == "required"]
    digest = " ".join(row["hashes"][0]["content"] for row in artifacts)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{root} {digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": f"{date}T00:00:00Z",
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": own["name"],
                "version": version,
                "description": own["description"],
                "licenses": _licences(own["license"]),
                "purl": f"pkg:pypi/webrnn@{version}",
            },
        },
        "components": [*artifacts, *needed],
        "dependencies": [
            {"ref": root, "dependsOn": [row["bom-ref"] for row in artifacts]},
            *(_edge(row["bom-ref"], [] if row["name"].endswith(".tgz") else required) for row in artifacts),
            *(_edge(row["bom-ref"], []) for row in needed),
        ],
    }


def text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _edge(ref: str, needs: Sequence[str]) -> dict[str, Any]:
    return {"ref": ref, "dependsOn": list(needs)} if needs else {"ref": ref}


def _licences(licence: str) -> list[dict[str, Any]]:
    return [{"license": {"id": licence}}]


def _hashes(digest: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest}]


def _artifact(file: Path, version: str, licence: str, bundled: Mapping[str, Bundled]) -> dict[str, Any]:
    kind = kind_of(file.name)
    inside = list(_inside(file, kind, licence, bundled))
    purls = {
        "wheel": f"pkg:pypi/webrnn@{version}?file_name={file.name}",
        "sdist": f"pkg:pypi/webrnn@{version}?file_name={file.name}",
        "npm": f"pkg:npm/webrnn@{version}",
    }
    return {
        "type": "file",
        "bom-ref": file.name,
        "name": file.name,
        "version": version,
        "hashes": _hashes(sha256(file.read_bytes())),
        "licenses": _licences(licence),
        **({"purl": purls[kind]} if kind in purls else {}),
        **({"components": inside} if inside else {}),
    }


def _inside(file: Path, kind: str, licence: str, bundled: Mapping[str, Bundled]) -> Iterator[dict[str, Any]]:
    for name, data in sorted(_all_contents(file).items()):
        path, ref = PurePosixPath(name), f"{file.name}#{name}"
        row = bundled.get(name) if kind == "npm" else None
        if row is not None:
            yield {
                "type": "machine-learning-model",
                "bom-ref": ref,
                "name": name,
                "description": row.name,
                "hashes": _hashes(sha256(data)),
                "licenses": _licences(row.licence),
                "copyright": row.credit,
                "pedigree": {"ancestors": [_ancestor(origin) for origin in row.origins], "notes": row.notes},
            }
        elif path.suffix in COMPILED:
            yield {
                "type": "file",
                "bom-ref": ref,
                "name": name,
                "hashes": _hashes(sha256(data)),
                "licenses": _licences(licence),
            }
        elif kind != "site" and not _is_ours(path):
            raise ReleaseError(f"{file.name} has {name}, and nobody says whose it is: it needs a row in plans.py")


def _all_contents(file: Path) -> dict[str, bytes]:
    """The files of an archive; those of the archives that `webrnn.packed` made stand below the names of these."""
    found: dict[str, bytes] = {}
    for name, data in contents(file).items():
        if PurePosixPath(name).name in (packed.MODULES, packed.PAGE):
            found |= {f"{name}/{inner}": each for inner, each in packed.unpacked(data).items()}
        else:
            found[name] = data
    return found


def _is_ours(path: PurePosixPath) -> bool:
    own_wheel = path.suffix == ".whl" and path.name.startswith("webrnn-")
    return path.suffix in OURS or path.name in OUR_NAMES or own_wheel


def _ancestor(origin: Origin) -> dict[str, Any]:
    name, _, version = origin.package.partition("==")
    packed = {"version": version, "purl": f"pkg:pypi/{name.lower()}@{version}"} if origin.package else {}
    return {"type": "file", "name": origin.name, **packed, "hashes": _hashes(origin.sha256)}


def _needed(project: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What runs with it, what its extras bring, and what it is built with. Each package once, required first."""
    own = project["project"]
    extras = {name: rows for name, rows in own["optional-dependencies"].items() if name != "dev"}
    groups = [
        ("required", "run", own["dependencies"]),
        *(("optional", f"extra {name}", rows) for name, rows in extras.items()),
        ("excluded", "build", project["build-system"]["requires"]),
    ]
    found: dict[str, dict[str, Any]] = {}
    for scope, role, rows in groups:
        for requirement in map(Requirement, rows):
            purl = f"pkg:pypi/{requirement.name.lower()}"
            pinned = [part.version for part in requirement.specifier if part.operator == "=="]
            ref = f"{purl}@{pinned[0]}" if pinned else purl
            row = found.setdefault(ref, {
                "type": "application" if scope == "excluded" else "library",
                "bom-ref": ref,
                "name": requirement.name,
                **({"version": pinned[0]} if pinned else {}),
                "scope": scope,
                "purl": ref,
                "properties": [],
            })  # fmt: skip
            asked = str(requirement.specifier) + (f"; {requirement.marker}" if requirement.marker else "")
            row["properties"].append({"name": f"webrnn:{role}", "value": asked})
    yield from found.values()
