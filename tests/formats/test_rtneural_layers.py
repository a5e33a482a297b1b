import numpy as np
import pytest

import webrnn

from . import rtneural_models as rt
from .whole_and_parts import encoded, run_both

RNG = np.random.default_rng(7)
MONO = [None, None, 1]

MODELS = {
    "dense": rt.model([None, 1], rt.dense(RNG, 1, 4, "tanh"), rt.dense(RNG, 4, 3, "relu"), rt.dense(RNG, 3, 1)),
    "several": rt.model([None, None, 3], rt.dense(RNG, 3, 4, "sigmoid", "time-distributed-dense"), rt.dense(RNG, 4, 2)),
    "elu": rt.model(MONO, rt.dense(RNG, 1, 4, "elu"), rt.activation("softmax", 4)),
    "conv1d": rt.model(MONO, rt.conv1d(RNG, 1, 4, 3, 2), rt.activation("tanh", 4), rt.conv1d(RNG, 4, 2, 2, 5)),
    "groups": rt.model([None, 20, 6], rt.conv1d(RNG, 6, 4, 4, 3, 2), rt.conv1d(RNG, 4, 4, 1, 1, 4)),
    "norms": rt.model(
        MONO, rt.dense(RNG, 1, 4), rt.batchnorm(RNG, 4), rt.prelu(RNG, 4), rt.batchnorm(RNG, 4, False), rt.prelu(RNG, 1)
    ),
    "gru": rt.model(MONO, rt.dense(RNG, 1, 3, "tanh"), rt.recurrent(RNG, "gru", 3, 5), rt.dense(RNG, 5, 1)),
    "lstm": rt.model([None, None, 2], rt.recurrent(RNG, "lstm", 2, 4), rt.dense(RNG, 4, 1)),
    "two of them": rt.model(MONO, rt.recurrent(RNG, "lstm", 1, 4), rt.recurrent(RNG, "gru", 4, 3)),
    "conv2d": rt.model(
        [None, 30, 9, 1],
        rt.conv2d(RNG, 9, (1, 3), (3, 3), stride=2),
        rt.batchnorm(RNG, 3, num_filters_in=3, num_features_in=4),
        rt.activation("relu", 12),
        rt.conv2d(RNG, 4, (3, 2), (2, 3), dilation=4, padding="same"),
    ),
    "conv2d then dense": rt.model(
        [None, 30, 8, 2], rt.conv2d(RNG, 8, (2, 2), (2, 3), stride=3, padding="same"), rt.dense(RNG, 6, 2, "tanh")
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_gives_what_the_layers_mean(name: str) -> None:
    data = MODELS[name]
    sizes = data["in_shape"][2:] if len(data["in_shape"]) == 4 else data["in_shape"][-1:]
    x = np.random.default_rng(3).uniform(-1, 1, (40, *sizes)).astype(np.float32)
    expected = rt.result(data, x)
    x = x.reshape(tuple(size for size in x.shape if size > 1))
    got = run_both(encoded(data), x)
    np.testing.assert_allclose(got.reshape(expected.shape), expected, atol=1e-6)


def test_a_gru_that_resets_before() -> None:
    """One bias instead of two: Keras' reset_after=False."""
    layer = rt.recurrent(RNG, "gru", 1, 3)
    layer["weights"][2] = layer["weights"][2][0]
    x = np.random.default_rng(3).uniform(-1, 1, 12).astype(np.float32)
    w, r, b = (np.array(part) for part in layer["weights"])
    h, expected = np.zeros(3), []
    for sample in x:
        xz, xr, xn = np.split(sample * w[0] + b, 3)
        update, reset = (1 / (1 + np.exp(-(part + h @ r[:, at : at + 3]))) for part, at in ((xz, 0), (xr, 3)))
        h = update * h + (1 - update) * np.tanh(xn + (reset * h) @ r[:, 6:])
        expected.append(h)
    np.testing.assert_allclose(run_both(encoded(rt.model(MONO, layer)), x), expected, atol=1e-6)


def test_a_stride_leaves_out_frames() -> None:
    layer = rt.conv1d(RNG, 1, 2, 3)
    x = np.random.default_rng(3).uniform(-1, 1, 12).astype(np.float32)
    every = rt.result(rt.model(MONO, layer), x[:, None])
    session = webrnn.InferenceSession(encoded(rt.model(MONO, {**layer, "strides": [3]})))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], every[::3], atol=1e-6)
    assert "audio" not in session.about


