"""The machinery of `make release`: rules of versions, the changelog, checks of files, sums and the SBOM. All on files
that are made here; `make release` itself builds the real ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from wasm_kernels.release import ReleaseError, __main__, archives, artifacts, changelog, publishing, sbom, versions
from web_demo.packaging import plans
from webrnn import packed

ROOT = Path(__file__).parents[2]
LOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n- **One.** Text:\n  more.\n\n### Fixed\n\n## [0.1.0]\n\n- Old.\n"
PACKAGE = {
    "name": "webrnn", "version": "0.2.0", "type": "module", "description": "d", "license": "Apache-2.0",
    "files": ["*.js"], "engines": {"node": ">=22.3"}, "publishConfig": {"access": "public", "provenance": True},
    "exports": {".": {"types": "./webrnn.d.ts", "default": "./webrnn.js"}, "./plans/*": "./plans/*"},
}  # fmt: skip
NPM = {
    "webrnn.js": b"export {};", "webrnn.d.ts": b"", "wasm_simd.wasm": b"\0asm", "README.md": b"", "LICENSE": b"",
    "NOTICE": b"", "plans/dtln_int8.rnn": b"WRNN",
}  # fmt: skip
METADATA = b"Metadata-Version: 2.4\nName: webrnn\nVersion: 0.2.0\n\nVersion: 9.9.9\n"


# --- versions


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.3rc1", "01.2.3", "1.2.-3", "1.2.3\n", " 1.2.3", "1.٢.3"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ReleaseError, match="is no version: it takes three numbers"):
        versions.parsed(text)


def test_versions_are_ordered_by_numbers() -> None:
    assert versions.parsed("0.10.0") > versions.parsed("0.9.9")
    assert [str(each) for each in versions.next_ones(versions.parsed("1.2.3"))] == ["1.2.4", "1.3.0", "2.0.0"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with all places of a version."""
    files = {
        versions.SOURCE: 'import x\n\n__version__ = "0.1.0"\n__all__ = ["__version__"]\n',
        "pyodide_pkg/recipe/meta.yaml": "package:\n  name: webrnn\n  version: 0.1.0\n",
        "docs/web.md": "`webrnn-0.1.0.tgz`, /webrnn-0.1.0/, webrnn-0.1.0-py3-none-any.whl; measured: webrnn 0.1.0\n",
        "README.md": "no version\n",
        "CHANGELOG.md": LOG,
        "Makefile": "all:\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path)
    return tmp_path


def git(tree: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True)


def commit(tree: Path) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "m", "--date", "2026-01-02T00:00:00Z")


