"""CausalConvWithState as a Scan over the steps, whose state is the last inputs: [batch, channels, taps - 1].

Bias and activation are added after the loop, for all steps at once.
"""

from __future__ import annotations

from webrnn.ir import DType, GraphBuilder, Node, Scan, Value

from .operands import are_floats, narrowed, widened, zeros

_ACTIVATIONS = ("none", "silu", "swish")


def expand_causal_conv(b: GraphBuilder, node: Node) -> bool:
    """Add the Scan of a node; False if something does not fit or is not known, which is left to the op itself."""
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
    _add_scan(b, node, x, weight, bias, past_state, (channels, taps), activation)
    return True


def _add_scan(
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
    kernel = b.op("Reshape", widened(b, weight), b.ints(channels, taps), name=f"{prefix}_kernel")
    if past_state is not None:
        init = widened(b, past_state)
    else:
        init = zeros(b, x, 0, (channels, taps - 1), DType.FLOAT, f"{prefix}_zeros")
    final, trace = b.value(f"{prefix}_past", DType.FLOAT), b.value(f"{prefix}_trace", DType.FLOAT)

    body = GraphBuilder(f"{prefix}_step", b)
    scan = Scan(body.graph, name=prefix)
    past, newest = body.value("past", DType.FLOAT), body.value("x", DType.FLOAT)
    window = body.op("Concat", past, body.op("Unsqueeze", newest, body.ints(2)), axis=2, name="window")
    weighted = body.op("Mul", window, body.capture(kernel), name="weighted")
    result = body.op("ReduceSum", weighted, body.ints(2), keepdims=0, name="y")
    past_next = body.op("Slice", window, body.ints(1), body.ints(taps), body.ints(2), name="past_next")
    scan.add_state(init, past, past_next, final)
    scan.add_sequence(widened(b, x), newest, axis=2)
    scan.add_trace(result, trace, axis=2)
    scan.add_captures(body)
    b.add(scan.to_node())

    output, present = [*node.outputs, None][:2]
    if output is not None:
        y = trace
        if bias is not None:
            y = b.op("Add", y, b.op("Unsqueeze", widened(b, bias), b.ints(1)))
        if activation != "none":
            y = b.op("Mul", y, b.op("Sigmoid", y))
        narrowed(b, y, dtype, output)
    if present is not None:
        narrowed(b, final, dtype, present)
