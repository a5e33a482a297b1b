"""What the two passes that fuse cells share."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from webrnn.ir import WEBRNN, Graph, Node, Value, is_plain, is_scan
from webrnn.ir.fused import is_expression

from .base import Context, Pass, PassResult
from .cell_patterns import Declined, FoundCell, Loop, Operands, Surroundings, find_cell
from .rewriting import in_order


class CellFusion(Pass):
    """Fuse the cells of a graph, one after the other, and then those of the graphs inside it."""

    exact: ClassVar[bool]

    def run(self, graph: Graph, context: Context) -> PassResult:
        result = PassResult(context)
        self._visit(graph, None, context, result)
        return result

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        raise NotImplementedError("it looks at the body of a loop together with the graph around it")

    def _visit(self, graph: Graph, loop: Loop | None, context: Context, result: PassResult) -> None:
        self._fuse_all(graph, loop, context, result)
        for node in list(graph.nodes):
            for _, inner in node.subgraphs if not is_expression(node) else ():
                self._visit(inner, Loop(graph, node) if is_scan(node) else None, context, result)

    def _fuse_all(self, graph: Graph, loop: Loop | None, context: Context, result: PassResult) -> None:
        given_up: set[int] = set()
        while True:
            view = Surroundings(graph, context.facts, loop)
            found = find_cell(view, self.exact, given_up, result.declines_at)
            if found is None:
                return
            node, cell = found
            try:
                nodes, operands = _fused(view, node, cell, context)
            except Declined as declined:
                result.declines_at(node, str(declined))
                given_up.add(id(node))
                continue
            if not result.fires(f"{cell.op} {node.label}"):
                operands.drop_unused()
                return
            graph.nodes = nodes
            operands.apply()


def _fused(view: Surroundings, node: Node, cell: FoundCell, context: Context) -> tuple[list[Node], Operands]:
    """The nodes of the graph with the cell fused."""
    operands = Operands(view, cell, context)
    try:
        made = _cell_nodes(node, cell, operands)
        replaced = set(map(id, [*cell.nodes, *_cuts(view, cell)]))
        nodes: list[Node] = []
        for each in view.graph.nodes:
            nodes.extend([*operands.nodes, *made] if each is node else [each] if id(each) not in replaced else [])
        ordered = in_order(nodes)
        if ordered is None:
            raise Declined("its operands depend on its results")
    except Declined:
        operands.drop_unused()
        raise
    return ordered, operands


def _cuts(view: Surroundings, cell: FoundCell) -> list[Node]:
    """The nodes that cut apart what a cell adds up: they have nothing left to cut."""
    kept = {*cell.outputs, cell.update, cell.reset}
    pending = [value for node in cell.nodes for value in node.outputs if value is not None and value not in kept]
    found: list[Node] = []
    while pending:
        for reader in view.consumers.get(pending.pop(), ()):
            if is_plain(reader, "Split", "Slice"):
                found.append(reader)
                pending.extend(value for value in reader.outputs if value is not None)
    return found


def _cell_nodes(node: Node, cell: FoundCell, operands: Operands) -> list[Node]:
    xw, hw = operands.wide(cell.x, cell.x_bias), operands.wide(cell.h, cell.h_bias)
    attrs: dict[str, Any] = {
        "activations": tuple(name for name, _, _ in cell.functions),
        "params": (math.inf, *(number for _, alpha, beta in cell.functions for number in (alpha, beta))),
    }

    def make(op: str, inputs: list[Value | None], outputs: list[Value | None]) -> Node:
        return Node(op, inputs, outputs, dict(attrs), node.name, WEBRNN)

    if cell.op == "GruUpdate":
        before = make("GruReset", [xw, hw, cell.state], [cell.update, cell.reset])
        return [before, make("GruUpdate", [xw, cell.product, cell.update, cell.state], [*cell.outputs])]
    if cell.op == "LstmCell":
        attrs["couple"] = 0
    states = [cell.state if cell.op != "RnnCell" else None, operands.peepholes()]
    return [make(cell.op, [xw, hw, *(value for value in states if value is not None)], [*cell.outputs])]
