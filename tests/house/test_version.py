"""One version: that of runtime/webrnn/__init__.py. Whatever says it again says the same."""

import tomllib
from pathlib import Path

import webrnn
from wasm_kernels.release import changelog, versions
from web_demo.packaging import npm_package

ROOT = Path(__file__).parents[2]


def test_it_is_a_version() -> None:
    assert str(versions.current(ROOT)) == webrnn.__version__


def test_all_places_say_the_same() -> None:
    found = list(versions.written(ROOT))
    assert {name for name, version in found if version != webrnn.__version__} == set()
    assert {"runtime/webrnn/__init__.py", "pyodide_pkg/recipe/meta.yaml", "docs/web.md"} <= {name for name, _ in found}


def test_the_build_takes_it_from_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == versions.SOURCE
    assert npm_package.description()["version"] == webrnn.__version__


def test_the_changelog_knows_it() -> None:
    assert changelog.date_of((ROOT / changelog.FILE).read_text(), webrnn.__version__) is not None
