"""Constant weights become small: integers with scales, or half floats. This is not one of the passes of the pipeline:
it changes results, and runs behind them when a caller asks for it.

Products of rows with a matrix, convolutions along one or two axes and lookups in a table take part. What is small
already, what has too few weights to be worth it, what would lose too much by one scale for a whole row, and what a
caller keeps stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, Value, is_plain
from webrnn.ir.fused import is_expression, is_linear
from webrnn.reference.small import SmallMatrix, small_matrix, small_table
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer

from .base import Context
from .logarithms import feeds_a_logarithm
from .rewriting import Additions
from .weight_forms import F16, F32, WeightForms, WeightReport, WeightRow

FEWEST_WEIGHTS = 1024
"""Fewer are not worth it: they take no time and no room."""
FEWEST_OUTPUTS = 8
"""Of a product: rounding a row has to pay."""
_FEWEST_USED = 1 / 8
"""Of the weights of a matrix: one with more zeros is a filter bank, whose filters look at parts of a row that may be
far below its largest element."""
_MOST_TERMS = 2**15
"""Of a product: with more, a row would be rounded to too few bits."""


def make_weights_small(graph: Graph, forms: WeightForms, fewest: int = FEWEST_WEIGHTS) -> WeightReport:
    """Rewrite an optimized graph, and the graphs inside it, in place. Nodes with fewer weights than `fewest` stay."""
    report = WeightReport()
    facts = infer(graph)
    context = Context(graph, facts=facts)
    made: dict[tuple[int, str], tuple[np.ndarray, object]] = {}
    for path, inner in list(_graphs(graph, "")):
        _Rewrite(inner, path, context, forms, fewest, report, made).run()
    return report


def weights_to_be(graph: Graph, forms: WeightForms) -> WeightReport:
    """What would become of the weights; nothing is changed."""
    report = WeightReport()
    context = Context(graph, facts=infer(graph))
    for path, inner in _graphs(graph, ""):
        rewrite = _Rewrite(inner, path, context, forms, FEWEST_WEIGHTS, report, {})
        for node in inner.nodes:
            array = rewrite.weights_of(node)
            if array is not None:
                rewrite.add_row(node, array)
    return report


def _graphs(graph: Graph, path: str) -> Iterator[tuple[str, Graph]]:
    """A graph and those inside it, each with what the names of its nodes begin with."""
    yield path, graph
    for node in graph.nodes:
        if not is_expression(node):
            for _, inner in node.subgraphs:
                yield from _graphs(inner, f"{path}{node.label}/")


class _Rewrite:
    """Of one graph. `made` has what became of an array, which several graphs may share."""

    def __init__(
        self, graph: Graph, path: str, context: Context, forms: WeightForms, fewest: int, report: WeightReport,
        made: dict[tuple[int, str], tuple[np.ndarray, object]],
    ):  # fmt: skip
        self.graph, self.path, self.facts = graph, path, context.facts
        self.forms, self.fewest, self.report, self.made = forms, fewest, report, made
        self.new = Additions(graph, context)
        self._constants: dict[int, Value] = {}

    def run(self) -> None:
        nodes: list[Node] = []
        for node in self.graph.nodes:
            array = self.weights_of(node)
            nodes.extend([node] if array is None else self._rewritten(node, array))
        self.graph.nodes = nodes
        read = {value for node in nodes for value in node.inputs} | {*self.graph.outputs}
        for value in [value for value in self.graph.constants if value not in read]:
            del self.graph.constants[value]

    def weights_of(self, node: Node) -> np.ndarray | None:
        """The weights of a node that takes part."""
        is_product = is_linear(node) or is_plain(node, "MatMul", "Conv", "ConvTranspose")
        is_lookup = is_plain(node, "Gather") and not node.attrs.get("axis", 0)
        if not is_product and not is_lookup:
            return None
        array = self.graph.constants.get(node.inputs[0 if is_lookup else 1])  # type: ignore[arg-type]
        return array if array is not None and array.dtype == np.float32 and array.ndim > 1 else None

    def add_row(self, node: Node, array: np.ndarray) -> WeightRow:
        name = self.path + node.label
        form = self.forms.of(name)
        reason = "asked for" if form == F32 else _reason_against(node, array, form, self.fewest, self.facts)
        if not reason and form != F16 and node.op != "Gather" and feeds_a_logarithm(self.graph, node.outputs[0]):
            reason = "a logarithm of its results is taken"
        self.report.rows.append(WeightRow(name, node.op, array.size, F32 if reason else form, reason))
        return self.report.rows[-1]

    def _rewritten(self, node: Node, array: np.ndarray) -> list[Node]:
        form = self.add_row(node, array).form
        if form == F32:
            return [node]
        if form == F16:
            return [self._halved(node, array)]
        if is_plain(node, "Gather"):
            return self._lookup(node, array, form)
        return [self._convolution(node, array, form) if node.op == "Conv" else self._product(node, array, form)]

    def _halved(self, node: Node, array: np.ndarray) -> Node:
        rounded = self._once(array, F16, lambda: array.astype(np.float16).astype(np.float32))
        assert isinstance(rounded, np.ndarray)
        at = 0 if is_plain(node, "Gather") else 1
        node.inputs = [
            self._constant(rounded, node) if index == at else value for index, value in enumerate(node.inputs)
        ]
        return node

    def _product(self, node: Node, array: np.ndarray, form: str) -> Node:
        small = self._once(array, form, lambda: small_matrix(array, form))
        assert isinstance(small, SmallMatrix)
        return self._small_node("SmallLinear", node, small, {})

    def _convolution(self, node: Node, array: np.ndarray, form: str) -> Node:
        def make() -> SmallMatrix:
            flat = small_matrix(array.reshape(array.shape[0], -1).T, form)
            return flat._replace(weights=np.ascontiguousarray(flat.weights.T).reshape(array.shape))

        small = self._once(array, form, make)
        assert isinstance(small, SmallMatrix)
        return self._small_node("SmallConv", node, small, node.attrs)

    def _small_node(self, op: str, node: Node, small: SmallMatrix, attrs: Mapping[str, object]) -> Node:
        weights, scales = self._constant(small.weights, node), self._constant(small.scales, node)
        inputs = [node.inputs[0], weights, scales, *node.inputs[2:]]
        return Node(op, inputs, node.outputs, {**attrs, "range": small.range}, node.name, WEBRNN)

    def _lookup(self, node: Node, array: np.ndarray, form: str) -> list[Node]:
        made = self._once(array, form, lambda: small_table(array, form))
        assert isinstance(made, tuple)
        nodes: list[Node] = []

        def add(op: str, *inputs: Value | None, **attrs: int) -> Value:
            value = self.new.value(f"{node.label}_{op.lower()}")
            nodes.append(Node(op, list(inputs), [value], dict(attrs), node.name))
            return value

        rows, scales = (add("Gather", self._constant(each, node), node.inputs[1], axis=0) for each in made)
        add("Mul", add("Cast", rows, to=int(DType.FLOAT)), scales)
        nodes[-1].outputs = node.outputs
        return nodes

    def _once(self, array: np.ndarray, form: str, make: Callable[[], object]) -> object:
        key = (id(array), form)
        if key not in self.made:
            self.made[key] = array, make()
        return self.made[key][1]

    def _constant(self, array: np.ndarray, node: Node) -> Value:
        if id(array) not in self._constants:
            self._constants[id(array)] = self.new.constant(array, f"{node.label}_small")
        return self._constants[id(array)]


def _reason_against(node: Node, array: np.ndarray, form: str, fewest: int, facts: Facts) -> str:
    if array.size < fewest:
        return f"it has {array.size} weights, fewer than {fewest}"
    if not np.isfinite(array).all():
        return "a weight is not finite"
    if form == F16:
        return "a weight is too large for half floats" if np.abs(array).max() >= 65520 else ""
    if is_plain(node, "Gather"):
        return ""
    if facts.dtype(node.inputs[0]) is not DType.FLOAT:
        return "its other operand is not float32"
    if node.op == "ConvTranspose":
        return "its kernels overlap"
    if node.op == "Conv":
        filters, terms = array.shape[0] // max(node.attrs.get("group", 1), 1), int(np.prod(array.shape[1:]))
        if array.ndim > 4:
            return "it has more than two axes"
    else:
        if array.ndim != 2 or (facts.of(node.inputs[0]).rank or 0) < 2:
            return "it is no product of rows and a matrix"
        terms, filters = array.shape
    if np.count_nonzero(array) < _FEWEST_USED * array.size:
        return "most of its weights are zeros"
    if filters < FEWEST_OUTPUTS:
        return f"it has {filters} results for each row, fewer than {FEWEST_OUTPUTS}"
    return f"its sums have {terms} terms, more than {_MOST_TERMS}" if terms > _MOST_TERMS else ""
