"""Plans to damage: small, and with every instruction in some of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.onnx.models import recurrent
from tests.passes.random_graphs import random_graph
from tests.plan.harness import graph_of, plan_of
from tests.plan.test_cells import BACKWARD_OPERANDS, OPERANDS, cell
from tests.plan.test_control import branches
from tests.plan.test_fused_sequences import GATES, array, recurrence, with_inputs
from tests.plan.test_late_sizes import growing_states
from tests.plan.test_loops import _counting, _nested
from tests.plan.test_memories import attention
from tests.plan.test_rings import ring_graph
from tests.plan.test_small import small, small_graph
from webrnn.errors import PlanError
from webrnn.ir import WEBRNN, Graph, Node
from webrnn.ir.scan import TraceSpec
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes
from webrnn.plan.file import PlanFile
from webrnn.plan.lower import SAME_BITS
from webrnn.plan.lowering import NotLowered
from webrnn.plan.verify import verify

LOOP = frozenset({"fused_sequences"})
SIZE_NUMBERS = {"n": 2, "t": 3, "steps": 3}


@dataclass(frozen=True)
class Sample:
    name: str
    data: bytes
    symbols: tuple[int, ...]
    """Numbers for its named sizes."""


def _vector(n: int) -> np.ndarray:
    return np.linspace(0.5, 1.5, n, dtype=np.float32)


def _norms(b, x):
    vectors = [b.constant(_vector(3)) for _ in range(4)]
    return (
        b.op("LayerNormalization", x, b.constant(_vector(5)), b.constant(_vector(5))),
        b.op("InstanceNormalization", x, *vectors[:2]),
        b.op("BatchNormalization", x, *vectors),
        b.op("Softmax", x, axis=-1),
        b.op("LogSoftmax", x, axis=-1),
    )


def _layouts(b, x):
    return (
        b.op("Transpose", x, perm=[2, 0, 1]),
        b.op("Concat", x, b.op("Neg", x), axis=1),
        b.op("Pad", x, b.ints(0, 0, 1, 0, 0, 2), b.constant(np.float32(2)), mode="constant"),
        b.op("Gather", x, b.ints(2, 0), axis=1),
        b.op("Shape", x),
        b.op("Slice", x, b.ints(-1), b.ints(-9), b.ints(1), b.ints(-1)),
        b.op("ReduceSum", x, b.ints(1)),
        b.op("ReduceMax", x, b.ints(2)),
    )


def _by_index(b, x, i, boxes):
    places = b.op("Unsqueeze", i, b.ints(2))
    values = b.value("top")
    b.add(Node("TopK", [x, b.ints(2)], [values, None], {"axis": 1, "largest": 0}))
    return (
        b.op("GatherElements", x, i, axis=1),
        b.op("GatherND", x, places, batch_dims=1),
        b.op("ScatterElements", x, i, i, axis=1, reduction="max"),
        b.op("ScatterND", x, b.op("Slice", i, b.ints(0), b.ints(1), b.ints(1)), x),
        b.op("ReverseSequence", x, b.op("Gather", i, b.constant(0), axis=1), batch_axis=0, time_axis=1),
        b.op("CumSum", x, b.constant(1), reverse=1),
        b.op("ArgMax", x, axis=1),
        values,
        b.op("Unique", i, axis=0),
        b.op("NonMaxSuppression", boxes, b.op("Cast", b.op("Unsqueeze", x, b.ints(1)), to=1), b.ints(2)),
    )


def _expressions(b, x, y, k):
    wide = b.op("Where", b.op("Less", x, y), b.op("Tanh", x), b.op("Div", x, y))
    count = b.op("Add", b.op("Cast", wide, to=7), k)
    return wide, count, b.op("Not", b.op("Equal", count, k)), b.op("Clip", y, b.constant(np.float32(-1)))


def _types(b, h, d, v, c):
    """Narrow numbers, doubles, and integers whose divisor may be 0."""
    product = b.op("MatMul", h, b.constant(array(3, 2).astype(np.float16)))
    return (
        product,
        b.op("Cast", b.op("Atan", b.op("Pow", d, d)), to=17, saturate=0),
        b.op("BitShift", b.op("Div", v, v), v, direction="RIGHT"),
        b.op("BitCast", b.op("BitwiseNot", c), to=2),
        b.op("Cast", b.op("Tan", h), to=16),
    )


def _windows(b, x):
    convolved = b.op("Conv", x, b.constant(array(4, 1, 2, 3)), b.constant(array(4)), group=2, pads=[1, 0, 0, 2])
    wide = b.op("Conv", x, b.constant(array(9, 2, 2, 2)), b.constant(array(9)), pads=[0, 1, 1, 0], dilations=[1, 2])
    return (
        b.op("MaxPool", convolved, kernel_shape=[2, 2]),
        b.op("AveragePool", x, kernel_shape=[1, 2], strides=[2, 1]),
        b.op("MaxPool", b.op("Relu", wide), kernel_shape=[2, 2]),
        b.op("Conv", x, b.constant(array(3, 2, 2, 1)), strides=[1, 2]),
        b.op("Conv", x, b.constant(array(2, 1, 2, 1)), group=2, strides=[1, 2]),
        b.op("Conv", x, b.constant(array(3, 2, 1, 1))),
    )


def _images(b, x, grid, theta, rois):
    y, index = b.value("y"), b.value("index")
    b.add(Node("MaxPool", [x], [y, index], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}))
    return (
        y,
        index,
        b.op("ConvTranspose", x, b.constant(array(2, 3, 2, 3)), strides=[1, 2]),
        b.op("LpPool", x, kernel_shape=[2, 2], ceil_mode=1, strides=[3, 2]),
        b.op("Resize", x, None, b.constant(np.array([1, 1, 1.5, 2], np.float32)), mode="cubic", antialias=1),
        b.op("Resize", x, None, None, b.ints(1, 2, 3, 9), mode="nearest"),
        b.op("GridSample", x, grid, mode="cubic", padding_mode="reflection"),
        b.op("AffineGrid", theta, b.ints(2, 1, 3, 2)),
        b.op("RoiAlign", x, rois, b.ints(0, 0), output_height=2, sampling_ratio=2),
        b.op("Det", b.op("MatMul", theta, b.op("Transpose", theta, perm=[0, 2, 1]))),
        b.op("Col2Im", b.op("Reshape", x, b.ints(1, 4, 6)), b.ints(3, 3), b.ints(2, 1), strides=[1, 1]),
    )


def _spectra(b, x):
    spectrum = b.op("DFT", x, None, b.ints(1), onesided=1)
    return b.op("DFT", spectrum, None, b.ints(1), onesided=1, inverse=1), b.op("DFT", x, None, b.ints(1), inverse=1)


def _drawn(b, x, k):
    outputs = [b.value(name) for name in ("uniform", "normal", "chosen")]
    for normal in (0, 1):
        attrs = {"seed": 7, "normal": normal}
        b.add(Node("Random", [k, b.op("Shape", x)], [outputs[normal]], attrs, domain=WEBRNN))
    b.add(Node("Choose", [x, outputs[0]], [outputs[2]], domain=WEBRNN))
    return (*outputs, b.op("ReduceMax", outputs[2], b.ints(1)))


def _bytes(b, x, zero):
    weights, zeros = (np.arange(count, dtype=np.uint8) for count in (5 * 17, 17))
    return b.op("MatMulInteger", x, b.constant(weights.reshape(5, 17)), zero, b.constant(zeros))


def _quantize(b, x):
    made = [b.value(name) for name in ("quantized", "scale", "zero")]
    b.add(Node("DynamicQuantizeLinear", [x], [*made]))
    return (*made, b.op("ConvInteger", made[0], b.constant(np.arange(16, dtype=np.int8).reshape(2, 4, 2)), made[2]))


def _if(b, p, x):
    return branches(b, p, [x], lambda i, x: [i.op("Tanh", x)], lambda i, x: [x])


def _late(b, x, k):
    """Sizes that are known only while running, and what is done with them."""
    places = b.op("Squeeze", b.op("NonZero", x), b.ints(0))
    picked = b.op("Gather", x, places, axis=0)
    cut = b.op("Slice", b.op("Add", picked, picked), k, b.ints(3), b.ints(0))
    return cut, b.op("Reshape", x, k), b.op("ConstantOfShape", b.op("Abs", k)), b.op("Expand", x, b.op("Abs", k))


def _heads(b, x, y):
    return b.op("MatMul", b.op("Transpose", x, perm=[0, 2, 1, 3]), b.op("Transpose", y, perm=[0, 2, 3, 1]))


def _late_branch(b, p, x):
    return branches(b, p, [x], lambda i, x: [i.op("Concat", x, x, axis=0)], lambda i, x: [i.op("Tanh", x)])


def _graphs() -> dict[str, tuple[Graph, frozenset[str]]]:
    every: dict[str, Graph] = {
        "norms": graph_of(_norms, "f n 3 5"),
        "layouts": graph_of(_layouts, "f n 3 5"),
        "by index": graph_of(_by_index, "i n 3", "i n 3", "f n 3 4"),
        "expressions": graph_of(_expressions, "f n 3", "f 3", "i n 1"),
        "types": graph_of(_types, "f16 n 3", "f64 n 3", "u64 n 3", "i8 n"),
        "windows": graph_of(_windows, "f n 2 4 5"),
        "images": graph_of(_images, "f 1 2 3 4", "f 1 2 n 2", "f 2 2 3", "f 2 4"),
        "drawn": graph_of(_drawn, "f n 3", "i"),
        "spectra": graph_of(_spectra, "f n 16 1"),
        "branch": graph_of(_if, "b", "f n 3"),
        "late sizes": graph_of(_late, "f n", "i 1"),
        "late branches": graph_of(_late_branch, "b", "f n 3"),
        "late states": growing_states(),
        "product": graph_of(lambda b, x, y: b.op("MatMul", x, y), "f 2 n 3", "f 2 3 t"),
        "product of heads": graph_of(_heads, "f 2 n 4 3", "f 2 t 4 3"),
        "linear": graph_of(lambda b, x: b.op("MatMul", x, b.constant(array(5, 9))), "f n 5"),
        "bytes": graph_of(_bytes, "u8 n 5", "u8"),
        "quantize": graph_of(_quantize, "f n 4 t"),
        "integers": graph_of(lambda b, x, y: b.op("MatMul", x, y), "i 2 n 3", "i 3 t"),
        "ring": ring_graph(kernel=3, dilation=2),
        "rings of sequences": ring_graph("c n 2 9", "c n 2 t", "i n", axis=2, rate=3, history=6, more=5),
        "count": graph_of(lambda b, x, y: _counting(b, x, y), "f", "f"),
        "nested": _nested(True, True, True),
        "nested, finals only": _nested(False, False),
        **{
            op: graph_of(
                lambda b, *xs, op=op: cell(b, op, xs, ("sigmoid", "tanh", "tanh")), *(f"f n {w * 3}" for w in widths)
            )
            for op, widths in (OPERANDS | BACKWARD_OPERANDS).items()
        },
        "pullback of peepholes": graph_of(
            lambda b, *xs: cell(b, "LstmCellBackward", xs, ("sigmoid", "tanh", "tanh"), couple=True),
            "f n 12",
            "f n 12",
            "f n 3",
            "f 9",
            "f n 3",
            "f n 3",
        ),
    }
    found = {name: (graph, frozenset[str]()) for name, graph in every.items()}
    for form in ("int8", "int16"):
        found[f"{form} products"] = (small_graph(form), frozenset({SAME_BITS}))
        found |= {f"{form} {op} sequence": (small(recurrence(op, 9), form), frozenset()) for op in GATES}
    for rule in ("linear", "gated_delta"):
        found[f"{rule} memory"] = (attention(rule, group=3), frozenset())
    for op in GATES:
        found[f"{op} sequence"] = (recurrence(op, 3, peephole=op == "LstmCell"), frozenset())
        found[f"{op} sequence of inputs"] = (with_inputs(recurrence(op, 3)), frozenset())
        found[f"{op} loop"] = (recurrence(op, 3, trace=TraceSpec(1, True)), LOOP)
    for op in ("RNN", "GRU", "LSTM"):
        found[f"both directions of {op}"] = (directions(op), frozenset())
    found["both directions, in loops"] = (directions("GRU"), LOOP)
    return found


def directions(op: str, hidden: int = 5, inputs: int = 4, **attrs) -> Graph:
    """X[t, n, inputs] through a recurrent layer in both directions, after the passes."""
    attrs = {"direction": "bidirectional", "steps": "t", "batch": "n", **attrs}
    graph = read_model(recurrent(op, inputs=inputs, hidden=hidden, **attrs).SerializeToString())
    run_passes(graph)
    return graph


@cache
def samples() -> list[Sample]:
    found = []
    for name, (graph, options) in _graphs().items():
        data = plan_of(graph, options)
        symbols = tuple(SIZE_NUMBERS[symbol] for symbol in PlanFile(data).symbols)
        found.append(Sample(name, data, symbols))
        beside = plan_of(graph, options, least_side=0)
        if beside != data:
            found.append(Sample(f"{name}, side by side", beside, symbols))
    for seed in range(40):
        case = random_graph(seed)
        try:
            data = plan_of(case.graph)
            symbols = PlanFile(data).symbols_of([argument.shape for argument in case.arguments])
            verify(data, dict(zip(PlanFile(data).symbols, symbols, strict=True)))
        except (NotLowered, PlanError):  # a plan that does not hold for these sizes is no good sample
            continue
        found.append(Sample(f"random {seed}", data, tuple(symbols)))
    return found
