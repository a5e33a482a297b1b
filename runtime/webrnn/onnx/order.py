"""The order in which the nodes of a graph can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webrnn.errors import ModelError

from .proto import GraphProto, NodeProto


def in_running_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """The nodes, each after those whose results it reads. ONNX demands that order; some exporters do not keep it."""
    read: set[str] = set()
    for node in nodes:
        read.update(_names_read(node))
        if not read.isdisjoint(node.outputs):
            return _sorted(nodes)
    return nodes


def _sorted(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    needs = [{producer[name] for name in _names_read(node) if name in producer} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, needed in enumerate(needs):
        for other in needed:
            readers[other].append(index)
    missing = [len(needed) for needed in needs]
    ready = [index for index in reversed(range(len(nodes))) if not missing[index]]
    order = []
    while ready:
        index = ready.pop()
        order.append(nodes[index])
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    if len(order) < len(nodes):
        stuck = nodes[next(index for index in range(len(nodes)) if missing[index])]
        raise ModelError("the node depends on its own result", node=stuck.name or f"-> {stuck.outputs[0]}", op=stuck.op)
    return order


def _names_read(node: NodeProto) -> Iterable[str]:
    names: Iterable[str] = node.inputs
    for attribute in node.attributes:
        for graph in attribute.graphs or (attribute.g,):
            if graph is not None:
                names = {*names, *_free_names(graph)}
    return names


def _free_names(graph: GraphProto) -> set[str]:
    """The names that a sub-graph takes from outside."""
    if graph.free_names is not None:
        return graph.free_names
    defined = {info.name for info in graph.inputs} | {tensor.name for tensor in graph.initializers}
    read: set[str] = set()
    for node in graph.nodes:
        read.update(_names_read(node))
        defined.update(node.outputs)
    read.update(info.name for info in graph.outputs)
    graph.free_names = read - defined
    return graph.free_names
