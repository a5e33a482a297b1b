"""Writes docs/ops.md: what runs where, found by trying. `python -m tests.ops.page`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onnx import ModelProto
from onnx.parser import parse_model

import webrnn
from tests.onnx.fuzz_seeds import own_seeds, with_constants
from tests.reference.onnx_cases import node_cases, to_webrnn
from webrnn.onnx import reader
from webrnn.onnx.controlflow import READERS
from webrnn.onnx.opsets import SUPPORTED
from webrnn.ops.rows import ROWS
from webrnn.passes.over_all_steps.rewrite import RULES as OVER_ALL_STEPS
from webrnn.plan.file import ELEMENT_TYPES

PAGE = Path(__file__).parents[2] / "docs/ops.md"

TYPES = set(ELEMENT_TYPES.values())
"""Those that plans have."""

MORE = (
    "(float[2, 3] x) => (int64[2, 3] y) { y = Cast <to = 7> (x) }",
    "(float[2, 3] x) => (float[2, 3] y) { s = Shape (x) y = ConstantOfShape (s) }",
    "(float[2, 16, 1] x) => (float[2, 9, 2] y) { y = DFT <onesided = 1> (x) }",
    "(float[2, 3, 4, 5] x) => (float[2, 3, 1, 1] y) { y = GlobalLpPool (x) }",
)
"""What no other case shows."""

HEAD = """# Ops

`python -m tests.ops.page` writes this page; `tests/ops/test_page.py` fails when it is out of date.

- **numpy**: the module of `reference/` that runs the op on every backend. "a loop": reading a model makes the IR's Scan
  of it.
- **shape**: the shape of its result is known before a run. **check**: a rule of `checks/` asks more of its operands
  than their types.
- **time**: models with it may run by frames (`along_time/`). **steps**: it can leave a loop, to be done for all steps
  at once (`passes/over_all_steps/`).
- **cases**: ONNX's own test cases, and webrnn's, that are one node of this op on tensors of the types that
  plans have. Operands that say how, such as axes, are constants, as they are in models.
- **plan**: how many of these become one plan, so that numpy runs nothing. **any length**: the same where the first size
  of each input is open. **all sizes**: the same where all sizes of all inputs are open, weights included; sizes that
  are equal in a case are one size, and 1 stays 1.

| op | numpy | shape | check | time | steps | cases | plan | any length | all sizes |
|---|---|---|---|---|---|---|---|---|---|
"""


def cases() -> Iterator[tuple[str, ModelProto]]:
    """Models of one node, and the op of each."""
    opset = '<ir_version: 10, opset_import: ["": 21]>'
    models = [*(parse_model(f"{opset} g {text}") for text in MORE), *(seed.model for seed in own_seeds())]
    for _, case in sorted(node_cases().items()):
        if case.model is None:
            continue
        inputs = case.data_sets[0][0] if case.data_sets else []
        try:
            feeds = {i.name: to_webrnn(v) for i, v in zip(case.model.graph.input, inputs, strict=False)}
        except TypeError:  # a kind of value that webrnn does not carry
            continue
        models.append(with_constants(case.model, feeds) or case.model)
    for model in models:
        nodes = [node for node in model.graph.node if node.op_type != "Constant"]
        types = [value.type for value in (*model.graph.input, *model.graph.output) if value.type.WhichOneof("value")]
        is_plain = all(each.tensor_type.elem_type in TYPES for each in types)
        if is_plain and model.graph.input and nodes and (len(nodes) == 1 or nodes[-1].op_type == "ConstantOfShape"):
            yield f"{nodes[-1].domain}:{nodes[-1].op_type}".removeprefix(":"), _of_a_supported_opset(model)


def _of_a_supported_opset(source: ModelProto) -> ModelProto:
    """The same at opset 7, if it is older: of one node without attributes that means the same."""
    model = ModelProto()
    model.CopyFrom(source)
    for entry in model.opset_import:
        if not entry.domain:
            entry.version = max(entry.version, min(SUPPORTED))
    return model


def with_open_sizes(source: ModelProto, only_first_axis: bool) -> ModelProto:
    """The model whose inputs have names for sizes. 1 stays: it decides how operands are repeated."""
    model = ModelProto()
    model.CopyFrom(source)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim in dims[:1] if only_first_axis else dims:
            if dim.dim_value > 1:
                dim.dim_param = f"n{dim.dim_value}"
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def has_plan(model: ModelProto) -> bool:
    try:
        session = webrnn.InferenceSession(model.SerializeToString(), backend="native")
    except webrnn.Error:
        return False
    return session._program.plan is not None


def counts() -> dict[str, tuple[int, ...]]:
    """For each op: how many cases there are, and how many plans of them, for one length, any length and all sizes."""
    found: dict[str, tuple[int, ...]] = {}
    for op, model in cases():
        forms = (model, with_open_sizes(model, True), with_open_sizes(model, False))
        before = found.get(op, (0, 0, 0, 0))
        found[op] = tuple(map(sum, zip(before, (1, *map(has_plan, forms)), strict=True)))
    return found


def page(found: dict[str, tuple[int, ...]]) -> str:
    known = {f"{row.domain}:{row.op}".removeprefix(":"): row for row in ROWS.values() if row.domain != "webrnn"}
    loops = {*READERS, *reader._RECURRENCES}
    lines = []
    for op in sorted({*known, *loops}, key=lambda name: name.rpartition(":")[2]):
        row = known.get(op)
        numpy = "a loop" if op in loops and op != "If" else "a branch" if op == "If" else row.numpy if row else ""
        marks = [] if row is None else [row.shape, row.check, row.time]
        cells = ["yes" if mark else "" for mark in [*marks, *[""] * (3 - len(marks)), op in OVER_ALL_STEPS]]
        n, *plans = map(str, found.get(op, (0, "", "", "")))
        lines.append("| " + " | ".join([op, numpy, *cells, n, *plans]) + " |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(counts()))
