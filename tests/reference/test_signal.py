from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import Error

from .onnxruntime_oracle import check


def _random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@given(
    st.integers(2, 17), st.sampled_from([1, 2]), st.booleans(), st.sampled_from([-2, 1]), st.sampled_from([None, 8, 5])
)
@settings(max_examples=60, deadline=None)
def test_dft(length, parts, inverse, axis, dft_length):
    x = _random(2, length, parts)
    size = None if dft_length is None else np.array(dft_length)
    onesided = int(parts == 1 and not inverse)
    check("DFT", x, size, np.array(axis), inverse=int(inverse), onesided=onesided, atol=1e-4, rtol=1e-4)


def test_onesided_inverse_undoes_onesided():
    x = _random(2, 9, 1)
    (spectrum,) = arrays.call("DFT", "", [x], {"onesided": 1})
    (back,) = arrays.call("DFT", "", [spectrum, np.array(9, np.int64)], {"onesided": 1, "inverse": 1})
    np.testing.assert_allclose(back, x, atol=1e-6)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("with_window", [False, True])
def test_stft(onesided, with_window):
    window = np.hanning(16).astype(np.float32) if with_window else None
    length = None if with_window else np.array(16, np.int64)
    check("STFT", _random(2, 64, 1), np.array(5, np.int64), window, length, onesided=onesided, atol=1e-4)


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op_type, periodic):
    check(op_type, np.array(10, np.int64), periodic=periodic)


def test_mel_weight_matrix():
    check(
        "MelWeightMatrix",
        np.array(8, np.int64),
        np.array(64, np.int64),
        np.array(16000, np.int64),
        np.float32(0),
        np.float32(8000),
    )


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs"),
    [
        ("DFT", (_random(2, 5, 3),), {}),
        ("DFT", (_random(2, 5, 1), None, np.array(2, np.int64)), {}),
        ("DFT", (_random(2, 5, 1), np.array(0, np.int64)), {}),
        ("DFT", (_random(2, 5, 2),), {"onesided": 1}),
        ("STFT", (_random(2, 8, 1), np.array(2, np.int64), None, np.array(9, np.int64)), {}),
        ("STFT", (_random(2, 8, 1), np.array(0, np.int64), None, np.array(4, np.int64)), {}),
        ("STFT", (_random(2, 8, 1), np.array(2, np.int64)), {}),
        (
            "MelWeightMatrix",
            (np.array(0, np.int64), np.array(64, np.int64), np.array(16000, np.int64), np.float32(0), np.float32(8000)),
            {},
        ),
    ],
)
def test_mistakes_raise(op_type, inputs, attrs):
    with pytest.raises(Error, match=op_type):
        arrays.call(op_type, "", list(inputs), attrs)
