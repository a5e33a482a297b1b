"""`webrnn.gradient`: a model with its loss and the gradients of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.ir import Graph, Value
from webrnn.losses import LOSSES, Loss, loss_of
from webrnn.passes import run_passes
from webrnn.passes.pipeline import PASSES, PLAIN_LOOPS
from webrnn.shapes.infer import infer

from .emitter import Emitter
from .parameters import bind, open_model
from .pieces import LastSteps, cut_last, keep_every
from .pullback import is_float, pull_nodes, require_rules, spread
from .registry import Options

BEFORE = tuple(step for step in PASSES if step in PLAIN_LOOPS or step.name in ("hoist_invariants", "merge_common"))
"""These run on a model before it is taken back: loops are plain, and what is the same in all steps stands
before them."""


@dataclass(frozen=True)
class Derived:
    """A model with gradients."""

    graph: Graph
    loss: str
    """The output that has the loss."""
    gradients: dict[str, str]
    """By the name of an input or a weight, the output that has its gradient."""
    weights: dict[str, np.ndarray]
    """What the weights are that are inputs of the graph."""


def gradient(
    model: str | os.PathLike[str] | bytes | Graph,
    loss: str | Loss | Callable[..., Value],
    wrt: Sequence[str] | str = "weights",
    *,
    prediction: str | None = None,
    mask: bool = False,
    truncate: int | None = None,
    every: int | None = None,
    outputs: Sequence[str] = (),
    fixed: Mapping[str, Any] | None = None,
) -> Graph:
    """A graph with the loss and its gradients as outputs, which `webrnn.InferenceSession` runs.

    `loss` is the name of an output that is one number, or a loss that webrnn adds: "mse", "cross_entropy", "ctc", one
    of `webrnn.training` with options, or a function that adds ops. Then `prediction` names the output that it compares
    with a new input, "target", and with `mask` there is an input "mask". `wrt` names inputs and weights; "weights" is
    all weights. The gradient of w is the output "w_grad". With `truncate` loops go back over so many steps only, the
    last ones, and keep no more than these. With `every` they keep the states of each so many steps only, and compute
    those between once more. `outputs` names outputs that are to stay.

    >>> import webrnn
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... squares (float[n] x) => (float y) { y = ReduceSumSquare <keepdims = 0> (x) }''')
    >>> graph = webrnn.gradient(model.SerializeToString(), loss="y", wrt=["x"])
    >>> webrnn.InferenceSession(graph).run(None, {"x": np.float32([1, 2])})
    [array(5., dtype=float32), array([2., 4.], dtype=float32)]
    """
    found = derive(
        model, loss, wrt, prediction=prediction, mask=mask, truncate=truncate, every=every, outputs=outputs, fixed=fixed
    )
    bind(found.graph, found.weights)
    return found.graph


def derive(
    model: str | os.PathLike[str] | bytes | Graph,
    loss: str | Loss | Callable[..., Value],
    wrt: Sequence[str] | str = "weights",
    *,
    prediction: str | None = None,
    mask: bool = False,
    truncate: int | None = None,
    every: int | None = None,
    outputs: Sequence[str] = (),
    fixed: Mapping[str, Any] | None = None,
) -> Derived:
    """The same with the weights as inputs of the graph, for whoever changes them."""
    if wrt != "weights" if isinstance(wrt, str) else not isinstance(wrt, Iterable):
        raise OptionError(f'wrt is {wrt!r}; it is a list of names, or "weights"')
    if isinstance(outputs, str):
        raise OptionError(f"outputs is a list of names: outputs=[{outputs!r}]")
    for name, number in (("truncate", truncate), ("every", every)):
        is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is not None and not (is_number and number >= 1):
            raise OptionError(f"{name} is {number!r}; it is a number of steps, 1 or more")
    truncate, every = (None if number is None else int(number) for number in (truncate, every))
    names = None if isinstance(wrt, str) else list(dict.fromkeys(wrt))
    opened = open_model(model, names, fixed)
    graph, weights = opened.graph, opened.weights
    stay = [_output(graph, name) for name in outputs]
    end = _loss(graph, loss, prediction, mask, stay)
    inputs = {value.name: value for value in graph.inputs}
    for name in names or ():
        if name not in inputs:
            known = [*inputs, *open_model(model, None, fixed).weights]
            listed = ", ".join(map(repr, known[:24])) + (", ..." if len(known) > 24 else "")
            raise OptionError(f"there is no input or weight {name!r}; there are {listed}")
    graph.outputs = list(dict.fromkeys([end, *stay]))
    run_passes(graph, BEFORE)
    last = LastSteps() if truncate is None else cut_last(graph, truncate)
    if every is not None:
        keep_every(graph, every, last.ends)
    end, *stay = graph.outputs
    wanted = [inputs[name] for name in (weights if names is None else names)]
    for value in wanted:
        _free(graph, f"{value.name}_grad", graph.outputs)
    options = Options(truncate, last.loops)
    gradients = _gradients(graph, end, wanted, options, last.ends, keep_zeros=names is not None)
    graph.outputs = [end, *stay, *gradients.values()]
    Emitter(graph, infer(graph)).prune()
    left = {value.name for value in graph.inputs}
    return Derived(
        graph,
        end.name,
        {name: value.name for name, value in gradients.items()},
        {name: array for name, array in weights.items() if name in left},
    )


def _output(graph: Graph, name: str) -> Value:
    for value in graph.outputs:
        if value.name == name:
            return value
    known = ", ".join(repr(value.name) for value in graph.outputs)
    raise OptionError(f"the model has no output {name!r}; it has {known}")


def _loss(
    graph: Graph, loss: str | Loss | Callable[..., Value], prediction: str | None, mask: bool, stay: list[Value]
) -> Value:
    """The value that has the loss, which may need new inputs."""
    known = ", ".join(repr(value.name) for value in graph.outputs)
    if isinstance(loss, str) and any(value.name == loss for value in graph.outputs):
        if prediction is not None or mask:
            raise OptionError("prediction and mask are for a loss that webrnn adds; this one is an output of the model")
        return _output(graph, loss)
    if isinstance(loss, str) and loss not in LOSSES:
        raise OptionError(f"{loss!r} is neither an output ({known}) nor a loss ({', '.join(LOSSES)})")
    if prediction is None and len(graph.outputs) > 1:
        raise OptionError(f"prediction names the output that the loss is of: one of {known}")
    end = graph.outputs[0] if prediction is None else _output(graph, prediction)
    facts = infer(graph)
    facts.annotate(graph)
    criterion = loss_of(loss, mask)
    wanted = criterion.inputs(end)
    for name in ("loss", *wanted):
        if any(value.name == name for value in graph.inputs):
            raise OptionError(f"the model has an input {name!r}, which the loss has, too: rename it")
        _free(graph, name, stay)
    b = Emitter(graph, facts)
    given = {name: b.input(name, dtype, shape) for name, (dtype, shape) in wanted.items()}
    infer(graph, b.facts)
    made = b.value("loss")
    return b.op("Identity", criterion.build(b, end, given), output=made)


def _free(graph: Graph, name: str, stay: list[Value]) -> None:
    """Give a value that no caller knows any more another name."""
    taken = {value.name for value in (*graph.inputs, *graph.constants, *graph.producers())}
    for value in (*graph.constants, *graph.producers()):
        if value.name == name and value not in stay:
            number = 1
            while f"{name}_before_{number}" in taken:
                number += 1
            value.name = f"{name}_before_{number}"


def _gradients(
    graph: Graph, end: Value, wanted: list[Value], options: Options, ends: Collection[Value], keep_zeros: bool
) -> dict[str, Value]:
    b = Emitter(graph, infer(graph))
    for value in wanted:
        if not is_float(value, b.facts):
            raise OptionError(f"{value.name!r} is no tensor of floating-point numbers: it has no gradient")
    nodes = list(graph.nodes)
    active = spread(nodes, wanted, b.facts, ends)
    shape = b.facts.shape(end)
    if shape is None:  # behind an op that is not known nothing is: that op is what there is to say
        require_rules(nodes, end, active)
    if not is_float(end, b.facts) or shape is None or any(size != 1 for size in shape):
        raise ShapeError(f"the loss {end.name!r} has to be one floating-point number, its shape is {shape}")
    one = b.number(1.0, end)
    seed = one if shape == () else b.op("Expand", one, b.shape_of(end))
    found = pull_nodes(b, nodes, {end: seed}, active, options)
    made: dict[str, Value] = {}
    for value in wanted:
        cotangent = found.get(value)
        if cotangent is None and not keep_zeros:
            continue
        cotangent = b.zeros_like(value) if cotangent is None else cotangent
        output = b.value(f"{value.name}_grad", value.dtype, value.shape)
        made[value.name] = b.op("Identity", cotangent, output=output)
    return made
