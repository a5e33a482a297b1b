"""What a framework wrote down (cases.py), and what webrnn makes of it."""

from __future__ import annotations

import io
import os
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from webrnn import build

from .cases import RECORDED, Case

FOLDER = Path(os.environ.get("WEBRNN_RECORDED", RECORDED))
"""`make build-check` has the frameworks write anew, and more."""


@cache
def recorded(framework: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{framework}.npz") as arrays:
        return dict(arrays)


def cases(framework: str) -> list[Case]:
    return Case.read(recorded(framework)["cases"].tobytes().decode())


@cache
def torch_weights() -> dict[str, np.ndarray]:
    return dict(build.torch(FOLDER / "torch.safetensors").weights)


@cache
def keras_file(form: str) -> bytes:
    """A file of Keras's: "model.keras", "model.h5" or "model.weights.h5", which is inside of the first."""
    if form == "model.weights.h5":
        with zipfile.ZipFile(io.BytesIO(keras_file("model.keras"))) as archive:
            return archive.read(form)
    with zipfile.ZipFile(FOLDER / "keras.zip") as archive:
        return archive.read(form)


def numbers(framework: str, case: Case, side: str) -> list[np.ndarray]:
    found = recorded(framework)
    return [found[name] for place in range(9) if (name := f"{case.name}.{side}{place}") in found]


def inputs(net: build.TorchNet | build.KerasModel, fed: list[np.ndarray]) -> list[build.Tensor]:
    return [net.input(f"in{place}", array.shape, str(array.dtype)) for place, array in enumerate(fed)]


def flat(item: Any) -> list[build.Tensor]:
    return [part for one in item for part in flat(one)] if isinstance(item, tuple) else [item]


def results(net: build.TorchNet | build.KerasModel, made: Any, fed: list[np.ndarray]) -> list[np.ndarray]:
    for place, tensor in enumerate(flat(made)):
        net.output(f"out{place}", tensor)
    session = net.session(strict=False)
    assert "in numpy" not in session.report()
    return session.run(None, {f"in{place}": array for place, array in enumerate(fed)})


def require_equal(got: list[np.ndarray], expected: list[np.ndarray], tolerance: float = 1e-5) -> None:
    assert [array.shape for array in got] == [array.shape for array in expected]
    for have, want in zip(got, expected, strict=True):
        assert np.abs(have - want).max(initial=0) <= tolerance * max(1, np.abs(want).max(initial=0))
