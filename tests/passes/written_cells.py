"""Cells as exporters write them out, in a loop or outside one.

Each function adds the ops of one step to a builder and returns the next states. PyTorch's gates are r, z, n and
i, f, g, o, those of Keras z, r, h and i, f, c, o.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.passes.differential import floats
from webrnn.ir import DType, Graph, GraphBuilder, Scan, Symbol, Value

ROWS, INPUTS, H = 2, 3, 4


def weights(b: GraphBuilder, rows: int, columns: int, seed: int) -> Value:
    return b.constant(floats(rows, columns, seed=seed) * np.float32(0.5), "w")


def linear(b: GraphBuilder, x: Value, rows: int, columns: int, seed: int, gemm: bool = False) -> Value:
    bias = b.constant(floats(columns, seed=seed + 100), "bias")
    if gemm:
        return b.op("Gemm", x, b.constant(floats(columns, rows, seed=seed) * np.float32(0.5)), bias, transB=1)
    return b.op("Add", b.op("MatMul", x, weights(b, rows, columns, seed)), bias)


def chunks(b: GraphBuilder, value: Value, count: int, by_slice: bool = False) -> list[Value]:
    if not by_slice:
        return b.split(value, ["gate"] * count)
    ends = [*range(H, count * H, H), 2**63 - 1]
    return [b.op("Slice", value, b.ints(H * i), b.ints(end), b.ints(-1), b.ints(1)) for i, end in enumerate(ends)]


def mixed(b: GraphBuilder, z: Value, n: Value, h: Value, form: str) -> Value:
    if form == "ones":
        ones = b.constant(np.ones(H, np.float32))
        return b.op("Add", b.op("Mul", h, z), b.op("Mul", n, b.op("Sub", ones, z)))
    if form == "negated":
        rest = b.op("Add", b.op("Neg", z), b.constant(np.array(1, np.float32)))
        return b.op("Add", b.op("Mul", rest, n), b.op("Mul", z, h))
    if form == "difference":
        return b.op("Add", b.op("Mul", b.op("Sub", h, n), z), n)
    return b.op("Sub", n, b.op("Mul", z, b.op("Sub", n, h)))


def torch_gru(
    b: GraphBuilder, x: Value, h: Value, gemm: bool = False, by_slice: bool = False, form: str = "difference"
) -> list[Value]:
    gx, gh = linear(b, x, INPUTS, 3 * H, 1, gemm), linear(b, h, H, 3 * H, 2, gemm)
    (xr, xz, xn), (hr, hz, hn) = chunks(b, gx, 3, by_slice), chunks(b, gh, 3, by_slice)
    r, z = b.op("Sigmoid", b.op("Add", xr, hr)), b.op("Sigmoid", b.op("Add", hz, xz))
    n = b.op("Tanh", b.op("Add", xn, b.op("Mul", r, hn)))
    return [mixed(b, z, n, h, form)]


def torch_lstm(b: GraphBuilder, x: Value, h: Value, c: Value, by_slice: bool = False) -> list[Value]:
    total = b.op("Add", linear(b, h, H, 4 * H, 1, gemm=True), linear(b, x, INPUTS, 4 * H, 2, gemm=True))
    i, f, g, o = chunks(b, total, 4, by_slice)
    return _lstm(b, *(b.op("Sigmoid", gate) for gate in (i, f)), b.op("Tanh", g), b.op("Sigmoid", o), c)


def _lstm(b: GraphBuilder, i: Value, f: Value, g: Value, o: Value, c: Value) -> list[Value]:
    c_next = b.op("Add", b.op("Mul", f, c), b.op("Mul", i, g))
    return [b.op("Mul", o, b.op("Tanh", c_next)), c_next]


def keras_lstm(b: GraphBuilder, x: Value, h: Value, c: Value) -> list[Value]:
    """(x·W + h·R) + b, as in dtln_2."""
    products = b.op("MatMul", x, weights(b, INPUTS, 4 * H, 1)), b.op("MatMul", h, weights(b, H, 4 * H, 2))
    total = b.op("Add", b.op("Add", *products), b.constant(floats(4 * H, seed=3)))
    i, f, g, o = chunks(b, total, 4)
    return _lstm(b, *(b.op("Sigmoid", gate) for gate in (i, f)), b.op("Tanh", g), b.op("Sigmoid", o), c)


def separate_lstm(b: GraphBuilder, x: Value, h: Value, c: Value) -> list[Value]:
    """A product for each gate, and peepholes."""
    gates = []
    for index, seen in enumerate((c, c, None, None)):
        products = linear(b, x, INPUTS, H, 2 * index), b.op("MatMul", h, weights(b, H, H, 2 * index + 1))
        total = b.op("Add", *products)
        if seen is not None:
            total = b.op("Add", b.op("Mul", seen, b.constant(floats(H, seed=30 + index))), total)
        gates.append(b.op("Tanh" if index == 2 else "Sigmoid", total) if index < 3 else total)
    i, f, g, o = gates
    c_next = b.op("Add", b.op("Mul", f, c), b.op("Mul", i, g))
    o = b.op("Sigmoid", b.op("Add", o, b.op("Mul", b.constant(floats(H, seed=40)), c_next)))
    return [b.op("Mul", o, b.op("Tanh", c_next)), c_next]


def keras_gru(b: GraphBuilder, x: Value, h: Value) -> list[Value]:
    """reset_after = False: the product of the candidate comes after the reset."""
    xz, xr, xn = chunks(b, linear(b, x, INPUTS, 3 * H, 1), 3)
    hz, hr = (b.op("MatMul", h, weights(b, H, H, seed)) for seed in (2, 3))
    z, r = b.op("Sigmoid", b.op("Add", xz, hz)), b.op("Sigmoid", b.op("Add", xr, hr))
    product = b.op("MatMul", b.op("Mul", r, h), weights(b, H, H, 4))
    n = b.op("Tanh", b.op("Add", xn, product))
    return [mixed(b, z, n, h, "ones")]


def gru_with_late_biases(b: GraphBuilder, x: Value, h: Value) -> list[Value]:
    """Constants are added wherever they can be."""
    gx, gh = b.op("MatMul", x, weights(b, INPUTS, 3 * H, 1)), b.op("MatMul", h, weights(b, H, 3 * H, 2))
    (xr, xz, xn), (hr, hz, hn) = chunks(b, gx, 3), chunks(b, gh, 3)
    br, bz, bx, bh = (b.constant(floats(H, seed=seed)) for seed in range(4))
    r = b.op("Sigmoid", b.op("Add", b.op("Add", xr, hr), br))
    z = b.op("Sigmoid", b.op("Add", bz, b.op("Add", xz, hz)))
    n = b.op("Tanh", b.op("Add", b.op("Add", xn, bx), b.op("Mul", b.op("Add", hn, bh), r)))
    return [mixed(b, z, n, h, "ones")]


def elman(b: GraphBuilder, x: Value, h: Value) -> list[Value]:
    total = b.op("Add", linear(b, x, INPUTS, H, 1), linear(b, h, H, H, 2))
    return [b.op("Tanh", total)]


def elman_with_late_bias(b: GraphBuilder, x: Value, h: Value) -> list[Value]:
    products = b.op("MatMul", x, weights(b, INPUTS, H, 1)), b.op("MatMul", h, weights(b, H, H, 2))
    return [b.op("Relu", b.op("Add", b.op("Add", *products), b.constant(floats(H))))]


Step = Callable[..., list[Value]]


def outside(step: Step, n_states: int, **options: object) -> Graph:
    """One step; x and the states are inputs, the next states outputs."""
    b = GraphBuilder("step")
    x = b.input("x", DType.FLOAT, (ROWS, INPUTS))
    states = [b.input(f"s{index}", DType.FLOAT, (ROWS, H)) for index in range(n_states)]
    b.graph.outputs = step(b, x, *states, **options)
    return b.graph


def in_loop(step: Step, n_states: int, **options: object) -> Graph:
    """A loop of steps; the finals and the trace of the first state are outputs."""
    b = GraphBuilder("main")
    x = b.input("x", DType.FLOAT, (Symbol("steps"), ROWS, INPUTS))
    inits = [b.input(f"s{index}", DType.FLOAT, (ROWS, H)) for index in range(n_states)]
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="loop")
    element = body.value("x")
    scan.add_sequence(x, element)
    states = [body.value(f"s{index}") for index in range(n_states)]
    after = step(body, element, *states, **options)
    finals = [b.value(f"final{index}") for index in range(n_states)]
    for init, before, new, final in zip(inits, states, after, finals, strict=True):
        scan.add_state(init, before, new, final)
    trace = b.value("trace")
    scan.add_trace(after[0], trace)
    b.add(scan.to_node())
    b.graph.outputs = [*finals, trace]
    return b.graph


def arguments(graph: Graph, steps: int = 3) -> Sequence[np.ndarray]:
    sizes = [[size if isinstance(size, int) else steps for size in value.shape or ()] for value in graph.inputs]
    return [floats(*shape, seed=seed) for seed, shape in enumerate(sizes)]
