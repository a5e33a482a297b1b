import io
import os
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from webrnn.corpora import items
from webrnn.corpora.items import Row, Unreadable, found_in, inputs
from webrnn.errors import OptionError


def names(given, **how):
    return [name for name, _ in inputs(given, **how)]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("a/2.npy", "a/10.npy", "a/b/x.wav", "a/b/notes.txt", "a/.hidden.npy", "a/z.npz", "a/.git/y.npy"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    return tmp_path


def test_a_folder_is_all_its_files_in_a_fixed_order(corpus):
    assert names("a") == ["a/10.npy", "a/2.npy", "a/b/x.wav", "a/z.npz"]


def test_a_large_folder_is_sorted_by_parts(corpus, monkeypatch):
    monkeypatch.setattr(items, "MOST_NAMES", 7)
    for number in range(50):
        Path(f"a/{number * 37 % 50:03d}.npy").touch()
    assert names("a") == sorted([f"a/{n:03d}.npy" for n in range(50)] + ["a/10.npy", "a/2.npy", "a/b/x.wav", "a/z.npz"])


def test_a_folder_of_results_is_not_looked_into(corpus):
    Path("a/b/webrnn-map.json").touch()
    assert names("a") == ["a/10.npy", "a/2.npy", "a/z.npz"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a/*.npy", ["a/10.npy", "a/2.npy"]),
        ("**/*.wav", ["a/b/x.wav"]),
        ("a/**", ["a/b/x.wav", "a/10.npy", "a/2.npy", "a/z.npz"]),
        ("?/[b]/x.*", ["a/b/x.wav"]),
        ("*", ["a/10.npy", "a/2.npy", "a/b/x.wav", "a/z.npz"]),
    ],
)
def test_patterns(corpus, pattern, found):
    assert sorted(names(pattern)) == sorted(found)
    assert [os.path.relpath(name) for name in names(str(corpus / pattern))] == names(pattern)


def test_a_pattern_that_nothing_matches_is_refused(corpus):
    with pytest.raises(OptionError, match=r"no file matches 'a/\*\.flac'"):
        names("a/*.flac")


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(corpus):
    Path("a[1].npy").touch()
    assert names("a[1].npy") == ["a[1].npy"]
    assert names(Path("*.npy")) == ["*.npy"]


def test_lists(corpus):
    Path("list.txt").write_text("a/2.npy\n\na/b\r\nnot there.npy\n")
    found = ["a/2.npy", "a/b/x.wav", "not there.npy"]
    assert names("@list.txt") == found
    assert names("-", stdin=io.StringIO("a/2.npy\na/b\nnot there.npy")) == found
    with pytest.raises(OptionError, match=r"@none.txt: the list cannot be read"):
        names("@none.txt")


def test_rows_of_parquet_files(corpus):
    parquet.write_table(pyarrow.table({"x": [[1.0], [2.0], [3.0]]}), "rows.parquet", row_group_size=2)
    assert list(inputs("rows.parquet")) == [
        ("rows.parquet#0", Row("rows.parquet", 0, 0)),
        ("rows.parquet#1", Row("rows.parquet", 0, 1)),
        ("rows.parquet#2", Row("rows.parquet", 1, 0)),
    ]
    Path("broken.parquet").write_bytes(b"PAR1")
    ((name, source),) = inputs("broken.parquet")
    assert name == "broken.parquet"
    assert isinstance(source, Unreadable)


def test_items_of_python(corpus):
    found = list(found_in([np.zeros(2), {"x": np.ones(1)}, ("mine", np.zeros(3)), "a/2.npy", ("other", "a/2.npy")]))
    assert [name for name, _ in found] == ["0", "1", "mine", "a/2.npy", "other"]
    assert str(found[4][1]) == "a/2.npy"
    assert names("a") == [name for name, _ in found_in("a")] == [name for name, _ in found_in(Path("a"))]


@pytest.mark.parametrize(("given", "said"), [([3], "item 0 is of type int"), (np.zeros(3), "put an array into one")])
def test_what_is_no_item_is_refused(given, said):
    with pytest.raises(OptionError, match=said):
        list(found_in(given))
