"""What has to hold for every graph: `EXAMINATIONS` by name, each a function that raises AssertionError.

`tests/passes/test_random_graphs.py` runs them on the same graphs each time, `tests/passes/fuzz.py` on new ones.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from unittest import mock

from tests.passes.canonical import shuffled, structure
from tests.passes.differential import BY_NAME, assert_keeps_results, assert_same_results
from tests.passes.random_graphs import RandomGraph
from tests.shapes.watching import run_and_compare
from webrnn.ir import Graph
from webrnn.ir.check import check
from webrnn.ir.text import to_text
from webrnn.passes import Context, PassResult, run_passes
from webrnn.shapes.infer import infer

REORDERING = [name for name, step in BY_NAME.items() if step.reorders_arithmetic]

PASSES_A_GRAPH = 3
"""So many of the passes that have something to do on a graph are run alone on it."""


def facts_hold(case: RandomGraph) -> None:
    check(case.graph)
    run_and_compare(case.graph, case.arguments, infer(case.graph))


def pipeline_keeps_results(case: RandomGraph) -> None:
    graph = case.graph.copy()
    assert run_passes(graph, check=True).reached_fixpoint
    assert_same_results(case.graph, graph, case.arguments, bits=False)
    assert_is_fixpoint(graph)


def assert_is_fixpoint(graph: Graph) -> None:
    """Optimized once more, nothing changes."""
    text = to_text(graph)
    again = run_passes(graph)
    assert not again.fired, again.fired
    assert to_text(graph) == text


def exact_passes_keep_bits(case: RandomGraph) -> None:
    graph = case.graph.copy()
    run_passes(graph, disable=REORDERING, check=True)
    assert_same_results(case.graph, graph, case.arguments, bits=True)


def order_does_not_matter(case: RandomGraph, seed: int = 0) -> None:
    assert_order_does_not_matter(case.graph, random.Random(seed))


def assert_order_does_not_matter(graph: Graph, rng: random.Random) -> None:
    first, second = graph.copy(), shuffled(graph, rng)
    check(second)
    assert structure(first) == structure(second)
    for each in (first, second):
        assert run_passes(each).reached_fixpoint
    assert structure(first) == structure(second), _differences(first, second)


def _differences(first: Graph, second: Graph) -> str:
    """The lines of two graphs that only one of them has."""
    texts = [{line.strip() for line in to_text(graph).splitlines()} for graph in (first, second)]
    return "\n".join(["", *sorted(texts[0] - texts[1]), "---", *sorted(texts[1] - texts[0])])


class EachPassAlone:
    """Runs passes alone on the graphs on which they have something to do, those first that had the fewest so far."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def __call__(self, case: RandomGraph) -> None:
        ready = sorted(passes_with_work(case.graph), key=lambda name: self.runs[name])
        for name in ready[:PASSES_A_GRAPH]:
            self.runs[name] += 1
            try:
                assert_keeps_results(case.graph, case.arguments, name)
            except BaseException as error:
                error.add_note(f"the pass {name} alone")
                raise


def passes_with_work(graph: Graph) -> Iterator[str]:
    """The passes that ask for a rewrite. None is granted, and a pass that is not granted one changes nothing."""
    copy = graph.copy()
    copy.drop_unused_constants()
    context = Context(copy, rewrites_left=0, facts=infer(copy))
    text = to_text(copy)
    for name, step in BY_NAME.items():
        asked: list[str] = []

        def fires(result: PassResult, what: str, asked: list[str] = asked) -> bool:
            asked.append(what)
            return False

        with mock.patch.object(PassResult, "fires", fires):
            step.run(copy, context)
        if asked:
            yield name
    assert to_text(copy) == text, "a pass changed the graph without leave"


EXAMINATIONS: dict[str, Callable[[RandomGraph], None]] = {
    "facts": facts_hold,
    "pipeline": pipeline_keeps_results,
    "exact passes": exact_passes_keep_bits,
    "order": order_does_not_matter,
    "each pass alone": EachPassAlone(),
}
