"""Connectionist temporal classification: the loss of all alignments of a sequence of labels with the frames.

The labels with blanks before, between and behind them are 2 L + 1 places. A Scan over the frames has one state: of each
place the logarithm of the probability of all ways to be there. What is impossible is `IMPOSSIBLE`, a finite number, so
that differences of two of them, and gradients, are numbers as well.
"""

from __future__ import annotations

import numpy as np

from webrnn.errors import OptionError
from webrnn.ir import DType, GraphBuilder, Scan, Value

from .functions import number, rank_of, type_of

IMPOSSIBLE = -1e30
"""So far below any logarithm of a probability of a sequence that adding one does not change it."""


def ctc(
    b: GraphBuilder,
    prediction: Value,
    target: Value,
    input_lengths: Value,
    target_lengths: Value,
    *,
    blank: int = 0,
    batch_first: bool = False,
    zero_infinity: bool = False,
    reduction: str = "mean",
) -> Value:
    """CTC of logits [time, batch, classes] (with `batch_first` [batch, time, classes]) and labels [batch, labels].

    Frames behind `input_lengths` and labels behind `target_lengths`, both [batch], do not count. The mean is over the
    batch, of each loss divided by the number of its labels (by 1 if it has none), as in PyTorch; "sum" adds them up. If
    a sequence has too few frames for its labels, its loss is infinite, or 0 with `zero_infinity`.
    """
    if reduction not in ("mean", "sum"):
        raise OptionError(f"reduction={reduction!r}: it is 'mean' or 'sum'")
    if rank_of(prediction, "the prediction") != 3:
        raise OptionError(f"the prediction has {rank_of(prediction, '')} axes; CTC takes time, batch and classes")
    n_classes = (prediction.shape or ())[2]
    if isinstance(n_classes, int) and not 0 <= blank < n_classes:
        raise OptionError(f"blank={blank}: there are {n_classes} classes")
    if batch_first:
        prediction = b.op("Transpose", prediction, perm=[1, 0, 2])
    lengths = _held(b, target_lengths, target, 1)
    places = _with_blanks(b, _labels(b, target, lengths, blank), blank)
    emissions = _emissions(b, prediction, places)
    running = _running(b, emissions, _held(b, input_lengths, emissions, 0))
    final = _forward(b, emissions, running, _may_skip(b, places, blank))
    losses = b.op("Neg", _at_the_end(b, final, lengths))
    is_impossible = b.op("Greater", losses, number(b, -IMPOSSIBLE / 2, prediction))
    instead = number(b, 0.0 if zero_infinity else np.inf, prediction)
    losses = b.op("Where", is_impossible, instead, losses)
    if reduction == "sum":
        return b.op("ReduceSum", losses, keepdims=0, name="loss")
    divisors = b.op("Cast", b.op("Max", lengths, b.constant(1)), to=int(prediction.dtype or DType.FLOAT))
    return b.op("ReduceMean", b.op("Div", losses, divisors), keepdims=0, name="loss")


def _as_integers(b: GraphBuilder, value: Value) -> Value:
    return value if value.dtype is DType.INT64 else b.op("Cast", value, to=int(DType.INT64))


def _size(b: GraphBuilder, value: Value, axis: int) -> Value:
    return b.op("Shape", value, start=axis, end=axis + 1)


def _held(b: GraphBuilder, lengths: Value, whole: Value, axis: int) -> Value:
    """The lengths; a lookup raises, on all backends, if one is negative or larger than the axis that it counts."""
    n_lengths = b.op("Add", b.op("Squeeze", _size(b, whole, axis), b.ints(0)), b.constant(1))
    lengths = _as_integers(b, lengths)
    lengths = b.op("Where", b.op("Less", lengths, b.constant(0)), n_lengths, lengths)
    return b.op("Gather", b.op("Range", b.constant(0), n_lengths, b.constant(1)), lengths, axis=0)


def _labels(b: GraphBuilder, target: Value, lengths: Value, blank: int) -> Value:
    """The target with blanks behind its lengths, whatever stands there."""
    is_label = b.op("Less", _numbers(b, target), b.op("Unsqueeze", lengths, b.ints(1)))
    return b.op("Where", is_label, _as_integers(b, target), b.constant(blank))


def _with_blanks(b: GraphBuilder, labels: Value, blank: int) -> Value:
    """[batch, labels] to [batch, places]: blank, label, blank, label, ..., blank."""
    batch = _size(b, labels, 0)
    column = b.op("ConstantOfShape", b.op("Concat", batch, b.ints(1), axis=0), value=np.array([blank], np.int64))
    blanks = b.op("ConstantOfShape", b.op("Shape", labels), value=np.array([blank], np.int64))
    pairs = b.op("Concat", *(b.op("Unsqueeze", part, b.ints(2)) for part in (blanks, labels)), axis=2)
    doubled = b.op("Mul", _size(b, labels, 1), b.ints(2))
    flat = b.op("Reshape", pairs, b.op("Concat", batch, doubled, axis=0), allowzero=1)
    return b.op("Concat", flat, column, axis=1, name="places")


