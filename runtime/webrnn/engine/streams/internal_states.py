"""States that a model keeps to itself: a loop that starts from constants gives and takes its state nowhere.

`expose_states` makes them inputs and outputs, so that a model that was exported for whole sequences runs by chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from webrnn.along_time import prove
from webrnn.ir import Graph, Node, Scan, Value
from webrnn.passes import run_passes
from webrnn.passes.rewriting import Names
from webrnn.shapes.infer import infer


@dataclass(frozen=True)
class ExposedStates:
    pairs: list[tuple[str, str]]
    """(input, output) of each state."""
    initial: Graph
    """From the inputs of the model to what the states start from, in the order of the pairs."""


def expose_states(graph: Graph) -> ExposedStates:
    """Make the states of the loops of a graph that walk along time inputs and outputs of it, in place.

    A graph that gives something else by frames than for the whole sequence is refused, naming the node.
    """
    loops = prove(graph).loops
    facts = infer(graph)
    names = Names(graph)
    initial = graph.copy()
    initial.outputs = []
    pairs, copies = [], []
    for position, (node, original) in enumerate(zip(graph.nodes, initial.nodes, strict=True)):
        if node not in loops:
            continue
        scan = Scan.of(node)
        initial.outputs += [state.init for state in Scan.of(original).states]
        for state in scan.states:
            fact = facts.of(state.init)
            name = f"{scan.name or 'scan'}.{state.body_in[0].name}"
            before = Value(names.fresh(name), fact.dtype, fact.shape)
            after = Value(names.fresh(f"{name}.next"), fact.dtype, fact.shape)
            if state.final is None:
                state.final = after
            else:  # others have it as well, perhaps as an output of the model
                copies.append(Node("Identity", [state.final], [after]))
            state.init = before
            graph.inputs.append(before)
            graph.outputs.append(after)
            pairs.append((before.name, after.name))
        graph.nodes[position] = scan.to_node()
    graph.nodes += copies
    run_passes(initial)
    return ExposedStates(pairs, initial)
