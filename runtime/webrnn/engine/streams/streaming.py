"""A model prepared for streams: its pairs of states, a program that carries them, and what they start from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError
from webrnn.ir import Graph, SymbolicDim, Value
from webrnn.ir.timing import Timing
from webrnn.onnx.random import expose_counter
from webrnn.plan.file import PlanState

from ..executor.executor import Executor
from ..limits import Limits
from ..programs.backends import Program
from ..programs.plan_program import PlanProgram
from .carriers import ArrayCarrier, Carrier, PlanCarrier
from .carry import ByFrames, Carry, checked_starts, resolve
from .state_sizes import StateSizes
from .states import find_states
from .stream import Initial, Stream

SAMPLE_SIZES = (2, 3)
"""What depends on sizes that are not known is looked at for both."""


class StreamingModel:
    """Makes streams of one model that share its weights."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        pairs: list[tuple[int, int]],
        initial: Initial | None,
        graph: Graph | None = None,
        starts: Mapping[str, np.ndarray] | None = None,
        timing: Timing | None = None,
        receptive_field: int | None = None,
    ):
        """What states start from is computed (`initial`), or stored (`starts`, by input), or zeros."""
        self.program, self.inputs, self.outputs, self.pairs, self.initial = program, inputs, outputs, pairs, initial
        self.graph = graph
        """Before the passes, its states inputs and outputs; None for a plan from a file."""
        self._starts = starts or {}
        self.timing = timing
        """How the frames of its streams relate to those of the whole run, if that is known."""
        self.receptive_field = receptive_field
        """How many frames of the inputs one frame of an output depends on; None if that is all so far, or not known."""

    @staticmethod
    def of_graph(
        graph: Graph,
        carry: Carry,
        make_program: Callable[[Graph], Program],
        disable: Collection[str] = (),
        limits: Limits | None = None,
        by_frames: ByFrames | None = None,
        starts: Mapping[str, np.ndarray] | None = None,
    ) -> StreamingModel:
        """`disable` names passes that are not to run before states are looked for; `by_frames` is for
        carry="internal", `starts` for any other."""
        initial = timing = field = None
        is_internal = carry == "internal"
        named = {} if is_internal else _named_pairs(carry, graph.inputs, graph.outputs, graph)
        counter = expose_counter(graph)
        if is_internal:
            from .internal_states import expose_states  # a page waits for what is imported

            exposed = expose_states(graph, by_frames or ByFrames(), disable)
            graph, timing, field = exposed.graph, exposed.timing, exposed.receptive_field
            named, initial = dict(exposed.pairs), _initial_of(exposed.initial, limits, bool(counter))
        inputs = [value.like(value.name) for value in graph.inputs]
        outputs = [value.like(value.name) for value in graph.outputs]
        pairs = resolve({**named, **counter}, inputs, outputs)
        begins = checked_starts(starts, [inputs[before] for before, _ in pairs])
        program = make_program(graph.copy())
        return StreamingModel(
            program, inputs, outputs, pairs, initial, graph, begins, timing=timing, receptive_field=field
        )

    @staticmethod
    def of_plan(
        program: PlanProgram, inputs: Sequence[Value], outputs: Sequence[Value], carry: Carry
    ) -> StreamingModel:
        if carry == "internal":
            raise ModelError(
                'carry="internal" is chosen when a plan is exported: session.export(..., carry="internal")'
            )
        states = program.file.states
        stored = {state.input: state.output for state in states}
        if carry == "auto" and (states or program.file.timing is not None):
            carry = stored
        starts = {state.input: state.start for state in states if state.start is not None}
        return StreamingModel(
            program,
            inputs,
            outputs,
            resolve(_named_pairs(carry, inputs, outputs), inputs, outputs),
            None,
            starts=starts,
            timing=program.file.timing if carry == stored else None,
        )

    @cached_property
    def _sizes(self) -> StateSizes:
        if self.graph is not None:
            return StateSizes.of_graph(self.graph, self.pairs)
        assert isinstance(self.program, PlanProgram)
        return StateSizes.of_plan(self.program.file, self.pairs)

    def first_states(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """What the states of a stream start from, given the arguments of its first step."""
        if self.initial is not None:
            return self.initial(arguments)
        shapes = self._sizes.shapes([None if argument is None else np.shape(argument) for argument in arguments])
        states = []
        for (before, _), shape in zip(self.pairs, shapes, strict=True):
            value = self.inputs[before]
            states.append(np.zeros(shape, value.dtype.array_type if value.dtype else np.float32))
            if value.name in self._starts:
                states[-1][...] = self._starts[value.name]
        return states

    @property
    def starts_alike(self) -> bool:
        """Whether the states of all streams with feeds of the same shapes start from the same."""
        return self.initial is None or getattr(self.initial, "reads_shapes_only", False)

    def state_shapes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """The shapes of the states at the start when inputs have these shapes; none if an input has no shape yet."""
        arguments: list[Any] = [None] * len(self.inputs)
        carried = {before for before, _ in self.pairs}
        for index, value in enumerate(self.inputs):
            shape: Any = shapes.get(value.name, value.shape)
            if index in carried or value.dtype is None:
                continue
            if shape is None or not all(isinstance(size, int) for size in shape):
                return {}
            arguments[index] = np.zeros(shape, value.dtype.array_type)
        names = [self.inputs[before].name for before, _ in self.pairs]
        return {name: state.shape for name, state in zip(names, self.first_states(arguments), strict=True)}

    def start_bytes(self) -> int:
        """The memory of the states of one stream: sizes that are not known are 1."""
        return sum(state.nbytes for state in self._sample_starts(1, {}))

    def step_shapes(self, n_strides: int = 1) -> list[tuple[int, ...]]:
        """The shapes of all inputs of a step of one stream: sizes that are not known are 1."""
        time = {} if self.timing is None else self.timing.inputs
        frames = n_strides * (1 if self.timing is None else self.timing.stride)
        carried = {
            before: start.shape for (before, _), start in zip(self.pairs, self._sample_starts(1, {}), strict=True)
        }
        shapes = []
        for index, value in enumerate(self.inputs):
            sizes = [size if isinstance(size, int) else 1 for size in value.shape or ()]
            if value.name in time:
                sizes[time[value.name]] = frames
            shapes.append(carried.get(index, tuple(sizes)))
        return shapes

    def stored_states(self, shapes: Mapping[str, Sequence[int]] | None) -> list[PlanState]:
        """The states as a plan file has them, which is for all sizes or for inputs of these shapes."""
        names = [(self.inputs[before].name, self.outputs[after].name) for before, after in self.pairs]
        if self.initial is None:
            return [PlanState(before, after, self._starts.get(before)) for before, after in names]
        starts = [self._sample_starts(size, shapes or {}) for size in SAMPLE_SIZES]
        states = []
        for (before, after), samples in zip(names, zip(*starts, strict=True), strict=True):
            states.append(PlanState(before, after, _general(before, samples)))
        return states

    def _sample_starts(self, size: int, shapes: Mapping[str, Sequence[int]]) -> list[np.ndarray]:
        """What the states start from when all sizes that are not known are this one."""
        carried = {before for before, _ in self.pairs}
        arguments: list[Any] = []
        for index, value in enumerate(self.inputs):
            shape: Any = shapes.get(value.name, value.shape)
            if index in carried or shape is None or value.dtype is None:
                arguments.append(None)
                continue
            names = {name: size for dim in shape if isinstance(dim, SymbolicDim) for name in dim.names}
            numbers = [dim.substitute(names) if isinstance(dim, SymbolicDim) else dim for dim in shape]
            arguments.append(np.zeros([size if n is None else n for n in numbers], value.dtype.array_type))
        assert self.initial is not None
        return self.initial(arguments)

    def stream(self, check_finite: bool = False) -> Stream:
        return Stream(
            self.inputs, self.outputs, self.pairs, self._carriers(), self.first_states, check_finite, self.timing
        )

    def _carriers(self) -> list[Carrier]:
        """What may carry the states, the best first; the last takes all that the model takes."""
        arrays = ArrayCarrier(self.program, self.pairs)
        plan = self.program if isinstance(self.program, PlanProgram) else getattr(self.program, "plan", None)
        if plan is None or any(port.is_late for port in plan.file.outputs):
            return [arrays]
        return [PlanCarrier(plan, self.pairs), arrays]


def _named_pairs(
    carry: Carry, inputs: Sequence[Value], outputs: Sequence[Value], graph: Graph | None = None
) -> Mapping[str, str]:
    if not isinstance(carry, str):
        return carry
    if carry != "auto":
        raise ModelError(f'carry is {{"input": "output"}}, "auto" or "internal", not {carry!r}')
    return find_states(inputs, outputs, graph).carry()


def _general(name: str, samples: Sequence[np.ndarray]) -> np.ndarray | None:
    """What a state starts from whatever the sizes are, found from what it is for two of them; None is zeros."""
    first, second = samples
    if not first.any() and not second.any():
        return None
    same = first.ndim == second.ndim
    for axis in range(first.ndim if same else 0):
        if first.shape[axis] != second.shape[axis]:
            same = same and all((array == array.take([0], axis)).all() for array in (first, second))
            first, second = first.take([0], axis), second.take([0], axis)
    if not same or not np.array_equal(first, second):
        raise PlanError(f"what the state {name!r} starts from depends on a size: give shapes={{input: shape}}")
    return first


def _initial_of(graph: Graph, limits: Limits | None, counts: bool) -> Initial:
    """`counts` says that a counter, which starts at 0, is the last state."""
    executor = Executor(graph, limits)
    n_inputs = len(graph.inputs)

    def initial(arguments: Sequence[Any]) -> list[np.ndarray]:
        states = [np.array(array) for array in executor.run(list(arguments[:n_inputs]))]
        return [*states, np.zeros((), np.int64)] if counts else states

    inputs = set(graph.inputs)
    readers = [node for node in graph.nodes if node.op != "Shape" and not inputs.isdisjoint(node.inputs)]
    reads_values = readers or not inputs.isdisjoint(graph.outputs)
    is_random = any(node.op.startswith("Random") for node in graph.nodes)
    initial.reads_shapes_only = not reads_values and not is_random  # type: ignore[attr-defined]
    return initial
