"""ONNX's models that are no node cases: those that its wheel has as files, most of them of opset 6."""

import glob
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import webrnn
from tests.backends import INSIDE_PYODIDE, MAIN
from tests.reference.onnx_cases import assert_same, to_webrnn

REFUSED = {
    "Gradient": "ai.onnx.preview.training",
    "StringNormalizer": "there is no implementation",
}
"""Ops that some of them have, and what a refusal says."""


def cases(kind):
    return {case.name: Path(case.model_dir) for case in load_model_tests(kind=kind) if case.model_dir}


@pytest.mark.skipif(INSIDE_PYODIDE, reason="the files are in the wheel of onnx, which is not there")
@pytest.mark.parametrize("kind", ["simple", "pytorch-converted", "pytorch-operator"])
def test_all_of_them(kind):
    found = cases(kind)
    assert len(found) > 20
    for name, folder in found.items():
        model = onnx.load(folder / "model.onnx")
        refusal = next((REFUSED[node.op_type] for node in model.graph.node if node.op_type in REFUSED), None)
        if refusal is not None:
            with pytest.raises(webrnn.UnsupportedOp, match=refusal):
                webrnn.InferenceSession(str(folder / "model.onnx"))
            continue
        session = webrnn.InferenceSession(str(folder / "model.onnx"), backend=MAIN)
        for data_set in glob.glob(str(folder / "test_data_set_*")):
            feeds = dict(zip((i.name for i in session.get_inputs()), tensors(data_set, "input"), strict=True))
            for result, wanted in zip(session.run(None, feeds), tensors(data_set, "output"), strict=True):
                try:
                    assert_same(result, wanted, 1e-3, 1e-5)
                except AssertionError as error:
                    error.add_note(name)
                    raise


def tensors(folder, kind) -> list[np.ndarray]:
    files = sorted(Path(folder).glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.rpartition("_")[2]))
    return [to_webrnn(numpy_helper.to_array(onnx.load_tensor(str(file)))) for file in files]
