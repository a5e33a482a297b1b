"""Recurrent cells that are written in plain ops, as a fused cell computes them, become one op each.

Requires: facts from infer_shapes. fuse_linear comes first where a product stands between the halves of a GRU cell.
Ensures: the ops between the products of an RNN, GRU or LSTM cell and its next states are RnnCell, GruCell, GruReset and
GruUpdate or LstmCell, inside loops and outside; operands of Add and Mul may be in either order. Gates that were cut
apart outside a loop are handed in together. An RNN cell is only looked for in a loop, around a product of a state.
Declines: "a gate is read elsewhere", "a size is not known", "its state has one axis", "its type is not float32", "its
operands are broadcast, or a size is not known", "some of its gates have no peephole", "its operands
depend on its results". Cells whose gates are in another
order, or that add a bias last, are left to fuse_exported_cells.
"""

from __future__ import annotations

from .cell_fusion import CellFusion


class FuseCells(CellFusion):
    exact = True
