"""Ops that make a tensor larger, smaller, or fill it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import arguments_of, check_graph, graph_of, plan_of, value_type
from webrnn.plan.file import PlanFile

ANY_KIND = ("f", "i", "j", "b", "f64", "f16", "i8", "u16", "bf16")

PADS = {
    "all axes": ((1, 0, 2, 0, 3, 1), None),
    "some axes": ((1, 2, 0, 3), (2, -2)),
    "what is taken away": ((-1, 0, 0, 0, 0, -2), None),
    "both": ((-1, 2, 0, 1, -1, 2), None),
    "both on one axis": ((1, -1), (1,)),
    "none": ((0, 0, 0, 0, 0, 0), None),
    "all is taken away": ((-2, -3), (1,)),
}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("name", PADS)
def test_pad(mode, name):
    pads, axes = PADS[name]
    chosen = () if axes is None else (None, axes)

    def build(b, x):
        return b.op("Pad", x, b.ints(*pads), *(a if a is None else b.ints(*a) for a in chosen), mode=mode)

    for kind in ANY_KIND:
        check_graph(graph_of(build, f"{kind} 3 5 4"))
    check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, b.op("Transpose", x))), "f 4 5 3"))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_of_a_named_size(mode):
    build = lambda b, x: b.op("Pad", x, b.ints(2, 0, 1, 3), mode=mode)  # noqa: E731
    check_graph(graph_of(build, "f n 4"), sizes=({"n": 3}, {"n": 7}))
    if mode == "constant":
        check_graph(graph_of(build, "i n 4"))


def test_wrap_goes_around_several_times():
    check_graph(graph_of(lambda b, x: b.op("Pad", x, b.ints(5, 7), mode="wrap"), "f 3"))
    check_graph(
        graph_of(lambda b, x: b.op("Pad", x, b.ints(0, 5, 1, 7), mode="wrap"), "f 3 n"), sizes=({"n": 1}, {"n": 9})
    )


def test_a_plan_is_no_longer_where_wrap_goes_around_more_often():
    def plan(times):
        return graph_of(lambda b, x: b.op("Pad", x, b.ints(1, 3 * times), mode="wrap"), "f 3")

    for times in (14, 16, 40):
        check_graph(plan(times))
    few, many = (PlanFile(plan_of(plan(times))).header["code_words"] for times in (1000, 100_000))
    assert few == many


def test_pad_with_a_value_that_comes_in_a_run():
    for kind in ANY_KIND:
        graph = graph_of(lambda b, x, v: b.op("Pad", x, b.ints(1, 0, 2, 1), v), f"{kind} n 2", f"{kind}")
        check_graph(graph)
    check_graph(graph_of(lambda b, x, v: b.op("Pad", x, b.ints(1, 2), b.op("Add", v, v)), "i n", "i"))


def test_pad_by_a_size():
    def build(b, x):
        return b.op("Pad", x, b.op("Concat", b.ints(0), b.op("Shape", x), axis=0), b.constant(np.float32(2)))

    check_graph(graph_of(build, "f n"))


@pytest.mark.parametrize("repeats", [(1, 2, 3), (2, 1, 1), (1, 1, 1), (3, 1, 2), (0, 1, 2)])
def test_tile(repeats):
    for kind in ANY_KIND:
        check_graph(graph_of(lambda b, x: b.op("Tile", x, b.ints(*repeats)), f"{kind} n 3 1"))
    check_graph(graph_of(lambda b, x: b.op("Tile", b.op("Transpose", x), b.ints(*repeats)), "f 1 n 2"))


def test_tile_of_many_axes_and_by_sizes():
    check_graph(graph_of(lambda b, x: b.op("Tile", x, b.ints(1, 2, 3, 2, 2)), "f 2 2 1 2 3"))
    check_graph(graph_of(lambda b, x: b.op("Tile", x, b.op("Shape", x)), "f n 2"))


@pytest.mark.parametrize("kind", ANY_KIND)
def test_constant_of_shape(kind):
    value = np.ones(1, value_type(kind)[0].array_type)
    check_graph(graph_of(lambda b, x: b.op("ConstantOfShape", b.op("Shape", x), value=value), "f n 3"))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_pixels_and_channels(mode):
    for kind in ("f", "i8"):
        check_graph(graph_of(lambda b, x: b.op("DepthToSpace", x, blocksize=2, mode=mode), f"{kind} n 8 2 3"))
        check_graph(graph_of(lambda b, x: b.op("SpaceToDepth", x, blocksize=2, mode=mode), f"{kind} n 3 4 2"))
    graph = graph_of(lambda b, x: b.op("SpaceToDepth", x, blocksize=2, mode=mode), "f 1 2 n t")
    check_graph(graph, sizes=({"n": 4, "t": 2}, {"n": 2, "t": 6}))


@pytest.mark.parametrize("sizes", [(5, 2), (1, 7), (4, 4), (3, 0)])
def test_center_crop_pad(sizes):
    for kind in ("f", "i", "j", "i8"):
        check_graph(graph_of(lambda b, x: b.op("CenterCropPad", x, b.ints(*sizes), axes=[0, -1]), f"{kind} 4 n 4"))
    check_graph(graph_of(lambda b, x: b.op("CenterCropPad", x, b.ints(*sizes)), "f n t"))


def test_parts_that_nobody_asks_for():
    def build(b, x):
        parts = b.split(x, ["a", "b", "c"], axis=0)
        b.graph.nodes[-1].outputs[1] = None
        return parts[0], parts[2]

    graph = graph_of(build, "f 7")
    check_graph(graph, arguments_of(graph, {}))
