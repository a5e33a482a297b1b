import pytest

from tests.passes.differential import ops, reasons
from tests.passes.loops_of_streams import changed, loop_of


@pytest.mark.parametrize("name", ["frame before, If", "frame before, If not"])
def test_reads_stand_before_the_branch(name):
    graph, outcome = changed(name, "reads_out_of_branches")
    assert outcome.rewrites["reads_out_of_branches"] == 1
    body = loop_of(graph).body
    (choice,) = [node for node in body.nodes if node.op == "If"]
    assert not any(ops(choice.attrs[name])["Gather"] for name in ("then_branch", "else_branch"))


def test_a_branch_that_may_be_taken_too_early():
    _, outcome = changed("frame before, If that reads too early", "reads_out_of_branches", lengths=(3, 5))
    assert reasons(outcome, "reads_out_of_branches") == {"the branch may be taken before there is such a frame"}
    assert outcome.rewrites["reads_out_of_branches"] == 0
