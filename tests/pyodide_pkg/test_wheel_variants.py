"""The built wheel on engines that know relaxed SIMD, SIMD only, and neither: each gets the best it can run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import webrnn
from pyodide_pkg import core, distribution
from tests.engine.stream_models import INPUTS, stateful
from tests.pyodide_pkg import engines

SCRIPT = Path(__file__).with_name("run_variants.py")
HIDDEN, STEPS = 37, 20


@dataclass
class Outcome:
    available: list[str]
    runs: dict[str, str]
    """By backend, the kernels that ran, or the error."""
    results: dict[str, list[np.ndarray]]


@dataclass
class Wheel:
    folder: Path
    temporary: Path
    feeds: dict[str, np.ndarray]

    @property
    def model(self) -> Path:
        return self.temporary / "model.onnx"

    def run(self, node: str, backends: Sequence[str], flags: Sequence[str] = ()) -> Outcome:
        files = [self.temporary / name for name in ("model.onnx", "feeds.npz", "results.npz")]
        said = core.run(
            SCRIPT, *files, *backends, folder=self.folder, packages=["webrnn"], node_command=node, node_flags=flags
        )
        found, arrays = json.loads(said.splitlines()[-1]), np.load(files[-1])
        results = {
            backend: [arrays[name] for name in arrays.files if name.startswith(f"{backend} ")] for backend in backends
        }
        return Outcome(found["available"], found["runs"], results)

    def expected(self, variant: str) -> list[np.ndarray]:
        """What the same variant gives under wasmtime."""
        return webrnn.InferenceSession(str(self.model), backend=f"wasm:{variant}").run(None, self.feeds)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    temporary = tmp_path_factory.mktemp("variants")
    (temporary / "model.onnx").write_bytes(stateful("LSTM", hidden=HIDDEN).SerializeToString())
    rng = np.random.default_rng(11)
    shapes = {"x": (STEPS, 2, INPUTS), "h_in": (1, 2, HIDDEN), "c_in": (1, 2, HIDDEN)}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    np.savez(temporary / "feeds.npz", **feeds)
    return Wheel(distribution.ensure(), temporary, feeds)


def assert_same_bits(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected) == 3
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def test_engine_with_relaxed_simd(wheel: Wheel) -> None:
    outcome = wheel.run(engines.newest_node(), ["auto", "pyodide:simd", "pyodide:scalar"])
    assert outcome.available == ["pyodide:relaxed", "pyodide:simd", "pyodide:scalar"]
    assert outcome.runs == {
        "auto": "pyodide:relaxed",
        "pyodide:simd": "pyodide:simd",
        "pyodide:scalar": "pyodide:scalar",
    }
    for backend, variant in outcome.runs.items():
        assert_same_bits(outcome.results[backend], wheel.expected(variant.partition(":")[2]))
    assert_same_bits(outcome.results["auto"], webrnn.InferenceSession(str(wheel.model)).run(None, wheel.feeds))


def test_engine_without_relaxed_simd(wheel: Wheel) -> None:
    outcome = wheel.run(engines.node_without_relaxed(), ["auto", "pyodide:relaxed"])
    assert outcome.available == ["pyodide:simd", "pyodide:scalar"]
    assert outcome.runs["auto"] == "pyodide:simd"
    assert outcome.runs["pyodide:relaxed"].startswith("BackendError: this JavaScript engine cannot run")
    assert_same_bits(outcome.results["auto"], wheel.expected("simd"))


@pytest.mark.skipif(not engines.CAN_SWITCH_OFF_SIMD, reason="V8 can be without SIMD on x86-64 only")
def test_engine_without_simd(wheel: Wheel) -> None:
    assert not engines.knows(engines.newest_node(), "simd", *engines.NO_SIMD)
    outcome = wheel.run(engines.newest_node(), ["auto", "pyodide:simd"], engines.NO_SIMD)
    assert outcome.available == ["pyodide:scalar"]
    assert outcome.runs["auto"] == "pyodide:scalar"
    assert outcome.runs["pyodide:simd"].startswith("BackendError: this JavaScript engine cannot run")
    assert_same_bits(outcome.results["auto"], wheel.expected("scalar"))


def test_environment_variable_chooses(wheel: Wheel) -> None:
    outcome = wheel.run(engines.newest_node(), ["env:simd"])
    assert outcome.runs == {"env:simd": "pyodide:simd"}
    assert_same_bits(outcome.results["env:simd"], wheel.expected("simd"))