def write(tree: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (tree / name).write_text(text)


def test_a_version_goes_to_all_places(tree: Path) -> None:
    date, texts = __main__.planned(tree, "0.2.0", "2026-03-04", allow_dirty=False)
    assert date == "2026-03-04"
    assert texts.keys() == {versions.SOURCE, "pyodide_pkg/recipe/meta.yaml", "docs/web.md", "CHANGELOG.md"}
    write(tree, texts)
    assert {version for _, version in versions.written(tree)} == {"0.2.0"}
    assert len(list(versions.written(tree))) == 5
    assert (tree / "docs/web.md").read_text().endswith("measured: webrnn 0.1.0\n"), "a record stays"
    assert "## [0.1.0]" in (tree / "CHANGELOG.md").read_text()


def test_the_date_is_that_of_the_last_commit(tree: Path) -> None:
    last = subprocess.run(["git", "log", "-1", "--format=%cs"], cwd=tree, capture_output=True, text=True, check=True)
    assert __main__.planned(tree, "0.2.0", None, allow_dirty=False)[0] == last.stdout.strip()


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9"])
def test_a_version_that_is_not_larger_is_refused(tree: Path, version: str) -> None:
    with pytest.raises(ReleaseError, match=r"not larger than 0\.1\.0.*0\.1\.1, 0\.2\.0, 1\.0\.0"):
        __main__.planned(tree, version, None, allow_dirty=False)


@pytest.mark.parametrize("name", ["new.txt", "README.md", "CHANGELOG.md"])
def test_a_tree_that_is_not_committed_is_refused(tree: Path, name: str) -> None:
    with (tree / name).open("a") as file:
        file.write("more\n")
    with pytest.raises(ReleaseError, match=f"not committed: {name}"):
        __main__.planned(tree, "0.2.0", None, allow_dirty=False)
    assert __main__.planned(tree, "0.2.0", None, allow_dirty=True)[1]


def test_a_folder_without_git_is_refused(tree: Path) -> None:
    (tree / ".git").rename(tree / "git")
    with pytest.raises(ReleaseError, match="a release is made in a checkout"):
        __main__.planned(tree, "0.2.0", None, allow_dirty=False)


def test_a_second_time_nothing_is_written(tree: Path) -> None:
    date, texts = __main__.planned(tree, "0.2.0", "2026-03-04", allow_dirty=False)
    write(tree, texts)
    assert __main__.planned(tree, "0.2.0", None, allow_dirty=False) == (date, {}), "before the commit"
    commit(tree)
    assert __main__.planned(tree, "0.2.0", None, allow_dirty=False) == (date, {}), "and after it"
    with pytest.raises(ReleaseError, match=r"has 2026-03-04 for 0\.2\.0, not 2026-03-05"):
        __main__.planned(tree, "0.2.0", "2026-03-05", allow_dirty=False)
    (tree / "new.txt").write_text("")
    with pytest.raises(ReleaseError, match=r"not committed: new\.txt"):
        __main__.planned(tree, "0.2.0", None, allow_dirty=False)


def test_a_version_that_was_released_is_refused(tree: Path) -> None:
    write(tree, __main__.planned(tree, "0.2.0", "2026-03-04", allow_dirty=False)[1])
    commit(tree)
    git(tree, "tag", "--annotate", "v0.2.0", "--message", "m")
    assert __main__.planned(tree, "0.2.0", None, allow_dirty=False)[1] == {}, "the tag is here: the same files again"
    (tree / "README.md").write_text("more\n")
    commit(tree)
    with pytest.raises(ReleaseError, match=r"the tag v0\.2\.0 is on another commit"):
        __main__.planned(tree, "0.2.0", None, allow_dirty=False)


def test_more_changes_need_a_larger_version(tree: Path) -> None:
    write(tree, __main__.planned(tree, "0.2.0", "2026-03-04", allow_dirty=False)[1])
    log = tree / "CHANGELOG.md"
    log.write_text(log.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n- More.\n"))
    with pytest.raises(ReleaseError, match=r"more is under \[Unreleased\]: it needs a larger one"):
        __main__.planned(tree, "0.2.0", None, allow_dirty=False)


# --- the changelog


def test_what_is_not_released_becomes_a_section() -> None:
    made = changelog.released(LOG, "0.2.0", "2026-11-18")
    sections = "## [Unreleased]\n\n## [0.2.0] - 2026-11-18\n\n### Added\n- **One.** Text:\n  more.\n"
    assert made == f"# Changelog\n\n{sections}\n## [0.1.0]\n\n- Old.\n"
    assert changelog.is_empty(made)
    assert changelog.date_of(made, "0.2.0") == "2026-11-18"
    assert changelog.date_of(made, "0.1.0") == ""
    assert changelog.date_of(made, "0.2") is None
    with pytest.raises(ReleaseError, match="nothing is under"):
        changelog.released(made, "0.3.0", "2026-11-19")
    with pytest.raises(ReleaseError, match=r"has a section \[0\.2\.0\] already"):
        changelog.released(made, "0.2.0", "2026-11-19")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Changelog\n", "has 0 headings"),
        ("## [Unreleased]\n- A\n## [Unreleased]\n- B\n", "has 2 headings"),
        ("## [Unreleased]\n\n### Added\n\n### Fixed\n", "nothing is under"),
        ("## [Unreleased]", "nothing is under"),
    ],
)
def test_a_changelog_that_says_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        changelog.released(text, "0.2.0", "2026-11-18")


