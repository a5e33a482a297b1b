from typing import Any

import numpy as np
import pytest

import webrnn

from .test_nam import RECORDED, loaded
from .whole_and_parts import encoded, run_both


def with_array(name: str, **changes: Any) -> dict[str, Any]:
    """A recorded file whose first array has other settings; None leaves one out."""
    data = loaded(name)
    array = data["config"]["layers"][0]
    array.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del array[key]
    return data


def older(name: str, gated: bool) -> dict[str, Any]:
    """As files of version 0.5 say it."""
    data = loaded(name)
    data["version"] = "0.5.2"
    data["config"]["layers"] = [
        {
            **{key: array[key] for key in ("input_size", "condition_size", "channels", "dilations")},
            "head_size": array["head"]["out_channels"],
            "head_bias": array["head"]["bias"],
            "kernel_size": array["kernel_sizes"][0],
            "activation": "Tanh",
            "gated": gated,
        }
        for array in data["config"]["layers"]
    ]
    return data


@pytest.mark.parametrize("name", ["wavenet", "wavenet_gated"])
def test_older_files(name: str) -> None:
    recorded = np.load(RECORDED / f"{name}.npz")
    got = run_both(encoded(older(name, name == "wavenet_gated")), recorded["x"])
    np.testing.assert_allclose(got, recorded["y"], atol=2e-6)


def test_an_older_head() -> None:
    """One number of layers, all of them with windows of one sample."""
    data = loaded("wavenet")
    kernels = {"channels": 2, "activation": "ReLU", "out_channels": 1}
    data["weights"][-1:] = [0.5, -0.5, 0.1, 0.2, 1.0, -1.0, 0.3, data["weights"][-1]]
    x = np.load(RECORDED / "wavenet.npz")["x"]
    results = []
    for head in ({**kernels, "num_layers": 2}, {**kernels, "kernel_sizes": [1, 1]}):
        data["config"]["head"] = head
        results.append(run_both(encoded(data), x))
    assert np.array_equal(*results)
    assert results[0].any()


def test_the_last_weight_is_the_scale() -> None:
    data, x = loaded("wavenet"), np.load(RECORDED / "wavenet.npz")["x"]
    once = run_both(encoded(data), x)
    data["weights"][-1] *= 2
    np.testing.assert_allclose(run_both(encoded(data), x), 2 * once, rtol=1e-6)


@pytest.mark.parametrize(("size", "channels"), [(0, 2), (0.4, 2), (0.5, 3), (1, 3)])
def test_a_part_of_the_channels(size: float, channels: int) -> None:
    """A slimmable array computes with the first ones: as if the others had weights of zero."""
    data, x = loaded("wavenet_slimmable"), np.load(RECORDED / "wavenet_slimmable.npz")["x"]
    whole = loaded("wavenet_slimmable")
    whole["config"]["layers"][0]["slimmable"] = None
    weights, at = np.array(whole["weights"]), 0
    keep = np.arange(4) < channels
    for shape in ((4, 1, 1), *((4, 4, 3), (4,), (4, 1, 1), (4, 4, 1), (4,)) * 3, (1, 4, 1)):
        part = weights[at : at + int(np.prod(shape))].reshape(shape)  # a view
        if shape[0] == 4:
            part[~keep] = 0
        if len(shape) > 1 and shape[1] == 4:
            part[:, ~keep] = 0
        at += part.size
    whole["weights"] = weights.tolist()
    expected = run_both(encoded(whole), x)
    np.testing.assert_allclose(run_both(encoded(data), x, fixed={"size": size}), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"global_condition_size": 1}, webrnn.UnsupportedOp, r"layers\[0\]' \(WaveNet\).*not known"),
        ({"activation": "Fasttanh"}, webrnn.UnsupportedOp, "'Fasttanh' is not known"),
        ({"activation": ["Tanh"]}, webrnn.ModelError, "it has 1, there are 3 dilations"),
        ({"gating_mode": "mixed"}, webrnn.UnsupportedOp, "'mixed' is not known"),
        ({"kernel_sizes": [3]}, webrnn.ModelError, "it has 1, there are 3 dilations"),
        ({"dilations": []}, webrnn.ModelError, "the list is empty"),
        ({"dilations": [1, 2, 2**24]}, webrnn.UnsupportedOp, r"layers\[0\].layers\[2\].conv.*remember more than 2"),
        ({"condition_size": 2}, webrnn.ModelError, "a condition of 1 channels"),
        ({"input_size": 2}, webrnn.ModelError, "it gets 1 channels"),
        ({"channels": 5}, webrnn.ModelError, "not enough|it gets 5 channels|the file has"),
        ({"channels": 10**6}, webrnn.ModelError, "not enough"),
        ({"groups_input": 3}, webrnn.ModelError, "4 channels cannot be cut into 3 groups"),
        ({"layer1x1": {"active": True, "groups": 3}}, webrnn.ModelError, "cannot be cut into 3 groups"),
        ({"head1x1_post_film": {"active": True}}, webrnn.ModelError, "when head1x1 is not"),
        ({"slimmable": {"method": "other"}}, webrnn.UnsupportedOp, "the method 'other' is not known"),
        ({"head": {"out_channels": 3, "kernel_size": 1, "bias": False}}, webrnn.ModelError, "channels|weights"),
    ],
)
def test_an_array_that_is_wrong_is_named(changes: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(encoded(with_array("wavenet", **changes)))


def test_without_layer1x1_sizes_have_to_fit() -> None:
    data = with_array("wavenet_bottleneck", layer1x1={"active": False})
    with pytest.raises(webrnn.ModelError, match=r"without layer1x1|weights"):
        webrnn.InferenceSession(encoded(data))
