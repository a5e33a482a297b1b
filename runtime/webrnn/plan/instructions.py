"""The instructions of a plan: one row each.

From a row come the words of an instruction, its text, what both verifiers ask of single operands, its category, parts
and cost in profiles, and in C (wasm_kernels/plan_header.py) its number, its operands by name and its dispatch. The
number of a row is its place: new rows come last, and none goes away.

This file imports nothing of webrnn, so that the build can read it before webrnn is installed.

An instruction is [number, number of operand words, operands ...]; an operand is one word, written `name:type`:

    x:f32   a tensor of that element type, or `any`, that is read; x:f32! one that is written
    n:size  an index into the table of sizes
    a:int   a number; `a:float` the bits of a float32; `a:block` how many words of a block follow the instruction
    a:zero  a word that is 0
    a:reduction  a number that stands for a name of NAMES; `a:activation*2` two of them, a byte each

A question mark is for an operand that may be left out, which is -1. `...` at the end stands for a list of words whose
form the instruction itself knows; those of HAS_SIZES are indices into the table of sizes.
"""

from __future__ import annotations

from typing import NamedTuple

REDUCTIONS = ("sum", "mean", "sum_square", "prod", "max", "min")
NUMBER_REDUCTIONS = (*REDUCTIONS, "l1", "l2", "log_sum", "log_sum_exp")
NUMBERS = ("i64", "bool", "i32", "f64", "u8", "i8", "u16", "i16", "u32", "u64")
"""What reduce_numbers reduces; logarithms are of f64 only."""
POOLINGS = ("max", "average", "average_with_padding", "sum")
"""`pool` has all but the sum."""

INTERPOLATIONS = ("nearest", "linear", "cubic")
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "floor_or_ceil")
"""The last one rounds down where an axis grows, and up where it shrinks."""
COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip
PADDINGS = ("zeros", "border", "reflection")
UNITS = ("pixels", "borders", "centres")
"""Of coordinates: pixels, or -1 to 1 from border to border, or from the centre of the first pixel to the last one's."""

FFTS = ("rfft", "irfft", "fft", "ifft")
"""Complex numbers are pairs: n samples have a spectrum of n + 2 words with rfft, and of 2 n with fft."""
MIN_FFT, MAX_FFT = 8, 1 << 16
"""The lengths that a transform may have, powers of two only."""
FFT_SLACK = 16
"""Floats before and behind each of the four planes of its scratch, so that vectors may reach over their ends."""

STRICTNESS = ("exact", "unlimited", "limited", "chunks")
"""EXACT takes n_steps; UNLIMITED raises when `most` steps were taken and there would be more; LIMITED raises when the
tensor asks for more than `most`; CHUNKS takes n_steps too, each of them a chunk of a loop of `most` steps, which is the
loop that limits are for."""
EXACT, UNLIMITED, LIMITED, CHUNKS = range(4)

SCATTERS = ("none", "add", "mul", "max", "min")
CUMULATIONS = ("sum", "prod")
CELLS = ("rnn", "gru", "lstm")

NAMES = {
    "reduction": REDUCTIONS,
    "number_reduction": NUMBER_REDUCTIONS,
    "pooling": POOLINGS,
    "fft": FFTS,
    "strictness": STRICTNESS,
    "scatter": SCATTERS,
    "cumulation": CUMULATIONS,
    "cell": CELLS,
    "interpolation": INTERPOLATIONS,
    "nearest_mode": NEAREST_MODES,
    "coordinates": COORDINATES,
    "padding": PADDINGS,
    "units": UNITS,
}
"""What numbers stand for; `activation` stands for a name of webrnn.ir.activations."""

MODULES = ("core", "training", "full")
"""The wasm modules that a page may load: for most models, for those that learn, and for all (docs/web.md)."""

ELEMENT_TYPES = (
    "f32", "i64", "bool", "i32", "f16", "bf16", "f64", "u8", "i8", "u16", "i16", "u32", "u64", "any",
)  # fmt: skip


