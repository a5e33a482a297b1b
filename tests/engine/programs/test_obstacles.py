"""What keeps a graph from becoming a plan."""

import numpy as np

from tests.backends import MAIN
from tests.passes.differential import graph_of
from webrnn.engine.programs.obstacles import MOST_LISTED, listed, obstacles, obstacles_for_some_shapes
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.engine.session import InferenceSession
from webrnn.passes import run_passes

STRINGS = """g (string[2] s, float[n, 2] x) => (y, z) { go = Constant<value=bool {1}>() k = Constant<value=int64 {3}>()
    y = Loop(k, go) <body = b (int64 i, bool c) => (bool c2, string[2] t) { u = StringConcat(s, s)
        t = StringConcat(u, s) c2 = Identity(c) }>
    z = Relu(x) }"""


def test_nodes_inside_of_a_loop_are_named():
    graph = graph_of(STRINGS)
    run_passes(graph, disable=["all"])
    found = obstacles(graph)
    assert any("a tensor of string" in line for line in found)


def test_a_graph_that_is_a_plan_has_none():
    graph = graph_of("g (float[n] x) => (y) { y = Relu(x) }")
    assert obstacles(graph) == []
    assert obstacles_for_some_shapes(graph, lambda shapes: with_shapes(graph, shapes), frozenset()) == []


def test_all_that_has_no_instruction_is_said_once_and_the_rest_runs_on_the_vm():
    graph = graph_of(
        """g (string[2] s, float[n] x) => (y, t, z) { a = StringConcat(s, s) y = StringConcat(a, s)
        t = StringConcat(s, y) z = Relu(x) }"""
    )
    session = InferenceSession(graph, backend=MAIN)
    x = np.float32([-1, 2])
    assert session.run(["z"], {"s": np.array(["a", "b"], object), "x": x})[0].tolist() == [0, 2]
    lines = [line for line in session.report().splitlines() if line.startswith("in numpy: ")]
    assert len(lines) == len(set(lines)) == 3
    assert all("StringConcat" in line for line in lines)


def test_long_lists_end():
    assert listed("no plan", ["x"] * (MOST_LISTED + 2)).endswith("... and 2 more")
