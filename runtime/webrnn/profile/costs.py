"""FLOPs and bytes of instructions, from the sizes of their operands.

FLOPs are counted as in the optimizer's report (report/flops.py). Bytes are those of the operands, each read or
written once: what a lap has to move at least, wherever that lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.fused import CELL_FORMS
from webrnn.plan.decode import Decoded, Tables
from webrnn.plan.instructions import CELLS as CELLS_OF_PLANS
from webrnn.plan.instructions import FFTS, PULLBACKS, REDUCTIONS
from webrnn.plan.opcodes import DTYPES, ITEM_BYTES
from webrnn.report.flops import backward_cell_flops, cell_flops, per_element

CELL_OPS = {"rnn": "RnnCell", "gru": "GruCell", "gru_reset": "GruReset", "gru_update": "GruUpdate", "lstm": "LstmCell"}
"""By an instruction's name without `_cell` or `_sequence`."""
STATES = {"RnnCell": 1, "GruCell": 2, "LstmCell": 3}
"""Blocks of the size of the state that a cell reads and writes: h', h and h', or c, c' and h'."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one lap."""

    flops: int = 0
    bytes: int = 0


FREE = Cost()


class Costs:
    """Of the instructions of a plan whose sizes are bound."""

    def __init__(self, data: bytes, tables: Tables, sizes: Sequence[int]):
        self._data, self._tables, self._sizes = data, tables, sizes

    def of(self, instruction: Decoded) -> tuple[Cost, Cost, Cost]:
        """Of a lap of the instruction itself, of its first and of its second part."""
        if instruction.name.endswith("_sequence"):
            return FREE, *self._step(instruction)
        if instruction.name == "matmul":
            return FREE, *self._packed_product(instruction)
        if instruction.row.category == "control":
            return FREE, FREE, FREE
        moved = sum(self._bytes(tensor) for tensor, _ in instruction.tensors())
        return Cost(self._flops(instruction), moved), FREE, FREE

    def _flops(self, instruction: Decoded) -> int:
        if instruction.name in PULLBACKS:
            return self.backward_cell(instruction)
        if instruction.row.costs_like:
            return per_element(instruction.row.costs_like) * self.count(instruction.operands[0])
        if instruction.row.category == "cell":
            return self.cell(instruction)
        rule = _FLOPS.get(instruction.name)
        return rule(self, instruction, instruction.named()) if rule is not None else 0

    # --- operands ----------------------------------------------------------------------------------------------------

    def shape(self, tensor: int) -> list[int]:
        return [self._sizes[size] for size in self._tables.tensors[tensor].shape]

    def count(self, tensor: int) -> int:
        return prod(self.shape(tensor))

    def _bytes(self, tensor: int) -> int:
        """Of its different elements: an axis of stride 0 has one."""
        if tensor < 0:
            return 0
        row = self._tables.tensors[tensor]
        lengths = [
            length for length, stride in zip(self.shape(tensor), row.strides, strict=True) if self._sizes[stride]
        ]
        return prod(lengths) * ITEM_BYTES[DTYPES.index(row.dtype)]

    def _first_float(self, tensor: int) -> float:
        """Of a constant."""
        row = self._tables.tensors[tensor]
        start = self._tables.header["data_offset"] + self._tables.buffers[row.buffer].place
        return float(np.frombuffer(self._data, np.float32, 1, start + 4 * self._sizes[row.offset])[0])

    # --- instructions with parts -------------------------------------------------------------------------------------

    def _step(self, instruction: Decoded) -> tuple[Cost, Cost]:
        """The product and the cell of one step of a whole sequence."""
        o = instruction.named()
        op = _cell_op(instruction)
        gates = CELL_FORMS[op].gates
        rows, hidden = self.shape(o["final"])
        state, wide = 4 * rows * hidden, 4 * rows * gates * hidden
        bias = rows * gates * hidden if o["bias"] >= 0 else 0
        moved = sum(self._bytes(o.get(name, -1)) for name in ("packed", "scale", "bias")) + state + wide
        product = Cost(2 * rows * gates * hidden * hidden + bias, moved)
        return product, Cost(self._per_state(instruction) * rows * hidden, 2 * wide + STATES[op] * state)

    def _packed_product(self, instruction: Decoded) -> tuple[Cost, Cost]:
        """Packing one matrix, if it is packed, and one product with it."""
        o = instruction.named()
        m, k = self.shape(o["a"])[-2:]
        n = self.shape(o["b"])[-1]
        return Cost(0, 2 * 4 * k * n), Cost(2 * m * n * k, 4 * (m * k + k * n + m * n))

    # --- FLOPs -------------------------------------------------------------------------------------------------------

    def cell(self, instruction: Decoded) -> int:
        written = next(tensor for tensor, is_written in instruction.tensors() if is_written)
        return self.count(written) * self._per_state(instruction)

    def _per_state(self, instruction: Decoded) -> int:
        """Of a cell, for each element of the state."""
        op, o = _cell_op(instruction), instruction.named()
        names, clip = self._activations(op, o)
        return cell_flops(op, names, clip != float("inf"), bool(o.get("couple", 0)), o.get("peephole", -1) >= 0)

    def backward_cell(self, instruction: Decoded) -> int:
        op, o = PULLBACKS[instruction.name], instruction.named()
        names, clip = self._activations(op, o)
        attrs = {"activations": names, "params": [clip, *[0.0] * 6], "couple": o.get("couple", 0)}
        state = instruction.operands[CELL_FORMS[op].state]
        return self.count(state) * backward_cell_flops(op, attrs, o.get("peephole", -1) >= 0)

    def _activations(self, op: str, o: dict[str, int]) -> tuple[list[str], float]:
        """Their names, and the clip."""
        codes = [o["activations"] >> 8 * place & 255 for place in range(CELL_FORMS[op].activations)]
        return [ACTIVATIONS[code] for code in codes], self._first_float(o["params"])

    def gemm(self, instruction: Decoded, o: dict[str, int]) -> int:
        return self.count(o["y"]) * (2 * self.shape(o["x"])[1] + (o["bias"] >= 0))

    def linear_attention(self, instruction: Decoded, o: dict[str, int]) -> int:
        """For each element of the memory and each step: what it takes up and, of each query, a term."""
        steps, _, _, group, _ = self.shape(o["read"])
        others = (o["forget"] >= 0) + 2 * bool(o["is_delta"])
        return self.count(o["memory"]) * steps * (2 + 2 * group + others)

    def conv(self, instruction: Decoded, o: dict[str, int]) -> int:
        return self.count(o["y"]) * (2 * prod(self.shape(o["w"])[1:]) + (o["bias"] >= 0))

    def conv_rows(self, instruction: Decoded, o: dict[str, int]) -> int:
        taps = o["kernel_h"] * o["kernel_w"] * (self.shape(o["x"])[3] if "packed" in o else 1)
        return self.count(o["y"]) * (2 * taps + (o["bias"] >= 0))

    def pool(self, instruction: Decoded, o: dict[str, int]) -> int:
        return self.count(o["y"]) * o["kernel_h"] * o["kernel_w"]

    def expression(self, instruction: Decoded, o: dict[str, int]) -> int:
        expression = instruction.expression
        assert expression is not None
        per_element = sum(operation.row.flops for operation in expression.operations)
        return per_element * self.count(expression.outputs[0][0])

    def reduce(self, instruction: Decoded, o: dict[str, int]) -> int:
        return self.count(o["x"]) * (2 if REDUCTIONS[o["kind"]] == "sum_square" else 1)

    def reduce_numbers(self, instruction: Decoded, o: dict[str, int]) -> int:
        return self.count(o["x"])

    def fft(self, instruction: Decoded, o: dict[str, int]) -> int:
        """5 n log n real operations for n complex numbers, half of it for real ones."""
        kind = FFTS[o["kind"]]
        rows, length = self.shape(o["y" if kind == "irfft" else "x"])
        is_real = kind in ("rfft", "irfft")
        n = length if is_real else length // 2
        return rows * 5 * n * (n.bit_length() - 1) // (2 if is_real else 1)


def _cell_op(instruction: Decoded) -> str:
    if instruction.name == "small_sequence":
        return CELL_OPS[CELLS_OF_PLANS[instruction.named()["cell"]]]
    return CELL_OPS[instruction.name.removesuffix("_cell").removesuffix("_sequence")]


_FLOPS: dict[str, Callable[[Costs, Decoded, dict[str, int]], int]] = {
    "gemm": Costs.gemm,
    "linear_attention": Costs.linear_attention,
    "conv": Costs.conv,
    "conv_rows": Costs.conv_rows,
    "depthwise": Costs.conv_rows,
    "small_rows": Costs.conv_rows,
    "pool": Costs.pool,
    "pool_rows": Costs.pool,
    "expression": Costs.expression,
    "reduce": Costs.reduce,
    "fft": Costs.fft,
}
