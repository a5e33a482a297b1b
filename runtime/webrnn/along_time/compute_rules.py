"""Ops that compute: element by element, products, windows, and what runs over an axis."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Dim
from webrnn.ir.fused import CELLS
from webrnn.ops.sets import ELEMENTWISE, REDUCTIONS

from .columns import require_no_columns
from .kinds import Along, BreaksTime
from .view import NodeView, meeting, rule


@rule(*ELEMENTWISE)
def elementwise(view: NodeView) -> Sequence[Along]:
    return [meeting(view, _given(view))]


@rule(*CELLS, domain=WEBRNN)
def cell(view: NodeView) -> Sequence[Along]:
    """Row by row; the last axis is cut into gates."""
    found = meeting(view, _given(view))
    if found.axis == view.rank(0) - 1:
        raise BreaksTime("it combines frames as if they were gates")
    return [found] * len(view.node.outputs)


@rule("Dropout")
def dropout(view: NodeView) -> Sequence[Along]:
    view.only(0)
    if view.has(2) and view.fact(2).ints != (0,):
        raise BreaksTime("it draws random numbers", view.time_of(0))
    return [view.operands[0]] * len(view.node.outputs)


def _given(view: NodeView) -> list[int]:
    return [index for index in range(len(view.node.inputs)) if view.has(index)]


@rule("QuantizeLinear", "DequantizeLinear")
def quantize_linear(view: NodeView) -> Sequence[Along]:
    view.only(0)
    time, scale = view.time_of(0), view.shape(1)
    if scale not in ((), (1,)):
        if len(scale) != 1 or view.node.attrs.get("block_size"):
            raise BreaksTime("nothing is known of how it works in blocks along time", time)
        if view.axis_attribute(1) == time:
            raise BreaksTime("it scales each frame by another number", time)
    return [view.operands[0]]


@rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(view: NodeView) -> Sequence[Along]:
    raise BreaksTime("its scale is found from all frames at once", view.time_of(0))


# Products


@rule("MatMul")
def matmul(view: NodeView) -> Sequence[Along]:
    return [_product(view, 0, 1)]


@rule("Linear", domain=WEBRNN)
def linear(view: NodeView) -> Sequence[Along]:
    view.only(0)
    return [_product(view, 0, 1)]


@rule("MatMulInteger")
def matmul_integer(view: NodeView) -> Sequence[Along]:
    view.only(0, 1)
    for index in (2, 3):
        if view.has(index) and view.shape(index) not in ((), (1,)):
            raise BreaksTime("its zero points are not one number")
    return [_product(view, 0, 1)]


@rule("QLinearMatMul")
def qlinear_matmul(view: NodeView) -> Sequence[Along]:
    view.only(0, 3)
    for index in (1, 2, 4, 5, 6, 7):
        if view.shape(index) not in ((), (1,)):
            raise BreaksTime("its scales and zero points are not one number")
    return [_product(view, 0, 3)]


def _product(view: NodeView, left: int, right: int) -> Along:
    """[..., rows, k] times [..., k, columns]; an operand with one axis has only k."""
    first, second = view.operands[left], view.operands[right]
    n_left, n_right = view.rank(left), view.rank(right)
    if first.last or second.last:
        raise BreaksTime("it combines each frame with what comes after the last one")
    is_summed = first.axis == n_left - 1 or (second.axis is not None and second.axis == max(n_right - 2, 0))
    if n_left < 1 or n_right < 1 or is_summed:
        raise BreaksTime("it sums over frames")
    rank = max(n_left, n_right, 2)
    # Places among the axes of the result, as if no operand had one axis only.
    places = [
        None if operand.axis is None else operand.axis + rank - own
        for operand, own in ((first, n_left), (second, n_right))
    ]
    if n_left == 1 and places[0] is not None:
        raise BreaksTime("it sums over frames")
    result = places[0] if places[0] is not None else places[1]
    assert result is not None
    if result < rank - 2 or (places[0] is not None and places[1] is not None):
        if places[0] is not None and places[1] is not None:
            if places[0] != places[1] or result >= rank - 2:
                raise BreaksTime("it combines each frame with every other one")
            along = meeting(view, [left, right])
        else:
            along = first if first.axis is not None else second
            other, own = (right, n_right) if first.axis is not None else (left, n_left)
            axis = result - (rank - own)
            if axis >= 0 and not view.is_same_for_all_frames(other, axis):
                raise BreaksTime("it combines each frame with another element of a fixed sequence")
    else:
        along = first if first.axis is not None else second
    if n_left == 1 and result == rank - 1:
        result -= 1
    return along.at(result)


@rule("Gemm")
def gemm(view: NodeView) -> Sequence[Along]:
    a, b = view.operands[:2]
    rows = 1 if view.node.attrs.get("transA") else 0
    columns = 0 if view.node.attrs.get("transB") else 1
    if a.last or b.last:
        raise BreaksTime("it combines each frame with what comes after the last one")
    if a.axis is not None and b.axis is not None:
        raise BreaksTime("it combines each frame with every other one")
    if (a.axis is not None and a.axis != rows) or (b.axis is not None and b.axis != columns):
        raise BreaksTime("it sums over frames")
    if a.axis is None and b.axis is None:
        raise BreaksTime("it adds frames to a product that does not depend on them")
    found = a.at(0) if a.axis is not None else b.at(1)
    if view.has(2):
        added, axis = view.operands[2], (found.axis or 0) - 2 + view.rank(2)
        fits = axis >= 0 and (added.axis, added.outer, added.inner) == (axis, found.outer, found.inner)
        is_plain = added.is_timeless and (axis < 0 or view.is_same_for_all_frames(2, axis))
        if not fits and not is_plain:
            raise BreaksTime("it adds something else to each frame", found.axis)
    return [found]


@rule("Einsum")
def einsum(view: NodeView) -> Sequence[Along]:
    equation = view.node.attrs["equation"].replace(" ", "")
    if "->" not in equation or "." in equation:
        raise BreaksTime("its equation is not written out")
    left, _, result = equation.partition("->")
    terms = left.split(",")
    timed = [(term, operand) for term, operand in zip(terms, view.operands, strict=True) if operand.axis is not None]
    letters = {term[operand.axis] for term, operand in timed if operand.axis is not None}
    if any(operand.last for operand in view.operands) or len(letters) != 1:
        raise BreaksTime("it combines each frame with other ones")
    letter = letters.pop()
    is_summed = any(one not in result and left.count(one) == 1 for one in left if one != ",")
    if is_summed and view.fixed_length(next(at for at, along in enumerate(view.operands) if along.axis is not None)):
        raise BreaksTime("it sums in another order than the model does for its fixed number of frames")
    if letter not in result or any(term.count(letter) > 1 for term in terms):
        raise BreaksTime("it sums over frames")
    if len({(operand.outer, operand.inner) for _, operand in timed}) > 1:
        raise BreaksTime("frames meet others in different order")
    for index, (term, operand) in enumerate(zip(terms, view.operands, strict=True)):
        if operand.axis is None and letter in term and not view.is_same_for_all_frames(index, term.index(letter)):
            raise BreaksTime("it combines each frame with another element of a fixed sequence")
    return [timed[0][1].at(result.index(letter))]


# Windows: [batch, channels, *places]


@rule("Conv", "ConvTranspose", "ConvInteger")
def conv(view: NodeView) -> Sequence[Along]:
    return _conv(view, 1)


@rule("QLinearConv")
def qlinear_conv(view: NodeView) -> Sequence[Along]:
    return _conv(view, 3)


def _conv(view: NodeView, weights: int) -> Sequence[Along]:
    view.only(0)
    time = view.time_of(0)
    if time == 1:
        raise BreaksTime("it sums over frames, which are its channels")
    if time >= 2:
        kernel = view.node.attrs.get("kernel_shape") or view.shape(weights)[2:]
        if "output_shape" in view.node.attrs:
            raise BreaksTime("its output_shape may add or cut frames", time)
        _one_frame(view, kernel, time)
    return [view.operands[0]]


@rule("MaxPool", "AveragePool", "LpPool")
def pool(view: NodeView) -> Sequence[Along]:
    time = view.time_of(0)
    if len(view.node.outputs) > 1 and view.node.outputs[1] is not None:
        raise BreaksTime("its indices count over all frames", time)
    if time >= 2:
        _one_frame(view, view.node.attrs["kernel_shape"], time)
    return [view.operands[0]]


def _one_frame(view: NodeView, kernel: Sequence[Dim | None], time: int) -> None:
    """Require that a window sees one frame, and that there is one for each."""
    attrs, place, n = view.node.attrs, time - 2, view.rank(0) - 2
    width = kernel[place]
    if width != 1:
        many = "several" if width is None else width
        raise BreaksTime(f"it looks at {many} frames at a time, and a step knows only its own", time)
    if (attrs.get("strides") or [1] * n)[place] != 1:
        raise BreaksTime("it leaves out or adds frames, by its stride along time", time)
    pads = attrs.get("pads") or [0] * 2 * n
    if pads[place] or pads[place + n] or (attrs.get("output_padding") or [0] * n)[place]:
        raise BreaksTime("it pads along time", time)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(view: NodeView) -> Sequence[Along]:
    if view.time_of(0) >= 2:
        raise BreaksTime("it takes all frames together", view.time_of(0))
    return [view.operands[0]]


@rule("Resize", sizes=[2, 3])
def resize(view: NodeView) -> Sequence[Along]:
    view.only(0, 2, 3)
    time, rank, attrs = view.time_of(0), view.rank(0), view.node.attrs
    axes = [view.from_front(axis, rank) for axis in attrs.get("axes") or range(rank)]
    if time in axes:
        place = axes.index(time)
        scales, sizes = view.fact(2).floats if view.has(2) else None, view.fact(3).content if view.has(3) else None
        keeps = (scales is not None and len(scales) == len(axes) and scales[place] == 1) or (
            sizes is not None and len(sizes) == len(axes) and sizes[place] == view.shape(0)[time]
        )
        is_cropped = attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        if not keeps or is_cropped or attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise BreaksTime("it makes frames of others along time", time)
    return [view.operands[0]]


# What runs over an axis


@rule(*REDUCTIONS)
def reduce(view: NodeView) -> Sequence[Along]:
    time, gone = view.time_of(0), view.reduced_axes()
    if not gone:
        return [view.operands[0]]
    require_no_columns(view, gone)
    return [_reduced(view, gone, time)]


@rule("ArgMax", "ArgMin")
def arg_reduce(view: NodeView) -> Sequence[Along]:
    return [_reduced(view, {view.axis_attribute(0)}, view.time_of(0))]


def _reduced(view: NodeView, gone: set[int], time: int) -> Along:
    keeps = view.node.attrs.get("keepdims", 1)
    if time in gone:
        raise BreaksTime("it reduces over all frames", time if keeps else None)
    return view.operands[0].at(time if keeps else time - sum(axis < time for axis in gone))


@rule("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "CumSum", "CumProd", "TopK")
def over_an_axis(view: NodeView) -> Sequence[Along]:
    view.only(0)
    time = view.time_of(0)
    if view.node.op in ("CumSum", "CumProd"):
        axis = view.from_front(view.ints(1, "axes")[0], view.rank(0))
    else:
        axis = view.axis_attribute(-1)
    if axis == time:
        raise BreaksTime("it runs over all frames", time)
    if view.node.op == "LpNormalization":
        require_no_columns(view, [axis])
    return [view.operands[0]] * len(view.node.outputs)


@rule("LayerNormalization", "RMSNormalization")
def layer_normalization(view: NodeView) -> Sequence[Along]:
    view.only(0)
    time = view.time_of(0)
    if time >= view.axis_attribute(-1):
        raise BreaksTime("its statistics are of all frames", time)
    for index in (1, 2):
        place = time - view.rank(0) + (view.rank(index) if view.has(index) else 0)
        if view.has(index) and place >= 0 and not view.is_same_for_all_frames(index, place):
            raise BreaksTime("it scales each frame by another number", time)
    return [view.operands[0]] * len(view.node.outputs)


@rule("BatchNormalization")
def batch_normalization(view: NodeView) -> Sequence[Along]:
    view.only(0)
    if view.node.attrs.get("training_mode", 0):
        raise BreaksTime("its statistics are of all frames", view.time_of(0))
    if view.time_of(0) == 1:
        raise BreaksTime("it scales each frame by another number", 1)
    return [view.operands[0]]


@rule("InstanceNormalization", "GroupNormalization")
def instance_normalization(view: NodeView) -> Sequence[Along]:
    view.only(0)
    if view.time_of(0) != 0:
        raise BreaksTime("its statistics are of all frames", view.time_of(0))
    return [view.operands[0]]


@rule("MeanVarianceNormalization")
def mean_variance_normalization(view: NodeView) -> Sequence[Along]:
    if view.time_of(0) in view.reduced_axes():
        raise BreaksTime("its statistics are of all frames", view.time_of(0))
    require_no_columns(view, view.reduced_axes())
    return [view.operands[0]]


@rule("LRN")
def lrn(view: NodeView) -> Sequence[Along]:
    if view.time_of(0) == 1:
        raise BreaksTime("it looks at several frames, which are its channels", 1)
    return [view.operands[0]]


@rule("DFT")
def dft(view: NodeView) -> Sequence[Along]:
    view.only(0)
    time, rank = view.time_of(0), view.rank(0)
    axis = view.from_front(view.ints(2, "axis")[0] if view.has(2) else -2, rank)
    if time in (axis, rank - 1):
        raise BreaksTime("it transforms all frames together", time)
    return [view.operands[0]]


@rule("Trilu")
def trilu(view: NodeView) -> Sequence[Along]:
    view.only(0)
    if view.time_of(0) >= view.rank(0) - 2:
        raise BreaksTime("what it keeps depends on the number of the frame", view.time_of(0))
    return [view.operands[0]]
