"""One archive with all that a run of the tests inside Pyodide needs besides Pyodide, numpy and webrnn itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from webrnn import models
from webrnn.bench.models import BUILT_IN, FURTHER

from . import bits, packages, recorded

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MODELS = ROOT / ".cache" / "models"
STAND_INS = {
    "ml_dtypes.py": "ml_dtypes.py",
    "onnx_cpp2py_export.py": "onnx/onnx_cpp2py_export.py",
    "loader.py": "onnx/backend/test/loader.py",
}
SOURCES = (  # of runtime/ what wasm_kernels reads; the package itself is in the wheel
    "tests/**/*.py",
    "tests/**/*.txt",
    "tests/build/recorded/*",
    "tests/formats/recorded/*",
    "tests/plan/old/*.json",
    "tests/plan/old/v*/*",
    "tests/training/recorded/*",
    "wasm_kernels/*.py",
    "wasm_kernels/*.[ch]",
    "runtime/webrnn/plan/*.py",
    "runtime/webrnn/ir/*.py",
    "docs/*.md",
    "pyproject.toml",
    "CHANGELOG.md",
)


def make() -> bytes:
    """Its content: sources and `.cache/models` where they are in the checkout, packages below site/."""
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_STORED) as file:
        for path, data in _members():
            file.writestr(path, data)
    return archive.getvalue()


def _members() -> Iterator[tuple[str, bytes]]:
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    for path in sorted(HERE.glob("*.py")) + sorted(HERE.glob("only_inside/*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    yield from _models()
    for name, data in packages.files():
        yield f"site/{name}", data
    for source, target in STAND_INS.items():
        yield f"site/{target}", (HERE / "stand_ins" / source).read_bytes()
    yield "site/onnx/recorded_schemas.json", recorded.schemas()
    yield "site/onnx/recorded_graphs.pickle", recorded.graphs(sorted(ROOT.glob("tests/**/*.py")))
    yield "site/onnx/backend/test/__init__.py", b""
    yield "site/onnx/backend/test/recorded_cases.pickle", _kept("cases.pickle", recorded.cases)


def _models() -> Iterator[tuple[str, bytes]]:
    """The real models, the built-in ones of `webrnn bench`, and the bits that both give natively."""
    real = {name: models.fetch(name, MODELS).read_bytes() for name in models.MODELS}
    built_in = {name: make() for name, make in {**BUILT_IN, **FURTHER}.items()}
    for name, data in real.items():
        yield f".cache/models/{name}.onnx", data
    yield ".cache/models/speech.wav", models.fetch("speech", MODELS).read_bytes()
    for name, data in built_in.items():
        yield f"bench_models/{name}.onnx", data
    backend = bits.reference_backend()
    expected = {"": "the processor has no fused multiply-add"}
    if backend is not None:
        expected = {
            f"{name} {weights}": bits.digest(name, data, backend, weights)
            for name, data in {**real, **built_in}.items()
            for weights in ("f32", "int8")
        }
    yield "expected_bits.json", json.dumps(expected).encode()


def _kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What depends on the version of onnx alone, and takes long to make."""
    file = packages.CACHE / f"onnx-{metadata.version('onnx')}-{name}"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(make())
    return file.read_bytes()
