"""From an optimized graph to a program.

`lower(graph)` walks the nodes in order; `lowerings/` has one function for each op that gives instructions or, for ops
that only look at their operand in another way, views. What has none raises `NotLowered`, which names the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from webrnn import net
from webrnn.checks.check import Condition
from webrnn.checks.graphs import check_node
from webrnn.errors import Error
from webrnn.ir import Dim, DType, Graph, Node, Scan, TraceSpec, Value, is_scan
from webrnn.ir.dims import TooComplex, is_nonnegative
from webrnn.ir.fused import is_expression
from webrnn.passes.facts import Facts
from webrnn.passes.infer_shapes import infer, trip_count

from .opcodes import MAX_RANK
from .program import ExpressionInstruction, ExpressionOp, Instruction, Operand, Port, Program
from .views import Sizes, Storage, View, collapsed, count_of, dense_like, dense_view

RESHAPING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
"""Ops that keep their elements in order: their operand is made where their result has to be."""

MAY_REFUSE_ELEMENTS = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})
"""Ops whose operands say where to look."""

DTYPES = {DType.FLOAT: "f32", DType.INT64: "i64", DType.BOOL: "u8", DType.INT32: "i32"}


class NotLowered(Exception):
    """A node that has no instructions, and why."""

    def __init__(self, node: Node | None, reason: str):
        super().__init__(f"{node.op} {node.label}: {reason}" if node else reason)
        self.node, self.reason = node, reason
        self.outermost = node
        """The node of the outermost graph that it is, or is inside of."""


Rule: TypeAlias = Callable[["Lowering", Node], None]


def lower(
    graph: Graph,
    options: frozenset[str] = frozenset(),
    most_steps: int = 2**31 - 1,
    conditions: Sequence[Condition] = (),
) -> Program:
    """The program of a graph whose passes have run.

    `options` switches alternatives off: "fused_sequences". `most_steps` bounds loops that only a condition ends: it
    makes room for their outputs. How many steps a run may take is not a matter of the plan. The program holds only for
    sizes that meet the `conditions`.
    """
    try:
        lowering = Lowering(graph, options, most_steps)
        lowering.require_conditions(conditions)
        return lowering.run()
    except (NotLowered, Error):
        raise
    except TooComplex as error:
        raise NotLowered(None, str(error)) from error
    except Exception as error:
        raise NotLowered(None, net.catch(error)) from error


class Lowering:
    """The state of one lowering. Rules use its methods and nothing else."""

    def __init__(self, graph: Graph, options: frozenset[str], most_steps: int):
        self.graph, self.options, self.most_steps = graph, options, most_steps
        self.facts: Facts = infer(graph)
        self.views: dict[Value, View] = {}
        self.destinations: dict[Value, View] = {}
        """Where the result of a node has to be, for values that somebody has a place for."""
        self.overwriting: set[Value] = set()
        """Results whose destination holds the value before, which the nodes up to theirs still read."""
        self.arrays: dict[Value, np.ndarray] = {}
        self.block: list[Instruction] = []
        self.n_loops = 0
        self.node: Node | None = None
        self._constants: dict[tuple[int, str], Storage] = {}
        self._kept: list[np.ndarray] = []
        self._number_vectors: dict[tuple[float, ...], np.ndarray] = {}
        self.n_externals = 0
        self.late: dict[Value, Node] = {}
        """Products that are made, in parts, by the one node that reads them."""
        self._ports: dict[int, Value] = {}
        self._required: set[Dim] = set()
        """The sizes of which this block, or one around it, already requires that they are not negative."""
        self.taken: dict[Value, int] = {}
        """Values that are as long as a loop took steps, and the external that says how many."""

    # --- graphs ------------------------------------------------------------------------------------------------------

    def run(self) -> Program:
        for values in (self.graph.inputs, self.graph.outputs):
            if len({value.name for value in values}) < len(set(values)):
                raise NotLowered(None, "two inputs or two outputs have the same name")
        inputs = [self._input(value) for value in self.graph.inputs]
        for value in self.graph.outputs:
            self._place_output(value)
        self.lower_graph(self.graph)
        return Program(inputs, [self._output_port(value) for value in self.graph.outputs], self.block)

    def new_loop(self) -> int:
        self.n_loops += 1
        return self.n_loops - 1

    def new_external(self) -> int:
        self.n_externals += 1
        return self.n_externals - 1

    def _input(self, value: Value) -> Port:
        shape, dtype = self.shape(value), self.dtype(value)
        port = Port(value.name, dtype, shape, self.new_external())
        storage = Storage("external", dtype, count_of(shape), external=port.external, writable=False, label=value.name)
        self.views[value] = dense_view(storage, shape)
        return port

    def _place_output(self, value: Value) -> None:
        """Let the node that makes an output write it where the host wants it."""
        made_here = value not in self.graph.inputs and value not in self.graph.constants
        if made_here and value not in self.destinations and not self.has_open_length(value):
            try:
                self.destinations[value] = self.external(self.shape(value), self.dtype(value), value.name)
            except NotLowered as refusal:
                refusal.outermost = self.graph.producers().get(value)
                raise

    def _output_port(self, value: Value) -> Port:
        view = self.view(value)
        used = {port for port, other in self._ports.items() if other is not value}
        if view.storage.kind != "external" or not view.storage.writable or view.storage.external in used:
            target = self.external(view.shape, view.dtype, value.name)
            self.copy(view, target)
            view = target
        elif not view.is_at(self.destinations.get(value, view)):
            raise AssertionError(f"{value.name} is not where it should be")
        self._ports[view.storage.external] = value
        return Port(value.name, view.dtype, view.shape, view.storage.external, self.taken.get(value, -1))

    def external(self, shape: Sequence[Dim], dtype: str, label: str = "") -> View:
        """A new buffer of the host that the program writes."""
        storage = Storage("external", dtype, count_of(shape), external=self.new_external(), label=label)
        return dense_view(storage, shape)

    def has_open_length(self, value: Value) -> bool:
        """Whether it is an output of a loop that may end early, which nothing else reads: the host cuts it."""
        producer = self.graph.producers().get(value)
        if producer is None or not is_scan(producer) or value in self.graph.consumers():
            return False
        scan = Scan.of(producer)
        if self.graph.outputs.count(value) > 1 or trip_count(scan, self.facts) is not None:
            return False
        return any(trace.whole is value and trace.spec == TraceSpec() for trace in scan.traces)

    def lower_graph(self, graph: Graph) -> None:
        """Emit what the outputs of a graph need; its inputs have views already."""
        from .lowerings.sequences import late_projections

        self.arrays.update(graph.constants)
        if "fused_sequences" not in self.options:
            self.late.update(late_projections(self, graph))
        needed = set(graph.outputs)
        nodes = []
        for node in reversed(graph.nodes):
            if self._may_refuse_elements(node) or any(
                output in needed for output in node.outputs if output is not None
            ):
                nodes.append(node)
                needed.update(self._read_inputs(node))
        self._hand_back_destinations(graph, nodes)
        for node in reversed(nodes):
            try:
                self._lower_node(node)
            except NotLowered as refusal:
                refusal.outermost = node
                raise
        for output in graph.outputs:
            self.view(output)

    def _hand_back_destinations(self, graph: Graph, nodes_from_last: Sequence[Node]) -> None:
        """What only gives its operand another shape, or puts operands side by side, copies nothing where these can be
        made in the right place."""
        made_here = {output for node in graph.nodes for output in node.outputs if output is not None}
        consumers = graph.consumers()
        for node in nodes_from_last:
            if (node.domain, node.op) == ("", "Concat"):
                only_here = {part for part in node.inputs if part is not None and consumers[part] == [node]}
                self._hand_back_parts(node, (only_here & made_here) - {*graph.outputs})
                continue
            output, source = (node.outputs or [None])[0], (node.inputs or [None])[0]
            target = self.destinations.get(output) if output is not None else None
            if target is None or source is None or source in self.destinations or source not in made_here:
                continue
            if not node.domain and node.op in RESHAPING:
                shape = self.facts.shape(source)
                if shape is None or any(size is None for size in shape):
                    continue
                placed = target.reshaped([size for size in shape if size is not None])
                if placed is not None:
                    self.destinations[source] = placed
                    if output in self.overwriting:
                        self.overwriting.add(source)

    def _hand_back_parts(self, concat: Node, private: Collection[Value]) -> None:
        """Places in the result of a Concat for those of its operands that only it reads."""
        output, parts = present(concat.outputs[0]), [present(part) for part in concat.inputs]
        shapes = [self.facts.shape(value) for value in (output, *parts)]
        if not private or output in self.overwriting:
            return
        if self._is_known(output) or self.facts.dtype(output) not in DTYPES:
            return
        if any(shape is None or None in shape for shape in shapes):
            return
        target = self.destinations.get(output)
        if target is None:
            target = self.destinations[output] = self.temporary(self.shape(output), self.dtype(output))
        axis = attribute(concat, "axis", 0) % target.rank
        start: Dim = 0
        for part in parts:
            shape = self.shape(part)
            place = target.sliced(axis, start, shape[axis])
            if part in private and part not in self.destinations and place.shape == shape:
                self.destinations[part] = place
            start = start + shape[axis]

    def _may_refuse_elements(self, node: Node) -> bool:
        """Whether it may raise because of the elements of its operands: then it runs also where only the shape of its
        result is read, as it does in numpy."""
        if node.domain or node.op not in MAY_REFUSE_ELEMENTS:
            return False
        return not all(self._is_known(output) for output in node.outputs if output is not None)

    def _read_inputs(self, node: Node) -> list[Value]:
        """The operands whose elements its instructions read: not those that only say how, such as a shape."""
        from .lowerings import READS_FIRST_ONLY

        if all(self._is_known(output) for output in node.outputs if output is not None):
            return []
        inputs = node.inputs[:1] if not node.domain and node.op in READS_FIRST_ONLY else node.inputs
        return [value for value in inputs if value is not None]

    def _lower_node(self, node: Node) -> None:
        from .lowerings import RULES

        if any(output in self.late for output in node.outputs):
            return
        outer, self.node = self.node, node
        self._check(node)
        if all(self._is_known(output) for output in node.outputs if output is not None):
            for output in node.outputs:
                if output is not None:
                    self._emit_known(output)
        else:
            rule = RULES.get((node.domain, node.op))
            if rule is None:
                raise NotLowered(node, "it has no instruction")
            self._apply(rule, node)
            for output in node.outputs:
                if output is not None:
                    self._settle(output)
        self.node = outer

    def _apply(self, rule: Rule, node: Node) -> None:
        try:
            rule(self, node)
        except (NotLowered, Error):
            raise
        except TooComplex as error:
            raise NotLowered(node, str(error)) from error
        except Exception as error:
            raise NotLowered(node, net.catch(error)) from error

    def _check(self, node: Node) -> None:
        """Of what is not allowed numpy says so, if it comes to it: it may stand in a branch that is never taken."""
        try:
            for each in (*node.attrs["body"].nodes, node) if is_expression(node) else (node,):
                self.require_conditions(check_node(each, self.facts))
        except Error as error:
            raise self.refuse(error.message) from error

    def _is_known(self, value: Value) -> bool:
        """Whether it is integers that follow from sizes, such as a shape."""
        fact = self.facts.of(value)
        known = fact.content is not None and all(element is not None for element in fact.content)
        return known and fact.dtype is DType.INT64

    def _emit_known(self, value: Value) -> None:
        content = self.facts.of(value).content
        assert content is not None
        numbers = [element for element in content if element is not None]
        if all(isinstance(element, int) for element in numbers):
            self.arrays[value] = np.array(numbers, np.int64).reshape([int(str(d)) for d in self.shape(value)])
            return
        self.emit("sizes", self.output(value), rest=numbers)

    def _settle(self, value: Value) -> None:
        """Bring a result to its destination if its rule has not."""
        target = self.destinations.get(value)
        if target is not None and value in self.views and not self.views[value].is_at(target):
            self.copy(self.views[value], target)
            self.views[value] = target

    # --- what rules ask ----------------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> NotLowered:
        return NotLowered(self.node, reason)

    def shape(self, value: Value) -> Sizes:
        shape = self.facts.shape(value)
        if shape is None or any(size is None for size in shape):
            raise self.refuse(f"the shape of {value.name} is not known before it runs")
        return tuple(size for size in shape if size is not None)

    def dtype(self, value: Value) -> str:
        found = DTYPES.get(self.facts.dtype(value) or DType.STRING)
        if found is None or value.container:
            raise self.refuse(f"{value.name} is not a tensor of float, int64, int32 or bool")
        return found

    def ints(self, value: Value | None) -> list[int]:
        """An operand that must be known as numbers."""
        found = self.facts.of(value).ints
        if found is None:
            raise self.refuse("an operand that says how is not a constant")
        return list(found)

    def array(self, value: Value | None) -> np.ndarray | None:
        return None if value is None else self.arrays.get(value)

    def view(self, value: Value) -> View:
        """Where the elements of a value are."""
        if value not in self.views:
            array = self.arrays.get(value)
            if array is None:
                raise self.refuse(f"{value.name} is not there")
            self.views[value] = self.constant(array)
        return self.views[value]

    def constant(self, array: np.ndarray) -> View:
        dtype = DTYPES.get(DType.of(array))
        if dtype is None:
            raise self.refuse(f"a constant of {array.dtype}")
        key = (id(array), dtype)
        if key not in self._constants:
            self._kept.append(array)
            stored = array.astype(np.uint8) if dtype == "u8" else array
            self._constants[key] = Storage("constant", dtype, array.size, stored, writable=False)
        return dense_view(self._constants[key], array.shape)

    def packed(self, weights: np.ndarray) -> View:
        """Constant weights [k, n] in the form that products take."""
        return self.packed_once(weights, lambda array: array)

    def packed_once(self, weights: np.ndarray, arrange: Callable[[np.ndarray], np.ndarray]) -> View:
        """Constant weights that have to be brought into the form [k, n] first, always in the same way."""
        from .lowerings.linear import pack

        key = (id(weights), "packed")
        if key not in self._constants:
            self._kept.append(weights)
            array = pack(arrange(weights))
            self._constants[key] = Storage("constant", "f32", array.size, array, writable=False)
        return dense_view(self._constants[key], (self._constants[key].size,))

    def number_vector(self, numbers: tuple[float, ...]) -> View:
        if numbers not in self._number_vectors:
            self._number_vectors[numbers] = np.array(numbers, np.float32)
        return self.constant(self._number_vectors[numbers])

    def output(self, value: Value) -> View:
        """Where a rule writes a result: its destination, or new memory."""
        if value not in self.views:
            self.views[value] = self.destinations.get(value) or self.temporary(self.shape(value), self.dtype(value))
        return self.views[value]

    def output_like(self, value: Value, views: Sequence[View]) -> View:
        """Where an element-wise rule writes a result: stored in the order of the operands of its shape."""
        if value not in self.views and value not in self.destinations:
            shape = self.shape(value)
            alike = next((view for view in views if view.shape == shape), None)
            if alike is not None:
                storage = self.temporary(shape, self.dtype(value)).storage
                self.views[value] = dense_like(storage, shape, alike.storage_order)
        return self.output(value)

    def dense_output(self, value: Value) -> View:
        """Where a rule that writes without gaps writes a result; if its destination has gaps it is copied later."""
        if not self.output(value).is_contiguous:
            self.views[value] = self.temporary(self.shape(value), self.dtype(value))
        return self.views[value]

    def temporary(self, shape: Sequence[Dim], dtype: str = "f32") -> View:
        label = self.node.label if self.node else ""
        return dense_view(Storage("arena", dtype, count_of(shape), label=label), shape)

    def dense(self, view: View) -> View:
        """The elements without gaps: copied if there are some."""
        if view.is_contiguous:
            return view
        copied = self.temporary(view.shape, view.dtype)
        self.copy(view, copied)
        return copied

    def reshaped(self, view: View, shape: Sequence[Dim]) -> View:
        found = view.reshaped(shape)
        if found is None:
            found = self.dense(view).reshaped(shape)
            assert found is not None
        return found

    def require_not_negative(self, size: Dim) -> None:
        """Let the plan hold only for sizes for which this one is not negative."""
        if isinstance(size, int):
            if size < 0:
                raise self.refuse("a size would be negative")
        elif not is_nonnegative(size) and size not in self._required:
            self._required.add(size)
            self.emit("require", size)

    def require_equal(self, a: Dim, b: Dim) -> None:
        """Let the plan hold only for sizes for which these are the same."""
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise self.refuse(f"{a} and {b} should be the same size")
        self.require_not_negative(a - b)
        self.require_not_negative(b - a)

    def require_conditions(self, conditions: Iterable[Condition]) -> None:
        """Let the plan hold only for sizes with which all nodes are allowed. A choice is left out: where it is open
        which operand is repeated nothing is lowered."""
        for condition in conditions:
            if not condition.is_choice and not condition.steps:
                self.require_not_negative(condition.size)
                if condition.is_zero:
                    self.require_not_negative(-condition.size)

    # --- emitting ----------------------------------------------------------------------------------------------------

    def emit(self, name: str, *operands: Operand, rest: Sequence[Dim] = ()) -> None:
        self.add(Instruction(name, list(operands), list(rest)))

    def add(self, instruction: Instruction) -> None:
        for view in instruction.views():
            if view.rank > MAX_RANK:
                raise self.refuse(f"a tensor of {view.rank} axes")
        instruction.node = self.node.label if self.node else ""
        self.block.append(instruction)

    def copy(self, source: View, target: View) -> None:
        self.emit("copy", *collapsed([source, target]))

    def expression(
        self,
        inputs: Sequence[View],
        outputs: Sequence[tuple[View, int]],
        constants: Sequence[tuple[str, float | int]],
        ops: Sequence[ExpressionOp],
    ) -> None:
        """An element-wise expression; inputs are broadcast to the shape of the outputs."""
        shape = outputs[0][0].shape
        fitted = []
        for view in inputs:
            repeated = view.broadcast(shape)
            if repeated is None:
                raise self.refuse("it is not known how its operands are broadcast")
            fitted.append(repeated)
        views = collapsed([*fitted, *(view for view, _ in outputs)])
        targets = [(view, register) for view, (_, register) in zip(views[len(inputs) :], outputs, strict=True)]
        self.add(
            ExpressionInstruction(
                "expression",
                [],
                inputs=views[: len(inputs)],
                outputs=targets,
                constants=list(constants),
                ops=list(ops),
            )
        )

    def in_block(self, emit: Callable[[], None]) -> list[Instruction]:
        """What `emit` emits, as a block of its own."""
        outer, self.block = self.block, []
        required, self._required = self._required, set(self._required)
        try:
            emit()
            return self.block
        finally:
            self.block, self._required = outer, required


def present(value: Value | None) -> Value:
    """An operand or result that the op always has."""
    if value is None:
        raise NotLowered(None, "an operand is missing")
    return value


def attribute(node: Node, name: str, default: Any) -> Any:
    value = node.attrs.get(name)
    return default if value is None else value


def rules(*tables: Mapping[tuple[str, str], Rule]) -> dict[tuple[str, str], Rule]:
    return {key: rule for table in tables for key, rule in table.items()}
