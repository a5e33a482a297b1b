from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import webrnn
from webrnn.build.pickles import PickleReader

PLAIN = {
    "text": "ünïcode" * 100, "number": [0, 255, 256, 65536, -1, 2**31, -(2**70)], "float": [0.5, float("inf")],
    "none": None, "yes": True, "no": False, "tuple": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), "bytes": b"ab" * 300,
    "set": {1, 2}, "nested": {"a": {"b": [{}, []]}},
}  # fmt: skip


def refuse(name: str) -> Callable[..., Any]:
    raise webrnn.UnsupportedOp(f"refused {name}")


def read(data: bytes) -> Any:
    return PickleReader(data, refuse, refuse).read()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_data_of_every_protocol(protocol: int) -> None:
    data = dict(PLAIN)
    if protocol < 4:
        del data["set"]  # a call of set before
    if protocol < 3:
        del data["bytes"]
    assert read(pickle.dumps(data, protocol)) == data


def test_what_is_shared_is_shared() -> None:
    shared = [1]
    found = read(pickle.dumps([shared, shared], 4))
    assert found[0] is found[1]


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("false",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_called(protocol: int) -> None:
    with pytest.raises(webrnn.UnsupportedOp, match=r"refused (posix|nt)\.system"):
        read(pickle.dumps(Evil(), protocol))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"(.",
        b"K",
        b"]K\x01a",
        b"K\x01K\x02a.",
        b"}K\x01s.",
        b"}]K\x01s.",
        b"}(K\x01u.",
        b"h\x05.",
        b"X\xff\xff\xff\x7fabc.",
        b"\x8a\xff.",
        b"K\x01)R.",
        b"K\x01}b.",
        b"\x80\x09N.",
        b"\x95" + b"\xff" * 8 + b"N.",
        b"\x93.",
        b"cno newline",
        b"X\x01\x00\x00\x00\xff.",
        b"0.",
        b"1.",
        b"\x8f(]\x90.",
    ],
    ids=repr,
)
def test_damaged_pickles(data: bytes) -> None:
    with pytest.raises((webrnn.ModelError, webrnn.UnsupportedOp)):
        read(data)


NESTED = {
    "tuples": b")" + b"\x85" * 50_000 + b".",
    "tuples as keys": b"})" + b"\x85" * 50_000 + b"Ns.",
    "lists": b"]" * 50_000 + b"a" * 49_999 + b".",
    "dicts": b"}" + b"K\x01}" * 50_000 + b"s" * 50_000 + b".",
    "lists that are filled once they are inside": b"]" + b"]q\x00ah\x00" * 50_000 + b"Na.",
    "lists that contain each other": b"]q\x00]q\x01h\x00a0h\x01a.",
    "a list that contains itself": b"]q\x00h\x00a.",
}


@pytest.mark.parametrize("data", NESTED.values(), ids=NESTED)
def test_how_deep_data_are_nested_is_bounded(data: bytes) -> None:
    with pytest.raises(webrnn.ModelError, match=r"nested too deep|something is added to a list"):
        read(data)


def test_tuples_are_no_keys() -> None:
    for data in (b"})\x85Ns.", b"\x8f()\x90."):
        with pytest.raises(webrnn.ModelError, match="a tuple is a key"):
            read(data)


@pytest.mark.parametrize("code", [b"i", b"o", b"I", b"F", b"P", b"\x82", b"\x92", b"\x97", b"2", b"V", b"\x8b"])
def test_opcodes_that_weights_do_not_need(code: bytes) -> None:
    with pytest.raises(webrnn.UnsupportedOp, match="opcode"):
        read(code + b"1\n.")
