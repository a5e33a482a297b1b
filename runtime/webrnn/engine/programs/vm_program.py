"""A graph on the VM: one plan where that is possible, otherwise plans for each shape and numpy for what has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webrnn import net
from webrnn.checks.graphs import NO_CONDITIONS, SizeConditions, check_graph
from webrnn.errors import ModelError, PlanError
from webrnn.ir import Graph, Node, Symbol, Value
from webrnn.ir.dims import Shape
from webrnn.plan.encode import compile_graph
from webrnn.plan.lowering import NotLowered
from webrnn.plan.split import has_foreign_operands, split
from webrnn.shapes.infer import infer

from ..forking import new_lock
from ..kernels.loading import Kernels
from ..limits import Budget, Limits
from .plan_program import PlanProgram

if TYPE_CHECKING:
    from ..executor.executor import Executor

MOST_SHAPES = 16
"""Plans that are kept for a graph that needs one for each shape of its inputs."""


@dataclass(frozen=True)
class Setting:
    """What is the same for all parts of a program."""

    kernels: Callable[[], Kernels]
    limits: Limits = field(default_factory=Limits)
    optimize: Callable[[Graph], Any] = lambda graph: None
    """Runs the passes again, on a graph whose sizes are known."""
    options: frozenset[str] = frozenset()
    say: Callable[[str], None] = lambda line: None
    """Called with a line for each decision that a reader of the report should know of."""

    def plan(self, graph: Graph, conditions: SizeConditions = NO_CONDITIONS) -> PlanProgram:
        data = compile_graph(graph, self.options, conditions=conditions.conditions)
        try:
            return PlanProgram(data, self.kernels(), fills_outputs=True, limits=self.limits)
        except PlanError as error:
            raise NotLowered(None, net.catch(error)) from error


class VmProgram:
    """Runs a graph. A plan for all sizes is made at once if there is one; others when inputs of a shape first come."""

    def __init__(
        self,
        graph: Graph,
        setting: Setting,
        source: Graph | None = None,
        conditions: SizeConditions = NO_CONDITIONS,
    ):
        """`source` is the graph before the passes: when sizes are known they can do more to it."""
        self._source, self._setting, self._conditions = source or graph, setting, conditions
        self.plan: PlanProgram | None = None
        """For all sizes."""
        self.recent: PlanProgram | None = None
        """What the last run ran on."""
        self._for_shapes: dict[tuple[tuple[int, ...], ...], Any] = {}
        self._lock = new_lock(self)
        self._untyped = graph if any(value.dtype is None and not value.container for value in graph.inputs) else None
        """The graph, if an input has no element type: then numpy runs it, which looks at what it gets."""
        try:
            self.plan = setting.plan(with_named_sizes(graph), conditions)
        except NotLowered as reason:
            from ..executor.executor import require_implementations  # as below

            require_implementations(graph)
            setting.say(f"no plan for all sizes: {reason}")

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        if self.plan is not None:
            try:
                results = self.plan.run(arguments, budget=budget)
                self.recent = self.plan
                return results
            except PlanError as reason:  # sizes for which the plan does not hold
                self._setting.say(f"not by the plan for all sizes: {reason}")
        self._conditions.require(arguments)
        shapes = shapes_of(arguments)
        with self._lock:
            program = self._for_shapes.get(shapes)
            if program is None:
                while len(self._for_shapes) >= MOST_SHAPES:
                    self._for_shapes.pop(next(iter(self._for_shapes)))
                program = self._for_shapes[shapes] = self._program_for(shapes)
        self.recent = program if isinstance(program, PlanProgram) else None
        try:
            return program.run(arguments, budget=budget)
        except PlanError as reason:  # no plan holds for these sizes: numpy runs them, or says why not
            self._setting.say(f"in numpy, for {list(map(list, shapes))}: {reason}")
            self.recent = None
            program = self._for_shapes[shapes] = SplitProgram(self._graph_for(shapes), self._setting, None)
            return program.run(arguments, budget=budget)

    def _after_fork(self, was_held: bool) -> None: ...

    def ran_on(self, arguments: Sequence[Any]) -> PlanProgram | SplitProgram:
        """What the last run, of these arguments, ran on."""
        return self.recent if self.recent is not None else self._for_shapes[shapes_of(arguments)]

    def plan_for(self, shapes: tuple[tuple[int, ...], ...]) -> PlanProgram:
        """A plan for inputs of these shapes only."""
        try:
            return self._setting.plan(self._graph_for(shapes))
        except NotLowered as reason:
            raise PlanError(f"there is no plan for these shapes: {reason}") from reason

    def _program_for(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        if self._untyped is not None:
            return SplitProgram(self._untyped, self._setting, None)
        graph = self._graph_for(shapes)
        try:
            return self._setting.plan(graph)
        except NotLowered as reason:
            return SplitProgram(graph, self._setting, reason)

    def _graph_for(self, shapes: tuple[tuple[int, ...], ...]) -> Graph:
        graph = with_shapes(self._source, shapes)
        check_graph(graph, may_refuse=False)
        self._setting.optimize(graph)
        return graph


class SplitProgram:
    """A graph in parts: plans, and numpy for the nodes that have no instructions. A run of all has one budget."""

    def __init__(self, graph: Graph, setting: Setting, reason: NotLowered | None):
        """`reason` is why there is no plan of all of it; without one numpy runs all."""
        self.graph, self._limits = graph, setting.limits
        self.steps: list[tuple[list[Value], list[Value], Any]] = []
        """Inputs, outputs and program of each part."""
        if reason is None or not self._has_parts(graph, setting, reason):
            self.steps = [(graph.inputs, graph.outputs, _executor(graph, setting))]

    def _has_parts(self, graph: Graph, setting: Setting, reason: NotLowered) -> bool:
        """Find the nodes for numpy, and make the programs of the parts that remain."""
        facts = infer(graph)
        refused: set[Node] = set()
        for node in graph.nodes:
            if has_foreign_operands(node, facts):
                setting.say(f"in numpy: {node.op} {node.label}: it is not of tensors of types that plans have")
                refused.add(node)
        while True:
            if not refused or self.steps:
                if reason.outermost is None or reason.outermost in refused:
                    break
                setting.say(f"in numpy: {reason}")
                refused.add(reason.outermost)
            try:
                self._make(graph, refused, setting)
                return True
            except NotLowered as another:
                reason = another
        setting.say(f"in numpy, all of it: {reason}")
        return False

    def _make(self, graph: Graph, refused: set[Node], setting: Setting) -> None:
        parts = split(graph, refused)
        self.steps = [(part.graph.inputs, part.graph.outputs, None) for part in parts]
        for index, part in enumerate(parts):
            program = _vm_part(part.graph, setting) if part.on_vm else _executor(part.graph, setting)
            self.steps[index] = (part.graph.inputs, part.graph.outputs, program)

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        budget = budget or Budget(self._limits)
        values: dict[Value, Any] = dict(self.graph.constants)
        values.update(zip(self.graph.inputs, arguments, strict=True))
        for inputs, outputs, program in self.steps:
            given = [values[value] for value in inputs]
            lists = [each is None or isinstance(each, list) for each in given]
            if any(lists) and isinstance(program, (PlanProgram, VmProgram)):
                raise ModelError("a sequence or an optional stands where a tensor must be")
            results = program.run(given, budget=budget)
            values.update(zip(outputs, results, strict=True))
        return [values[value] for value in self.graph.outputs]


def shapes_of(arguments: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(getattr(argument, "shape", ()) for argument in arguments)


def _vm_part(graph: Graph, setting: Setting) -> Any:
    """A plan; where a size is known only when it runs, one that is made then."""
    if all(value.shape is not None and all(isinstance(dim, int) for dim in value.shape) for value in graph.inputs):
        return setting.plan(graph)
    return VmProgram(graph, setting)


def _executor(graph: Graph, setting: Setting) -> Executor:
    from ..executor.executor import Executor  # most models never need it, and a page waits for what is imported

    return Executor(graph, setting.limits, "scan_buffers" in setting.options)


def with_shapes(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> Graph:
    """A copy of a graph for inputs of given shapes."""
    copied = graph.copy()
    for value, shape in zip(copied.inputs, shapes, strict=True):
        if not value.container:
            value.shape = shape
    return copied


def with_named_sizes(graph: Graph) -> Graph:
    """The graph with a name for each size of its inputs that has none: it is one number in each run."""
    if all(value.shape is not None and None not in value.shape for value in graph.inputs):
        return graph
    named: list[Shape] = []
    for value in graph.inputs:
        if value.shape is None:
            raise NotLowered(None, f"the rank of {value.name} is not known")
        named.append(
            tuple(Symbol(f"{value.name}.{axis}") if dim is None else dim for axis, dim in enumerate(value.shape))
        )
    copied = graph.copy()
    for value, shape in zip(copied.inputs, named, strict=True):
        value.shape = shape
    return copied
