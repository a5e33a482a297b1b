"""Results inside Pyodide are those of the native build, bit for bit, where the engine's relaxed SIMD is fused."""

import json
from pathlib import Path

import pytest

from pyodide_pkg.suite.bits import digest
from webrnn.engine.kernels import loading as kernels

ROOT = Path(__file__).resolve().parents[3]
EXPECTED = json.loads((ROOT / "expected_bits.json").read_text())


def test_there_is_something_to_compare_with():
    assert len(EXPECTED) >= 24 or EXPECTED == {"": "the processor has no fused multiply-add"}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name])
def test_same_bits(name):
    if not kernels.load("pyodide").fused:
        pytest.skip("this engine has no relaxed SIMD")
    (file,) = [*ROOT.glob(f".cache/models/{name}.onnx"), *ROOT.glob(f"bench_models/{name}.onnx")]
    assert digest(name, file, "pyodide") == EXPECTED[name]
