"""Naming the node in errors that are raised far from it."""

from __future__ import annotations

from webrnn.errors import Error, LimitError, ModelError, ShapeError

_WRONG_OPERANDS = (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError)


def blame(error: Exception, node: str, op: str) -> Error:
    """`error` as a webrnn.Error that names the node; of one that already names a node inside this one, the way to it.

    >>> blame(blame(ValueError("shapes differ"), "add1", "Add"), "loop", "Scan")
    ShapeError("node 'loop/add1' (Add): shapes differ")
    """
    if isinstance(error, Error):
        path, inner = (f"{node}/{error.node}", error.op) if error.node else (node, op)
        blamed = type(error)(error.message, node=path, op=inner, attribute=error.attribute)
        if isinstance(error, LimitError) and isinstance(blamed, LimitError):
            blamed.limit = error.limit
        return blamed
    if isinstance(error, MemoryError):
        return ShapeError(f"out of memory: {error}", node=node, op=op)
    if isinstance(error, RecursionError):
        return ModelError("nested too deep", node=node, op=op)
    kind = ShapeError if isinstance(error, _WRONG_OPERANDS) else ModelError
    return kind(f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}", node=node, op=op)
