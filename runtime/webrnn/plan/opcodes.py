"""The instructions of a plan, one row each; the C header of the VM is generated from this file (wasm_kernels/build.py).

It imports nothing, so that the build can read it before webrnn is installed.

An instruction is [opcode, number of operand words, operands ...]. Each operand is one word, described by a letter:

    r  a tensor that is read          R  the same, or -1 for none
    w  a tensor that is written       W  the same, or -1 for none
    d  a size (index into the table of sizes)    D  the same, or -1 for none
    i  a number                       f  the bits of a float32
    *  what follows is a list whose form the instruction itself knows
"""

from __future__ import annotations

MAGIC = 0x4E4E5257  # "WRNN"
VERSION = 2

HEADER = (
    "magic", "version", "words", "symbols", "sizes", "buffers", "slots", "tensors", "externals", "moves", "code_words",
    "data_offset", "data_bytes", "meta_offset", "meta_bytes",
)  # fmt: skip
"""The words of the header. The tables follow in this order: sizes, buffers, tensors, code. `words` counts all of them,
header included; data (64-byte aligned) and meta (JSON for hosts) are placed in bytes from the start of the plan."""

SIZE_KINDS = ("number", "symbol", "sum", "product", "quotient")
SIZE_WORDS = 3  # kind, a, b: a number, a symbol, or earlier sizes; the divisor of a quotient is a positive number

MAX_RANK = 6
MAX_DEPTH = 16
"""How deep loops and branches may be nested."""
TILE = 128
"""Elements of an expression that are evaluated at a time."""
MAX_REGISTERS = 64

DTYPES = ("f32", "i64", "u8", "i32")
ITEM_BYTES = (4, 8, 1, 4)

BUFFER_KINDS = ("constant", "arena", "external")
BUFFER_WORDS = 4  # kind, dtype, size (elements), place: byte offset in the data, slot or external; see WRITABLE
WRITABLE = 1 << 30  # set in the place of an external that the program writes
TENSOR_HEAD = 4  # buffer, dtype, rank, offset; then MAX_RANK sizes and MAX_RANK strides

INSTRUCTIONS: tuple[tuple[str, str], ...] = (
    ("require", "d"),  # a size that must not be negative: sizes for which the plan does not hold are refused
    ("copy", "rw"),  # src, dst: same sizes, any strides
    ("fill", "wf"),  # dst contiguous f32, value
    ("sizes", "w*"),  # dst i64[n]; then n sizes
    ("gemm", "rrRwiff"),  # x[m, k], packed, bias[n], y[m, n], activation, alpha, beta
    ("matmul", "rrww"),  # a[b, m, k], b[b, k, n], y[b, m, n], scratch
    ("expression", "*"),
    ("rnn_cell", "rrwri"),  # xw, hw, y, params, activations
    ("gru_cell", "rrrwri"),  # xw, hw, h, y, params, activations
    ("gru_reset", "rrrwwri"),  # xw, hw, h, z, rh, params, activations
    ("gru_update", "rrrrwri"),  # xw, hn, z, h, y, params, activations
    ("lstm_cell", "rrrRwwrii"),  # xw, hw, c, peephole, h', c', params, activations, couple
    ("rnn_sequence", "rrRrwwWri"),  # xw[t, rows, h], packed, bias, h0, scratch, final, trace[t, rows, h], params, acts
    ("gru_sequence", "rrRrwwWri"),
    (
        "lstm_sequence",
        "rrRrrRwwwWrii",
    ),  # xw, packed, bias, h0, c0, peephole, scratch, h, c, trace, params, acts, couple
    ("reduce", "rwi"),  # x[outer, n, inner], y[outer, inner], kind
    ("softmax", "rwi"),  # x[rows, n], y, 1 for its logarithm
    ("layer_norm", "rrRwf"),  # x[rows, n], scale[n], bias[n], y, epsilon
    ("instance_norm", "rrrwf"),  # x[batch, channels, n], scale, bias, y, epsilon
    ("batch_norm", "rrrrrwf"),  # x[batch, channels, n], scale, bias, mean, variance, y, epsilon
    ("conv", "rrRwwiiiiiiiii"),  # x[n, c, h, w], w, bias, y, scratch, window: kernel, stride, pads, dilation, groups
    ("pool", "rwiiiiiiiii"),  # x, y, kind (0 max, 1 average, 2 average with padding), kernel, stride, pads, dilation
    ("gather", "rrw"),  # src[outer, size, inner], index i64[count], dst[outer, count, inner]
    ("branch", "rii"),  # condition, words of the then block, words of the else block, which follow
    ("loop", "DRdRRWWiiiii*"),
    ("fft", "rrwwi"),  # x[rows, n numbers], twiddles, y[rows, n numbers], scratch, kind: see FFTS
)
"""loop: n_steps as a size, n_steps as an i64 tensor, most steps, condition, condition of the body, iteration (i64),
steps taken (i64), first move, number of moves, words of the body, words of the epilogue, strictness; then for each
move: tensor, stride (a size), steps before it moves (a size), or -1 and the tensor to follow.
Strictness: EXACT takes n_steps; UNLIMITED raises when `most steps` were taken and there would be more; LIMITED raises
when the tensor asks for more than `most steps`; CHUNKS takes n_steps too, each of them a chunk of a loop of `most
steps`, which is the loop that limits are for."""

