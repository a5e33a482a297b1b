"""Each pass alone and the whole pipeline on random graphs, against the graph as it was.

A failure names its seed; `random_graph(seed)` makes the graph again.
"""

import pytest

from tests.passes.differential import BY_NAME, assert_keeps_results, assert_same_results
from tests.passes.random_graphs import random_graph
from tests.passes.watching import run_and_compare
from webrnn.ir.check import check
from webrnn.ir.text import to_text
from webrnn.passes import run_passes
from webrnn.passes.infer_shapes import infer

BLOCKS = [range(first, first + 25) for first in range(0, 300, 25)]
SEEDS = pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


def for_each(seeds, examine):
    for seed in seeds:
        try:
            examine(random_graph(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@SEEDS
def test_facts_hold(seeds):
    def examine(case):
        check(case.graph)
        run_and_compare(case.graph, case.arguments, infer(case.graph))

    for_each(seeds, examine)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "infer_shapes"])
def test_each_pass_alone(name):
    for_each(range(120), lambda case: assert_keeps_results(case.graph, case.arguments, name))


@SEEDS
def test_pipeline(seeds):
    def examine(case):
        graph = case.graph.copy()
        outcome = run_passes(graph, check=True)
        assert outcome.reached_fixpoint
        assert_same_results(case.graph, graph, case.arguments, bits=False)
        text = to_text(graph)
        assert not sum(run_passes(graph).rewrites.values())
        assert to_text(graph) == text

    for_each(seeds, examine)


@SEEDS
def test_pipeline_of_exact_passes_keeps_every_bit(seeds):
    reordering = [name for name, step in BY_NAME.items() if step.reorders_arithmetic]

    def examine(case):
        graph = case.graph.copy()
        run_passes(graph, disable=reordering, check=True)
        assert_same_results(case.graph, graph, case.arguments, bits=True)

    for_each(seeds, examine)


def test_each_pass_fires_on_some_graph():
    fired = set()
    for seed in range(150):
        fired |= {name for name, count in run_passes(random_graph(seed).graph).rewrites.items() if count}
    elsewhere = {"infer_shapes", "fold_batchnorm", "simplify_powers", "remove_checks", "prune_branches"}
    assert BY_NAME.keys() - fired == elsewhere


def test_every_prefix_of_the_rewrites_is_right():
    def examine(case):
        total = sum(run_passes(case.graph.copy()).rewrites.values())
        for count in range(0, total, max(total // 6, 1)):
            graph = case.graph.copy()
            outcome = run_passes(graph, stop_after=count, check=True)
            assert sum(outcome.rewrites.values()) == count
            assert_same_results(case.graph, graph, case.arguments, bits=False)

    for_each(range(15), examine)
