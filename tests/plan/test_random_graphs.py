"""Random graphs through passes, lowering and the VM, against numpy. A failure names its seed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.random_graphs import random_graph
from tests.plan.harness import BUILDS, IN_PARTS, assert_close, assert_same_bits, loaded, run_plan
from webrnn.engine.executor.executor import Executor
from webrnn.errors import PlanError
from webrnn.passes import run_passes
from webrnn.plan.encode import compile_graph
from webrnn.plan.lowering import NotLowered

BLOCKS = [range(first, first + 50) for first in range(0, 300, 50)]


def lowered(graph, options=frozenset()):
    try:
        return compile_graph(graph, options)
    except NotLowered:
        return None


def examine(seed: int, optimize: bool) -> bool:
    """Whether the graph has a plan."""
    case = random_graph(seed)
    graph = case.graph.copy()
    with np.errstate(all="ignore"):
        wanted = [np.asarray(array) for array in Executor(case.graph).run(case.arguments)]
    if optimize:
        run_passes(graph)
    plans = [lowered(graph.copy()), lowered(graph.copy(), frozenset({"fused_sequences"}))]
    if plans[0] is None:
        return False
    results = {}
    for spec in (*BUILDS, *IN_PARTS):
        for data in plans:
            try:
                (got,) = run_plan(data, spec, [case.arguments])
            except PlanError as error:
                if "a size is negative" not in str(error):
                    raise
                return False  # it holds for other sizes, such as longer sequences
            assert_close(got, wanted, 1e-4, spec)
            assert_same_bits(got, results.setdefault(loaded(spec).fused, got), spec)
    return True


@pytest.mark.parametrize("optimize", [False, True], ids=("as it is", "optimized"))
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_random_graphs(seeds, optimize):
    done = 0
    for seed in seeds:
        try:
            done += examine(seed, optimize)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert done > len(seeds) // 4, "too few of them have a plan"
