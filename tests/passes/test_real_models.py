"""The whole pipeline on the real models: the same results, and the nodes that have to be gone are."""

import numpy as np
import pytest

from tests.models.fetch import MODELS
from tests.passes.differential import assert_same_results, ops
from tests.passes.test_infer_shapes import model_arguments, read_real_model
from webrnn.ir import is_scan
from webrnn.passes import ALL_PASSES, run_passes

NODES = {
    "dtln_1": 58,
    "dtln_2": 74,
    "localwake_loop": 155,
    "nsnet2_16k": 59,
    "riann": 56,
    "silero_v6": 100,
    "silero_v6_op15": 52,
    "silero_v6_op18_ifless": 90,
    "silero_v6_seq": 44,
}
"""At most so many are left."""


@pytest.mark.parametrize("name", sorted(MODELS))
def test_same_results_with_fewer_nodes(name):
    before = read_real_model(name)
    after = before.copy()
    outcome = run_passes(after, check=True)
    assert outcome.reached_fixpoint
    assert sum(ops(after).values()) <= NODES[name]
    assert_same_results(before, after, list(model_arguments(name, before)), bits=False)


@pytest.mark.parametrize("name", ["dtln_1", "nsnet2_16k", "riann", "silero_v6", "silero_v6_seq"])
def test_products_with_the_input_leave_the_loop(name):
    graph = read_real_model(name)
    run_passes(graph)
    for inner in graph.walk():
        for node in inner.nodes:
            if is_scan(node):
                assert sum(each.op == "Linear" for each in node.attrs["body"].nodes) == 1


@pytest.mark.parametrize(("name", "nodes"), [("silero_v6", 49), ("silero_v6_op15", 50), ("silero_v6_op18_ifless", 43)])
def test_no_if_is_left_at_a_fixed_sample_rate(name, nodes):
    before = read_real_model(name, fixed={"sr": np.array(16000)})
    after = before.copy()
    run_passes(after, check=True)
    assert "If" not in ops(after)
    assert sum(ops(after).values()) <= nodes
    assert_same_results(before, after, list(model_arguments(name, before)), bits=False)


@pytest.mark.parametrize("disabled", [step.name for step in ALL_PASSES])
def test_each_pass_can_be_switched_off(disabled):
    before = read_real_model("silero_v6", fixed={"sr": np.array(16000)})
    after = before.copy()
    assert run_passes(after, disable=[disabled], check=True).rewrites[disabled] == 0
    assert_same_results(before, after, list(model_arguments("silero_v6", before)), bits=False)
