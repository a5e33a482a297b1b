"""In the place of `onnx.backend.test.loader`: ONNX's node cases, recorded by `pyodide_pkg.suite.recorded`."""

from __future__ import annotations

import pickle
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx


class Case:
    def __init__(self, name: str, model: bytes, data_sets: Any, rtol: float, atol: float):
        self.name, self._data, self.data_sets, self.rtol, self.atol = name, model, data_sets, rtol, atol

    @cached_property
    def model(self) -> onnx.ModelProto:
        return onnx.ModelProto.FromString(self._data)


def load_model_tests(kind: str) -> list[Case]:
    assert kind == "node"
    with Path(__file__).with_name("recorded_cases.pickle").open("rb") as file:
        return [Case(*row) for row in pickle.load(file)]
