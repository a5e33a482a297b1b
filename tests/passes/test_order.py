"""The result of the passes does not depend on the order of nodes and constants, and it is a fixpoint."""

import random

import pytest

from tests.models.fetch import MODELS
from tests.passes.canonical import shuffled, structure
from tests.passes.random_graphs import random_graph
from tests.passes.test_infer_shapes import read_real_model
from webrnn.ir.check import check
from webrnn.ir.text import to_text
from webrnn.passes import run_passes


def optimized(graph):
    outcome = run_passes(graph)
    assert outcome.reached_fixpoint
    return graph


def differences(first, second):
    """The lines of the text of two graphs that only one has, to look at."""
    texts = [{line.strip() for line in to_text(graph).splitlines()} for graph in (first, second)]
    return "\n".join(["", *sorted(texts[0] - texts[1]), "---", *sorted(texts[1] - texts[0])])


def assert_order_does_not_matter(graph, rng):
    other = shuffled(graph, rng)
    check(other)
    assert structure(other) == structure(graph)
    first, second = optimized(graph.copy()), optimized(other)
    assert structure(first) == structure(second), differences(first, second)


@pytest.mark.parametrize("seeds", [range(first, first + 50) for first in range(0, 300, 50)], ids=lambda s: str(s[0]))
def test_order_of_random_graphs(seeds):
    for seed in seeds:
        try:
            assert_order_does_not_matter(random_graph(seed).graph, random.Random(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("name", sorted(MODELS))
def test_order_of_real_models(name):
    graph = read_real_model(name)
    for seed in range(2):
        assert_order_does_not_matter(graph, random.Random(seed))


def test_structures_that_differ():
    """What is compared tells graphs apart."""
    seen = {}
    for seed in range(60):
        graph = random_graph(seed).graph
        key = repr(structure(graph))
        assert key not in seen, (seed, seen[key])
        seen[key] = seed
        graph.nodes.pop()
        if not any(value in graph.producers() or value in graph.inputs for value in graph.outputs):
            continue
        graph.outputs = [
            v for v in graph.outputs if v in graph.producers() or v in graph.inputs or v in graph.constants
        ]
        assert repr(structure(graph)) != key
