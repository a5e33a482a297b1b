"""What a graph has to do, inside and outside its loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from webrnn.ir import Dim, Graph, Node, Scan, SymbolicDim, is_plain, is_scan
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import trip_count

from .flops import flops

SUPPOSED_SIZE = 64
"""What a named size is taken for where two costs have to be compared."""


@dataclass(slots=True)
class Work:
    """The nodes of one place and what they cost."""

    ops: Counter[str] = field(default_factory=Counter)
    flops: Dim = 0
    per_step: Dim = 0
    """What one step costs of the loops whose number of steps is not known before they run."""
    uncounted: Counter[str] = field(default_factory=Counter)
    """Nodes whose cost is not known; it is missing in `flops` and `per_step`."""

    @property
    def nodes(self) -> int:
        return self.ops.total()

    def add(self, other: Work) -> None:
        self.ops.update(other.ops)
        self.flops, self.per_step = self.flops + other.flops, self.per_step + other.per_step
        self.uncounted.update(other.uncounted)

    def substitute(self, sizes: Mapping[str, int]) -> Work:
        return Work(self.ops, _value(self.flops, sizes), _value(self.per_step, sizes), self.uncounted)


@dataclass(slots=True)
class Places:
    outside: Work = field(default_factory=Work)
    inside: Work = field(default_factory=Work)

    def add(self, other: Places) -> None:
        self.outside.add(other.outside)
        self.inside.add(other.inside)


def work_of(graph: Graph, facts: Facts) -> Places:
    """The work of one run of a graph: that of a loop is counted once for each of its steps, that of an If is that of
    its costlier branch.
    """
    return _work(graph, facts, in_loop=False, times=1, is_counted=True)


def _work(graph: Graph, facts: Facts, in_loop: bool, times: Dim, is_counted: bool) -> Places:
    places = Places()
    for node in graph.nodes:
        places.add(_node(node, facts, in_loop, times, is_counted))
        if is_scan(node):
            scan = Scan.of(node)
            steps = trip_count(scan, facts)
            inner_times = times if steps is None else times * steps
            places.add(_work(scan.body, facts, True, inner_times, is_counted and steps is not None))
        elif is_plain(node, "If"):
            branches = (node.attrs[name] for name in ("then_branch", "else_branch"))
            places.add(_costlier(*(_work(branch, facts, in_loop, times, is_counted) for branch in branches)))
    return places


def _node(node: Node, facts: Facts, in_loop: bool, times: Dim, is_counted: bool) -> Places:
    name = f"{node.domain}.{node.op}" if node.domain else node.op
    cost = flops(node, facts)
    work = Work(Counter([name]))
    if cost is None:
        work.uncounted[name] += 1
    elif is_counted:
        work.flops = cost * times
    else:
        work.per_step = cost * times
    return Places(inside=work) if in_loop else Places(outside=work)


def _costlier(first: Places, second: Places) -> Places:
    """The costs of one of two branches, with the ops of both."""
    chosen, other = (first, second) if _weight(first) >= _weight(second) else (second, first)
    chosen.outside.ops.update(other.outside.ops)
    chosen.inside.ops.update(other.inside.ops)
    return chosen


def _weight(places: Places) -> int:
    costs = (cost for work in (places.outside, places.inside) for cost in (work.flops, work.per_step))
    return sum(supposed(cost) for cost in costs)


def supposed(dim: Dim) -> int:
    """The number that a symbolic cost is taken for where it has to be compared."""
    number = _value(dim, dict.fromkeys(dim.names, SUPPOSED_SIZE)) if isinstance(dim, SymbolicDim) else dim
    assert isinstance(number, int)
    return number


def _value(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    return dim.substitute(sizes) if isinstance(dim, SymbolicDim) else dim
