"""The build: targets, toolchains, cache, reproducibility, size."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from wasm_kernels import build, toolchains
from wasm_kernels.cases import grid
from wasm_kernels.table import KERNELS
from webrnn.engine.kernels import loading as kernels

from .harness import run, same_bits

needs_emcc = pytest.mark.skipif(
    not shutil.which("emcc"), reason="emscripten is not installed and could not be: not covered here"
)


@pytest.fixture(scope="module")
def zig() -> toolchains.Toolchain:
    return toolchains.find("zig")


def test_building_twice_gives_the_same_bytes(
    zig: toolchains.Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wasm-relaxed", "wasm-relaxed-core", "pyodide-simd"):
        files = []
        for attempt in ("first", "second"):
            monkeypatch.setattr(build, "WORK", tmp_path / attempt / "work")
            files.append(build.build(build.TARGETS[name], zig, tmp_path / attempt).read_bytes())
        assert files[0] == files[1]
        assert files[0] == (kernels.FOLDER / build.TARGETS[name].file).read_bytes()


def test_an_unchanged_target_is_not_built_again(
    zig: toolchains.Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "WORK", tmp_path / "work")
    said: list[str] = []
    for _ in range(2):
        file = build.build(build.TARGETS["wasm-scalar"], zig, tmp_path, say=said.append)
    assert "built in" in said[0]
    assert "up to date" in said[1]
    file.write_bytes(b"damaged")
    build.build(build.TARGETS["wasm-scalar"], zig, tmp_path, say=said.append)
    assert "built in" in said[2]
    assert file.read_bytes()[:4] == b"\0asm"


@pytest.mark.parametrize(
    ("name", "kilobytes"),
    [("wasm_relaxed.wasm", 215), ("wasm_relaxed_core.wasm", 160), ("wasm_relaxed_training.wasm", 145)],
)
def test_relaxed_module_is_small(name: str, kilobytes: int) -> None:
    assert (kernels.FOLDER / name).stat().st_size <= kilobytes * 1024


def test_list_names_every_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(target in printed for target in build.TARGETS)


def test_missing_toolchain_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert build.main(["--toolchain", "emcc", "--target", "wasm-simd"]) == 1
    assert capsys.readouterr().err == "error: emcc is not on PATH: apt-get install emscripten, or activate an emsdk\n"


def test_old_compiler_cannot_build_relaxed_simd() -> None:
    old = toolchains.Toolchain("emcc", ("emcc",), ("emcc",), "3.1.6", 14)
    with pytest.raises(
        toolchains.ToolchainError, match=r"^emcc 3.1.6 \(LLVM 14\) is too old for relaxed SIMD.*--toolchain zig$"
    ):
        old.require("wasm", "relaxed")
    with pytest.raises(toolchains.ToolchainError, match="WebAssembly only"):
        old.require("native", "")


def disagreements(some: kernels.Kernels, others: kernels.Kernels) -> list[str]:
    """A second opinion on a quarter of the grid: sums, polynomials, cells, windows."""
    cases = [(kernel, case) for kernel in KERNELS for case in list(grid(kernel, np.random.default_rng(3)))[::4]]
    return [
        f"{kernel.name}({case.label})"
        for kernel, case in cases
        if not all(map(same_bits, run(some, kernel, case), run(others, kernel, case)))
    ]


@needs_emcc
@pytest.mark.parametrize("variant", ["scalar", "simd"])
def test_emcc_and_zig_builds_have_the_same_bits(variant: str) -> None:
    emcc = kernels.load(f"wasm:{variant}", build.ROOT / "build" / "emcc")
    assert disagreements(emcc, kernels.load(f"wasm:{variant}")) == []


def test_clang_and_zig_builds_have_the_same_bits(tmp_path: Path) -> None:
    try:
        clang = toolchains.find("clang")
    except toolchains.ToolchainError as reason:
        pytest.skip(f"not covered here: {reason}")
    for name in ("native", "wasm-simd"):
        build.build(build.TARGETS[name], clang, tmp_path)
    build.write_bindings(tmp_path)
    for spec in ("native", "wasm:simd"):
        assert disagreements(kernels.load(spec, tmp_path), kernels.load(spec)) == []


def test_sources_compile_for_neon(zig: toolchains.Toolchain, tmp_path: Path) -> None:
    """No ARM machine runs these tests; that the NEON code is valid C is the least to know."""
    for name, header in build.generated_headers().items():
        (tmp_path / name).write_text(header)
    command = [*zig.compiler, "-target", "aarch64-linux-gnu.2.17", *build.COMMON, "-I", str(tmp_path)]
    zig.run([*command, "-c", str(build.HERE / "all.c"), "-o", str(tmp_path / "neon.o")], tmp_path)
    assert (tmp_path / "neon.o").stat().st_size > 10_000
