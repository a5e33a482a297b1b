"""The built-in models, written without the `onnx` package, as that package sees them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import webrnn
from tests.plan.harness import assert_same_bits
from webrnn.bench.case import built_in, make_case
from webrnn.bench.models import BUILT_IN, FURTHER, conditioned, decoder, sequence
from webrnn.bench.onnx_file import GraphFile
from webrnn.engine.kernels.loading import available, load

NAMES = (*BUILT_IN, *FURTHER)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_valid(name):
    proto = onnx.load_from_string({**BUILT_IN, **FURTHER}[name]())
    onnx.checker.check_model(proto, full_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_onnxruntime_and_native_agree_with_numpy(name):
    case = built_in(name)
    ort = pytest.importorskip("onnxruntime").InferenceSession(case.model, providers=["CPUExecutionProvider"])
    for results in (ort.run(None, case.feeds), webrnn.InferenceSession(case.model).run(None, case.feeds)):
        for result, expected in zip(results, case.expected, strict=True):
            np.testing.assert_allclose(result, expected, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_builds_agree_bit_for_bit(name):
    """The fused ones among each other, and the others."""
    case = built_in(name)
    first: dict[bool, list[np.ndarray]] = {}
    for spec in available():
        results = webrnn.InferenceSession(case.model, backend=spec).run(None, case.feeds)
        assert_same_bits(results, first.setdefault(load(spec).fused, results), spec)
    assert len(first) == 2


def test_sizes_are_those_of_the_names():
    assert built_in("gru_256").feeds["x"].shape == (100, 1, 256)
    assert built_in("lstm_128").feeds["x"].shape == (50, 1, 128)
    assert [array.shape for array in built_in("gru_128_t1").expected] == [(1, 1, 1, 128), (1, 1, 128)]


def test_hoist_invariants_has_something_to_do_on_the_conditioned_model():
    report = webrnn.optimize(conditioned(8, 4, 0))
    assert next(step.count for step in report.steps if step.name == "hoist_invariants") > 0


def test_a_decoder_keeps_both_cells_in_one_loop():
    report = webrnn.optimize(decoder(8, 4, 0))
    assert report.after.inside.ops["webrnn.GruCell"] == 2


def test_cases_are_the_same_each_time():
    first, second = (make_case("m", sequence("LSTM", 4, 3, seed=1)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first.expected, second.expected, strict=True))


def test_all_kinds_of_attributes_can_be_written():
    graph = GraphFile("all")
    graph.constant("w", np.zeros((1, 4, 2), np.float32))
    graph.node("LeakyRelu", ["x"], ["a"], alpha=0.5)
    graph.node("Conv", ["a", "w3"], ["b"], auto_pad="SAME_UPPER", kernel_shape=[3], group=-1 + 2)
    graph.constant("w3", np.ones((1, 1, 3), np.float32))
    model = onnx.load_from_string(graph.model({"x": ["n", 1, 5]}, {"b": ["n", 1, 5]}))
    attributes = {a.name: onnx.helper.get_attribute_value(a) for node in model.graph.node for a in node.attribute}
    assert attributes == {"alpha": 0.5, "auto_pad": b"SAME_UPPER", "kernel_shape": [3], "group": 1}
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
