"""Wheels beside each other: which differences are told."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyodide_pkg import core, distribution
from pyodide_pkg.emscripten import builds, compare
from pyodide_pkg.suite import node

OURS = {"webrnn/__init__.py": "a", "webrnn-1.dist-info/RECORD": "hashes", **dict.fromkeys(compare.MODULES, "zig")}
RELAXED = "webrnn/_kernels/pyodide_relaxed.wasm"


def wheel(file: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file


def test_the_same_files(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one", OURS)
    compare.require_same(one, wheel(tmp_path / "two", OURS | {"webrnn-1.dist-info/RECORD": "others"}))
    with pytest.raises(core.SetupError, match=r"differ in webrnn/__init__.py, webrnn/more.py$"):
        compare.require_same(one, wheel(tmp_path / "three", OURS | {"webrnn/__init__.py": "b", "webrnn/more.py": ""}))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({RELAXED: "zig"}, "webrnn/_kernels/pyodide_scalar.wasm, webrnn/_kernels/pyodide_simd.wasm"),
        ({"webrnn/__init__.py": "b"}, f"webrnn/__init__.py, {', '.join(sorted(compare.MODULES))}"),
        (dict.fromkeys(compare.MODULES, "zig"), "nothing"),
    ],
)
def test_other_side_modules_and_nothing_else(changed: dict[str, str], told: str, tmp_path: Path) -> None:
    by_emcc = OURS | dict.fromkeys(compare.MODULES, "emcc")
    zig = wheel(tmp_path / "zig", OURS)
    compare.require_other_modules(wheel(tmp_path / "emcc", by_emcc), zig)
    with pytest.raises(core.SetupError, match=f"but differ in {re.escape(told)}$"):
        compare.require_other_modules(wheel(tmp_path / "wrong", by_emcc | changed), zig)


def test_other_bits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On whichever build, and beside the native library too."""
    keys = [f"gru {weights} pyodide:{variant}" for weights in ("f32", "int8") for variant in compare.VARIANTS]
    results = {"emcc": dict.fromkeys(keys, "1"), "zig": dict.fromkeys(keys, "1")}
    native = {"gru f32": "1", "gru int8": "1"}
    monkeypatch.setattr(compare, "_digests", lambda folder, models: results[str(folder)])
    monkeypatch.setattr(compare, "_native", lambda models: native)
    monkeypatch.setattr(distribution, "of_wheel", lambda wheel, folder: "emcc")
    monkeypatch.setattr(distribution, "ensure", lambda: "zig")
    assert "6 results" in compare.require_same_bits(tmp_path, with_real_models=False)
    results["emcc"]["gru f32 pyodide:scalar"] = native["gru int8"] = "2"
    with pytest.raises(core.SetupError, match=r"other bits .*\n    gru f32 pyodide:scalar\n    gru int8 \(native\)$"):
        compare.require_same_bits(tmp_path, with_real_models=False)
    results["zig"] = {key: "1" for key in keys if "relaxed" not in key}
    with pytest.raises(core.SetupError, match="this Node runs pyodide:scalar, pyodide:simd only"):
        compare.require_same_bits(tmp_path, with_real_models=False)


def test_the_lock_file_of_build_recipes_is_looked_at(tmp_path: Path) -> None:
    made = next(distribution.ensure().glob("webrnn-*.whl"))
    lock = json.loads((made.parent / distribution.LOCK).read_text())
    builds._check_lock(made)
    (tmp_path / made.name).write_bytes(made.read_bytes() + b" ")
    lock["packages"] = {"webrnn": lock["packages"]["webrnn"]}
    (tmp_path / distribution.LOCK).write_text(json.dumps(lock))
    with pytest.raises(core.SetupError, match=f"not as the lock file of build-recipes says: {made.name}"):
        builds._check_lock(tmp_path / made.name)
    lock["packages"]["webrnn"]["depends"] = []
    (tmp_path / distribution.LOCK).write_text(json.dumps(lock))
    with pytest.raises(core.SetupError, match=r"says of webrnn .*'depends': \[\]"):
        builds._check_lock(tmp_path / made.name)


def test_the_suite_runs_on_a_given_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is started gets a distribution with that wheel."""
    ours = next(distribution.ensure().glob("webrnn-*.whl"))
    given = tmp_path / ours.name
    given.write_bytes(ours.read_bytes() + b" ")
    seen = []

    def start(command: list[str], **options: object) -> SimpleNamespace:
        folder, results = Path(command[2]), Path(command[4])
        assert distribution.check(folder) == []
        seen.append((folder / given.name).read_bytes())
        results.write_text(json.dumps({"status": 0, "outcomes": {}, "skips": {}, "failures": [], "seconds": {}}))
        return SimpleNamespace(stdout="", stderr="")

    monkeypatch.setattr(node.bundle, "make", lambda: b"")
    monkeypatch.setattr(node.subprocess, "run", start)
    for wheel in (given, None):
        node.run([], wheel=wheel)
    assert seen == [given.read_bytes(), ours.read_bytes()]


@pytest.mark.parametrize(
    "name", ["webrnn-0.1.0-py3-none-manylinux_2_17_x86_64.whl", "numpy-2-pyemscripten_1.whl", None]
)
def test_what_is_no_wheel_of_ours_is_refused(name: str | None, tmp_path: Path) -> None:
    file = tmp_path / (name or "webrnn-0.1.0-py3-none-pyemscripten_2026_0_wasm32.whl")
    if name:
        file.touch()
    with pytest.raises(core.SetupError, match="is no wheel of webrnn for Pyodide"):
        distribution.of_wheel(file, tmp_path / "pyodide")
