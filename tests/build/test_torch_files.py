from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build
from webrnn.build.torch_files import read_torch

from .cases import RECORDED
from .damage import pickle_of, with_pickle

BASE = np.arange(24, dtype=np.float32)
GRID = BASE.reshape(4, 6)
VIEWS = {
    "plain": GRID,
    "transposed": GRID.T,
    "offset": BASE[5:9],
    "strided": BASE[1::3],
    "window": GRID[1:3, 2:5],
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 3), np.float32),
    "expanded": np.float32([[1, 1, 1], [2, 2, 2]]),
    "parameter": np.ones(2, np.float32),
}


def file(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


@pytest.mark.parametrize("name", ["views.pt", "views_4.pt"])
def test_views_of_storages(name: str) -> None:
    found = read_torch(file(name))
    for key, expected in VIEWS.items():
        assert found[key].shape == expected.shape
        assert np.array_equal(found[key], expected), key
        assert found[key].flags.c_contiguous
    for kind in ("float64", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"):
        assert found[f"as_{kind}"].dtype == kind
        assert np.array_equal(found[f"as_{kind}"], BASE[:6].astype(kind))
    assert found["as_bfloat16"].dtype == np.float32
    assert np.array_equal(found["as_bfloat16"], BASE[:6])


def test_a_checkpoint_asks_for_its_key() -> None:
    with pytest.raises(webrnn.OptionError, match="key='state_dict'"):
        read_torch(file("checkpoint.pt"))
    with pytest.raises(webrnn.OptionError, match="no state_dict 'model'; the file has 'epoch', 'state_dict'"):
        read_torch(file("checkpoint.pt"), "model")
    assert list(read_torch(file("checkpoint.pt"), "state_dict")) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert build.torch(RECORDED / "checkpoint.pt", key="state_dict").weights.prefixes() == ["0", "1"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("whole_model.pt", r"'torch\.nn\.modules\.container\.Sequential'.*save model\.state_dict\(\)"),
        ("legacy.pt", "before 1.6"),
        ("script.pt", "TorchScript"),
    ],
)
def test_what_is_no_state_dict_is_refused(name: str, words: str) -> None:
    with pytest.raises(webrnn.UnsupportedOp, match=words):
        build.torch(file(name))


def test_a_pickle_that_calls_something_else() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return eval, ("1/0",)

    with pytest.raises(webrnn.UnsupportedOp, match=r"'(builtins|__builtin__)\.eval'"):
        read_torch(with_pickle("views.pt", pickle.dumps({"a": Evil()}, 2)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickle.dumps([1, 2], 2), "holds a list"),
        (pickle.dumps({"a": 1}, 2), "no tensors; it has 'a'"),
        (b"ccollections\nOrderedDict\n.", "holds a Name"),
        (b"ctorch\nFloatStorage\n)R.", "a storage is made"),
        (b"ctorch\nfloat32\n)R.", "torch.float32 is called"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNt\x52.", "no storage"),
        (b"ctorch._utils\n_rebuild_parameter\n(NNNt\x52.", "no tensor"),
        (b"(X\x07\x00\x00\x00storageNNNNtQ.", "storage of the pickle is damaged"),
        (b"NQ.", "no storage"),
        (b"ccollections\nOrderedDict\n}b.", "attributes of a Name"),
    ],
)
def test_damaged_pickles(data: bytes, words: str) -> None:
    with pytest.raises(webrnn.ModelError, match=words):
        read_torch(with_pickle("views.pt", data))


def rebuilt(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], count: int = 24) -> bytes:
    """A pickle with one tensor of the storage 0, which has 24 floats."""

    def number(value: int) -> bytes:
        return pickle.dumps(value, 2)[2:-1]

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    )
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(sizes) + numbers(strides)
    return b"}X\x01\x00\x00\x00a" + tensor + b"\x89NtRs."


def test_a_tensor_of_a_pickle_by_hand() -> None:
    found = read_torch(with_pickle("views.pt", rebuilt(2, (2, 3), (6, 2))))
    assert np.array_equal(found["a"], [[2, 4, 6], [8, 10, 12]])


@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "count"),
    [
        (0, (25,), (1,), 24),
        (20, (5,), (1,), 24),
        (0, (2, 2), (24, 1), 24),
        (-1, (2,), (1,), 24),
        (0, (2,), (-1,), 24),
        (0, (2, 2), (1,), 24),
        (0, (1,) * 40, (1,) * 40, 24),
        (0, (2**40,), (0,), 24),
        (0, (2**60,), (1,), 24),
        (0, (2,), (1,), 25),
        (0, (2,), (1,), -3),
    ],
)
def test_tensors_outside_of_their_storage(
    offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], count: int
) -> None:
    with pytest.raises(webrnn.ModelError):
        read_torch(with_pickle("views.pt", rebuilt(offset, sizes, strides, count)))


def test_zip_files_that_are_not_of_torch_save() -> None:
    def zipped(entries: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", kind) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        return made.getvalue()

    views = pickle_of("views.pt")
    for data, words in (
        (zipped({"a/data.pkl": views, "b/data.pkl": views}), "one data.pkl, this zip file has 2"),
        (zipped({"a/data.pkl": views}), "'a/data/0' is not in the zip file"),
        (zipped({"a/data.pkl": views}, zipfile.ZIP_DEFLATED), "compressed"),
        (zipped({"a/data.pkl": views, "a/byteorder": b"big"}), "big-endian"),
        (file("views.pt")[:-40], "damaged"),
    ):
        with pytest.raises((webrnn.ModelError, webrnn.UnsupportedOp), match=words):
            read_torch(data)
