"""Which ops of ONNX's own domain are of which kind: the table's traits by name."""

from __future__ import annotations

from webrnn.ir import DType

from .rows import with_trait

FLOATS = frozenset({DType.FLOAT, DType.DOUBLE, DType.FLOAT16})

MAPS = with_trait("map")
BINARY = with_trait("binary")
VARIADIC = with_trait("variadic")
COMPARISONS = with_trait("comparison")
LOGICAL = with_trait("logical")
BITWISE = with_trait("bitwise")
ELEMENTWISE = MAPS | BINARY | VARIADIC | COMPARISONS | LOGICAL | BITWISE | with_trait("elementwise")
WEIGHTED = with_trait("weights")
REDUCTIONS = with_trait("reduction")
RESHAPES = with_trait("reshape")
VIEWS = RESHAPES | with_trait("view")
SIZES = with_trait("size")
TOTAL = with_trait("total")
RANDOM = with_trait("random")
