from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import webrnn
from webrnn import build
from webrnn.build.keras_files import _by_kernel, read_keras

from . import replay
from .cases import RECORDED


def test_names_are_those_of_layers() -> None:
    for form in ("model.keras", "model.weights.h5"):
        file = read_keras(replay.keras_file(form))
        assert "gru_0/gru_cell/vars/0" in file.arrays
        assert file.folders["conv1d_groups/vars/0"].startswith("conv1d")
    file = read_keras(replay.keras_file("model.h5"))
    assert "gru_0/gru_cell/kernel" in file.arrays
    assert "both_sum/forward_lstm/lstm_cell/kernel" in file.arrays
    assert file.layers["gru_0"].kind == "GRU"
    assert file.layers["both_sum"].inner.kind == "LSTM"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("model_weights/gru/gru/gru_cell/kernel:0", "gru/gru_cell/kernel"),
        ("dense/dense/bias:0", "dense/bias"),
        ("model_weights/front/sequential/front/kernel", "front/kernel"),
        ("model_weights/encoder/gru_1/gru_cell/bias:0", "encoder/gru_1/gru_cell/bias"),
        ("bi/bi/forward_lstm/lstm_cell_1/kernel:0", "bi/forward_lstm/lstm_cell_1/kernel"),
    ],
)
def test_names_of_the_older_form(path: str, name: str) -> None:
    assert _by_kernel(path) == name


def test_dicts_and_archives_of_arrays() -> None:
    arrays = {"gru/kernel:0": np.ones((2, 3), "f")}
    assert list(read_keras(arrays).arrays) == ["gru/kernel"]
    made = io.BytesIO()
    np.savez(made, **arrays)  # type: ignore[arg-type]
    assert list(read_keras(made.getvalue()).arrays) == ["gru/kernel"]


def test_files_of_others_are_refused() -> None:
    with pytest.raises(webrnn.OptionError, match=r"'torch.safetensors' has weights of PyTorch's: webrnn\.build\.torch"):
        build.keras(RECORDED / "torch.safetensors")
    with pytest.raises(webrnn.OptionError, match=r"has weights of Keras: webrnn\.build\.keras"):
        build.torch(replay.keras_file("model.h5"))


def test_a_model_that_is_described_badly() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("model.weights.h5", replay.keras_file("model.weights.h5"))
        archive.writestr("config.json", "{")
    with pytest.raises(webrnn.ModelError, match="not JSON"):
        read_keras(made.getvalue())
