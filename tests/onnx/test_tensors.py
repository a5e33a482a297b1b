"""Every element type and encoding of TensorProto, and where external data may be."""

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.onnx.models import floats, graph, initializer, model, recurrent
from tests.reference.onnx_cases import to_webrnn
from webrnn.ir import DType
from webrnn.onnx.proto import decode_model
from webrnn.onnx.reader import read_model
from webrnn.onnx.tensors import TensorReader

NAMES = [name for name in TensorProto.DataType.keys() if name not in ("UNDEFINED", "STRING")]  # noqa: SIM118


def read(tensor):
    data = model([], [], [floats("y", None)], [tensor]).SerializeToString()
    decoded = decode_model(data)
    return TensorReader(data, None).read(decoded.graph.initializers[0])


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_type_and_encoding(name, raw):
    code = TensorProto.DataType.Value(name)
    numbers = np.array([0, 1, 1, 0, 1, 1, 1], np.float64).astype(helper.tensor_dtype_to_np_dtype(code))
    tensor = numpy_helper.from_array(numbers, "t")
    if not raw:
        tensor = helper.make_tensor("t", code, numbers.shape, numbers.tolist())
    array, dtype = read(tensor)
    assert dtype == DType[name]
    assert array.dtype == dtype.array_type
    expected = to_webrnn(numpy_helper.to_array(tensor))
    np.testing.assert_array_equal(array, expected)


def test_strings():
    array, dtype = read(helper.make_tensor("t", TensorProto.STRING, [2], ["a", "ü"]))
    assert dtype is DType.STRING
    assert array.tolist() == ["a", "ü"]


def test_weights_are_views_of_the_file():
    weights = np.arange(1000, dtype=np.float32)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    constants = read_model(
        model([node], [floats("x", [1])], [floats("y", None)], [initializer("w", weights)]).SerializeToString()
    ).constants
    (array,) = constants.values()
    assert not array.flags.owndata
    np.testing.assert_array_equal(array, weights)


def test_opening_a_large_model_copies_no_weights():
    weights = np.zeros(50_000_000, np.uint8)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1])
    data = model([node], [x], [floats("y", None)], [initializer("w", weights)]).SerializeToString()
    webrnn.InferenceSession(recurrent("GRU").SerializeToString(), backend="numpy")
    tracemalloc.start()
    session = webrnn.InferenceSession(data, backend="numpy")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert session.get_inputs()[0].name == "x"
    assert most < 1_000_000


@pytest.mark.parametrize("size", [3, 5])
def test_wrong_number_of_bytes(size):
    with pytest.raises(webrnn.ModelError, match="'t' has"):
        read(TensorProto(name="t", dims=[1], data_type=1, raw_data=bytes(size)))


def test_wrong_number_of_elements():
    with pytest.raises(webrnn.ModelError, match="'t' has 2 elements, its shape needs 3"):
        read(TensorProto(name="t", dims=[3], data_type=1, float_data=[1, 2]))


def test_unknown_element_type():
    with pytest.raises(webrnn.ModelError, match="element type 99"):
        read(TensorProto(name="t", dims=[1], data_type=99, raw_data=bytes(4)))


INTEGERS = {"INT64": np.int64, "UINT64": np.uint64, "INT32": np.int32, "UINT32": np.uint32, "INT16": np.int16}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_every_width_in_typed_fields(name):
    bounds = np.iinfo(INTEGERS[name])
    widths = [1 << bits for bits in range(bounds.bits - 1)]
    numbers = np.array([0, bounds.min, bounds.max, *widths, *(n - 1 for n in widths)], INTEGERS[name])
    array, _ = read(helper.make_tensor("t", TensorProto.DataType.Value(name), numbers.shape, numbers))
    assert array.dtype == numbers.dtype
    np.testing.assert_array_equal(array, numbers)


def test_floats_in_typed_fields_are_views_of_the_file():
    array, _ = read(helper.make_tensor("t", TensorProto.FLOAT, [1000], np.arange(1000, dtype=np.float32)))
    assert not array.flags.owndata
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, np.arange(1000))


def with_longs(content):
    """The bytes of a model with a tensor whose int64_data are these bytes, and how to read it."""
    tensor = TensorProto(name="t", dims=[2], data_type=TensorProto.INT64).SerializeToString() + content
    data = b"\x3a" + bytes([len(tensor) + 2]) + b"\x2a" + bytes([len(tensor)]) + tensor
    return TensorReader(data, None).read(decode_model(data).graph.initializers[0])