def _emissions(b: GraphBuilder, prediction: Value, places: Value) -> Value:
    """[time, batch, places]: the logarithm of the probability of the label of each place in each frame."""
    logarithms = b.op("LogSoftmax", prediction, axis=2)
    everywhere = b.op("Concat", _size(b, logarithms, 0), b.op("Shape", places), axis=0)
    repeated = b.op("Expand", b.op("Unsqueeze", places, b.ints(0)), everywhere)
    return b.op("GatherElements", logarithms, repeated, axis=2, output=b.value("emissions", prediction.dtype))


def _may_skip(b: GraphBuilder, places: Value, blank: int) -> Value:
    """[batch, places]: whether the blank before a place may be left out, as between different labels."""
    before = b.op("Slice", b.op("Pad", places, b.ints(0, 2, 0, 0), b.constant(blank)), b.ints(0), b.ints(-2), b.ints(1))
    is_other = b.op("Not", b.op("Equal", places, before))
    is_label = b.op("Not", b.op("Equal", places, b.constant(blank)))
    return b.op("And", is_other, is_label)


def _running(b: GraphBuilder, emissions: Value, input_lengths: Value) -> Value:
    """[time, batch, 1]: whether a sequence has this frame."""
    n_steps = b.op("Squeeze", _size(b, emissions, 0), b.ints(0))
    times = b.op("Range", b.constant(0), n_steps, b.constant(1))
    lasts = b.op("Less", b.op("Unsqueeze", times, b.ints(1)), input_lengths)
    return b.op("Unsqueeze", lasts, b.ints(2))


def _forward(b: GraphBuilder, emissions: Value, running: Value, may_skip: Value) -> Value:
    """[batch, places] behind the last frame of each sequence."""
    start = b.op("ConstantOfShape", b.op("Shape", may_skip), value=np.zeros(1, type_of(emissions)))
    is_first = b.op("Equal", _numbers(b, may_skip), b.constant(0))
    start = b.op("Where", is_first, start, number(b, IMPOSSIBLE, emissions))
    body = GraphBuilder("ctc_step", b)
    scan = Scan(body.graph, name="ctc")
    emission, lasts, before = (body.value(name) for name in ("emission", "lasts", "alpha"))
    scan.add_sequence(emissions, emission)
    scan.add_sequence(running, lasts)
    one, two = (_shifted(body, before, places, emissions) for places in (1, 2))
    two = body.op("Where", body.capture(may_skip), two, number(body, IMPOSSIBLE, emissions))
    reached = body.op("Add", _log_sum_exp(body, [before, one, two]), emission)
    after = body.op("Where", lasts, reached, before)
    final = b.value("ctc_final", emissions.dtype)
    scan.add_state(start, before, after, final)
    scan.add_captures(body)
    b.add(scan.to_node())
    return final


def _numbers(b: GraphBuilder, like: Value) -> Value:
    """0, 1, ... for the places of [batch, places]."""
    return b.op("Range", b.constant(0), b.op("Squeeze", _size(b, like, 1), b.ints(0)), b.constant(1))


def _shifted(b: GraphBuilder, alpha: Value, places: int, like: Value) -> Value:
    """What the place so many before has."""
    padded = b.op("Pad", alpha, b.ints(0, places, 0, 0), number(b, IMPOSSIBLE, like))
    return b.op("Slice", padded, b.ints(0), b.ints(-places), b.ints(1))


def _log_sum_exp(b: GraphBuilder, parts: list[Value]) -> Value:
    most = b.op("Max", *parts)
    total = b.op("Sum", *(b.op("Exp", b.op("Sub", part, most)) for part in parts))
    return b.op("Add", most, b.op("Log", total))


def _at_the_end(b: GraphBuilder, final: Value, lengths: Value) -> Value:
    """[batch]: the logarithm of the probability of the last label or the blank behind it."""
    last_blank = b.op("Mul", lengths, b.constant(2))
    last_label = b.op("Max", b.op("Sub", last_blank, b.constant(1)), b.constant(0))
    ends = []
    for place in (last_blank, last_label):
        found = b.op("GatherElements", final, b.op("Unsqueeze", place, b.ints(1)), axis=1)
        ends.append(b.op("Squeeze", found, b.ints(1)))
    has_labels = b.op("Greater", lengths, b.constant(0))
    ends[1] = b.op("Where", has_labels, ends[1], number(b, IMPOSSIBLE, final))
    return _log_sum_exp(b, ends)
