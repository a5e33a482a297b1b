"""Results inside Pyodide are those of the native build, bit for bit: with small weights everywhere, in float32 where
the engine's relaxed SIMD is fused."""

import json
from pathlib import Path

import pytest

from pyodide_pkg.suite.bits import digest
from webrnn.engine.kernels import loading as kernels

ROOT = Path(__file__).resolve().parents[3]
EXPECTED = json.loads((ROOT / "expected_bits.json").read_text())


def test_there_is_something_to_compare_with():
    assert len(EXPECTED) >= 48 or EXPECTED == {"": "the processor has no fused multiply-add"}


@pytest.mark.parametrize("key", [key for key in EXPECTED if key])
def test_same_bits(key):
    name, weights = key.split()
    if weights == "f32" and not kernels.load("pyodide").fused:
        pytest.skip("this engine has no relaxed SIMD")
    (file,) = [*ROOT.glob(f".cache/models/{name}.onnx"), *ROOT.glob(f"bench_models/{name}.onnx")]
    assert digest(name, file, "pyodide", weights) == EXPECTED[key]