def test_layers_without_bias() -> None:
    layers = [
        rt.dense(RNG, 1, 2),
        rt.conv1d(RNG, 2, 2, 2),
        rt.recurrent(RNG, "gru", 2, 2),
        rt.recurrent(RNG, "lstm", 2, 1),
    ]
    zeros = [
        {**layer, "weights": [*layer["weights"][:-1], (np.array(layer["weights"][-1]) * 0).tolist()]}
        for layer in layers
    ]
    without = [{**layer, "weights": layer["weights"][:-1]} for layer in layers]
    x = np.random.default_rng(3).uniform(-1, 1, 12).astype(np.float32)
    assert np.array_equal(*(run_both(encoded(rt.model(MONO, *each)), x) for each in (zeros, without)))


def broken(layer: rt.Layer, **changes: object) -> bytes:
    return encoded(rt.model(MONO, rt.dense(RNG, 1, 2), {**layer, **changes}))


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        (broken(rt.dense(RNG, 3, 1)), webrnn.ModelError, r"layers\[1\]' \(dense\), .*'weights\[0\]': it is \[3"),
        (broken(rt.dense(RNG, 2, 1), weights=[]), webrnn.ModelError, "it has 0 arrays, it needs 2"),
        (broken(rt.dense(RNG, 2, 1), shape=[]), webrnn.ModelError, "attribute 'shape': the list is empty"),
        (broken(rt.dense(RNG, 2, 1, "hard_swish")), webrnn.UnsupportedOp, "the activation 'hard_swish' is not known"),
        (broken(rt.dense(RNG, 2, 1), type="maxpool"), webrnn.UnsupportedOp, r"layers\[1\]' \(maxpool\).*not known"),
        (broken(rt.conv1d(RNG, 2, 2, 2), groups=3), webrnn.ModelError, "cannot be cut into 3 groups"),
        (broken(rt.conv1d(RNG, 2, 2, 2), kernel_size=[]), webrnn.ModelError, "kernel_size': the list is empty"),
        (broken(rt.conv1d(RNG, 2, 2, 5), dilation=[10**7]), webrnn.UnsupportedOp, "remember 80000000 numbers"),
        (broken(rt.conv1d(RNG, 2, 2, 2), dilation=[10**9]), webrnn.ModelError, "it is 1000000000, it needs to be 1 to"),
        (broken(rt.conv1d(RNG, 2, 2, 2), padding="same"), webrnn.UnsupportedOp, "look back only"),
        (broken(rt.recurrent(RNG, "gru", 2, 2), activation="relu"), webrnn.UnsupportedOp, "(gru)"),
        (broken(rt.recurrent(RNG, "lstm", 2, 2), shape=[None, 3]), webrnn.ModelError, r"needs to be \[2, 12\]"),
        (broken(rt.batchnorm(RNG, 2), epsilon=-9), webrnn.ModelError, "not above zero"),
        (broken(rt.batchnorm(RNG, 2), weights=[[1, 1]]), webrnn.ModelError, "it has 1 arrays, it needs 4"),
        (broken(rt.prelu(RNG, 3)), webrnn.ModelError, r"it is \[3\], it needs to be \[2\]"),
        (broken(rt.conv2d(RNG, 3, (1, 1), (1, 2))), webrnn.ModelError, "it takes 3 features of 1 filters"),
        (broken(rt.conv2d(RNG, 2, (1, 1), (1, 2)), padding="full"), webrnn.UnsupportedOp, "padding 'full'"),
        (broken(rt.conv2d(RNG, 2, (1, 1), (1, 2)), kernel_size_feature=3), webrnn.ModelError, "does not fit"),
        (broken(rt.conv2d(RNG, 2, (1, 1), (1, 2)), num_filters_out=2), webrnn.ModelError, "1 features of 2 filters"),
    ],
)  # fmt: skip
def test_a_layer_that_is_wrong_is_named(model: bytes, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(model)
