"""Each case on each backend; onnxruntime where the verdict says that it agrees; the sentences that are cited."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import webrnn
from tests.backends import BACKENDS, INSIDE_PYODIDE, MAIN
from tests.semantics.cases import CASES

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def assert_same(result: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, list):
        assert isinstance(result, list)
        for ours, wanted in zip(result, expected, strict=True):
            assert_same(ours, wanted, tolerance)
        return
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if expected.dtype == object:
        assert result.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@every_case
def test_a_case_gives_what_is_expected_on_each_backend(case):
    for backend in BACKENDS:
        session = webrnn.InferenceSession(case.model.SerializeToString(), backend=backend)
        for result, expected in zip(session.run(None, dict(case.feeds)), case.expected, strict=True):
            assert_same(result, expected, case.tolerance)


@every_case
def test_constants_may_come_as_inputs_of_any_size(case):
    model, feeds = onnx.ModelProto(), dict(case.feeds)
    model.CopyFrom(case.model)
    for constant in case.model.graph.initializer:
        feeds[constant.name] = numpy_helper.to_array(constant)
        dims = [None] * len(constant.dims)
        model.graph.input.append(helper.make_tensor_value_info(constant.name, constant.data_type, dims))
    del model.graph.initializer[:]
    for given in model.graph.input:
        for axis, dim in enumerate(given.type.tensor_type.shape.dim):
            dim.dim_param = f"{given.name}_{axis}"
    session = webrnn.InferenceSession(model.SerializeToString(), backend=MAIN)
    for result, expected in zip(session.run(None, feeds), case.expected, strict=True):
        assert_same(result, expected, case.tolerance)


def onnxruntime_agrees(case) -> bool:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
        for result, expected in zip(session.run(None, dict(case.feeds)), case.expected, strict=True):
            assert_same(result, expected, case.tolerance)
    except Exception:
        return False
    return True


@pytest.mark.skipif(INSIDE_PYODIDE, reason="there is no onnxruntime inside Pyodide")
@every_case
def test_the_verdict_tells_what_onnxruntime_does(case):
    assert onnxruntime_agrees(case) == (case.verdict != "spec")


@pytest.mark.skipif(INSIDE_PYODIDE, reason="the schemas are in the C++ part of onnx")
@every_case
def test_the_cited_sentence_stands_in_the_specification(case):
    from onnx import defs

    schema = defs.get_schema(case.citation.op, case.citation.version, "")
    assert schema.since_version == case.citation.version
    described = [*schema.attributes.values(), *schema.inputs, *schema.outputs]
    texts = [schema.doc, *(part.description for part in described)]
    stands_there = " ".join(case.citation.sentence.split()) in " ".join(" ".join(texts).split())
    assert stands_there


def test_names_are_unique():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
