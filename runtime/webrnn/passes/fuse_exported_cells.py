"""Recurrent cells as exporters write them become one op each.

Requires: facts from infer_shapes, products as Linear from fuse_linear.
Ensures: as fuse_cells, for cells with gates in any order, cut apart in any way or products of their own, with constants
added anywhere, and with H' = n + z·(H - n) or n - z·(n - H). The columns of constant weights are put into ONNX's order,
constants go into the bias of the product of the input.
Declines: for the reasons of fuse_cells, and "the weights are not constants, so gates cannot be put into ONNX's order",
"its gates are products of different values", "its gates come in different orders of steps".
"""

from __future__ import annotations

from .cell_fusion import CellFusion


class FuseExportedCells(CellFusion):
    exact = False
    reorders_arithmetic = True
