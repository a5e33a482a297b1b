"""The wheel that emcc's side modules are in beside the one that zig's are in: the same files, the same bits."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

from pyodide_pkg import core, distribution
from pyodide_pkg.core import SetupError
from pyodide_pkg.suite import bits, bundle
from webrnn import models
from webrnn.bench.models import BUILT_IN, FURTHER

SCRIPT = Path(__file__).with_name("inside.py")
VARIANTS = ("scalar", "simd", "relaxed")
MODULES = {f"webrnn/_kernels/pyodide_{variant}.wasm" for variant in VARIANTS}


def files(wheel: Path) -> dict[str, bytes]:
    """What is in a wheel, without the list of hashes."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def differing(some: Path, others: Path) -> set[str]:
    """The files that only one of two wheels has, or that are different."""
    a, b = files(some), files(others)
    return {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


def require_same(some: Path, others: Path) -> None:
    if different := differing(some, others):
        raise SetupError(f"{some} and {others} differ in {', '.join(sorted(different))}")


def require_other_modules(emcc: Path, zig: Path) -> None:
    """The wheels differ in the three side modules, and in nothing else."""
    if (different := differing(emcc, zig)) != MODULES:
        raise SetupError(
            f"{emcc} and the wheel with zig's side modules should differ in these alone, "
            f"but differ in {', '.join(sorted(different)) or 'nothing'}"
        )


def require_same_bits(emcc: Path, with_real_models: bool) -> str:
    """Models give the same bits on each of emcc's side modules as on zig's, and on that of relaxed SIMD the bits of the
    native library. Returns what was compared."""
    with tempfile.TemporaryDirectory() as temporary:
        chosen = _models(Path(temporary), with_real_models)
        folder = distribution.of_wheel(emcc, Path(temporary, "pyodide"))
        found, expected = (_digests(which, chosen) for which in (folder, distribution.ensure()))
        native = _native(chosen)
    builds = {key.rpartition(" ")[2] for key in expected}
    if builds != {f"pyodide:{variant}" for variant in VARIANTS}:
        raise SetupError(f"this Node runs {', '.join(sorted(builds))} only: Node 24 runs relaxed SIMD too")
    wrong = sorted(key for key in expected if found.get(key) != expected[key])
    wrong += [f"{key} (native)" for key in native if found.get(f"{key} pyodide:relaxed") != native[key]]
    if wrong:
        raise SetupError("emcc's side modules give other bits than zig's:\n    " + "\n    ".join(wrong))
    beside = f" and {len(native)} as on {bits.reference_backend()}" if native else ""
    return f"{len(chosen)} models, {len(expected)} results with the bits of zig's side modules{beside}"


def _models(folder: Path, with_real_models: bool) -> list[Path]:
    real = [models.fetch(name, bundle.MODELS) for name in models.MODELS] if with_real_models else []
    files = {folder / f"{name}.onnx": make for name, make in (BUILT_IN | FURTHER).items()}
    for file, make in files.items():
        file.write_bytes(make())
    return [*files, *real]


def _digests(pyodide: Path, chosen: list[Path]) -> dict[str, str]:
    said = core.run(SCRIPT, core.ROOT, *chosen, folder=pyodide, packages=["webrnn"])
    found: dict[str, str] = json.loads(said.splitlines()[-1])
    return found


def _native(chosen: list[Path]) -> dict[str, str]:
    """Nothing, if this processor has no fused multiply-add."""
    backend = bits.reference_backend()
    if backend is None:
        return {}
    return {
        f"{file.stem} {weights}": bits.digest(file.stem, file, backend, weights)
        for file in chosen
        for weights in ("f32", "int8")
    }
