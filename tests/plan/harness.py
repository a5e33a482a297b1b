"""Running a graph through a plan on every build of the kernels, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from webrnn.engine.executor.executor import Executor
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.errors import PlanError
from webrnn.ir import DType, Graph, GraphBuilder, Symbol, SymbolicDim, Value
from webrnn.plan import decode as plan_tables
from webrnn.plan.encode import compile_graph
from webrnn.plan.file import ELEMENT_TYPES
from webrnn.plan.rare import rare_parts, unfused_parts
from webrnn.reference.cast import convert
from webrnn.reference.narrow import decode, narrow_type

BUILDS = kernels.available()
CORE = "wasm:relaxed-core" if "wasm:relaxed" in BUILDS else None
"""The module that most pages load."""
SIZES: tuple[dict[str, int], ...] = ({"n": 3, "t": 5}, {"n": 1, "t": 1}, {"n": 4, "t": 2}, {"n": 0, "t": 0})
"""What the named sizes of a test are in turn, for one plan."""

_TYPES = {
    "f": DType.FLOAT, "i": DType.INT64, "j": DType.INT32, "b": DType.BOOL, "d": DType.DOUBLE, "h": DType.FLOAT16,
    "c": DType.INT8, "w": DType.UINT16, **ELEMENT_TYPES,
}  # fmt: skip
IN_PARTS = ("native in parts",) if "native" in BUILDS[0] else ()
"""Three threads of a team do every instruction in parts, however small."""


@cache
def loaded(spec: str) -> kernels.Kernels:
    if spec not in IN_PARTS:
        return kernels.load(spec)
    made = kernels.load("native", threads=3)
    made.least_work = 0
    return made


def value_type(text: str) -> tuple[DType, tuple[int | SymbolicDim, ...]]:
    """
    >>> value_type("f n 3")
    (<DType.FLOAT: 1>, (n, 3))
    """
    kind, *sizes = text.split()
    return _TYPES[kind], tuple(int(size) if size.isdecimal() else Symbol(size) for size in sizes)  # type: ignore[misc]


def graph_of(build: Callable[..., Value | Sequence[Value]], *inputs: str) -> Graph:
    """The graph that `build(builder, *inputs)` makes of inputs such as "f n 3"."""
    b = GraphBuilder("main")
    values = [b.input(f"x{i}", *value_type(text)) for i, text in enumerate(inputs)]
    outputs = build(b, *values)
    b.graph.outputs = [outputs] if isinstance(outputs, Value) else list(outputs)
    return b.graph


def arguments_of(graph: Graph, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Random inputs."""
    rng = np.random.default_rng(seed)
    found = []
    for value in graph.inputs:
        shape = [dim.substitute(sizes) if isinstance(dim, SymbolicDim) else dim for dim in value.shape or ()]
        assert value.dtype is not None
        if value.dtype is DType.BOOL:
            found.append(np.array(rng.integers(0, 2, shape), np.bool_))
        elif "FLOAT" in value.dtype.name or value.dtype is DType.DOUBLE:
            found.append(convert(np.array(rng.standard_normal(shape)), value.dtype.array_type))
        else:
            found.append(convert(np.array(rng.integers(-5, 6, shape)), value.dtype.array_type))
    return found


def has_named_sizes(graph: Graph) -> bool:
    return any(isinstance(dim, SymbolicDim) for value in graph.inputs for dim in value.shape or ())


def plan_of(graph: Graph, options: frozenset[str] = frozenset(), **settings: Any) -> bytes:
    return compile_graph(graph.copy(), options, **settings)


def run_plan(data: bytes, spec: str, runs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """The results of one program for several sets of inputs."""
    program = PlanProgram(data, loaded(spec))
    return [program.run(arguments) for arguments in runs]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, any NaN equal to any other: engines may choose its sign and payload."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        both_nan = np.isnan(a) & np.isnan(b)
        bits = f"u{a.dtype.itemsize}"
        return bool(((a.view(bits) == b.view(bits)) | both_nan).all()) if a.size else True
    return bool((a == b).all())


def assert_same_bits(results: Sequence[np.ndarray], others: Sequence[np.ndarray], what: str = "") -> None:
    for index, (a, b) in enumerate(zip(results, others, strict=True)):
        assert same_bits(np.asarray(a), np.asarray(b)), (what, index, a, b)


def assert_close(results: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float, what: str = "") -> None:
    for index, (result, want) in enumerate(zip(results, wanted, strict=True)):
        assert (result.dtype, result.shape) == (want.dtype, want.shape), (what, index, result.shape, want.shape)
        result, want = (decode(array) if narrow_type(array.dtype) else array for array in (result, want))
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, err_msg=f"{what} output {index}")


def check_graph(
    graph: Graph,
    *runs: Sequence[np.ndarray],
    sizes: Sequence[Mapping[str, int]] = SIZES,
    tolerance: float = 1e-5,
    options: frozenset[str] = frozenset(),
    builds: Sequence[str] = BUILDS,
) -> list[list[np.ndarray]]:
    """Run a graph on all builds with random inputs of these sizes, or the given ones, and the first ones again.

    Results are close to numpy's; those of builds whose multiply-adds are fused are equal bit for bit, and those of the
    others are; if only unfused builds have an instruction of the plan, all are. A core module gives them too, or
    refuses the plan if it has something rare. In parts it runs twice if something of it can run side by side.
    """
    if not runs:
        each = sizes if has_named_sizes(graph) else [{}]
        runs = tuple(arguments_of(graph, numbers, seed) for seed, numbers in enumerate(each))
    with np.errstate(all="ignore"):
        executor = Executor(graph)
        wanted = [executor.run(arguments) for arguments in runs]
    again = [*runs, runs[0]]
    data = plan_of(graph, options)
    is_unfused = bool(unfused_parts(plan_tables.decode(data)))
    first: dict[bool, tuple[str, list[list[np.ndarray]]]] = {}
    plans = [(spec, data) for spec in builds]
    if builds is BUILDS:
        beside = plan_of(graph, options, least_side=0)
        plans += [(spec, each) for spec in IN_PARTS for each in (data, beside)[: 1 + (beside != data)]]
    for spec, plan in plans:
        results = run_plan(plan, spec, again)
        for got, want in zip(results, [*wanted, wanted[0]], strict=True):
            assert_close(got, [np.asarray(array) for array in want], tolerance, spec)
        other, theirs = first.setdefault(loaded(spec).fused and not is_unfused, (spec, results))
        for got, their in zip(results, theirs, strict=True):
            assert_same_bits(got, their, f"{spec} and {other}")
    if CORE and "wasm:relaxed" in builds:
        check_core(data, again, first[not is_unfused][1])
    return next(iter(first.values()))[1]


def check_core(data: bytes, runs: Sequence[Sequence[np.ndarray]], wanted: Sequence[Sequence[np.ndarray]]) -> None:
    """The core module runs a plan as the full one does, or refuses it for something rare."""
    assert CORE is not None
    if rare := rare_parts(plan_tables.decode(data)):
        with pytest.raises(PlanError, match="needs the full module"):
            pytest.fail(f"{rare}: {run_plan(data, CORE, runs)}")
        return
    for got, want in zip(run_plan(data, CORE, runs), wanted, strict=True):
        assert_same_bits(got, want, CORE)
