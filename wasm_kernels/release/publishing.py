"""What is left to do when the files of a release are made: commands, exactly."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from wasm_kernels.release.archives import SUMS, kind_of


def steps(version: str, files: Sequence[Path], bill: Path, folder: Path, repository: str | None, branch: str) -> str:
    """For the person who releases: nothing of this has been done."""
    tag = f"v{version}"
    shown = _shown(folder)
    python = [f"{shown}/{file.name}" for file in files if kind_of(file.name) in ("wheel", "sdist")]
    npm = [f"{shown}/{file.name}" for file in files if kind_of(file.name) == "npm"]
    site = [file.name for file in files if kind_of(file.name) == "site"]
    lines = [
        "Nothing is committed, tagged or uploaded. Left to do, in this order:",
        "",
        "# 1. look at the changes, commit and tag them",
        "git diff",
        f"git commit --all --message 'Release {version}'",
        f"git tag --annotate {tag} --message 'webrnn {version}'",
        "",
        "# 2. PyPI",
        f"python -m twine check --strict {' '.join(python)}",
        f"python -m twine upload {' '.join(python)}",
        "",
        "# 3. npm: in a CI job with the permission id-token: write, which provenance needs.",
        "# By hand, without provenance: add --provenance=false",
        *(f"npm publish {name}" for name in npm),
        "",
        "# 4. the branch and the tag; hashes and SBOM go with the release's page",
        f"git push origin {shlex.quote(branch or 'HEAD')} {tag}",
        f"# {shown}/{SUMS}, {shown}/{bill.name}",
    ]
    if site:
        lines += ["", f"# 5. the site: unpack {shown}/{site[0]} where it is served"]
    if not repository:
        lines += [
            "",
            "Before npm takes a package with provenance it has to name its repository: write the address into",
            'pyproject.toml ([project.urls], Repository = "https://...") and make the release again.',
        ]
    return "\n".join(lines)


def _shown(folder: Path) -> str:
    """Relative to where the command runs, if it is below."""
    here = Path.cwd()
    return folder.relative_to(here).as_posix() if folder.is_relative_to(here) else str(folder)
