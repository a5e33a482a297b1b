"""The real models, 20 steps with their state carried, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest

import webrnn
from tests.models.fetch import MODELS, Unavailable, model_path
from webrnn.ir.check import check

onnxruntime.set_default_logger_severity(4)

CARRY = {
    "silero_v6": {"state": "stateN"},
    "silero_v6_op15": {"state": "stateN"},
    "silero_v6_op18_ifless": {"state": "stateN"},
    "silero_v6_seq": {"h": "hn", "c": "cn"},
    "dtln_1": {"input_3": "tf_op_layer_stack_2"},
    "dtln_2": {"input_5": "tf_op_layer_stack_5"},
    "riann": {"h0": "hn"},
    "nsnet2_16k": {},
    "localwake_loop": {},
}
SHAPES = {
    "silero_v6": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_op15": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_op18_ifless": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_seq": {"input": (3, 576)},
    "riann": {"input": (1, 5, 7)},
    "nsnet2_16k": {"input": (2, 6, 161)},
    "localwake_loop": {"samples:0": (1, 16000)},
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_twenty_steps(name):
    try:
        path = model_path(name)
    except Unavailable as error:
        pytest.skip(str(error))
    ours, theirs = webrnn.InferenceSession(path, backend="numpy"), onnxruntime.InferenceSession(path)
    check(ours.graph)
    outputs = [item.name for item in ours.get_outputs()]
    assert outputs == [item.name for item in theirs.get_outputs()]
    assert [(item.name, item.type) for item in ours.get_inputs()] == [(i.name, i.type) for i in theirs.get_inputs()]
    rng = np.random.default_rng(3)
    carried: list[dict[str, np.ndarray]] = [{}, {}]
    for _ in range(20):
        fresh = {item.name: _random(name, item, rng) for item in theirs.get_inputs() if item.name not in carried[0]}
        results = []
        for index, session in enumerate((ours, theirs)):
            result = dict(zip(outputs, session.run(None, {**fresh, **carried[index]}), strict=True))
            carried[index] = {before: result[after] for before, after in CARRY[name].items()}
            results.append(result)
        for output in outputs:
            mine, reference = results[0][output], results[1][output]
            assert mine.dtype == reference.dtype
            np.testing.assert_allclose(mine, reference, rtol=1e-4, atol=1e-5, err_msg=output)


def _random(model, item, rng):
    if item.name == "sr":
        return np.array(16000, np.int64)
    shape = SHAPES.get(model, {}).get(item.name) or [dim if isinstance(dim, int) else 1 for dim in item.shape]
    return (0.1 * rng.standard_normal(shape)).astype(np.float32)
