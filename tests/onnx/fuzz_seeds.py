"""The models that fuzzing starts from: small ones of each family of ops, and the small ones of ONNX's own node tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, helper
from onnx.parser import parse_model

from tests.onnx.models import bools, floats, graph, initializer, integers, model, recurrent

MOST_BYTES = 4000
"""Larger models of ONNX's suite are left out: time goes into many small ones."""


@dataclass(frozen=True)
class Seed:
    name: str
    model: ModelProto
    feeds: dict[str, Any] = field(default_factory=dict)
    """Inputs that the model is known to accept."""


@cache
def all_seeds() -> list[Seed]:
    """In an order that is always the same."""
    return [*own_seeds(), *suite_seeds()]


@cache
def own_seeds() -> list[Seed]:
    seeds = [Seed(f"{index}", item) for index, item in enumerate(control_flow_models())]
    for opset, texts in TEXTS.items():
        for text in texts:
            item = parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g {text}')
            seeds.append(Seed(item.graph.node[-1].op_type, item))
    return seeds


@cache
def suite_seeds() -> list[Seed]:
    """Those of ONNX's node tests that are small; their integers of one axis become constants in half of them."""
    from tests.reference.onnx_cases import node_cases, to_webrnn

    seeds = []
    for name, case in sorted(node_cases().items()):
        if case.model is None or case.model.ByteSize() > MOST_BYTES or name.endswith("_expanded"):
            continue
        inputs = case.data_sets[0][0] if case.data_sets else []
        try:
            feeds = {i.name: to_webrnn(v) for i, v in zip(case.model.graph.input, inputs, strict=False)}
        except TypeError:  # a kind of value that webrnn does not carry
            feeds = {}
        if sum(np.size(item) for item in feeds.values() if isinstance(item, np.ndarray)) > 2000:
            continue
        seeds.append(Seed(name, case.model, feeds))
        baked = _with_constants(case.model, feeds)
        if baked is not None:
            seeds.append(Seed(f"{name} with constants", baked, feeds))
    return seeds


def _with_constants(source: ModelProto, feeds: dict[str, Any]) -> ModelProto | None:
    """The model whose inputs that say how (axes, shapes, pads) are initializers."""
    constant = [
        info.name
        for info in source.graph.input[1:]
        if isinstance(feeds.get(info.name), np.ndarray)
        and feeds[info.name].dtype in (np.dtype(np.int64), np.dtype(np.int32))
        and feeds[info.name].ndim <= 1
    ]
    if not constant:
        return None
    item = ModelProto()
    item.CopyFrom(source)
    kept = [info for info in item.graph.input if info.name not in constant]
    del item.graph.input[:]
    item.graph.input.extend(kept)
    item.graph.initializer.extend(initializer(name, feeds[name]) for name in constant)
    return item


def control_flow_models() -> Iterator[ModelProto]:
    yield recurrent("LSTM", direction="bidirectional", activations=["Sigmoid", "Tanh", "Tanh"] * 2)
    yield recurrent("GRU", linear_before_reset=1, clip=3.0)
    yield recurrent("RNN", direction="reverse")
    yield recurrent("GRU", steps=1, batch=1, inputs=1, hidden=1)
    yield recurrent("LSTM", batch=1, inputs=2, hidden=3, layout=0, input_forget=0)
    yield _loop()
    yield _counted_loop()
    yield _scan()
    yield _scan_of_rows()
    yield _shapes()


def _loop() -> ModelProto:
    body = graph(
        [
            helper.make_node("Add", ["s", "x"], ["s_next"]),
            helper.make_node("Less", ["i", "most"], ["go_on"]),
            helper.make_node("Identity", ["s_next"], ["seen"]),
        ],
        [integers("i", []), bools("go", []), floats("s", [2])],
        [bools("go_on", []), floats("s_next", [2]), floats("seen", [2])],
        [initializer("most", np.int64(5))],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body, name="loop")
    other = graph([helper.make_node("Neg", ["last"], ["a"])], [], [floats("a", [2])])
    same = graph([helper.make_node("Identity", ["last"], ["b"])], [], [floats("b", [2])])
    choose = helper.make_node("If", ["c"], ["y"], then_branch=other, else_branch=same, name="choose")
    return model(
        [loop, choose],
        [floats("x", [2]), bools("c", [])],
        [floats("y", [2]), floats("all", None)],
        [initializer("n", np.int64(7))],
    )


