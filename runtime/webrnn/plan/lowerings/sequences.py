"""Scans that are nothing but one recurrent cell: whole sequences in one instruction.

The projection of the input, a Linear or a lookup in a table that only the Scan reads, is done in chunks of about
CHUNK steps between them: its result stays in the cache, and takes the same memory however long the sequence is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from webrnn.ir import WEBRNN, Dim, DType, Graph, Node, Scan, Value, is_plain, is_scan
from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.dims import floor_divide
from webrnn.ir.fused import is_linear, is_small_linear
from webrnn.ir.scan import SequenceInput, State
from webrnn.shapes.infer import trip_count

from ..draft import LoopInstruction
from ..instructions import CHUNKS
from ..lowering import Lowering
from ..views import View, count_of
from ..widening import widened

CHUNK = 24
"""Steps that are projected at a time where the number of steps is not known: a multiple of the rows of a tile."""
LARGE_WEIGHTS, LARGE_CHUNK = 2**19, 256
"""Elements of recurrent weights from which on those of the projection come from afar, and are read less often."""

_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.BFLOAT16)
"""The others are computed in float32, and what comes out is rounded."""

_INSTRUCTIONS = {"RnnCell": "rnn_sequence", "GruCell": "gru_sequence", "LstmCell": "lstm_sequence"}


@dataclass
class CellLoop:
    """A body that is one product of a state with weights, the same in all steps, and one cell."""

    node: Node
    xw: SequenceInput
    h: State
    c: State | None
    n_steps: Dim
    product: Node
    weights: Value
    """This and the next two are values around the loop, or constants of its body."""
    bias: Value | None
    peephole: Value | None
    n_weights: Dim
    extra: list[int] = field(default_factory=list)

    @property
    def usual_chunk(self) -> int:
        is_large = isinstance(self.n_weights, int) and self.n_weights >= LARGE_WEIGHTS
        return LARGE_CHUNK if is_large else CHUNK

    @property
    def chunk(self) -> int:
        """Of a known number of steps all chunks are of about the same length: a short one reads all weights as well. It
        is even: products of many rows take two or three of them at a time."""
        if not isinstance(self.n_steps, int):
            return self.usual_chunk
        n_chunks = max(1, round(self.n_steps / self.usual_chunk))
        return -(-self.n_steps // (2 * n_chunks)) * 2

    @property
    def instruction(self) -> str:
        return _INSTRUCTIONS[self.node.op]

    @property
    def is_small(self) -> bool:
        return is_small_linear(self.product)


def match_cell(l: Lowering, scan: Scan) -> CellLoop | None:
    """The cell of a Scan that is nothing but one."""
    n_steps = trip_count(scan, l.facts)
    if n_steps is None or scan.iteration is not None or len(scan.body.nodes) != 2:
        return None
    product, node = scan.body.nodes
    is_cell = node.domain == WEBRNN and node.op in _INSTRUCTIONS
    is_product = is_linear(product) or is_small_linear(product) or is_plain(product, "MatMul")
    if not is_cell or not is_product or len(scan.states) != (2 if node.op == "LstmCell" else 1):
        return None
    h = scan.states[0] if scan.states[0].body_out is node.outputs[0] else scan.states[-1]
    c = next((state for state in scan.states if state is not h), None)
    (h_in,) = h.body_in
    sequences = [item for item in scan.sequences if item.element is node.inputs[0]]
    connected = (
        len(sequences) == 1
        and h.body_out is node.outputs[0]
        and product.inputs[0] is h_in
        and product.outputs[0] is node.inputs[1]
        and (c is None or (node.inputs[2] is c.body_in[0] and c.body_out is node.outputs[1]))
        and (node.op != "GruCell" or node.inputs[2] is h_in)
        and all(trace.element is h.body_out and trace.spec.keep is trace.spec.length is None for trace in scan.traces)
        and len(scan.traces) <= 1
    )
    if not connected or not _has_shapes(l, sequences[0], h):
        return None
    outside: dict[Value | None, Value | None] = {item.inner: item.outer for item in scan.invariants}
    outside |= {value: value for value in scan.body.constants} | {None: None}
    weights, bias = _weights_and_bias(product)
    peephole = node.inputs[3] if c is not None and len(node.inputs) > 3 else None
    sizes = [size for size in l.facts.shape(weights) or () if size is not None]
    if not {weights, bias, peephole} <= outside.keys() or len(sizes) != 2:
        return None
    extra = [int(node.attrs["couple"])] if c is not None else []
    outer = _present(outside[weights]), outside[bias], outside[peephole]
    return CellLoop(node, sequences[0], h, c, n_steps, product, *outer, count_of(sizes), extra)


def _weights_and_bias(product: Node) -> tuple[Value | None, Value | None]:
    bias = 3 if is_small_linear(product) else 2
    return product.inputs[1], product.inputs[bias] if len(product.inputs) > bias else None


def _has_shapes(l: Lowering, xw: SequenceInput, h: State) -> bool:
    """[steps, rows, gates] and [rows, hidden]"""
    state = l.facts.shape(h.body_in[0])
    wide = l.facts.shape(xw.whole)
    return l.facts.dtype(h.body_in[0]) in _FLOATS and (
        wide is not None and len(wide) == 3 and state is not None and len(state) == 2 and l.facts.shape(h.init) == state
    )


def late_projections(l: Lowering, graph: Graph) -> dict[Value, Node]:
    """The products whose result only the loop of a cell reads, which makes them itself, by their result."""
    producers, consumers = graph.producers(), graph.consumers()
    found = {}
    for node in graph.nodes:
        cell = match_cell(l, Scan.of(node)) if is_scan(node) else None
        if cell is None or l.facts.dtype(cell.xw.whole) is not DType.FLOAT:
            continue
        whole = cell.xw.whole
        product = producers.get(whole)
        is_private = len(consumers.get(whole, [])) == 1 and whole not in graph.outputs
        if product is None or not is_private or cell.xw.spec.axis % 3:
            continue
        if (is_linear(product) or is_small_linear(product) or _is_lookup(l, product)) and not (
            isinstance(cell.n_steps, int) and cell.n_steps <= 2 * cell.usual_chunk
        ):
            found[whole] = product
    return found


def _is_lookup(l: Lowering, node: Node) -> bool:
    """Whether it takes a row of a constant table for each step and row of a sequence."""
    if not is_plain(node, "Gather") or node.attrs.get("axis", 0) or l.array(node.inputs[1]) is not None:
        return False
    table = l.array(node.inputs[0])
    return table is not None and table.ndim == 2 and l.facts.of(node.inputs[1]).rank == 2


def lower_sequence(l: Lowering, scan: Scan, cell: CellLoop) -> None:
    l.arrays.update(scan.body.constants)
    trace, late = _trace(l, scan, cell.n_steps)
    states = [state for state in (cell.h, cell.c) if state is not None]
    finals = [_final(l, state) for state in states]
    product = l.late.get(cell.xw.whole)
    if product is None:
        starts = [_start(l, state.init) for state in states]
        _emit(l, cell, _whole_input(l, cell), starts, finals, trace)
    else:
        for state, final in zip(states, finals, strict=True):
            l.copy(l.view(state.init), final)
        _emit_in_chunks(l, cell, product, finals, trace)
    if late is not None:
        l.cast_to(*late) if late[0].dtype != late[1].dtype else l.copy(*late)
    for state, final in zip(states, finals, strict=True):
        if state.final is not None and l.dtype(state.final) != "f32":
            l.cast_to(final, l.output(state.final))


def _start(l: Lowering, value: Value) -> View:
    array = l.array(value)
    return l.dense(l.cast(l.view(value), "f32")) if array is None else l.constant(_in_floats(l, array))


def _in_floats(l: Lowering, array: np.ndarray) -> np.ndarray:
    is_narrow = array.dtype != np.float32
    return l.once((id(array), "as f32"), array, lambda: widened(array, "f32")) if is_narrow else array


def activations(l: Lowering, node: Node) -> tuple[View, int]:
    """The parameters of a cell's activations as a constant, and their numbers, a byte each."""
    codes = [ACTIVATIONS.index(name) for name in node.attrs["activations"]]
    return l.number_vector(tuple(node.attrs["params"])), sum(code << 8 * i for i, code in enumerate(codes))


