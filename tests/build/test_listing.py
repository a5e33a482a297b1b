from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webrnn
from webrnn.build.listing import describe, is_weights
from webrnn.cli import main

from . import replay
from .cases import RECORDED


def test_layers_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # nothing is shortened
    text = describe(RECORDED / "torch.safetensors")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line.startswith("  ")}
    assert rows["GRU_2_True"] == "GRU 3 to 4, 2 layers, both directions 552"
    assert rows["LSTM_proj_1"] == "LSTM 3 to 5, projected to 2 150"
    assert rows["RNN_cell"] == "RNNCell 3 to 4 36"
    assert rows["Linear_True"] == "Linear 3 to 4 16"
    assert rows["BatchNorm1d"] == "BatchNorm 4 channels 17"
    assert rows["Conv1d_parametrized"].startswith("Conv1d or ConvTranspose1d [6, 4], kernel 3")
    assert rows["GRU_1_False.weight_hh_l0"] == "float32 [12, 4]"


def test_layers_of_keras() -> None:
    for form, kind in (("model.keras", "Bidirectional"), ("model.weights.h5", "LSTM")):
        text = describe(replay.keras_file(form))
        rows = {line.split()[0]: line.split()[1] for line in text.splitlines() if line.startswith("  ")}
        assert (rows["gru_0"], rows["dense_0"], rows["both_sum"]) == ("GRU", "Dense", kind)
        assert rows["batch_norm"] == "BatchNormalization"


def test_what_is_a_file_of_weights(tmp_path: Path) -> None:
    for name in ("torch.safetensors", "types.safetensors", "views.pt", "legacy.pt", "keras.npz"):
        assert is_weights(RECORDED / name)
    (tmp_path / "model.h5").write_bytes(replay.keras_file("model.h5"))
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08\x12\x07pytorch" + bytes(99))
    assert is_weights(tmp_path / "model.h5")
    assert not is_weights(tmp_path / "model.onnx")
    assert not is_weights(tmp_path / "nothing")


def test_info_of_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(RECORDED / "types.safetensors")]) == 0
    assert "half" in capsys.readouterr().out
    assert main(["info", str(RECORDED / "whole_model.pt")]) == 1
    assert "UnsupportedOp" in capsys.readouterr().err


def test_odd_tensors_are_listed() -> None:
    arrays = {
        "a": np.ones(()),
        "b.weight": np.ones(3),
        "b.c.weight_hh_l0": np.ones((0, 0)),
        "d.weight": np.ones((1, 2, 3, 4)),
    }
    assert "d.weight" in describe(arrays)
    with pytest.raises(webrnn.ModelError):
        describe(b"nothing")