class OperandRow(NamedTuple):
    name: str
    type: str
    is_written: bool
    is_optional: bool

    @property
    def is_tensor(self) -> bool:
        return self.type in ELEMENT_TYPES

    @property
    def is_size(self) -> bool:
        return self.type == "size"


class InstructionRow(NamedTuple):
    name: str
    operands: tuple[OperandRow, ...]
    has_list: bool
    category: str
    """Of its time, or of what is left of it when its parts are counted on their own: see webrnn.profile."""
    parts: tuple[tuple[str, str], ...]
    """Name and category of each; those of instructions with blocks count steps and branches."""
    costs_like: str
    """The ONNX op that takes as many FLOPs for each element of the first operand."""
    modules: tuple[str, ...]
    """Those of MODULES that have it."""
    is_unfused: bool
    """Whether only builds whose multiply-adds are not fused have it: all builds that run it give the same bits."""

    @property
    def blocks(self) -> list[int]:
        """Which of its operands are the lengths of blocks."""
        return [index for index, operand in enumerate(self.operands) if operand.type == "block"]

    @property
    def zeros(self) -> int:
        """How many of its last operands are 0."""
        return sum(operand.type == "zero" for operand in self.operands)


def _operand(text: str) -> OperandRow:
    name, _, kind = text.partition(":")
    return OperandRow(name, kind.rstrip("?!"), "!" in kind, "?" in kind)


def _row(
    name: str,
    operands: str,
    category: str,
    parts: tuple[tuple[str, str], ...] = (),
    costs_like: str = "",
    modules: str = " ".join(MODULES),
    unfused: bool = False,
) -> InstructionRow:
    words = operands.split()
    has_list = words[-1:] == ["..."]
    rows = tuple(map(_operand, words[:-1] if has_list else words))
    return InstructionRow(name, rows, has_list, category, parts, costs_like, tuple(modules.split()), unfused)


_SEQUENCE = "xw:f32 packed:f32 bias:f32? h:f32 scratch:f32! final:f32! trace:f32!? params:f32 activations:activation*"
_STEP_PARTS = (("products", "matrix"), ("cells", "cell"))
_WINDOW = "kernel_h:int kernel_w:int stride_h:int stride_w:int pad_top:int pad_left:int dilation_h:int dilation_w:int"
_STEPS = "kernel_h:int kernel_w:int stride_h:int stride_w:int dilation_h:int dilation_w:int"

