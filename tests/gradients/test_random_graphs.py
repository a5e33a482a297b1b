"""Gradients of random graphs with loops (tests/passes/random_graphs.py) beside finite differences.

`make fuzz-gradients` tries more of them: python -m tests.gradients.test_random_graphs --count 500 --seed 100
"""

import argparse

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS
from tests.passes.random_graphs import random_graph
from webrnn.gradients.api import gradient

from .finite import assert_right, with_loss

OPTIONS = ({}, {"every": 2}, {"every": 1}, {"truncate": 9})


def compare(seed: int, **options: int) -> int:
    case, rng = random_graph(seed), np.random.default_rng(seed)
    # Numbers that are no corner of any function
    arguments = [item + rng.normal(0, 0.1, item.shape).astype(item.dtype) for item in case.arguments]
    return assert_right(case.graph, arguments, seed, **options)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_random_graphs(first):
    compared = sum(compare(seed) for seed in range(first, first + 25))
    assert compared > 50


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
def test_random_graphs_with_options(options):
    assert sum(compare(seed, **options) for seed in range(100, 115)) > 30


@pytest.mark.parametrize("seed", range(200, 206))
def test_random_graphs_in_plans(seed):
    """In float32: near numpy, and fused builds bit for bit."""
    case, rng = random_graph(seed), np.random.default_rng(seed)
    graph = with_loss(case.graph.copy(), case.arguments, rng)
    feeds = dict(zip([value.name for value in graph.inputs], case.arguments, strict=True))
    made = gradient(graph, "loss", list(feeds))
    wanted = webrnn.InferenceSession(made, backend="numpy").run(None, feeds)
    results = [webrnn.InferenceSession(made, backend=backend).run(None, feeds) for backend in KERNELS]
    for found, want in zip(results[0], wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max(initial=0)))
    for others in results[1:]:
        assert all(np.array_equal(*pair) for pair in zip(others, results[0], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    compared = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        for options in OPTIONS:
            try:
                compared += compare(seed, **options)
            except BaseException as error:
                error.add_note(f"seed {seed}, {options}")
                raise
    print(f"{arguments.count} graphs, {compared} gradients, nothing found")


if __name__ == "__main__":
    main()
