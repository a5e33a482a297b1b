"""The table of element types against the schemas of the `onnx` package."""

from __future__ import annotations

import pytest

from webrnn.checks.types import signature
from webrnn.ir import DType
from webrnn.ops.rows import ROWS
from webrnn.reference import registered

onnx = pytest.importorskip("onnx")
COMMON = [dtype for dtype in DType if not dtype.is_narrow]


def schemas():
    return [onnx.defs.get_schema(op) for domain, op in registered() if not domain]


def allowed_by(schema, operand):
    kinds = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    return set(kinds.get(operand.type_str, [operand.type_str]))


def test_each_operand_takes_the_types_that_its_schema_lists():
    different = []
    for schema in schemas():
        for operand, (_, types, _) in zip(schema.inputs, signature(ROWS["", schema.name].operands), strict=False):
            allowed = allowed_by(schema, operand)
            if types is None or not all(kind.startswith("tensor(") for kind in allowed):
                continue
            missing = [dtype for dtype in DType if f"tensor({dtype.text})" in allowed and dtype not in types]
            extra = [d for d in COMMON if f"tensor({d.text})" not in allowed and d in types and types != set(DType)]
            if missing or extra:
                different.append((schema.name, operand.name, missing, extra))
    assert not different


def test_operands_of_one_group_are_those_of_one_type_variable():
    for schema in schemas():
        variables = {each.type_param_str for each in schema.type_constraints}
        groups: dict[str, set[str]] = {}
        for operand, (group, types, _) in zip(schema.inputs, signature(ROWS["", schema.name].operands), strict=False):
            if types is not None and operand.type_str in variables:
                groups.setdefault(operand.type_str, set()).add(group)
        assert all(len(found) == 1 for found in groups.values()), schema.name


def test_every_op_with_tensors_as_operands_is_in_the_table():
    without = {
        "Identity",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceLength",
        "ConcatFromSequence",
    }
    missing = {schema.name for schema in schemas() if schema.inputs and not signature(ROWS["", schema.name].operands)}
    assert missing <= without


def test_outputs():
    assert {schema.name: schema.max_output for schema in schemas() if schema.max_output > 1} == {
        row.op: min(row.outputs, 2**31 - 1) for row in ROWS.values() if row.outputs > 1 and not row.domain
    }
