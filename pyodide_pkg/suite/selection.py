"""Which tests run inside Pyodide: all below tests/, but for those named here and those that need what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

LEFT_OUT = {
    "tests/audio/test_plans_wake.py": "fetches models",
    "tests/audio/test_speech.py": "fetches models",
    "tests/bench": "peers",
    "tests/browser": "a browser and the page",
    "tests/cli/test_profile.py": "profiling builds",
    "tests/conformance/test_backend.py": "webrnn.onnx_backend is not in the wheel",
    "tests/corpora": "processes",
    "tests/counts": "profiling builds",
    "tests/engine/kernels/test_loading.py": "native and wasmtime builds",
    "tests/engine/test_export_trial.py": "the like of it has run; minutes here",
    "tests/engine/programs/test_plan_program.py": "native and wasmtime builds",
    "tests/engine/streams/test_interrupted_steps.py": "a step for each line of a step; minutes here",
    "tests/engine/streams/test_states.py": "names and graphs only, the same in CPython; minutes here",
    "tests/engine/test_forking.py": "processes and threads",
    "tests/examples": "processes",
    "tests/foreign": "processes and a compiler",
    "tests/formats/test_fuzz.py": "the same in CPython; minutes here",
    "tests/gradients/test_documentation.py": "reads the checkout",
    "tests/house": "reads the checkout",
    "tests/onnx/test_damaged_files.py": "minutes here",
    "tests/onnx/test_model_fuzzing.py": "processes",
    "tests/ops": "the wheel has no docstrings of internal modules, and native plans",
    "tests/passes/test_documentation.py": "the wheel has no docstrings of internal modules",
    "tests/plan/test_fuzzing.py": "a compiler",
    "tests/plan/test_host_fuzzing.py": "a compiler and processes",
    "tests/plan/test_libfuzzer.py": "a compiler",
    "tests/plan/test_rare.py": "wasmtime builds",
    "tests/plan/test_sides.py": "threads, and a native library",
    "tests/plan/test_unfused.py": "wasmtime builds",
    "tests/profile": "profiling builds",
    "tests/pyodide_pkg": "starts Pyodide itself",
    "tests/reference/test_registry.py": "reads the schemas of onnx's C++ part",
    "tests/test_packed.py": "no lzma there, and nothing that needs it",
    "tests/wasm_kernels/test_build.py": "a compiler",
    "tests/wasm_kernels/test_interleave.py": "a compiler",
    "tests/wasm_kernels/test_libraries.py": "a compiler",
    "tests/wasm_kernels/test_release.py": "makes files of a release",
    "tests/wasm_kernels/test_terminal.py": "no terminals there",
}

EVERY = {
    "tests/build/test_damage.py::*": 0,
    "tests/build/test_hdf5.py::*": 3,
    "tests/build/test_keras_cases.py::*": 8,
    "tests/build/test_tensor.py::*": 4,
    "tests/build/test_torch_cases.py::*": 4,
    "tests/conformance/test_suite.py::test_without_passes*": 0,
    "tests/engine/streams/test_pool.py::test_streams_open_and_close_at_random*": 0,
    "tests/formats/*": 5,
    "tests/gradients/test_random_graphs.py::*": 3,
    "tests/gradients/*": 8,
    "tests/models/test_silero_speech.py::*": 0,
    "tests/passes/test_fuse_cells.py::test_all_forms*": 3,
    "tests/passes/test_onnx_suite.py::test_all_passes": 0,
    "tests/passes/test_onnx_suite.py::test_each_pass_off*": 12,
    "tests/passes/test_pipeline.py::test_names_are_unique_and_documented": 0,
    "tests/passes/test_random_graphs.py::*": 12,
    "tests/plan/test_extreme_sizes.py::test_a_walk_over*": 0,
    "tests/plan/test_random_graphs.py::*": 6,
    "tests/reference/test_quantize.py::test_cast_to_narrow_floats_and_back*": 0,
    "tests/wasm_kernels/test_grid.py::*": 4,
    "tests/onnx/*": 3,
    "tests/passes/*": 3,
    "tests/plan/*": 3,
    "tests/reference/*": 3,
    "tests/shapes/*": 3,
    "tests/losses/test_functions.py::*": 8,
    "tests/training/*": 3,
}
"""Of long grids, which take minutes here: one test in so many. 0 is none: what they compare with is not here, or the
like of them has run. The first pattern that fits counts. 3 takes all variants of tests that come in pairs by turns."""


def left_out(path: str) -> str | None:
    """Why a file or folder is not looked at; None if it is."""
    return LEFT_OUT.get(path)


def chosen(ids: Sequence[str]) -> set[str]:
    """The tests that are run."""
    kept, seen = set(), dict.fromkeys(EVERY, 0)
    for test in ids:
        pattern = next((pattern for pattern in EVERY if fnmatch(test, pattern)), None)
        if pattern is not None:
            seen[pattern] += 1
            if not EVERY[pattern] or (seen[pattern] - 1) % EVERY[pattern]:
                continue
        kept.add(test)
    return kept
