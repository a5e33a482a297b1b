"""`python -m wasm_kernels.release 0.2.0`: all files of a release, and what is left to do.

It takes the version to where it is written, gives the changelog its section, builds wheels for every system, the
sources, the npm package and the site, looks at them, and writes SHA256SUMS and an SBOM. The same sources give the same
bytes. Nothing is committed, tagged or uploaded. A second time it builds the same version again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from wasm_kernels.release import ReleaseError, archives, artifacts, changelog, publishing, sbom, versions

ROOT = Path(__file__).resolve().parents[2]


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed, and a release is made in a checkout: {done.stderr.strip()}")
    return done.stdout


def changes(root: Path) -> list[str]:
    """Files that differ from the last commit, or are not in it."""
    return [line[3:] for line in git(root, "status", "--porcelain", "--untracked-files=all").splitlines()]


def planned(root: Path, text: str, date: str | None, allow_dirty: bool) -> tuple[str, dict[str, str]]:
    """The date of a release and the new texts of files by name: none if they have been written already."""
    version, before = versions.parsed(text), versions.current(root)
    log = (root / changelog.FILE).read_text()
    if version < before or (version == before and not changelog.date_of(log, text)):
        following = ", ".join(map(str, versions.next_ones(before)))
        raise ReleaseError(f"{version} is not larger than {before}, the version of now: it may be {following}")
    again = version == before
    tag = f"v{version}"
    if git(root, "tag", "--list", tag) and git(root, "rev-parse", f"{tag}^{{commit}}") != git(
        root, "rev-parse", "HEAD"
    ):
        raise ReleaseError(f"the tag {tag} is on another commit: {version} has been released")
    own = {changelog.FILE, *(name for name, _ in versions.written(root))}
    foreign = [name for name in changes(root) if not (again and name in own)]
    if foreign and not allow_dirty:
        more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
        raise ReleaseError(f"not committed: {', '.join(foreign[:5])}{more}. Commit or remove it, or say --allow-dirty")
    if again:
        found = changelog.date_of(log, text) or ""
        if date not in (None, found):
            raise ReleaseError(f"{changelog.FILE} has {found} for {version}, not {date}")
        if not changelog.is_empty(log):
            raise ReleaseError(
                f"{version} is the version of now, and more is under [Unreleased]: it needs a larger one"
            )
        return found, {}
    day = date or git(root, "log", "-1", "--format=%cs").strip()
    return day, {changelog.FILE: changelog.released(log, text, day), **versions.bumped(root, version)}


def bundled() -> dict[str, sbom.Bundled]:
    from web_demo.packaging import plans

    return {
        f"{plans.FOLDER}/{name}": sbom.Bundled(
            row.credit.partition("\n")[0],
            row.licence,
            row.credit,
            f"translated to a plan by webrnn, weights as {form}",
            tuple(sbom.Origin(*origin) for origin in plans.origins(row)),
        )
        for row in plans.ROWS
        for name, form in row.files.items()
    }


def main(argv: list[str] | None = None) -> int:
    about, rest = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(prog="python -m wasm_kernels.release", description=f"{about}\n\n{rest}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("version", help="x.y.z, larger than the version of now")
    parser.add_argument(
        "--date", help="of the changelog's section, such as 2026-11-18 (default: that of the last commit)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the files (default: dist)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")
    parser.add_argument("--bump-only", action="store_true", help="write the version and the changelog, build nothing")
    parser.add_argument("--allow-dirty", action="store_true", help="even if files are not committed: for trials")
    parser.add_argument("--no-site", action="store_true", help="without the site")
    arguments = parser.parse_args(argv)
    try:
        release(arguments)
    except ReleaseError as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    return 0


def release(arguments: argparse.Namespace) -> None:
    def say(line: str) -> None:
        print(line, flush=True)

    date, texts = planned(ROOT, arguments.version, arguments.date, arguments.allow_dirty)
    say(f"webrnn {arguments.version} of {date}")
    for name in texts:
        say(f"  {'would write' if arguments.dry_run else 'writes'} {name}")
    if arguments.dry_run:
        return
    for name, text in texts.items():
        (ROOT / name).write_text(text)
    if arguments.bump_only:
        return
    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    files = artifacts.build(ROOT, output, arguments.version, not arguments.no_site, say)
    say("looking at them ...")
    wrong = list(artifacts.problems(files, arguments.version))
    if wrong:
        raise ReleaseError("what was made is not as it should be:\n  " + "\n  ".join(wrong))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    bill = output / f"webrnn-{arguments.version}.cdx.json"
    bill.write_text(sbom.text(sbom.document(files, arguments.version, date, project, bundled())))
    sums = archives.sums([*files, bill])
    (output / archives.SUMS).write_text(sums)
    say(sums)
    repository = project["project"].get("urls", {}).get("Repository")
    say(
        publishing.steps(
            arguments.version, files, bill, output, repository, git(ROOT, "branch", "--show-current").strip()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
