"""Scans that are nothing but linear attention: whole sequences in one instruction.

A memory [..., k, v] forgets, takes up the product of a key and a value, and is read by queries:

    kept = memory * forget                  forget [..., k, 1] or [..., 1, 1]; or all of it is kept
    taken = value                           [..., 1, v]
         or rate * (value - key kept)       the delta rule: what the memory lacks of the value; rate is one number
    memory_next = kept + key * taken
    read = query memory_next                query [..., g, k]; or the sum over k of query * memory_next

The instruction computes op by op what the loop would, so both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webrnn.ir import Dim, DType, Node, Scan, Value, is_plain
from webrnn.ir.fused import is_expression, is_linear
from webrnn.ir.scan import State, Trace, TraceSpec
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.infer import trip_count

from ..lowering import Lowering, present
from ..views import Sizes, View


class _Unlike(Exception):
    """It is something else."""


@dataclass
class MemoryLoop:
    """A loop and its operands for all steps, as the instruction takes them."""

    state: State
    trace: Trace
    sizes: tuple[Dim, ...]
    """Steps, batch, heads, rows and columns of a memory."""
    query: View
    key: View
    value: View
    forget: View | None
    rate: View | None
    is_delta: bool
    is_rounded: bool
    """Whether what is read is a sum of products that are rounded."""

    def lower(self, l: Lowering) -> None:
        steps, batch, heads, rows, columns = self.sizes
        init = l.view(self.state.init)
        final = l.dense_output(self.state.final) if self.state.final is not None else l.temporary(init.shape)
        l.copy(init, final)
        group = self.query.shape[3]
        made = l.output(present(self.trace.whole))
        read = _steps_first(made, self.trace.spec.axis).reshaped((steps, batch, heads, group, columns))
        place = (
            read if read is not None and read.strides[-1] == 1 else l.temporary((steps, batch, heads, group, columns))
        )
        memory = l.reshaped(final, (batch, heads, rows, columns))
        operands = (self.query, self.key, self.value, self.forget, self.rate, memory, place)
        l.emit("linear_attention", *operands, int(self.is_delta), int(self.is_rounded))
        if place is not read:
            l.copy(
                l.reshaped(place, _steps_first(made, self.trace.spec.axis).shape),
                _steps_first(made, self.trace.spec.axis),
            )


def match_memory(l: Lowering, scan: Scan) -> MemoryLoop | None:
    """The memory of a Scan that is nothing but one."""
    steps = trip_count(scan, l.facts)
    if steps is None or scan.iteration is not None or scan.cond is not None or scan.body_cond is not None:
        return None
    if len(scan.states) != 1 or len(scan.traces) != 1 or len(scan.body.nodes) > _MOST_NODES:
        return None
    try:
        return _Match(l, scan, steps).memory()
    except _Unlike:
        return None


_MOST_NODES = 24


def _steps_first(view: View, axis: int) -> View:
    axis %= view.rank
    return view.transposed([axis, *(other for other in range(view.rank) if other != axis)])


def _without(view: View, axis: int) -> View:
    return view.without_axis(axis % view.rank)


def _long_axes(shape: Sizes) -> list[Dim]:
    return [size for size in shape if size != 1]


class _Match:
    def __init__(self, l: Lowering, scan: Scan, steps: Dim):
        self.l, self.scan, self.steps = l, scan, steps
        self.state, self.trace = scan.states[0], scan.traces[0]
        (self.before,) = self.state.body_in
        self.makers: dict[Value, Node] = {}
        self.outer: dict[Value, Value] = {}
        """What values inside of expressions are outside."""
        for node in scan.body.nodes:
            for each in self._plain_nodes(node):
                self.makers.update((output, each) for output in each.outputs if output is not None)
        shape = self._shape(self.before)
        self._ask(len(shape) >= 2 and self._shape(self.state.body_out) == shape == l.view(self.state.init).shape)
        self._ask(self.trace.spec == TraceSpec(self.trace.spec.axis) and self.trace.whole is not None)
        self.leading, self.rows, self.columns = shape[:-2], shape[-2], shape[-1]
        self._ask(len(self.leading) <= 2)

    def memory(self) -> MemoryLoop:
        kept, added = self._kept_and_added()
        key, taken = self._factors(added)
        forget = None
        if kept is not self.before:
            _, factor = self._apart("Mul", kept, self.before)
            forget = _without(self._spread(factor, (*self.leading, self.rows, 1)), -1)
        column = _without(self._spread(key, (*self.leading, self.rows, 1)), -1)
        value, rate, is_delta = self._taken(taken, kept, column)
        query, is_rounded = self._query()
        return MemoryLoop(
            self.state,
            self.trace,
            (self.steps, *self._two(self.leading), self.rows, self.columns),
            self._with_two(query, 2),
            self._with_two(column, 1),
            self._with_two(value, 1),
            None if forget is None else self._with_two(forget, 1),
            None if rate is None else self._with_two(rate, 0),
            is_delta,
            is_rounded,
        )

    # --- the parts of a step -----------------------------------------------------------------------------------------

    def _kept_and_added(self) -> tuple[Value, Value]:
        """The terms of the next memory."""
        total = self._made("Add", self.state.body_out)
        for kept, added in (total, total[::-1]):
            if kept is self.before or self._reads(kept, self.before):
                return kept, added
        raise _Unlike

    def _reads(self, value: Value, operand: Value) -> bool:
        """Whether it is a product with this operand itself."""
        maker = self.makers.get(value)
        return maker is not None and is_plain(maker, "Mul") and operand in map(self._named, maker.inputs)

    def _factors(self, added: Value) -> tuple[Value, Value]:
        """The key, as a column, and what is taken up, as a row."""
        factors = self._made("Mul", added)
        row = (*self.leading, 1, self.columns)
        for key, taken in (factors, factors[::-1]):
            if self._is_given(key) and self._shape(key)[-1:] == (1,) and self._fits(self._shape(taken), row):
                return key, taken
        raise _Unlike

    def _taken(self, taken: Value, kept: Value, column: View) -> tuple[View, View | None, bool]:
        """The value, the rate and whether what the memory recalls is taken away from the value."""
        taken = self._through(taken)
        level = self._shape(taken)
        self._ask(level in ((*self.leading, 1, self.columns), (*self.leading, self.columns)) or self._is_given(taken))
        if self._is_given(taken):
            return self._row(taken, (*self.leading, 1, self.columns)), None, False
        rate = None
        maker = self.makers[taken]
        if is_plain(maker, "Mul"):
            factors = self._made("Mul", taken)
            given = [factor for factor in factors if self._is_given(factor) and self._shape(factor)[-1:] in ((), (1,))]
            self._ask(len(given) == 1)
            rate = _without(self._row(given[0], (*level[:-1], 1)), -1)
            taken = self._through(next(factor for factor in factors if factor is not given[0]))
        value, recalled = self._made("Sub", taken)
        recalled = self._through(recalled)
        row, matrix = self._made("MatMul", recalled)
        self._ask(matrix is kept and self._is_given(row) and self._shape(recalled) == (*self.leading, 1, self.columns))
        self._ask(self._row(row, (*self.leading, 1, self.rows)) == column)
        return self._row(value, level), rate, True

    def _query(self) -> tuple[View, bool]:
        """The queries, and whether their products are rounded before they are added."""
        read = self._through(self.trace.element)
        maker = self.makers.get(read)
        if maker is not None and is_plain(maker, "ReduceSum"):
            return self._summed_query(maker), True
        query, matrix = self._made("MatMul", read)
        shape = self._shape(query)
        self._ask(matrix is self.state.body_out and len(shape) >= 2 and isinstance(shape[-2], int) and shape[-2] > 0)
        return self._spread(query, (*self.leading, shape[-2], self.rows)), False

    def _summed_query(self, total: Node) -> View:
        """Of one column alone the terms are added in another order."""
        product, *axes = [present(value) for value in total.inputs]
        self._ask(len(axes) == 1 and isinstance(self.columns, int) and self.columns > 1)
        rank = len(self.leading) + 2
        self._ask([axis % rank for axis in self.l.facts.of(axes[0]).ints or ()] == [rank - 2])
        _, query = self._apart("Mul", product, self.state.body_out)
        self._ask(self._shape(product) == self._shape(self.before))
        column = _without(self._spread(query, (*self.leading, self.rows, 1)), -1)
        return column.with_axis(column.rank - 1)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _plain_nodes(self, node: Node) -> Iterator[Node]:
        """The nodes of an expression, or the node itself."""
        if not is_expression(node):
            yield node
            return
        body = node.attrs["body"]
        self.outer.update(zip(body.inputs, (value for value in node.inputs if value is not None), strict=True))
        self.outer.update((inner, outer) for inner, outer in zip(body.outputs, node.outputs, strict=True) if outer)
        for each in body.nodes:
            yield Node(
                each.op, [self._named(value) for value in each.inputs], [self._named(each.outputs[0])], each.attrs
            )

    def _named(self, value: Value | None) -> Value | None:
        return value if value is None else self.outer.get(value, value)

    def _made(self, op: str, value: Value) -> tuple[Value, Value]:
        """The two operands of the node that makes a value, which is of an op."""
        maker = self.makers.get(value)
        is_product = maker is not None and op == "MatMul" and is_linear(maker)
        self._ask(maker is not None and (is_plain(maker, op) or is_product) and len(maker.inputs) == 2)
        assert maker is not None
        return present(maker.inputs[0]), present(maker.inputs[1])

    def _apart(self, op: str, value: Value, operand: Value) -> tuple[Value, Value]:
        first, second = self._made(op, value)
        self._ask(operand in (first, second))
        return operand, second if first is operand else first

    def _through(self, value: Value) -> Value:
        """What it is another shape of."""
        maker = self.makers.get(value)
        while maker is not None and not maker.domain and maker.op in RESHAPES:
            value = present(maker.inputs[0])
            maker = self.makers.get(value)
        return value

    def _is_given(self, value: Value) -> bool:
        """Whether it is an element of a sequence or an invariant, with axes of one element more or less."""
        source = self._through(value)
        if source in self.makers or source is self.before:
            return False
        return source is value or _long_axes(self._shape(source)) == _long_axes(self._shape(value))

    # --- operands for all steps --------------------------------------------------------------------------------------

    def _ask(self, condition: bool) -> None:
        if not condition:
            raise _Unlike

    def _shape(self, value: Value) -> Sizes:
        shape = self.l.facts.shape(value)
        self._ask(shape is not None and None not in shape and self.l.facts.dtype(value) is DType.FLOAT)
        assert shape is not None
        return tuple(size for size in shape if size is not None)

    def _fits(self, shape: Sizes, whole: Sizes) -> bool:
        padded = (1,) * (len(whole) - len(shape)) + shape
        return len(shape) <= len(whole) and all(have in (1, need) for have, need in zip(padded, whole, strict=True))

    def _spread(self, value: Value, shape: Sizes) -> View:
        """A sequence or an invariant for all steps, each element broadcast to a shape."""
        own, source = self._shape(value), self._through(value)
        self._ask(self._is_given(value) and self._fits(own, shape))
        view = self._of_all_steps(source)
        if source is not value:
            strides = iter([stride for size, stride in zip(view.shape[1:], view.strides[1:], strict=True) if size != 1])
            view = view.relaid(
                (self.steps, *own), (view.strides[0], *(0 if size == 1 else next(strides) for size in own))
            )
        for _ in range(len(shape) - len(own)):
            view = view.with_axis(1)
        found = view.broadcast((self.steps, *shape))
        if found is None:
            raise _Unlike
        return found

    def _of_all_steps(self, value: Value) -> View:
        l = self.l
        sequence = next((item for item in self.scan.sequences if item.element is value), None)
        if sequence is not None:
            view = _steps_first(l.view(sequence.whole), sequence.spec.axis)
            self._ask(not sequence.spec.reverse and view.shape[0] == self.steps)
            return view
        invariant = next((item.outer for item in self.scan.invariants if item.inner is value), None)
        if invariant is None:
            array = self.scan.body.constants.get(value)
            if array is None:
                raise _Unlike
            view = l.constant(array).with_axis(0)
        else:
            view = l.view(invariant).with_axis(0)
        return view.relaid((self.steps, *view.shape[1:]), view.strides)

    def _row(self, value: Value, shape: Sizes) -> View:
        """[steps, ..., n] of what is [..., 1, n] or [..., n] in a step."""
        view = self._spread(value, shape)
        return _without(view, -2) if len(shape) == len(self.leading) + 2 else view

    def _two(self, leading: Sizes) -> Sizes:
        return (*(1,) * (2 - len(leading)), *leading)

    def _with_two(self, view: View, behind: int) -> View:
        """With a batch and heads between the steps and the last axes."""
        while view.rank < 3 + behind:
            view = view.with_axis(1)
        return view
