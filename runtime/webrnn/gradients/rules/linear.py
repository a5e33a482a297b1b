"""Products. A matrix that many rows share takes one product of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Node, Value

from ..expansion import expanded
from ..registry import Pull, rule

Found = Sequence[Value | None]


def _matrix_cotangent(g: Pull, x: Value, d: Value, w: Value) -> Value:
    """Of w in x [..., K] times w [K, N], or of a batch of such."""
    b = g.b
    if b.rank(w) == 2:
        rows = [b.op("Reshape", value, b.sizes([-1, b.size(value, -1)])) for value in (x, d)]
        if b.rank(x) == b.rank(d) == 2:
            rows = [x, d]
        return b.op("MatMul", b.op("Transpose", rows[0], perm=[1, 0]), rows[1])
    return b.summed_to(b.op("MatMul", b.swapped(x), d), w)


@rule("MatMul")
def matmul(g: Pull) -> Found:
    b, x, w, d = g.b, g.x(0), g.x(1), g.d
    given = x, w
    if b.rank(w) == 1:
        w, d = b.op("Unsqueeze", w, b.ints(1)), b.op("Unsqueeze", d, b.ints(-1))
    if b.rank(x) == 1:
        x, d = b.op("Unsqueeze", x, b.ints(0)), b.op("Unsqueeze", d, b.ints(-2))
    found: list[Value | None] = [None, None]
    if g.wants(0):
        made = b.summed_to(b.op("MatMul", d, b.swapped(w)), x)
        found[0] = made if b.rank(given[0]) > 1 else b.op("Squeeze", made, b.ints(0))
    if g.wants(1):
        made = _matrix_cotangent(g, x, d, w)
        found[1] = made if b.rank(given[1]) > 1 else b.op("Squeeze", made, b.ints(1))
    return found


@rule("Linear", domain="webrnn")
def linear(g: Pull) -> Found:
    b, x, w, bias = g.b, g.x(0), g.x(1), g.operand(2)
    return [
        b.op("MatMul", g.d, b.swapped(w)) if g.wants(0) else None,
        _matrix_cotangent(g, x, g.d, w) if g.wants(1) else None,
        b.summed_to(g.d, bias) if bias is not None and g.wants(2) else None,
    ]


@rule("Gemm")
def gemm(g: Pull) -> Found:
    b = g.b

    def forward() -> Value:
        left, right = (
            b.op("Transpose", g.x(index), perm=[1, 0]) if g.attr(name, 0) else g.x(index)
            for index, name in enumerate(("transA", "transB"))
        )
        made = b.times(b.op("MatMul", left, right), g.number("alpha", 1.0))
        added = g.operand(2)
        return made if added is None else b.op("Add", made, b.times(added, g.number("beta", 1.0)))

    return g.through(forward)


@rule("Einsum")
def einsum(g: Pull) -> Found:
    return expanded(g)


@rule("Expression", domain="webrnn")
def expression(g: Pull) -> Found:
    def forward() -> list[Value | None]:
        inner = g.node.attrs["body"].copy()
        inner.replace_uses(dict(zip(inner.inputs, g.node.inputs, strict=True)))
        for value, array in inner.constants.items():
            value.name = g.b.unique_name(value.name)
            g.b.adopt(value, array)
        for node in inner.nodes:
            for value in node.outputs:
                if value is not None:
                    value.name = g.b.unique_name(value.name)
            g.b.add(Node(node.op, node.inputs, node.outputs, node.attrs, node.name, node.domain))
        return list(inner.outputs)

    return g.through(forward)
