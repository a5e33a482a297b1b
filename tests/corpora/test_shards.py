import io

import numpy as np
import pytest

from webrnn.corpora import CorpusError, Result
from webrnn.corpora.shards import read_shard, shard_bytes


def test_results_come_back_as_they_were():
    rng = np.random.default_rng(0)
    results = [
        Result(3, "a b\udcff.wav", {"y": rng.standard_normal((2, 3)), "n": np.int64(7) * np.ones((), np.int64)}),
        Result(4, "bad", None, "ShapeError", "no"),
        Result(9, "ü.npy", {"y": np.empty((0, 3)), "n": np.arange(4)}),
        Result(10, "c", {"y": np.float16([1, np.nan]), "n": np.array([True]), "more/:": np.complex64([1j])}),
    ]
    found = list(read_shard(io.BytesIO(shard_bytes(results))))
    good = [result for result in results if result.ok]
    assert [(result.index, result.name) for result in found] == [(result.index, result.name) for result in good]
    for one, other in zip(found, good, strict=True):
        assert one.outputs.keys() == other.outputs.keys()
        for name, array in one.outputs.items():
            assert (array.dtype, array.shape) == (other[name].dtype, other[name].shape)
            assert array.tobytes() == other[name].tobytes()
            assert array.flags.owndata or array.base.size == array.size


def test_many_items_are_few_arrays():
    data = shard_bytes([Result(n, str(n), {"y": np.zeros(n)}) for n in range(500)])
    with np.load(io.BytesIO(data)) as archive:
        assert len(archive.files) == 6


@pytest.mark.parametrize("cut", [0, 10, 300, -1])
def test_a_damaged_file_is_refused(cut):
    data = shard_bytes([Result(0, "a", {"y": np.zeros(100)})])
    with pytest.raises(CorpusError, match="damaged"):
        list(read_shard(io.BytesIO(data[:cut])))


def test_changed_bytes_are_noticed():
    data = bytearray(shard_bytes([Result(0, "a", {"y": np.zeros(100)})]))
    data[data.index(b"0.data") + 300] ^= 1
    with pytest.raises(CorpusError, match="damaged"):
        list(read_shard(io.BytesIO(bytes(data))))