@pytest.mark.parametrize("date", ["", "2026-13-01", "2026-1-1", "18.11.2026", "2026-11-18T00:00:00"])
def test_what_is_no_date(date: str) -> None:
    with pytest.raises(ReleaseError, match="is no date"):
        changelog.released(LOG, "0.2.0", date)


def test_a_changelog_with_one_section_only() -> None:
    assert changelog.released("## [Unreleased]\n- A", "1.0.0", "2026-11-18") == (
        "## [Unreleased]\n\n## [1.0.0] - 2026-11-18\n\n- A\n"
    )


# --- files


def npm(package: dict[str, Any] | None = None, **others: bytes | None) -> dict[str, bytes]:
    files = {**NPM, "package.json": json.dumps(package or PACKAGE).encode(), **others}
    return {name: data for name, data in files.items() if data is not None}


@pytest.fixture
def dist(tmp_path: Path) -> list[Path]:
    """A small release: one wheel for Pyodide, sources and the npm package."""
    wheel = tmp_path / "webrnn-0.2.0-py3-none-pyemscripten_2026_0_wasm32.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("webrnn/__init__.py", "")
        archive.writestr("webrnn/_kernels/pyodide_simd.so", b"\0asm")
        archive.writestr("webrnn-0.2.0.dist-info/METADATA", METADATA)
        archive.writestr("webrnn-0.2.0.dist-info/licenses/LICENSE", "")
    sdist, package = tmp_path / "webrnn-0.2.0.tar.gz", tmp_path / "webrnn-0.2.0.tgz"
    sdist.write_bytes(archives.packed({"PKG-INFO": METADATA, "LICENSE": b"", "pyproject.toml": b""}, "webrnn-0.2.0"))
    package.write_bytes(archives.packed(npm(), "package"))
    return [wheel, sdist, package]


def test_files_that_are_as_they_should_be(dist: list[Path]) -> None:
    assert [list(artifacts.file_problems(file, "0.2.0")) for file in dist] == [[], [], []]


def test_files_of_another_version(dist: list[Path]) -> None:
    found = [" ".join(artifacts.file_problems(file, "0.3.0")) for file in dist]
    assert all("its name is not of version 0.3.0" in each for each in found)
    assert "metadata have Version 0.2.0, expected 0.3.0" in found[0]
    assert "metadata have Version 0.2.0, expected 0.3.0" in found[1]
    assert "package.json has version '0.2.0', expected '0.3.0'" in found[2]


def test_wheels_that_are_missing(dist: list[Path]) -> None:
    expected = len(artifacts.systems.SYSTEMS) + 1
    assert list(artifacts.problems(dist, "0.2.0")) == [f"1 files are of the kind wheel, expected {expected}"]


def test_a_damaged_wheel(dist: list[Path]) -> None:
    dist[0].write_bytes(b"no zip")
    with pytest.raises(ReleaseError, match="cannot be read"):
        list(artifacts.file_problems(dist[0], "0.2.0"))


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (npm(**{"package.json": b"{"}), "no package.json that can be read"),
        (npm(**{"package.json": None}), "no package.json that can be read"),
        (npm(**{"webrnn.d.ts": None}), "it exports ./webrnn.d.ts, which is not there"),
        (npm(**{"plans/dtln_int8.rnn": None}), "it exports ./plans/*, and nothing is there"),
        (npm(NOTICE=None), "it has no NOTICE"),
        (npm({**PACKAGE, "publishConfig": {}}), "has no publishConfig"),
        (npm({**PACKAGE, "dependencies": {"left-pad": "1"}}), "has dependencies"),
        (npm({**PACKAGE, "scripts": {"postinstall": "x"}}), "has scripts"),
        (npm({**PACKAGE, "type": "commonjs"}), "has type 'commonjs'"),
        (
            npm(**{"big.js": bytes(i * i % 251 ^ i >> 8 & 255 for i in range(3 * artifacts.NPM_LIMIT))}),
            "bytes without its models, and the limit is",
        ),
    ],
)
def test_npm_packages_that_are_not_as_they_should_be(files: dict[str, bytes], problem: str) -> None:
    found = list(artifacts.npm_problems(files, "0.2.0"))
    assert any(problem in each for each in found), found


