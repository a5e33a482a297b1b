"""Nodes that no output depends on are removed.

Requires: nothing.
Ensures: every node has an output that is read; an If or an Expression has no output that nobody reads, and no input
that nothing inside reads; an output of a Scan that nobody reads is None (remove_unused takes it from there); constants
that nobody reads are gone. A check whose result is unused goes as well. An op stays that a run may refuse for its
elements, such as an index: it has to raise as it did.
Declines: never.
"""

from __future__ import annotations

from webrnn.checks.graphs import is_left_to_a_run
from webrnn.ir import Graph, Node, Value, is_plain, is_scan
from webrnn.ir.fused import is_expression

from .base import Context, Pass, PassResult
from .rewriting import drop_nodes


class RemoveDead(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        read: set[Value | None] = set(graph.outputs)
        dead = []
        for node in reversed(graph.nodes):
            if not any(value in read for value in node.outputs if value is not None):
                if not is_left_to_a_run(node, context.facts) and result.fires(f"{node.op} {node.label}"):
                    dead.append(node)
                    continue
            elif is_scan(node):
                self._drop_scan_outputs(node, read, result)
            elif is_plain(node, "If"):
                self._trim_if(node, read, result)
            elif is_expression(node):
                self._trim_expression(node, read, result)
            read.update(node.inputs)
        drop_nodes(graph, dead)
        graph.constants = {value: array for value, array in graph.constants.items() if value in read}

    def _drop_scan_outputs(self, node: Node, read: set[Value | None], result: PassResult) -> None:
        for index, value in enumerate(node.outputs):
            if value is not None and value not in read and result.fires(f"output {value.name} of {node.label}"):
                node.outputs[index] = None

    def _trim_expression(self, node: Node, read: set[Value | None], result: PassResult) -> None:
        body: Graph = node.attrs["body"]
        kept = [index for index, value in enumerate(node.outputs) if value in read]
        gone = len(node.outputs) - len(kept)
        if not gone or not result.fires(f"{gone} outputs of {node.label}"):
            return
        node.outputs = [node.outputs[index] for index in kept]
        body.outputs = [body.outputs[index] for index in kept]
        needed: set[Value | None] = set(body.outputs)
        for inner in reversed(body.nodes):
            if inner.outputs[0] in needed:
                needed.update(inner.inputs)
        body.nodes = [inner for inner in body.nodes if inner.outputs[0] in needed]
        body.constants = {value: array for value, array in body.constants.items() if value in needed}
        taken = [index for index, value in enumerate(body.inputs) if value in needed]
        node.inputs = [node.inputs[index] for index in taken]
        body.inputs = [body.inputs[index] for index in taken]

    def _trim_if(self, node: Node, read: set[Value | None], result: PassResult) -> None:
        branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
        for index in reversed(range(len(node.outputs))):
            value = node.outputs[index]
            if (value is None or value not in read) and result.fires(f"output {index} of {node.label}"):
                del node.outputs[index]
                for branch in branches:
                    del branch.outputs[index]
        used = [{value for inner in branch.nodes for value in inner.inputs} | {*branch.outputs} for branch in branches]
        for index in reversed(range(len(node.inputs) - 1)):
            unread = not any(branch.inputs[index] in names for branch, names in zip(branches, used, strict=True))
            if unread and result.fires(f"input {index + 1} of {node.label}"):
                del node.inputs[index + 1]
                for branch in branches:
                    del branch.inputs[index]
