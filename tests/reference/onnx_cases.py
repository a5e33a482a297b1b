"""Runs a case of ONNX's node suite on the op functions alone, decoded with the `onnx` package.

No reader and no executor are involved: graphs are walked in order, sub-graphs and older opsets are left to the
conformance tests of the session.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from webrnn.checks import arrays
from webrnn.reference import narrow

RECURRENT = {"RNN", "GRU", "LSTM", "Scan", "Loop", "If", "SequenceMap"}


@cache
def node_cases() -> dict[str, Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


@cache
def newest_version(domain: str, op_type: str) -> int:
    schemas = (s for s in defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, op_type))
    return max((schema.since_version for schema in schemas), default=0)


def at_newest_opset(model: onnx.ModelProto) -> bool:
    """Whether each node has the semantics that the reference implements."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        try:
            schema = defs.get_schema(node.op_type, versions.get(node.domain, 0), node.domain)
        except defs.SchemaError:
            return False
        if schema.since_version != newest_version(node.domain, node.op_type):
            return False
    return True


def to_webrnn(value: Any) -> Any:
    """A value of the suite as webrnn carries it."""
    if isinstance(value, list):
        return [to_webrnn(item) for item in value]
    if isinstance(value, onnx.TensorProto):
        return to_webrnn(numpy_helper.to_array(value))
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        layout = next((t for t in narrow.TYPES.values() if t.name in _spellings(value.dtype.name)), None)
        if layout:
            bits = value.view(np.uint16 if layout.bits == 16 else np.uint8)
            return narrow.from_bits(bits & ((1 << layout.bits) - 1), layout)
        return value.astype(object) if value.dtype.kind in "SUT" else value
    return value


def _spellings(ml_dtypes_name: str) -> tuple[str, ...]:
    """ml_dtypes adds 'fn' or 'fnu' to some names that ONNX spells without."""
    name = ml_dtypes_name.replace("_", "")
    return name, name.removesuffix("fn") if name.endswith(("e2m1fn", "e2m3fn", "e3m2fn")) else name.removesuffix("fnu")


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: _attribute(helper.get_attribute_value(a)) for a in node.attribute}


def _attribute(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return to_webrnn(value)
    if isinstance(value, list) or type(value).__name__.startswith("Repeated"):
        return [_attribute(item) for item in value]
    return value


def run_graph(graph: onnx.GraphProto, feeds: dict[str, Any]) -> list[Any]:
    values = {"": None, **feeds}
    for initializer in graph.initializer:
        values.setdefault(initializer.name, to_webrnn(initializer))
    for node in graph.node:
        inputs = [values[name] for name in node.input]
        outputs = arrays.call(node.op_type, node.domain, inputs, attributes(node), len(node.output))
        values.update(zip(node.output, outputs, strict=True))
    return [values[output.name] for output in graph.output]


def run_case(case: Any) -> None:
    """Run all data sets of a case and compare values, shapes and types."""
    graph = case.model.graph
    for inputs, expected in case.data_sets:
        feeds = {i.name: to_webrnn(v) for i, v in zip(graph.input, inputs, strict=False)}
        for result, wanted in zip(run_graph(graph, feeds), expected, strict=True):
            assert_same(result, to_webrnn(wanted), case.rtol, case.atol)


def assert_same(result: Any, wanted: Any, rtol: float, atol: float) -> None:
    if wanted is None or isinstance(wanted, list):
        assert type(result) is type(wanted)
        for a, b in zip(result or [], wanted or [], strict=True):
            assert_same(a, b, rtol, atol)
        return
    assert isinstance(result, np.ndarray)
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.shape
    if wanted.dtype.names:
        result, wanted = narrow.decode(result), narrow.decode(wanted)
    if wanted.dtype == object:
        np.testing.assert_array_equal(result, wanted)
    else:
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol)