def _emit(l: Lowering, cell: CellLoop, xw: View, starts: list[View], finals: list[View], trace: View | None) -> None:
    if cell.is_small:
        _emit_small(l, cell, xw, starts, finals, trace)
        return
    params, acts = activations(l, cell.node)
    scratch = l.temporary((finals[0].shape[0], xw.shape[-1]))
    packed, bias = _packed(l, cell.weights), _vector(l, cell.bias)
    peephole = [] if cell.c is None else [_vector(l, cell.peephole)]
    l.emit(cell.instruction, xw, packed, bias, *starts, *peephole, scratch, *finals, trace, params, acts, *cell.extra)


def _emit_small(
    l: Lowering, cell: CellLoop, xw: View, starts: list[View], finals: list[View], trace: View | None
) -> None:
    from .small import constant_shape, packed, rounded_rows  # a page waits for what is imported

    (h, c), (final, c_final) = ([*states, None][:2] for states in (starts, finals))
    rounded = rounded_rows(l, constant_shape(l, cell.weights)[0])
    scratch = l.temporary((finals[0].shape[0], xw.shape[-1]))
    scale = l.view(_present(cell.product.inputs[2]))
    l.emit(
        "small_sequence", xw, packed(l, cell.weights), scale, _vector(l, cell.bias), h, c, _vector(l, cell.peephole),
        scratch, rounded, final, c_final, trace, *activations(l, cell.node), *(cell.extra or [0]),
        list(_INSTRUCTIONS).index(cell.node.op), cell.product.attrs["range"],
    )  # fmt: skip


def _packed(l: Lowering, value: Value) -> View:
    array = l.array(value)
    return l.packed_matrix(value) if array is None else l.packed(_in_floats(l, array))


