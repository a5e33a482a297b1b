"""CausalConvWithState as element-wise ops on the last inputs, [batch, channels, taps - 1], and the new ones.

A result is the sum of the products of the taps, the oldest first, then the bias. With many taps it is a Conv.
"""

from __future__ import annotations

from webrnn.ir import DType, GraphBuilder, Node, Value

from .operands import are_floats, narrowed, widened, zeros

_ACTIVATIONS = ("none", "silu", "swish")
_MOST_TAPS = 8
_END = 2**31 - 1


def expand_causal_conv(b: GraphBuilder, node: Node) -> bool:
    """Add the ops of a node; False if something does not fit or is not known, which is left to the op itself."""
    inputs = [*node.inputs, *[None] * (4 - len(node.inputs))]
    x, weight, bias, past_state = inputs[:4]
    activation = node.attrs.get("activation", "none")
    if len(inputs) > 4 or not node.attrs.keys() <= {"activation"} or activation not in _ACTIVATIONS:
        return False
    if x is None or weight is None or not are_floats(*inputs):
        return False
    if any(value is not None and value.dtype != x.dtype for value in inputs):
        return False
    if x.shape is None or weight.shape is None or len(x.shape) != 3 or len(weight.shape) != 3:
        return False
    batch, channels, _ = x.shape
    taps = weight.shape[2]
    if batch is None or not isinstance(channels, int) or not isinstance(taps, int) or channels < 1 or taps < 1:
        return False
    if weight.shape != (channels, 1, taps) or (bias is not None and bias.shape != (channels,)):
        return False
    if past_state is not None and past_state.shape != (batch, channels, taps - 1):
        return False
    _add_ops(b, node, x, weight, bias, past_state, (channels, taps), activation)
    return True


def _add_ops(
    b: GraphBuilder,
    node: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    past_state: Value | None,
    sizes: tuple[int, int],
    activation: str,
) -> None:
    channels, taps = sizes
    prefix, dtype = node.name or "causal_conv", x.dtype or DType.FLOAT
    if past_state is not None:
        past = widened(b, past_state)
    else:
        past = zeros(b, x, 0, (channels, taps - 1), DType.FLOAT, f"{prefix}_zeros")
    history = b.op("Concat", past, widened(b, x), axis=2, name=f"{prefix}_history")
    output, present = [*node.outputs, None][:2]
    if output is not None:
        make = _sum_of_taps if taps <= _MOST_TAPS else _conv
        y = make(b, history, widened(b, weight), None if bias is None else widened(b, bias), (channels, taps))
        if activation != "none":
            y = b.op("Mul", y, b.op("Sigmoid", y))
        narrowed(b, y, dtype, output)
    if present is not None:
        last = b.ints(1 - taps if taps > 1 else _END)
        narrowed(b, b.op("Slice", history, last, b.ints(_END), b.ints(2)), dtype, present)


def _sum_of_taps(b: GraphBuilder, history: Value, weight: Value, bias: Value | None, sizes: tuple[int, int]) -> Value:
    _, taps = sizes
    taken = [b.op("Slice", history, b.ints(tap), b.ints(tap - taps + 1 or _END), b.ints(2)) for tap in range(taps)]
    factors = [b.op("Slice", weight, b.ints(tap), b.ints(tap + 1), b.ints(2)) for tap in range(taps)]
    y, *others = (b.op("Mul", x, b.op("Squeeze", factor, b.ints(2))) for x, factor in zip(taken, factors, strict=True))
    for term in others:
        y = b.op("Add", y, term)
    return y if bias is None else b.op("Add", y, b.op("Unsqueeze", bias, b.ints(1)))


def _conv(b: GraphBuilder, history: Value, weight: Value, bias: Value | None, sizes: tuple[int, int]) -> Value:
    """Of one step more, which is dropped: of no steps a Conv has no window."""
    operands = [history, weight, *([] if bias is None else [bias])]
    y = b.op("Conv", *operands, group=sizes[0], kernel_shape=[sizes[1]], pads=[0, 1])
    return b.op("Slice", y, b.ints(0), b.ints(-1), b.ints(2))
