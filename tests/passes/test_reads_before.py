import pytest

from tests.passes.differential import ops, reasons
from tests.passes.loops_of_streams import changed, loop_of


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("frame before, Max", 2),
        ("frame before, Clip", 2),
        ("frame before, Relu", 2),
        ("frame before, place by Where", 2),
        ("frame before, frame by Where", 2),
        ("frame before, frame by Where, other way round", 2),
        ("frame before, used behind work", 2),
        ("frame before, index with an axis", 2),
        ("two frames before", 4),  # two frames, and the first one
        ("frame before, from the fourth on", 3),
        ("batch first", 2),
    ],
)
def test_frames_before_are_states(name, states):
    graph, outcome = changed(name, "reads_before")
    assert outcome.rewrites["reads_before"] == 1
    assert len(loop_of(graph).states) == states
    assert ops(loop_of(graph).body)["Gather"] == 0


@pytest.mark.parametrize(
    "name",
    ["frame before, round to the last", "two frames before, guarded for one", "frame before, guarded the wrong way"],
)
def test_frames_before_the_first_are_the_last(name):
    _, outcome = changed(name, "reads_before", lengths=(3, 5))
    assert reasons(outcome, "reads_before") == {"before the first frame it reads the last one"}
    assert outcome.rewrites["reads_before"] == 0


@pytest.mark.parametrize("name", ["never before the second frame", "next frame, round to the first"])
def test_other_places_stay(name):
    _, outcome = changed(name, "reads_before", lengths=(3, 5))
    assert outcome.rewrites["reads_before"] == 0


def test_far_back(monkeypatch):
    monkeypatch.setattr("webrnn.passes.reads_before.MOST_FRAMES", 1)
    _, outcome = changed("two frames before", "reads_before")
    assert reasons(outcome, "reads_before") == {"it reads further back than MOST_FRAMES"}
