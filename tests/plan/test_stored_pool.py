"""The axes that count streams, in the metadata of a file."""

import json
from copy import deepcopy

import pytest

import webrnn
from tests.engine.stream_models import session, stateful
from webrnn.plan import opcodes
from webrnn.plan.file import PlanFile
from webrnn.plan.stored_pool import PoolAxes, pool_text


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "m.rnn"
    session(stateful("LSTM")).export(path, carry="auto", pool=True)
    return path.read_bytes()


def with_meta(data, change):
    """The same file with other metadata."""
    file = PlanFile(data)
    meta = deepcopy(file.meta)
    change(meta)
    text = json.dumps(meta).encode()
    words = bytearray(data[: file.header["meta_offset"]])
    place = 4 * opcodes.HEADER.index("meta_bytes")
    words[place : place + 4] = len(text).to_bytes(4, "little")
    return bytes(words) + text


def test_it_is_read_as_it_was_written(data):
    file = PlanFile(data)
    assert file.pool == PoolAxes((1, 1, 1), (2, 1, 1))
    assert "any number of streams in one run, counted by streams" in pool_text(file.pool, file)
    assert PlanFile(with_meta(data, lambda meta: meta.pop("pool"))).pool is None


@pytest.mark.parametrize(
    "pool",
    [
        3, "x", [], {}, {"inputs": [1, 1, 1]}, {"inputs": None, "outputs": None}, {"inputs": [], "outputs": []},
        {"inputs": [1, 1], "outputs": [2, 1, 1]}, {"inputs": [1, 1, 1], "outputs": [2, 1]},
        {"inputs": [0, 1, 1], "outputs": [2, 1, 1]}, {"inputs": [1, 1, 1], "outputs": [0, 1, 1]},
        {"inputs": [2, 1, 1], "outputs": [2, 1, 1]}, {"inputs": [1, 1, 7], "outputs": [2, 1, 1]},
        {"inputs": [1, 1, -1], "outputs": [2, 1, 1]}, {"inputs": [1, 1, True], "outputs": [2, 1, 1]},
        {"inputs": [1, 1, None], "outputs": [2, 1, 1]}, {"inputs": [1, 1, 1.0], "outputs": [2, 1, 1]},
    ],
)  # fmt: skip
def test_damaged_metadata_are_refused(pool, data):
    with pytest.raises(webrnn.PlanError, match="the metadata of the pool are damaged"):
        PlanFile(with_meta(data, lambda meta: meta.update(pool=pool)))


def test_the_size_that_counts_streams_is_on_one_axis(data):
    """If x said that its steps are streams too, nothing would say how many of each there are."""

    def squared(meta):
        x = meta["inputs"][0]
        x["sizes"][0], x["shape"][0] = x["sizes"][1], x["shape"][1]

    with pytest.raises(webrnn.PlanError, match="the metadata of the pool are damaged"):
        PlanFile(with_meta(data, squared))
