"""Graphs of loops as the passes for streams get them, and how they are tried."""

from __future__ import annotations

import numpy as np

from tests.along_time.loop_texts import BATCH, EXACT, REFUSED, WIDTH, proto_of
from tests.passes.differential import apply, assert_keeps_results
from webrnn.ir import Graph, Scan, is_scan
from webrnn.onnx.reader import read_model
from webrnn.passes import Outcome, run_passes
from webrnn.passes.pipeline import PLAIN_LOOPS


def plain(name: str) -> Graph:
    """One of the texts, with plain loops."""
    text = EXACT[name] if name in EXACT else REFUSED[name][0]
    graph = read_model(proto_of(text).SerializeToString())
    run_passes(graph, PLAIN_LOOPS)
    return graph


def frames(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, BATCH, WIDTH)).astype(np.float32)


def changed(name: str, *passes: str, lengths: tuple[int, ...] = (1, 2, 5)) -> tuple[Graph, Outcome]:
    """The graph behind passes, which give the same for sequences of these lengths, and what they did."""
    graph = plain(name)
    for length in lengths:
        assert_keeps_results(graph, [frames(length)], *passes)
    outcome = apply(graph, *passes)
    return graph, outcome


def loop_of(graph: Graph) -> Scan:
    (node,) = [node for node in graph.nodes if is_scan(node)]
    return Scan.of(node)
