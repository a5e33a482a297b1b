"""A pass is skipped only where it would have found nothing."""

import pytest

from tests.models.fetch import MODELS
from tests.passes.random_graphs import random_graph
from tests.shapes.test_infer import read_real_model
from webrnn.ir import Graph
from webrnn.passes import ALL_PASSES, Context, run_passes
from webrnn.passes.pipeline import features_of
from webrnn.shapes.infer import infer


def assert_nothing_is_missed(graph: Graph) -> int:
    skipped = [step for step in ALL_PASSES if not step.may_find_something(features_of(graph))]
    for step in skipped:
        copy = graph.copy()
        result = step.load().run(copy, Context(copy, facts=infer(copy)))
        assert (result.rewrites, result.declines) == (0, []), step
    return len(skipped)


@pytest.mark.parametrize("block", range(4))
def test_random_graphs(block):
    for seed in range(25 * block, 25 * block + 25):
        graph = random_graph(seed).graph
        assert_nothing_is_missed(graph)
        run_passes(graph)
        assert_nothing_is_missed(graph)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_real_models(name):
    graph = read_real_model(name)
    skipped = assert_nothing_is_missed(graph)
    run_passes(graph)
    assert assert_nothing_is_missed(graph) >= skipped > 0


def test_modules_are_loaded_when_they_are_needed():
    graph = random_graph(0).graph
    graph.nodes.clear()
    assert not any(step.may_find_something(features_of(graph)) for step in ALL_PASSES if step.name.startswith("fuse"))