def _vector(l: Lowering, value: Value | None) -> View | None:
    return None if value is None else _start(l, value)


def _whole_input(l: Lowering, cell: CellLoop) -> View:
    whole = l.cast(l.view(cell.xw.whole), "f32")
    axis = cell.xw.spec.axis % 3
    xw = whole.transposed([axis, *(a for a in range(3) if a != axis)])
    return _in_time(xw if _rows_are_dense(xw) else l.dense(xw), cell.xw.spec.reverse, cell.n_steps)


def _emit_in_chunks(l: Lowering, cell: CellLoop, product: Node, states: list[View], trace: View | None) -> None:
    """A loop over whole chunks, then what is left; the states are updated in place."""
    if not is_plain(product, "Gather"):
        x = l.view(_present(product.inputs[0]))
        l.require_equal(x.shape[2], l.shape(_present(product.inputs[1]))[0])
    else:
        from .indexing import indices  # a page waits for what is imported

        x = l.dense(indices(l, _present(product.inputs[1]))).with_axis(2)
    if not _rows_are_dense(x) or (x.strides[0] != x.shape[1] * x.shape[2] and x.shape[1] != 1):
        x = l.dense(x)
    matrices = [*(product.inputs[1:2] if is_linear(product) else ()), *(() if cell.is_small else (cell.weights,))]
    for matrix in matrices:
        _packed(l, _present(matrix))  # before the loop
    n_chunks = floor_divide(cell.n_steps, cell.chunk)
    loop = LoopInstruction("loop", [], id=l.new_loop(), n_steps=n_chunks, most_steps=cell.n_steps, strictness=CHUNKS)
    reverse = cell.xw.spec.reverse

    def steps(count: Dim, first: Dim, moves: bool) -> None:
        x_part = _part(x, cell.n_steps - first - count if reverse else first, count)
        trace_part = None if trace is None else _part(trace, first, count)
        if moves:
            x_part = x_part.moving(loop.id, (-1 if reverse else 1) * x.strides[0] * cell.chunk)
            trace_part = trace_part and trace_part.moving(loop.id, trace_part.strides[0] * cell.chunk)
        xw = l.temporary((count, x.shape[1], l.shape(cell.weights)[1]))
        _project(l, product, x_part, xw)
        _emit(l, cell, _in_time(xw, reverse, count), states, states, trace_part)

    loop.blocks = [l.in_block(lambda: steps(cell.chunk, 0, moves=True)), []]
    l.add(loop)
    rest = cell.n_steps - n_chunks * cell.chunk
    if rest != 0:
        steps(rest, n_chunks * cell.chunk, moves=False)


def _project(l: Lowering, product: Node, x: View, xw: View) -> None:
    count, rows, width = x.shape
    stride = x.strides[0] if rows == 1 else x.strides[1]
    flat = x.relaid((count * rows, width), (stride, 1))
    target = l.reshaped(xw, (count * rows, xw.shape[2]))
    if is_small_linear(product):
        from .small import multiply

        multiply(l, product, flat, target)
        return
    if not is_linear(product):
        table = l.view(_present(product.inputs[0]))
        scan, l.node = l.node, product  # what refuses an index
        l.emit("gather", table.with_axis(0), flat.without_axis(1), target.with_axis(0))
        l.node = scan
        return
    weights, bias = [*product.inputs[1:], None][:2]
    bias_view = None if bias is None else l.dense(l.view(bias))
    l.emit("gemm", flat, _packed(l, _present(weights)), bias_view, target)


def _part(view: View, first: Dim, count: Dim) -> View:
    return view.sliced(0, first, count)


def _rows_are_dense(view: View) -> bool:
    """[t, rows, width]: the rows of a step lie behind each other."""
    _, rows, width = view.shape
    return (view.strides[2] == 1 or width == 1) and (view.strides[1] == width or rows == 1)


def _in_time(view: View, reverse: bool, n_steps: Dim) -> View:
    return view.sliced(0, n_steps - 1 if reverse else 0, n_steps, -1 if reverse else 1)


def _final(l: Lowering, state: State) -> View:
    if state.final is None or l.dtype(state.final) != "f32":
        return l.temporary(l.shape(state.body_in[0]))
    return l.dense_output(state.final)


def _trace(l: Lowering, scan: Scan, n_steps: Dim) -> tuple[View | None, tuple[View, View] | None]:
    """Where the instruction writes the trace, and what is to be copied afterwards if that is not its place."""
    if not scan.traces or scan.traces[0].whole is None:
        return None, None
    spec = scan.traces[0].spec
    whole = l.output(scan.traces[0].whole)
    axis = spec.axis % 3
    along = whole.transposed([axis, *(a for a in range(3) if a != axis)])
    if _rows_are_dense(along) and along.dtype == "f32":
        return _in_time(along, spec.reverse, n_steps), None
    between = l.temporary(along.shape)
    return _in_time(between, spec.reverse, n_steps), (between, along)


def _present(value: Value | None) -> Value:
    assert value is not None
    return value
