"""Arguments for each kind of kernel: the grid that tests run over and the sizes that micro-benchmarks time.

`grid(kernel, rng)` yields test cases; `bench(kernel, rng)` one case of a typical size with its arithmetic cost. Both
know kinds only, so a new row of an existing kind is tested and timed without a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wasm_kernels import naive
from wasm_kernels.table import (
    ACTIVATIONS,
    GRAIN,
    INTEGER_PANEL,
    PANEL,
    SMALL_ROWS,
    WINDOW_FIELDS,
    Kernel,
    packed_size,
    resample_taps,
)

Array = np.ndarray[Any, Any]
EPS = float(np.finfo(np.float32).eps)

#: Below, at and above vectors and tiles of every target, and primes.
SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 48, 61, 64, 67, 72, 96, 131)
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-39, -1e-39, 1.1754944e-38, 3.4028235e38, -3.4028235e38,
     0.5, -0.5, 1.5, -1.5, 2.5, 8388608.5, -8388607.5, 88.7, 88.8, -87.4, -103.9, -104.1, 1.0, -1.0, 1e-4, -1e-4,
     9.0, -9.1, 1e10], np.float32,
)  # fmt: skip


@dataclass
class Case:
    """`arguments` by name: arrays for what is read, None for an absent array, numbers. `outputs`: (size, dtype) of
    what is written. `tolerance`: absolute, beside the ULP bound of the table; a number, or an array like the output."""

    label: str
    arguments: dict[str, Any]
    outputs: dict[str, tuple[int, Any]]
    tolerance: Any = 0.0
    alias: tuple[str, str] | None = None  # input and output that may be the same memory
    flops: float = 0.0


def _normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    return (rng.standard_normal(shape) * scale).astype(np.float32).ravel()


def _values(rng: np.random.Generator, n: int) -> Array:
    """Half ordinary values, half of every magnitude."""
    wide = _normal(rng, n) * np.float32(10) ** rng.integers(-30, 30, n).astype(np.float32)
    return np.where(rng.random(n) < 0.5, _normal(rng, n, scale=3), wide.astype(np.float32))


def _unary(kernel: Kernel, rng: np.random.Generator, x: Array, **extra: Any) -> Case:
    n = x.size
    return Case(f"n={n}", {"x": x, "n": n, **extra}, {"y": (n, np.float32)}, alias=("x", "y"), flops=n)


def _unary_grid(kernel: Kernel, rng: np.random.Generator, **extra: Any) -> Iterator[Case]:
    yield _unary(kernel, rng, SPECIAL, **extra)
    for n in SIZES:
        yield _unary(kernel, rng, _values(rng, n), **extra)


PARAMETERS = {
    "affine": (0.7, -0.3), "leaky_relu": (0.01, 0), "thresholded_relu": (1.0, 0), "scaled_tanh": (1.7, 0.66),
    "hard_sigmoid": (0.2, 0.5), "elu": (1.3, 0), "clip": (-0.75, 1.25),
}  # fmt: skip


def _activation_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    alpha, beta = PARAMETERS[kernel.name]
    yield from _unary_grid(kernel, rng, alpha=alpha, beta=beta)


def _activate_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for act, name in enumerate(ACTIVATIONS):
        alpha, beta = PARAMETERS.get(name, (0.0, 0.0))
        yield _unary(kernel, rng, _normal(rng, 37, scale=4), act=act, alpha=alpha, beta=beta)


BROADCASTS = {"full": (1, 1), "row": (0, 1), "column": (1, 0), "scalar": (0, 0)}


def _strided(rng: np.random.Generator, rows: int, cols: int, how: str) -> tuple[Array, int, int]:
    """An operand of rows x cols, and its row and column strides."""
    full_row, full_col = BROADCASTS[how]
    row, col = full_row * (cols if full_col else 1), full_col
    return _values(rng, 1 + (rows - 1) * row + (cols - 1) * col), row, col


def _broadcast_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    dtype = np.uint8 if kernel.kind == "compare" else np.float32
    for how_a in BROADCASTS:
        for how_b in BROADCASTS:
            for rows, cols in ((1, 1), (1, 16), (3, 5), (2, 17), (5, 31), (4, 64)):
                a, a_row, a_col = _strided(rng, rows, cols, how_a)
                b, b_row, b_col = _strided(rng, rows, cols, how_b)
                if how_a == how_b == "full":
                    a[: SPECIAL.size] = SPECIAL[: a.size]
                    b[::3] = a[::3]
                arguments = dict(a=a, b=b, rows=rows, cols=cols, a_row=a_row, a_col=a_col, b_row=b_row, b_col=b_col)
                if kernel.kind == "select":
                    arguments |= dict(cond=(rng.random(rows * cols) < 0.5).astype(np.uint8), c_row=cols, c_col=1)
                alias = ("a", "y") if how_a == "full" and kernel.in_place else None
                yield Case(f"{how_a},{how_b},{rows}x{cols}", arguments, {"y": (rows * cols, dtype)}, alias=alias)


def _packed(rng: np.random.Generator, n: int, k: int) -> tuple[Array, Array]:
    w = _normal(rng, n, k, scale=k**-0.5).reshape(n, k)
    return w, naive.pack_panels(w.ravel(), n, k, k, 1)


def _pack_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n, k in ((1, 1), (16, 4), (15, 3), (17, 5), (48, 16), (61, 7), (24, 2), (25, 3), (40, 2)):
        for label, row, col in (("rows", k, 1), ("columns", 1, n)):
            arguments = dict(w=_normal(rng, n * k), n=n, k=k, row_stride=row, col_stride=col)
            yield Case(f"{n}x{k} by {label}", arguments, {"packed": (packed_size(n, k), np.float32)})


def _rows_to_round(rng: np.random.Generator, m: int, k: int) -> Array:
    """Of all magnitudes: some with a NaN or an infinity, some of zeros, some too small to count."""
    x = _values(rng, m * k).reshape(m, k)
    for row, value in enumerate((np.nan, -np.inf, 0.0, 1e-31, -0.0)[: m - 1], 1):
        x[row, :: max(k // 3, 1)] = value
        if abs(value) < 1:
            x[row] = value
    return x.ravel()


def _round_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for k in SIZES:
        for m in (1, 7):
            outputs = {"rounded": (m * (k + k % 2), np.int16), "scales": (m, np.float32)}
            x = _rows_to_round(rng, m, k)
            yield Case(f"{m}x{k}", dict(x=x, m=m, k=k, range=32767 if k % 3 else 255), outputs)


def _small_case(rng: np.random.Generator, m: int, n: int, k: int, *, bias: bool, is_wide: int) -> Case:
    """Weights as large as sums of 32 bits allow."""
    range_ = 8191 if is_wide else min(32767, (2**31 - 1) // (127 * k))
    most = min(32767 if is_wide else 127, (2**31 - 1) // (range_ * k))
    columns = -(-n // INTEGER_PANEL) * INTEGER_PANEL
    packed = rng.integers(-most, most + 1, columns * (k + k % 2)).astype(np.int16 if is_wide else np.int8)
    if not is_wide:
        packed[::2] ^= np.int8(-128)
    arguments = dict(
        x=_rows_to_round(rng, m, k), packed=packed.view(np.uint8), scale=_normal(rng, n), m=m, n=n, k=k, range=range_,
        is_wide=is_wide, bias=_normal(rng, n) if bias else None,
    )  # fmt: skip
    outputs = {"y": (m * n, np.float32), "scratch": (SMALL_ROWS * (k + k % 2), np.int16)}
    return Case(f"{m}x{n}x{k}", arguments, outputs, flops=2.0 * m * n * k)


def _small_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for is_wide in (0, 1):
        for m, n, k in (
            (1, 1, 1),
            (1, 16, 2),
            (1, 48, 7),
            (1, 131, 33),
            (4, 17, 8),
            (7, 40, 5),
            (26, 33, 64),
            (2, 96, 256),
            (1, 79, 6),
            (1, 160, 10),
            (1, 176, 4),
        ):
            yield _small_case(rng, m, n, k, bias=n % 2 == 0, is_wide=is_wide)


def product(rng: np.random.Generator, m: int, n: int, k: int, *, bias: bool, slack: int = 0) -> dict[str, Any]:
    """Arguments of gemm (and, for m = 1, of gemv) and the error bound of its sums: every step rounds once or twice."""
    w, packed = _packed(rng, n, k)
    x_stride, y_stride = k + slack, n + slack
    x = _normal(rng, m, x_stride)
    b = _normal(rng, n) if bias else None
    rows = x.reshape(m, x_stride)[:, :k]
    magnitude = np.abs(rows) @ np.abs(w).T + (0 if b is None else np.abs(b))
    tolerance = np.zeros((m, y_stride))
    tolerance[:, :n] = EPS * (k + 4) * magnitude + 4 * EPS
    arguments = dict(x=x, packed=packed, bias=b, m=m, n=n, k=k, x_stride=x_stride, y_stride=y_stride)
    return {**arguments, "tolerance": tolerance.ravel()}


def _product_case(kernel: Kernel, rng: np.random.Generator, m: int, n: int, k: int, **options: Any) -> Case:
    p = product(rng, m, n, k, **options)
    tolerance = p.pop("tolerance")
    size = m * p["y_stride"]
    arguments = {name: p[name] for _, name in kernel.parameters if name in p and name != "y"}
    return Case(f"{m}x{n}x{k}", arguments, {"y": (size, np.float32)}, tolerance, flops=2.0 * m * n * k)


def _gemv_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in SIZES:
        for k in (1, 3, 16, 61):
            yield _product_case(kernel, rng, 1, n, k, bias=n % 2 == 0)
    for n in RIGHT_EDGES:
        yield _product_case(kernel, rng, 1, n, 7, bias=n % 3 == 0)
    yield _product_case(kernel, rng, 1, 768, 256, bias=False)


#: columns behind the last four whole panels, which AVX-512 takes at a time: each number of grains, filled or not
RIGHT_EDGES = tuple(4 * PANEL + GRAIN * grains - grains % 3 for grains in range(1, 4 * PANEL // GRAIN + 1))


#: terms of a product up to which AVX2 takes two panels at a time for many rows (tiles.c: NEAR_FLOATS)
WIDEST = (7 << 10) // (2 * PANEL)


def _gemm_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for m in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25):
        for n in (1, 15, 16, 17, 24, 33, 40, 67):
            yield _product_case(kernel, rng, m, n, k=1 + (m * n) % 37, bias=(m + n) % 2 == 0, slack=m % 3)
    for m in (2, 3, 6, 8, 15):
        for n in RIGHT_EDGES[:6]:
            yield _product_case(kernel, rng, m, n, k=9, bias=n % 3 == 0, slack=m % 3)
    for m in (2, 3, 4, 5, 7, 8):
        for n in (24, 40, 67, 131):
            for k in (WIDEST, WIDEST + 1):
                yield _product_case(kernel, rng, m, n, k, bias=(m + n) % 2 == 0, slack=m % 3)


DEFAULT_ACTS = {
    f"{cell}{way}": acts
    for cell, acts in (("rnn_cell", ("tanh",)), ("lstm_cell", ("sigmoid", "tanh", "tanh")))
    for way in ("", "_backward")
}
#: every name an ONNX cell may use, in triples
OTHER_ACTS = (
    ("relu", "affine", "leaky_relu"), ("thresholded_relu", "scaled_tanh", "hard_sigmoid"),
    ("elu", "softsign", "softplus"), ("hard_sigmoid", "relu", "tanh"),
)  # fmt: skip
GATES = {"rnn_cell": (1, 1), "gru_cell": (3, 3), "gru_reset": (3, 2), "gru_update": (3, 0), "lstm_cell": (4, 4)}
GATES |= {f"{cell}_backward": gates for cell, gates in GATES.items()}
CELL_ALIASES = {
    "gru_cell": ("h", "y"), "gru_update": ("h", "y"), "lstm_cell": ("c", "c_out"),
    "rnn_cell_backward": ("d_next", "d"), "gru_cell_backward": ("d_next", "d_h"), "gru_reset_backward": ("d_rh", "d_h"),
    "gru_update_backward": ("d_next", "d_h"), "lstm_cell_backward": ("d_c_next", "d_c"),
}  # fmt: skip


def _cell_case(kernel: Kernel, rng: np.random.Generator, rows: int, hidden: int, acts: tuple[str, ...],
               clip: float = np.inf, peephole: bool = False, couple: bool = False) -> Case:  # fmt: skip
    x_gates, h_gates = GATES[kernel.kind]
    params = np.array([clip, *(p for name in acts for p in PARAMETERS.get(name, (0, 0)))], np.float32)
    size = rows * hidden
    everything: dict[str, Any] = dict(
        xw=_normal(rng, size * x_gates), hw=_normal(rng, size * h_gates), h=_normal(rng, size), hn=_normal(rng, size),
        z=rng.random(size).astype(np.float32), c=_normal(rng, size), rows=rows, hidden=hidden, params=params,
        peephole=_normal(rng, 3 * hidden) if peephole else None, couple=int(couple),
        **{name: _normal(rng, size) for name in ("d_next", "d_z", "d_rh", "d_h_next", "d_c_next")},
        acts=sum(ACTIVATIONS.index(name) << 8 * i for i, name in enumerate(acts)),
    )  # fmt: skip
    widths = {"d_xw": x_gates, "d_hw": h_gates, "d_gates": x_gates, "d_peephole": 3 * peephole}
    outputs = {name: (size * widths.get(name, 1), np.float32) for kind, name in kernel.parameters if kind == "f32 *"}
    arguments = {name: everything[name] for _, name in kernel.parameters if name not in outputs}
    alias = CELL_ALIASES.get(kernel.kind)
    label = f"{rows}x{hidden} {'-'.join(acts)}{' clip' * (clip < np.inf)}{' peephole' * peephole}{' couple' * couple}"
    return Case(label, arguments, outputs, tolerance=64 * EPS, alias=alias, flops=10.0 * size * max(x_gates, h_gates))


def _cell_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    default = DEFAULT_ACTS.get(kernel.kind, ("sigmoid", "tanh"))
    for hidden in SIZES:
        yield _cell_case(kernel, rng, 1 + hidden % 3, hidden, default)
    for acts in OTHER_ACTS:
        yield _cell_case(kernel, rng, 2, 67, acts[: len(default)])
    yield _cell_case(kernel, rng, 2, 67, default, clip=0.5)
    for act in ("tanh", "sigmoid", "relu", "softplus"):
        if kernel.kind == "rnn_cell_backward":
            case = _cell_case(kernel, rng, 1, SPECIAL.size, (act,))
            yield Case(f"{act} of special values", case.arguments | dict(xw=SPECIAL), case.outputs, case.tolerance)
    if kernel.kind.startswith("lstm_cell"):
        yield _cell_case(kernel, rng, 2, 67, default, peephole=True)
        yield _cell_case(kernel, rng, 3, 130, default, couple=True, peephole=True, clip=0.7)


def _reduce_case(kernel: Kernel, rng: np.random.Generator, outer: int, n: int, inner: int) -> Case:
    x = _normal(rng, outer, n, inner)
    if kernel.name == "reduce_prod":
        x = (1 + x / 16).astype(np.float32)
    magnitude = np.abs(x.astype(np.float64)).reshape(outer, n, inner)
    bounds = {
        "reduce_sum": magnitude.sum(1),
        "reduce_mean": magnitude.mean(1),
        "reduce_sum_square": (magnitude**2).sum(1),
        "reduce_prod": magnitude.prod(1),
    }
    bound = bounds.get(kernel.name)
    tolerance = 0.0 if bound is None else EPS * (n + 4) * bound.ravel()
    arguments = dict(x=x, outer=outer, n=n, inner=inner)
    return Case(f"{outer}x{n}x{inner}", arguments, {"y": (outer * inner, np.float32)}, tolerance, flops=float(x.size))


def _reduce_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in SIZES:
        for inner in (1, 2, 7, 16, 19, 32, 67):
            yield _reduce_case(kernel, rng, 2, n, inner)
    for n, inner in ((40, 1), (3, 40)):
        case = _reduce_case(kernel, rng, 1, n, inner)
        case.arguments["x"][33] = np.nan
        yield Case(f"NaN in {n}x{inner}", case.arguments, case.outputs, case.tolerance)


def _softmax_case(rng: np.random.Generator, rows: int, n: int) -> Case:
    x = _normal(rng, rows, n, scale=3)
    return Case(
        f"{rows}x{n}", dict(x=x, rows=rows, n=n), {"y": (x.size, np.float32)}, EPS * (n + 32), ("x", "y"), 12.0 * x.size
    )


def _softmax_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in SIZES:
        yield _softmax_case(rng, 3, n)


def _norm_case(kernel: Kernel, rng: np.random.Generator, rows: int, n: int, affine: bool = True) -> Case:
    channels = max(1, rows // 2)
    per_row = kernel.kind == "layer_norm"
    width = n if per_row else channels
    x = _normal(rng, rows, n) + np.float32(0.5)
    everything: dict[str, Any] = dict(
        x=x, rows=rows, batch=rows // channels, channels=channels, n=n, epsilon=1e-5,
        scale=_normal(rng, width) if affine else None, bias=_normal(rng, width) if affine else None,
        mean=_normal(rng, channels), variance=rng.random(channels).astype(np.float32) + np.float32(0.1),
    )  # fmt: skip
    arguments = {name: everything[name] for _, name in kernel.parameters if name != "y"}
    # n = 1: the variance is rounding noise, and 1 / sqrt(epsilon) = 316 multiplies it
    tolerance = EPS * (n + 16) * 8 + (EPS * 2000 if n < 4 else 0)
    return Case(f"{rows}x{n}", arguments, {"y": (x.size, np.float32)}, tolerance, ("x", "y"), 8.0 * x.size)


def _norm_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in SIZES:
        yield _norm_case(kernel, rng, 4, n)
    if kernel.kind == "layer_norm":
        yield _norm_case(kernel, rng, 4, 19, affine=False)


def window(**fields: int) -> Array:
    """WINDOW_FIELDS in order; the output size follows from symmetric padding unless given."""
    ones = ("batch", "height", "kernel_h", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups")
    s = dict.fromkeys(ones, 1) | dict(pad_top=0, pad_left=0) | fields
    s.setdefault("out_channels", s["channels"])
    for size, out, kernel, stride, pad, dilation in (
        ("height", "out_height", "kernel_h", "stride_h", "pad_top", "dilation_h"),
        ("width", "out_width", "kernel_w", "stride_w", "pad_left", "dilation_w"),
    ):
        s.setdefault(out, (s[size] + 2 * s[pad] - s[dilation] * (s[kernel] - 1) - 1) // s[stride] + 1)
    return np.array([s[field] for field in WINDOW_FIELDS], np.int32)


WINDOWS = (
    dict(channels=1, width=1, kernel_w=1),
    dict(channels=3, width=17, kernel_w=3, pad_left=1),
    dict(channels=4, width=40, kernel_w=5, stride_w=2, pad_left=2, batch=2),
    dict(channels=2, width=33, kernel_w=3, dilation_w=4, pad_left=4),
    dict(channels=4, width=19, kernel_w=3, groups=2, out_channels=6),
    dict(channels=5, width=20, kernel_w=3, groups=5),
    dict(channels=2, height=7, width=9, kernel_h=3, kernel_w=3, pad_top=1, pad_left=1),
    dict(channels=3, height=8, width=8, kernel_h=2, kernel_w=2, stride_h=2, stride_w=2),
    dict(channels=4, height=9, width=6, kernel_h=3, kernel_w=2, stride_h=2, dilation_w=2, pad_top=1, batch=2, groups=4),
    dict(channels=2, height=5, width=16, kernel_h=5, kernel_w=16),
)


def _conv_case(rng: np.random.Generator, shape: Array, bias: bool) -> Case:
    s = dict(zip(WINDOW_FIELDS, shape.tolist(), strict=True))
    k = s["channels"] // s["groups"] * s["kernel_h"] * s["kernel_w"]
    size = s["batch"] * s["out_channels"] * s["out_height"] * s["out_width"]
    x, w = _normal(rng, s["batch"], s["channels"], s["height"], s["width"]), _normal(rng, s["out_channels"], k)
    arguments = dict(x=x, w=w, bias=_normal(rng, s["out_channels"]) if bias else None, shape=shape)
    tolerance = EPS * (k + 8) * (8 * k + 4)  # |x w| stays below 8 for almost all pairs
    return Case(
        str(s),
        arguments,
        {"y": (size, np.float32), "scratch": (k * PANEL, np.float32)},
        tolerance,
        flops=2.0 * k * size,
    )


def _conv_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for i, fields in enumerate(WINDOWS):
        yield _conv_case(rng, window(**fields), bias=i % 2 == 0)


def _pool_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for fields in WINDOWS:
        shape = window(**{k: v for k, v in fields.items() if k not in ("groups", "out_channels")})
        s = dict(zip(WINDOW_FIELDS, shape.tolist(), strict=True))
        x = _normal(rng, s["batch"], s["channels"], s["height"], s["width"])
        size = s["batch"] * s["channels"] * s["out_height"] * s["out_width"]
        for counted in (0, 1) if kernel.kind == "average_pool" else (None,):
            arguments = dict(x=x, shape=shape) | ({} if counted is None else dict(count_padding=counted))
            yield Case(
                str(s),
                arguments,
                {"y": (size, np.float32)},
                EPS * 64,
                flops=float(size * s["kernel_h"] * s["kernel_w"]),
            )


LAYOUTS: dict[
    str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
] = {  # sizes, source strides, destination strides
    "contiguous": ((37,), (1,), (1,)),
    "transpose": ((19, 35), (1, 19), (35, 1)),
    "permute 0213": ((2, 5, 3, 7), (105, 7, 35, 1), (105, 21, 7, 1)),
    "slice, step 3": ((4, 6), (20, 3), (6, 1)),
    "expand": ((3, 4, 5), (0, 1, 0), (20, 5, 1)),
    "into a concat": ((4, 5), (5, 1), (12, 1)),
    "eight axes": ((2,) * 8, tuple(2**i for i in range(8)), tuple(2**i for i in reversed(range(8)))),
    "empty": ((3, 0), (1, 1), (1, 1)),
}


def _copy_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for label, (sizes, source, destination) in LAYOUTS.items():
        span = [1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) for strides in (source, destination)]
        span = [0, 0] if 0 in sizes else span
        for item in (1, 2, 4, 8):
            src = rng.integers(0, 256, max(span[0], 1) * item, np.uint8)
            arguments = dict(
                src=src, item=item, ndim=len(sizes), layout=np.array([sizes, source, destination], np.int32).ravel()
            )
            yield Case(f"{label}, {item} bytes", arguments, {"dst": (span[1] * item, np.uint8)})


def _gather_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for outer, size, inner, count in ((1, 5, 4, 3), (3, 7, 12, 9), (2, 1, 64, 4), (4, 3, 4, 0)):
        src, index = rng.integers(0, 256, outer * size * inner, np.uint8), rng.integers(-size, size, count, np.int64)
        arguments = dict(src=src, index=index, outer=outer, size=size, inner=inner, count=count)
        yield Case(f"{outer}x{size}x{inner} at {count}", arguments, {"dst": (outer * count * inner, np.uint8)})


def _fill_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n={n}", dict(n=n, value=-1.5), {"y": (n, np.float32)})


def _fft_case(kernel: Kernel, rng: np.random.Generator, rows: int, n: int) -> Case:
    real = "r" in kernel.name
    x_size, y_size = {"rfft": (n, n + 2), "irfft": (n + 2, n)}.get(kernel.name, (2 * n, 2 * n))
    x = _normal(rng, rows, x_size)
    arguments = dict(x=x, twiddles=naive.twiddles(n, real), rows=rows, n=n)
    m = n // 2 if real else n
    outputs = {"y": (rows * y_size, np.float32), "scratch": (4 * (m + 32), np.float32)}
    tolerance = EPS * np.log2(n) * (n**0.5 if kernel.name[0] != "i" else n**-0.5) * 2  # of numbers of about this size
    return Case(f"{rows}x{n}", arguments, outputs, tolerance, flops=5.0 * rows * m * float(np.log2(m)))


def _fft_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for n in (8, 16, 32, 64, 128, 256, 512, 1024, 4096):
        yield _fft_case(kernel, rng, 1 + n % 3, n)


RATIOS = ((1, 3), (3, 1), (160, 441), (441, 160), (2, 1), (1, 1), (1, 6), (5, 7))


def _resample_table_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for up, down in RATIOS:
        taps = resample_taps(up, down)
        outputs = {"table": (up * taps, np.float32)}
        yield Case(f"{up}/{down}", dict(up=up, down=down, taps=taps), outputs, tolerance=2 * EPS)


def _resample_case(rng: np.random.Generator, up: int, down: int, count: int, at: int) -> Case:
    taps = resample_taps(up, down)
    table = naive.resample_table(up, down, taps).astype(np.float32)
    x = _normal(rng, (at + down * (count - 1)) // up + taps)
    arguments = dict(x=x, table=table, count=count, at=at, up=up, down=down, taps=taps)
    tolerance = 16 * EPS * float(np.abs(x).max())  # sums of the sizes of a row's numbers are below 4
    flops = 2.0 * count * taps
    return Case(f"{up}/{down}x{count}", arguments, {"y": (count, np.float32)}, tolerance, flops=flops)


def _resample_grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    for up, down in RATIOS:
        for count in (1, 2, 5, 43):
            yield _resample_case(rng, up, down, count, int(rng.integers(up)))


Grid = Callable[[Kernel, np.random.Generator], Iterator[Case]]
GRIDS: dict[str, Grid] = {
    "unary": _unary_grid, "activation": _activation_grid, "activate": _activate_grid, "binary": _broadcast_grid,
    "compare": _broadcast_grid, "select": _broadcast_grid, "pack": _pack_grid, "gemv": _gemv_grid, "gemm": _gemm_grid,
    **dict.fromkeys(GATES, _cell_grid),
    "reduce": _reduce_grid, "softmax": _softmax_grid, "layer_norm": _norm_grid, "instance_norm": _norm_grid,
    "batch_norm": _norm_grid, "conv": _conv_grid, "max_pool": _pool_grid, "average_pool": _pool_grid, "copy":
    _copy_grid, "gather": _gather_grid, "fill": _fill_grid, "fft": _fft_grid, "round_rows": _round_grid,
    "small_gemm": _small_grid, "resample_table": _resample_table_grid, "resample": _resample_grid,
}  # fmt: skip


def grid(kernel: Kernel, rng: np.random.Generator) -> Iterator[Case]:
    return GRIDS[kernel.kind](kernel, rng)


def bench(kernel: Kernel, rng: np.random.Generator) -> Case:
    """A case of the size that recurrent models have."""
    kind = kernel.kind
    if kind in ("unary", "activation", "activate"):
        extra = (
            dict(zip(("alpha", "beta"), PARAMETERS.get(kernel.name, (0.5, 0.5)), strict=True))
            if kind != "unary"
            else {}
        )
        extra |= {"act": ACTIVATIONS.index("tanh")} if kind == "activate" else {}
        return _unary(kernel, rng, np.abs(_normal(rng, 4096)), **extra)
    if kind in ("binary", "compare", "select"):
        wide = next(c for c in _broadcast_grid(kernel, rng) if c.label == "full,full,1x1")
        n = 4096
        arguments = wide.arguments | dict(a=_normal(rng, n), b=_normal(rng, n), cols=n)
        if kind == "select":
            arguments |= dict(cond=(rng.random(n) < 0.5).astype(np.uint8))
        return Case(f"n={n}", arguments, {"y": (n, wide.outputs["y"][1])}, flops=n)
    if kind == "gemv":
        return _product_case(kernel, rng, 1, 768, 256, bias=False)
    if kind == "small_gemm":
        return _small_case(rng, 1, 768, 256, bias=False, is_wide=0)
    if kind == "gemm":
        return _product_case(kernel, rng, 100, 768, 256, bias=False)
    if kind in GATES:
        return _cell_case(kernel, rng, 1, 256, DEFAULT_ACTS.get(kind, ("sigmoid", "tanh")))
    if kind == "reduce":
        return _reduce_case(kernel, rng, 16, 256, 1)
    if kind == "softmax":
        return _softmax_case(rng, 16, 256)
    if kind in ("layer_norm", "instance_norm", "batch_norm"):
        return _norm_case(kernel, rng, 16, 256)
    if kind == "conv":
        return _conv_case(rng, window(channels=64, out_channels=64, width=128, kernel_w=3, pad_left=1), bias=True)
    if kind == "pack":
        n, k = 768, 256
        arguments = dict(w=_normal(rng, n * k), n=n, k=k, row_stride=k, col_stride=1)
        return Case(f"{n}x{k}", arguments, {"packed": (n * k, np.float32)})
    if kind == "copy":
        arguments = dict(src=rng.integers(0, 256, 4 * 128 * 128, np.uint8), item=4, ndim=2,
                         layout=np.array([128, 128, 1, 128, 128, 1], np.int32))  # fmt: skip
        return Case("transpose 128x128", arguments, {"dst": (4 * 128 * 128, np.uint8)})
    if kind == "fft":
        return _fft_case(kernel, rng, 1, 512)
    if kind == "resample":
        return _resample_case(rng, 3, 1, 128, 0)
    return list(grid(kernel, rng))[-1]
