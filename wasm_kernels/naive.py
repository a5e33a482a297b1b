"""A naive reference for every kernel: what it means, in numpy, without a thought for speed.

A function takes the kernel's arguments by name, without those it writes, and returns what they should hold, in their
order; masked elements are those it must leave alone. Kernels that are exact (ulp = 0 in the table) are computed
in float32, operation by operation; the others in float64. An operation of expressions whose ONNX op means the same in
numpy needs no function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wasm_kernels import plan_header
from wasm_kernels.table import (
    ACTIVATIONS,
    BY_NAME,
    GRAIN,
    INTEGER_PANEL,
    PANEL,
    RESAMPLE_REACH,
    WINDOW_FIELDS,
    Kernel,
)

Array = np.ndarray[Any, Any]
f32, f64 = np.float32, np.float64

_erf = np.vectorize(math.erf, otypes=[f64])


def _wide(x: Array) -> Array:
    return np.asarray(x, f64)


def of(kernel: Kernel) -> Callable[..., Any]:
    """The reference of a kernel."""
    if kernel.name in globals():
        return globals()[kernel.name]
    (op,) = (row.op for row in plan_header.OPERATIONS.OPERATIONS if row.name == kernel.name)
    from webrnn.reference import lookup

    function = lookup("", op)
    if function is None:
        raise LookupError(f"{kernel.name} has no reference, neither here nor as the op {op} in webrnn/reference")
    return lambda x, n: function(_wide(x) if kernel.ulp else x)


# unary functions: x[n] -> y[n]
def tanh(x, n):
    return np.tanh(_wide(x))


def sigmoid(x, n):
    z = np.exp(-np.abs(_wide(x)))
    return np.where(x < 0, z, 1) / (1 + z)


def erf(x, n):
    return _erf(_wide(x))


def sin(x, n):
    return _turn(math.sin, x)


def cos(x, n):
    return _turn(math.cos, x)


def _turn(function, x):
    return np.array([function(v) if math.isfinite(v) else math.nan for v in _wide(x)])


def relu(x, n):
    return np.where(x <= 0, f32(0), x)


def softplus(x, n):
    x = _wide(x)
    return np.where(x < 0, 0, x) + np.log1p(np.exp(-np.abs(x)))


def softsign(x, n):
    return _wide(x) / (1 + np.abs(_wide(x)))


# activations with parameters: x[n] -> y[n]
def affine(x, n, alpha, beta):
    return f32(alpha) * x + f32(beta)


def leaky_relu(x, n, alpha, beta):
    return np.where(x < 0, f32(alpha) * x, x)


def thresholded_relu(x, n, alpha, beta):
    return np.where(x > f32(alpha), x, f32(0))


def scaled_tanh(x, n, alpha, beta):
    return f64(f32(alpha)) * np.tanh(f64(f32(beta)) * _wide(x))


def hard_sigmoid(x, n, alpha, beta):
    return np.clip(f32(alpha) * x + f32(beta), f32(0), f32(1))


def elu(x, n, alpha, beta):
    return np.where(x < 0, f64(f32(alpha)) * np.expm1(_wide(x)), x)


def clip(x, n, alpha, beta):
    return np.minimum(np.maximum(x, f32(alpha)), f32(beta))


def activate(x, n, act, alpha, beta):
    """Activation number `act`."""
    name = ACTIVATIONS[act]
    if name == "none":
        return x
    kernel = BY_NAME[name]
    return of(kernel)(x, n) if kernel.kind == "unary" else of(kernel)(x, n, alpha, beta)


# broadcasting: an operand of strides (row, col), each 0 or its full value
def _operand(a, rows, cols, row, col):
    return np.array([[a[r * row + c * col] for c in range(cols)] for r in range(rows)], a.dtype).reshape(rows, cols)


def _binary(function):
    def kernel(a, b, rows, cols, a_row, a_col, b_row, b_col):
        return function(_operand(a, rows, cols, a_row, a_col), _operand(b, rows, cols, b_row, b_col)).ravel()

    return kernel


add, sub, mul, div = map(_binary, (np.add, np.subtract, np.multiply, np.divide))
min, max = map(_binary, (np.minimum, np.maximum))
pow = _binary(lambda x, y: np.power(_wide(x), _wide(y)))


def _saturated(x, zero, low, high):
    whole = np.rint(x) + zero
    return np.clip(np.where(np.isnan(whole), f32(low), whole), f32(low), f32(high))


saturate_u8 = _binary(lambda x, zero: _saturated(x, zero, 0, 255))
saturate_i8 = _binary(lambda x, zero: _saturated(x, zero, -128, 127))
prelu = _binary(lambda x, slope: np.where(x < 0, slope * x, x))
equal, less, less_or_equal, greater, greater_or_equal = map(
    _binary, (np.equal, np.less, np.less_equal, np.greater, np.greater_equal)
)


def select(cond, a, b, rows, cols, c_row, c_col, a_row, a_col, b_row, b_col):
    return np.where(
        _operand(cond, rows, cols, c_row, c_col) != 0,
        _operand(a, rows, cols, a_row, a_col),
        _operand(b, rows, cols, b_row, b_col),
    ).ravel()


# matrices
def pack_panels(w, n, k, row_stride, col_stride):
    """W[n, k] -> packed[panel][k][PANEL rows], the last panel narrowed to a multiple of GRAIN, zero-padded."""
    rows = np.zeros((-(-n // GRAIN) * GRAIN, k), f32)
    for i in range(n):
        rows[i] = w[i * row_stride + np.arange(k) * col_stride]
    return np.concatenate([rows[i : i + PANEL].T.ravel() for i in range(0, len(rows), PANEL)])


def unpack(packed, n, k):
    """The W[n, k] inside packed panels."""
    sizes = range(0, packed.size, PANEL * k)
    return np.concatenate([packed[i : i + PANEL * k].reshape(k, -1).T for i in sizes])[:n]


def gemv(packed, x, bias, n, k):
    return _wide(unpack(packed, n, k)) @ _wide(x[:k]) + (0 if bias is None else _wide(bias))


def gemm(x, packed, bias, m, n, k, x_stride, y_stride):
    """Y[m, n] in rows of y_stride; what lies between rows is not written."""
    rows = np.stack([x[r * x_stride : r * x_stride + k] for r in range(m)])
    y = np.ma.masked_all((m, y_stride), f64)
    y[:, :n] = _wide(rows) @ _wide(unpack(packed, n, k)).T + (0 if bias is None else _wide(bias))
    return y.ravel()


def round_rows(x, m, k, range):
    """Each row as integers from -range to range, by its largest magnitude; zeros for the term that makes k even."""
    rounded, scales = np.zeros((m, k + k % 2), np.int16), np.zeros(m, f32)
    for row, values in enumerate(x.reshape(m, k)):
        largest = np.max(np.abs(values))
        if not np.isfinite(largest):
            scales[row] = np.nan
        elif largest >= 2.0**-100:
            scales[row] = largest / f32(range)
            rounded[row, :k] = np.rint(values * (f32(range) / largest))
    return rounded.ravel(), scales


def small_gemm(x, packed, scale, bias, m, n, k, range, is_wide):
    """packed[panel][pair of terms][column][2]; two columns of 8-bit weights share a number of 16 bits"""
    pairs, half = (k + k % 2) // 2, INTEGER_PANEL // 2
    if is_wide:
        weights = packed.view(np.int16).reshape(-1, pairs, INTEGER_PANEL, 2)
    else:
        both = packed.reshape(-1, pairs, half, 2, 2)
        weights = np.concatenate([both[..., 0].astype(np.int64) - 128, both[..., 1].view(np.int8)], axis=2)
    matrix = weights.transpose(1, 3, 0, 2).reshape(2 * pairs, -1)[:, :n].astype(np.int64)
    rounded, scales = round_rows(x, m, k, range)
    sums = rounded.reshape(m, -1).astype(np.int64) @ matrix
    assert np.abs(sums).max(initial=0) < 2**31
    y = sums.astype(f32) * (scales[:, None] * scale)
    return (y if bias is None else y + bias).ravel()


# cells; params: clip, then alpha and beta of each activation
def _cell_activation(v, which, acts, params, clipped=True):
    limit = f64(params[0])
    v = np.clip(v, -limit, limit) if clipped else v
    return activate(v, v.size, acts >> 8 * which & 255, params[1 + 2 * which], params[2 + 2 * which])


def rnn_cell(xw, hw, rows, hidden, acts, params):
    return _cell_activation(_wide(xw) + _wide(hw), 0, acts, params)


def gru_cell(xw, hw, h, rows, hidden, acts, params):
    xz, xr, xn = _wide(xw).reshape(rows, 3, hidden).swapaxes(0, 1)
    hz, hr, hn = _wide(hw).reshape(rows, 3, hidden).swapaxes(0, 1)
    z = _cell_activation(xz + hz, 0, acts, params)
    r = _cell_activation(xr + hr, 0, acts, params)
    n = _cell_activation(xn + r * hn, 1, acts, params)
    return ((1 - z) * n + z * _wide(h).reshape(rows, hidden)).ravel()


def gru_reset(xw, hw, h, rows, hidden, acts, params):
    xz, xr, _ = _wide(xw).reshape(rows, 3, hidden).swapaxes(0, 1)
    hz, hr = _wide(hw).reshape(rows, 2, hidden).swapaxes(0, 1)
    z = _cell_activation(xz + hz, 0, acts, params)
    r = _cell_activation(xr + hr, 0, acts, params)
    return z.ravel(), (r * _wide(h).reshape(rows, hidden)).ravel()


def gru_update(xw, hn, z, h, rows, hidden, acts, params):
    xn = _wide(xw).reshape(rows, 3, hidden)[:, 2]
    n = _cell_activation(xn + _wide(hn).reshape(rows, hidden), 1, acts, params)
    z = _wide(z).reshape(rows, hidden)
    return ((1 - z) * n + z * _wide(h).reshape(rows, hidden)).ravel()


def lstm_cell(xw, hw, c, peephole, rows, hidden, couple, acts, params):
    i, o, f, g = (_wide(xw) + _wide(hw)).reshape(rows, 4, hidden).swapaxes(0, 1)
    c = _wide(c).reshape(rows, hidden)
    pi, po, pf = np.zeros((3, hidden)) if peephole is None else _wide(peephole).reshape(3, hidden)
    i = _cell_activation(i + pi * c, 0, acts, params)
    f = 1 - i if couple else _cell_activation(f + pf * c, 0, acts, params)
    g = _cell_activation(g, 1, acts, params)
    c = f * c + i * g
    o = _cell_activation(o + po * c, 0, acts, params)
    return (o * _cell_activation(c, 2, acts, params, clipped=False)).ravel(), c.ravel()


# pullbacks of cells: their numpy meaning, which is tested against finite differences, in float64
def _backward(op):
    def run(rows, hidden, acts, params, couple=0, **operands):
        from webrnn.engine.executor.intrinsics import INTRINSICS
        from webrnn.ir.fused import BACKWARD_CELLS, PEEPHOLES

        form = BACKWARD_CELLS[op]
        names = [ACTIVATIONS[acts >> 8 * place & 255] for place in range(form.activations)]
        attrs = {"activations": names, "params": _wide(params).tolist(), "couple": couple}
        arrays = [
            operand if operand is None else _wide(operand).reshape(-1 if width == PEEPHOLES else (rows, width * hidden))
            for operand, width in zip(operands.values(), form.widths, strict=True)
        ]
        results = INTRINSICS[op](arrays, attrs)
        found = [np.ma.masked_all(0) if result is None else result.ravel() for result in results]
        return tuple(found) if len(found) > 1 else found[0]

    return run


rnn_cell_backward, gru_cell_backward = _backward("RnnCellBackward"), _backward("GruCellBackward")
gru_reset_backward, gru_update_backward = _backward("GruResetBackward"), _backward("GruUpdateBackward")
lstm_cell_backward = _backward("LstmCellBackward")


# reductions of x[outer, n, inner] over n
def _reduction(function):
    return lambda x, outer, n, inner: function(_wide(x).reshape(outer, n, inner), axis=1).ravel()


reduce_sum, reduce_mean, reduce_prod = map(_reduction, (np.sum, np.mean, np.prod))
reduce_max, reduce_min = map(_reduction, (np.max, np.min))


def reduce_sum_square(x, outer, n, inner):
    return reduce_sum(_wide(x) ** 2, outer, n, inner)


def softmax(x, rows, n):
    x = _wide(x).reshape(rows, n)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).ravel()


def log_softmax(x, rows, n):
    x = _wide(x).reshape(rows, n)
    shifted = x - x.max(axis=1, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).ravel()


# normalisation
def layer_norm(x, scale, bias, rows, n, epsilon):
    x = _wide(x).reshape(rows, n)
    y = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + f32(epsilon))
    return (y * (1 if scale is None else _wide(scale)) + (0 if bias is None else _wide(bias))).ravel()


def instance_norm(x, scale, bias, batch, channels, n, epsilon):
    y = layer_norm(x, None, None, batch * channels, n, epsilon).reshape(batch, channels, n)
    return (y * _wide(scale)[:, None] + _wide(bias)[:, None]).ravel()


def batch_norm(x, scale, bias, mean, variance, batch, channels, n, epsilon):
    scale, bias, mean, variance = (_wide(v)[:, None] for v in (scale, bias, mean, variance))
    return ((_wide(x).reshape(batch, channels, n) - mean) / np.sqrt(variance + f32(epsilon)) * scale + bias).ravel()


# windows; shape holds WINDOW_FIELDS
def _taps(s, oy, ox):
    """(ky, kx, iy, ix) of the taps of an output position that fall inside the input."""
    for ky in range(s["kernel_h"]):
        for kx in range(s["kernel_w"]):
            iy = oy * s["stride_h"] - s["pad_top"] + ky * s["dilation_h"]
            ix = ox * s["stride_w"] - s["pad_left"] + kx * s["dilation_w"]
            if 0 <= iy < s["height"] and 0 <= ix < s["width"]:
                yield ky, kx, iy, ix


def _positions(s):
    return [(oy, ox) for oy in range(s["out_height"]) for ox in range(s["out_width"])]


def conv(x, w, bias, shape):
    s = dict(zip(WINDOW_FIELDS, shape.tolist(), strict=True))
    group_in, group_out = s["channels"] // s["groups"], s["out_channels"] // s["groups"]
    x = _wide(x).reshape(s["batch"], s["channels"], s["height"], s["width"])
    w = _wide(w).reshape(s["out_channels"], s["kernel_h"], s["kernel_w"], group_in)
    y = np.zeros((s["batch"], s["out_channels"], s["out_height"], s["out_width"]))
    for o in range(s["out_channels"]):
        first = o // group_out * group_in
        for oy, ox in _positions(s):
            for ky, kx, iy, ix in _taps(s, oy, ox):
                y[:, o, oy, ox] += x[:, first : first + group_in, iy, ix] @ w[o, ky, kx]
        y[:, o] += 0 if bias is None else bias[o]
    return y.ravel()


def _pool(x, shape, function):
    s = dict(zip(WINDOW_FIELDS, shape.tolist(), strict=True))
    x = _wide(x).reshape(s["batch"] * s["channels"], s["height"], s["width"])
    y = [function(np.stack([x[:, iy, ix] for _, _, iy, ix in _taps(s, oy, ox)]), s) for oy, ox in _positions(s)]
    return np.stack(y, axis=1).ravel()


def max_pool(x, shape):
    return _pool(x, shape, lambda values, s: values.max(axis=0))


def average_pool(x, shape, count_padding):
    size = lambda values, s: s["kernel_h"] * s["kernel_w"] if count_padding else len(values)  # noqa: E731
    return _pool(x, shape, lambda values, s: values.sum(axis=0) / size(values, s))


# data movement
def copy_strided(src, item, ndim, layout):
    sizes, src_strides, dst_strides = layout.reshape(3, ndim).tolist()
    length = 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, dst_strides, strict=True))
    elements, dst = src.reshape(-1, item), np.ma.masked_all((length, item), np.uint8)
    for index in np.ndindex(*sizes):
        source = sum(i * s for i, s in zip(index, src_strides, strict=True))
        dst[sum(i * s for i, s in zip(index, dst_strides, strict=True))] = elements[source]
    return dst.ravel()


def gather(src, index, outer, size, inner, count):
    return src.reshape(outer, size, inner)[:, index].ravel()


def fill(n, value):
    return np.full(n, value, f32)


# Fourier transforms of rows: complex numbers are pairs
def twiddles(n, real):
    """w[2][m / 2] of a transform of m complex numbers; with `real`, where m = n / 2, followed by turns[2][m]."""

    def circle(count, turn):
        angles = 2 * np.pi * np.arange(count) / turn
        return np.concatenate([np.cos(angles), -np.sin(angles)])

    m = n // 2 if real else n
    return np.concatenate([circle(m // 2, m), circle(m, n) if real else []]).astype(f32)


def _complex(x, rows):
    pairs = _wide(x).reshape(rows, -1, 2)
    return pairs[..., 0] + 1j * pairs[..., 1]


def _pairs(z):
    return np.stack([z.real, z.imag], -1).ravel()


def rfft(x, twiddles, rows, n):
    return _pairs(np.fft.rfft(_wide(x).reshape(rows, n)))


def irfft(x, twiddles, rows, n):
    return np.fft.irfft(_complex(x, rows), n).ravel()


def fft(x, twiddles, rows, n):
    return _pairs(np.fft.fft(_complex(x, rows)))


def ifft(x, twiddles, rows, n):
    return _pairs(np.fft.ifft(_complex(x, rows)))


# other sample rates
def resample_table(up, down, taps):
    wide = up if up > down else down
    reach = RESAMPLE_REACH * wide
    half = -(-reach // up)
    distance = (np.arange(taps) + 1 + half - taps) * up - np.arange(up)[:, None]
    inside = np.maximum(1 - (distance / reach) ** 2, 0)
    table = np.sinc(0.95 * distance / wide) * np.i0(2 * np.sqrt(25.3 * inside)) * (inside > 0)
    return (table / table.sum(axis=1, keepdims=True)).ravel()


def resample(x, table, count, at, up, down, taps):
    places, rows = at + down * np.arange(count), _wide(table).reshape(up, taps)
    return np.array([_wide(x)[place // up :][:taps] @ rows[place % up] for place in places])
