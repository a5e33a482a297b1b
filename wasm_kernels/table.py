"""The kernel table: one row a kernel.

C prototypes and exports, ctypes signatures, wasmtime bindings, the test grid and the micro-benchmarks all derive
from it. To add a kernel: write the C function `wr_<name>`, its naive reference `<name>` in naive.py, and a row here.
A new `kind` (a new signature) also needs an argument builder in cases.py. See docs/adding-a-kernel.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wasm_kernels import plan_header

ACTIVATIONS: tuple[str, ...] = plan_header.ACTIVATIONS.ACTIVATIONS

#: Fields of the `shape` argument of convolution and pooling, in order (struct Window in window.c).
WINDOW_FIELDS = (
    "batch", "channels", "height", "width", "out_channels", "out_height", "out_width", "kernel_h", "kernel_w",
    "stride_h", "stride_w", "pad_top", "pad_left", "dilation_h", "dilation_w", "groups",
)  # fmt: skip

PANEL, GRAIN = plan_header.FORMAT.PANEL, plan_header.FORMAT.GRAIN
#: How far the filter of a resampler reaches to each side, in samples of the lower rate.
RESAMPLE_REACH = 64
INTEGER_PANEL, SMALL_ROWS = plan_header.FORMAT.INTEGER_PANEL, plan_header.FORMAT.SMALL_ROWS

_CELL = "i32 rows, i32 hidden, i32 acts, const f32 *params"
_BROADCAST = "i32 rows, i32 cols, i32 a_row, i32 a_col, i32 b_row, i32 b_col"

#: Signature of each kind of kernel. Types: f32, i32 by value; `const T *` is read, `T *` is written; T is f32, u8,
#: i16, i32 or i64.
SIGNATURES = {
    "unary": "const f32 *x, f32 *y, i32 n",
    "activation": "const f32 *x, f32 *y, i32 n, f32 alpha, f32 beta",
    "activate": "const f32 *x, f32 *y, i32 n, i32 act, f32 alpha, f32 beta",
    "binary": f"const f32 *a, const f32 *b, f32 *y, {_BROADCAST}",
    "compare": f"const f32 *a, const f32 *b, u8 *y, {_BROADCAST}",
    "select": "const u8 *cond, const f32 *a, const f32 *b, f32 *y, i32 rows, i32 cols, "
              "i32 c_row, i32 c_col, i32 a_row, i32 a_col, i32 b_row, i32 b_col",
    "pack": "const f32 *w, f32 *packed, i32 n, i32 k, i32 row_stride, i32 col_stride",
    "gemv": "const f32 *packed, const f32 *x, const f32 *bias, f32 *y, i32 n, i32 k",
    "gemm": "const f32 *x, const f32 *packed, const f32 *bias, f32 *y, i32 m, i32 n, i32 k, "
            "i32 x_stride, i32 y_stride",
    "round_rows": "const f32 *x, i16 *rounded, f32 *scales, i32 m, i32 k, i32 range",
    "small_gemm": "const f32 *x, const u8 *packed, const f32 *scale, const f32 *bias, f32 *y, i16 *scratch, "
                  "i32 m, i32 n, i32 k, i32 range, i32 is_wide",
    "rnn_cell": "const f32 *xw, const f32 *hw, f32 *y, i32 rows, i32 hidden, i32 acts, const f32 *params",
    "gru_cell": "const f32 *xw, const f32 *hw, const f32 *h, f32 *y, i32 rows, i32 hidden, i32 acts, const f32 *params",
    "gru_reset": "const f32 *xw, const f32 *hw, const f32 *h, f32 *z, f32 *rh, i32 rows, i32 hidden, "
                 "i32 acts, const f32 *params",
    "gru_update": "const f32 *xw, const f32 *hn, const f32 *z, const f32 *h, f32 *y, i32 rows, i32 hidden, "
                  "i32 acts, const f32 *params",
    "lstm_cell": "const f32 *xw, const f32 *hw, const f32 *c, const f32 *peephole, f32 *h_out, f32 *c_out, "
                 "i32 rows, i32 hidden, i32 couple, i32 acts, const f32 *params",
    "rnn_cell_backward": f"const f32 *xw, const f32 *hw, const f32 *d_next, f32 *d, {_CELL}",
    "gru_cell_backward": "const f32 *xw, const f32 *hw, const f32 *h, const f32 *d_next, f32 *d_xw, f32 *d_hw, "
                         f"f32 *d_h, {_CELL}",
    "gru_reset_backward": "const f32 *xw, const f32 *hw, const f32 *h, const f32 *d_z, const f32 *d_rh, f32 *d_xw, "
                          f"f32 *d_hw, f32 *d_h, {_CELL}",
    "gru_update_backward": "const f32 *xw, const f32 *hn, const f32 *z, const f32 *h, const f32 *d_next, f32 *d_xw, "
                           f"f32 *d_hn, f32 *d_z, f32 *d_h, {_CELL}",
    "lstm_cell_backward": "const f32 *xw, const f32 *hw, const f32 *c, const f32 *peephole, const f32 *d_h_next, "
                          "const f32 *d_c_next, f32 *d_gates, f32 *d_c, f32 *d_peephole, i32 rows, i32 hidden, "
                          "i32 couple, i32 acts, const f32 *params",
    "reduce": "const f32 *x, f32 *y, i32 outer, i32 n, i32 inner",
    "softmax": "const f32 *x, f32 *y, i32 rows, i32 n",
    "layer_norm": "const f32 *x, const f32 *scale, const f32 *bias, f32 *y, i32 rows, i32 n, f32 epsilon",
    "instance_norm": "const f32 *x, const f32 *scale, const f32 *bias, f32 *y, i32 batch, i32 channels, i32 n, "
                     "f32 epsilon",
    "batch_norm": "const f32 *x, const f32 *scale, const f32 *bias, const f32 *mean, const f32 *variance, f32 *y, "
                  "i32 batch, i32 channels, i32 n, f32 epsilon",
    "conv": "const f32 *x, const f32 *w, const f32 *bias, f32 *y, f32 *scratch, const i32 *shape",
    "max_pool": "const f32 *x, f32 *y, const i32 *shape",
    "average_pool": "const f32 *x, f32 *y, const i32 *shape, i32 count_padding",
    "copy": "const u8 *src, u8 *dst, i32 item, i32 ndim, const i32 *layout -> i32",
    "gather": "const u8 *src, const i64 *index, u8 *dst, i32 outer, i32 size, i32 inner, i32 count -> i32",
    "fill": "f32 *y, i32 n, f32 value",
    "fft": "const f32 *x, const f32 *twiddles, f32 *y, f32 *scratch, i32 rows, i32 n",
    "resample_table": "f32 *table, i32 up, i32 down, i32 taps",
    "resample": "const f32 *x, const f32 *table, f32 *y, i32 count, i32 at, i32 up, i32 down, i32 taps",
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A row. `ulp` is the stated error bound in units in the last place (0: exact); None where the error depends on
    the length of a reduction, from which cases.py then computes a tolerance. `in_place`: an output may be an input.
    `is_in_core`: core modules export it too, since hosts call it."""

    name: str
    kind: str
    ulp: float | None = None
    in_place: bool = False
    is_in_core: bool = False

    @property
    def symbol(self) -> str:
        return f"wr_{self.name}"

    @property
    def signature(self) -> str:
        return SIGNATURES[self.kind]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """[(type, name)], as ("const f32 *", "x")."""
        inside = self.signature.split("->")[0].strip()
        pairs = [p.strip().replace("*", "* ").rsplit(" ", 1) for p in inside.split(",") if p]
        return [(" ".join(kind.split()), name) for kind, name in pairs]

    @property
    def returns(self) -> str | None:
        return self.signature.split("->")[1].strip() if "->" in self.signature else None