EXACT, UNLIMITED, LIMITED, CHUNKS = range(4)

FFTS = ("rfft", "irfft", "fft", "ifft")
"""Complex numbers are pairs: n samples have a spectrum of n + 2 words with rfft, and of 2 n with fft."""
MIN_FFT, MAX_FFT = 8, 1 << 16
"""The lengths that a transform may have, powers of two only."""
FFT_SLACK = 16
"""Floats before and behind each of the four planes of its scratch, so that vectors may reach over their ends."""

REDUCTIONS = ("sum", "mean", "sum_square", "prod", "max", "min")

EXPRESSION_OPS: tuple[tuple[str, str], ...] = (
    *((name, "f:f") for name in (
        "exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "reciprocal", "abs", "neg", "round", "floor",
        "ceil", "relu", "softplus", "softsign",
    )),
    *((name, "f:f") for name in (
        "affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu", "clip",
    )),
    *((name, "ff:f") for name in ("add", "sub", "mul", "div", "min", "max")),
    *((name, "ff:u") for name in ("equal", "less", "less_or_equal", "greater", "greater_or_equal")),
    ("select", "uff:f"),
    ("isnan", "f:u"),
    *((f"{name}_{t}", f"{t}{t}:{t}") for t in "ij" for name in ("add", "sub", "mul", "div", "min", "max")),
    *((f"{name}_{t}", f"{t}{t}:u") for t in "ij" for name in (
        "equal", "less", "less_or_equal", "greater", "greater_or_equal",
    )),
    *((f"{name}_{t}", f"{t}:{t}") for t in "ij" for name in ("neg", "abs")),
    *((f"select_{t}", f"u{t}{t}:{t}") for t in "iju"),
    *((f"{name}_u", "uu:u") for name in ("and", "or", "xor", "equal")),
    ("not_u", "u:u"),
    *((f"{a}_to_{b}", f"{a}:{b}") for a in "fiju" for b in "fiju" if a != b),
    *((f"copy_{t}", f"{t}:{t}") for t in "fiju"),
)  # fmt: skip
"""The operations of an expression with the types of their operands and result: f is f32, i is i64, j is i32, u is u8.

expression: number of inputs, outputs, constants, operations; the input tensors; pairs (output tensor, register); the
constants (type, low word, high word); the operations (code, result, three operands, alpha, beta). Registers are the
inputs, then the constants, then one for each operation."""

EXPRESSION_OP_WORDS = 7

ERRORS = (
    "", "the header is damaged", "a table is damaged", "an instruction is damaged", "a size is negative or too large",
    "a tensor reaches outside its buffer", "an instruction's operands do not fit each other",
    "loops are nested too deep", "an instruction writes to memory that it must not", "the memory is too small",
    "an index is out of range",
    "a loop did not end within its limit", "more steps than its operands have elements",
    "a loop takes more steps than one loop may", "the loops of a run take more steps than they may together",
    "a run takes longer than it may",
)  # fmt: skip
"""What check, bind and run return: 0, or one of these; the word where it was found is kept in the instance."""


def c_header() -> str:
    """plan.gen.h"""
    lines = ["/* Generated from opcodes.py. */", "#ifndef WEBRNN_PLAN_H", "#define WEBRNN_PLAN_H"]
    numbers = {
        "PLAN_MAGIC": MAGIC, "PLAN_VERSION": VERSION, "MAX_RANK": MAX_RANK, "MAX_DEPTH": MAX_DEPTH, "TILE": TILE,
        "MAX_REGISTERS": MAX_REGISTERS, "SIZE_WORDS": SIZE_WORDS, "BUFFER_WORDS": BUFFER_WORDS,
        "TENSOR_WORDS": TENSOR_HEAD + 2 * MAX_RANK,
        "EXPRESSION_OP_WORDS": EXPRESSION_OP_WORDS, "WRITABLE": WRITABLE, "MIN_FFT": MIN_FFT, "MAX_FFT": MAX_FFT,
        "FFT_SLACK": FFT_SLACK,
    }  # fmt: skip
    lines += [f"#define {name} {number}" for name, number in numbers.items()]
    lines += _enum("HEADER", HEADER) + _enum("DTYPE", DTYPES) + _enum("BUFFER", BUFFER_KINDS)
    lines += _enum("SIZE", SIZE_KINDS) + _enum("REDUCTION", REDUCTIONS)
    lines += _enum("KIND", FFTS)
    lines.append("#define INSTRUCTIONS(X) \\")
    lines += [f'  X({name}, "{form}") \\' for name, form in INSTRUCTIONS]
    lines.append("")
    lines += _enum("EX", [name for name, _ in EXPRESSION_OPS])
    forms = ", ".join(f'"{form}"' for _, form in EXPRESSION_OPS)
    lines.append(f"static const char EXPRESSION_FORMS[][6] = {{{forms}}};")
    return "\n".join([*lines, "#endif", ""])


def _enum(prefix: str, names: tuple[str, ...] | list[str]) -> list[str]:
    members = ", ".join(f"{prefix}_{name.upper()}" for name in names)
    return [f"enum {{ {members}, {prefix}_COUNT }};"]
