"""Many streams of a model in one run: which axis of each input and output counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from webrnn.errors import Error
from webrnn.ir import DType, Graph, Symbol, SymbolicDim, Value, is_scan
from webrnn.ir.dims import Shape
from webrnn.passes.rewriting import Names
from webrnn.shapes.infer import infer

from ..programs.backends import Program
from ..programs.plan_program import PlanProgram

if TYPE_CHECKING:
    from .streaming import StreamingModel

BATCH = Symbol("streams")
MOST_ATTEMPTS = 64


@dataclass(frozen=True)
class Batched:
    """A plan that takes many streams, and the axes of its inputs and outputs that count them.

    That an output has such an axis does not yet say that the streams are independent of each other: who uses the plan
    has to try it.
    """

    program: PlanProgram
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def find_batched(
    graph: Graph,
    pairs: Sequence[tuple[int, int]],
    optimize: Callable[[Graph], object],
    make_program: Callable[[Graph, Graph], Program],
    time: Mapping[str, int] | None = None,
) -> Batched | str:
    """A plan for many streams of a model with these (input, output) pairs of states, or why there is none.

    `make_program` takes the graph after and before the passes. The axes of inputs that are `time` count no streams.
    """
    frames = time or {}
    options = [[axis for axis in _options(value) if axis != frames.get(value.name)] for value in graph.inputs]
    if not options or not all(options):
        return "an input has no axis that could count streams"
    reason = "no axis of the inputs goes through to all outputs"
    for axes in islice(_likeliest_first(graph.inputs, options), MOST_ATTEMPTS):
        source = _with_batch(graph, axes)
        if any(_is_without_batch(shape) for shape in _output_shapes(source)):
            continue
        optimized = source.copy()
        optimize(optimized)
        found = [_axis_of_batch(shape) for shape in _output_shapes(optimized)]
        outputs = tuple(axis for axis in found if axis is not None)
        if len(outputs) < len(found) or any(axes[before] != outputs[after] for before, after in pairs):
            continue
        if _decides(optimized):
            reason = "a branch or the end of a loop is decided for all streams at once"
            continue
        try:
            plan = getattr(make_program(optimized, source), "plan", None)
        except Error as error:
            reason = f"a node does not take several streams: {error}"
            continue
        if plan is not None:
            return Batched(plan, axes, outputs)
        reason = "there is no plan that takes any number of streams"
    return reason


def batched_plan(model: StreamingModel) -> Batched | str:
    """The plan of a file, if it was exported for many streams and they carry what it says."""
    plan = model.program
    if not isinstance(plan, PlanProgram) or plan.file.pool is None:
        return "the plan was exported for one stream: export(..., pool=True) makes one for many"
    stored = {(state.input, state.output) for state in plan.file.states}
    if {(model.inputs[before].name, model.outputs[after].name) for before, after in model.pairs} != stored:
        return "the plan runs streams side by side only with the states that it was exported with"
    return Batched(plan, plan.file.pool.inputs, plan.file.pool.outputs)


def _with_batch(graph: Graph, axes: Sequence[int]) -> Graph:
    """A copy of a graph that takes many streams. Its other sizes are numbers or have names."""
    copied = graph.copy()
    has_fixed = False
    for value, axis in zip(copied.inputs, axes, strict=True):
        assert value.shape is not None
        has_fixed |= value.shape[axis] == 1
        shape: Shape = tuple(Symbol(f"{value.name}.{i}") if dim is None else dim for i, dim in enumerate(value.shape))
        value.shape = tuple(BATCH if i == axis else dim for i, dim in enumerate(shape))
    if has_fixed:
        _open_reshapes(copied)
    return copied


def _open_reshapes(graph: Graph) -> None:
    """Let each Reshape of all streams to a shape for one of them, [1, 128], take as many as come: [-1, 128].

    In which 1 the exporter meant the batch is a guess.
    """
    names = Names(graph)
    facts = infer(graph)
    for node in graph.nodes:
        if node.op != "Reshape" or node.domain:
            continue
        data, target = node.inputs[:2]
        assert data is not None
        assert target is not None
        shape, source = graph.constants.get(target), facts.shape(data)
        if shape is None or source is None or BATCH not in source or 1 not in shape or (shape < 1).any():
            continue
        opened = shape.copy()
        opened[list(shape).index(1)] = -1
        value = Value(names.fresh("opened_shape"), DType.INT64, shape.shape)
        graph.constants[value] = opened
        node.inputs[1] = value
        facts = infer(graph)


def _options(value: Value) -> list[int]:
    """The axes that may count streams: of size 1, of a named size, or of an unknown one."""
    if value.container or value.shape is None:
        return []
    return [axis for axis, dim in enumerate(value.shape) if dim == 1 or dim is None or isinstance(dim, SymbolicDim)]


def _likeliest_first(inputs: Sequence[Value], options: Sequence[list[int]]) -> Iterator[tuple[int, ...]]:
    """Assignments in which all axes have the same name first, then those near the front."""

    def same_name(axes: tuple[int, ...]) -> bool:
        dims = {value.shape[axis] for value, axis in zip(inputs, axes, strict=True) if value.shape is not None}
        return len(dims) == 1 and isinstance(next(iter(dims)), SymbolicDim)

    attempts = list(islice(product(*options), 4 * MOST_ATTEMPTS))
    return iter(sorted(attempts, key=lambda axes: (not same_name(axes), sum(axes))))


def _output_shapes(graph: Graph) -> list[Shape | None]:
    facts = infer(graph)
    return [facts.shape(value) for value in graph.outputs]


def _is_without_batch(shape: Shape | None) -> bool:
    return shape is not None and None not in shape and _axis_of_batch(shape) is None


def _axis_of_batch(shape: Shape | None) -> int | None:
    if shape is None:
        return None
    axes = [axis for axis, dim in enumerate(shape) if dim == BATCH]
    return axes[0] if len(axes) == 1 else None


def _decides(graph: Graph) -> bool:
    """Whether data decide what is run. There is one decision for a run, not one for each stream."""
    nodes = [node for inner in graph.walk() for node in inner.nodes]
    return any(node.op == "If" or (is_scan(node) and node.attrs["spec"].has_condition) for node in nodes)
