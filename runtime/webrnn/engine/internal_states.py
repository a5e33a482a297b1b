"""States that a model keeps to itself: a loop that starts from constants gives and takes its state nowhere.

`expose_states` makes them inputs and outputs, so that a model that was exported for whole sequences runs by chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from webrnn.errors import ModelError
from webrnn.ir import Graph, Node, Scan, Value, is_scan
from webrnn.passes import run_passes
from webrnn.passes.infer_shapes import infer
from webrnn.passes.rewriting import Names


@dataclass(frozen=True)
class ExposedStates:
    pairs: list[tuple[str, str]]
    """(input, output) of each state."""
    initial: Graph
    """From the inputs of the model to what the states start from, in the order of the pairs."""


def expose_states(graph: Graph) -> ExposedStates:
    """Make the states of the loops of a graph inputs and outputs of it, in place."""
    facts = infer(graph)
    names = Names(graph)
    data = _data_dependent(graph)
    initial = graph.copy()
    initial.outputs = []
    pairs, copies = [], []
    for position, (node, original) in enumerate(zip(graph.nodes, initial.nodes, strict=True)):
        if not is_scan(node):
            continue
        scan = Scan.of(node)
        hidden = [state for state in scan.states if state.init not in data]
        initial.outputs += [
            twin.init for state, twin in zip(scan.states, Scan.of(original).states, strict=True) if state in hidden
        ]
        if not hidden:
            continue
        if any(sequence.spec.reverse for sequence in scan.sequences):
            raise ModelError("it runs backwards in time and needs the whole sequence", node=node.label, op=node.op)
        for state in hidden:
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


def _data_dependent(graph: Graph) -> set[Value]:
    """Values that depend on elements of the inputs, not only on their sizes."""
    found = set(graph.inputs)
    for node in graph.nodes:
        only_sizes = not node.domain and node.op in ("Shape", "Size")
        read = node.inputs[:1] if node.op == "ExpectShape" else node.inputs
        if not only_sizes and any(value in found for value in read):
            found.update(output for output in node.outputs if output is not None)
    return found
