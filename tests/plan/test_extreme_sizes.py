"""Tensors without elements whose other sizes are nearly 2^31: nothing is walked over, and no sum of sizes overflows."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.plan.fuzzing import ADDRESS, UNDEFINED, compiler, run_plans
from tests.plan.handmade import I64, U8, Handmade
from tests.plan.test_verify import refused_by_c, refused_by_python
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.plan import opcodes
from webrnn.plan.operations import OPERATION_CODES

MOST = 2**31 - 1
NONE = -1


def _windows(name, x, y, **changes):
    plan = Handmade()
    window = {"kernel": 1, "stride": 1, "pad": 0, "dilation": 1, **changes}
    words = [window[key] for key in ("kernel", "stride", "pad", "dilation") for _ in range(2)]
    if name == "conv":
        operands = [plan.arena(x), plan.arena((y[1], window["kernel"], window["kernel"], x[1]))]
        plan.emit("conv", *operands, NONE, plan.arena(y), plan.arena((24,)), *words, 1)
    else:
        plan.emit("pool", plan.arena(x), plan.arena(y), 1, *words)
    return plan


def _rows(name, x, y, **changes):
    """Channels last."""
    plan = Handmade()
    window = {"kernel": 1, "stride": 1, "dilation": 1, **changes}
    words = [window[key] for key in ("kernel", "stride", "dilation") for _ in range(2)]
    weights = (0,) if name == "conv_rows" else (window["kernel"] ** 2, x[3])
    plan.emit(name, plan.arena(x), plan.arena(weights), NONE, plan.arena(y), *words, 0)
    return plan


def _plain(name, shapes, *numbers):
    """Tensors in the order of the instruction, None for those that are left out, then its numbers."""
    plan = Handmade()
    plan.emit(name, *[NONE if shape is None else plan.arena(shape) for shape in shapes], *numbers)
    return plan


def _gather(x, count, y):
    plan = Handmade()
    plan.emit("gather", plan.arena(x), plan.arena((count,), I64), plan.arena(y))
    return plan


def _expression(shape):
    plan = Handmade()
    copy = OPERATION_CODES["copy_f"]
    plan.emit("expression", 1, 1, 0, 1, plan.arena(shape), plan.arena(shape), 1, copy, 1, 0, 0, 0, 0, 0)
    return plan


def _sequence(name, steps, rows, hidden):
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[name]
    xw, state, trace = (steps, rows, gates * hidden), (rows, hidden), (steps, rows, hidden)
    packed, scratch = (hidden * gates * hidden,), (rows, gates * hidden)
    if name == "lstm":
        shapes = [xw, packed, None, state, state, None, scratch, state, state, trace, (7,)]
        return _plain("lstm_sequence", shapes, 0, 0)
    return _plain(f"{name}_sequence", [xw, packed, None, state, scratch, state, trace, (3 if gates == 1 else 5,)], 0)


def _memories(steps, batch, heads, group, rows, columns):
    lead = (steps, batch, heads)
    shapes = [(*lead, group, rows), (*lead, rows), (*lead, columns), (*lead, rows), None]
    return _plain("linear_attention", [*shapes, (batch, heads, rows, columns), (*lead, group, columns)], 1, 0)


EMPTY = {
    "conv without channels": _windows("conv", (1, 1, 1, 5), (1, 0, 1, MOST - 8)),
    "conv without a batch": _windows("conv", (0, 1, 5, 5), (0, 3, 5, 5)),
    "conv without rows": _windows("conv", (1, 1, 5, 5), (1, 1, 0, MOST - 8)),
    "pool without channels": _windows("pool", (1, 0, 1, 5), (1, 0, 1, MOST - 8)),
    "pool without columns": _windows("pool", (1, 1, 5, 5), (1, 1, MOST - 8, 0)),
    "pool of a batch without columns": _windows("pool", (MOST, 1, 1, 0), (MOST, 1, 1, 0)),
    "rows without filters": _rows("conv_rows", (1, 5, 5, 9), (1, 5, 5, 0)),
    "rows without a batch": _rows("conv_rows", (0, MOST, MOST, 0), (0, MOST, MOST, MOST)),
    "rows without lines": _rows("depthwise", (1, 5, 5, 0), (1, MOST, 0, 0), kernel=3),
    "pooled rows without channels": _plain("pool_rows", [(1, 5, 5, 0), (1, 1, MOST - 8, 0)], 0, 1, 1, 1, 1, 0, 0, 1, 1),
    "gemm without columns": _plain("gemm", [(MOST, 0), (0,), None, (MOST, 0)], 0, 0, 0),
    "gemm without rows": _plain("gemm", [(0, MOST), (0,), None, (0, 0)], 0, 0, 0),
    "matmul without rows": _plain("matmul", [(MOST, 0, 0), (MOST, 0, 0), (MOST, 0, 0), (0,)]),
    "matmul without columns": _plain("matmul", [(1, MOST, 0), (1, 0, 0), (1, MOST, 0), (0,)]),
    "rnn cell": _plain("rnn_cell", [(MOST, 0), (MOST, 0), (MOST, 0), (3,)], 0),
    "gru cell": _plain("gru_cell", [(MOST, 0), (MOST, 0), (MOST, 0), (MOST, 0), (5,)], 0),
    "gru reset": _plain("gru_reset", [(MOST, 0), (MOST, 0), (MOST, 0), (MOST, 0), (MOST, 0), (5,)], 0),
    "gru update": _plain("gru_update", [(MOST, 0), (MOST, 0), (MOST, 0), (MOST, 0), (MOST, 0), (5,)], 0),
    "lstm cell": _plain("lstm_cell", [(MOST, 0), (MOST, 0), (MOST, 0), None, (MOST, 0), (MOST, 0), (7,)], 0, 0),
    **{f"{name} sequence without units": _sequence(name, MOST, 1, 0) for name in ("rnn", "gru", "lstm")},
    **{f"{name} sequence without rows": _sequence(name, MOST, 0, 8) for name in ("rnn", "gru", "lstm")},
    "memories without columns": _memories(MOST, 1, 1, 1, 0, 0),
    "memories without heads": _memories(1, MOST, 0, 1, 8, 8),
    "memories without rows and steps": _memories(0, 1, 1, MOST, 0, 8),
    "reduce": _plain("reduce", [(MOST, 0, 0), (MOST, 0)], 0),
    "reduce of many": _plain("reduce", [(1, MOST, 0), (1, 0)], 0),
    "softmax": _plain("softmax", [(MOST, 0), (MOST, 0)], 0),
    "log softmax": _plain("softmax", [(MOST, 0), (MOST, 0)], 1),
    "layer norm": _plain("layer_norm", [(MOST, 0), (0,), None, (MOST, 0)], 0),
    "instance norm": _plain("instance_norm", [(MOST, 1, 0), (1,), (1,), (MOST, 1, 0)], 0),
    "batch norm": _plain("batch_norm", [(MOST, 1, 0), (1,), (1,), (1,), (1,), (MOST, 1, 0)], 0),
    "gather of nothing": _gather((MOST, 1, 0), 1, (MOST, 1, 0)),
    "gather without indices": _gather((MOST, 0, 1), 0, (MOST, 0, 1)),
    "copy": _plain("copy", [(MOST, 0), (MOST, 0)]),
    "expression": _expression((MOST, 0)),
}


def outcomes(checks) -> Counter[str]:
    """The driver cuts a run off after some milliseconds."""
    found = run_plans([(name, plan.data(), 0, ()) for name, plan in EMPTY.items()], checks)
    return Counter({name: count for name, count in found.items() if count})


@pytest.mark.parametrize("name", EMPTY)
def test_both_verifiers_accept_them(name):
    data = EMPTY[name].data()
    assert refused_by_python(data, []) == ""
    assert refused_by_c(data, []) == 0


@pytest.mark.skipif(compiler() is None, reason="no compiler here links AddressSanitizer")
def test_nothing_is_walked_over():
    assert outcomes(ADDRESS) == {"ran": len(EMPTY)}


@pytest.mark.exhaustive  # the build takes most of a minute
@pytest.mark.skipif(compiler(UNDEFINED) is None, reason="no compiler here links UBSan")
def test_no_size_overflows():
    assert outcomes(UNDEFINED) == {"ran": len(EMPTY)}


@pytest.mark.parametrize("height", [MOST - 3, MOST - 2**15])
def test_windows_whose_padding_reaches_beyond_an_int_are_refused(height):
    data = _windows("pool", (1, 1, height, 0), (1, 1, 1, 1), pad=2**15 - 1).data()
    assert refused_by_c(data, []) != 0
    assert refused_by_python(data, []) != ""


def _repeated(dtype: int) -> Handmade:
    """One element copied to itself 2^31 - 1 times: both sides stand still."""
    plan = Handmade()
    for place in range(2):
        plan.arena((1,), dtype)
        zero, most, rest = plan.number(0), plan.number(MOST), [0] * (opcodes.MAX_RANK - 1)
        plan.tensors[place] = [place, dtype, 1, zero, most, *rest, zero, *rest]
    return plan


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["copy", "expression"])
def test_a_walk_over_all_that_an_int_counts_comes_to_its_end(kind):
    plan = _repeated(U8)
    if kind == "copy":
        plan.emit("copy", 0, 1)
    else:
        code = OPERATION_CODES["copy_u"]
        plan.emit("expression", 1, 1, 0, 1, 0, 1, 1, code, 1, 0, 0, 0, 0, 0)
    program = PlanProgram(plan.data(), kernels.load("native"))
    assert program.run([]) == []
