"""Each pass alone and the whole pipeline on random graphs, against the graph as it was.

`make fuzz-passes` takes as many as there is time for. A failure names its seed; `random_graph(seed)` makes the graph
again, and `python -m tests.passes.fuzz --seed` with that seed finds the rewrite that is wrong.
"""

import pytest

from tests.passes import examine, fuzz
from tests.passes.differential import BY_NAME, assert_same_results
from tests.passes.random_graphs import random_graph
from webrnn.passes import Pass, run_passes

GRAPHS = 1000
ELSEWHERE = {
    "infer_shapes",
    "fold_batchnorm",
    "fold_lookups",
    "hoist_lookups",
    "selections_to_branches",
    "simplify_powers",
    "remove_checks",
    "prune_branches",
    "reuse_steps",
    "reverse_whole_sequences",
    "expand_ops",
    "integer_products",
    "skip_requantizing",
    "skip_zero_weights",
    "unrepeat_matrices",
}
"""Passes that never have anything to do on these graphs; they have tests of their own."""
SELDOM_ALONE = {"count_steps", "merge_scans", "repeats_to_invariants", "unpack_sequences"}
"""Passes that wait for others, or for what few graphs have."""
LEFT_NOTHING = {"unroll_loops"}
"""Passes that have something to do only where the others have not."""


def blocks(count, size):
    ranges = [range(first, first + size) for first in range(0, count, size)]
    return pytest.mark.parametrize("seeds", ranges, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


def for_each(seeds, examination):
    for seed in seeds:
        try:
            examination(random_graph(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@blocks(GRAPHS, 100)
def test_pipeline(seeds):
    for_each(seeds, examine.pipeline_keeps_results)


@blocks(GRAPHS, 500)
def test_each_pass_alone(seeds):
    alone = examine.EachPassAlone()
    for_each(seeds, alone)
    assert BY_NAME.keys() - alone.runs.keys() - SELDOM_ALONE == ELSEWHERE


@blocks(200, 100)
def test_pipeline_of_exact_passes_keeps_every_bit(seeds):
    for_each(seeds, examine.exact_passes_keep_bits)


@blocks(200, 100)
def test_facts_hold(seeds):
    for_each(seeds, examine.facts_hold)


@blocks(200, 100)
def test_order_does_not_matter(seeds):
    for_each(seeds, examine.order_does_not_matter)


def test_each_pass_fires_in_the_pipeline():
    fired = set()
    for seed in range(300):
        fired |= run_passes(random_graph(seed).graph).fired.keys()
    assert BY_NAME.keys() - fired - LEFT_NOTHING == ELSEWHERE


def test_every_prefix_of_the_rewrites_is_right():
    def every_prefix(case):
        total = sum(run_passes(case.graph.copy()).rewrites.values())
        for count in range(0, total, max(total // 6, 1)):
            graph = case.graph.copy()
            outcome = run_passes(graph, stop_after=count, check=True)
            assert sum(outcome.rewrites.values()) == count
            assert_same_results(case.graph, graph, case.arguments, bits=False)

    for_each(range(15), every_prefix)


def test_fuzzing_ends_where_it_is_told_to(capsys):
    assert fuzz.main(["--seed", "5", "--count", "3"]) == 0
    assert capsys.readouterr().out == "from seed 5\n3 graphs, nothing found\n"


class _Wrong(Pass):
    """Swaps the operands of differences; of the first two rewrites the second changes a result."""

    name = "wrong"

    def rewrite(self, graph, context, result):
        for node in graph.nodes:
            if node.op == "Sub" and node.name != "swapped" and result.fires(f"Sub {node.label}"):
                node.name = "swapped"
                node.inputs.reverse()


def test_fuzzing_finds_the_wrong_rewrite(monkeypatch, capsys):
    step = _Wrong()
    monkeypatch.setitem(BY_NAME, step.name, step)
    monkeypatch.setattr(fuzz, "EXAMINATIONS", {"each pass alone": examine.EachPassAlone()})
    assert fuzz.main(["--seed", "0", "--count", "50"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith(": each pass alone")
    assert lines[-1].startswith("wrong, stop_after=")
    assert "is the first with a wrong result: wrong: Sub ->" in lines[-1]