def _expression_kernels() -> Iterator[Kernel]:
    """Those that operations of expressions have: their rows are in runtime/webrnn/plan/operations.py."""
    for row in plan_header.OPERATIONS.OPERATIONS:
        if row.kernel:
            yield Kernel(row.name, row.kernel, row.ulp, in_place=row.kernel != "compare")


KERNELS = (
    *_expression_kernels(),
    Kernel("affine", "activation", 0, in_place=True),
    Kernel("scaled_tanh", "activation", 3, in_place=True),
    Kernel("clip", "activation", 0, in_place=True),
    Kernel("activate", "activate", 3, in_place=True),
    Kernel("select", "select", 0, in_place=True),
    Kernel("pack_panels", "pack", 0),
    Kernel("gemv", "gemv"),
    Kernel("gemm", "gemm"),
    Kernel("round_rows", "round_rows", 0),
    Kernel("small_gemm", "small_gemm", 0),
    Kernel("rnn_cell", "rnn_cell"),
    Kernel("gru_cell", "gru_cell", in_place=True),
    Kernel("gru_reset", "gru_reset"),
    Kernel("gru_update", "gru_update", in_place=True),
    Kernel("lstm_cell", "lstm_cell", in_place=True),
    Kernel("rnn_cell_backward", "rnn_cell_backward", in_place=True),
    Kernel("gru_cell_backward", "gru_cell_backward", in_place=True),
    Kernel("gru_reset_backward", "gru_reset_backward", in_place=True),
    Kernel("gru_update_backward", "gru_update_backward", in_place=True),
    Kernel("lstm_cell_backward", "lstm_cell_backward", in_place=True),
    *(
        Kernel(f"reduce_{name}", "reduce", 0 if name in ("max", "min") else None)
        for name in plan_header.INSTRUCTIONS.REDUCTIONS
    ),
    Kernel("softmax", "softmax", in_place=True),
    Kernel("log_softmax", "softmax"),
    Kernel("layer_norm", "layer_norm", in_place=True),
    Kernel("instance_norm", "instance_norm", in_place=True),
    Kernel("batch_norm", "batch_norm", in_place=True),
    Kernel("conv", "conv"),
    Kernel("max_pool", "max_pool", 0),
    Kernel("average_pool", "average_pool"),
    Kernel("copy_strided", "copy", 0),
    Kernel("gather", "gather", 0),
    Kernel("fill", "fill", 0),
    *(Kernel(name, "fft") for name in plan_header.INSTRUCTIONS.FFTS),
    Kernel("resample_table", "resample_table", is_in_core=True),
    Kernel("resample", "resample", is_in_core=True),
)

