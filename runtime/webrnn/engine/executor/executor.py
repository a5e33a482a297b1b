"""Running a graph node by node with the numpy ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from webrnn import reference
from webrnn.checks.arrays import check_arrays
from webrnn.checks.graphs import NO_CONDITIONS, SizeConditions
from webrnn.errors import Error, UnsupportedOp
from webrnn.ir import REFUSED, WEBRNN, Graph, Node, Value, is_scan
from webrnn.ir.blame import blame
from webrnn.ir.fused import is_expression

from ..feeds import read_only
from ..limits import Budget, Limits
from .intrinsics import INTRINSICS
from .scan_executor import ScanExecutor, is_true

Operation = Callable[[list[Any], Budget], Sequence[Any]]


class Executor:
    """A graph, ready to run.

    An op that is not there raises when the executor is made, also in the body of a loop. The branches of an If are
    prepared when they are first taken, so that one that is never taken may hold anything.

    >>> import numpy as np
    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("double")
    >>> x = b.input("x", DType.FLOAT, (2,))
    >>> b.graph.outputs.append(b.op("Add", x, x))
    >>> Executor(b.graph).run([np.float32([1, 2])])
    [array([2., 4.], dtype=float32)]

    `naive_scans` runs the bodies of loops as this runs the graph, one independent run for each step. `conditions` are
    what the sizes of the inputs have to be like.
    """

    def __init__(
        self,
        graph: Graph,
        limits: Limits | None = None,
        naive_scans: bool = False,
        conditions: SizeConditions = NO_CONDITIONS,
    ):
        self.graph, self.naive_scans, self._conditions = graph, naive_scans, conditions
        self.limits = limits or Limits()
        self._slot_of: dict[Value, int] = {}
        self._initial: list[Any] = []
        for value, array in graph.constants.items():  # those of a file lie anywhere in it, at which BLAS is not used
            self._initial[self._slot(value)] = read_only(np.require(array, requirements="A"))
        self.input_slots = [self._slot(value) for value in graph.inputs]
        self.steps = [self._step(node) for node in graph.nodes]
        self.output_slots = [self._slot_of[value] for value in graph.outputs]
        self._plan_releases()

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        """The outputs for these inputs. They may share memory with inputs, constants or each other.

        `budget` is that of the run that this is a part of.
        """
        budget = budget or Budget(self.limits)
        is_timed = budget.deadline is not None
        self._conditions.require(arguments)
        slots = self._initial.copy()
        for slot, argument in zip(self.input_slots, arguments, strict=True):
            slots[slot] = argument
        for step in self.steps:
            results = step.call([None if index is None else slots[index] for index in step.inputs], budget)
            if is_timed:
                budget.check_time()
            for index, result in zip(step.outputs, results, strict=True):
                if index is not None:
                    slots[index] = result
            for index in step.releases:
                slots[index] = None
        return [slots[index] for index in self.output_slots]

    def initial_slots(self) -> list[Any]:
        """The places of all values of a run, before it: constants are there."""
        return self._initial.copy()

    def _slot(self, value: Value) -> int:
        index = self._slot_of.get(value)
        if index is None:
            index = self._slot_of[value] = len(self._initial)
            self._initial.append(None)
        return index

    def _step(self, node: Node) -> Step:
        inputs = [None if value is None else self._slot_of[value] for value in node.inputs]
        outputs = [None if value is None else self._slot(value) for value in node.outputs]
        body = self._body(node) if is_expression(node) else None
        return Step(node, inputs, outputs, body.run if body is not None else self._operation(node), body)

    def _operation(self, node: Node) -> Operation:
        if is_scan(node):
            return ScanExecutor(node, self._body(node), self.naive_scans).run
        if node.domain == WEBRNN:
            intrinsic = INTRINSICS[node.op]
            return lambda arguments, _: intrinsic(arguments, node.attrs)
        if node.domain == REFUSED:
            return lambda arguments, _: _refuse(node.attrs["error"])
        if node.op == "If" and not node.domain:
            return _IfExecutor(node, self.limits, self.naive_scans).run
        require_implementation(node)
        return self._reference_operation(node)

    def _body(self, node: Node) -> Executor:
        try:
            return Executor(node.attrs["body"], self.limits, self.naive_scans)
        except Error as error:
            raise blame(error, node.label, node.op) from error

    def _reference_operation(self, node: Node) -> Operation:
        return _ReferenceOperation(node)

    def _plan_releases(self) -> None:
        """Let go of a result after its last reader."""
        kept = {*self.output_slots, *(self._slot_of[value] for value in self.graph.constants)}
        for step in reversed(self.steps):
            for index in (*step.inputs, *step.outputs):
                if index is not None and index not in kept:
                    kept.add(index)
                    step.releases.append(index)


def _refuse(error: Error) -> NoReturn:
    raise type(error)(error.message, attribute=error.attribute)


class Step:
    """A node, ready to run; inputs and outputs are slots."""

    __slots__ = ("body", "inputs", "node", "operation", "outputs", "releases")

    def __init__(
        self,
        node: Node,
        inputs: list[int | None],
        outputs: list[int | None],
        operation: Operation,
        body: Executor | None,
    ):
        self.node, self.inputs, self.outputs, self.operation = node, inputs, outputs, operation
        self.body = body
        """Of an Expression."""
        self.releases: list[int] = []

    def call(self, arguments: list[Any], budget: Budget) -> Sequence[Any]:
        try:
            return self.operation(arguments, budget)
        except Exception as error:
            raise self.blamed(error) from (error.__cause__ or error)

    def blamed(self, error: Exception) -> Exception:
        return blame(error, self.node.label, self.node.op)


class _ReferenceOperation:
    """An op of numpy. Its rule is asked again only about operands of other types or shapes, or where it reads them."""

    __slots__ = ("_allowed", "_node")

    def __init__(self, node: Node):
        self._node = node
        self._allowed: list[tuple[Any, Any]] | None = None

    def __call__(self, arguments: list[Any], _: Budget) -> Sequence[Any]:
        node, n_outputs = self._node, len(self._node.outputs)
        kinds = [(getattr(each, "dtype", None), getattr(each, "shape", None)) for each in arguments]
        if kinds != self._allowed:
            depends_on_kinds = check_arrays(node.op, node.domain, arguments, node.attrs, n_outputs)
            self._allowed = kinds if depends_on_kinds else None
        return reference.call(node.op, node.domain, arguments, node.attrs, n_outputs)


class _IfExecutor:
    def __init__(self, node: Node, limits: Limits, naive_scans: bool):
        self._node, self._limits, self._naive_scans = node, limits, naive_scans
        self._branches: dict[str, Executor] = {}

    def run(self, arguments: list[Any], budget: Budget) -> list[Any]:
        name = "then_branch" if is_true(arguments[0]) else "else_branch"
        if name not in self._branches:
            self._branches[name] = Executor(self._node.attrs[name], self._limits, self._naive_scans)
        return self._branches[name].run(arguments[1:], budget)


def require_implementations(graph: Graph) -> None:
    """Raises if the graph, or a loop of it, has an op that nothing implements. A branch may, until it is taken."""
    for node in graph.nodes:
        if is_scan(node) or is_expression(node):
            require_implementations(node.attrs["body"])
        elif node.domain not in (WEBRNN, REFUSED) and (node.op != "If" or node.domain):
            require_implementation(node)


def require_implementation(node: Node) -> None:
    if reference.lookup(node.domain, node.op) is None:
        op = f"{node.domain}:{node.op}" if node.domain else node.op
        raise UnsupportedOp("there is no implementation of this op", node=node.label, op=op)