INSTRUCTIONS = (
    _row("require", "size:size", "control"),  # that is not negative: else the plan does not hold for the sizes
    _row("copy", "x:any y:any!", "copy"),  # same sizes, any strides
    _row("fill", "y:f32! value:float", "copy"),
    _row("sizes", "y:i64! ...", "control"),  # y[n], then n sizes
    # x[m, k], bias[n], y[m, n]
    _row("gemm", "x:f32 packed:f32 bias:f32? y:f32! activation:zero alpha:zero beta:zero", "matrix"),
    # a[..., m, k], b[..., k, n], y[..., m, n]
    _row("matmul", "a:f32 b:f32 y:f32! scratch:f32!", "control", (("packing", "copy"), ("products", "matrix"))),
    _row("expression", "inputs:int outputs:int constants:int operations:int ...", "element-wise"),  # see operations.py
    _row("rnn_cell", "xw:f32 hw:f32 y:f32! params:f32 activations:activation*1", "cell"),
    _row("gru_cell", "xw:f32 hw:f32 h:f32 y:f32! params:f32 activations:activation*2", "cell"),
    _row("gru_reset", "xw:f32 hw:f32 h:f32 z:f32! rh:f32! params:f32 activations:activation*2", "cell"),
    _row("gru_update", "xw:f32 hn:f32 z:f32 h:f32 y:f32! params:f32 activations:activation*2", "cell"),
    _row(
        "lstm_cell",
        "xw:f32 hw:f32 c:f32 peephole:f32? h:f32! c_next:f32! params:f32 activations:activation*3 couple:int",
        "cell",
    ),
    # xw[t, rows, gates * hidden], h[rows, hidden], trace[t, rows, hidden]
    _row("rnn_sequence", f"{_SEQUENCE}1", "copy", _STEP_PARTS),
    _row("gru_sequence", f"{_SEQUENCE}2", "copy", _STEP_PARTS),
    _row(
        "lstm_sequence",
        "xw:f32 packed:f32 bias:f32? h:f32 c:f32 peephole:f32? scratch:f32! final:f32! c_final:f32! trace:f32!?"
        " params:f32 activations:activation*3 couple:int",
        "copy",
        _STEP_PARTS,
    ),
    _row("reduce", "x:f32 y:f32! kind:reduction", "reduction"),  # x[outer, n, inner], y[outer, inner]
    _row("softmax", "x:f32 y:f32! logarithm:int", "reduction", costs_like="Softmax"),  # x[rows, n]
    _row("layer_norm", "x:f32 scale:f32 bias:f32? y:f32! epsilon:float", "reduction", costs_like="LayerNormalization"),
    _row(
        "instance_norm", "x:f32 scale:f32 bias:f32 y:f32! epsilon:float", "reduction",
        costs_like="InstanceNormalization",
        modules="core full",
    ),
    _row(
        "batch_norm", "x:f32 scale:f32 bias:f32 mean:f32 variance:f32 y:f32! epsilon:float", "element-wise",
        costs_like="BatchNormalization",
        modules="core full",
    ),
    # x[n, c, h, w]
    _row("conv", f"x:f32 w:f32 bias:f32? y:f32! scratch:f32! {_WINDOW} groups:int", "matrix", modules="core full"),
    _row("pool", f"x:f32 y:f32! kind:pooling {_WINDOW}", "reduction", modules="core full"),
    _row("gather", "x:any index:i64 y:any!", "copy"),  # x[outer, size, inner], index[count], y[outer, count, inner]
    _row("branch", "condition:bool then:block otherwise:block", "control", (("then", "control"), ("else", "control"))),
    # Moves: tensor, stride (a size), steps before it moves (a size), or -1 and the tensor to follow
    _row(
        "loop",
        "steps:size? steps_tensor:i64? most:size condition:bool? body_condition:bool? iteration:i64!? taken:i64!?"
        " first_move:int moves:int body:block epilogue:block strictness:strictness ...",
        "control",
        (("steps", "control"), ("end", "control")),
    ),
    # x[rows, n numbers], y the same
    _row("fft", "x:f32 twiddles:f32 y:f32! scratch:f32! kind:fft", "transform", modules="core full"),

    # --- sizes that are known only while running
    _row("let", "size:size value:i64 least:int", "control"),  # sets a late size, which is not below `least`
    _row("demand", "condition:bool", "control"),  # that all elements are true
    _row("nonzero", "x:any y:i64!? count:i64!?", "copy"),  # y[rank, count]: where the elements are that are not zero

    # --- indexing and sorting
    _row("flat_index", "index:i64 y:i64! ...", "copy"),  # index[..., depth], y[...], then sizes: see indexing.c
    _row("scatter", "index:i64 updates:any y:any! kind:scatter", "copy"),  # index[n], updates[n, inner], y[rows, inner]
    _row("in_range", "x:i64 least:size most:size", "control"),  # else a ShapeError
    _row("iota", "y:i64!", "copy"),  # 0, 1, 2 ...
    _row("cumulate", "x:any y:any! kind:cumulation exclusive:int", "reduction"),  # x[outer, n, inner], y the same
    # x[outer, n, inner], values and indices [outer, k, inner]
    _row("top", "x:any values:any!? indices:i64! smallest:int last:int nan_first:int", "reduction"),
    # corners[batch, n, 4], scores and order [batch, classes, n], selected[most, 3], the others of one element
    _row(
        "nms",
        "corners:f32 scores:f32 order:i64 limit:i64 overlap:f32 least:f32 selected:i64! count:i64!",
        "reduction",
        modules="full",
    ),
    # x[n, width], order[2, n], first, inverse and counts [n]
    _row(
        "unique", "x:any order:i64! first:i64! inverse:i64! counts:i64! count:i64! sorted:int", "reduction",
        modules="full",
    ),

    # --- windows and images
    # x[outer, n, inner], y[outer, m, inner]
    _row(
        "pool_axis",
        "x:f32 places:i64? y:f32! index:i64!? kind:pooling kernel:int stride:int dilation:int pad:size after:size"
        " scale:size plane:size",
        "reduction",
        modules="full",
    ),
    _row(
        "resize",
        "x:any scale:f32? roi:f32? y:any! mode:interpolation nearest:nearest_mode coordinates:coordinates"
        " antialias:int exclude_outside:int cubic_a:float extrapolation:float",
        "reduction",
        costs_like="Resize",
        modules="full",
    ),
    # x[n, c, axes ...], grid[n, points, axes], y[n, c, points]
    _row(
        "grid_sample", "x:f32 grid:f32 y:f32! mode:interpolation padding:padding units:units", "reduction",
        modules="full",
    ),
    _row("affine_grid", "theta:f32 y:f32! align_corners:int", "reduction", modules="full"),  # theta[n, axes, axes + 1]
    # x[n, c, h, w], rois[regions, 4]
    _row(
        "roi_align", "x:f32 rois:f32 images:i64 y:f32! is_max:int half_pixel:int samples:int scale:float", "reduction",
        modules="full",
    ),
    _row("det", "x:f32 scratch:f64! y:f32!", "reduction", modules="full"),  # x[count, n, n]
    # x[outer, kernel, middle, n, inner], y[outer, middle, m, inner]
    _row("overlap_add", "x:f32 y:f32! stride:int dilation:int pad:int", "reduction", modules="core full"),

    # --- reductions, normalizations and transforms
    _row("reduce_numbers", "x:any y:any! kind:number_reduction", "reduction"),  # as reduce

    # --- integers and quantized numbers
    # x[m, k] of bytes, zero[1] or [m], packed: integer_panels, shift[n], y[m, n] = (x - zero)(weights - shift)
    _row("integer_gemm", "x:any zero:any? packed:i8 shift:i32? y:i32! scratch:i16!", "matrix", modules="full"),
    # a[b, m, k], b[b, k, n], y[b, m, n] of integers or f64
    _row("plain_matmul", "a:any b:any y:any!", "matrix", modules="full"),

    # --- random numbers
    _row("random", "counter:i64 y:f32! seed:int normal:int", "element-wise", modules="full"),
    # scores[batch, classes], numbers[batch, n], y the same
    _row("choose", "scores:f32 numbers:f32 y:i64!", "reduction", modules="full"),

    # --- convolutions and pools, channels last: x[n, h, w, c], y[n, h, w, filters]. along: 1 if the expression behind
    # it is run along with it, on each block of results while that is near
    # zeros around x are part of it
    _row("conv_rows", f"x:f32 packed:f32 bias:f32? y:f32! {_STEPS} along:int", "matrix", modules="core full"),
    _row("depthwise", f"x:f32 w:f32 bias:f32? y:f32! {_STEPS} along:int", "matrix", modules="core full"),  # w[taps, c]
    _row("pool_rows", f"x:f32 y:f32! kind:pooling {_WINDOW}", "reduction", modules="core full"),

    # --- memories
    # query[t, b, h, g, k], key[t, b, h, k], value[t, b, h, v], forget[t, b, h, k], rate[t, b, h], memory[b, h, k, v],
    # read[t, b, h, g, v]
    _row(
        "linear_attention",
        "query:f32 key:f32 value:f32 forget:f32? rate:f32? memory:f32! read:f32! is_delta:int is_rounded:int",
        "matrix",
        modules="full",
    ),

    # --- products with what is not constant
    _row("pack", "b:f32 packed:f32!", "copy"),  # b[k, n] in the panels that gemm and whole sequences take

    # --- small weights: packed as integers (integer_panels), with a scale for each output. The integers of rows go from
    # -range to range: see reference/small.py
    # as conv_rows
    _row(
        "small_rows",
        f"x:f32 packed:any scale:f32 bias:f32? y:f32! scratch:i16! {_STEPS} range:int along:int",
        "matrix",
        unfused=True,
        modules="core full",
    ),
    # as rnn_sequence, gru_sequence and lstm_sequence
    _row(
        "small_sequence",
        "xw:f32 packed:any scale:f32 bias:f32? h:f32 c:f32? peephole:f32? scratch:f32! rounded:i16! final:f32!"
        " c_final:f32!? trace:f32!? params:f32 activations:activation*3 couple:int cell:cell range:int",
        "copy",
        _STEP_PARTS,
        unfused=True,
        modules="core full",
    ),

    # x[rows, n], y the same, scale[rows], zero[rows]
    _row(
        "dynamic_quantize",
        "x:f32 y:u8! scale:f32! zero:u8!",
        "element-wise",
        costs_like="DynamicQuantizeLinear",
        modules="full",
    ),
    _row("same_bits", "mark:zero", "control", unfused=True),  # a plan that has it gives the same bits everywhere

    # --- streams
    # ring[outer, slots, inner], rows[outer, n, inner], position[1] or one for each of a divisor of outer,
    # windows[outer, kernel * count, inner]: see reference/rings.py
    _row(
        "ring",
        "ring:any rows:any position:i64 next:any! windows:any! rate:int history:int kernel:int dilation:int stride:int",
        "copy",
        modules="core full",
    ),

    # --- pullbacks of recurrent cells: the operands of the cell, then gradients (ir/fused.py)
    _row(
        "rnn_cell_backward",
        "xw:f32 hw:f32 d_next:f32 d:f32! params:f32 activations:activation*1",
        "cell",
        modules="training full",
    ),
    _row(
        "gru_cell_backward",
        "xw:f32 hw:f32 h:f32 d_next:f32 d_xw:f32! d_hw:f32! d_h:f32! params:f32 activations:activation*2",
        "cell",
        modules="training full",
    ),
    _row(
        "gru_reset_backward",
        "xw:f32 hw:f32 h:f32 d_z:f32 d_rh:f32 d_xw:f32! d_hw:f32! d_h:f32! params:f32 activations:activation*2",
        "cell",
        modules="training full",
    ),
    _row(
        "gru_update_backward",
        "xw:f32 hn:f32 z:f32 h:f32 d_next:f32 d_xw:f32! d_hn:f32! d_z:f32! d_h:f32! params:f32"
        " activations:activation*2",
        "cell",
        modules="training full",
    ),
    _row(
        "lstm_cell_backward",
        "xw:f32 hw:f32 c:f32 peephole:f32? d_h_next:f32 d_c_next:f32 d_gates:f32! d_c:f32! d_peephole:f32!? params:f32"
        " activations:activation*3 couple:int",
        "cell",
        modules="training full",
    ),

    # --- threads
    # Two blocks of which neither touches what the other one writes or moves: two threads may run them at the same time
    _row("beside", "first:block second:block", "control", modules="full"),
)  # fmt: skip

PULLBACKS = {
    "rnn_cell_backward": "RnnCellBackward",
    "gru_cell_backward": "GruCellBackward",
    "gru_reset_backward": "GruResetBackward",
    "gru_update_backward": "GruUpdateBackward",
    "lstm_cell_backward": "LstmCellBackward",
}
"""The op of each pullback of a cell."""
RUN_ALONG = ("conv_rows", "depthwise", "small_rows")
"""The instructions whose last operand says whether the expression behind them runs along."""
HAS_SIZES = ("sizes", "flat_index")
NOT_BESIDE = ("beside", "branch", "let")
"""Instructions that are in no block of `beside`: others find what they do while running."""

ROWS = {row.name: row for row in INSTRUCTIONS}
CODES = {row.name: code for code, row in enumerate(INSTRUCTIONS)}
