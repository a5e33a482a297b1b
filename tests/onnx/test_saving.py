"""Files with new weights: read by onnx's checker and by onnxruntime, and otherwise the bytes that they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.onnx.models import floats, graph, initializer, model, model_of, recurrent
from webrnn.onnx.saving import save_onnx, with_weights

onnxruntime = pytest.importorskip("onnxruntime")


def edited(proto: onnx.ModelProto, weights: dict[str, Any]) -> onnx.ModelProto:
    found = onnx.load_from_string(with_weights(proto.SerializeToString(), weights))
    onnx.checker.check_model(found)
    return found


def runs(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of onnxruntime, which have to be those of webrnn."""
    data = proto.SerializeToString()
    expected: list[np.ndarray] = onnxruntime.InferenceSession(data).run(None, feeds)
    for ours, theirs in zip(webrnn.InferenceSession(data).run(None, feeds), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return expected


def test_a_recurrent_layer() -> None:
    proto = recurrent("GRU", hidden=3)
    for output, rank in zip(proto.graph.output, (4, 3), strict=True):  # the checker asks for shapes
        for axis in range(rank):
            output.type.tensor_type.shape.dim.add(dim_param=f"{output.name}_{axis}")
    names = {tensor.name for tensor in proto.graph.initializer}
    assert {"W", "R", "B"} <= names
    rng = np.random.default_rng(0)
    new = {"R": rng.standard_normal((1, 9, 3)).astype(np.float32), "B": np.zeros((1, 18), np.float32)}
    found = edited(proto, new)
    x = rng.standard_normal((3, 2, 4)).astype(np.float32)
    assert not np.array_equal(runs(found, {"X": x})[0], runs(proto, {"X": x})[0])
    for tensor in found.graph.initializer:
        before = next(one for one in proto.graph.initializer if one.name == tensor.name)
        expected = new.get(tensor.name, numpy_helper.to_array(before))
        assert np.array_equal(numpy_helper.to_array(tensor), expected)


def test_the_same_weights_are_the_same_bytes() -> None:
    data = recurrent("LSTM").SerializeToString()
    proto = onnx.load_from_string(data)
    same = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    assert with_weights(data, same) == data
    assert with_weights(data, {}) == data


def test_everything_else_stays() -> None:
    proto = recurrent("RNN", hidden=2)
    proto.producer_name, proto.doc_string = "somebody", "a text"
    proto.metadata_props.add(key="k", value="v")
    proto.graph.initializer[0].doc_string = "of a weight"
    unknown = bytes([0xFA, 0x3F, 3, 1, 2, 3])  # field 1023, which ONNX does not have
    data = proto.SerializeToString() + unknown
    first = proto.graph.initializer[0]
    found = with_weights(data, {first.name: np.zeros(first.dims, np.float32)})
    assert found.endswith(unknown)
    assert len(found) == len(data)
    expected = onnx.load_from_string(data)
    expected.graph.initializer[0].raw_data = bytes(len(expected.graph.initializer[0].raw_data))
    assert onnx.load_from_string(found) == expected


@pytest.mark.parametrize(
    ("kind", "array_type"),
    [(TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT16, np.float16)],
)
@pytest.mark.parametrize("raw", [True, False])
def test_types_and_encodings(kind: int, array_type: type, raw: bool) -> None:
    old = np.array([1.5, 2.5], array_type)
    tensor = helper.make_tensor("w", kind, [2], old.tobytes() if raw else old, raw=raw)
    io = [helper.make_tensor_value_info(name, kind, [2]) for name in "xy"]
    proto = model([helper.make_node("Mul", ["x", "w"], ["y"])], io[:1], io[1:], [tensor])
    found = edited(proto, {"w": np.float32([3, 0.1])})
    new = numpy_helper.to_array(found.graph.initializer[0])
    assert new.dtype == array_type
    assert np.array_equal(new, np.float32([3, 0.1]).astype(array_type))
    assert not found.graph.initializer[0].float_data
    assert np.array_equal(runs(found, {"x": np.ones(2, array_type)})[0], new)


def test_bfloat16_is_rounded() -> None:
    tensor = helper.make_tensor("w", TensorProto.BFLOAT16, [2], [1.0, 2.0])
    cast = helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)
    nodes = [cast, helper.make_node("Mul", ["x", "f"], ["y"])]
    proto = model(nodes, [floats("x", [2])], [floats("y", [2])], [tensor])
    session = webrnn.InferenceSession(edited(proto, {"w": np.float32([1.001, -3])}).SerializeToString())
    assert np.array_equal(session.run(None, {"x": np.ones(2, np.float32)})[0], np.float32([1, -3]))


def test_constant_nodes() -> None:
    nodes = [
        helper.make_node("Constant", [], ["a"], value=numpy_helper.from_array(np.float32([1, 2]))),
        helper.make_node("Constant", [], ["b"], value_float=3.0),
        helper.make_node("Constant", [], ["c"], value_floats=[1.0, 1.0]),
        helper.make_node("Mul", ["x", "a"], ["xa"]),
        helper.make_node("Mul", ["xa", "b"], ["xab"]),
        helper.make_node("Mul", ["xab", "c"], ["y"]),
    ]
    proto = model(nodes, [floats("x", [2])], [floats("y", [2])])
    found = edited(proto, {"a": [5.0, 6.0], "b": 0.5, "c": np.float32([1, 10])})
    assert np.array_equal(runs(found, {"x": np.ones(2, np.float32)})[0], [2.5, 30])