def test_models_do_not_count(dist: list[Path]) -> None:
    inside = archives.contents(dist[2])
    large = {**inside, "plans/more.rnn": bytes(range(256)) * 10_000, "NOTICE": b"n" * 10_000}
    assert artifacts.weightless_bytes(large) == artifacts.weightless_bytes(inside)


def test_a_tarball_depends_on_names_and_bytes_alone() -> None:
    files = {"b": b"1", "a": b"2"}
    made = archives.packed(files, "folder")
    assert made == archives.packed(dict(reversed(files.items())), "folder")
    assert made[4:8] == bytes(4), "no time"


def test_sums_are_read_by_sha256sum(dist: list[Path]) -> None:
    (dist[0].parent / archives.SUMS).write_text(archives.sums(dist))
    command = ["sha256sum", "--check", "--strict", archives.SUMS]
    subprocess.run(command, cwd=dist[0].parent, check=True, capture_output=True)
    dist[1].write_bytes(dist[1].read_bytes() + b"\0")
    assert subprocess.run(command, cwd=dist[0].parent, check=False, capture_output=True).returncode


def test_what_an_earlier_release_left_is_known() -> None:
    old = ["webrnn-0.1.0-py3-none-any.whl", "webrnn-0.1.0.tar.gz", "webrnn-0.1.0.tgz", "webrnn-0.1.0.cdx.json"]
    assert all(map(artifacts.STALE.fullmatch, [*old, "webrnn-0.1.0-site.tar.gz", "SHA256SUMS"]))
    assert not any(map(artifacts.STALE.fullmatch, ["pyodide", "notes.md", "other-0.1.0.whl", "webrnn-0.1.0.txt"]))


# --- the SBOM


@pytest.fixture
def bill(dist: list[Path]) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return sbom.document(dist, "0.2.0", "2026-11-18", project, BUNDLED)


BUNDLED = {
    "plans/dtln_int8.rnn": sbom.Bundled(
        "DTLN", "MIT", "Copyright (c) somebody", "translated", (sbom.Origin("dtln.onnx", "0" * 64, "noise==1.2.3"),)
    )
}


