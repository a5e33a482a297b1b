"""Ops that are made of others, as `passes/expansions` says: their gradients are those of the others."""

from __future__ import annotations

from importlib import import_module

from webrnn.ir import Node, Value
from webrnn.passes.base import Context
from webrnn.passes.expand_ops import MODULES
from webrnn.passes.expansions.emitter import Declined
from webrnn.passes.expansions.emitter import Emitter as Expander
from webrnn.passes.rewriting import Additions

from .registry import Pull


def expanded(g: Pull) -> list[Value | None]:
    """The cotangents of the operands of an op that has an expansion."""

    def forward() -> list[Value | None]:
        b, node = g.b, g.node
        made = [None if value is None else b.value(f"{value.name}_again") for value in node.outputs]
        stand_in = Node(node.op, node.inputs, made, node.attrs, node.name)
        context = Context(b.graph, facts=b.facts)
        expander = Expander(b.graph, stand_in, context, Additions(b.graph, context))
        module = import_module(f"webrnn.passes.expansions.{MODULES[node.op]}")
        try:
            module.EXPANSIONS[node.op](expander, stand_in)
        except Declined as declined:
            raise g.refusal(str(declined) or "it is not made of others") from None
        for each in expander.nodes:
            for value in each.outputs:
                if value is not None and value not in made:
                    value.name = b.unique_name(value.name)
            b.add(each)
        return made

    return g.through(forward)
