"""Recurrent cells that are written in plain ops: `find_cell` reads one off a graph.

`view` looks at a graph and, in the body of a loop, through to the graph around it; `sums` reads what is added up before
an activation; `activations` reads the activations; `lstm`, `gru` and `rnn` know the cells; `operands` makes the wide
operands, gates in ONNX's order, that a fused cell takes.
"""

from .cell import FoundCell
from .find import find_cell
from .operands import Operands
from .surroundings import Declined, Loop, Surroundings

__all__ = ["Declined", "FoundCell", "Loop", "Operands", "Surroundings", "find_cell"]
