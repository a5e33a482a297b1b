"""What the rules of `lowerings/` stand on: where values are, what is known of them, and emitting instructions.

A rule is a function for an op that gives instructions or, for ops that only look at their operand in another way,
views. What cannot be lowered raises `NotLowered`, which names the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from webrnn.checks.check import Condition
from webrnn.ir import REFUSED, Dim, DType, Graph, Node, Scan, Symbol, Value, is_scan
from webrnn.ir.dims import LateName, is_nonnegative
from webrnn.ops.registry import Registry
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer

from .draft import ExpressionInstruction, ExpressionOp, Instruction, Operand
from .file import ELEMENT_TYPES
from .instructions import ROWS
from .numbers import Numbers
from .opcodes import GRAIN, MAX_RANK, PANEL
from .views import Sizes, Storage, View, collapsed, count_of, dense_like, dense_view

DTYPES = {dtype: name for name, dtype in ELEMENT_TYPES.items()}
"""Of tensors that plans have."""

MOST_NUMBERS = 20
"""That say how and are read while running: they and what is done with them have to fit into one expression."""


class NotLowered(Exception):
    """A node that has no instructions, and why."""

    def __init__(self, node: Node | None, reason: str):
        super().__init__(f"{node.op} {node.label}: {reason}" if node else reason)
        self.node, self.reason = node, reason
        self.outermost = node
        """The node of the outermost graph that it is, or is inside of."""


_CONTAINERS = {"seq": "a sequence", "optional": "an optional value", "map": "a map"}


def _kind(value: Value, dtype: DType | None) -> str:
    if value.container:
        return _CONTAINERS.get(value.container[0], value.container[0])
    return "of a type that is not known before it runs" if dtype is None else f"a tensor of {dtype.text}"


def foreign_reason(node: Node, facts: Facts) -> str | None:
    """Why the VM cannot hold what a node takes or gives: it has no sequences, no optionals and not all types; or why a
    node is not allowed."""
    if node.domain == REFUSED:
        return str(node.attrs["error"].message)
    if is_scan(node):
        for state in Scan.of(node).states:
            held = next((value for value in (state.init, state.body_out) if value.container), None)
            if held is not None:
                return f"the loop carries {_kind(held, None)}, {state.body_in[0].name}"
    for values, verb in ((node.inputs, "takes"), (node.outputs, "gives")):
        for value in values:
            dtype = facts.dtype(value)
            if value is not None and (value.container or (dtype is not None and dtype not in DTYPES)):
                return f"it {verb} {_kind(value, dtype)}, {value.name}"
    return None


Rule: TypeAlias = Callable[["Lowering", Node], None]

rule: Registry[Rule] = Registry("plan", f"{__package__}.lowerings.{{}}")


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
        self._derived: dict[tuple[int, str], np.ndarray] = {}
        self._number_vectors: dict[tuple[float, ...], np.ndarray] = {}
        self.n_externals = 0
        self.late: dict[Value, Node] = {}
        """Products that are made, in parts, by the one node that reads them."""
        self.packings: dict[Value, View] = {}
        """Matrices that are not constant in the form that products take, where this block or one around it made it."""
        self._ports: dict[int, Value] = {}
        self._required: set[Dim | tuple[Dim, ...]] = set()
        """The sizes of which this block, or one around it, already requires that they are not negative."""
        self.n_late = 0
        """Sizes that are set while running."""

    # --- graphs ------------------------------------------------------------------------------------------------------

    def lower_graph(self, graph: Graph) -> None:
        """Emit what the outputs of a graph need; its inputs have views already."""
        raise NotImplementedError

    def new_loop(self) -> int:
        self.n_loops += 1
        return self.n_loops - 1

    def new_external(self) -> int:
        self.n_externals += 1
        return self.n_externals - 1

    def external(self, shape: Sequence[Dim], dtype: str, label: str = "") -> View:
        """A new buffer of the host that the program writes."""
        storage = Storage("external", dtype, count_of(shape), external=self.new_external(), label=label)
        return dense_view(storage, shape)

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
            raise self.refuse(f"{value.name} is {_kind(value, self.facts.dtype(value))}")
        return found

    def ints(self, value: Value | None) -> list[int]:
        """An operand that must be known as numbers."""
        found = self.facts.of(value).ints
        if found is None:
            raise self.refuse("an operand that says how is not a constant")
        return list(found)

    def is_open(self, value: Value | None) -> bool:
        """Whether the shape of a value is not known yet."""
        shape = self.facts.shape(value)
        return shape is None or None in shape

    def set_shape(self, value: Value, shape: Sequence[Dim]) -> None:
        """Let a value have a shape that was found out while lowering the node that makes it."""
        self.facts.set(value, replace(self.facts.of(value), shape=tuple(shape)))

    # --- sizes that are known only while running ---------------------------------------------------------------------

    def new_late(self) -> Dim:
        """A size that instructions set while running."""
        self.n_late += 1
        return Symbol(LateName(f"late{self.n_late - 1}"))

    def late_names(self, first: int) -> frozenset[str]:
        """The names of the late sizes from a number on."""
        return frozenset(LateName(f"late{number}") for number in range(first, self.n_late))

    def late_size(self, number: View, least: int = 0) -> Dim:
        """The size that a tensor of one element holds."""
        size = self.new_late()
        self.emit("let", size, number, least)
        return size

    def set_sizes(self, sizes: Sequence[Dim], numbers: Sequence[Dim]) -> None:
        """Set late sizes to what others are, all at once."""
        if sizes:
            vector = self.temporary((len(sizes),), "i64")
            self.emit("sizes", vector, rest=numbers)
            for index, size in enumerate(sizes):
                self.emit("let", size, vector.without_axis(0, index), 0)

    def number_of(self, size: Dim) -> View:
        """A tensor of one element that holds a size."""
        vector = self.temporary((1,), "i64")
        self.emit("sizes", vector, rest=[size])
        return vector.without_axis(0)

    def elements(self, value: Value) -> list[Dim | View]:
        """The elements of an operand that says how: those that are known, and where the others are."""
        fact = self.facts.of(value)
        count = count_of(self.shape(value))
        if not isinstance(count, int):
            raise self.refuse(f"how many numbers {value.name} has is not known")
        if count > MOST_NUMBERS:
            raise self.refuse(f"{value.name} has {count} numbers that say how")
        content = fact.content or (None,) * count
        if None not in content:
            return [element for element in content if element is not None]
        where = self.reshaped(self.view(value), (count,))
        if where.dtype not in ("i64", "i32"):
            where = self.cast(where, "i64")
        return [where.without_axis(0, index) if element is None else element for index, element in enumerate(content)]

    def content_now(self, value: Value) -> list[Dim]:
        """The elements of an operand all of which are sizes; from now on they are known as such."""
        numbers = Numbers(self)
        sizes = numbers.let(*(numbers.of(element) for element in self.elements(value)))
        self.facts.set(value, replace(self.facts.of(value), content=tuple(sizes)))
        return sizes

    def broadcast_sizes(self, shapes: Sequence[Sequence[Dim]]) -> Sizes:
        """What shapes are together; `fitted` makes sure that each of them fits."""
        rank = max(len(shape) for shape in shapes)
        found: list[Dim] = []
        for axis in range(-rank, 0):
            sizes = dict.fromkeys(shape[axis] for shape in shapes if -axis <= len(shape) and shape[axis] != 1)
            known = [size for size in sizes if isinstance(size, int)]
            if known or len(sizes) < 2:
                found.append([*known, *sizes, 1][0])
                continue
            numbers = Numbers(self)
            size, *others = map(numbers.of, sizes)
            for other in others:
                size = numbers.where(size.is_equal(1), other, size)
            found += numbers.let(size)
        return tuple(found)

    def fitted(self, view: View, shape: Sequence[Dim]) -> View:
        """Repeated to a shape; whether a size is 1 may be known only while running."""
        repeated = view.broadcast(shape)
        if repeated is not None:
            return repeated
        missing = len(shape) - view.rank
        if missing < 0:
            raise self.refuse("it is not known how its operands are broadcast")
        strides: list[Dim] = [0] * missing
        for have, need, stride in zip(view.shape, shape[missing:], view.strides, strict=True):
            if have == need or have == 1:
                strides.append(stride if have == need else 0)
                continue
            numbers = Numbers(self)
            is_one = numbers.of(have).is_equal(1)
            numbers.demand(is_one | numbers.of(have).is_equal(need))
            strides += numbers.let(numbers.where(is_one, 0, stride), signed=1)
        return view.relaid(shape, strides)

    # -----------------------------------------------------------------------------------------------------------------

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
            stored = array.astype(np.uint8) if dtype == "bool" else array
            self._constants[key] = Storage("constant", dtype, array.size, stored, writable=False)
        return dense_view(self._constants[key], array.shape)

    def packed(self, weights: np.ndarray) -> View:
        """Constant weights [k, n] in the form that products take."""
        return self.packed_once(weights, lambda array: array)

    def packed_once(self, weights: np.ndarray, arrange: Callable[[np.ndarray], np.ndarray]) -> View:
        """Constant weights that have to be brought into the form [k, n] first, always in the same way."""
        key = (id(weights), "packed")
        if key not in self._constants:
            self._kept.append(weights)
            array = pack(arrange(weights))
            self._constants[key] = Storage("constant", "f32", array.size, array, writable=False)
        return dense_view(self._constants[key], (self._constants[key].size,))

    def packed_matrix(self, value: Value) -> View:
        """A matrix [k, n] in the form that products take; one that is not constant is packed once for all of them."""
        array = self.array(value)
        if array is not None:
            return self.packed(array)
        if value not in self.packings:
            matrix = self.cast(self.view(value), "f32")
            k, n = matrix.shape
            self.packings[value] = self.temporary((packed_size(n, k),))
            self.emit("pack", matrix, self.packings[value])
        return self.packings[value]

    def once(self, key: tuple[int, str], array: np.ndarray, make: Callable[[], np.ndarray]) -> np.ndarray:
        """What is made of a constant, the same whenever it is asked for."""
        if key not in self._derived:
            self._kept.append(array)
            self._derived[key] = make()
        return self._derived[key]

    def number_vector(self, numbers: tuple[float, ...]) -> View:
        if numbers not in self._number_vectors:
            self._number_vectors[numbers] = np.array(numbers, np.float32)
        return self.constant(self._number_vectors[numbers])

    def output(self, value: Value) -> View:
        """Where a rule writes a result: its destination, or new memory."""
        if value not in self.views:
            self.views[value] = self.destinations.get(value) or self._new_place(value)
        return self.views[value]

    def _new_place(self, value: Value) -> View:
        """New memory; that of the host for an output whose size is known only now."""
        shape, dtype = self.shape(value), self.dtype(value)
        is_output = value in self.graph.outputs and value not in self.graph.inputs
        return self.external(shape, dtype, value.name) if is_output else self.temporary(shape, dtype)

    def output_like(self, value: Value, views: Sequence[View]) -> View:
        """Where an element-wise rule writes a result: stored in the order of the operands of its shape."""
        is_output = value in self.graph.outputs and value not in self.graph.inputs
        if value not in self.views and value not in self.destinations and not is_output:
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
        """Let the plan hold only for sizes with which all nodes are allowed, those too that a pass took away. In a loop
        of no steps a condition need not hold: its product with 0 does."""
        for condition in conditions:
            if condition.factors:
                self._demand_a_zero((*condition.factors, *condition.steps))
                continue
            size = condition.size
            for count in condition.steps:
                size = size * count
            self.require_not_negative(size)
            if condition.is_zero:
                self.require_not_negative(-size)

    def _demand_a_zero(self, sizes: tuple[Dim, ...]) -> None:
        """Let a run end with an error unless one of these is 0. Their product would overflow."""
        if sizes in self._required:
            return
        self._required.add(sizes)
        numbers = Numbers(self)
        holds = numbers.of(sizes[0]).is_equal(0)
        for size in sizes[1:]:
            holds = holds | numbers.of(size).is_equal(0)
        numbers.demand(holds)

    # --- trying ------------------------------------------------------------------------------------------------------

    def checkpoint(self) -> tuple[Any, ...]:
        """What `go_back` needs to undo all that was done since."""
        tables: list[dict[Any, Any]] = [
            self.views, self.destinations, self.arrays, self.late, self.packings, self._ports,
        ]  # fmt: skip
        numbers = len(self.block), self.n_loops, self.n_externals
        return *numbers, set(self._required), self.facts.copy(), *map(dict, tables)

    def go_back(self, kept: tuple[Any, ...]) -> None:
        length, self.n_loops, self.n_externals, required, facts, *tables = kept
        del self.block[length:]
        self._required, self.facts = set(required), facts.copy()
        self.views, self.destinations, self.arrays, self.late, self.packings, self._ports = map(dict, tables)

    # --- emitting ----------------------------------------------------------------------------------------------------

    def emit(self, name: str, *operands: Operand, rest: Sequence[Dim] = ()) -> None:
        self.add(Instruction(name, list(operands), list(rest)))

    def add(self, instruction: Instruction) -> None:
        for view in instruction.views():
            if view.rank > MAX_RANK:
                raise self.refuse(f"a tensor of {view.rank} axes")
        for operand, given in zip(ROWS[instruction.name].operands, instruction.operands, strict=False):
            if isinstance(given, View) and operand.type not in ("any", given.dtype):
                raise self.refuse(f"it is not of {operand.type}, but of {given.dtype}")
        instruction.node = self.node.label if self.node else ""
        self.block.append(instruction)

    def copy(self, source: View, target: View) -> None:
        if source.dtype != target.dtype:
            raise self.refuse(f"{source.dtype} where {target.dtype} should be")
        self.emit("copy", *collapsed([source, target]))

    def cast(self, view: View, dtype: str) -> View:
        """The elements as another type, by the rules of ONNX's Cast."""
        if view.dtype == dtype:
            return view
        target = dense_like(self.temporary(view.shape, dtype).storage, view.shape, view.storage_order)
        self.cast_to(view, target)
        return target

    def cast_to(self, source: View, target: View) -> None:
        self.expression([source], [(target, 1)], [], [ExpressionOp(f"to_{target.dtype}", (0,), 1.0)])

    def expression(
        self,
        inputs: Sequence[View],
        outputs: Sequence[tuple[View, int]],
        constants: Sequence[tuple[str, float | int]],
        ops: Sequence[ExpressionOp],
    ) -> None:
        """An element-wise expression; inputs are broadcast to the shape of the outputs."""
        shape = outputs[0][0].shape
        fitted = [self.fitted(view, shape) for view in inputs]
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
        packings, self.packings = self.packings, dict(self.packings)
        try:
            emit()
            return self.block
        finally:
            self.block, self._required, self.packings = outer, required, packings


def present(value: Value | None) -> Value:
    """An operand or result that the op always has."""
    if value is None:
        raise NotLowered(None, "an operand is missing")
    return value


def attribute(node: Node, name: str, default: Any) -> Any:
    value = node.attrs.get(name)
    return default if value is None else value


def packed_size(n: Dim, k: Dim) -> Dim:
    """Floats of the packed form of a product with n results of k terms; for a size that is not known, at most."""
    return -(-n // GRAIN) * GRAIN * k if isinstance(n, int) else (n + GRAIN - 1) * k


def pack(weights: np.ndarray) -> np.ndarray:
    """[k, n] in panels, as wr_pack_panels writes them.

    >>> pack(np.arange(4, dtype=np.float32).reshape(2, 2))[:3], pack(np.zeros((2, 30))).shape
    (array([0., 1., 0.], dtype=float32), (64,))
    """
    k, n = weights.shape
    width = -(-n // GRAIN) * GRAIN
    padded = np.zeros((k, width), np.float32)
    padded[:, :n] = weights
    return np.concatenate(
        [padded[:, first : first + PANEL].reshape(-1) for first in range(0, width, PANEL)] or [padded.reshape(-1)]
    )
