from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn.build.safetensors import looks_like_safetensors, read_safetensors

from .cases import RECORDED


def written(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_a_file_of_the_library() -> None:
    found = read_safetensors((RECORDED / "types.safetensors").read_bytes())
    assert {name: array.dtype for name, array in found.items()} == {"half": "f2", "brain": "f4", "ids": "i8"}
    assert all(np.array_equal(array, [0, 1, 2]) for array in found.values())


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("F64", "f8"), ("F32", "f4"), ("F16", "f2"), ("I64", "i8"), ("I16", "i2"), ("U8", "u1"), ("BOOL", "?")],
)
def test_types(dtype: str, stored: str) -> None:
    array = np.array([[1, 0, 1]], stored)
    found = read_safetensors(written({"a": entry(dtype, [1, 3], [0, array.nbytes])}, array.tobytes()))
    assert found["a"].dtype == array.dtype
    assert np.array_equal(found["a"], array)


def test_order_is_that_of_the_header() -> None:
    header = {
        "b": entry(offsets=[8, 16]),
        "__metadata__": {"x": "y"},
        "a": entry(),
        "none": entry(shape=[0], offsets=[8, 8]),
    }
    found = read_safetensors(written(header, bytes(16)))
    assert list(found) == ["b", "a", "none"]
    assert looks_like_safetensors(written(header, bytes(16)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"abc", "it has 3 bytes"),
        ((2**63).to_bytes(8, "little") + b"{}", "a header of 9223372036854775808 bytes"),
        (written(b"{nonsense"), "not JSON"),
        (written([1]), "not a JSON object"),
        (written(b'{"a":1,"a":2}'), "'a' is there twice"),
        (written(b"[" * 100_000), "not JSON"),
        (written({"a": 3}), "'a' has no dtype"),
        (written({"a": entry(offsets=[0, 8])}, bytes(4)), "end at byte 8"),
        (written({"a": entry()}, bytes(9)), "end at byte 8"),
        (written({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)), "'b' begins at byte 4"),
        (written({"a": entry(offsets=[4, 12])}, bytes(12)), "'a' begins at byte 4"),
        (written({"a": entry(shape=[3])}, bytes(8)), "needs 12 bytes, it has 8"),
        (written({"a": entry(shape=[-2])}, bytes(8)), "shape and data_offsets"),
        (written({"a": entry(shape=[True, 2])}, bytes(8)), "shape and data_offsets"),
        (written({"a": entry(shape=[2.0])}, bytes(8)), "shape and data_offsets"),
        (written({"a": entry(offsets=[8, 0])}, bytes(8)), "it has -8"),
        (written({"a": entry(offsets=[0])}, bytes(8)), "shape and data_offsets"),
        (written({"a": entry(shape=[1] * 40, dtype="U8", offsets=[0, 1])}, bytes(1)), "40 axes"),
        (written({"a": entry(shape=[0, 2**61, 2**61], offsets=[0, 0])}), "'a'"),
        (written({"a": entry("F8_E4M3")}, bytes(8)), "'F8_E4M3'"),
        (written({"a": entry(["F32"])}, bytes(8)), "'F32'"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, words: str) -> None:
    with pytest.raises((webrnn.ModelError, webrnn.UnsupportedOp), match=words.replace("[", r"\[")):
        read_safetensors(data)
