import json
import os

import numpy as np
import pytest

import webrnn
from tests.corpora.models import double
from webrnn.corpora import CorpusError, read
from webrnn.corpora.store import Store

ABOUT = {"webrnn": "0", "model": "abc", "options": {"frame": 512}}


class Killed(BaseException):
    """As if the process ended here."""


def items(count=30):
    return [("bad" if n in (4, 17) else f"i{n}", np.float32([n] * (n % 3 + 1))) for n in range(count)]


def feeds(count=30):
    return [(name, {"no": array} if name == "bad" else array) for name, array in items(count)]


def mapped(folder, given=None, **how):
    return webrnn.map(double(), feeds() if given is None else given, folder, processes=0, **how)


def content(folder):
    return [(result.index, result.name, result["y"].tolist()) for result in read(folder)]


EXPECTED = [(n, name, (2 * array).tolist()) for n, (name, array) in enumerate(items()) if name != "bad"]


def test_what_is_written_is_read(tmp_path):
    summary = mapped(tmp_path / "out")
    assert (summary.items, summary.failed, summary.skipped) == (30, 2, 0)
    corpus = read(tmp_path / "out")
    assert content(tmp_path / "out") == EXPECTED
    assert len(corpus) == 28
    assert corpus.complete
    assert sorted(corpus.failed) == [4, 17]
    assert corpus.failed[4].kind == "ItemError"
    lines = [json.loads(line) for line in (tmp_path / "out/failed.jsonl").read_text().splitlines()]
    assert [(line["index"], line["item"], line["error"]) for line in lines] == [
        (4, "bad", "ItemError"),
        (17, "bad", "ItemError"),
    ]
    assert "the model has no input 'no'" in lines[0]["reason"]


@pytest.mark.parametrize("call", ["replace", "fsync", "mkdir", "truncate"])
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_each_call_that_changes_the_disk(tmp_path, monkeypatch, call, after):
    """Each run is killed one call later than the one before, and goes on where that was."""
    folder, original, kills = tmp_path / "out", getattr(os, call), 0
    for number in range(1, 200):
        left = [number // 4 + 1]

        def counted(*arguments, left=left, **more):
            left[0] -= 1
            if left[0] == 0 and not after:
                raise Killed
            result = original(*arguments, **more)
            if left[0] == 0:
                raise Killed
            return result

        with monkeypatch.context() as patched:
            patched.setattr(os, call, counted)
            try:
                mapped(folder)
                break
            except Killed:
                kills += 1
    assert content(folder) == EXPECTED
    assert sorted(read(folder).failed) == [4, 17]
    assert read(folder).complete
    assert kills >= {"replace": 2, "fsync": 2, "mkdir": 1, "truncate": 0}[call]
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "webrnn-map.json",
        "index.jsonl",
        "failed.jsonl",
        "shards",
    }


def test_what_is_half_written_is_dropped(tmp_path):
    folder = tmp_path / "out"
    mapped(folder, feeds(10))
    with open(folder / "index.jsonl", "a") as index:
        index.write('{"file": "shards/0000/000')
    (folder / "shards/0000/00000077.npz").write_bytes(b"half")
    (folder / "tmp").mkdir()
    (folder / "tmp/123.npz").write_bytes(b"half")
    assert mapped(folder).skipped == 10
    assert content(folder) == EXPECTED
    assert not (folder / "shards/0000/00000077.npz").exists()


def test_nothing_is_done_twice(tmp_path):
    mapped(tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/shards").rglob("*.npz")}
    assert mapped(tmp_path / "out").skipped == 30
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out/shards").rglob("*.npz")}


def test_new_items_may_come_behind(tmp_path):
    assert mapped(tmp_path / "out", feeds(10)).items == 10
    assert mapped(tmp_path / "out").skipped == 10
    assert content(tmp_path / "out") == EXPECTED


def test_other_inputs_are_refused(tmp_path):
    mapped(tmp_path / "out", feeds(10))
    with pytest.raises(CorpusError, match="are not those of the run before"):
        mapped(tmp_path / "out", feeds()[1:])
    with pytest.raises(CorpusError, match="has results of 10 items, and now there are 3"):
        mapped(tmp_path / "out", feeds(3))
    assert content(tmp_path / "out") == EXPECTED[:9], "what was there stays"


def test_other_options_are_refused(tmp_path):
    mapped(tmp_path / "out", feeds(10))
    with pytest.raises(CorpusError, match=r"options.finite was not given and is True.*restart=True \(--restart\)"):
        mapped(tmp_path / "out", feeds(10), finite=True)
    assert mapped(tmp_path / "out", feeds(3), finite=True, restart=True).items == 3
    assert content(tmp_path / "out") == EXPECTED[:3]


def test_a_folder_without_results_takes_other_options(tmp_path):
    Store(tmp_path / "out", ABOUT).close()
    mapped(tmp_path / "out")
    assert content(tmp_path / "out") == EXPECTED


def test_one_process_at_a_time(tmp_path):
    store = Store(tmp_path / "out", ABOUT)
    with pytest.raises(CorpusError, match=f"another process, {os.getpid()}, writes its results there"):
        Store(tmp_path / "out", ABOUT)
    store.close()
    Store(tmp_path / "out", ABOUT).close()


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CorpusError, match=r"has other files, such as 'thesis\.tex'"):
        mapped(tmp_path)
    with pytest.raises(CorpusError, match="has other files"):
        mapped(tmp_path, restart=True)
    with pytest.raises(CorpusError, match="cannot be made"):
        mapped(tmp_path / "thesis.tex" / "out")


def test_a_shard_that_somebody_removed_is_told(tmp_path):
    mapped(tmp_path / "out")
    next((tmp_path / "out/shards").rglob("*.npz")).unlink()
    with pytest.raises(CorpusError, match="was removed: put it back"):
        mapped(tmp_path / "out")


def test_bad_items_are_tried_again_if_asked_for(tmp_path):
    mapped(tmp_path / "out")
    again = items()
    again[17] = feeds()[17]
    assert mapped(tmp_path / "out", again).failed == 2
    summary = mapped(tmp_path / "out", again, retry_failed=True)
    assert (summary.items, summary.failed, summary.skipped) == (30, 1, 28)
    assert [result.index for result in read(tmp_path / "out")] == [n for n in range(30) if n != 17]
    assert len((tmp_path / "out/failed.jsonl").read_text().splitlines()) == 1
    assert mapped(tmp_path / "out", items(40), retry_failed=True).failed == 0
    assert content(tmp_path / "out") == [(n, name, (2 * array).tolist()) for n, (name, array) in enumerate(items(40))]
    assert (tmp_path / "out/failed.jsonl").read_text() == ""
    assert mapped(tmp_path / "out", items(40), retry_failed=True).skipped == 40