def components(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        yield from components(row.get("components", []))


def test_the_sbom_is_cyclonedx(bill: dict[str, Any]) -> None:
    """What the schema of 1.6 asks for, of what is used here; `make sbom-check` asks the schema itself."""
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch("urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    rows = [bill["metadata"]["component"], *components(bill["components"])]
    refs = Counter(row["bom-ref"] for row in rows)
    assert max(refs.values()) == 1
    for row in rows:
        assert row["name"]
        assert row["type"] in ("library", "application", "file", "machine-learning-model")
        assert row.get("scope", "required") in ("required", "optional", "excluded")
        assert all(each["alg"] == "SHA-256" and len(each["content"]) == 64 for each in row.get("hashes", []))
        assert all(each.keys() == {"license"} for each in row.get("licenses", []))
    depends = {row["ref"]: row.get("dependsOn", []) for row in bill["dependencies"]}
    assert depends.keys() <= refs.keys()
    assert {ref for needed in depends.values() for ref in needed} <= refs.keys()


def test_the_sbom_has_each_file_with_its_hash(bill: dict[str, Any], dist: list[Path]) -> None:
    found = {row["name"]: row["hashes"][0]["content"] for row in bill["components"] if row["type"] == "file"}
    assert found == {file.name: archives.sha256(file.read_bytes()) for file in dist}
    npm_row = next(row for row in bill["components"] if row["name"] == "webrnn-0.2.0.tgz")
    assert npm_row["purl"] == "pkg:npm/webrnn@0.2.0"
    inside = {row["name"]: row for row in npm_row["components"]}
    assert inside.keys() == {"plans/dtln_int8.rnn", "wasm_simd.wasm"}
    model = inside["plans/dtln_int8.rnn"]
    assert model["licenses"] == [{"license": {"id": "MIT"}}]
    assert model["hashes"][0]["content"] == archives.sha256(b"WRNN")
    assert model["pedigree"]["ancestors"][0]["purl"] == "pkg:pypi/noise@1.2.3"


def test_the_sbom_has_what_is_needed(bill: dict[str, Any]) -> None:
    scopes = {row["name"]: row["scope"] for row in bill["components"] if "scope" in row}
    assert scopes["numpy"] == "required"
    assert scopes["wasmtime"] == "optional"
    assert scopes["ziglang"] == scopes["hatchling"] == "excluded"
    assert [name for name, scope in scopes.items() if scope == "required"] == ["numpy"]
    assert "ruff" not in scopes, "what only developers install is no part of a release"


def test_the_sbom_is_the_same_each_time(bill: dict[str, Any], dist: list[Path]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    again = sbom.document(list(reversed(dist)), "0.2.0", "2026-11-18", project, BUNDLED)
    assert sbom.text(again) == sbom.text(bill)


@pytest.mark.parametrize("name", ["plans/other.rnn", "model.onnx", "voice.wav", "library.a", "font.woff2"])
def test_a_file_that_nobody_owns_is_refused(dist: list[Path], name: str) -> None:
    dist[2].write_bytes(archives.packed(npm(**{name: b"x"}), "package"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    with pytest.raises(ReleaseError, match=f"has {re.escape(name)}, and nobody says whose it is"):
        sbom.document(dist, "0.2.0", "2026-11-18", project, BUNDLED)


def _with_modules(wheel: Path, modules: dict[str, bytes]) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(f"webrnn/_kernels/{packed.MODULES}", packed.pack(modules))


def test_what_a_wheel_holds_in_one_archive_is_listed(dist: list[Path]) -> None:
    _with_modules(dist[0], {"wasm_simd.wasm": b"module"})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    made = sbom.document(dist, "0.2.0", "2026-11-18", project, BUNDLED)
    wheel = next(row for row in made["components"] if row["name"] == dist[0].name)
    row = next(row for row in wheel["components"] if row["name"] == "webrnn/_kernels/modules.tar.xz/wasm_simd.wasm")
    assert row["hashes"] == [{"alg": "SHA-256", "content": archives.sha256(b"module")}]


def test_a_file_that_nobody_owns_is_refused_there_too(dist: list[Path]) -> None:
    _with_modules(dist[0], {"library.a": b"x"})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    with pytest.raises(ReleaseError, match=r"has webrnn/_kernels/modules\.tar\.xz/library\.a, and nobody says whose"):
        sbom.document(dist, "0.2.0", "2026-11-18", project, BUNDLED)


def test_all_that_the_sources_may_hold_has_an_owner() -> None:
    """A release says so only at its end, after everything is built."""
    folders = ["runtime", "wasm_kernels", "web_demo", "pyodide_pkg"]
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    names = listed.stdout.splitlines()
    assert len(names) > 500
    assert [name for name in names if not sbom._is_ours(PurePosixPath(name))] == []


def test_all_plans_of_the_package_have_an_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_source", lambda name, cache: ROOT / "LICENSE")  # nothing is fetched here
    found = __main__.bundled()
    assert found.keys() == {f"plans/{name}" for name in plans.FILES}
    assert all(row.origins and len(origin.sha256) == 64 for row in found.values() for origin in row.origins)


# --- what is left to do


def test_commands_name_each_file(dist: list[Path]) -> None:
    folder = dist[0].parent
    text = publishing.steps("0.2.0", dist, folder / "webrnn-0.2.0.cdx.json", folder, None, "main")
    upload = next(line for line in text.splitlines() if "twine upload" in line)
    assert upload.split()[4:] == [f"{folder}/{dist[0].name}", f"{folder}/{dist[1].name}"]
    assert f"npm publish {folder}/webrnn-0.2.0.tgz" in text
    assert "git tag --annotate v0.2.0" in text
    assert "git push origin main v0.2.0" in text
    assert "has to name its repository" in text
    assert "has to name its repository" not in publishing.steps(
        "0.2.0", dist, folder, folder, "https://x.invalid", "main"
    )


def test_the_command_says_why_not() -> None:
    command = [sys.executable, "-m", "wasm_kernels.release", "0.0.1", "--dry-run"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no release: 0.0.1 is not larger than ")
