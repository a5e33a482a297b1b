"""The intermediate representation: graphs of ops, and the one loop."""

from .builder import GraphBuilder
from .dims import Dim, Shape, Symbol, SymbolicDim, is_static
from .dtypes import DType
from .graph import REFUSED, WEBRNN, Graph, Node, Value, is_plain
from .scan import Invariant, Scan, ScanSpec, SequenceInput, SequenceSpec, State, StateSpec, Trace, TraceSpec, is_scan

__all__ = [
    "REFUSED", "WEBRNN", "DType", "Dim", "Graph", "GraphBuilder", "Invariant", "Node", "Scan", "ScanSpec",
    "SequenceInput", "SequenceSpec", "Shape", "State", "StateSpec", "Symbol", "SymbolicDim", "Trace", "TraceSpec",
    "Value", "is_plain", "is_scan", "is_static",
]  # fmt: skip
