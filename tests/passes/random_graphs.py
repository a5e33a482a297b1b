"""Random graphs with loops, and inputs for them: `random_graph(seed)`.

They hold what passes look for: Scans in Scans, several states that depend on each other or that nobody reads, one value
handed in twice, constants as invariants and as sequences, sequences on other axes and in reverse, no step or one, an If
in a loop, loops with a condition, a counter or a state of two taps, sizes that are computed from shapes, traces of
which the last steps are read, loops that count and pick what they take, states that are rearranged in each step,
sequences and other states that collect something of each step, sums of products. Tensors inside a loop are matrices of
SIZE x SIZE.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from webrnn.ir import (
    DType,
    GraphBuilder,
    Invariant,
    Node,
    Scan,
    SequenceInput,
    SequenceSpec,
    State,
    StateSpec,
    Symbol,
    Trace,
    TraceSpec,
    Value,
)
from webrnn.ir.containers import SEQUENCE
from webrnn.ir.graph import Graph

SIZE = 3
_UNARY = ("Tanh", "Sigmoid", "Neg", "Abs", "Relu", "Identity", "Sin", "Softsign")
_BINARY = ("Add", "Sub", "Mul", "Max", "MatMul")


@dataclass
class RandomGraph:
    graph: Graph
    arguments: list[np.ndarray]


def random_graph(seed: int) -> RandomGraph:
    """The same graph and inputs for the same seed, on every machine."""
    return _Generator(seed).generate()


class _Generator:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.sums = random.Random(seed)
        self.steps = self.rng.choice([0, 1, 2, 3, 4])
        """The length of all sequences of the outermost graph, a named size there."""

    def generate(self) -> RandomGraph:
        b = GraphBuilder("random")
        arguments = []
        matrices: list[Value] = []
        for index in range(self.rng.randint(1, 3)):
            matrices.append(b.input(f"m{index}", DType.FLOAT, (SIZE, SIZE)))
            arguments.append(self._array(SIZE, SIZE))
        sequences: dict[int, list[Value]] = {0: [], 1: [], 2: []}
        for index in range(self.rng.randint(1, 3)):
            axis = self.rng.choice([0, 0, 1, 2])
            sizes = [SIZE, SIZE]
            sizes.insert(axis, self.steps)
            shape = tuple(Symbol("steps") if i == axis else SIZE for i in range(3))
            sequences[axis].append(b.input(f"s{index}", DType.FLOAT, shape))
            arguments.append(self._array(*sizes))
        if self.rng.random() < 0.4:
            sequences[0].append(self._constant_sequence(b))
        for _ in range(self.rng.randint(1, 2)):
            self._scan(b, matrices, sequences, depth=self.rng.choice([0, 0, 1]))
            self._nodes(b, matrices, self.rng.randint(0, 3))
        if self.rng.random() < 0.1:
            self._cell(b, matrices)
        whole = [value for values in sequences.values() for value in values if value not in b.graph.inputs]
        candidates = [value for value in (*matrices, *whole) if value not in b.graph.constants]
        b.graph.outputs = self.rng.sample(candidates, self.rng.randint(1, len(candidates)))
        return RandomGraph(b.graph, arguments)

    def _array(self, *shape: int) -> np.ndarray:
        array = (self.numbers.standard_normal(shape) * 0.5).astype(np.float32)
        array[array < -0.9] = -0.0
        return array

    def _matrix(self) -> np.ndarray:
        kind = self.rng.random()
        if kind < 0.2:
            return np.full(self.rng.choice([(), (1, 1), (SIZE, SIZE)]), self.rng.choice([0.0, -0.0, 1.0]), np.float32)
        return self._array(SIZE, SIZE)

    def _constant_sequence(self, b: GraphBuilder) -> Value:
        repeats = self.rng.random() < 0.6
        element = self._array(1 if repeats else self.steps, SIZE, SIZE)
        return b.constant(np.broadcast_to(element, (self.steps, SIZE, SIZE)), "c_seq")

    def _nodes(self, b: GraphBuilder, pool: list[Value], count: int) -> None:
        """Add nodes on matrices; some of them come back to where they started."""
        for _ in range(count):
            x, y = self.rng.choice(pool), self.rng.choice(pool)
            kind = self.rng.random()
            if kind < 0.3:
                made = b.op(self.rng.choice(_UNARY), x)
            elif kind < 0.6:
                made = b.op(self.rng.choice(_BINARY), x, y)
            elif kind < 0.75:
                constant = b.constant(self._matrix())
                operands = (x, constant) if self.rng.random() < 0.7 else (constant, x)
                made = b.op(self.rng.choice(_BINARY[:-1]), *operands)
            elif kind < 0.8:
                made = b.op("MatMul", x, b.constant(self._array(SIZE, SIZE)))
            else:
                made = self._round_trip(b, x, y)
            pool.append(made)

    def _cell(self, b: GraphBuilder, pool: list[Value]) -> None:
        """Add an LSTM or GRU cell; its gates are in ONNX's order or in another, and some are read elsewhere."""
        x, h, c = (self.rng.choice(pool) for _ in range(3))
        is_lstm = self.rng.random() < 0.5
        count = 4 if is_lstm else 3
        products = [b.op("MatMul", value, b.constant(self._array(SIZE, count * SIZE))) for value in (x, h)]
        if self.rng.random() < 0.5:
            products[1] = b.op("Add", products[1], b.constant(self._array(count * SIZE)))
        order = self.rng.choice([range(count), self.rng.sample(range(count), count)])
        names = ["gate"] * count
        if is_lstm:
            parts = b.split(b.op("Add", *products), names, axis=1)
            i, o, f, n = (parts[place] for place in order)
            i, o, f = (b.op("Sigmoid", gate) for gate in (i, o, f))
            c_next = b.op("Add", b.op("Mul", f, c), b.op("Mul", i, b.op("Tanh", n)))
            pool.extend([b.op("Mul", o, b.op("Tanh", c_next)), c_next])
        else:
            from_x, from_h = (b.split(product, names, axis=1) for product in products)
            (xz, xr, xn), (hz, hr, hn) = ([parts[place] for place in order] for parts in (from_x, from_h))
            z, i = b.op("Sigmoid", b.op("Add", xz, hz)), b.op("Sigmoid", b.op("Add", xr, hr))
            n = b.op("Tanh", b.op("Add", xn, b.op("Mul", i, hn)))
            if self.rng.random() < 0.5:
                pool.append(b.op("Add", n, b.op("Mul", z, b.op("Sub", h, n))))
            else:
                one = b.constant(np.float32(1))
                pool.append(b.op("Add", b.op("Mul", b.op("Sub", one, z), n), b.op("Mul", z, h)))
        if self.rng.random() < 0.1:
            pool.append(i)

    def _round_trip(self, b: GraphBuilder, x: Value, y: Value) -> Value:
        choice = self.rng.randrange(9)
        if choice == 0:
            return b.op("Transpose", b.op("Transpose", x, perm=[1, 0]), perm=[1, 0])
        if choice == 1:
            axis = self.rng.choice([0, 1, 2, -1])
            return b.op("Squeeze", b.op("Unsqueeze", x, b.ints(axis)), b.ints(axis))
        if choice == 2:
            return b.op("Reshape", b.op("Reshape", x, b.ints(-1)), b.op("Shape", y))
        if choice == 3:
            joined = b.op("Concat", x, y, axis=self.rng.choice([-1, 1]))
            return self.rng.choice(b.split(joined, ["left", "right"], axis=1))
        if choice == 4:
            size = b.op("Gather", b.op("Shape", x), b.ints(0))
            shape = b.op("Concat", size, b.ints(SIZE), axis=0)
            return b.op("Expand", b.op("Slice", y, b.ints(0), b.ints(1), b.ints(0)), shape)
        if choice == 5:
            kernel, axes = b.constant(self._array(SIZE, SIZE, 1)), b.ints(2)
            return b.op("Squeeze", b.op("Conv", b.op("Unsqueeze", x, axes), kernel), axes)
        if choice == 6:
            centred = b.op("Sub", x, b.op("ReduceMean", x, b.ints(1)))
            variance = b.op("ReduceMean", b.op("Mul", centred, centred), b.ints(-1))
            return b.op("Div", centred, b.op("Sqrt", b.op("Add", variance, b.constant(np.float32(0.1)))))
        if choice == 7:
            return b.op("MatMul", b.op("ReduceMax", x, b.ints(1)), b.op("ReduceMin", y, b.ints(0)))
        return b.op("Softmax", x, axis=self.rng.choice([0, 1, -1]))

    def _if(self, b: GraphBuilder, pool: list[Value]) -> None:
        if self.rng.random() < 0.4:
            condition = b.constant(np.array(self.rng.random() < 0.5))
        else:
            total = b.op("ReduceSum", self.rng.choice(pool), keepdims=0)
            condition = b.op("Less", total, b.constant(np.float32(0)))
        branches = []
        for name in ("then_branch", "else_branch"):
            inner = GraphBuilder(name, b)
            values = [inner.capture(value) for value in pool[:3]]
            self._nodes(inner, values, self.rng.randint(0, 3))
            inner.graph.outputs = [self.rng.choice(values), self.rng.choice(values)]
            branches.append(inner)
        captures = list(dict.fromkeys(outer for inner in branches for outer, _ in inner.captured_inputs()))
        for inner in branches:
            inner.graph.inputs = [inner.capture(outer) for outer in captures]
        attrs = {inner.graph.name: inner.graph for inner in branches}
        outputs = [b.value("if_a"), b.value("if_b")]
        b.add(Node("If", [condition, *captures], list(outputs), attrs))
        pool.extend(outputs)

    def _scan(self, b: GraphBuilder, matrices: list[Value], sequences: dict[int, list[Value]], depth: int) -> None:
        """Add a Scan; its finals join the matrices and its traces the sequences."""
        body = GraphBuilder(f"body{depth}", b)
        scan = Scan(body.graph, name=b.unique_name("scan"))
        inner: list[Value] = []
        flat = [(axis, value) for axis, values in sequences.items() for value in values]
        if self.steps and self.rng.random() < 0.12:
            inner.append(self._counted(b, body, scan, *self.rng.choice(flat)))
            flat = []
        for axis, whole in self.rng.choices(flat, k=self.rng.randint(1, 3)) if flat else ():
            spec = SequenceSpec(axis if self.rng.random() < 0.8 else axis - 3, self.rng.random() < 0.4)
            scan.sequences.append(SequenceInput(spec, whole, body.value("element")))
            inner.append(scan.sequences[-1].element)
        if flat and self.rng.random() < 0.2:
            scan.n_steps = b.constant(np.array(max(self.steps - self.rng.randint(0, 1), 0)), "n_steps")
        for outer in self.rng.choices(matrices, k=self.rng.randint(0, 3)):
            scan.invariants.append(Invariant(outer, body.value("invariant")))
            inner.append(scan.invariants[-1].inner)
        if self.rng.random() < 0.5:
            constant = b.constant(self._array(SIZE, SIZE), "weights")
            scan.invariants.append(Invariant(constant, body.value("weights")))
            inner.append(scan.invariants[-1].inner)
        finals: list[Value] = []
        if scan.iteration is None and self.rng.random() < 0.2:
            scan.iteration = body.value("iteration")
            inner.append(body.op("Expand", body.op("Cast", scan.iteration, to=int(DType.FLOAT)), body.ints(SIZE, SIZE)))
        if self.rng.random() < 0.2:
            finals.append(self._remember_two(b, body, scan, matrices, inner))
        if self.rng.random() < 0.15:
            finals.append(self._rearranged(b, body, scan, matrices, inner))
        if self.rng.random() < 0.25:
            finals.append(self._collected(b, body, scan, matrices, inner, sequences[0]))
        inits = self.rng.choices(matrices, k=self.rng.randint(0, 4))
        states = [body.value("state") for _ in inits]
        inner.extend(states)
        self._nodes(body, inner, self.rng.randint(1, 9))
        if self.rng.random() < 0.15:
            self._cell(body, inner)
        if self.rng.random() < 0.3:
            self._if(body, inner)
        if depth:
            rows = {0: [self.rng.choice(inner)], 1: [], 2: []}
            self._inner_scan(body, inner, rows[0][0])
        if self.rng.random() < 0.15:
            total = body.op("ReduceSum", self.rng.choice(inner), keepdims=0)
            scan.body_cond = body.op("Less", total, body.constant(np.float32(0.5)))
            if self.rng.random() < 0.4:
                scan.body_cond = body.constant(np.array(True), "always")
        for init, state in zip(inits, states, strict=True):
            final = b.value("final") if self.rng.random() < 0.5 else None
            scan.states.append(State(StateSpec(), init, [state], self.rng.choice(inner), final))
            if final is not None:
                finals.append(final)
        if self.sums.random() < 0.15:
            finals.append(self._summed(b, body, scan, inner))
        matrices.extend(finals)
        for _ in range(self.rng.randint(0 if matrices else 1, 3)):
            axis, keep = self.rng.choice([0, 0, 1, 2]), self.rng.choice([None, None, None, 1])
            trace = b.value("trace")
            spec = TraceSpec(axis, self.rng.random() < 0.3, keep)
            scan.traces.append(Trace(spec, self.rng.choice(inner), trace))
            if self.steps > 1 and self.rng.random() < 0.2:
                matrices.append(self._last_steps(b, trace, spec))
            elif keep is None and scan.n_steps is None and scan.body_cond is None:
                sequences[axis].append(trace)
            else:
                matrices.append(b.op("ReduceSum", trace, b.ints(axis), keepdims=0))
        b.add(scan.to_node())
        _after_their_operands(b.graph)

    def _counted(self, b: GraphBuilder, body: GraphBuilder, scan: Scan, axis: int, whole: Value) -> Value:
        """Let a Scan count its steps and pick the elements of a tensor itself; the element."""
        fewer = self.rng.random() < 0.3
        length = b.op("Gather", b.op("Shape", whole), b.constant(np.array(axis, np.int64)))
        scan.n_steps = b.constant(np.array(self.steps - 1), "n_steps") if fewer else length
        scan.iteration = body.value("iteration")
        scan.invariants.append(Invariant(whole, body.value("table")))
        index = scan.iteration
        if not fewer and self.rng.random() < 0.3:
            last = b.op("Sub", length, b.constant(np.array(1, np.int64)))
            scan.invariants.append(Invariant(last, body.value("last")))
            index = body.op("Sub", scan.invariants[-1].inner, index)
        return body.op("Gather", scan.invariants[0].inner, index, axis=axis)

    def _last_steps(self, b: GraphBuilder, trace: Value, spec: TraceSpec) -> Value:
        """The last step of a trace, or the sum of the last two."""
        if self.rng.random() < 0.5:
            return b.op("Gather", trace, b.constant(np.array(0 if spec.reverse else -1)), axis=spec.axis)
        bounds = (0, 2) if spec.reverse else (-2, 2**31 - 1)
        last = b.op("Slice", trace, *(b.ints(number) for number in (*bounds, spec.axis)))
        return b.op("ReduceSum", last, b.ints(spec.axis), keepdims=0)

    def _rearranged(
        self, b: GraphBuilder, body: GraphBuilder, scan: Scan, matrices: list[Value], inner: list[Value]
    ) -> Value:
        """Add a state that the body transposes and transposes back, or squeezes and unsqueezes; its final."""
        state, final = body.value("rearranged"), b.value("final")
        init = self.rng.choice(matrices)
        if self.rng.random() < 0.5:
            there = body.op("Transpose", state, perm=[1, 0])
            back = body.op("Transpose", body.op("Sub", there, self.rng.choice(inner)), perm=[1, 0])
            scan.states.append(State(StateSpec(), init, [state], back, final))
            inner.append(there)
            return final
        axis = self.rng.choice([0, 1, 2, -1])
        there = body.op("Squeeze", state, body.ints(axis))
        back = body.op("Unsqueeze", body.op("Sub", there, self.rng.choice(inner)), body.ints(axis))
        scan.states.append(State(StateSpec(), b.op("Unsqueeze", init, b.ints(axis)), [state], back, final))
        inner.append(there)
        return b.op("Squeeze", final, b.ints(axis))

    def _collected(
        self,
        b: GraphBuilder,
        body: GraphBuilder,
        scan: Scan,
        matrices: list[Value],
        inner: list[Value],
        wholes: list[Value],
    ) -> Value:
        """Add a state that collects a matrix of each step: a sequence, a tensor that grows or that is written place by
        place, or one that only counts; the sum of all."""
        init, new, final = self.rng.choice(matrices), self.rng.choice(inner), b.value("collected")
        kind = self.rng.choice(["sequence", "sequence", "items", "grown", "written", "counted", "read"])
        if kind == "read" and wholes and self.steps:
            parts = b.value("parts", container=SEQUENCE)
            whole = self.rng.choice(wholes)
            b.add(Node("SplitToSequence", [whole], [parts], {"axis": 0, "keepdims": 0}))
            scan.invariants.append(Invariant(parts, body.value("parts", container=SEQUENCE)))
            scan.iteration = scan.iteration or body.value("iteration")
            inner.append(body.op("SequenceAt", scan.invariants[-1].inner, scan.iteration))
            return b.op("ReduceSum", whole, b.ints(0), keepdims=0)
        if kind == "counted":
            state, count = body.value("count"), self.rng.choice([-1, 1, 2])
            after = body.op("Add", state, body.constant(np.array(count, np.int32)))
            scan.states.append(State(StateSpec(), b.constant(np.array(3, np.int32)), [state], after, final))
            inner.append(body.op("Expand", body.op("Cast", state, to=int(DType.FLOAT)), body.ints(SIZE, SIZE)))
            return b.op("Expand", b.op("Cast", final, to=int(DType.FLOAT)), b.ints(SIZE, SIZE))
        if kind == "grown" or (kind == "written" and not wholes) or kind == "read":
            state, axis = body.value("so_far"), self.rng.choice([0, 1])
            parts = [state, body.op("Unsqueeze", new, body.ints(axis))]
            after = body.op("Concat", *(parts if self.rng.random() < 0.7 else parts[::-1]), axis=axis)
            scan.states.append(State(StateSpec(), b.op("Unsqueeze", init, b.ints(axis)), [state], after, final))
            return b.op("ReduceSum", final, b.ints(axis), keepdims=0)
        if kind == "written":
            state = body.value("so_far")
            scan.iteration = scan.iteration or body.value("iteration")
            place = body.op("Reshape", scan.iteration, body.ints(1, 1))
            after = body.op("ScatterND", state, place, body.op("Unsqueeze", new, body.ints(0)))
            scan.states.append(State(StateSpec(), self.rng.choice(wholes), [state], after, final))
            return b.op("ReduceSum", final, b.ints(0), keepdims=0)
        final.container = SEQUENCE
        start, state = b.value("start", container=SEQUENCE), body.value("so_far", container=SEQUENCE)
        b.add(Node("SequenceConstruct", [init], [start]))
        after = body.value("longer", container=SEQUENCE)
        if kind == "items":
            before = body.op("SequenceAt", state, body.constant(np.array(-1, np.int64)))
            body.add(Node("SequenceConstruct", [body.op("Tanh", body.op("Add", before, new))], [after]))
        else:
            place = [] if self.rng.random() < 0.7 else [body.constant(np.array(0, np.int64))]
            body.add(Node("SequenceInsert", [state, new, *place], [after]))
        scan.states.append(State(StateSpec(), start, [state], after, final))
        return b.op("ReduceSum", b.op("ConcatFromSequence", final, axis=0, new_axis=1), b.ints(0), keepdims=0)

    def _summed(self, b: GraphBuilder, body: GraphBuilder, scan: Scan, inner: list[Value]) -> Value:
        """Add a state that sums products, or what sums over axes, as gradients of weights do; its final."""
        x, y = self.sums.choice(inner), self.sums.choice(inner)
        left = body.op("Transpose", x, perm=[1, 0]) if self.sums.random() < 0.7 else x
        added = body.op("MatMul", left, y)
        if self.sums.random() < 0.3:
            added = body.op("Expand", body.op("ReduceSum", y, body.ints(0)), body.ints(SIZE, SIZE))
        elif self.sums.random() < 0.3:
            added = body.op("Neg", added)
        init = b.constant(np.full((SIZE, SIZE), self.sums.choice([0, 1]), np.float32))
        before, final = body.value("sum"), b.value("final")
        scan.states.append(State(StateSpec(), init, [before], body.op("Add", before, added), final))
        return final

    def _remember_two(
        self, b: GraphBuilder, body: GraphBuilder, scan: Scan, matrices: list[Value], inner: list[Value]
    ) -> Value:
        """Add a state with two taps; the sum of its last two values."""
        first, second = (b.op("Unsqueeze", self.rng.choice(matrices), b.ints(0)) for _ in range(2))
        older, newer = body.value("older"), body.value("newer")
        inner.extend([older, newer])
        after = body.op("Tanh", body.op("Sub", older, self.rng.choice(inner)))
        inner.append(after)
        after = self.rng.choice([after, after, older])
        final = b.value("last_two")
        init = b.op("Concat", first, second, axis=0)
        scan.states.append(State(StateSpec((-2, -1)), init, [older, newer], after, final))
        return b.op("ReduceSum", final, b.ints(0), keepdims=0)

    def _inner_scan(self, b: GraphBuilder, pool: list[Value], rows: Value) -> None:
        """A Scan over the rows of a matrix, inside the body of another."""
        body = GraphBuilder("rows", b)
        scan = Scan(body.graph, name="inner")
        row, other = body.value("row"), body.value("other")
        scan.sequences.append(SequenceInput(SequenceSpec(self.rng.choice([0, 1]), self.rng.random() < 0.5), rows, row))
        scan.invariants.append(Invariant(self.rng.choice(pool), other))
        product = body.op("MatMul", row, other)
        state = body.value("sum")
        init = b.op("ReduceSum", self.rng.choice(pool), b.ints(0), keepdims=0)
        made = body.op("Add", body.op("Tanh", product), state if self.rng.random() < 0.7 else row)
        trace = b.value("inner_trace")
        scan.states.append(State(StateSpec(), init, [state], made, None))
        scan.traces.append(Trace(TraceSpec(self.rng.choice([0, 1])), made, trace))
        b.add(scan.to_node())
        pool.append(trace)


def _after_their_operands(graph: Graph) -> None:
    """Put the nodes into an order in which they can run: sums of traces were added before their Scan."""
    defined = {*graph.inputs, *graph.constants}
    pending, graph.nodes = graph.nodes, []
    while pending:
        for node in pending:
            if all(value is None or value in defined for value in node.inputs):
                break
        else:
            raise AssertionError("the graph has a cycle")
        pending.remove(node)
        graph.nodes.append(node)
        defined.update(value for value in node.outputs if value is not None)
