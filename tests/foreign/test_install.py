"""The wheel of this machine: small, complete, and at work where nothing else of the tree is. `make install-check` tries
all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pyodide_pkg import wheel as pyodide_wheel
from wasm_kernels import systems, wheels
from webrnn.web.folders import page_files

from . import install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.build(systems.here(), tmp_path_factory.mktemp("wheel"))


def test_is_small_and_complete(wheel: Path) -> None:
    assert [*wheels.problems(wheel, systems.here()), *wheels.size_problems(wheel)] == []


def test_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    install.check_here(wheel, tmp_path, pyodide_wheel.build(tmp_path / "pyodide"), shared=True)


def test_what_is_wrong_with_a_wheel_is_said(tmp_path: Path) -> None:
    large = tmp_path / "large.whl"
    large.write_bytes(bytes(wheels.MAXIMUM + 1))
    assert list(wheels.size_problems(large)) == [
        f"it has {wheels.MAXIMUM + 1:,} bytes, and at most {wheels.MAXIMUM:,} are allowed"
    ]


def test_the_sources_have_what_packs_the_page(tmp_path: Path) -> None:
    with tarfile.open(wheels._hatchling("sdist", tmp_path, {})) as archive:
        archive.extractall(tmp_path, filter="data")
    (sources,) = (folder for folder in tmp_path.iterdir() if folder.is_dir())
    command = [sys.executable, "-c", "from web_demo.packaging import packaged; print(len(packaged.page_contents()))"]
    paths = {"PYTHONPATH": f"{sources}:{sources / 'runtime'}"}
    done = subprocess.run(command, cwd=sources, env=os.environ | paths, capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(page_files())


def test_the_sources_are_found_beside_the_site_of_a_release(tmp_path: Path) -> None:
    for name in ("webrnn-0.2.0.tar.gz", "webrnn-0.2.0-site.tar.gz"):
        (tmp_path / name).touch()
    assert install.the_one(tmp_path, install.SDIST).name == "webrnn-0.2.0.tar.gz"
    (tmp_path / "webrnn-0.1.0.tar.gz").touch()
    with pytest.raises(install.Wrong, match="has 2 files"):
        install.the_one(tmp_path, install.SDIST)
