"""The order in which nodes can run.

ONNX demands that a node comes after those whose results it reads. Most files keep that, so the reader relies on it, and
only comes here when a value is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webrnn.errors import ModelError
from webrnn.ir.order import stable_order

from .proto import GraphProto, Model, NodeProto


def sort_nodes(model: Model) -> bool:
    """Bring all nodes into an order in which they can run; False if they were in order. Raises if there is none."""
    assert model.graph is not None
    changed = False
    pending: list = [model.graph, *model.functions]
    while pending:
        owner = pending.pop()
        ordered = _sorted(owner.nodes)
        if ordered != list(owner.nodes):
            owner.nodes = ordered
            changed = True
        pending.extend(graph for node in ordered for graph in _subgraphs(node))
    return changed


def _sorted(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    needs = [{producer[name] for name in _names_read(node) if name in producer} for node in nodes]
    order = stable_order(needs)
    if len(order) < len(nodes):
        stuck = nodes[min(set(range(len(nodes))) - set(order))]
        label = stuck.name or f"-> {', '.join(filter(None, stuck.outputs))}"
        raise ModelError("the node depends on its own result", node=label, op=stuck.op)
    return [nodes[index] for index in order]


def _names_read(node: NodeProto) -> set[str]:
    return set(node.inputs).union(*map(_free_names, _subgraphs(node)))


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attributes:
        if attribute.g is not None:
            yield attribute.g
        yield from attribute.graphs


def _free_names(graph: GraphProto) -> set[str]:
    """The names that a sub-graph takes from outside."""
    defined = {info.name for info in graph.inputs} | {tensor.name for tensor in graph.initializers}
    read = {info.name for info in graph.outputs}
    for node in graph.nodes:
        read |= _names_read(node)
        defined.update(node.outputs)
    return read - defined
