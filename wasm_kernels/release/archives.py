"""What is inside the files of a release: wheels, the sources, the npm package, the site."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from wasm_kernels.release import ReleaseError

KINDS = {".whl": "wheel", "-site.tar.gz": "site", ".tar.gz": "sdist", ".tgz": "npm"}
"""By the end of the name."""
SUMS = "SHA256SUMS"


def kind_of(name: str) -> str:
    """
    >>> kind_of("webrnn-0.2.0.tgz"), kind_of("webrnn-0.2.0-site.tar.gz")
    ('npm', 'site')
    """
    found = next((kind for end, kind in KINDS.items() if name.endswith(end)), None)
    if found is None:
        raise ReleaseError(f"{name} is no file of a release")
    return found


def contents(file: Path) -> dict[str, bytes]:
    """All files in an archive, by their names in it; those of tarballs without the folder around them."""
    try:
        if kind_of(file.name) == "wheel":
            with zipfile.ZipFile(file) as archive:
                return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
        with tarfile.open(file) as tar:
            members = [member for member in tar.getmembers() if member.isfile()]
            return {
                member.name.partition("/")[2]: tar.extractfile(member).read()  # type: ignore[union-attr]
                for member in members
            }
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise ReleaseError(f"{file.name} cannot be read: {error}") from error


def packed(files: Mapping[str, bytes], folder: str) -> bytes:
    """A tarball that depends on names and bytes alone: no times, owners or modes of this machine."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(made.getvalue(), mtime=0)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sums(files: Iterable[Path]) -> str:
    """As `sha256sum --check` reads it."""
    return "".join(f"{sha256(file.read_bytes())}  {file.name}\n" for file in sorted(files, key=lambda file: file.name))