#: How a host uses plans: check once, bind for given sizes, limit what a run may use, run; set_row_panels suits
#: products to its compiler (tiles.c). Not kernels, so not part of their grids.
PLAN_SIGNATURES = {
    "plan_check": "const i32 *plan, i32 bytes -> i32",
    "plan_table_bytes": "const i32 *plan -> i32",
    "plan_bind": "const i32 *plan, const i32 *symbols, u8 *tables -> i32",
    "plan_limit": "u8 *tables, const i64 *limits",
    "plan_steps": "const u8 *tables, i64 *steps",
    "plan_arena_bytes": "const u8 *tables -> i32",
    "plan_external_bytes": "const u8 *tables, i32 external -> i32",
    "plan_size": "const u8 *tables, i32 row -> i32",
    "plan_where": "const u8 *tables -> i32",
    "plan_run": "u8 *tables, u8 *arena, const u8 *externals -> i32",
    "plan_repeat": "u8 *tables, u8 *arena, const u8 *externals, i32 times -> i32",
    "set_row_panels": "i32 count",
}
#: In the native library only: work that several threads share (team.h). Those of a team are there once, for all
#: instruction sets.
THREAD_SIGNATURES = {
    "plan_hire": "u8 *tables, u8 *team, i32 threads, i32 least_work",
    "plan_shared": "const u8 *tables -> i32",
}
TEAM_SIGNATURES = {
    "team_bytes": "-> i32",
    "team_make": "u8 *team",
    "team_call": "u8 *team -> i32",
    "team_serve": "u8 *team, i32 who",
    "team_end": "u8 *team",
}
#: In profiling builds only.
PROFILE_SIGNATURES = {
    "plan_profile": "u8 *tables, u8 *arena, const u8 *externals, i64 *counters, i32 runs -> i32",
    "profile_calibrate": "i64 *counters, i32 count",
}
SIGNATURES.update(PLAN_SIGNATURES | THREAD_SIGNATURES | TEAM_SIGNATURES | PROFILE_SIGNATURES)
PLAN_FUNCTIONS = tuple(Kernel(name, name) for name in PLAN_SIGNATURES)
THREAD_FUNCTIONS = tuple(Kernel(name, name) for name in THREAD_SIGNATURES)
TEAM_FUNCTIONS = tuple(Kernel(name, name) for name in TEAM_SIGNATURES)
PROFILE_FUNCTIONS = tuple(Kernel(name, name) for name in PROFILE_SIGNATURES)
EXPORTS = (*KERNELS, *PLAN_FUNCTIONS)
EXPORTS_OF = {
    "core": (*(kernel for kernel in KERNELS if kernel.is_in_core), *PLAN_FUNCTIONS),
    "training": PLAN_FUNCTIONS,
    "full": EXPORTS,
}

BY_NAME = {kernel.name: kernel for kernel in KERNELS}


