"""Convolution and pooling over one or two axes."""

from __future__ import annotations

from webrnn.ir import Dim, Node

from ..lowering import Lowering, attribute, present, rule
from ..opcodes import PANEL
from ..views import View, count_of


def _planes(l: Lowering, view: View) -> View:
    """[n, c, h, w]; one axis is a width."""
    if view.dtype != "f32" or view.rank not in (3, 4):
        raise l.refuse("it does not run over one or two axes of floats")
    dense = l.dense(view)
    return dense if view.rank == 4 else dense.with_axis(2)


def _window(l: Lowering, node: Node, kernel: list[int], sizes: tuple[Dim, ...], outputs: tuple[Dim, ...]) -> list[int]:
    """kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w"""
    n = len(kernel)
    strides = list(attribute(node, "strides", [1] * n))
    dilations = list(attribute(node, "dilations", [1] * n))
    pads = _pads_before(l, node, kernel, strides, dilations, sizes, outputs)
    for size in outputs:
        l.require_not_negative(size - 1)
    two = [([1] * (2 - n) + kernel), ([1] * (2 - n) + strides), ([0] * (2 - n) + pads), ([1] * (2 - n) + dilations)]
    return [number for pair in two for number in pair]


def _pads_before(
    l: Lowering, node: Node, kernel: list[int], strides: list[int], dilations: list[int], sizes: tuple[Dim, ...],
    outputs: tuple[Dim, ...],
) -> list[int]:  # fmt: skip
    auto = attribute(node, "auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return list(attribute(node, "pads", [0] * (2 * len(kernel))))[: len(kernel)]
    if auto == "VALID":
        return [0] * len(kernel)
    found = []
    for k, stride, dilation, size, out in zip(kernel, strides, dilations, sizes, outputs, strict=True):
        if not isinstance(size, int) or not isinstance(out, int):
            raise l.refuse(f"auto_pad {auto} of a size that is not known")
        total = max((out - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        found.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
    return found


@rule("Conv")
def _conv(l: Lowering, node: Node) -> None:
    x, w = l.shape(present(node.inputs[0])), l.shape(present(node.inputs[1]))
    l.require_equal(x[1], w[1] * attribute(node, "group", 1))
    if not _conv_as_product(l, node):
        _conv_by_windows(l, node)


def _conv_as_product(l: Lowering, node: Node) -> bool:
    """A convolution along one axis as the product of its windows with packed weights, channels last: consecutive
    elements of a window lie behind each other then, so that windows without gaps are views. Worth it where there are
    enough results to fill a vector, or few positions."""
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    weights = l.array(w)
    if weights is None or weights.ndim != 3 or attribute(node, "group", 1) != 1 or l.dtype(x) != "f32":
        return False
    n_out, channels, taps = weights.shape
    batch, _, positions = l.shape(output)
    if n_out < 16 and not (isinstance(positions, int) and positions <= 8):
        return False
    view = l.view(x)
    _, stride, pad, dilation = _window(l, node, [taps], view.shape[2:], (positions,))[1::2]
    rows = l.dense(view.transposed([0, 2, 1]))
    length = view.shape[2]
    read = (positions - 1) * stride + (taps - 1) * dilation + 1
    if isinstance(length, int) and isinstance(read, int):
        if pad or read != length:
            rows = _padded(l, rows, pad, read)
    else:
        is_padded = attribute(node, "auto_pad", "NOTSET") != "VALID"
        rows = _padded_openly(l, rows, pad, attribute(node, "pads", [0, 0])[1] if is_padded else 0)
    padded = rows.shape[1]
    windows = rows.relaid(
        (batch, positions, taps, channels), (padded * channels, stride * channels, dilation * channels, 1)
    )
    flat = _flat_windows(l, windows, taps * channels)
    result = l.temporary((batch, positions, n_out))
    packed = l.packed_once(weights, lambda array: array.transpose(2, 1, 0).reshape(-1, n_out))
    bias_view = None if bias is None else l.dense(l.view(bias))
    l.emit("gemm", flat, packed, bias_view, result.reshaped((batch * positions, n_out)))
    l.views[output] = result.transposed([0, 2, 1])
    return True


def _padded(l: Lowering, rows: View, before: int, length: int) -> View:
    """[batch, length, channels] with zeros around, or without what no window reads."""
    batch, have, channels = rows.shape
    assert isinstance(have, int)
    if before == 0 and length <= have:
        return rows if length == have else l.dense(rows.sliced(1, 0, length))
    kept = min(have, length - before)
    return _copied_into(l, rows.sliced(1, 0, kept), l.temporary((batch, length, channels)), before)


def _padded_openly(l: Lowering, rows: View, before: int, after: int) -> View:
    """The same for a length that is not known: with zeros for all of the pads, and with what no window reads."""
    batch, have, channels = rows.shape
    if min(before, after) < 0:
        raise l.refuse("it cuts off elements of a size that is not known")
    if before == after == 0:
        return rows
    return _copied_into(l, rows, l.temporary((batch, have + before + after, channels)), before)


def _copied_into(l: Lowering, rows: View, room: View, before: int) -> View:
    l.emit("fill", room, 0.0)
    l.copy(rows, room.sliced(1, before, rows.shape[1]))
    return room


def _flat_windows(l: Lowering, windows: View, width: Dim) -> View:
    """[batch * positions, taps * channels]; a copy where windows have gaps or batches do not follow each other."""
    batch, positions, taps, channels = windows.shape
    has_gaps = taps != 1 and windows.strides[2] != channels
    if has_gaps or batch != 1:
        return l.reshaped(l.dense(windows), (batch * positions, width))
    return windows.relaid((positions, width), (windows.strides[1], 1))


def _conv_by_windows(l: Lowering, node: Node) -> None:
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    weights = l.view(w)
    kernel = [size for size in weights.shape[2:] if isinstance(size, int)]
    if len(kernel) != weights.rank - 2:
        raise l.refuse("the size of its kernel is not known")
    view = l.view(x)
    target = _dense_planes(l, l.dense_output(output))
    window = _window(l, node, kernel, view.shape[2:], l.shape(output)[2:])
    scratch = l.temporary((count_of(weights.shape[1:]) * PANEL,))
    l.emit(
        "conv", _planes(l, view), _planes(l, weights), None if bias is None else l.dense(l.view(bias)), target, scratch,
        *window, attribute(node, "group", 1),
    )  # fmt: skip


def _dense_planes(l: Lowering, view: View) -> View:
    if view.rank not in (3, 4):
        raise l.refuse("it does not run over one or two axes of floats")
    return view if view.rank == 4 else view.with_axis(2)


@rule("MaxPool", "AveragePool")
def _pool(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    if any(extra is not None for extra in node.outputs[1:]):
        raise l.refuse("its indices are asked for")
    if attribute(node, "ceil_mode", 0):
        raise l.refuse("ceil_mode")
    view = l.view(x)
    kernel = list(node.attrs["kernel_shape"])
    target = _dense_planes(l, l.dense_output(output))
    window = _window(l, node, kernel, view.shape[2:], l.shape(output)[2:])
    kind = 0 if node.op == "MaxPool" else 1 + int(attribute(node, "count_include_pad", 0))
    l.emit("pool", _planes(l, view), target, kind, *window)