@pytest.mark.parametrize("content", [b"\x3a\x03\x01\xac\x02", b"\x38\x01\x38\xac\x02", b"\x3a\x01\x01\x38\xac\x02"])
def test_integers_packed_or_not(content):
    np.testing.assert_array_equal(with_longs(content)[0], [1, 300])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x3a\x02\x01\xac", "ends inside"),
        (b"\x3a\x01\x80", "ends inside"),
        (b"\x38", "ends inside"),
        (b"\x3a\x05\x01", "claims 5 bytes"),
        (b"\x3a\x0c\x01" + b"\x80" * 10 + b"\x01", "more than 64 bits"),
        (b"\x3a\x00", "0 elements"),
        (b"", "0 elements"),
    ],
)
def test_damaged_lists_of_integers(content, message):
    with pytest.raises(webrnn.ModelError, match=message):
        with_longs(content)


def external(folder, **entries):
    tensor = TensorProto(name="w", dims=[2], data_type=1, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    node = helper.make_node("Identity", ["w"], ["y"])
    path = folder / "m.onnx"
    path.write_bytes(model([node], [], [floats("y", None)], [tensor]).SerializeToString())
    return path


def test_external_data(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(np.float32([7, 1, 2]).tobytes())
    path = external(tmp_path, location="sub/w.bin", offset=4, length=8)
    np.testing.assert_array_equal(webrnn.InferenceSession(path).run(None, {})[0], [1, 2])
    with pytest.raises(webrnn.ModelError, match="no folder"):
        webrnn.InferenceSession(path.read_bytes())


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "../w.bin"},
        {"location": "sub/../../w.bin"},
        {"location": "/etc/hostname"},
        {"location": "link.bin"},
        {"location": "linked/w.bin"},
        {"location": ""},
        {"location": "none.bin"},
        {"location": "."},
        {"location": "here.bin", "offset": 4},
        {"location": "here.bin", "offset": -4, "length": 8},
        {"location": "here.bin", "offset": "far"},
        {"location": "here.bin", "length": 1 << 40},
        {"location": "nul\0.bin"},
    ],
)
def test_external_data_out_of_bounds(entries, tmp_path):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path / "w.bin", folder / "here.bin"):
        place.write_bytes(bytes(8))
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(webrnn.ModelError, match="'w'"):
        webrnn.InferenceSession(external(folder, **entries))


def test_sparse_initializer():
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [5, 6])
    indices = helper.make_tensor("i", TensorProto.INT64, [2], [0, 3])
    main = graph([helper.make_node("Identity", ["w"], ["y"])], [], [floats("y", None)])
    main.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 2]))
    proto = helper.make_model(main, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (y,) = webrnn.InferenceSession(proto.SerializeToString()).run(None, {})
    np.testing.assert_array_equal(y, [[5, 0], [0, 6]])


def sparse_model(values, indices, dims):
    main = graph([helper.make_node("Identity", ["w"], ["y"])], [], [floats("y", None)])
    sparse = main.sparse_initializer.add(dims=dims)
    sparse.values.CopyFrom(numpy_helper.from_array(values, "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(indices, "i"))
    return helper.make_model(main, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize(
    ("values", "indices", "dims"),
    [
        (np.float32(1), np.int64([0]), [5]),
        (np.float32([1]), np.int64(0), [5]),
        (np.float32([1]), np.float32([0]), [5]),
        (np.float32([1]), np.array(["0"], object), [5]),
        (np.float32([1, 2]), np.int64([0]), [5]),
        (np.float32([1, 2]), np.int64([[0, 1]]), [5]),
        (np.float32([1, 2]), np.int64([1, 1]), [5]),
        (np.float32([1]), np.int64([-1]), [5]),
        (np.float32([1]), np.int64([5]), [5]),
        (np.float32([1]), np.int64([[0, 2]]), [2, 2]),
        (np.float32([[1]]), np.int64([0]), [5]),
        (np.float32([]), np.int64([]), [2**40, 2**40, 0]),
        (np.float32([1]), np.int64([0]), [-1]),
    ],
)
def test_sparse_initializer_that_contradicts_itself(values, indices, dims):
    with pytest.raises(webrnn.ModelError, match="tensor 'w'"):
        webrnn.InferenceSession(sparse_model(values, indices, dims))


def test_sparse_strings():
    data = sparse_model(np.array(["a"], object), np.int64([1]), [3])
    (y,) = webrnn.InferenceSession(data).run(None, {})
    assert y.tolist() == ["", "a", ""]


@pytest.mark.parametrize("location", ["w" * 5000, "a/" * 2500, "\0"])
def test_external_data_of_an_impossible_name(location, tmp_path):
    with pytest.raises(webrnn.ModelError, match="'w'"):
        webrnn.InferenceSession(external(tmp_path, location=location))
