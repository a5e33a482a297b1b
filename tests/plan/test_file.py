"""Plan files: what is written is what is read, and damage to the metadata raises."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from tests.backends import MAIN
from tests.passes.random_graphs import random_graph
from tests.plan.corpus import samples
from tests.plan.harness import graph_of, plan_of, run_plan
from tests.plan.test_fused_sequences import recurrence
from tests.plan.test_loops import _nested
from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Symbol, SymbolicDim
from webrnn.ir.dims import floor_divide, is_late
from webrnn.plan.decode import Decoded, Tables, decode
from webrnn.plan.draft import Draft, ExpressionInstruction, Instruction, LoopInstruction
from webrnn.plan.encode import encode, encode_again
from webrnn.plan.file import ARRAY_TYPES, PlanFile, PlanState
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered
from webrnn.plan.verify import UNSET, bound_sizes
from webrnn.plan.views import Storage, View, dense_view

NUMBERS = {"n": 2, "t": 3, "steps": 4, "m": 5}


def number(dim) -> int:
    if is_late(dim):
        return UNSET
    return dim.substitute(NUMBERS) if isinstance(dim, SymbolicDim) else dim


def check_round_trip(program: Draft) -> None:
    """Decode what was encoded, and compare with the program."""
    data = encode(program)
    tables, file = decode(data), PlanFile(data)
    sizes = bound_sizes(tables, [NUMBERS[name] for name in file.symbols])
    read_sizes = file.sizes([NUMBERS[name] for name in file.symbols])
    assert [UNSET if size is None else size for size in read_sizes] == sizes
    for port, read in zip((*program.inputs, *program.outputs), (*file.inputs, *file.outputs), strict=True):
        assert (port.name, port.dtype, port.external) == (read.name, read.dtype, read.external)
        assert [number(size) for size in port.shape] == [sizes[index] for index in read.sizes]
        assert [str(size) for size in port.shape] == [str(size) for size in read.shape]
    compare_blocks(program.code, tables.code, tables, sizes, data)


def compare_blocks(
    block: list[Instruction], read: list[Decoded], tables: Tables, sizes: list[int], data: bytes
) -> None:
    def same(view: View | None, index: int) -> None:
        if view is None:
            assert index == -1
            return
        tensor = tables.tensors[index]
        assert tuple(sizes[size] for size in tensor.shape) == tuple(map(number, view.shape))
        assert tuple(sizes[stride] for stride in tensor.strides) == tuple(map(number, view.strides))
        assert sizes[tensor.offset] == number(view.offset)
        buffer = tables.buffers[tensor.buffer]
        storage = view.storage
        assert (buffer.kind, buffer.dtype, sizes[buffer.size]) == (storage.kind, storage.dtype, number(storage.size))
        if storage.kind == "external":
            assert (buffer.place, buffer.writable) == (storage.external, storage.writable)
        if storage.kind == "constant":
            start = tables.header["data_offset"] + buffer.place
            assert data[start : start + storage.array.nbytes] == storage.array.tobytes()

    assert [one.name for one in block] == [other.name for other in read]
    for one, other in zip(block, read, strict=True):
        assert PlanFile(data).node_at(other.at) == one.node
        if isinstance(one, ExpressionInstruction):
            compare_expressions(one, other, same)
        elif isinstance(one, LoopInstruction):
            fields = (one.n_steps_view, one.condition, one.body_condition, one.iteration, one.taken)
            for view, index in zip(fields, (other.operands[i] for i in (1, 3, 4, 5, 6)), strict=True):
                same(view, index)
            assert sizes[other.operands[2]] == number(one.most_steps)
            assert (other.operands[0] == -1) == (one.n_steps is None)
            assert other.operands[11] == one.strictness
        elif one.name not in ("beside", "branch"):
            given = [*one.operands, *[0] * other.row.zeros]
            for form, operand, word in zip(other.row.operands, given, other.operands, strict=True):
                if form.is_tensor:
                    same(operand, word)
                elif form.is_size:
                    assert sizes[word] == number(operand)
                elif form.type == "float":
                    assert np.float32(operand).view(np.int32) == word
                else:
                    assert word == operand
            assert [sizes[index] for index in other.rest] == [number(dim) for dim in one.rest]
        for inner, inner_read in zip(one.blocks, other.blocks, strict=True):
            compare_blocks(inner, inner_read, tables, sizes, data)


def compare_expressions(one: ExpressionInstruction, other: Decoded, same) -> None:
    expression = other.expression
    for view, index in zip(one.inputs, expression.inputs, strict=True):
        same(view, index)
    for (view, register), (index, read) in zip(one.outputs, expression.outputs, strict=True):
        same(view, index)
        assert register == read
    assert [(op.code, op.operands) for op in one.ops] == [(op.row.name, op.operands) for op in expression.operations]
    for (dtype, want), (read_dtype, got) in zip(one.constants, expression.constants, strict=True):
        assert dtype == read_dtype
        assert got == (np.float32(want) if dtype == "f32" else want)


def test_round_trip_of_random_graphs():
    done = 0
    for seed in range(80):
        try:
            program = lower(random_graph(seed).graph)
        except NotLowered:
            continue
        check_round_trip(program)
        done += 1
    assert done > 30


def test_round_trip_of_sizes():
    n, m = Symbol("n"), Symbol("m")
    for dim in (0, -7, 2**31 - 1, n, 3 * n * m - 2, n * n - m + 4, floor_divide(n * 3 + m, 4), -1 * n):
        view = View(Storage("arena", "f32", 100), (), (), offset=dim)
        program = Draft([], [], [Instruction("copy", [view, dense_view(Storage("arena", "f32", 100), ())])])
        tables = decode(encode(program))
        file = PlanFile(encode(program))
        sizes = bound_sizes(tables, [NUMBERS[name] for name in file.symbols])
        assert sizes[tables.tensors[0].offset] == number(dim)


def test_a_size_that_is_too_large_raises():
    view = dense_view(Storage("arena", "f32", 2**31), ())
    with pytest.raises(PlanError, match="a size of"):
        encode(Draft([], [], [Instruction("copy", [view, view])]))


def test_the_same_graph_gives_the_same_bytes():
    for build in (lambda: recurrence("LstmCell", 3), lambda: _nested(True, True)):
        assert plan_of(build()) == plan_of(build())


def test_constants_are_aligned_and_shared():
    weights = np.arange(7, dtype=np.float32)

    def build(b, x):
        c = b.constant(weights)
        return b.op("Add", x, c), b.op("Mul", x, c)

    tables = decode(plan_of(graph_of(build, "f 7")))
    constants = [buffer for buffer in tables.buffers if buffer.kind == "constant"]
    assert len(constants) == 1
    assert tables.header["data_offset"] % 64 == 0
    assert constants[0].place % 64 == 0


def test_files_of_another_kind_or_version_raise():
    data = bytearray(samples()[0].data)
    for bad in (b"", b"WRNN", bytes(59), b"\x08\x07" + bytes(100)):
        with pytest.raises(PlanError):
            PlanFile(bad)
    data[4] += 2
    with pytest.raises(PlanError, match="of version 7, this webrnn reads versions 1 to 6"):
        PlanFile(bytes(data))


def _with_meta(data: bytes, meta: bytes) -> bytes:
    tables = decode(data)
    start = tables.header["meta_offset"]
    words = np.frombuffer(data[:60], np.int32).copy()
    words[14] = len(meta)
    return words.tobytes() + data[60:start] + meta


def _with_states(data: bytes) -> bytes:
    """A plan with all the states that its signature allows, and with something about it."""
    file = PlanFile(data)
    states: list[PlanState] = []
    for port in file.inputs:
        taken = [state.output for state in states]
        fitting = [o for o in file.outputs if (o.dtype, o.shape, o.is_late) == (port.dtype, port.shape, False)]
        free = [output.name for output in fitting if output.name not in taken]
        if free:
            start = np.ones([size if isinstance(size, int) else 1 for size in port.shape], ARRAY_TYPES[port.dtype])
            states.append(PlanState(port.name, free[0], start))
    return encode_again(file, states, {"audio": {"hop": 128, "names": ["a", "b"]}})


def test_states_are_read_back():
    with_starts = n_run = 0
    for sample in samples():
        stored, before = PlanFile(_with_states(sample.data)), PlanFile(sample.data)
        assert stored.about == {"audio": {"hop": 128, "names": ["a", "b"]}}
        assert (before.states, before.about) == ([], {})
        for state in stored.states:
            assert state.start is not None
            assert state.start.all()
            with_starts += 1
        again = PlanFile(encode_again(stored, None, {}))
        assert [state.input for state in again.states] == [state.input for state in stored.states]
        assert again.about == {}
        sizes = before.sizes(sample.symbols)
        arrays = [np.ones([sizes[index] for index in port.sizes], ARRAY_TYPES[port.dtype]) for port in before.inputs]
        try:
            expected = run_plan(sample.data, MAIN, [arrays])
        except (PlanError, ShapeError):  # ones, or these sizes, are not for it
            continue
        n_run += 1
        for ours, theirs in zip(run_plan(stored.data, MAIN, [arrays]), expected, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)
    assert with_starts > 10
    assert n_run > 10


STATE = {"input": "x", "output": "y"}


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({}, "damaged"),
        ([3], "does not have"),
        ([{"input": "x"}], "does not have"),
        ([{"input": "x", "output": ["y"]}], "does not have"),
        ([{"input": "y", "output": "x"}], "does not have"),
        ([{"input": "x", "output": "count"}], "another kind"),
        ([STATE, {**STATE}], "twice"),
        ([{**STATE, "start": None}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [1, 3]}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [1, 3], "offset": -1}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [1, 3], "offset": 10**9}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [2, 3], "offset": 0}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [1, 2], "offset": 0}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [3], "offset": 0}}], "'x' are damaged"),
        ([{**STATE, "start": {"shape": [1, -3], "offset": 0}}], "'x' are damaged"),
    ],
)
def test_states_that_cannot_be_raise(states, message):
    def build(b, x):
        return b.op("Tanh", x, name="y"), b.op("Shape", x, name="count")

    graph = graph_of(build, "f n 3")
    graph.inputs[0].name, graph.outputs[0].name, graph.outputs[1].name = "x", "y", "count"
    data = plan_of(graph)
    file = PlanFile(encode_again(PlanFile(data), [PlanState("x", "y", np.float32([[1, 2, 3]]))], None))
    np.testing.assert_array_equal(file.states[0].start, [[1, 2, 3]])
    meta = json.dumps({**file.meta, "states": states}).encode()
    with pytest.raises(PlanError, match=message):
        PlanFile(_with_meta(file.data, meta))


PARTS = [None, 3, -1, "x", [], {}, [[]], [1], ["n", 2], [{}], 1e400, [[1, 2, 3]], 10**30, True, [None], {"external": 0}]


def test_damaged_metadata_raise_or_do_no_harm():
    """Types that nobody expects at every place of the JSON, and cut and flipped text."""
    refused = 0
    for seed in range(1500):
        rng = random.Random(seed)
        plan = _with_states(rng.choice(samples()).data)
        header = decode(plan).header
        text = bytearray(plan[header["meta_offset"] :][: header["meta_bytes"]])
        if rng.random() < 0.6:
            meta = json.loads(text)
            _damage(meta, rng)
            text = bytearray(json.dumps(meta).encode())
        elif rng.random() < 0.7:
            text[rng.randrange(len(text))] = rng.randrange(256)
        else:
            del text[rng.randrange(len(text)) :]
        data = _with_meta(plan, bytes(text))
        try:
            file = PlanFile(data)
            assert isinstance(file.about, dict)
            for state in file.states:
                assert state.start is None or state.start.size < 100
            shapes = [tuple(3 if isinstance(size, str) else size for size in port.shape) for port in file.inputs]
            arrays = [
                np.zeros(shape, ARRAY_TYPES[port.dtype])
                for shape, port in zip(shapes, file.inputs, strict=True)
                if all(0 <= size < 100 for size in shape)
            ]
            run_plan(data, MAIN, [arrays])
        except (PlanError, ShapeError):
            refused += 1
        except ModelError as error:
            if "division by zero" not in str(error):  # what the zeros come to
                raise
        except ValueError:
            assert len(arrays) != len(file.inputs)
    assert 300 < refused < 1500


def _damage(part, rng: random.Random) -> None:
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(part[key], (dict, list)) and part[key] and rng.random() < 0.8:
            part = part[key]
            continue
        part[key] = rng.choice(PARTS)
        return
