"""Plans as text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.corpus import samples
from tests.plan.harness import graph_of, plan_of
from tests.plan.test_control import branches
from tests.plan.test_fused_sequences import recurrence
from tests.plan.test_loops import _counting, _nested
from webrnn.errors import PlanError
from webrnn.plan.file import PlanFile
from webrnn.plan.instructions import INSTRUCTIONS
from webrnn.plan.text import plan_text


def code(data: bytes, **sizes: int) -> list[str]:
    text = plan_text(data, sizes or None)
    return text[text.index("\ncode\n") + 6 :].splitlines()


def test_every_operand_has_a_name_of_its_own():
    for row in INSTRUCTIONS:
        names = [operand.name for operand in row.operands]
        assert all(names), row.name
        assert len(set(names)) == len(names), row.name


def test_all_of_a_small_plan():
    data = plan_of(
        graph_of(lambda b, x: b.op("MatMul", x, b.constant(np.ones((4, 9), np.float32)), name="dense"), "f n 4")
    )
    assert (
        plan_text(data)
        == f"""\
plan version 5, {len(data)} bytes
weights      256 B
instructions 1 in 9 words
tensors      3 in 3 buffers
named sizes  n
arena        0 slots; how large depends on the named sizes

inputs
  name  type  shape
  x0    f32   [n, 4]

outputs
  name   type  shape
  dense  f32   [n, 9]

code
  gemm x=x0[n, 4], packed=weights@0[64] -> y=dense[n, 9]  # dense"""
    )


def test_given_sizes():
    data = plan_of(graph_of(lambda b, x: b.op("Exp", b.op("Transpose", b.op("Softmax", x))), "f n 4"))
    text = plan_text(data, {"n": 5})
    assert "arena        128 bytes in 1 slots for n=5\n" in text
    assert "x0    f32   [5, 4]" in text
    assert code(data, n=5)[-1].startswith("  exp[4, 5] = exp(slot0[4, 5]/[1, 4])")
    with pytest.raises(PlanError, match="no number for the size n"):
        plan_text(data, {"m": 5})


def test_expressions_are_spelled_out():
    def build(b, x, y):
        total = b.op("Add", x, b.op("Mul", y, b.constant(np.float32(0.5))))
        return b.op("Where", b.op("Less", x, y), b.op("LeakyRelu", total, alpha=0.1), x)

    assert code(plan_of(graph_of(build, "f 3", "f 3"))) == [
        "  slot0[3] = x1[3] * 0.5  # -> mul",
        "  slot0[3] = x0[3] + slot0[3]  # -> add",
        "  slot1[3] = x0[3] < x1[3]  # -> less",
        "  slot0[3] = leaky_relu(slot0[3], 0.1, 0)  # -> leakyrelu",
        "  where[3] = select(slot1[3], slot0[3], x0[3])  # -> where",
    ]


def test_what_an_expression_uses_twice_has_a_name():
    (sample,) = [sample for sample in samples() if sample.name == "expressions"]
    assert any(line.startswith("  ") for line in code(sample.data))
    from tests.plan.test_elementwise import _expression

    def body(e, x, y):
        total = e.op("Add", x, y)
        return [e.op("Mul", total, e.op("Tanh", total))]

    assert code(plan_of(graph_of(lambda b, x, y: _expression(b, [x, y], body), "f 3", "f 3"))) == [
        "  t0 = x0[3] + x1[3]  # -> y0",
        "  y0[3] = t0 * tanh(t0)",
    ]


def test_loops_and_branches_are_nested():
    lines = code(plan_of(_nested(True, True)))
    assert any(line.startswith("  loop steps steps  # outer") for line in lines)
    assert any(line.startswith("    loop 4 steps  # inner") for line in lines)
    assert "    between steps x[4, 3] moves by 12" in lines or any("moves by 3" in line for line in lines)
    assert any(" goes to " in line for line in lines)
    assert "  after the last step" in lines
    lines = code(plan_of(graph_of(lambda b, x, y: _counting(b, x, y), "f", "f"), most_steps=99))
    assert any("99 steps, raises if there would be more, while slot" in line for line in lines)
    assert any("counted in slot" in line for line in lines)

    def build(b, p, x):
        return branches(b, p, [x], lambda i, x: [i.op("Tanh", x)], lambda i, x: [x])

    assert code(plan_of(graph_of(build, "b", "f 3"))) == [
        "  if x0[]  # -> if0",
        "    if0[3] = tanh(x1[3])  # -> tanh",
        "  else",
        "    copy x=x1[3] -> y=if0[3]  # -> if0",
    ]


def test_cells_name_their_activations():
    (line,) = [line for line in code(plan_of(recurrence("LstmCell", 3))) if "lstm_sequence" in line]
    assert "activations=sigmoid tanh tanh, couple=0 -> scratch=slot0[n, 12], final=" in line


def test_every_sample_can_be_printed():
    for sample in samples():
        assert "\ncode\n" in plan_text(sample.data)
        assert "arena" in plan_text(sample.data, dict(zip(PlanFile(sample.data).symbols, sample.symbols, strict=True)))
