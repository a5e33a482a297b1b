"""Ops that look at their operand in another way, and those that put operands beside each other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import MAIN
from tests.plan.harness import arguments_of, check_graph, graph_of, plan_of, run_plan
from webrnn.errors import PlanError, ShapeError
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered

KINDS = "fijb"


def on_all_kinds(build, *shapes, **settings):
    for kind in KINDS:
        check_graph(graph_of(build, *(f"{kind} {shape}" for shape in shapes)), **settings)


RESHAPES = {
    "to one axis": (lambda b, x: b.op("Reshape", x, b.ints(-1)), "n 2 3"),
    "from one axis": (lambda b, x: b.op("Reshape", x, b.ints(2, 3)), "6"),
    "to a scalar": (lambda b, x: b.op("Reshape", x, b.ints()), "1 1"),
    "from a scalar": (lambda b, x: b.op("Reshape", x, b.ints(1, 1)), ""),
    "kept axes": (lambda b, x: b.op("Reshape", x, b.ints(0, 6)), "n 2 3"),
    "of nothing": (lambda b, x: b.op("Reshape", x, b.ints(3, 0), allowzero=1), "0 5"),
    "of a transposed": (lambda b, x: b.op("Reshape", b.op("Transpose", x, perm=[1, 0, 2]), b.ints(-1, 3)), "2 n 3"),
    "of a reversed": (
        lambda b, x: b.op("Reshape", b.op("Slice", x, b.ints(-1), b.ints(-99), b.ints(0), b.ints(-1)), b.ints(6)),
        "2 3",
    ),
    "squeezed": (lambda b, x: b.op("Squeeze", x, b.ints(0, 2)), "1 n 1 3"),
    "all squeezed": (lambda b, x: b.op("Squeeze", x), "1 2 1 3"),
    "unsqueezed": (lambda b, x: b.op("Unsqueeze", x, b.ints(0, -1)), "n 3"),
    "flat": (lambda b, x: b.op("Flatten", x, axis=2), "n 2 3"),
    "flat from the start": (lambda b, x: b.op("Flatten", x, axis=0), "n 2 3"),
    "squeezed after a slice": (
        lambda b, x: b.op("Squeeze", b.op("Slice", x, b.ints(1), b.ints(2), b.ints(1)), b.ints(1)), "n 3 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESHAPES)
def test_reshape(name):
    build, shape = RESHAPES[name]
    on_all_kinds(build, shape)
    check_graph(graph_of(lambda b, x: b.op("Neg", build(b, b.op("Tanh", x))), f"f {shape}"))


@pytest.mark.parametrize("perm", [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], None])
def test_transpose(perm):
    attrs = {} if perm is None else {"perm": perm}
    on_all_kinds(lambda b, x: b.op("Transpose", x, **attrs), "n 2 3")
    check_graph(graph_of(lambda b, x: b.op("Transpose", b.op("Tanh", x), **attrs), "f 17 33 2"))


@pytest.mark.parametrize("shape", ["8 8", "17 33", "9 7", "7 40", "n 8 19", "40 8"])
def test_transpose_of_bytes(shape):
    """By eights, and what is left at both edges."""
    perm = [0, 2, 1] if "n" in shape else [1, 0]
    check_graph(graph_of(lambda b, x: b.op("Transpose", x, perm=perm), f"u8 {shape}"))
    check_graph(graph_of(lambda b, x: b.op("Concat", b.op("Transpose", x, perm=perm), axis=-1), f"c {shape}"))


def test_a_byte_repeated():
    check_graph(graph_of(lambda b, x: b.op("Expand", x, b.ints(5, 40)), "u8 1"))
    check_graph(graph_of(lambda b, x: b.op("Expand", x, b.ints(3, 40)), "c 3 1"))


def test_transpose_of_rank_zero_and_empty():
    on_all_kinds(lambda b, x: b.op("Transpose", x), "")
    on_all_kinds(lambda b, x: b.op("Transpose", x), "2 0 3")


EXPANSIONS = (("3", (2, 3)), ("2 1", (2, 4)), ("", (2, 2)), ("1 1", (2, 1, 3)), ("2 3", (1, 1)), ("1", (0,)))


@pytest.mark.parametrize(("shape", "to"), EXPANSIONS)
def test_expand(shape, to):
    on_all_kinds(lambda b, x: b.op("Expand", x, b.ints(*to)), shape)
    check_graph(graph_of(lambda b, x: b.op("Transpose", b.op("Expand", b.op("Exp", x), b.ints(*to))), f"f {shape}"))


def test_expand_to_the_shape_of_another():
    on_all_kinds(lambda b, x, y: b.op("Expand", x, b.op("Shape", y)), "1 3", "n 3")


SLICES = {
    "middle": ((1,), (3,), (1,), (1,)),
    "steps": ((0,), (6,), (1,), (2,)),
    "from the end": ((-3,), (-1,), (1,), (1,)),
    "backwards": ((-1,), (-100,), (1,), (-1,)),
    "backwards in steps": ((4,), (0,), (1,), (-2,)),
    "nothing": ((4,), (2,), (1,), (1,)),
    "nothing backwards": ((2,), (4,), (1,), (-1,)),
    "beyond the end": ((4,), (100,), (1,), (1,)),
    "several axes": ((1, 0), (5, 1), (1, 2), (1, 1)),
    "several axes backwards": ((-1, -1), (-100, -100), (1, 2), (-1, -1)),
    "an axis from the end": ((1,), (3,), (-2,), (1,)),
    "to the start, backwards": ((3,), (-(2**31),), (1,), (-1,)),
}


@pytest.mark.parametrize("name", SLICES)
def test_slice(name):
    starts, ends, axes, steps = SLICES[name]

    def build(b, x):
        return b.op("Slice", x, b.ints(*starts), b.ints(*ends), b.ints(*axes), b.ints(*steps))

    on_all_kinds(build, "2 6 2")
    on_all_kinds(build, "n 6 2")
    check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, b.op("Tanh", x))), "f 2 6 2"))


def test_slice_of_a_named_size():
    whole = lambda b, x: b.op("Slice", x, b.ints(0), b.ints(2**31 - 1), b.ints(0))  # noqa: E731
    backwards = lambda b, x: b.op("Slice", x, b.ints(-1), b.ints(-(2**31)), b.ints(0), b.ints(-1))  # noqa: E731
    for build in (whole, backwards):
        on_all_kinds(build, "n 2")


def test_slices_of_slices():
    def build(b, x):
        once = b.op("Slice", x, b.ints(1), b.ints(9), b.ints(0), b.ints(2))
        twice = b.op("Slice", once, b.ints(-1), b.ints(-99), b.ints(0), b.ints(-1))
        return twice, b.op("Slice", b.op("Transpose", twice), b.ints(1), b.ints(3), b.ints(1))

    on_all_kinds(build, "10 3")


def test_split():
    def build(b, x):
        parts = b.split(x, ["p", "q", "r"], axis=1)
        return [b.op("Transpose", parts[1], perm=[1, 0]), parts[0], parts[2]]

    on_all_kinds(build, "n 6")


def test_split_into_given_parts():
    from webrnn.ir import Node

    def build(b, x):
        parts = [b.value("p"), b.value("q")]
        b.add(Node("Split", [x, b.ints(1, 4)], list(parts), {"axis": -1}))
        return parts

    on_all_kinds(build, "n 5")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    on_all_kinds(lambda b, x, y: b.op("Concat", x, y, x, axis=axis), "2 3", "2 3")
    on_all_kinds(lambda b, x, y: b.op("Concat", x, b.op("Transpose", y), axis=axis), "3 3", "3 3")
    check_graph(
        graph_of(
            lambda b, x, y: b.op("Tanh", b.op("Concat", b.op("Tanh", x), b.op("Exp", y), axis=axis)), "f 3 3", "f 3 3"
        )
    )


PARTS = {
    "made for it": (lambda b, x, y: b.op("Concat", b.op("Tanh", x), b.op("Exp", y), axis=1), 0),
    "behind each other": (lambda b, x, y: b.op("Concat", b.op("Tanh", x), b.op("Exp", y), axis=0), 0),
    "of another shape": (
        lambda b, x, y: b.op(
            "Concat", *(b.op("Unsqueeze", b.op("Tanh", v), b.ints(1)) for v in (x, y)), axis=1
        ), 0,
    ),
    "of parts": (
        lambda b, x, y: b.op(
            "Concat", b.op("Concat", b.op("Tanh", x), b.op("Exp", y), axis=1), b.op("Neg", x), axis=1
        ), 0,
    ),
    "read again": (lambda b, x, y: b.op("Neg", b.op("Concat", b.op("Tanh", x), b.op("Exp", y), axis=1)), 0),
    "an input": (lambda b, x, y: b.op("Concat", x, b.op("Exp", y), axis=1), 1),
    "twice": (lambda b, x, y: (lambda v: b.op("Concat", v, v, axis=1))(b.op("Tanh", x)), 2),
    "read elsewhere": (
        lambda b, x, y: (lambda v: (b.op("Concat", v, b.op("Exp", y), axis=1), b.op("Neg", v)))(b.op("Tanh", x)), 1,
    ),
    "an output": (lambda b, x, y: (lambda v: (b.op("Concat", v, b.op("Exp", y), axis=1), v))(b.op("Tanh", x)), 1),
    "an input in another way": (
        lambda b, x, y: b.op("Concat", b.op("Transpose", x), b.op("Exp", y), axis=1), 1,
    ),
}  # fmt: skip
"""How a Concat gets its operands, and how many of them are copied."""


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_concat_are_made_in_their_places(name):
    build, copies = PARTS[name]
    graph = graph_of(build, "f 33 33", "f 33 33")
    assert [instruction.name for instruction in lower(graph).code].count("copy") == copies
    check_graph(graph)


@pytest.mark.parametrize(("perm", "axis", "copies"), [([0, 2, 1], 1, 2), ([2, 0, 1], 0, 2), ([0, 1, 2], 2, 3)])
def test_a_convolution_writes_to_its_place_in_a_concat(perm, axis, copies):
    """Behind a history, with channels last; not where channels would have gaps. x and the history are copied."""

    def build(b, x, before):
        kernel = b.constant(np.random.default_rng(0).standard_normal((16, 8, 3)).astype(np.float32))
        made = b.op("Transpose", b.op("Relu", b.op("Conv", x, kernel)), perm=perm)
        return b.op("Tanh", b.op("Concat", before, made, axis=axis))

    history = [[1, 16, 4][place] for place in perm]
    graph = graph_of(build, "f 1 8 12", f"f {' '.join(map(str, history))}")
    assert sum(instruction.name == "copy" for instruction in lower(graph).code) == copies
    check_graph(graph)


def test_concat_of_different_sizes():
    on_all_kinds(lambda b, x, y: b.op("Concat", x, y, axis=0), "n 3", "2 3")
    on_all_kinds(lambda b, x, y: b.op("Concat", x, y, axis=1), "n 3", "n t")
    on_all_kinds(lambda b, x, y: b.op("Concat", x, y, axis=0), "0 3", "2 3")


GATHERS = {
    "one": (lambda b, x: b.op("Gather", x, b.constant(np.int64(1)), axis=1), "n 3 2"),
    "one from the end": (lambda b, x: b.op("Gather", x, b.constant(np.int64(-1)), axis=1), "n 3 2"),
    "the last of a named size": (lambda b, x: b.op("Gather", x, b.constant(np.int64(-1)), axis=0), "n 3"),
    "the first of a named size": (lambda b, x: b.op("Gather", x, b.constant(np.int64(0)), axis=0), "n 3"),
    "several": (lambda b, x: b.op("Gather", x, b.ints(2, 0, -1, 2), axis=1), "n 3 2"),
    "a matrix of them": (lambda b, x: b.op("Gather", x, b.constant(np.int64([[0, 1], [2, -3]])), axis=-1), "n 2 3"),
    "none": (lambda b, x: b.op("Gather", x, b.constant(np.zeros((0, 2), np.int64)), axis=1), "n 3 2"),
    "of a transposed": (lambda b, x: b.op("Gather", b.op("Transpose", x), b.ints(1, 0), axis=0), "n 3"),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name):
    build, shape = GATHERS[name]
    sizes = [{"n": 3}, {"n": 1}, {"n": 5}]
    on_all_kinds(build, shape, sizes=sizes)
    check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, x)), f"f {shape}"), sizes=sizes)


def test_gather_with_an_input_as_index():
    graph = graph_of(lambda b, x, i: b.op("Gather", x, i, axis=1), "f 2 4", "i n")
    x = arguments_of(graph, {"n": 0})[0]
    check_graph(graph, [x, np.int64([3, -4, 0])], [x, np.zeros(0, np.int64)], [x, np.int64([1])])
    scalar = graph_of(lambda b, x, i: b.op("Gather", x, i, axis=0), "f 2 4", "i")
    check_graph(scalar, [x, np.array(1, np.int64)], [x, np.array(-2, np.int64)])


@pytest.mark.parametrize("index", [4, -5, 2**40, -(2**63)])
def test_an_index_out_of_range_raises(index):
    from tests.plan.harness import BUILDS

    graph = graph_of(lambda b, x, i: b.op("Gather", x, i, axis=1), "f 2 4", "i 2")
    data = plan_of(graph)
    for spec in BUILDS:
        with pytest.raises(ShapeError, match="out of range"):
            run_plan(data, spec, [[np.zeros((2, 4), np.float32), np.array([0, index])]])


PADS = {
    "constant": ({}, (1, 0, 2, 3), 1.5),
    "zeros": ({}, (0, 1, 0, 1), None),
    "nothing": ({}, (0, 0, 0, 0), None),
    "edge": ({"mode": "edge"}, (0, 2, 0, 1), None),
    "reflect": ({"mode": "reflect"}, (0, 2, 0, 3), None),
    "reflect before": ({"mode": "reflect"}, (0, 3, 0, 0), None),
}


@pytest.mark.parametrize("name", PADS)
def test_pad(name):
    attrs, pads, number = PADS[name]

    def build(b, x):
        value = None if number is None else b.constant(np.float32(number))
        return b.op("Pad", x, b.ints(*pads), value, **attrs)

    check_graph(graph_of(build, "f n 4"))
    check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, b.op("Transpose", x))), "f 4 n"))


def test_pad_of_some_axes():
    check_graph(graph_of(lambda b, x: b.op("Pad", x, b.ints(1, 2), None, b.ints(-1)), "f n 4"))


def test_reflection_of_a_named_size():
    graph = graph_of(lambda b, x: b.op("Pad", x, b.ints(2, 1), None, mode="reflect"), "f n")
    check_graph(graph, sizes=[{"n": 3}, {"n": 5}])
    with pytest.raises(PlanError):
        run_plan(plan_of(graph), MAIN, [arguments_of(graph, {"n": 2})])


def test_constant_of_shape():
    def build(b, x):
        shape = b.op("Shape", x)
        return b.op("ConstantOfShape", shape), b.op("ConstantOfShape", shape, value=np.array([2.5], np.float32))

    check_graph(graph_of(build, "f n 3"))


def test_shapes_are_values():
    def build(b, x):
        shape = b.op("Shape", x)
        rows = b.op("Gather", shape, b.constant(np.int64(0)))
        more = b.op("Add", rows, b.constant(np.int64(2)))
        return shape, rows, b.op("Mul", more, rows), b.op("Cast", more, to=1)

    on_all_kinds(build, "n t 2")


def test_outputs_that_are_views():
    def build(b, x):
        y = b.op("Tanh", x)
        return (
            b.op("Transpose", y), y, b.op("Reshape", y, b.ints(-1)), b.op("Transpose", x),
            b.op("Slice", y, b.ints(1), b.ints(3), b.ints(1)), b.op("Unsqueeze", b.op("Transpose", y), b.ints(1)),
        )  # fmt: skip

    check_graph(graph_of(build, "f n 4"))


def test_an_output_that_is_listed_twice():
    def build(b, x):
        y = b.op("Tanh", x)
        return y, y, b.op("Neg", y), y

    check_graph(graph_of(build, "f n 4"))


def test_an_output_that_others_read():
    def build(b, x):
        y = b.op("Tanh", x)
        z = b.op("Reshape", y, b.ints(-1))
        return z, b.op("Exp", z), b.op("Reshape", z, b.ints(2, -1)), y

    check_graph(graph_of(build, "f n 4"))


def test_an_input_that_is_an_output():
    on_all_kinds(lambda b, x, y: (x, b.op("Identity", x), y, x), "n 3", "")


def test_a_constant_that_is_an_output():
    def build(b, x):
        c = b.constant(np.float32([1, 2, 3]))
        return c, b.op("Add", x, c), b.op("Identity", c), b.constant(np.array([True, False])), b.constant(np.int64(7))

    check_graph(graph_of(build, "f n 3"))


def test_nothing_is_computed_for_an_unused_result():
    def build(b, x):
        b.op("NoSuchOp", x)
        return b.op("Neg", x)

    check_graph_alone = graph_of(build, "f 3")
    assert plan_of(check_graph_alone)


def test_nine_axes_collapse_or_are_refused():
    axes = "2 1 2 1 2 1 2 2 1"
    check_graph(graph_of(lambda b, x: b.op("Tanh", x), f"f {axes}"))
    check_graph(graph_of(lambda b, x: b.op("Transpose", x), "f 2 2 2 2 2 2 2 2"))
    with pytest.raises(NotLowered, match="9 axes"):
        plan_of(graph_of(lambda b, x: b.op("Transpose", x), "f 2 2 2 2 2 2 2 2 2"))


@pytest.mark.parametrize(
    ("build", "shapes", "reason"),
    [
        (lambda b, x: b.op("NoSuchOp", x), ("f 3",), "no instruction|not known"),
    ],
)  # fmt: skip
def test_reasons_to_refuse(build, shapes, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, *shapes))
