"""The whole pipeline on the real models: the same results, and the nodes that have to be gone are."""

from functools import cache

import numpy as np
import pytest

from tests.models.fetch import MODELS
from tests.passes.differential import assert_gives, assert_same_results, nodes_left, ops
from tests.shapes.test_infer import model_arguments, read_real_model
from webrnn.engine.executor.executor import Executor
from webrnn.ir import is_scan
from webrnn.passes import ALL_PASSES, run_passes

NODES = {
    "dtln_1": 27,
    "dtln_2": 30,
    "localwake_loop": 151,
    "nsnet2_16k": 27,
    "riann": 26,
    "silero_v6": 80,
    "silero_v6_op15": 35,
    "silero_v6_op18_ifless": 66,
    "silero_v6_seq": 31,
}
"""At most so many are left."""


@pytest.mark.parametrize("name", sorted(MODELS))
def test_same_results_with_fewer_nodes(name):
    before = read_real_model(name)
    after = before.copy()
    outcome = run_passes(after, check=True)
    assert outcome.reached_fixpoint
    assert nodes_left(after) <= NODES[name]
    assert_same_results(before, after, list(model_arguments(name, before)), bits=False)


@pytest.mark.parametrize("name", ["dtln_1", "nsnet2_16k", "riann", "silero_v6", "silero_v6_seq"])
def test_products_with_the_input_leave_the_loop(name):
    graph = read_real_model(name)
    run_passes(graph)
    for inner in graph.walk():
        for node in inner.nodes:
            if is_scan(node):
                assert sum(each.op == "Linear" for each in node.attrs["body"].nodes) == 1


@pytest.mark.parametrize(("name", "nodes"), [("silero_v6", 39), ("silero_v6_op15", 34), ("silero_v6_op18_ifless", 31)])
def test_no_if_is_left_at_a_fixed_sample_rate(name, nodes):
    before = read_real_model(name, fixed={"sr": np.array(16000, np.int64)})
    after = before.copy()
    run_passes(after, check=True)
    assert "If" not in ops(after)
    assert nodes_left(after) <= nodes
    assert_same_results(before, after, list(model_arguments(name, before)), bits=False)


def body_ops(graph):
    scans = [node for inner in graph.walk() for node in inner.nodes if is_scan(node)]
    return [[node.op for node in scan.attrs["body"].nodes] for scan in scans]


@pytest.mark.parametrize(
    ("name", "bodies"),
    [
        ("nsnet2_16k", [["Linear", "GruCell"]] * 2),
        ("riann", [["Linear", "GruCell"]] * 2),
        ("silero_v6_seq", [["Linear", "LstmCell"]]),
    ],
)
def test_loops_are_a_product_and_a_cell(name, bodies):
    graph = read_real_model(name)
    run_passes(graph)
    assert body_ops(graph) == bodies


@pytest.mark.parametrize(
    ("name", "cells"), [("dtln_1", 2), ("dtln_2", 2), ("silero_v6", 1), ("silero_v6_op18_ifless", 1)]
)
def test_single_steps_are_cells_fed_by_products(name, cells):
    """dtln_2's cells and that of silero_v6_op18_ifless are written out by their exporters."""
    graph = read_real_model(name, fixed={"sr": np.array(16000, np.int64)} if name.startswith("silero") else None)
    run_passes(graph)
    found = [node for node in graph.nodes if node.op == "LstmCell"]
    producers = graph.producers()
    assert len(found) == cells
    assert "Scan" not in ops(graph)
    products = {producers[node.inputs[1]].op for node in found}
    assert products == {"Linear"}


@cache
def with_results(name, fixed):
    """A model, inputs for it, and its results without any pass."""
    graph = read_real_model(name, fixed={"sr": 16000} if fixed else None)
    arguments = list(model_arguments(name, graph))
    return graph, arguments, Executor(graph).run(arguments)


@pytest.mark.parametrize("disabled", ["all", *(step.name for step in ALL_PASSES)])
def test_each_pass_can_be_switched_off(disabled):
    for name, fixed in [*((name, False) for name in sorted(MODELS)), ("silero_v6", True)]:
        graph, arguments, wanted = with_results(name, fixed)
        copy = graph.copy()
        outcome = run_passes(copy, disable=[disabled], check=True)
        assert outcome.reached_fixpoint
        assert disabled not in outcome.fired
        assert not outcome.fired or disabled != "all"
        try:
            assert_gives(copy, arguments, wanted, bits=disabled == "all")
        except AssertionError as error:
            error.add_note(f"{name} without {disabled}")
            raise
