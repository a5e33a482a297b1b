"""Gemm of other types than float32."""

from __future__ import annotations

from webrnn.ir import DType, Node

from .emitter import Declined, Emitter, Expansion


def _gemm(e: Emitter, node: Node) -> None:
    """fuse_linear makes Linear of one of float32."""
    a, b, c = [*node.inputs, None][:3]
    assert a is not None
    assert b is not None
    dtype = e.dtype(a)
    alpha, beta = node.attrs.get("alpha", 1.0), node.attrs.get("beta", 1.0)
    if dtype is DType.FLOAT:
        raise Declined
    is_narrow = dtype in (DType.FLOAT16, DType.BFLOAT16)
    if not is_narrow and dtype is not DType.DOUBLE and not alpha == beta == 1:
        raise Declined("it scales integers")
    wide = DType.FLOAT if is_narrow else dtype
    a, b = e.cast(a, wide), e.cast(b, wide)
    left = e.op("Transpose", a, perm=[1, 0]) if node.attrs.get("transA", 0) else a
    right = e.op("Transpose", b, perm=[1, 0]) if node.attrs.get("transB", 0) else b
    product = e.op("MatMul", left, right)
    if alpha != 1:
        product = e.op("Mul", product, e.number(alpha, wide))
    if c is not None and beta != 0:
        added = e.cast(c, wide)
        product = e.op("Add", product, added if beta == 1 else e.op("Mul", added, e.number(beta, wide)))
    e.op("Cast", product, to=int(dtype), output=node.outputs[0])


EXPANSIONS: dict[str, Expansion] = {"Gemm": _gemm}
