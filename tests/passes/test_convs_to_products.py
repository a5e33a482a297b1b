import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from webrnn.ir import DType, GraphBuilder, Symbol

NAME = "convs_to_products"


def conv(length=1, weights=None, bias=True, before=None, behind=None, fed=False, **attrs):
    b = GraphBuilder("g")
    value = b.input("x", DType.FLOAT, (2, 3, length) if before is None else (2, length, 3))
    if before is not None:
        value = b.op("Transpose", value, perm=before)
    array = floats(4, 3, 1) if weights is None else weights
    w = b.input("w", DType.FLOAT, array.shape) if fed else b.constant(array)
    made = b.op("Conv", value, w, *([b.constant(floats(4))] if bias else []), **attrs)
    b.graph.outputs = [made if behind is None else b.op("Transpose", made, perm=behind)]
    return b.graph


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("attrs", [{}, {"kernel_shape": [1], "pads": [0, 0], "strides": [1], "dilations": [2]}])
@pytest.mark.parametrize("padding", ["NOTSET", "VALID", "SAME_UPPER"])
def test_a_single_position(bias, attrs, padding):
    graph = conv(bias=bias, auto_pad=padding, **attrs)
    assert_keeps_results(graph, [floats(2, 3, 1)], NAME)
    apply(graph, NAME)
    assert ops(graph) == {"Transpose": 2, "MatMul": 1, **({"Add": 1} if bias else {})}


@pytest.mark.parametrize(("before", "behind"), [([0, 2, 1], None), (None, [0, 2, 1]), ([0, 2, 1], [0, 2, 1])])
def test_a_transpose_beside_it_cancels(before, behind):
    graph = conv(Symbol("n"), before=before, behind=behind)
    shape = (2, 3, 6) if before is None else (2, 6, 3)
    assert_keeps_results(graph, [floats(*shape)], NAME, "merge_layout", "remove_identities", "remove_dead")
    apply(graph, NAME, "merge_layout", "remove_identities", "remove_dead")
    assert ops(graph)["Transpose"] == (0 if before and behind else 1)
    assert "Conv" not in ops(graph)


@pytest.mark.parametrize(
    "graph",
    [
        conv(3, floats(4, 3, 2)),
        conv(3, strides=[2], before=[0, 2, 1]),
        conv(3, pads=[1, 0], before=[0, 2, 1]),
        conv(1, floats(6, 1, 1), bias=False, group=3),
    ],
    ids=["kernel", "stride", "padding", "groups"],
)
def test_other_convolutions_stay(graph):
    outcome = apply(graph, NAME)
    assert not outcome.rewrites[NAME]
    assert not reasons(outcome, NAME)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (conv(fed=True), "its weights are not constants"),
        (conv(6), "it has several positions and no Transpose beside it"),
        (conv(Symbol("n")), "it has several positions and no Transpose beside it"),
    ],
)
def test_declines(graph, reason):
    outcome = apply(graph, NAME)
    assert reasons(outcome, NAME) == {reason}
    assert ops(graph) == {"Conv": 1}
