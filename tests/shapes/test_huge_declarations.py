"""A declaration may claim any size: what is inferred from it, and checked, takes no memory for it."""

import contextlib
import tracemalloc

import pytest

from webrnn.checks.graphs import is_allowed
from webrnn.errors import Error
from webrnn.ir import DType, Graph, Node, Value
from webrnn.ops.rows import ROWS
from webrnn.shapes.infer import infer

HUGE = 2**31
SHAPES = [((HUGE,), (HUGE,)), ((3, 1), (HUGE,)), ((HUGE, HUGE), (HUGE,)), ((1,), (1,))]


@pytest.mark.parametrize(("domain", "op"), [key for key in ROWS if not key[0]])
def test_an_op(domain, op):
    for first, others in SHAPES:
        for dtype in (DType.INT64, DType.FLOAT):
            shapes = [first, others, others, others]
            types = [dtype, DType.INT64, DType.INT64, DType.INT64]
            inputs = [Value(f"x{i}", each, shape) for i, (each, shape) in enumerate(zip(types, shapes, strict=True))]
            for count in (1, 2, 3, 4):
                node = Node(op, list(inputs[:count]), [Value("y", None, None)])
                graph = Graph("g", inputs[:count], list(node.outputs), [node], {})
                tracemalloc.start()
                with contextlib.suppress(Error, ValueError, IndexError, KeyError, TypeError):
                    is_allowed(node, infer(graph))
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert peak < 4_000_000, (op, shapes[:count])
