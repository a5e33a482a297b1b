"""A plan as text, from its bytes alone: `print(plan_text(data))`.

A tensor is written as the memory that it lies in, its shape and, where it has gaps, its strides and its offset in
elements: `x[t, 3]`, `slot2[n, 4]/[1, n]+8`. Memory is an input or output of that name, a slot of the arena, or weights
at a byte of the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isinf

from webrnn.ir import Dim, Symbol
from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.dims import LateName
from webrnn.tables import bytes_text, table

from .decode import Decoded, Expression, Operation, Tables, decode, float_of
from .file import PlanFile, PlanPort, evaluated
from .instructions import HAS_SIZES, NAMES, OperandRow
from .stored_pool import pool_text
from .stored_timing import timing_text
from .verify import arena_bytes, bound_sizes, verify
from .views import dense_strides

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "equal": "==", "less": "<", "less_or_equal": "<=", "greater": ">",
    "greater_or_equal": ">=", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
LOOP_NOTES = {
    "condition": "if", "body_condition": "while", "iteration": "counted in", "taken": "their number to"
}  # fmt: skip
STRICTNESS_NOTES = ("", "raises if there would be more", "raises if more are asked for", "chunks of a loop")


def plan_text(data: bytes, sizes: Mapping[str, int] | None = None) -> str:
    """The header, inputs, outputs and instructions of a plan; with numbers for its named sizes, as it is for these."""
    verify(data, sizes)
    return _Printer(PlanFile(data), decode(data), sizes).text()


def instruction_texts(data: bytes, sizes: Mapping[str, int]) -> dict[int, str]:
    """The text of each instruction, by the word of the code that it starts at; of a loop or a branch its first line."""
    printer = _Printer(PlanFile(data), decode(data), sizes)
    return {instruction.at: printer.line(instruction) for instruction in walk(printer.tables.code)}


class _Printer:
    def __init__(self, file: PlanFile, tables: Tables, sizes: Mapping[str, int] | None):
        self.file, self.tables = file, tables
        self.numbers = None if sizes is None and file.symbols else [(sizes or {})[name] for name in file.symbols]
        self.dims = self._dims()
        self.memory = self._memory()
        self.labels = dict(file.nodes)

    def text(self) -> str:
        parts = [
            "\n".join(self._facts()),
            self._ports("inputs", self.file.inputs),
            self._ports("outputs", self.file.outputs),
            *self._stored(),
            "\n".join(["code", *self._block(self.tables.code, 1)]),
        ]
        return "\n\n".join(parts)

    def _stored(self) -> Iterator[str]:
        if self.file.states:
            rows = [(s.input, s.output, "zeros" if s.start is None else "values") for s in self.file.states]
            yield table("states", rows, ("input", "from output", "starts from"))
        if self.file.pool is not None:
            yield pool_text(self.file.pool, self.file)
        if self.file.timing is not None:
            yield timing_text(self.file.timing)
        if self.file.about:
            yield "about\n  " + json.dumps(self.file.about, ensure_ascii=False)

    # --- tables ------------------------------------------------------------------------------------------------------

    def _dims(self) -> list[Dim]:
        """All sizes: numbers, or as the file has them in terms of its symbols."""
        if self.numbers is not None:
            return list(evaluated(self.tables.sizes, self.numbers, _late_symbol))
        return list(evaluated(self.tables.sizes, [Symbol(name) for name in self.file.symbols], _late_symbol))

    def _memory(self) -> list[str]:
        names = {port.external: port.name for port in (*self.file.inputs, *self.file.outputs)}
        kinds = {"arena": "slot{}", "constant": "weights@{}", "external": "external{}"}
        return [
            names[buffer.place]
            if buffer.kind == "external" and buffer.place in names
            else kinds[buffer.kind].format(buffer.place)
            for buffer in self.tables.buffers
        ]

    def _facts(self) -> Iterator[str]:
        header = self.tables.header
        n_bytes, in_file = len(self.file.data), self.file.file_bytes
        stored = "" if in_file == n_bytes else f", {in_file:,} in the file, which has half floats"
        yield f"plan version {header['version']}, {n_bytes:,} bytes{stored}"
        yield f"weights      {bytes_text(header['data_bytes'])}"
        yield f"instructions {sum(1 for _ in walk(self.tables.code))} in {header['code_words']} words"
        yield f"tensors      {header['tensors']} in {header['buffers']} buffers"
        if self.numbers is None:
            yield f"named sizes  {', '.join(self.file.symbols)}"
            yield f"arena        {header['slots']} slots; how large depends on the named sizes"
        else:
            given = [f"{name}={n}" for name, n in zip(self.file.symbols, self.numbers, strict=True)]
            n_bytes = arena_bytes(self.tables, bound_sizes(self.tables, self.numbers))
            suffix = f" for {', '.join(given)}" if given else ""
            yield f"arena        {n_bytes:,} bytes in {header['slots']} slots{suffix}"

    def _ports(self, title: str, ports: list[PlanPort]) -> str:
        rows = [(port.name, port.dtype, self._list(port.sizes)) for port in ports]
        return table(title, rows, ("name", "type", "shape"))

    def _list(self, indices: tuple[int, ...]) -> str:
        return f"[{', '.join(str(self.dims[index]) for index in indices)}]"

    def _tensor(self, index: int) -> str:
        tensor = self.tables.tensors[index]
        shape = [self.dims[size] for size in tensor.shape]
        text = f"{self.memory[tensor.buffer]}{self._list(tensor.shape)}"
        dense = dense_strides(shape)
        strides = [self.dims[stride] for stride in tensor.strides]
        if any(size != 1 and stride != want for size, stride, want in zip(shape, strides, dense, strict=True)):
            text += f"/{self._list(tensor.strides)}"
        offset = self.dims[tensor.offset]
        return text if offset == 0 else f"{text}+{f'({offset})' if ' ' in str(offset) else offset}"

    # --- instructions ------------------------------------------------------------------------------------------------

    def _block(self, block: list[Decoded], depth: int) -> Iterator[str]:
        for instruction in block:
            yield from self._instruction(instruction, depth)

    def line(self, instruction: Decoded) -> str:
        """An instruction without its blocks and without its node."""
        if instruction.name == "loop":
            return f"loop {self._loop_head(instruction)}"
        if instruction.name == "beside":
            return "side by side"
        if instruction.name == "branch":
            return f"if {self._tensor(instruction.operands[0])}"
        if instruction.expression is not None:
            return "; ".join(self._expression(instruction.expression))
        return self._operands(instruction)

    def _instruction(self, instruction: Decoded, depth: int) -> Iterator[str]:
        pad = "  " * depth
        label = self.labels.get(instruction.at, "")
        note = f"  # {label}" if label else ""
        if instruction.name == "loop":
            yield f"{pad}loop {self._loop_head(instruction)}{note}"
            for move in instruction.moves:
                if move.follows >= 0:
                    yield f"{pad}  between steps {self._tensor(move.tensor)} goes to {self._tensor(move.follows)}"
                else:
                    after = self.dims[move.after]
                    late = "" if after == 0 else f", after {after} steps"
                    yield f"{pad}  between steps {self._tensor(move.tensor)} moves by {self.dims[move.stride]}{late}"
            yield from self._titled(pad, ("", "after the last step"), instruction.blocks, depth)
        elif instruction.name == "beside":
            yield f"{pad}side by side{note}"
            yield from self._titled(pad, ("", "and"), instruction.blocks, depth)
        elif instruction.name == "branch":
            yield f"{pad}if {self._tensor(instruction.operands[0])}{note}"
            yield from self._titled(pad, ("", "else"), instruction.blocks, depth)
        elif instruction.expression is not None:
            for line in self._expression(instruction.expression):
                yield f"{pad}{line}{note}"
                note = ""
        else:
            yield f"{pad}{self._operands(instruction)}{note}"

    def _titled(self, pad: str, titles: tuple[str, str], blocks: list[list[Decoded]], depth: int) -> Iterator[str]:
        for title, block in zip(titles, blocks, strict=True):
            if title and block:
                yield f"{pad}{title}"
            yield from self._block(block, depth + 1)

    def _loop_head(self, loop: Decoded) -> str:
        o = loop.named()
        if o["steps_tensor"] >= 0:
            parts = [f"{self._tensor(o['steps_tensor'])} steps, at most {self.dims[o['most']]}"]
        else:
            parts = [f"{self.dims[o['most' if o['steps'] < 0 else 'steps']]} steps"]
        if 0 < o["strictness"] < len(STRICTNESS_NOTES):
            parts.append(STRICTNESS_NOTES[o["strictness"]])
        parts += [f"{text} {self._tensor(o[name])}" for name, text in LOOP_NOTES.items() if o[name] >= 0]
        return ", ".join(parts)

    def _operands(self, instruction: Decoded) -> str:
        reads: list[str] = []
        writes: list[str] = []
        numbers: list[str] = []
        for form, word in zip(instruction.row.operands, instruction.operands, strict=True):
            if form.is_tensor:
                if word >= 0:
                    (writes if form.is_written else reads).append(f"{form.name}={self._tensor(word)}")
            elif form.type != "zero":
                numbers.append(f"{form.name}={self._number(form, word)}")
        if instruction.name == "let":
            return f"let {numbers[0].removeprefix('size=')} = {reads[0].removeprefix('value=')}, {numbers[1]}"
        if instruction.name in HAS_SIZES:
            reads.append(self._list(tuple(instruction.rest)))
        arrow = f" -> {', '.join(writes)}" if writes else ""
        return f"{instruction.name} {', '.join([*reads, *numbers])}{arrow}"

    def _number(self, form: OperandRow, word: int) -> str:
        if form.is_size:
            return str(self.dims[word])
        if form.type == "float":
            return f"{float_of(word):g}"
        kind, _, count = form.type.partition("*")
        names = ACTIVATIONS if kind == "activation" else NAMES.get(kind)
        if names is None:
            return str(word)
        return " ".join(names[word >> 8 * i & 255] for i in range(int(count or 1)))

    def _expression(self, expression: Expression) -> Iterator[str]:
        """Assignments; what is used more than once has a line of its own."""
        texts = [self._tensor(tensor) for tensor in expression.inputs]
        texts += [_constant_text(dtype, number) for dtype, number in expression.constants]
        first = len(texts)
        uses = [0] * (first + len(expression.operations))
        for operation in expression.operations:
            for operand in operation.operands:
                uses[operand] += 1
        for _, register in expression.outputs:
            uses[register] += 1
        for index, operation in enumerate(expression.operations):
            text = _operation_text(operation, texts)
            if uses[first + index] > 1:
                yield f"t{index} = {text[1:-1] if _is_wrapped(text) else text}"
                text = f"t{index}"
            texts.append(text)
        for tensor, register in expression.outputs:
            text = texts[register]
            yield f"{self._tensor(tensor)} = {text[1:-1] if _is_wrapped(text) else text}"


def _late_symbol(index: int) -> Dim:
    return Symbol(LateName(f"late{index}"))


def walk(block: list[Decoded]) -> Iterator[Decoded]:
    """All instructions in the order of the code, outer ones first."""
    for instruction in block:
        yield instruction
        for inner in instruction.blocks:
            yield from walk(inner)


def _operation_text(operation: Operation, texts: list[str]) -> str:
    row = operation.row
    operands = [texts[register] for register in operation.operands]
    if row.base in SIGNS:
        return f"({operands[0]} {SIGNS[row.base]} {operands[1]})"
    if row.kernel == "activation":
        operands += [f"{operation.alpha:g}", f"{operation.beta:g}"]
    arguments = ", ".join(operands)
    return f"{row.base}{arguments}" if _is_wrapped(arguments) else f"{row.base}({arguments})"


def _is_wrapped(text: str) -> bool:
    """Whether the first bracket closes at the end.

    >>> _is_wrapped("(a + b)"), _is_wrapped("(a) + (b)"), _is_wrapped("f(a)")
    (True, False, False)
    """
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and index < len(text) - 1:
            return False
    return True


def _constant_text(dtype: str, number: float | int) -> str:
    if dtype not in ("f32", "f64"):
        return str(bool(number)).lower() if dtype == "bool" else str(number)
    digits = 9 if dtype == "f32" else 17
    return f"{number:g}" if isinf(number) or number != number else f"{number:.{digits}g}"