def loop_with_weight(name: str) -> onnx.NodeProto:
    body = helper.make_graph(
        [helper.make_node("Mul", ["h", "w"], ["h_next"]), helper.make_node("Identity", ["h_next"], ["y"])],
        "step",
        [floats("h", [1]), floats("x_t", [1])],
        [floats("h_next", [1]), floats("y", [1])],
        [initializer("w", np.float32([2]))],
    )
    return helper.make_node("Scan", ["h0", "x"], [f"{name}_last", name], body=body, num_scan_inputs=1, name=name)


def test_initializers_of_sub_graphs() -> None:
    ends = [floats("x", ["n", 1]), floats("h0", [1])], [floats("ys", ["n", 1])]
    proto = model([loop_with_weight("ys")], *ends)
    feeds = {"x": np.zeros((3, 1), np.float32), "h0": np.ones(1, np.float32)}
    assert np.array_equal(runs(proto, feeds)[0].ravel(), [2, 4, 8])
    assert np.array_equal(runs(edited(proto, {"w": [3.0]}), feeds)[0].ravel(), [3, 9, 27])


def test_two_of_one_name() -> None:
    nodes = [loop_with_weight("ys"), loop_with_weight("zs")]
    proto = model(nodes, [floats("x", ["n", 1]), floats("h0", [1])], [floats("ys", None), floats("zs", None)])
    with pytest.raises(webrnn.OptionError, match="two constants 'w'"):
        with_weights(proto.SerializeToString(), {"w": [3.0]})


def with_external_data(folder: Path) -> Path:
    weights = {name: np.arange(3, dtype=np.float32) + shift for name, shift in (("a", 1), ("b", 5))}
    nodes = [helper.make_node("Mul", ["x", "a"], ["xa"]), helper.make_node("Add", ["xa", "b"], ["y"])]
    constants = [initializer(name, array) for name, array in weights.items()]
    path = folder / "model.onnx"
    onnx.save(
        model_of(graph(nodes, [floats("x", [3])], [floats("y", [3])], constants)),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    return path


@pytest.mark.parametrize("moved", [False, True])
def test_external_data(tmp_path: Path, moved: bool) -> None:
    source = with_external_data(tmp_path)
    target = tmp_path / ("elsewhere" if moved else "") / "new.onnx"
    target.parent.mkdir(exist_ok=True)
    save_onnx(source, {"a": np.float32([7, 8, 9])}, target)
    onnx.checker.check_model(str(target))
    found = onnx.load(target, load_external_data=False)
    assert [tensor.data_location for tensor in found.graph.initializer] == [0, 0 if moved else 1]
    x = np.ones(3, np.float32)
    for session in (onnxruntime.InferenceSession(target), webrnn.InferenceSession(target)):
        assert np.array_equal(session.run(None, {"x": x})[0], [12, 14, 16])


def test_a_file_may_be_written_over(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(recurrent("RNN", hidden=2).SerializeToString())
    save_onnx(path, {"B": np.ones((1, 4), np.float32)}, path)
    assert np.array_equal(numpy_helper.to_array(onnx.load(path).graph.initializer[2]), np.ones((1, 4)))


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"V": np.zeros(1)}, webrnn.OptionError, "no initializer or Constant 'V'; it has 'W', 'R'"),
        ({"W": np.zeros((1, 2, 3), np.float32)}, webrnn.ShapeError, r"'W' has shape \[1, 2, 3\], the model's is"),
        ({"B": np.zeros((1, 10), np.int32)}, webrnn.ShapeError, "'B' is int32, the model's is float"),
        ({"B": [[1.0], [1.0, 2.0]]}, webrnn.ShapeError, "'B' is not an array"),
    ],
)
def test_weights_that_do_not_fit(weights: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        with_weights(recurrent("RNN").SerializeToString(), weights)


def test_what_is_no_model() -> None:
    with pytest.raises(webrnn.ModelError):
        with_weights(b"not a model", {})
    with pytest.raises(webrnn.ModelError, match="cannot read the model"):
        with_weights("there/is/none.onnx", {})
    data = recurrent("RNN").SerializeToString()
    for cut in range(1, len(data), 7):
        with pytest.raises(webrnn.Error):
            with_weights(data[:cut], {"W": 1.0})


def test_sparse_weights_are_refused() -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [1])
    main = graph([helper.make_node("Mul", ["x", "w"], ["y"])], [floats("x", [3])], [floats("y", [3])])
    main.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    with pytest.raises(webrnn.OptionError, match="'w' is sparse"):
        with_weights(model_of(main).SerializeToString(), {"w": np.zeros(3, np.float32)})


def test_weights_of_integers_stay_integers() -> None:
    tensor = numpy_helper.from_array(np.int64([0, 2]), "i")
    proto = model([helper.make_node("Gather", ["x", "i"], ["y"])], [floats("x", [3])], [floats("y", [2])], [tensor])
    found = edited(proto, {"i": np.int64([2, 1])})
    assert np.array_equal(runs(found, {"x": np.float32([5, 6, 7])})[0], [7, 6])
