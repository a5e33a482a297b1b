"""A graph on the VM: one plan where that is possible, otherwise plans for each shape and numpy for what has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webrnn import net
from webrnn.checks.graphs import NO_CONDITIONS, SizeConditions, check_graph
from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Graph, Node, Value
from webrnn.plan.encode import compile_graph
from webrnn.plan.lower import refusals, with_named_sizes
from webrnn.plan.lowering import NotLowered, foreign_reason
from webrnn.plan.split import split
from webrnn.shapes.facts import Facts
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
    least_side: int | None = None
    """See webrnn.plan.lower."""

    def plan(self, graph: Graph, conditions: SizeConditions = NO_CONDITIONS) -> PlanProgram:
        data = compile_graph(graph, self.options, conditions=conditions.conditions, least_side=self.least_side)
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
        self._for_shapes: dict[tuple[Any, ...], Any] = {}
        self._lock = new_lock(self)
        self._untyped = graph if any(value.dtype is None and not value.container for value in graph.inputs) else None
        """The graph, if an input has no element type: then numpy runs it, which looks at what it gets."""
        self._unplanned: Graph | None = None
        """The graph, if it has no plan for all sizes."""
        self._has_containers = any(value.container for value in (*graph.inputs, *graph.outputs))
        self.is_whole = False
        """Whether the last run ran on the VM alone."""
        try:
            self.plan = setting.plan(with_named_sizes(graph), conditions)
        except NotLowered as reason:
            from ..executor.executor import require_implementations  # as below

            require_implementations(graph)
            self._unplanned = graph
            setting.say(f"no plan for all sizes: {reason}")

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        if self.plan is not None:
            try:
                results = self.plan.run(arguments, budget=budget)
                self.recent, self.is_whole = self.plan, True
                return results
            except ShapeError:
                self._conditions.require(arguments)  # which node does not allow these sizes, if that is known
                raise
            except PlanError as reason:  # sizes for which the plan does not hold
                self._setting.say(f"not by the plan for all sizes: {reason}")
        self._conditions.require(arguments)
        shapes = self._key(arguments)
        with self._lock:
            program = self._for_shapes.get(shapes)
            if program is None:
                while len(self._for_shapes) >= MOST_SHAPES:
                    self._for_shapes.pop(next(iter(self._for_shapes)))
                program = self._for_shapes[shapes] = self._program_for(arguments)
        self.recent = program if isinstance(program, PlanProgram) else None
        self.is_whole = isinstance(getattr(program, "program", program), PlanProgram)
        try:
            return program.run(arguments, budget=budget)
        except PlanError as reason:  # no plan holds for these sizes: numpy runs them, or says why not
            self._setting.say(f"in numpy, for {list(map(list, shapes_of(arguments)))}: {reason}")
            self.recent, self.is_whole = None, False
            graph = self._graph_for(shapes_of(arguments))
            program = self._for_shapes[shapes] = SplitProgram(graph, self._setting, None)
            return program.run(arguments, budget=budget)

    def _key(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        if not self._has_containers:
            return shapes_of(arguments)
        from .open_containers import structure_of

        return tuple(map(structure_of, arguments))

    def _after_fork(self, was_held: bool) -> None: ...

    def ran_on(self, arguments: Sequence[Any]) -> PlanProgram | SplitProgram:
        """What the last run, of these arguments, ran on."""
        return self.recent if self.recent is not None else self._for_shapes[self._key(arguments)]

    def plan_for(self, shapes: tuple[tuple[int, ...], ...]) -> PlanProgram:
        """A plan for inputs of these shapes only."""
        try:
            return self._setting.plan(self._graph_for(shapes))
        except NotLowered as reason:
            from .obstacles import listed, obstacles

            found = obstacles(self._graph_for(shapes), self._setting.options) or [str(reason)]
            raise PlanError(listed("there is no plan for these shapes", found)) from reason

    def obstacles(self) -> list[str]:
        """What keeps it from having a plan for all sizes."""
        from .obstacles import obstacles

        return [] if self._unplanned is None else obstacles(self._unplanned, self._setting.options)

    def obstacles_for_some_shapes(self) -> list[str] | None:
        """What keeps it from having a plan for made-up shapes; None if it takes none of those that are tried."""
        from .obstacles import obstacles_for_some_shapes

        return obstacles_for_some_shapes(self._source, self._graph_for, self._setting.options)

    def _program_for(self, arguments: Sequence[Any]) -> Any:
        if self._untyped is not None:
            return SplitProgram(self._untyped, self._setting, None)
        if self._has_containers:
            from .open_containers import OpenProgram, open_outputs, with_open_inputs

            graph = self._optimized(with_open_inputs(self._source, arguments))
            results = open_outputs(graph)
            self._setting.optimize(graph)
            return OpenProgram(self._planned(graph), results)
        return self._planned(self._graph_for(shapes_of(arguments)))

    def _planned(self, graph: Graph) -> Any:
        try:
            return self._setting.plan(graph)
        except NotLowered as reason:
            return SplitProgram(graph, self._setting, reason)

    def _graph_for(self, shapes: tuple[tuple[int, ...], ...]) -> Graph:
        return self._optimized(with_shapes(self._source, shapes))

    def _optimized(self, graph: Graph) -> Graph:
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
            why = _reason_for_numpy(node, facts)
            if why is not None:
                setting.say(f"in numpy: {node.op} {node.label}: {why}")
                refused.add(node)
        for refusal in refusals(graph, setting.options):
            if refusal.outermost is not None and refusal.outermost not in refused:
                setting.say(f"in numpy: {refusal}")
                refused.add(refusal.outermost)
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


def _reason_for_numpy(node: Node, facts: Facts) -> str | None:
    """Why a node is left to numpy without an attempt to lower it."""
    foreign = foreign_reason(node, facts)
    if foreign is not None:
        return foreign
    for value in (*node.inputs, *node.outputs):
        if value is not None and facts.dtype(value) is None:
            return f"the element type of {value.name} is not known before it runs"
    return None


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
