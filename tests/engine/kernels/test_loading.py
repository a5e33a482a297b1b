"""Loading builds of the kernels, and their memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import webrnn
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels import native, wasm


def test_available_lists_native_and_wasm() -> None:
    specs = kernels.available()
    assert {"wasm:relaxed", "wasm:simd", "wasm:scalar"} <= set(specs)
    assert specs[0].startswith("native:")


def test_plain_names_pick_the_best_variant() -> None:
    assert kernels.load("native").spec == kernels.available()[0]
    assert kernels.load("wasm").spec == "wasm:relaxed"


def test_each_fused_build_has_an_unfused_one() -> None:
    for spec in (*kernels.available(), "wasm:relaxed-core"):
        build = kernels.load(spec)
        other = build.unfused()
        assert not other.fused
        assert other.unfused() is other
        assert (other is build) == (not build.fused)
        if build.fused:
            expected = f"{spec}_unfused" if spec.startswith("native") else spec.replace("relaxed", "simd")
            assert other.spec == expected
            assert other.folder == build.folder


def test_builds_that_share_memory_work_on_the_same_arrays() -> None:
    build = kernels.load("native")
    x = build.buffer([1.0, 4.0, 9.0])
    build.unfused().function("sqrt")(x.address, x.address, 3)
    assert x.array.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cuda", "unknown kernels 'cuda'"),
        ("native:altivec", "this processor cannot run native:altivec; it can run"),
        ("native:sse2_unfused", "this processor cannot run native:sse2_unfused; it can run"),
        ("wasm:sse", "unknown variant wasm:sse"),
        ("pyodide", "inside Pyodide only"),
    ],
)
def test_unknown_specs(spec: str, message: str) -> None:
    with pytest.raises(webrnn.BackendError, match=message):
        kernels.load(spec)


def test_a_folder_without_builds(tmp_path: Path) -> None:
    with pytest.raises(webrnn.BackendError, match="no compiled kernels"):
        kernels.load("wasm:simd", tmp_path)


def test_a_build_that_is_missing(tmp_path: Path) -> None:
    shutil.copy(kernels.FOLDER / "kernels.json", tmp_path)
    with pytest.raises(webrnn.BackendError, match=r"wasm_simd.wasm was not built"):
        kernels.load("wasm:simd", tmp_path)


def test_a_module_that_is_not_wasm(tmp_path: Path) -> None:
    shutil.copy(kernels.FOLDER / "kernels.json", tmp_path)
    (tmp_path / "wasm_simd.wasm").write_bytes(b"\0asm nonsense")
    with pytest.raises(webrnn.BackendError, match=r"wasm_simd.wasm is not a module"):
        kernels.load("wasm:simd", tmp_path)


def test_without_wasmtime_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['wasmtime'] = None; from webrnn.engine.kernels.loading import load; load('wasm:simd')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "BackendError: the wasm backend needs wasmtime: pip install 'webrnn[wasm]'" in result.stderr


def start(home: Path | str) -> None:
    code = "from webrnn.engine import kernels; kernels.load('wasm:scalar')"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    subprocess.run([sys.executable, "-c", code], env=environment | {"HOME": str(home)}, check=True)


def test_compiled_modules_are_kept_on_disk(tmp_path: Path) -> None:
    start(tmp_path)
    kept = {file for file in tmp_path.rglob("*") if file.is_file() and file.suffix == ""}
    assert kept
    start(tmp_path)
    assert {file for file in tmp_path.rglob("*") if file.is_file() and file.suffix == ""} == kept


def test_a_home_that_cannot_be_written_does_not_matter() -> None:
    start("/proc/nowhere")


def test_a_processor_without_avx2_gets_sse2(monkeypatch: pytest.MonkeyPatch) -> None:
    if json.loads((kernels.FOLDER / "kernels.json").read_text())["native_isas"].get("sse2") is None:
        pytest.skip("not an x86 machine")

    class OldProcessor:
        wr_isa_level = staticmethod(lambda: 0)

        def __getitem__(self, name: str) -> object:
            return native.ctypes.CDLL(str(kernels.FOLDER / "native.so"))[name]

    monkeypatch.setattr(native, "_library", lambda folder: OldProcessor())
    old = kernels.load("native")
    assert old.spec == "native:sse2"
    assert not old.fused
    assert old.unfused() is old
    x, y = old.buffer([4.0, 9.0]), old.empty(2)
    old.sqrt(x, y, 2)
    assert y.array.tolist() == [2.0, 3.0]


def test_views_follow_memory_that_grows() -> None:
    """A Buffer stays valid, whatever is allocated later: its view is made from where memory is now."""
    k = kernels.load("wasm:simd")
    x = k.buffer([1.0, 4.0])
    before = k._memory.size(k._store)
    y = k.empty(64 * wasm.PAGE // 4)
    assert k._memory.size(k._store) > before
    k.sqrt(x, y, 2)
    assert y.array[:2].tolist() == [1.0, 2.0]
    x.array[0] = 9.0
    k.sqrt(x, y, 2)
    assert y.array[0] == 3.0


def test_wasm_memory_has_an_end() -> None:
    k = kernels.load("wasm:simd")
    with pytest.raises(webrnn.BackendError, match="4 GiB"):
        k.empty(1 << 32, np.uint8)
    assert k.buffer([2.0]).array.tolist() == [2.0]


def test_buffers_of_another_build_are_refused() -> None:
    a, b = kernels.load("wasm:simd"), kernels.load("wasm:simd")
    with pytest.raises(ValueError, match="belongs to wasm:simd"):
        a.exp(b.buffer([1.0]), a.empty(1), 1)


def test_parts_stay_inside() -> None:
    k = kernels.load("native")
    buffer = k.buffer(np.arange(8))
    assert buffer.part(8, 2).array.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="outside a buffer"):
        buffer.part(28, 2)


def test_gather_refuses_bad_indices_before_writing() -> None:
    for spec in ("native", "wasm"):
        k = kernels.load(spec)
        src, dst = k.buffer([1.0, 2.0, 3.0]), k.buffer([-1.0, -1.0])
        for index in ([0, 3], [0, -4]):
            assert k.gather(src, k.buffer(index, np.int64), dst, 1, 3, 4, 2) == 2
        assert dst.array.tolist() == [-1.0, -1.0]


ALIVE_AT_THE_END = """
import numpy, wasmtime
from webrnn.engine.kernels.loading import load
numpy.kept = [load("wasm:relaxed"), load("wasm:simd"), wasmtime.WasmtimeError("an error")]
"""


def test_kernels_that_live_until_the_end_go_quietly() -> None:
    """numpy's modules are among the last that the interpreter takes apart."""
    done = subprocess.run([sys.executable, "-c", ALIVE_AT_THE_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
