from typing import Any

import numpy as np
import pytest

import webrnn

from .test_nam import changed, loaded
from .whole_and_parts import encoded, run_both

BLOCKS = {"channels": 4, "dilations": [1], "activation": "Tanh"}


def test_an_impulse_response() -> None:
    data = loaded("linear_no_bias")
    impulse = np.zeros(9, np.float32)
    impulse[0] = 1
    expected = [*data["weights"][::-1], 0, 0, 0, 0]
    np.testing.assert_array_equal(run_both(encoded(data), impulse), np.float32(expected))


@pytest.mark.parametrize(
    ("name", "config", "kind", "said"),
    [
        ("linear", {"receptive_field": 24}, webrnn.ModelError, "take 24, the file has 25"),
        ("linear", {"receptive_field": 24, "bias": 2}, webrnn.ModelError, "needs to be true or false"),
        ("linear", {"receptive_field": 24, "in_channels": 2}, webrnn.UnsupportedOp, "it is for one signal"),
        ("linear", {"receptive_field": 24, "fft": True}, webrnn.UnsupportedOp, "'fft': this setting is not known"),
        ("convnet", {"channels": 4, "dilations": [1]}, webrnn.ModelError, "'activation': it is missing"),
        ("convnet", {"channels": 4, "activation": "Tanh"}, webrnn.ModelError, "'dilations': it is missing"),
        ("convnet", {**BLOCKS, "dilations": [1] * 9}, webrnn.ModelError, "block_3' .*not enough"),
        ("convnet", {**BLOCKS, "channels": 3, "groups": 2}, webrnn.ModelError, "cannot be cut into 2 groups"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong(name: str, config: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(changed(name, config=config))


def test_a_variance_below_zero() -> None:
    data = loaded("convnet_batchnorm")
    data["weights"][12:16] = [-9.0] * 4
    with pytest.raises(webrnn.ModelError, match=r"node 'block_0' .*not above zero"):
        webrnn.InferenceSession(encoded(data))
