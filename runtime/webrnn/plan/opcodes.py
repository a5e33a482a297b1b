"""The form of a plan file: its header, its tables, and what the functions that take one return.

The instructions are in instructions.py. The C header of the VM (wasm_kernels/plan_header.py) and the constants of the
JavaScript host are generated from both. This file imports nothing of webrnn, so that the build can read it before
webrnn is installed.
"""

from __future__ import annotations

from typing import NamedTuple

MAGIC = 0x4E4E5257  # "WRNN"
VERSION = 5
STORED_VERSION = 6
"""Of a file that holds a plan with half floats in it: see halves.py."""
CHANNELS_FIRST_VERSION, CHANNELS_FIRST_STORED_VERSION = 3, 4
"""Those before, which still run with the bits that they had: `conv` has its weights, and sums, by channels first."""
FIRST_VERSIONS = (1, 2)
"""Those before these, which are brought up to CHANNELS_FIRST_VERSION when they are read: see first_versions.py."""
VERSIONS = (CHANNELS_FIRST_VERSION, VERSION)
"""Of plans in memory."""
STORED_VERSIONS = (CHANNELS_FIRST_STORED_VERSION, STORED_VERSION)

HEADER = (
    "magic", "version", "words", "symbols", "sizes", "buffers", "slots", "tensors", "externals", "moves", "code_words",
    "data_offset", "data_bytes", "meta_offset", "meta_bytes",
)  # fmt: skip
"""The words of the header. The tables follow in this order: sizes, buffers, tensors, code. `words` counts all of them,
header included; data (64-byte aligned) and meta (JSON for hosts) are placed in bytes from the start of the plan."""

STORED_HEADER = ("magic", "version", "bytes", "stretches")
"""The words of the header of a file with half floats."""

SIZE_KINDS = ("number", "symbol", "sum", "product", "quotient", "late")
SIZE_WORDS = 3
"""kind, a, b: a number, a symbol, or earlier sizes; the divisor of a quotient is a positive number. A late size is set
by the instruction `let` while running."""

CHECKED = 1 << 24
"""In the word of an instruction: what it touches depends on late sizes, so it is checked each time before it runs."""
LATE_BYTES = 1 << 10
"""Room that a buffer of a late size has at first."""

MAX_RANK = 8
MOST_AXES = 32
"""Of an input or output: what every numpy can have."""
MAX_DEPTH = 16
"""How deep loops and branches may be nested."""
MOST_BESIDE_WORDS, MOST_BESIDE_TENSORS = 2048, 128
"""Of code in both blocks of `beside`, and of what one of them touches: each pair is looked at when sizes are bound."""
TILE = 128
"""Elements of an expression that are evaluated at a time."""
MAX_REGISTERS = 64

PANEL, GRAIN = 24, 8
"""Rows of a panel of packed weights, and the step in which the last may be narrower; the same for all targets."""
BLOCK_COLUMNS = 2 * PANEL
"""Columns of a matrix that `matmul` packs at a time, at least."""

INTEGER_PANEL, INTEGER_ROWS = 16, 4
"""Columns of a panel of packed bytes, and how many rows are multiplied with it at a time."""

SMALL_ROWS = 24
"""Rows that are rounded to integers at a time: a multiple of the rows of any tile."""

DTYPES = (
    "f32", "i64", "bool", "i32", "f16", "bf16", "f64", "u8", "i8", "u16", "i16", "u32", "u64",
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4", "i4", "f4e2m1", "f8e8m0", "u2", "i2", "f6e2m3", "f6e3m2",
)  # fmt: skip
ITEM_BYTES = (4, 8, 1, 4, 2, 2, 8, 1, 1, 2, 2, 4, 8, *(1,) * 12)
"""What is smaller than a byte has a byte for each element, its bits in the low end."""

BUFFER_KINDS = ("constant", "arena", "external")
BUFFER_WORDS = 4  # kind, dtype, size (elements), place: byte offset in the data, slot or external; see WRITABLE
WRITABLE = 1 << 30  # set in the place of an external that the program writes
TENSOR_HEAD = 4  # buffer, dtype, rank, offset; then MAX_RANK sizes and MAX_RANK strides


class ErrorRow(NamedTuple):
    """What check, bind or run return as a number: the place of the row."""

    name: str
    text: str
    raises: str = "PlanError"
    limit: str = ""
    """The field of Limits that a run went beyond: {} in the text."""


ERROR_ROWS = (
    ErrorRow("ok", ""),
    ErrorRow("bad_header", "the header is damaged"),
    ErrorRow("bad_table", "a table is damaged"),
    ErrorRow("bad_instruction", "an instruction is damaged"),
    ErrorRow("bad_size", "a size is negative or too large"),
    ErrorRow("out_of_buffer", "a tensor reaches outside its buffer"),
    ErrorRow("bad_operands", "an instruction's operands do not fit each other"),
    ErrorRow("too_deep", "loops are nested too deep"),
    ErrorRow("not_writable", "an instruction writes to memory that it must not"),
    ErrorRow("no_memory", "the memory is too small"),
    ErrorRow("index_range", "an index is out of range", "ShapeError"),
    ErrorRow("loop_limit", "a loop did not end within its limit", "ModelError"),
    ErrorRow("too_many_steps", "more steps than its operands have elements", "ShapeError"),
    ErrorRow("over_loop_steps", "the loop did not end within {} steps", "LimitError", "loop_steps"),
    ErrorRow(
        "over_run_steps",
        "the loops of one run did not end within {} steps together",
        "LimitError",
        "run_steps",
    ),
    ErrorRow("over_seconds", "the run did not end within {} seconds", "LimitError", "seconds"),
    ErrorRow("grow", "more memory is needed"),  # which the host provides; then it runs the plan again
    ErrorRow("late_size", "a size came out negative or too large", "ShapeError"),
    ErrorRow("late_sizes", "sizes that came out while running do not fit", "ShapeError"),
    ErrorRow("division_by_zero", "integer division by zero", "ModelError"),
    ErrorRow("needs_full", "the plan needs the full module of kernels, and this is a smaller one"),
    ErrorRow("needs_unfused", "the plan needs a build whose multiply-adds are not fused, and those of this one are"),
)
"""The word of the code where one was found is kept in the instance."""
ERRORS = tuple(row.text for row in ERROR_ROWS)


def version_text(version: int) -> str:
    """What is wrong with a plan of a version that is not read.

    >>> version_text(7)
    'the plan is of version 7, this webrnn reads versions 1 to 6: update webrnn'
    """
    least, most = FIRST_VERSIONS[0], STORED_VERSIONS[-1]
    advice = "update webrnn" if version > most else "the file is damaged"
    return f"the plan is of version {version}, this webrnn reads versions {least} to {most}: {advice}"
