"""Names of values while a graph is read."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from webrnn.errors import ModelError
from webrnn.ir import GraphBuilder, Value

from .proto import Attribute
from .tensors import UNKNOWN, ValueType


class Scope:
    """The names that nodes can use: those of a graph and, from inside a sub-graph, those around it.

    A function body has a scope without parent, whose nodes go to the graph of the caller; `arguments` are then the
    attributes of the call, and `prefix` keeps its value names apart from the caller's.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        parent: Scope | None = None,
        arguments: dict[str, Attribute] | None = None,
        prefix: str = "",
    ):
        self.builder, self.parent = builder, parent
        self.names: dict[str, Value | None] = {}
        self.types: dict[str, ValueType] = {}
        inherited: dict[str, Attribute] | None = parent._arguments if parent is not None else None
        self._arguments: dict[str, Attribute] | None = arguments if arguments is not None else inherited
        self.in_function = self._arguments is not None
        self._prefix = prefix

    def define(self, name: str, value: Value | None) -> None:
        """Give a value its name. None is an optional function input that the call leaves out."""
        if not name:
            raise ModelError("a value has no name")
        if name in self.names:
            raise ModelError(f"value {name!r} is defined twice")
        self.names[name] = value

    def produce(self, name: str) -> Value:
        """A new value for an output of a node."""
        value = Value(self.builder.unique_name(self._prefix + name), *self.types.get(name, UNKNOWN))
        self.define(name, value)
        return value

    def as_input(self, value: Value) -> Value:
        """What stands here for a new input of the outermost graph."""
        if self.parent is not None:
            return self.builder.capture(self.parent.as_input(value))
        made = self.builder.input(value.name, value.dtype, value.shape)
        if made.name != value.name:
            raise ModelError(f"value {value.name!r} is defined twice")
        return made

    def lookup(self, name: str) -> Value:
        value = self.names.get(name) or self.find(name)
        if value is None:
            raise ModelError(f"there is no value {name!r}")
        return value

    def find(self, name: str) -> Value | None:
        if name in self.names:
            return self.names[name]
        if self.parent is None:
            return None
        outer = self.parent.find(name)
        return None if outer is None else self.builder.capture(outer)

    def knows(self, name: str) -> bool:
        """Whether a name can be used here; unlike `find` this captures nothing."""
        return name in self.names or (self.parent is not None and self.parent.knows(name))

    def bind(self, attributes: Sequence[Attribute]) -> list[Attribute]:
        """The attributes of a node in a function: those that refer to the call are taken from there, if it has them."""
        bound = []
        for attribute in attributes:
            if not attribute.reference:
                bound.append(attribute)
                continue
            given = (self._arguments or {}).get(attribute.reference)
            if given is not None:
                renamed = copy(given)
                renamed.name = attribute.name
                bound.append(renamed)
        return bound
