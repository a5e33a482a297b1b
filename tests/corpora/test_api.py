import subprocess
import sys

import numpy as np
import pytest

import webrnn
from tests.corpora.models import double, write_arrays
from webrnn.audio.plans import AudioModel
from webrnn.corpora import ItemError
from webrnn.errors import BackendError, ModelError, OptionError
from webrnn.ir import DType, GraphBuilder


def test_items_of_all_kinds(tmp_path):
    np.save(tmp_path / "a.npy", np.float32([3]))
    items = [
        np.float32([1]),
        {"x": np.float32([2])},
        tmp_path / "a.npy",
        ("four", np.float32([4])),
        tmp_path / "none.npy",
    ]
    *good, bad = webrnn.map(double(), items, processes=0)
    assert [(result.name.rpartition("/")[2], result["y"].item()) for result in good] == [
        ("0", 2), ("1", 4), ("a.npy", 6), ("four", 8)
    ]  # fmt: skip
    with pytest.raises(ItemError, match="FileNotFoundError: No such file"):
        bad["y"]


def test_it_is_lazy():
    taken = []

    def items():
        for number in range(10**9):
            taken.append(number)
            yield np.float32([number])

    results = webrnn.map(double(), items(), processes=0)
    assert not taken
    assert next(results)["y"].item() == 0
    assert len(taken) < 20
    results.close()


def test_no_items():
    assert list(webrnn.map(double(), [], processes=0)) == []


def test_no_items_in_a_folder(tmp_path):
    (tmp_path / "in").mkdir()
    assert webrnn.map(double(), tmp_path / "in", tmp_path / "out").items == 0
    assert webrnn.corpora.read(tmp_path / "out").complete


def test_results_inside_the_folder_of_the_items(tmp_path):
    write_arrays(tmp_path, 3)
    for _ in range(2):
        summary = webrnn.map(double(), tmp_path, tmp_path / "out", processes=0)
        assert (summary.items, summary.failed) == (3, 3)


def test_a_graph_is_a_model():
    b = GraphBuilder("double")
    x = b.input("x", DType.FLOAT, (2,))
    b.graph.outputs = [b.op("Add", x, x, output=b.value("y"))]
    (result,) = webrnn.map(b.graph, [np.float32([1, 2])], processes=1)
    assert result["y"].tolist() == [2, 4]
    with pytest.raises(OptionError, match="export it"):
        webrnn.map(b.graph, [], "out")


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"frames": 3}, OptionError, "unexpected keyword argument 'frames'"),
        ({"frame": 3}, OptionError, "frame= is for streams"),
        ({"processes": -1}, OptionError, "processes=-1"),
        ({"processes": 2, "dask": "tcp://x"}, OptionError, "with dask= the cluster"),
        ({"restart": True}, OptionError, "for a folder of results"),
        ({"model": "none.onnx", "output": "out"}, ModelError, "cannot read 'none.onnx'"),
        ({"model": AudioModel(None, {}, {})}, OptionError, "a path, bytes or a graph, not AudioModel"),
    ],
)
def test_misuse(how, error, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        webrnn.map(**{"model": double(), "items": [], **how})
    assert not (tmp_path / "out").exists()


def test_libraries_that_are_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(BackendError, match=r"pip install 'webrnn\[parquet\]'"):
        list(webrnn.map(double(), [tmp_path / "a.parquet"], processes=0))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BackendError, match=r"pip install 'webrnn\[dask\]'"):
        list(webrnn.map(double(), [np.zeros(1)], dask="tcp://127.0.0.1:1"))


def test_importing_webrnn_does_not_import_it():
    code = "import sys, webrnn; webrnn.InferenceSession; assert not any('corpora' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
