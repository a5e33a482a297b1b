"""Looking for cells in a graph, and whether one can be fused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import chain

from webrnn.ir import DType, Node, Shape, Value

from .cell import FoundCell
from .gru import gru_cells
from .lstm import lstm_cells
from .operands import is_in_order
from .rnn import rnn_cells
from .sums import Part
from .surroundings import Declined, Surroundings


def find_cell(
    view: Surroundings, exact: bool, skip: Collection[int], declines: Callable[[Node, str], None]
) -> tuple[Node, FoundCell] | None:
    """The first cell that can be fused, with its last node: one that is written as the fused cell computes it, or, if
    not exact, one that is not. Those that cannot be fused are reported; `skip` has the ids of last nodes to pass over.
    """
    for node in view.graph.nodes:
        if node.domain or len(node.outputs) != 1 or id(node) in skip:
            continue
        for cell in chain(lstm_cells(view, node), gru_cells(view, node), rnn_cells(view, node)):
            if is_as_computed(view, cell) is not exact:
                continue
            try:
                check(view, cell)
            except Declined as declined:
                declines(node, str(declined))
                continue
            return node, cell
    return None


def is_as_computed(view: Surroundings, cell: FoundCell) -> bool:
    """Whether the fused cell gives the same bits: nothing is added in another order, no column moves."""
    biased = any(bias is not None for bias in (*cell.x_bias, *cell.h_bias))
    return cell.is_exact and not biased and is_in_order(view, cell.x) and is_in_order(view, cell.h)


def check(view: Surroundings, cell: FoundCell) -> None:
    shape = view.shape(cell.state)
    if shape is None or None in shape or not isinstance(shape[-1], int):
        raise Declined("a size is not known")
    if len(shape) < 2:
        raise Declined("its state has one axis")
    if view.facts.dtype(cell.state) is not DType.FLOAT:
        raise Declined("its type is not float32")
    for part in (*cell.x, *cell.h):
        if part.stop - part.start != shape[-1] or _rows(view, part) != shape[:-1]:
            raise Declined("its operands are broadcast, or a size is not known")
    given = {*cell.outputs, *((cell.update, cell.reset) if cell.reset is not None else ())}
    for value in _made(cell):
        if value not in given and not view.is_read_by(value, cell.nodes):
            raise Declined("a gate is read elsewhere")
    if 0 < sum(row is None for row in cell.peepholes) < 3:
        raise Declined("some of its gates have no peephole")


def _made(cell: FoundCell) -> Iterator[Value]:
    return (value for node in cell.nodes for value in node.outputs if value is not None)


def _rows(view: Surroundings, part: Part) -> Shape | None:
    """The shape without its last axis, in the body of the loop."""
    shape = view.shape(part.value)
    if shape is None or part.sequence is None:
        return None if shape is None else shape[:-1]
    axis = part.sequence.axis % len(shape)
    return (*shape[:axis], *shape[axis + 1 : -1])
