import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.corpora.test_loading import GAIN, SAMPLES
from webrnn.audio import write_wav
from webrnn.corpora.errors import ItemError
from webrnn.corpora.items import Item, inputs
from webrnn.corpora.loading import Loader
from webrnn.corpora.options import Options


def rows(path, table, fed=(SAMPLES,), **options):
    parquet.write_table(pyarrow.table(table), path)
    loader = Loader(Options(**options), fed, 16000)
    return [loader.feeds(Item(0, *found))[0] for found in inputs(str(path))]


def test_columns_of_parquet_files(tmp_path):
    floats = pyarrow.array([[1.0, 2.0], [3.0]], pyarrow.list_(pyarrow.float32()))
    found = rows(tmp_path / "a.parquet", {"x": floats, "other": [1, 2]})
    assert [feeds["x"].tolist() for feeds in found] == [[[1, 2]], [[3]]]
    found = rows(tmp_path / "b.parquet", {"speech": floats, "other": [1, 2]}, columns={"x": "speech"})
    assert found[1]["x"].tolist() == [[3]]
    assert rows(tmp_path / "c.parquet", {"only": floats})[1]["x"].tolist() == [[3]]
    nested = rows(tmp_path / "d.parquet", {"x": [[[1.0, 2.0], [3.0, 4.0]]]}, cast=True)
    assert nested[0]["x"].tolist() == [[1, 2], [3, 4]]
    both = rows(tmp_path / "e.parquet", {"x": floats, "gain": [0.5, 1.0]}, [SAMPLES, GAIN], cast=True)
    assert both[0]["gain"] == np.float32(0.5)


def test_files_in_columns(tmp_path):
    write_wav(tmp_path / "a.wav", np.float32([0.5]), 16000)
    np.save(tmp_path / "a.npy", np.float32([0.25]))
    data = [(tmp_path / name).read_bytes() for name in ("a.wav", "a.npy")]
    assert [feeds["x"].item() for feeds in rows(tmp_path / "a.parquet", {"x": data})] == [0.5, 0.25]
    structs = [{"bytes": data[0], "path": "a.wav"}]
    assert rows(tmp_path / "b.parquet", {"x": structs})[0]["x"].item() == 0.5
    with pytest.raises(ItemError, match="neither a wav file nor"):
        rows(tmp_path / "c.parquet", {"x": [b"abc"]})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"x": [[1.0], None]}, "'x' has nothing in this row"),
        ({"x": [[1.0], [None]]}, "1 numbers that are missing"),
        ({"x": [[[1.0], [1.0, 2.0]]]}, "different lengths"),
        ({"x": ["text"]}, "'x' is of type string"),
        ({"a": [1], "b": [2]}, r"no column has the name of an input: there are \['a', 'b'\]"),
    ],
)
def test_bad_rows(tmp_path, table, said):
    with pytest.raises(ItemError, match=said):
        rows(tmp_path / "a.parquet", table)
