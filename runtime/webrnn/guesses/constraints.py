"""What the checks of a graph ask of its open sizes: which are settled by that, and which choices it allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from webrnn.checks.check import Condition
from webrnn.checks.graphs import check_graph
from webrnn.errors import Error
from webrnn.ir import REFUSED, Dim, Graph, SymbolicDim, Value
from webrnn.ir.dims import TooComplex

_RANKS = (2, 3, 1, 4, 5, 0)
_MOST_SEARCHED = 4096
_MOST_FOUND = 4


Takes = Callable[[Mapping[str, int]], bool | None]
"""Whether a plan takes these sizes; None if they do not say it."""


class Constraints:
    """Conditions on sizes. Without a graph, as for a plan, there are none: the plan is asked."""

    def __init__(self, graph: Graph | None, takes: Takes | None = None):
        self.conditions: list[Condition] = []
        self._takes = takes or (lambda sizes: None)
        if graph is not None:
            try:
                self.conditions = check_graph(graph.copy(), may_refuse=False)
            except Error:  # whoever runs the model says it
                self.conditions = []
        self.settled = _settled(self.conditions)
        """Sizes that can only be one number, or an expression of others."""

    def resolved(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """With those that follow from them."""
        found = dict(sizes)
        for name, size in self.settled.items():
            number = size if isinstance(size, int) else size.substitute(found)
            if isinstance(number, int) and name not in sizes:
                found[name] = number
        return found

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether no condition is broken, as far as its sizes are among these, and what follows from them is a size."""
        if any(number < 0 for number in self.resolved(sizes).values()):
            return False
        return self.broken(sizes) is None and self._takes(sizes) is not False

    def broken(self, sizes: Mapping[str, int]) -> Error | None:
        for condition in self.conditions:
            try:
                condition.require(sizes)
            except Error as error:
                return error
            except TooComplex:
                continue
        return None

    def allowed_alone(self, name: str, known: Mapping[str, int]) -> Iterator[int]:
        """Numbers that the conditions on this size alone allow; 1 last, to which tensors are broadcast by chance."""
        alone = [each for each in self.conditions if _names(each, known) == {name}]
        if not alone and self._takes({**known, name: 1}) is None:
            return
        count = 0
        for number in (*range(2, _MOST_SEARCHED), 1):
            if count == _MOST_FOUND:
                return
            sizes = {**known, name: number}
            if all(_holds(each, sizes) for each in alone) and self._takes(sizes) is not False:
                count += 1
                yield number


def with_ranks(
    inputs: Sequence[Value], graph: Graph | None, said: Collection[str]
) -> tuple[Sequence[Value], Graph | None]:
    """Inputs whose rank the model does not say have the first one that no check of the graph refuses."""
    lacking = {value.name for value in inputs if value.shape is None and not value.container} - set(said)
    for rank in _RANKS if graph is not None and lacking else ():
        tried = graph.copy()  # type: ignore[union-attr]
        for value in tried.inputs:
            value.shape = (None,) * rank if value.name in lacking else value.shape
        asked = tried.copy()
        try:
            check_graph(asked, may_refuse=False)
        except Error:
            continue
        if not any(node.domain == REFUSED for node in asked.nodes):
            shapes = {value.name: value.shape for value in tried.inputs}
            return [Value(each.name, each.dtype, shapes[each.name], each.container) for each in inputs], tried
    return inputs, graph


def _holds(condition: Condition, sizes: Mapping[str, int]) -> bool:
    try:
        condition.require(sizes)
    except Error:
        return False
    return True


def _names(condition: Condition, known: Mapping[str, int]) -> set[str]:
    return set() if isinstance(condition.size, int) else set(condition.size.names) - set(known)


def _settled(conditions: Sequence[Condition]) -> dict[str, Dim]:
    """Equations that are linear in a size, solved for it one after the other."""
    found: dict[str, Dim] = {}
    for condition in conditions:
        if not condition.is_zero or condition.factors:
            continue
        try:
            size = condition.size.substitute(found) if isinstance(condition.size, SymbolicDim) else condition.size
            solved = _solved(size)
            if solved is not None:
                name, number = solved
                found = {
                    each: old.substitute({name: number}) if isinstance(old, SymbolicDim) else old
                    for each, old in found.items()
                }
                found[name] = number
        except TooComplex:
            continue
    return found


def _solved(size: Dim) -> tuple[str, Dim] | None:
    """`n - 161` is 0 if n is 161; `n - m` if n is m."""
    if isinstance(size, int):
        return None
    for names, factor in size.terms:
        if len(names) != 1 or factor not in (1, -1) or type(names[0]) is not str:
            continue
        rest = size - SymbolicDim({names: factor})
        others = rest.names if isinstance(rest, SymbolicDim) else frozenset()
        if names[0] in others:
            continue
        number = rest * -factor
        if isinstance(number, int) and number < 0:
            return None
        return names[0], number
    return None
