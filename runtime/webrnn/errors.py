"""The exceptions of webrnn. Everything it raises on purpose is a `webrnn.Error`."""

from __future__ import annotations


class Error(Exception):
    """Base of all webrnn errors. `node`, `op` and `attribute` say where, when that is known.

    >>> raise Error("kernel_shape has 3 entries", node="conv1", op="Conv", attribute="kernel_shape")
    Traceback (most recent call last):
        ...
    webrnn.errors.Error: node 'conv1' (Conv), attribute 'kernel_shape': kernel_shape has 3 entries
    """

    def __init__(self, message: str, *, node: str | None = None, op: str | None = None, attribute: str | None = None):
        self.message, self.node, self.op, self.attribute = message, node, op, attribute
        place = f"node {node!r}" if node else ""
        if op:
            place = f"{place} ({op})" if place else op
        if attribute:
            place = f"{place}, attribute {attribute!r}" if place else f"attribute {attribute!r}"
        super().__init__(f"{place}: {message}" if place else message)


class ModelError(Error):
    """The model file is malformed or contradicts the ONNX specification."""


class LimitError(ModelError):
    """A run would take more than `webrnn.Limits` allow; `limit` is the name of the one that it reached."""

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        attribute: str | None = None,
        limit: str | None = None,
    ):
        super().__init__(message, node=node, op=op, attribute=attribute)
        self.limit = limit


class UnsupportedOp(Error):
    """The model is valid but uses an operator, type or attribute that webrnn does not implement."""


class ShapeError(Error):
    """An input, or a value inside the model, has the wrong rank, size or type."""


class PlanError(Error):
    """A plan file is malformed, of another version, or failed verification."""


class BackendError(Error):
    """A backend cannot be used here: a library, a kernel build or an engine feature is missing."""


class OptionError(Error, ValueError):
    """An argument of a call, or an option of a command, is not one of those that there are."""
