"""What each instruction asks of its operands, once sizes are numbers: one rule for each row of instructions.py.

A rule takes the operands in the order of the row, tensors as `BoundTensor` (None for one that is left out), sizes and
numbers as int, and says whether they fit each other; that tensors are of the row's element types is known already. The
VM asks the same: check_<name> in wasm_kernels/instructions.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.fused import BACKWARD_CELLS, PEEPHOLES

from . import image_rules, index_rules
from .bound import INT_MAX, BoundTensor, Maybe, fits, has_rows, is_block, is_dense, is_vector, packed_floats
from .instructions import (
    CELLS,
    FFT_SLACK,
    FFTS,
    MAX_FFT,
    MIN_FFT,
    NUMBER_REDUCTIONS,
    NUMBERS,
    POOLINGS,
    PULLBACKS,
    REDUCTIONS,
)
from .opcodes import BLOCK_COLUMNS, DTYPES, INTEGER_PANEL, INTEGER_ROWS, ITEM_BYTES, PANEL
from .small_rules import has_small_weights, small_rows


def _copy(x: BoundTensor, y: BoundTensor) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape


def _fill(y: BoundTensor, value: int) -> bool:
    return y.is_contiguous


def _sizes(y: BoundTensor, *sizes: int) -> bool:
    return is_vector(y, len(sizes))


def _gather(x: BoundTensor, index: BoundTensor, y: BoundTensor) -> bool:
    return (
        x.rank == y.rank == 3
        and x.dtype == y.dtype
        and x.is_contiguous
        and y.is_contiguous
        and is_vector(index, y.shape[1])
        and (x.shape[0], x.shape[2]) == (y.shape[0], y.shape[2])
        and fits(x.shape[2] * ITEM_BYTES[DTYPES.index(x.dtype)])
    )


def _gemm(x: BoundTensor, packed: BoundTensor, bias: Maybe, y: BoundTensor, *zeros: int) -> bool:
    return (
        has_rows(x)
        and has_rows(y)
        and x.shape[0] == y.shape[0]
        and is_dense(packed, 1)
        and packed.count >= packed_floats(y.shape[1], x.shape[1])
        and (bias is None or is_vector(bias, y.shape[1]))
    )


def _pack(b: BoundTensor, packed: BoundTensor) -> bool:
    return b.rank == 2 and is_dense(packed, 1) and packed.count >= packed_floats(b.shape[1], b.shape[0])


def _matmul(a: BoundTensor, b: BoundTensor, y: BoundTensor, scratch: BoundTensor) -> bool:
    if y.rank < 3 or not a.rank == b.rank == y.rank or not is_dense(scratch, 1):
        return False
    *batch, m, n = y.shape
    k = a.shape[-1]
    return (
        a.shape == (*batch, m, k)
        and b.shape == (*batch, k, n)
        and (a.strides[-1] == 1 or k == 1)
        and (y.strides[-1] == 1 or n == 1)
        and scratch.count >= packed_floats(min(n, BLOCK_COLUMNS), k)
    )


def _activations(params: BoundTensor, activations: int, count: int) -> bool:
    return is_vector(params, 1 + 2 * count) and all(activations >> 8 * i & 255 < len(ACTIVATIONS) for i in range(count))


def _blocks(leader: BoundTensor, *others: tuple[BoundTensor, int]) -> bool:
    """[rows, hidden] without gaps, and others that are so many times as wide."""
    if not is_dense(leader, 2):
        return False
    rows, hidden = leader.shape
    return all(is_block(other, rows, width * hidden) for other, width in others)


def _rnn_cell(xw: BoundTensor, hw: BoundTensor, y: BoundTensor, params: BoundTensor, activations: int) -> bool:
    return _blocks(y, (xw, 1), (hw, 1)) and _activations(params, activations, 1)


def _gru_cell(
    xw: BoundTensor, hw: BoundTensor, h: BoundTensor, y: BoundTensor, params: BoundTensor, activations: int
) -> bool:
    return _blocks(y, (xw, 3), (hw, 3), (h, 1)) and _activations(params, activations, 2)


def _gru_reset(
    xw: BoundTensor, hw: BoundTensor, h: BoundTensor, z: BoundTensor, rh: BoundTensor, params: BoundTensor, acts: int
) -> bool:
    return _blocks(z, (xw, 3), (hw, 2), (h, 1), (rh, 1)) and _activations(params, acts, 2)


def _gru_update(
    xw: BoundTensor, hn: BoundTensor, z: BoundTensor, h: BoundTensor, y: BoundTensor, params: BoundTensor, acts: int
) -> bool:
    return _blocks(y, (xw, 3), (hn, 1), (z, 1), (h, 1)) and _activations(params, acts, 2)


def _is_peephole(peephole: Maybe, hidden: int) -> bool:
    return peephole is None or (fits(3 * hidden) and is_vector(peephole, 3 * hidden))


def _lstm_cell(
    xw: BoundTensor, hw: BoundTensor, c: BoundTensor, peephole: Maybe, h: BoundTensor, c_next: BoundTensor,
    params: BoundTensor, acts: int, couple: int,
) -> bool:  # fmt: skip
    return (
        _blocks(h, (xw, 4), (hw, 4), (c, 1), (c_next, 1))
        and _is_peephole(peephole, h.shape[1])
        and _activations(params, acts, 3)
    )


def _backward_cell(op: str, *operands: Any) -> bool:
    """Operands and results in the order of the op, then the parameters and numbers of its activations."""
    form = BACKWARD_CELLS[op]
    count = len(form.widths) + form.outputs
    tensors, params, acts = operands[:count], operands[count], operands[count + 1]
    state = tensors[len(form.widths) + form.results.index(1)]
    if not is_dense(state, 2):
        return False
    rows, hidden = state.shape
    return _activations(params, acts, form.activations) and all(
        _is_peephole(tensor, hidden) if width == PEEPHOLES else tensor is None or is_block(tensor, rows, width * hidden)
        for tensor, width in zip(tensors, (*form.widths, *form.results), strict=True)
    )


def _steps_are_dense(t: BoundTensor, rows: int, width: int) -> bool:
    """[steps, rows, width] whose steps may be apart."""
    return (
        t.rank == 3
        and t.shape[1:] == (rows, width)
        and (t.strides[2] == 1 or width == 1)
        and (t.strides[1] == width or rows == 1)
    )


def _sequence(
    gates: int, xw: BoundTensor, packed: BoundTensor, bias: Maybe, h0: BoundTensor, scratch: BoundTensor,
    final: BoundTensor, trace: Maybe,
) -> bool:  # fmt: skip
    return (
        is_dense(packed, 1)
        and is_dense(final, 2)
        and packed.count >= packed_floats(gates * final.shape[1], final.shape[1])
        and _steps(gates, xw, bias, h0, scratch, final, trace)
    )


def _steps(
    gates: int, xw: BoundTensor, bias: Maybe, h0: BoundTensor, scratch: BoundTensor, final: BoundTensor, trace: Maybe
) -> bool:
    if not is_dense(final, 2):
        return False
    rows, hidden = final.shape
    width = gates * hidden
    return (
        fits(width)
        and _steps_are_dense(xw, rows, width)
        and (bias is None or is_vector(bias, width))
        and is_block(h0, rows, hidden)
        and is_block(scratch, rows, width)
        and (trace is None or (_steps_are_dense(trace, rows, hidden) and trace.shape[0] == xw.shape[0]))
    )


def _rnn_sequence(*operands: object) -> bool:
    *tensors, params, acts = operands
    return _sequence(1, *tensors) and _activations(params, acts, 1)  # type: ignore[arg-type]


def _gru_sequence(*operands: object) -> bool:
    *tensors, params, acts = operands
    return _sequence(3, *tensors) and _activations(params, acts, 2)  # type: ignore[arg-type]


def _lstm_sequence(
    xw: BoundTensor, packed: BoundTensor, bias: Maybe, h0: BoundTensor, c0: BoundTensor, peephole: Maybe,
    scratch: BoundTensor, h: BoundTensor, c: BoundTensor, trace: Maybe, params: BoundTensor, acts: int, couple: int,
) -> bool:  # fmt: skip
    return (
        _sequence(4, xw, packed, bias, h0, scratch, h, trace)
        and is_block(c0, *h.shape)
        and is_block(c, *h.shape)
        and _is_peephole(peephole, h.shape[1])
        and _activations(params, acts, 3)
    )


_GATES = (1, 3, 4)
"""Of each of CELLS."""


def _small_sequence(
    xw: BoundTensor, packed: BoundTensor, scale: BoundTensor, bias: Maybe, h0: BoundTensor, c0: Maybe, peephole: Maybe,
    scratch: BoundTensor, rounded: BoundTensor, h: BoundTensor, c: Maybe, trace: Maybe, params: BoundTensor, acts: int,
    couple: int, cell: int, range_: int,
) -> bool:  # fmt: skip
    if not 0 <= cell < len(CELLS) or not _steps(_GATES[cell], xw, bias, h0, scratch, h, trace):
        return False
    hidden = h.shape[1]
    states = [state for state in (c0, c) if state is not None]
    is_lstm = CELLS[cell] == "lstm"
    return (
        has_small_weights(packed, scale, bias, rounded, _GATES[cell] * hidden, hidden, range_)
        and len(states) == 2 * is_lstm
        and all(is_block(state, *h.shape) for state in states)
        and (is_lstm or peephole is None)
        and _is_peephole(peephole, hidden)
        and _activations(params, acts, cell + 1)
    )


def _reduce(x: BoundTensor, y: BoundTensor, kind: int) -> bool:
    return _takes_middle_away(x, y) and 0 <= kind < len(REDUCTIONS)


def _reduce_numbers(x: BoundTensor, y: BoundTensor, kind: int) -> bool:
    is_known = x.dtype == y.dtype and x.dtype in NUMBERS and 0 <= kind < len(NUMBER_REDUCTIONS)
    return is_known and _takes_middle_away(x, y)


def _takes_middle_away(x: BoundTensor, y: BoundTensor) -> bool:
    return is_dense(x, 3) and is_dense(y, 2) and (x.shape[0], x.shape[2]) == y.shape


def _softmax(x: BoundTensor, y: BoundTensor, logarithm: int) -> bool:
    return is_dense(x, 2) and is_dense(y, 2) and x.shape == y.shape


def _layer_norm(x: BoundTensor, scale: BoundTensor, bias: Maybe, y: BoundTensor, epsilon: int) -> bool:
    return _softmax(x, y, 0) and all(vector is None or is_vector(vector, x.shape[1]) for vector in (scale, bias))


def _channels(x: BoundTensor, y: BoundTensor, vectors: Sequence[BoundTensor]) -> bool:
    same = is_dense(x, 3) and is_dense(y, 3) and x.shape == y.shape
    return same and all(is_vector(vector, x.shape[1]) for vector in vectors)


def _instance_norm(x: BoundTensor, scale: BoundTensor, bias: BoundTensor, y: BoundTensor, epsilon: int) -> bool:
    return _channels(x, y, (scale, bias))


def _batch_norm(
    x: BoundTensor, scale: BoundTensor, bias: BoundTensor, mean: BoundTensor, variance: BoundTensor, y: BoundTensor,
    epsilon: int,
) -> bool:  # fmt: skip
    return _channels(x, y, (scale, bias, mean, variance))


def _window(x: BoundTensor, y: BoundTensor, window: Sequence[int]) -> bool:
    planes = (x.shape[2] * x.shape[3], y.shape[2] * y.shape[3]) if x.rank == y.rank == 4 else ()
    return (
        is_dense(x, 4)
        and is_dense(y, 4)
        and x.shape[0] == y.shape[0]
        and all(map(fits, planes))
        and image_rules.slides(x.shape[2:], y.shape[2:], tuple(window))
    )


def _conv(x: BoundTensor, weights: BoundTensor, *others: Any, channels_first: bool = False) -> bool:
    bias, y, scratch, *numbers = others
    *window, groups = numbers
    if not _window(x, y, window) or groups <= 0 or x.shape[1] % groups or y.shape[1] % groups:
        return False
    channels = x.shape[1] // groups
    taps = channels * window[0] * window[1]
    return (
        0 < taps <= INT_MAX // PANEL
        and is_dense(weights, 4)
        and weights.shape == (y.shape[1], *((channels, *window[:2]) if channels_first else (*window[:2], channels)))
        and (bias is None or is_vector(bias, y.shape[1]))
        and is_dense(scratch, 1)
        and scratch.count >= taps * PANEL
    )


def _pool(x: BoundTensor, y: BoundTensor, kind: int, *window: int) -> bool:
    return (
        x.rank == y.rank == 4
        and x.shape[1] == y.shape[1]
        and 0 <= kind < POOLINGS.index("sum")
        and _window(x, y, window)
    )


def _integer_gemm(
    x: BoundTensor, zero: Maybe, packed: BoundTensor, shift: Maybe, y: BoundTensor, scratch: BoundTensor
) -> bool:
    if x.dtype not in ("u8", "i8") or not is_dense(x, 2) or not has_rows(y) or x.shape[0] != y.shape[0]:
        return False
    rows, k = x.shape
    terms, width = k + k % 2, -(-y.shape[1] // INTEGER_PANEL) * INTEGER_PANEL
    return (
        k < 2**16
        and is_dense(packed, 1)
        and packed.count >= width * terms
        and (zero is None or (zero.dtype == x.dtype and (is_vector(zero, 1) or is_vector(zero, rows))))
        and (shift is None or is_vector(shift, y.shape[1]))
        and is_dense(scratch, 1)
        and scratch.count >= INTEGER_ROWS * terms
    )


def _plain_matmul(a: BoundTensor, b: BoundTensor, y: BoundTensor) -> bool:
    if not a.rank == b.rank == y.rank == 3 or not a.dtype == b.dtype == y.dtype:
        return False
    batch, rows, columns = y.shape
    k = a.shape[2]
    return (
        y.dtype in ("i32", "u32", "i64", "u64", "f64")
        and a.shape == (batch, rows, k)
        and b.shape == (batch, k, columns)
    )


def _branch(condition: BoundTensor, then: int, other: int) -> bool:
    return condition.count == 1


def _fft(x: BoundTensor, twiddles: BoundTensor, y: BoundTensor, scratch: BoundTensor, kind: int) -> bool:
    if not (is_dense(x, 2) and is_dense(y, 2) and x.shape[0] == y.shape[0] and 0 <= kind < len(FFTS)):
        return False
    name, before, after = FFTS[kind], x.shape[1], y.shape[1]
    n = {"rfft": before, "irfft": after}.get(name, before // 2)
    if not MIN_FFT <= n <= MAX_FFT or n.bit_count() != 1:
        return False
    m, table = (n // 2, 3 * n // 2) if name in ("rfft", "irfft") else (n, n)
    return (
        (before, after) == {"rfft": (n, n + 2), "irfft": (n + 2, n)}.get(name, (2 * n, 2 * n))
        and is_vector(twiddles, table)
        and is_dense(scratch, 1)
        and scratch.count >= 4 * (m + 2 * FFT_SLACK)
    )


def _choose(scores: BoundTensor, numbers: BoundTensor, y: BoundTensor) -> bool:
    return (
        is_dense(scores, 2)
        and is_dense(numbers, 2)
        and is_dense(y, 2)
        and numbers.shape == y.shape
        and scores.shape[0] == y.shape[0]
        and scores.shape[1] > 0
    )


def _linear_attention(
    query: BoundTensor, key: BoundTensor, value: BoundTensor, forget: Maybe, rate: Maybe, memory: BoundTensor,
    read: BoundTensor, is_delta: int, is_rounded: int,
) -> bool:  # fmt: skip
    if [each.rank for each in (query, key, value, memory, read)] != [5, 4, 4, 4, 5]:
        return False
    (steps, batch, heads, group, columns), rows = read.shape, key.shape[3]
    return (
        group > 0
        and query.shape == (steps, batch, heads, group, rows)
        and key.shape == (steps, batch, heads, rows)
        and value.shape == (steps, batch, heads, columns)
        and memory.shape == (batch, heads, rows, columns)
        and (forget is None or forget.shape == key.shape)
        and (rate is None or rate.shape == (steps, batch, heads))
        and (columns == 1 or all(each.strides[-1] == 1 for each in (value, memory, read)))
    )


OPERAND_RULES: dict[str, Callable[..., bool]] = {
    "require": lambda size: size >= 0,
    "copy": _copy,
    "fill": _fill,
    "sizes": _sizes,
    "gemm": _gemm,
    "matmul": _matmul,
    "rnn_cell": _rnn_cell,
    "gru_cell": _gru_cell,
    "gru_reset": _gru_reset,
    "gru_update": _gru_update,
    "lstm_cell": _lstm_cell,
    **{name: partial(_backward_cell, op) for name, op in PULLBACKS.items()},
    "rnn_sequence": _rnn_sequence,
    "gru_sequence": _gru_sequence,
    "lstm_sequence": _lstm_sequence,
    "reduce": _reduce,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "instance_norm": _instance_norm,
    "batch_norm": _batch_norm,
    "conv": _conv,
    "pool": _pool,
    "gather": _gather,
    "branch": _branch,
    "fft": _fft,
    # --- sizes that are known only while running
    "let": lambda size, value, least: value.count == 1,
    "demand": lambda condition: condition.is_contiguous,
    "nonzero": index_rules.nonzero,
    # --- indexing and sorting
    "flat_index": index_rules.flat_index,
    "scatter": index_rules.scatter,
    "in_range": lambda x, least, most: x.is_contiguous,
    "iota": lambda y: y.is_contiguous,
    "cumulate": index_rules.cumulate,
    "top": index_rules.top,
    "nms": index_rules.nms,
    "unique": index_rules.unique,
    # --- windows and images
    "conv_rows": image_rules.conv_rows,
    "depthwise": image_rules.depthwise,
    "pool_rows": image_rules.pool_rows,
    "pool_axis": image_rules.pool_axis,
    "resize": image_rules.resize,
    "grid_sample": image_rules.grid_sample,
    "affine_grid": image_rules.affine_grid,
    "roi_align": image_rules.roi_align,
    "det": image_rules.det,
    "overlap_add": image_rules.overlap_add,
    # --- reductions, normalizations and transforms
    "reduce_numbers": _reduce_numbers,
    # --- integers and quantized numbers
    "integer_gemm": _integer_gemm,
    "plain_matmul": _plain_matmul,
    "dynamic_quantize": lambda x, y, scale, zero: (
        is_dense(x, 2)
        and is_dense(y, 2)
        and x.shape == y.shape
        and is_vector(scale, x.shape[0])
        and is_vector(zero, x.shape[0])
    ),
    # --- random numbers
    "random": lambda counter, y, seed, normal: counter.count == 1 and y.is_contiguous,
    "choose": _choose,
    # --- memories
    "linear_attention": _linear_attention,
    # --- products with what is not constant
    "pack": _pack,
    # --- small weights
    "same_bits": lambda mark: True,
    # --- streams
    "ring": image_rules.ring,
    "small_rows": small_rows,
    "small_sequence": _small_sequence,
}
"""Not of "expression" and "loop", whose operands are lists: verify.py has theirs."""

CHANNELS_FIRST_RULES: dict[str, Callable[..., bool]] = {**OPERAND_RULES, "conv": partial(_conv, channels_first=True)}
"""Of plans of CHANNELS_FIRST_VERSION."""
