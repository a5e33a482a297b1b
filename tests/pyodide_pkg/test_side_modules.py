"""The side modules inside a real Pyodide under Node: they load, and give the bits of the other builds."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyodide_pkg import core
from tests.plan.endless import nested_loops
from tests.wasm_kernels.harness import run, same_bits
from wasm_kernels import build
from wasm_kernels.cases import Case, grid
from wasm_kernels.table import KERNELS, Kernel
from webrnn.engine.kernels import loading as kernels
from webrnn.plan.instructions import EXACT
from webrnn.plan.opcodes import ERROR_ROWS

SCRIPT = Path(__file__).with_name("call_kernels.py")


@pytest.fixture(scope="session", autouse=True)
def pyodide() -> Path:
    return core.ensure()


def chosen_cases() -> list[tuple[Kernel, Case]]:
    rng = np.random.default_rng(5)
    return [(kernel, case) for kernel in KERNELS for case in list(grid(kernel, rng))[::7]]


def encoded(kernel: Kernel, case: Case, variant: str) -> dict[str, Any]:
    def argument(name: str) -> Any:
        if name in case.outputs:
            size, dtype = case.outputs[name]
            return {"data": base64.b64encode(bytes(size * np.dtype(dtype).itemsize)).decode()}
        value = case.arguments[name]
        return {"data": base64.b64encode(value.tobytes()).decode()} if isinstance(value, np.ndarray) else value

    types, names = zip(*kernel.parameters, strict=True)
    return {"symbol": f"{kernel.symbol}_{variant}", "types": types, "arguments": [argument(name) for name in names]}


def inside_pyodide(module: Path, cases: list[tuple[Kernel, Case]], folder: Path) -> list[list[np.ndarray]]:
    """What the kernels of a side module write, in the form of harness.run."""
    variant = module.stem.removeprefix("pyodide_")
    (folder / "cases.json").write_text(json.dumps([encoded(*pair, variant) for pair in cases]))
    core.run(SCRIPT, module, folder / "cases.json", folder / "results.json")
    answers = []
    for (kernel, case), buffers in zip(cases, json.loads((folder / "results.json").read_text()), strict=True):
        arrays = [n for _, n in kernel.parameters if n in case.outputs or isinstance(case.arguments.get(n), np.ndarray)]
        by_name = dict(zip(arrays, buffers, strict=True))
        outputs = [(name, dtype) for name, (_, dtype) in case.outputs.items() if name != "scratch"]
        answers.append([np.frombuffer(base64.b64decode(by_name[name]), dtype) for name, dtype in outputs])
    return answers


def differing(
    cases: list[tuple[Kernel, Case]], some: list[list[np.ndarray]], others: list[list[np.ndarray]]
) -> list[str]:
    """Labels of the cases in which two builds differ where the kernel writes at all."""
    labels = []
    for (kernel, case), a, b in zip(cases, some, others, strict=True):
        if kernel.kind in ("gemm", "copy"):  # gaps between rows hold what was there before
            written = [np.flatnonzero(x.view(np.uint8)) for x in a]
            a, b = ([x.view(np.uint8)[w] for x, w in zip(side, written, strict=True)] for side in (a, b))
        if not all(map(same_bits, a, b)):
            labels.append(f"{kernel.name}({case.label})")
    return labels


@pytest.mark.parametrize("variant", ["relaxed", "simd", "scalar"])
def test_side_module_agrees_with_wasmtime(variant: str, tmp_path: Path) -> None:
    cases = chosen_cases()
    wasm = kernels.load(f"wasm:{variant}")
    ours = inside_pyodide(kernels.FOLDER / f"pyodide_{variant}.wasm", cases, tmp_path)
    assert differing(cases, ours, [run(wasm, *pair) for pair in cases]) == []


@pytest.mark.skipif(not shutil.which("emcc"), reason="emscripten is not installed and could not be: not covered here")
@pytest.mark.parametrize("variant", ["simd", "scalar"])
def test_emcc_and_zig_side_modules_agree(variant: str, tmp_path: Path) -> None:
    cases = chosen_cases()
    name = f"pyodide_{variant}.wasm"
    zig = inside_pyodide(kernels.FOLDER / name, cases, tmp_path)
    emcc = inside_pyodide(build.ROOT / "build" / "emcc" / name, cases, tmp_path)
    assert differing(cases, zig, emcc) == []


def limited(module: Path, folder: Path) -> list[str]:
    """What ends a plan that does not end, for limits of each kind."""
    (folder / "nested.rnn").write_bytes(nested_loops(EXACT, EXACT))
    core.run(SCRIPT.with_name("run_limited.py"), module, folder / "nested.rnn", folder / "returned.json")
    return [ERROR_ROWS[number].text for number in json.loads((folder / "returned.json").read_text())]


ENDED = [row.text for row in ERROR_ROWS if row.limit]


@pytest.mark.parametrize("variant", ["relaxed", "simd", "scalar"])
def test_limits_of_steps_and_time(variant: str, tmp_path: Path) -> None:
    assert limited(kernels.FOLDER / f"pyodide_{variant}.wasm", tmp_path) == ENDED


@pytest.mark.skipif(not shutil.which("emcc"), reason="emscripten is not installed and could not be: not covered here")
def test_limits_of_steps_and_time_with_emcc(tmp_path: Path) -> None:
    assert limited(build.ROOT / "build" / "emcc" / "pyodide_simd.wasm", tmp_path) == ENDED
