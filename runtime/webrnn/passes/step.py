"""A pass as the pipeline knows it: by its name, which is that of its module, and by what it looks for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from webrnn.ir import Graph, is_scan
from webrnn.ops.sets import ELEMENTWISE

from .base import Pass, open_graphs


class Step:
    """A pass that is loaded only if a graph has what it `needs`: of each text one of its features."""

    def __init__(self, name: str, *needs: str):
        self.name, self._needs = name, [frozenset(each.split()) for each in needs]

    def __repr__(self) -> str:
        return f"Step({self.name!r})"

    def may_find_something(self, features: frozenset[str]) -> bool:
        return not any(features.isdisjoint(each) for each in self._needs)

    def load(self) -> Pass:
        return _load(self.name)


@cache
def _load(name: str) -> Pass:
    module = import_module(f".{name}", __package__)
    return next(
        item()
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Pass) and item.name == name
    )


def features_of(graph: Graph) -> frozenset[str]:
    """The ops in a graph and in the graphs inside it. Of loops also: "conditional" ones may end early, "counting" ones
    read the number of their step, "bounded" ones are told how many steps to take, and "siblings" share a graph. All
    element-wise ops are "elementwise".
    """
    found: set[str] = set()
    for inner in open_graphs(graph):
        n_scans = 0
        for node in inner.nodes:
            found.add(node.op)
            if is_scan(node):
                n_scans += 1
                spec, (n_steps, condition) = node.attrs["spec"], node.inputs[:2]
                if spec.has_condition or condition is not None:
                    found.add("conditional")
                if spec.counts:
                    found.add("counting")
                if n_steps is not None:
                    found.add("bounded")
        if n_scans > 1:
            found.add("siblings")
    if not ELEMENTWISE.isdisjoint(found):
        found.add("elementwise")
    return frozenset(found)