def resample_taps(up: int, down: int) -> int:
    """Numbers in a row of the table of a resampler, filled up to a multiple of 16."""
    half = -(-RESAMPLE_REACH * max(up, down) // up)
    return -(-2 * half // 16) * 16


def packed_size(n: int, k: int) -> int:
    """Floats in packed weights W[n, k]."""
    return -(-n // GRAIN) * GRAIN * k


_C_TYPES = {"f32": "float", "u8": "uint8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"}


def c_header() -> str:
    """kernels.gen.h: the prototypes, to which the compiler holds every C function, and the shared constants.

    A core module exports no kernels but those that hosts call, and one for learning none, so that those that it does
    not use go; the others are functions as elsewhere."""
    lines = [
        "/* Generated from table.py. */",
        "#ifndef WEBRNN_KERNELS_H",
        "#define WEBRNN_KERNELS_H",
        "#include <stdint.h>",
        f"#define PANEL {PANEL}",
        f"#define GRAIN {GRAIN}",
        f"#define RESAMPLE_REACH {RESAMPLE_REACH}",
        f"enum {{ {', '.join(f'ACT_{name.upper()}' for name in ACTIVATIONS)}, ACT_COUNT }};",
        "#ifdef WEBRNN_SUFFIX",
        "#define WEBRNN_PASTE(a, b) a##_##b",
        "#define WEBRNN_NAME(a, b) WEBRNN_PASTE(a, b)",
        *(
            f"#define {k.symbol} WEBRNN_NAME({k.symbol}, WEBRNN_SUFFIX)"
            for k in (*EXPORTS, *THREAD_FUNCTIONS, *PROFILE_FUNCTIONS)
        ),
        *(f"#define {k.symbol}_repeat WEBRNN_NAME({k.symbol}_repeat, WEBRNN_SUFFIX)" for k in KERNELS),
        "#endif",
        '#define WEBRNN_EXPORT __attribute__((used, visibility("default")))',
        "#ifdef WEBRNN_CORE",
        "#define WEBRNN_KERNEL static __attribute__((noinline))",
        "#else",
        "#define WEBRNN_KERNEL WEBRNN_EXPORT",
        "#endif",
        "#ifdef WEBRNN_TRAINING",
        "#define WEBRNN_CORE_KERNEL WEBRNN_KERNEL",
        "#else",
        "#define WEBRNN_CORE_KERNEL WEBRNN_EXPORT",
        "#endif",
    ]
    lines += [_c_prototype(k, "WEBRNN_CORE_KERNEL" if k.is_in_core else "WEBRNN_KERNEL") for k in KERNELS]
    lines += [_c_prototype(k) for k in PLAN_FUNCTIONS]
    lines.append(f"#define ACTIVATION_CASES {' '.join(map(_c_case, ACTIVATIONS[1:]))}")
    lines += [_c_kernel_type(k) for k in {k.kind: k for k in _expression_kernels()}.values()]
    lines += ["#ifdef WEBRNN_THREADS", *(_c_prototype(k) for k in THREAD_FUNCTIONS), "#endif"]
    lines += ["#ifdef WEBRNN_PROFILE", *(_c_prototype(k) for k in PROFILE_FUNCTIONS), "#endif"]
    return "\n".join([*lines, "#endif", ""])


def _c_prototype(kernel: Kernel, linkage: str = "WEBRNN_EXPORT") -> str:
    result = _C_TYPES[kernel.returns] if kernel.returns else "void"
    return f"{linkage} {result} {kernel.symbol}({_c_parameters(kernel)});"


def _c_case(activation: str) -> str:
    """Of wr_activate: all but "none" are a kernel of their name."""
    kernel = BY_NAME[activation]
    arguments = "x, y, n" if kernel.kind == "unary" else "x, y, n, alpha, beta"
    return f"case ACT_{activation.upper()}: {kernel.symbol}({arguments}); return;"


def _c_kernel_type(kernel: Kernel) -> str:
    return f"typedef void {kernel.kind}_kernel({_c_parameters(kernel)});"


def c_repeaters() -> str:
    """repeat.gen.c, part of benchmark builds only: wr_<name>_repeat(count, ...) runs a kernel `count` times."""
    lines = ["/* Generated from table.py. */"]
    for k in KERNELS:
        arguments = ", ".join(name for _, name in k.parameters)
        lines.append(
            f"WEBRNN_EXPORT void {k.symbol}_repeat(int32_t repeats, {_c_parameters(k)}) {{\n"
            f"  for (int32_t repeat = 0; repeat < repeats; repeat++) {{\n"
            f'    {k.symbol}({arguments});\n    __asm__ volatile("" ::: "memory");\n  }}\n}}'
        )
    return "\n".join([*lines, ""])


def _c_parameters(kernel: Kernel) -> str:
    def spelled(kind: str) -> str:
        return " ".join(_C_TYPES.get(word, word) for word in kind.split())

    return ", ".join(f"{spelled(kind)} {name}" for kind, name in kernel.parameters)


def binding_rows(kernel: Kernel, bench: bool) -> list[dict[str, Any]]:
    """What a loader needs of a kernel, and in benchmark builds of its repeat function, as plain data."""
    row = {"name": kernel.name, "symbol": kernel.symbol, "parameters": kernel.parameters, "returns": kernel.returns}
    repeat = {
        "name": f"{kernel.name}_repeat",
        "symbol": f"{kernel.symbol}_repeat",
        "parameters": [("i32", "repeats"), *kernel.parameters],
        "returns": None,
    }
    return [row, repeat] if bench else [row]