def _counted_loop() -> ModelProto:
    """A loop that reads `x[i]`, as exporters write a recurrence, with the number of steps from a shape."""
    body = graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("MatMul", ["row", "w"], ["mixed"]),
            helper.make_node("Add", ["mixed", "h"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["h_next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Identity", ["h_next"], ["seen"]),
        ],
        [integers("i", []), bools("go", []), floats("h", [1, 3])],
        [bools("go_on", []), floats("h_next", [1, 3]), floats("seen", [1, 3])],
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=0, end=1),
        helper.make_node("Squeeze", ["shape", "zero"], ["n"]),
        helper.make_node("Loop", ["n", "", "h0"], ["last", "all"], body=body, name="loop"),
    ]
    constants = [
        initializer("zero", np.array([0], np.int64)),
        initializer("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)),
        initializer("h0", np.zeros((1, 3), np.float32)),
    ]
    return model(nodes, [floats("x", ["t", 1, 2])], [floats("last", None), floats("all", None)], constants)


def _scan() -> ModelProto:
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["o"])],
        [floats("s", [2]), floats("e", [2])],
        [floats("t", [2]), floats("o", [2])],
    )
    scan = helper.make_node("Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[1])
    return model([scan], [floats("s0", [2]), floats("xs", [2, 4])], [floats("last", [2]), floats("all", None)])


def _scan_of_rows() -> ModelProto:
    """A scan in reverse over a size that has a name, with a matrix product and a branch in its body."""
    yes = graph([helper.make_node("Relu", ["u"], ["p"])], [], [floats("p", None)])
    no = graph([helper.make_node("Neg", ["u"], ["q"])], [], [floats("q", None)])
    body = graph(
        [
            helper.make_node("MatMul", ["e", "w"], ["m"]),
            helper.make_node("Add", ["m", "s"], ["u"]),
            helper.make_node("ReduceSum", ["u"], ["r"], keepdims=0),
            helper.make_node("Greater", ["r", "bound"], ["c"]),
            helper.make_node("If", ["c"], ["t"], then_branch=yes, else_branch=no),
            helper.make_node("Sigmoid", ["t"], ["o"]),
        ],
        [floats("s", [2]), floats("e", [3])],
        [floats("t", [2]), floats("o", [2])],
        [initializer("bound", np.float32(0.1))],
    )
    scan = helper.make_node(
        "Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[1],
        scan_output_directions=[1], scan_output_axes=[1],
    )  # fmt: skip
    weights = initializer("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    return model(
        [scan], [floats("s0", [2]), floats("xs", ["t", 3])], [floats("last", None), floats("all", None)], [weights]
    )


def _shapes() -> ModelProto:
    nodes = [
        helper.make_node("Expand", ["x", "big"], ["e"]),
        helper.make_node("Pad", ["e", "pads"], ["p"]),
        helper.make_node("Tile", ["p", "times"], ["t"]),
        helper.make_node("Reshape", ["t", "flat"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to"], ["s"]),
        helper.make_node("Conv", ["image", "kernel"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1]),
        helper.make_node("Flatten", ["c"], ["f"]),
    ]
    constants = {"big": [4, 3], "pads": [1, 1, 0, 0], "times": [2, 2], "flat": [-1], "from": [1], "to": [9]}
    initializers = [initializer(name, np.array(value, np.int64)) for name, value in constants.items()]
    initializers.append(initializer("kernel", np.ones((1, 1, 3, 3), np.float32)))
    return model(
        nodes,
        [floats("x", [1, 3]), floats("image", [1, 1, 4, 4])],
        [floats("s", None), floats("f", None)],
        initializers,
    )


TEXTS: dict[int, tuple[str, ...]] = {
    # Opset 18 and later: axes of reductions, Split's number of outputs and the parts of Resize are operands
    21: (
        # convolutions and pools
        "(float[1,2,l] x) => (y) <float[3,2,3] w={1,2,3,-1,0,1,2,1,0,1,1,1,0,0,1,-2,1,3}, float[3] b={1,0,-1}>"
        " { a = Relu(x) y = Conv<pads=[1,1], strides=[2]>(a, w, b) }",
        "(float[1,2,4,5] x) => (y) <float[2,1,2,2] w={1,2,3,4,-1,0,1,2}> { c = Conv<group=2, dilations=[1,2]>(x, w) y = Tanh(c) }",
        "(float[2,2,6] x) => (y) <float[16,2,1] w={1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}>"
        " { c = Conv(x, w) y = Relu(c) }",
        "(float[1,1,5,5] x, float[1,1,3,3] w) => (y) { y = Conv<auto_pad=\"SAME_UPPER\", strides=[2,2]>(x, w) }",
        "(float[1,2,3] x) => (y) <float[2,1,2] w={1,2,3,4}> { y = ConvTranspose<strides=[2], output_padding=[1]>(x, w) }",
        "(float[1,2,l] x) => (y) { p = MaxPool<kernel_shape=[2], strides=[2]>(x) y = Neg(p) }",
        "(float[1,1,4,4] x) => (y, i) { y, i = MaxPool<kernel_shape=[2,2], ceil_mode=1, strides=[3,1]>(x) }",
        "(float[1,2,4,3] x) => (y) { y = AveragePool<kernel_shape=[2,2], pads=[1,0,0,1], count_include_pad=1>(x) }",
        "(float[n,2,4,3] x) => (y) { g = GlobalAveragePool(x) y = Flatten(g) }",
        "(float[1,2,3,4] x) => (y) { y = GlobalMaxPool(x) }",
        "(float[1,2,4,4] x) => (y) { y = LpPool<kernel_shape=[2,2], p=2>(x) }",
        # normalizations and softmax
        "(float[n,2,l] x) => (y) <float[2] s={1,2}, float[2] b={0,1}, float[2] m={0.5,-1}, float[2] v={1,2}>"
        " { c = Relu(x) y = BatchNormalization(c, s, b, m, v) }",
        "(float[2,2,3] x) => (y) <float[2] s={1,2}, float[2] b={0,1}> { y = InstanceNormalization(x, s, b) }",
        "(float[n,2,3] x) => (y) <float[3] s={1,2,3}, float[3] b={0,1,2}> { y = LayerNormalization<axis=-1>(x, s, b) }",
        "(float[n,4] x) => (y) <float[1] two={2}, int64[1] last={-1}, float e={0.001}>"
        " { m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last) w = Add(v, e) r = Sqrt(w) y = Div(d, r) }",
        "(float[2,4,3] x) => (y) <float[4] s={1,2,3,4}, float[4] b={0,1,2,3}> { y = GroupNormalization<num_groups=2>(x, s, b) }",
        "(float[2,3,4] x) => (y) { y = LpNormalization<axis=1, p=1>(x) }",
        "(float[1,5,2,2] x) => (y) { y = LRN<size=3>(x) }",
        "(float[2,3] x) => (y) { y = MeanVarianceNormalization<axes=[0]>(x) }",
        "(float[n,3] x) => (y) { s = Softmax<axis=1>(x) y = Log(s) }",
        "(float[2,n,3] x) => (y) { s = LogSoftmax<axis=-1>(x) y = Exp(s) }",
        "(float[2,3,2] x) => (y) { s = Softmax<axis=1>(x) y = Hardmax<axis=0>(s) }",
        # reductions
        "(float[a,b,3] x) => (y) <int64[1] axes={1}> { s = ReduceSum<keepdims=0>(x, axes) y = Add(s, s) }",
        "(float[2,3,4] x) => (y) <int64[2] axes={0,2}> { s = ReduceMean(x, axes) y = Mul(s, x) }",
        "(float[2,3] x) => (y) { y = ReduceSumSquare<noop_with_empty_axes=1>(x) }",
        "(float[2,3] x) => (y) <int64[1] axes={-1}> { a = ReduceMax(x, axes) b = ReduceMin(x, axes) y = Sub(a, b) }",
        "(float[2,3] x) => (y) <int64[1] axes={0}> { a = ReduceProd<keepdims=0>(x, axes) y = ReduceL2<keepdims=0>(a) }",
        "(float[n,3] x) => (y, z) { y = ArgMax<axis=1>(x) z = ArgMin<axis=0, keepdims=0, select_last_index=1>(x) }",
        "(int64[2,3] x) => (y) <int64[1] axes={1}> { s = ReduceSum(x, axes) y = ReduceMax<keepdims=0>(s) }",
        "(float[n,3] x) => (y) <int64 axis={0}> { y = CumSum<reverse=1>(x, axis) }",
        "(float[2,5] x) => (y, i) <int64[1] k={2}> { y, i = TopK<axis=1, largest=0>(x, k) }",
        # layout
        "(float[n,3] x) => (y) <int64[2] i={0,-1}> { g = Gather<axis=1>(x, i) y = Neg(g) }",
        "(float[3,2] x, int64[k] i) => (y) { y = Gather<axis=0>(x, i) }",
        "(float[2,3] x) => (y) <int64[2,2] i={0,1,1,0}> { y = GatherElements<axis=1>(x, i) }",
        "(float[2,3,2] x) => (y) <int64[2,1] i={0,1}> { y = GatherND<batch_dims=1>(x, i) }",
        "(float[3,2] x, float[2,2] u) => (y) <int64[2,1] i={0,2}> { y = ScatterND<reduction=\"add\">(x, i, u) }",
        "(float[3,2] x, float[1,2] u) => (y) <int64[1,2] i={0,2}> { y = ScatterElements<axis=0>(x, i, u) }",
        "(float[n,5] x) => (y) <int64[1] a={1}, int64[1] b={-1}, int64[1] ax={1}, int64[1] st={2}> { s = Slice(x, a, b, ax, st) y = Abs(s) }",
        "(float[4,n] x) => (y) <int64[2] a={3,0}, int64[2] b={-9,9223372036854775807}, int64[2] ax={0,1}, int64[2] st={-1,1}>"
        " { y = Slice(x, a, b, ax, st) }",
        "(float[n,3] x) => (y) <int64[4] p={1,0,2,1}, float v={0.5}> { y = Pad(x, p, v) }",
        "(float[3,4] x) => (y) <int64[4] p={1,2,0,1}> { y = Pad<mode=\"reflect\">(x, p) }",
        "(float[2,3] x) => (y) <int64[4] p={0,1,1,-1}> { y = Pad<mode=\"edge\">(x, p) }",
        "(float[2,3] x) => (y) <int64[4] p={1,1,1,1}> { y = Pad<mode=\"wrap\">(x, p) }",
        "(float[n,6] x) => (y) <int64[2] s={2,4}> { a, b = Split<axis=1>(x, s) c = Neg(b) y = Concat<axis=1>(c, a) }",
        "(float[5,2] x) => (a, b) { a, b = Split<axis=0, num_outputs=2>(x) }",
        "(float[n,2] x, float[m,2] z) => (y) { c = Concat<axis=0>(x, z) y = Tanh(c) }",
        "(float[n,1] x) => (y) <int64[3] s={2,1,3}> { e = Expand(x, s) y = Relu(e) }",
        "(float[n,2] x) => (y) <int64[2] r={2,3}> { t = Tile(x, r) y = Neg(t) }",
        "(float[n,2,3] x) => (y) { t = Transpose<perm=[0,2,1]>(x) y = Flatten<axis=2>(t) }",
        "(float[n,2,3] x) => (y) <int64[2] s={0,-1}> { r = Reshape(x, s) y = Relu(r) }",
        "(float[n,6] x) => (y) <int64[3] s={-1,2,3}> { r = Reshape(x, s) y = Transpose(r) }",
        "(float[1,n,1] x) => (y) <int64[1] a={0}, int64[2] b={1,3}> { s = Squeeze(x, a) y = Unsqueeze(s, b) }",
        "(float[1,2,1] x) => (y) { y = Squeeze(x) }",
        "(float[n,3] x) => (y) <int64[1] z={0}, int64[1] six={6}>"
        " { s = Shape(x) n = Gather(s, z) c = Concat<axis=0>(n, six) e = Unsqueeze(x, z) f = Concat<axis=2>(e, e) g = Squeeze(f, z) y = Reshape(g, c) }",
        "(float[1,4,2,2] x) => (y) { d = DepthToSpace<blocksize=2>(x) y = SpaceToDepth<blocksize=2>(d) }",
        "(float[1,1,2,3] x) => (y) <float[4] s={1,1,2,1.5}> { y = Resize<mode=\"linear\">(x, , s) }",
        "(float[1,1,3] x) => (y) <int64[3] s={1,1,5}> { y = Resize<mode=\"nearest\", nearest_mode=\"floor\", coordinate_transformation_mode=\"asymmetric\">(x, , , s) }",
        "(float[1,1,4,4] x) => (y) <int64[4] s={1,1,3,6}> { y = Resize<mode=\"cubic\">(x, , , s) }",
        "(float[1,1,3,3] x, float[1,2,2,2] g) => (y) { y = GridSample<align_corners=1>(x, g) }",
        "(float[2,3] x, int64[2] l) => (y) { y = ReverseSequence<batch_axis=0, time_axis=1>(x, l) }",
        "(float[n,3] x) => (y) { t = Trilu<upper=0>(x) y = Add(t, x) }",
        "(int64[n] x) => (y) <int64 d={4}, float[2] v={0,1}> { y = OneHot<axis=-1>(x, d, v) }",
        "(float[n,2] x) => (y) { s = Shape(x) y = ConstantOfShape(s) }",
        "(float[2,n] x) => (y) { s = Size(x) c = Cast<to=1>(s) y = Div(x, c) }",
        "() => (y) <int64 a={0}, int64 b={7}, int64 c={2}> { r = Range(a, b, c) y = Cast<to=1>(r) }",
        "(float[2,3] x) => (y) { n = NonZero(x) y = Transpose(n) }",
        "(float[2,3] x, bool[2] c) => (y) { y = Compress<axis=0>(x, c) }",
        "(float[4] x) => (y, i) { y, i, j, k = Unique<sorted=1>(x) }",
        "(float[n,2] x) => (y) { s = SplitToSequence<axis=0>(x) y = ConcatFromSequence<axis=0, new_axis=1>(s) }",
        "(float[2] x, float[2] z) => (y) <int64 i={1}> { s = SequenceConstruct(x, z) y = SequenceAt(s, i) }",
        # products
        "(float[n,3] x) => (y) <float[3,4] w={1,2,3,4,5,6,7,8,9,1,2,3}, float[4] b={1,2,3,4}> { m = MatMul(x, w) a = Add(m, b) y = Relu(a) }",
        "(float[2,n,3] x, float[2,3,k] w) => (y) { y = MatMul(x, w) }",
        "(float[3] x) => (y) <float[3] w={1,2,3}> { y = MatMul(x, w) }",
        "(float[2,3] x, float[4,2] w, float[3] c) => (y) { y = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(x, w, c) }",
        "(float[n,2] x) => (y) <float[2,3] w={1,2,3,4,5,6}, float[3] c={1,2,3}> { g = Gemm(x, w, c) y = Sigmoid(g) }",
        "(float[2,3] x, float[3,n] z) => (y) { y = Einsum<equation=\"ij,jk->ki\">(x, z) }",
        "(float[1,2,4,3] q, float[1,2,4,3] k, float[1,2,4,3] v) => (y) <float s={0.5}>"
        " { t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t) c = Mul(m, s) p = Softmax<axis=-1>(c) y = MatMul(p, v) }",
        # signal
        "(float[1,n,1] x) => (y) <int64 a={1}> { y = DFT<onesided=1>(x, , a) }",
        "(float[1,4,2] x) => (y) <int64 a={1}, int64 l={6}> { y = DFT<inverse=1>(x, l, a) }",
        "(float[1,16,1] x) => (y) <int64 h={4}, float[8] w={0,0.2,0.6,1,1,0.6,0.2,0}, int64 l={8}> { y = STFT(x, h, w, l) }",
        "() => (y) <int64 n={6}> { h = HannWindow<periodic=1>(n) k = HammingWindow(n) y = Add(h, k) }",
        "() => (y) <int64 a={4}, int64 b={8}, int64 c={16000}, float d={0}, float e={8000}> { y = MelWeightMatrix(a, b, c, d, e) }",
        # element by element
        "(float[n,3] x) => (y) <float[3] w={1,2,3}, float e={2}> { a = Mul(x, w) b = Pow(a, e) c = Sqrt(b) d = Exp(c) f = Log(d) y = Sub(f, x) }",
        "(float[n] x) => (y) <float lo={-1}, float hi={1.5}> { c = Clip(x, lo, hi) y = Erf(c) }",
        "(float[2,3] x, float[3] z, bool[2,1] c) => (y) { w = Where(c, x, z) y = Neg(w) }",
        "(float[n] x, float[n] z) => (y) { g = Greater(x, z) l = LessOrEqual(x, z) o = Or(g, l) a = Not(o) y = Cast<to=1>(a) }",
        "(float[2] x, float[2] z) => (y) { e = Equal(x, z) n = IsNaN(x) i = IsInf(x) a = And(e, n) y = Xor(a, i) }",
        "(int64[n] x, int64[n] z) => (y) { d = Div(x, z) m = Mod(x, z) s = Mul(d, z) y = Add(s, m) }",
        "(int32[n] x, int32[n] z) => (y) { d = Sub(x, z) m = Mul(d, z) a = Abs(m) b = Max(a, x) y = Min(b, z) }",
        "(int64[3] x) => (y) <int64[3] z={1,2,3}> { d = Div(x, z) m = Mod<fmod=0>(d, z) n = Neg(m) s = Sign(n) y = Pow(s, z) }",
        "(uint8[3] x, uint8[3] z) => (y) { b = BitShift<direction=\"LEFT\">(x, z) o = BitwiseAnd(b, z) y = BitwiseNot(o) }",
        "(float[2,3] x) => (y) { a = Floor(x) b = Ceil(x) c = Round(x) d = Sum(a, b, c) e = Mean(d, x) f = Sign(e) y = Reciprocal(f) }",
        "(float[4] x) => (y) { a = Sin(x) b = Cos(a) c = Tan(b) d = Atan(c) e = Asinh(d) f = Sinh(e) y = Softplus(f) }",
        "(float[4] x) => (y) { a = LeakyRelu<alpha=0.2>(x) b = Elu<alpha=2.0>(a) c = Selu(b) d = HardSigmoid(c) e = Celu(d) f = Softsign(e) y = HardSwish(f) }",
        "(float[2,3] x) => (y) <float[3] s={0.1,-0.2,3}> { p = PRelu(x, s) g = Gelu(p) m = Mish(g) y = ThresholdedRelu<alpha=0.5>(m) }",
        "(float[n] x) => (y) { i = Cast<to=7>(x) b = Cast<to=9>(i) f = Cast<to=1>(b) h = Cast<to=10>(f) y = Cast<to=6>(h) }",
        "(float[2] x, int64[2] z) => (y) { c = CastLike(x, z) a = Add(c, z) y = CastLike(a, x) }",
        "(double[2,2] x) => (y) { a = Exp(x) b = MatMul(a, a) y = Softmax(b) }",
        "(float16[2,2] x) => (y) { a = Tanh(x) b = MatMul(a, a) y = ReduceSum(b) }",
        "(float[n] x) => (y) { d = Identity(x) e, m = Dropout(d) y = Add(e, x) }",
        "(float[3,3] x) => (y, z) { y = Det(x) z = EyeLike<k=1>(x) }",
        # quantized
        "(float[n,4] x) => (y) <float s={0.1}, uint8 z={128}> { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
        "(float[2,3] x) => (y) <float[3] s={0.1,0.2,0.3}, int8[3] z={0,1,-2}> { q = QuantizeLinear<axis=1>(x, s, z) y = DequantizeLinear<axis=1>(q, s, z) }",
        "(float[2,3] x) => (y) <int8[3,2] w={1,-2,3,4,5,-6}> { q, s, z = DynamicQuantizeLinear(x) m = MatMulInteger(q, w, z) f = Cast<to=1>(m) y = Mul(f, s) }",
        "(uint8[1,1,3,3] x) => (y) <uint8[1,1,2,2] w={1,2,3,4}, uint8 zx={1}, uint8 zw={2}> { y = ConvInteger(x, w, zx, zw) }",
        "(uint8[2,3] a, uint8[3,2] b) => (y) <float s={0.1}, uint8 z={3}> { y = QLinearMatMul(a, s, z, b, s, z, s, z) }",
        "(uint8[1,1,3,3] x) => (y) <float s={0.1}, uint8 z={3}, uint8[2,1,2,2] w={1,2,3,4,5,6,7,8}, int32[2] b={1,2}> { y = QLinearConv(x, s, z, w, s, z, s, z, b) }",
        "(float[3,1,2] x) => (y, h, c) <int8[1,2,8] w={1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}, int8[1,2,8] r={1,2,3,4,5,6,7,8,-1,-2,3,4,5,6,7,8},"
        " float[1] s={0.05}, int8[1] z={0}>"
        " { y, h, c = com.microsoft.DynamicQuantizeLSTM<hidden_size=2>(x, w, r, , , , , , s, z, s, z) }",
        # recurrent, with sizes that have names
        "(float[t,b,2] x, int32[b] l) => (y, h) <float[1,3,2] w={1,2,3,-1,0,1}, float[1,3,3] r={1,0,1,0,1,0,-1,0,1}>"
        " { y, h = RNN<hidden_size=3>(x, w, r, , l) }",
        "(float[t,1,1] x, float[1,1,2] h0) => (y, h) <float[1,6,1] w={1,2,3,-1,0,1}, float[1,6,2] r={1,0,1,0,1,0,-1,0,1,1,0,2}>"
        " { y, h = GRU<hidden_size=2, linear_before_reset=0>(x, w, r, , , h0) }",
        "(float[t,b,1] x) => (y, h, c) <float[2,4,1] w={1,2,3,-1,0,1,2,1}, float[2,4,1] r={1,0,1,0,1,0,-1,0}, float[2,3] p={1,2,3,1,2,3}>"
        " { y, h, c = LSTM<hidden_size=1, direction=\"bidirectional\">(x, w, r, , , , , p) }",
    ),
    # Opset 11: axes as attributes, Softmax over flattened axes
    11: (
        "(float[n,2,3] x) => (y) { s = ReduceSum<axes=[1], keepdims=0>(x) y = Softmax<axis=1>(s) }",
        "(float[1,2] x) => (y) { u = Unsqueeze<axes=[0]>(x) s = Squeeze<axes=[0]>(u) y = LogSoftmax<axis=0>(s) }",
        "(float[2,4] x) => (a, b) { a, b = Split<axis=1, split=[1,3]>(x) }",
        "(float[1,1,4] x) => (y) <float[0] r={}, float[3] s={1,1,2}> { y = Resize<mode=\"nearest\">(x, r, s) }",
        "(float[2,3] x) => (y) <float lo={0}, float hi={6}> { c = Clip(x, lo, hi) m = ReduceMax<axes=[-1]>(c) y = Div(c, m) }",
    ),
    # Opset 7: constants as attributes
    7: (
        "(float[2,3] x) => (y) { c = Clip<min=-1.0, max=1.0>(x) p = Pad<pads=[0,1,0,1], value=2.0>(c) y = Slice<starts=[0], ends=[2], axes=[1]>(p) }",
        "(float[2,3] x) => (y) <float[2] b={1,2}> { f = Flatten<axis=0>(x) t = Tanh(f) y = Dropout<ratio=0.3>(t) }",
    ),
}  # fmt: skip
