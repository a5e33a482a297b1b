import pytest

from tests.passes.differential import ops
from tests.passes.loops_of_streams import changed, loop_of


@pytest.mark.parametrize("name", ["next frame, Min", "two frames ahead, Min"])
def test_frames_ahead_are_a_sequence(name):
    graph, outcome = changed(name, "reads_ahead")
    assert outcome.rewrites["reads_ahead"] == 1
    assert ops(loop_of(graph).body)["Gather"] == 0
    assert ops(graph)["Pad"] == 1


@pytest.mark.parametrize(
    "name", ["next frame, round to the first", "frame before, Max", "never before the second frame"]
)
def test_other_places_stay(name):
    _, outcome = changed(name, "reads_ahead")
    assert outcome.rewrites["reads_ahead"] == 0
