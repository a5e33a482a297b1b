"""ONNX's own node cases, run on the op functions alone."""

from __future__ import annotations

import pytest

from webrnn.errors import UnsupportedOp

from .onnx_cases import RECURRENT, at_newest_opset, node_cases, run_case

# The expected values carry the noise of a float32 transform; ours is calculated in float64.
LESS_EXACT_THAN_WE_ARE = {"test_dft_inverse"}
CASES = sorted(name for name, case in node_cases().items() if at_newest_opset(case.model))
LEAST_PASSING = 1240


def test_node_cases_give_the_right_answer_or_say_that_they_are_unsupported():
    passed, wrong = 0, []
    for name in CASES:
        case = node_cases()[name]
        if name in LESS_EXACT_THAN_WE_ARE or any(node.op_type in RECURRENT for node in case.model.graph.node):
            continue
        try:
            run_case(case)
            passed += 1
        except UnsupportedOp:
            continue
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong
    assert passed >= LEAST_PASSING


@pytest.mark.parametrize(
    "name", ["test_linear_attention_gated_delta", "test_causal_conv_with_state_basic", "test_conv_with_strides_padding"]
)
def test_a_few_cases_by_name(name):
    case = node_cases().get(name)
    if case is None:
        pytest.skip("not in this version of onnx")
    run_case(case)
