"""Convolutions, and convolutions the other way round."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of, plan_of
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


CONVOLUTIONS = (
    ("n 3 9", (4, 3, 3), {}),
    ("n 3 9", (4, 3, 3), {"pads": [2, 1], "strides": [2]}),
    ("n 4 9", (6, 2, 3), {"group": 2, "dilations": [2]}),
    ("n 4 9", (4, 1, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("n 4 9", (4, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2]}),
    ("n 4 9", (4, 4, 2), {"auto_pad": "VALID"}),
    ("n 2 7 5", (3, 2, 3, 2), {}),
    ("n 2 7 5", (3, 2, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ("n 2 30 1", (3, 2, 1, 1), {}),
    ("1 3 t", (4, 3, 3), {"pads": [1, 1]}),
    ("1 3 t", (4, 3, 3), {"pads": [2, 0], "strides": [2]}),
    ("1 3 t", (20, 3, 3), {"strides": [2]}),
    ("n 3 t", (20, 3, 4), {"strides": [3], "auto_pad": "VALID"}),
    ("n 3 t", (20, 3, 3), {"pads": [2, 1], "strides": [3], "dilations": [2]}),
    ("n 3 t", (20, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2]}),
    ("n 3 t", (4, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [3]}),
    ("n 4 t 6", (6, 2, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 1], "group": 2}),
    ("n 5 t 6", (30, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    ("n 3 7 t", (41, 3, 3, 5), {"pads": [2, 0, 0, 3], "strides": [1, 2], "dilations": [2, 1]}),
    ("n 17 t", (8, 17, 3), {"pads": [4, 0], "dilations": [2]}),
    ("1 20 t 7", (2, 20, 2, 3), {"pads": [1, 1, 0, 1]}),
    ("n 1 t 9", (12, 1, 5, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("n 33 t 7", (33, 1, 3, 3), {"group": 33, "pads": [1, 1, 1, 1]}),
    ("n 20 t 7", (20, 1, 5, 3), {"group": 20, "pads": [0, 1, 2, 1], "strides": [2, 2], "dilations": [1, 2]}),
    ("n 6 t 7", (12, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1], "dilations": [2, 2]}),
    ("n 12 t 7", (8, 3, 2, 3), {"group": 4, "pads": [1, 1, 0, 1], "strides": [1, 2]}),
    ("n 12 t 7", (8, 3, 2, 3), {"group": 4, "dilations": [1, 2]}),
    ("n 12 t 7", (27, 4, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    ("n 2 4 5 6", (3, 2, 2, 3, 2), {"pads": [1, 0, 1, 0, 2, 1], "strides": [2, 1, 2]}),
    ("n 4 t 5 6", (6, 2, 3, 1, 2), {"auto_pad": "SAME_UPPER", "dilations": [2, 1, 1], "group": 2}),
    ("n 2 3 4 5 4", (2, 2, 2, 3, 2, 2), {"pads": [0, 1, 0, 0, 1, 0, 0, 1]}),
)


@pytest.mark.parametrize(("shape", "weights", "attrs"), CONVOLUTIONS)
def test_convolution(shape, weights, attrs):
    w, bias = array(*weights), array(weights[0])
    sizes = [{"n": 2, "t": 9}, {"n": 1, "t": 5}, {"n": 3, "t": 40}, {"n": 0, "t": 4}]
    for operands in ([w], [w, bias]):
        graph = graph_of(lambda b, x: b.op("Conv", x, *(b.constant(o) for o in operands), **attrs), f"f {shape}")  # noqa: B023
        check_graph(graph, sizes=sizes)
    check_graph(
        graph_of(lambda b, x: b.op("Tanh", b.op("Conv", b.op("Tanh", x), b.constant(w), **attrs)), f"f {shape}"),
        sizes=sizes,
    )


def test_a_chain_stays_channels_last():
    """Between convolutions, pools and what is element-wise nothing is transposed: only zeros are put around."""

    def chain(b, x):
        for filters, channels in ((16, 3), (24, 16)):
            weights = array(filters, channels, 3, 3) / 10
            x = b.op("Conv", x, b.constant(weights), b.constant(array(filters)), pads=[1] * 4)
            x = b.op("MaxPool", b.op("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
        x = b.op("Conv", x, b.constant(array(24, 1, 3, 3) / 10), pads=[1] * 4, group=24)
        return b.op("Conv", x, b.constant(array(8, 24, 1, 1) / 10))

    graph = graph_of(chain, "f n 3 t 20")
    check_graph(graph, sizes=[{"n": 2, "t": 12}, {"n": 1, "t": 4}])
    names = [instruction.name for instruction in lower(graph.copy()).walk()]
    assert Counter(names)["copy"] == 4  # three with zeros, and the result, channels first
    assert not {"conv", "pool"} & {*names}


def test_infinite_inputs_stay_in_their_group():
    """A filter of a group reads nothing of the others: an infinite element there is no NaN here."""
    for filters, attrs in ((8, {"group": 4}), (24, {"group": 2}), (4, {"group": 4})):
        weights = array(filters, 4 // attrs["group"], 3)
        graph = graph_of(lambda b, x: b.op("Conv", x, b.constant(weights), **attrs), "f 1 4 9")  # noqa: B023
        x = array(1, 4, 9)
        x[0, 3, 4] = np.inf
        check_graph(graph, [x])


def test_weights_that_are_an_input():
    check_graph(graph_of(lambda b, x, w: b.op("Conv", x, w), "f n 3 9", "f 4 3 3"))


@pytest.mark.parametrize(("shape", "weights"), [("f n 4 5 6 7", "f 6 2 2 3 1"), ("f n 4 9", "f 2 2 3")])
def test_weights_that_are_an_input_in_groups(shape, weights):
    check_graph(graph_of(lambda b, x, w: b.op("Conv", x, w, group=2), shape, weights))


def test_operands_with_gaps():
    graph = graph_of(
        lambda b, x: b.op(
            "Transpose", b.op("Conv", b.op("Transpose", x, perm=[0, 2, 1]), b.constant(array(4, 3, 3))), perm=[0, 2, 1]
        ),
        "f n 9 3",
    )
    check_graph(graph)


TRANSPOSED = (
    ("n 3 7", (3, 4, 3), {}),
    ("n 3 7", (3, 20, 3), {"strides": [2]}),
    ("1 3 t", (3, 20, 5), {"strides": [2], "pads": [2, 1], "output_padding": [1]}),
    ("1 3 t", (3, 20, 2), {"strides": [3]}),
    ("n 3 t", (3, 4, 4), {"strides": [2], "auto_pad": "SAME_UPPER"}),
    ("n 4 7", (4, 3, 4), {"group": 2, "strides": [3], "dilations": [2], "pads": [1, 3]}),
    ("n 4 t", (4, 1, 3), {"group": 4, "dilations": [2], "strides": [2], "auto_pad": "SAME_LOWER"}),
    ("n 3 7", (3, 2, 3), {"strides": [5], "output_shape": [33]}),
    ("n 3 7", (3, 2, 3), {"strides": [2], "output_shape": [9], "auto_pad": "SAME_UPPER"}),
    ("n 2 3 5", (2, 3, 3, 2), {"strides": [1, 2]}),
    ("n 2 t 5", (2, 3, 1, 5), {"strides": [1, 2], "pads": [0, 2, 0, 2]}),
    ("n 5 t 6", (5, 12, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("n 5 4 t", (5, 9, 2, 5), {"strides": [1, 2], "pads": [0, 2, 1, 1], "output_padding": [0, 1]}),
    ("n 6 t 3", (6, 8, 3, 3), {"group": 2, "strides": [2, 1], "dilations": [1, 2]}),
    ("n 12 4 t", (12, 1, 3, 3), {"group": 12, "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    ("n 4 3 5", (4, 2, 3, 3), {"group": 2, "strides": [2, 3], "dilations": [2, 1], "pads": [4, 0, 1, 3]}),
    ("n 2 3 4 3", (2, 3, 2, 3, 2), {"strides": [2, 1, 2], "pads": [1, 0, 0, 0, 1, 0], "output_padding": [1, 0, 0]}),
)


@pytest.mark.parametrize(("shape", "weights", "attrs"), TRANSPOSED)
def test_transposed_convolution(shape, weights, attrs):
    w, bias = array(*weights), array(weights[1] * attrs.get("group", 1))
    sizes = [{"n": 2, "t": 9}, {"n": 1, "t": 2}, {"n": 0, "t": 4}]
    for operands in ([w], [w, bias]):
        graph = graph_of(
            lambda b, x: b.op("ConvTranspose", x, *(b.constant(o) for o in operands), **attrs),  # noqa: B023
            f"f {shape}",
        )
        check_graph(graph, sizes=sizes)


@pytest.mark.parametrize(("shape", "weights", "attrs"), [TRANSPOSED[1], TRANSPOSED[5], TRANSPOSED[-2], TRANSPOSED[-1]])
def test_transposed_convolution_with_weights_that_are_an_input(shape, weights, attrs):
    kernel = "f " + " ".join(map(str, weights))
    check_graph(graph_of(lambda b, x, w: b.op("ConvTranspose", x, w, **attrs), f"f {shape}", kernel))


@pytest.mark.parametrize(
    ("build", "shapes", "reason"),
    [
        (lambda b, x, w: b.op("Conv", x, w), ["f 1 1 5", "f 1 1 n"], "kernel is not known|not known"),
        (
            lambda b, x: b.op("ConvTranspose", x, b.constant(array(1, 1, 3)), output_shape=[9]),
            ["f 1 1 t"],
            "cut off depends on a size",
        ),
        (
            lambda b, x: b.op("ConvTranspose", x, b.constant(array(1, 1, 3)), strides=[1 << 32]),
            ["f 1 1 t"],
            "a stride of 4294967296",
        ),
    ],
)
def test_reasons_to_refuse(build, shapes, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, *shapes))


@pytest.mark.parametrize(
    ("shape", "weights", "is_rows"),
    [
        ("1 1 t", (1, 1, 24), True),  # an impulse response
        ("1 3 t", (3, 3, 6), True),
        ("1 2 9 t", (2, 2, 3, 3), True),
        ("1 1 t", (1, 1, 1), False),
        ("1 8 t", (1, 8, 3), False),
        ("1 3 t", (3, 3, 1), False),
    ],
)
def test_few_filters_of_many_taps_are_rows(shape, weights, is_rows):
    """Either way adds up in the same order."""
    graph = graph_of(lambda b, x: b.op("Conv", x, b.constant(array(*weights))), f"f {shape}")
    names = [instruction.name for instruction in lower(graph.copy()).walk()]
    assert ("conv_rows" in names or "gemm" in names) == is_rows
    assert ("conv" in names) != is_rows
    check_graph(graph, sizes=[{"t": 40}, {"t": 24}])
