"""FLOPs and bytes of instructions, from the sizes of their operands.

FLOPs are counted as in the optimizer's report (passes/report/flops.py). Bytes are those of the operands, each read or
written once: what a lap has to move at least, wherever that lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from webrnn.passes.report.flops import ACTIVATION_OPS, PER_ELEMENT, cell_flops
from webrnn.plan.decode import Decoded, Tables
from webrnn.plan.lowerings.cells import ACTIVATIONS
from webrnn.plan.opcodes import DTYPES, FFTS, ITEM_BYTES, REDUCTIONS

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
N_ACTIVATIONS = {"rnn": 1, "gru": 2, "lstm": 3}
STATES = {"rnn": 1, "gru": 2, "lstm": 3}
"""Blocks of the size of the state that a cell reads and writes: h', h and h', or c, c' and h'."""
CELLS = {
    "rnn_cell": "RnnCell",
    "gru_cell": "GruCell",
    "gru_reset": "GruReset",
    "gru_update": "GruUpdate",
    "lstm_cell": "LstmCell",
}
EXPRESSION_FLOPS = {"clip": 2, **ACTIVATION_OPS}
"""Of the operations that are not one."""


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
        if instruction.name in ("require", "sizes", "loop", "branch"):
            return FREE, FREE, FREE
        moved = sum(self._bytes(tensor) for tensor, _ in instruction.tensors())
        rule = _FLOPS.get(instruction.name)
        return Cost(rule(self, instruction) if rule is not None else 0, moved), FREE, FREE

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
        kind = instruction.name.partition("_")[0]
        o = instruction.operands
        final, params, activations = (o[7], o[10], o[11]) if kind == "lstm" else (o[5], o[7], o[8])
        rows, hidden = self.shape(final)
        gates = GATES[kind]
        state, wide = 4 * rows * hidden, 4 * rows * gates * hidden
        bias = rows * gates * hidden if o[2] >= 0 else 0
        product = Cost(2 * rows * gates * hidden * hidden + bias, self._bytes(o[1]) + self._bytes(o[2]) + state + wide)
        peephole, couple = (o[5] >= 0, o[12]) if kind == "lstm" else (False, 0)
        per_element = self.cell(f"{kind}_cell", activations, params, couple, peephole)
        return product, Cost(per_element * rows * hidden, 2 * wide + STATES[kind] * state)

    def _packed_product(self, instruction: Decoded) -> tuple[Cost, Cost]:
        """Packing one matrix, and one product with it."""
        a, b, *_ = instruction.operands
        _, m, k = self.shape(a)
        n = self.shape(b)[2]
        return Cost(0, 2 * 4 * k * n), Cost(2 * m * n * k, 4 * (m * k + k * n + m * n))

    # --- FLOPs -------------------------------------------------------------------------------------------------------

    def cell(self, name: str, activations: int, params: int, couple: int, peephole: bool) -> int:
        """For each element of the state."""
        names = [ACTIVATIONS[activations >> 8 * i & 255] for i in range(N_ACTIVATIONS[name.partition("_")[0]])]
        clipped = self._first_float(params) != float("inf")
        return cell_flops(CELLS[name], names, clipped, bool(couple), peephole)

    def gemm(self, instruction: Decoded) -> int:
        x, _, bias, y, activation, *_ = instruction.operands
        added = (bias >= 0) + ACTIVATION_OPS.get(ACTIVATIONS[activation], 1)
        return self.count(y) * (2 * self.shape(x)[1] + added)

    def conv(self, instruction: Decoded) -> int:
        _, weights, bias, y, *_ = instruction.operands
        return self.count(y) * (2 * prod(self.shape(weights)[1:]) + (bias >= 0))

    def pool(self, instruction: Decoded) -> int:
        _, y, _, height, width, *_ = instruction.operands
        return self.count(y) * height * width

    def expression(self, instruction: Decoded) -> int:
        expression = instruction.expression
        assert expression is not None
        operations = [operation.name for operation in expression.operations]
        per_element = sum(
            0 if name.startswith("copy_") or "_to_" in name else EXPRESSION_FLOPS.get(name, 1) for name in operations
        )
        return per_element * self.count(expression.outputs[0][0])

    def reduce(self, instruction: Decoded) -> int:
        x, _, kind = instruction.operands
        return self.count(x) * (2 if REDUCTIONS[kind] == "sum_square" else 1)

    def fft(self, instruction: Decoded) -> int:
        """5 n log n real operations for n complex numbers, half of it for real ones."""
        x, _, y, _, kind = instruction.operands
        rows, length = self.shape(x if FFTS[kind] != "irfft" else y)
        is_real = FFTS[kind] in ("rfft", "irfft")
        n = length if is_real else length // 2
        return rows * 5 * n * (n.bit_length() - 1) // (2 if is_real else 1)

    def rnn_cell(self, instruction: Decoded) -> int:
        *_, y, params, activations = instruction.operands
        return self.count(y) * self.cell(instruction.name, activations, params, 0, False)

    def lstm_cell(self, instruction: Decoded) -> int:
        _, _, _, peephole, h, _, params, activations, couple = instruction.operands
        return self.count(h) * self.cell(instruction.name, activations, params, couple, peephole >= 0)


def _per_element(op: str) -> Callable[[Costs, Decoded], int]:
    return lambda costs, instruction: PER_ELEMENT[op] * costs.count(instruction.operands[0])


_FLOPS: dict[str, Callable[[Costs, Decoded], int]] = {
    "gemm": Costs.gemm,
    "conv": Costs.conv,
    "pool": Costs.pool,
    "expression": Costs.expression,
    "reduce": Costs.reduce,
    "fft": Costs.fft,
    "rnn_cell": Costs.rnn_cell,
    "gru_cell": Costs.rnn_cell,
    "gru_reset": Costs.rnn_cell,
    "gru_update": Costs.rnn_cell,
    "lstm_cell": Costs.lstm_cell,
    "softmax": _per_element("Softmax"),
    "layer_norm": _per_element("LayerNormalization"),
    "instance_norm": _per_element("InstanceNormalization"),
    "batch_norm": _per_element("BatchNormalization"),
}
