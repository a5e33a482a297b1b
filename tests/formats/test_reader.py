import json
from pathlib import Path

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from webrnn.formats import read, read_model

from . import rtneural_models as rt
from .test_nam import RECORDED
from .whole_and_parts import encoded

ONNX = parse_model(
    '<ir_version: 8, opset_import: ["": 17]> f (float[n] x) => (float[n] y) { y = Tanh(x) }'
).SerializeToString()
RTNEURAL = encoded(rt.model([None, 1], rt.activation("tanh", 1)))


@pytest.mark.parametrize("name", ["model.onnx", "model", "model.bin"])
def test_a_file_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for data, is_effect in ((ONNX, False), (RTNEURAL, True), (b"\xef\xbb\xbf \n" + RTNEURAL, True)):
        path.write_bytes(data)
        for source in (path, str(path), data, bytearray(data), memoryview(data)):
            assert read(source).is_effect == is_effect
        assert [value.name for value in read_model(path).inputs] == ["x"]


def test_every_way_to_run(tmp_path: Path) -> None:
    """Sessions, streams, reports and plans take these files as they take ONNX."""
    x = np.linspace(-1, 1, 20, dtype=np.float32)
    session = webrnn.InferenceSession(RECORDED / "wavenet.nam")
    (whole,) = session.run(None, {"x": x})
    assert session.get_inputs()[0].shape == session.get_outputs()[0].shape == ["time"]
    assert "Conv" in str(webrnn.optimize(RECORDED / "wavenet.nam"))
    session.export(tmp_path / "amp.rnn", about={"mine": 1})
    plan = webrnn.InferenceSession(tmp_path / "amp.rnn")
    assert plan.about == {**session.about, "mine": 1}
    stream = plan.stream()
    parts = [stream.step({"x": part})[0] for part in (x[:1], x[1:14], x[14:])]
    assert np.array_equal(np.concatenate(parts), whole)


def test_small_weights() -> None:
    x = np.load(RECORDED / "wavenet.npz")["x"]
    plain, small = (webrnn.InferenceSession(RECORDED / "wavenet.nam", weights=form) for form in ("f32", "int16"))
    assert np.abs(plain.run(None, {"x": x})[0] - small.run(None, {"x": x})[0]).max() < 1e-3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "the JSON file is broken"),
        (RTNEURAL[:-9], "the JSON file is broken"),
        (b"[1, 2]", "it is no object"),
        (b"{}", "no model that is known: .*nothing"),
        (b'{"weights": [1]}', "this one has 'weights'"),
        (b'{"a": \xff}', "it is no text"),
        (b'{"layers": ' + b"[" * 200_000, "nested too deep"),
        (b'{"layers": [], "in_shape": [null, 1]}', "'layers': the list is empty"),
        (b'{"layers": []}', "'in_shape': it is missing"),
        (b'{"architecture": {}}', "'architecture': it is an object"),
        (b'{"architecture": "LSTM", "config": [], "weights": []}', "it is a list, it needs to be an object"),
    ],
)
def test_what_is_no_model(data: bytes, said: str) -> None:
    with pytest.raises(webrnn.ModelError, match=said):
        webrnn.InferenceSession(data)


@pytest.mark.parametrize("content", [b"", b"\0\1\2", b"PK\3\4"])
def test_a_name_says_what_was_meant(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "amp.nam"
    path.write_bytes(content)
    with pytest.raises(webrnn.ModelError, match="JSON"):
        webrnn.InferenceSession(path)
    with pytest.raises(webrnn.ModelError, match="cannot read"):
        webrnn.InferenceSession(tmp_path / "missing.nam")


def test_numbers_of_metadata_are_json() -> None:
    data = json.loads(RTNEURAL)
    data["metadata"] = {"loudness": float("nan"), "deep": [[[[[[[[[1]]]]]]]]]}
    about = read(encoded(data)).about
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    assert about["metadata"]["loudness"] is None
