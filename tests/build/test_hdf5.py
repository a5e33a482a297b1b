from __future__ import annotations

import struct

import numpy as np
import pytest

import webrnn
from webrnn.build.hdf5 import SIGNATURE, read_hdf5

from . import replay

FILE = replay.keras_file("model.h5")


def test_datasets_and_attributes() -> None:
    found = read_hdf5(FILE)
    assert found.attributes[""]["backend"] == "tensorflow"
    assert str(found.attributes[""]["model_config"]).startswith('{"class_name": "Functional"')
    names = found.attributes["model_weights"]["layer_names"]
    assert isinstance(names, list)
    assert "gru_0" in names
    path = "model_weights/gru_0/gru_0/gru_cell/kernel"
    key = next(name for name in found.datasets if name.endswith("gru_0/gru_cell/kernel"))
    assert key.startswith(path.split("/gru_cell")[0].rsplit("/", 1)[0])
    assert found.datasets[key].shape == (3, 12)
    assert found.datasets[key].dtype == np.float32


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(FILE)
    struct.pack_into(f"<{form}", data, at, value)
    return bytes(data)


def test_other_files_are_refused() -> None:
    for data in (b"", b"abc", SIGNATURE, FILE[:50], FILE[:2000]):
        with pytest.raises(webrnn.ModelError):
            read_hdf5(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(8, "B", 2), "superblock of version 2"),
        (changed(13, "B", 4), "8 bytes"),
        (changed(24, "Q", 512), "first byte"),
        (changed(64, "Q", 2**63), "points to byte"),
        (FILE.replace(b"TREE", b"TREX"), "no TREE"),
        (FILE.replace(b"HEAP", b"HEAX"), "no HEAP"),
        (FILE.replace(b"GCOL", b"GCOX"), "no GCOL"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, words: str) -> None:
    with pytest.raises((webrnn.ModelError, webrnn.UnsupportedOp), match=words):
        read_hdf5(data)


def test_a_group_inside_itself_ends() -> None:
    """The first member of the root points back to it."""
    root = struct.unpack_from("<Q", FILE, 64)[0]
    node = FILE.index(b"SNOD")
    with pytest.raises(webrnn.ModelError, match="twice"):
        read_hdf5(changed(node + 8 + 8, "Q", root))
