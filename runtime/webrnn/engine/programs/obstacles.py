"""What keeps a graph from becoming a plan, node by node, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from webrnn.errors import Error
from webrnn.ir import REFUSED, Graph
from webrnn.plan.lower import refusals, with_named_sizes
from webrnn.plan.lowering import NotLowered

MOST_LISTED = 40

TRIED_SIZES = (16, 1, 64, 512, 16384)
"""Numbers for all open sizes of a model, to see whether it has a plan if they are known."""

EXPLAIN = ("infer_shapes", "unpack_sequences", "unbox_sequences", "sequences_to_traces")
"""Passes that say why a sequence is still one."""


def obstacles(graph: Graph, options: frozenset[str] = frozenset()) -> list[str]:
    """A line for each node that has no instructions, of a graph whose passes have run; none if it is a plan."""
    try:
        found = refusals(with_named_sizes(graph), options)
    except NotLowered as reason:
        found = [reason]
    carries = any(" a sequence" in refusal.reason for refusal in found)
    reasons = dict(_declines(graph)) if carries else {}
    return [_line(refusal, reasons) for refusal in found]


def _line(refusal: NotLowered, reasons: dict[str, str]) -> str:
    more = reasons.get(refusal.node.label) if refusal.node is not None else None
    return str(refusal) if more is None else f"{refusal}; {more}"


def _declines(graph: Graph) -> Iterator[tuple[str, str]]:
    from webrnn.passes.pipeline import PASSES, run_passes  # most models never need it

    outcome = run_passes(graph.copy(), [step for step in PASSES if step.name in EXPLAIN])
    for declines in outcome.declines.values():
        yield from ((decline.where, decline.reason) for decline in declines)


def obstacles_for_some_shapes(
    source: Graph, graph_for: Callable[[tuple[tuple[int, ...], ...]], Graph], options: frozenset[str]
) -> list[str] | None:
    """What keeps a model back if the sizes of its inputs are known; None if it takes none of the sizes tried."""
    if any(value.shape is None or value.container for value in source.inputs):
        return None
    found: list[str] | None = None
    for size in TRIED_SIZES:
        shapes = tuple(
            tuple(dim if isinstance(dim, int) else size for dim in value.shape or ()) for value in source.inputs
        )
        try:
            graph = graph_for(shapes)
        except Error:
            continue
        if any(node.domain == REFUSED for node in graph.nodes):
            continue
        found = obstacles(graph, options)
        if not found:
            break
    return found


def listed(what: str, lines: Sequence[str], hint: str = "") -> str:
    """A message with a line for each obstacle.

    >>> print(listed("there is no plan", ["TopK best: it has no instruction"], "give shapes"))
    there is no plan:
      TopK best: it has no instruction
    give shapes
    """
    shown = list(lines[:MOST_LISTED])
    more = [f"  ... and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return "\n".join([f"{what}:", *(f"  {line}" for line in shown), *more, *([hint] if hint else [])])
