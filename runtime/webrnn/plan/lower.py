"""From an optimized graph to the draft of a plan: `lower(graph)` walks its nodes and asks the rule of each op."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np

from webrnn import net
from webrnn.checks.check import Condition
from webrnn.checks.graphs import check_node, is_left_to_a_run
from webrnn.errors import Error
from webrnn.ir import WEBRNN, Dim, DType, Graph, Node, Symbol, Value, is_plain, is_scan
from webrnn.ir.dims import Shape, TooComplex
from webrnn.ir.fused import is_expression
from webrnn.ops.rows import with_trait
from webrnn.ops.sets import ELEMENTWISE, RESHAPES
from webrnn.shapes.infer import infer_node

from .draft import Draft, Port
from .instructions import RUN_ALONG
from .lowering import DTYPES, Lowering, NotLowered, Rule, attribute, foreign_reason, present, rule
from .opening import KNOW_MORE_WHILE_RUNNING, OPENERS
from .views import Storage, count_of, dense_like, dense_view
from .widening import lower_widened

_PLAIN_TYPES = {DType.FLOAT, DType.DOUBLE, DType.INT32, DType.INT64}
"""What all arithmetic is done in."""
_READS_FIRST_ONLY = with_trait("first")
_READS_TOO = {"Pad": 2}
"""Of these, another operand whose elements are read: the value of what is added."""

SAME_BITS = "same_bits"
"""The option, and the instruction that marks such a plan."""
_CHANNELS_LAST = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "SmallConv"}
_MOST_STEPS_BACK = 8
"""That a value is followed back to where it comes from."""


def lower(
    graph: Graph,
    options: frozenset[str] = frozenset(),
    most_steps: int = 2**31 - 1,
    conditions: Sequence[Condition] = (),
    least_side: int | None = None,
) -> Draft:
    """The draft of a plan of a graph whose passes have run.

    `options` switches alternatives off: "fused_sequences"; with SAME_BITS the plan runs on unfused builds only.
    `most_steps` bounds loops that only a condition ends: it makes room for their outputs. How many steps a run may take
    is not a matter of the plan. The plan holds only for sizes that meet the `conditions`. With `least_side`, two parts
    that do not depend on each other may run at the same time if each has so many multiply-adds: see sides.py.
    """
    try:
        walk = _Walk(graph, options, most_steps)
        if SAME_BITS in options:
            walk.emit("same_bits")
        walk.require_conditions(conditions)
        draft = walk.run()
        if least_side is not None:
            from .sides import run_side_by_side

            run_side_by_side(draft, least_side)
        if any(instruction.name in RUN_ALONG for instruction in draft.walk()):
            from .along import run_expressions_along  # a page waits for what is imported

            run_expressions_along(draft)
        return draft
    except (NotLowered, Error):
        raise
    except TooComplex as error:
        raise NotLowered(None, str(error)) from error
    except Exception as error:
        raise NotLowered(None, net.catch(error)) from error


def refusals(graph: Graph, options: frozenset[str] = frozenset(), most_steps: int = 2**31 - 1) -> list[NotLowered]:
    """All nodes that keep a graph from becoming a plan, those inside of loops and branches too, each with its reason.
    Of nodes that read what is not there for this reason nothing is said."""
    walk = _Walk(graph, options, most_steps)
    walk.refusals = []
    try:
        walk.run()
    except (NotLowered, Error, TooComplex) as error:
        if not walk.refusals:
            return [error if isinstance(error, NotLowered) else NotLowered(None, str(error))]
    except Exception as error:
        if not walk.refusals:
            return [NotLowered(None, net.catch(error))]
    return walk.refusals


def with_named_sizes(graph: Graph) -> Graph:
    """The graph with a name for each size of its inputs that has none: it is one number in each run."""
    if all(value.shape is not None and None not in value.shape for value in graph.inputs):
        return graph
    named: list[Shape] = []
    for value in graph.inputs:
        if value.shape is None:
            raise NotLowered(None, f"the rank of {value.name} is not known")
        named.append(
            tuple(Symbol(f"{value.name}.{axis}") if dim is None else dim for axis, dim in enumerate(value.shape))
        )
    copied = graph.copy()
    for value, shape in zip(copied.inputs, named, strict=True):
        value.shape = shape
    return copied


class _Missing(NotLowered):
    """A node that reads what is not there because another node has no instructions."""


class _Walk(Lowering):
    """Over a graph and those inside its nodes."""

    refusals: list[NotLowered] | None = None
    """Where reasons are collected, if all of them are asked for."""
    _producers: Mapping[Value, Node] = {}
    """Of the graph that is being lowered."""
    _at: Node | None = None
    """The node of the outermost graph that is being lowered."""

    def run(self) -> Draft:
        for values in (self.graph.inputs, self.graph.outputs):
            if len({value.name for value in values}) < len(set(values)):
                raise NotLowered(None, "two inputs or two outputs have the same name")
        inputs = [port for port in map(self._input_if_known, self.graph.inputs) if port is not None]
        for value in self.graph.outputs:
            self._place_output(value)
        self.lower_graph(self.graph)
        return Draft(inputs, [self._output_port(value) for value in self.graph.outputs], self.block)

    def _input_if_known(self, value: Value) -> Port | None:
        try:
            return self._input(value)
        except NotLowered as refusal:
            if self.refusals is None:
                raise
            self.refusals.append(refusal)
            return None

    def _input(self, value: Value) -> Port:
        shape, dtype = self.shape(value), self.dtype(value)
        port = Port(value.name, dtype, shape, self.new_external())
        storage = Storage("external", dtype, count_of(shape), external=port.external, writable=False, label=value.name)
        self.views[value] = dense_view(storage, shape)
        return port

    def _place_output(self, value: Value) -> None:
        """Let the node that makes an output write it where the host wants it."""
        made_here = value not in self.graph.inputs and value not in self.graph.constants
        if made_here and value not in self.destinations and not self.is_open(value):
            try:
                self.destinations[value] = self.external(self.shape(value), self.dtype(value), value.name)
            except NotLowered as refusal:
                refusal.outermost = self.graph.producers().get(value)
                if self.refusals is None or refusal.outermost is None:
                    raise

    def _output_port(self, value: Value) -> Port:
        view = self.view(value)
        used = {port for port, other in self._ports.items() if other is not value}
        # a view of another output, whose size is known only while running, has no place of its own yet
        others = {other for other in self.graph.outputs if other is not value} & self.destinations.keys()
        used |= {self.destinations[other].storage.external for other in others}
        is_place = view.storage.kind == "external" and view.storage.writable
        is_whole = view.is_contiguous and view.offset == 0 and count_of(view.shape) == view.storage.size
        if not is_place or not is_whole or view.storage.external in used:
            target = self.external(view.shape, view.dtype, value.name)
            self.copy(view, target)
            view = target
        elif not view.is_at(self.destinations.get(value, view)):
            raise AssertionError(f"{value.name} is not where it should be")
        self._ports[view.storage.external] = value
        return Port(value.name, view.dtype, view.shape, view.storage.external)

    def lower_graph(self, graph: Graph) -> None:
        self.arrays.update(graph.constants)
        if "fused_sequences" not in self.options and any(map(is_scan, graph.nodes)):
            from .lowerings.sequences import late_projections  # a page waits for what is imported

            self.late.update(late_projections(self, graph))
        needed = set(graph.outputs)
        nodes = []
        for node in reversed(graph.nodes):
            is_read = any(output in needed for output in node.outputs if output is not None)
            if is_read or is_left_to_a_run(node, self.facts):
                nodes.append(node)
                needed.update(self._read_inputs(node))
        self._hand_back_destinations(graph, nodes)
        for node in reversed(nodes):
            self._at = node if graph is self.graph else self._at
            try:
                self._lower_node(node)
            except NotLowered as refusal:
                refusal.outermost = node if self.refusals is None else self._at
                if self.refusals is None:
                    raise
                self._collect(refusal, node)
        for output in graph.outputs:
            self._require_there(output)

    def _collect(self, refusal: NotLowered, node: Node) -> None:
        """Keep a reason, and go on as if the node had instructions, as far as its results are known."""
        assert self.refusals is not None
        self.node = None
        if not isinstance(refusal, _Missing) and not any(refusal.node is other.node for other in self.refusals):
            self.refusals.append(refusal)
        for output in node.outputs:
            if output is not None and output not in self.views and not output.container:
                try:
                    self.output(output)
                except NotLowered:
                    continue

    def _require_there(self, value: Value) -> None:
        if self.refusals is not None and value not in self.views and value not in self.arrays:
            raise _Missing(self.node, f"{value.name} is not there")
        self.view(value)

    def _hand_back_destinations(self, graph: Graph, nodes_from_last: Sequence[Node]) -> None:
        """What only gives its operand another shape, or puts operands side by side, copies nothing where these can be
        made in the right place."""
        self._producers = graph.producers()
        made_here = set(self._producers)
        consumers = graph.consumers()
        for node in nodes_from_last:
            if (node.domain, node.op) == ("", "Concat"):
                only_here = {part for part in node.inputs if part is not None and consumers[part] == [node]}
                self._hand_back_parts(node, (only_here & made_here) - {*graph.outputs})
                continue
            output, source = (node.outputs or [None])[0], (node.inputs or [None])[0]
            target = self.destinations.get(output) if output is not None else None
            if target is None or source is None or source in self.destinations or source not in made_here:
                continue
            if not node.domain and node.op in RESHAPES:
                shape = self.facts.shape(source)
                if shape is None or any(size is None for size in shape):
                    continue
                placed = target.reshaped([size for size in shape if size is not None])
                if placed is not None:
                    self.destinations[source] = placed
                    if output in self.overwriting:
                        self.overwriting.add(source)
            elif is_plain(node, "Transpose") and target.rank in (3, 4) and output not in self.overwriting:
                perm = attribute(node, "perm", None) or list(range(target.rank))[::-1]
                placed = target.transposed([perm.index(axis) for axis in range(target.rank)])
                if placed.strides[1] == 1 and self._is_channels_last(source):
                    self.destinations[source] = placed

    def _hand_back_parts(self, concat: Node, private: Collection[Value]) -> None:
        """Places in the result of a Concat for those of its operands that only it reads."""
        output, parts = present(concat.outputs[0]), [present(part) for part in concat.inputs]
        shapes = [self.facts.shape(value) for value in (output, *parts)]
        if not private or output in self.overwriting:
            return
        if self._is_known(output) or self.facts.dtype(output) not in DTYPES:
            return
        if any(shape is None or None in shape for shape in shapes):
            return
        target = self.destinations.get(output)
        if target is None:
            target = self.temporary(self.shape(output), self.dtype(output))
            if target.rank in (3, 4) and any(self._is_channels_last(part) for part in private):
                target = dense_like(target.storage, target.shape, [0, *range(2, target.rank), 1])
            self.destinations[output] = target
        axis = attribute(concat, "axis", 0) % target.rank
        start: Dim = 0
        for part in parts:
            shape = self.shape(part)
            place = target.sliced(axis, start, shape[axis])
            if part in private and part not in self.destinations and place.shape == shape:
                self.destinations[part] = place
            start = start + shape[axis]

    def _is_channels_last(self, value: Value) -> bool:
        """Whether the channels of a value will lie behind each other: it comes from a convolution or a pool, or is made
        of such a value element by element."""
        for _ in range(_MOST_STEPS_BACK):
            node = self._producers.get(value)
            if node is None or not node.inputs:
                return False
            if node.domain in ("", WEBRNN) and node.op in _CHANNELS_LAST:
                return True
            source = next((each for each in node.inputs if self.facts.shape(each) == self.facts.shape(value)), None)
            if source is None or not (is_expression(node) or (not node.domain and node.op in ELEMENTWISE)):
                return False
            value = source
        return False

    def _read_inputs(self, node: Node) -> list[Value]:
        """The operands whose elements its instructions read: not those that only say how, such as a shape."""
        if all(self._is_known(output) for output in node.outputs if output is not None):
            return []
        inputs = dict(enumerate(node.inputs))
        if not node.domain and node.op in _READS_FIRST_ONLY:
            read = (0, _READS_TOO.get(node.op))
            inputs = {i: value for i, value in inputs.items() if i in read or self._is_unsaid(value)}
        return [value for value in inputs.values() if value is not None]

    def _is_unsaid(self, value: Value | None) -> bool:
        """Whether the elements of an operand that says how are not known before it runs."""
        if value is None:
            return False
        content = self.facts.of(value).content
        return value not in self.arrays and (content is None or None in content)

    def _lower_node(self, node: Node) -> None:
        if any(output in self.late for output in node.outputs):
            return
        outer, self.node = self.node, node
        reason = foreign_reason(node, self.facts)
        if reason is not None:
            raise NotLowered(node, reason)
        if self.refusals is not None:
            for value in self._read_inputs(node):
                self._require_there(value)
        if self.n_late:
            infer_node(node, self.facts)  # with what was found out since
        self._check(node)
        if all(self._is_known(output) for output in node.outputs if output is not None):
            for output in node.outputs:
                if output is not None:
                    self._emit_known(output)
        else:
            found = rule.get(node.domain, node.op)
            if found is None and node.op not in OPENERS:
                raise NotLowered(node, "it has no instruction")
            self._lower_in_any_type(node, partial(self._apply, lambda _, each: self._lower_open(each, found)))
            for output in node.outputs:
                if output is not None:
                    self._settle(output)
        self.node = outer

    def _lower_in_any_type(self, node: Node, apply: Callable[[Node], None]) -> None:
        if all(self.facts.dtype(value) in _PLAIN_TYPES for value in (*node.inputs, *node.outputs) if value is not None):
            apply(node)
        else:
            lower_widened(self, node, apply)

    def _lower_open(self, node: Node, found: Rule | None) -> None:
        """By its rule; if that does not know enough before it runs, by what is found out while running."""
        opener = None if node.domain and not is_expression(node) else OPENERS.get(node.op)
        if found is not None and not any(self.is_open(output) for output in node.outputs if output is not None):
            if opener is None or node.op not in KNOW_MORE_WHILE_RUNNING:
                found(self, node)
                return
            kept = self.checkpoint()
            try:
                found(self, node)
                return
            except NotLowered:
                self.go_back(kept)
        if opener is not None:
            if opener(self, node):
                return
            infer_node(node, self.facts)
            self._check(node)
        if found is None:
            raise NotLowered(node, "it has no instruction")
        found(self, node)

    def _apply(self, function: Rule, node: Node) -> None:
        try:
            function(self, node)
        except (NotLowered, Error):
            raise
        except TooComplex as error:
            raise NotLowered(node, str(error)) from error
        except Exception as error:
            raise NotLowered(node, net.catch(error)) from error

    def _check(self, node: Node) -> None:
        """Of what is not allowed numpy says so, if it comes to it: it may stand in a branch that is never taken."""
        try:
            for each in (*node.attrs["body"].nodes, node) if is_expression(node) else (node,):
                self.require_conditions(check_node(each, self.facts))
        except Error as error:
            raise self.refuse(error.message) from error

    def _is_known(self, value: Value) -> bool:
        """Whether it is integers that follow from sizes, such as a shape."""
        fact = self.facts.of(value)
        known = fact.content is not None and all(element is not None for element in fact.content)
        return known and fact.dtype is DType.INT64

    def _emit_known(self, value: Value) -> None:
        content = self.facts.of(value).content
        assert content is not None
        numbers = [element for element in content if element is not None]
        if all(isinstance(element, int) for element in numbers):
            self.arrays[value] = np.array(numbers, np.int64).reshape([int(str(d)) for d in self.shape(value)])
            return
        self.emit("sizes", self.output(value), rest=numbers)

    def _settle(self, value: Value) -> None:
        """Bring a result to its destination if its rule has not."""
        target = self.destinations.get(value)
        if target is not None and value in self.views and not self.views[value].is_at(target):
            self.copy(self.views[value], target)
            self.views[value] = target
