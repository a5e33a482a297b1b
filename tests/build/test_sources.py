from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build
from webrnn.build.sources import form_of, read_npz

from . import replay
from .cases import RECORDED


def npz(**arrays: Any) -> bytes:
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "form"),
    [
        ((RECORDED / "torch.safetensors").read_bytes(), "safetensors"),
        ((RECORDED / "views.pt").read_bytes(), "torch"),
        (replay.keras_file("model.keras"), "keras"),
        (replay.keras_file("model.h5"), "hdf5"),
        (npz(a=[1.0]), "npz"),
    ],
)
def test_forms(data: bytes, form: str) -> None:
    assert form_of(data) == form


def test_load_goes_by_the_form() -> None:
    assert isinstance(build.load(RECORDED / "torch.safetensors"), build.TorchNet)
    assert isinstance(build.load(replay.keras_file("model.h5")), build.KerasModel)
    for source in ({}, npz(a=[1.0])):
        with pytest.raises(webrnn.OptionError, match="any framework"):
            build.load(source)


def test_arrays_of_an_npz() -> None:
    fortran = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = read_npz(npz(plain=fortran.copy(), fortran=fortran, big=fortran.astype(">f8"), scalar=2.5))
    assert all(np.array_equal(found[name], fortran) for name in ("plain", "fortran", "big"))
    assert found["scalar"].shape == ()
    assert build.torch(npz(**{"out.weight": fortran})).weights.prefixes() == ["out"]


def test_objects_in_an_npz_are_refused() -> None:
    made = io.BytesIO()
    np.savez(made, a=np.array([{}], object))
    with pytest.raises(webrnn.ModelError, match="holds object"):
        read_npz(made.getvalue())


class TensorLike:
    """As tensors of PyTorch are."""

    dtype = "torch.bfloat16"

    def detach(self) -> TensorLike:
        return self

    cpu = detach

    def float(self) -> np.ndarray:
        return np.ones(2, np.float32)


def test_dicts_of_tensors() -> None:
    assert build.torch({"a.b": TensorLike()}).weights["a.b"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing.safetensors", "cannot read the weights"),
        ("a\0b", "cannot read the weights"),
        (b"", "no file of weights"),
        (b"\x08\x07onnx", "no file of weights"),
        (b"PK\x03\x04", "the zip file is damaged"),
        (3, "not a int"),
        ({"a": "text"}, "not of numbers"),
        ({1: np.ones(1)}, "a text, not 1"),
        ({"a": [[1], [1, 2]]}, "'a' is no array"),
    ],
)
def test_what_is_no_source(source: Any, words: str) -> None:
    with pytest.raises(webrnn.Error, match=words):
        build.torch(source)


def test_keys_are_for_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(npz(a=[1.0]))
    with pytest.raises(webrnn.OptionError, match="of the form npz"):
        build.torch(tmp_path / "w.npz", key="state_dict")
    with pytest.raises(webrnn.OptionError, match="a dict has no key"):
        build.torch({"a": np.ones(1)}, key="state_dict")


def test_arrays_are_copied() -> None:
    given = np.ones((1, 1), np.float32)
    net = build.torch({"out.weight": given})
    given[:] = 5
    net.output("y", net.linear("out", net.input("x", (1, 1))))
    assert net.session().run(None, {"x": np.ones((1, 1), "f")})[0].item() == 1
