import pytest

from webrnn.corpora.errors import CorpusError
from webrnn.corpora.index import INDEX, Failure, Record, end_line, read_index

RECORDS = [
    Record("shards/0000/00000000.npz", 0, 3, "abc", (Failure(1, "b\udcff", "ShapeError", "too short"),)),
    Record(None, 3, 1, "def", (Failure(3, "d", "OSError", ""),)),
    Record("shards/0000/00000001.npz", 1, 3, None, (), (1, 3)),
]


def test_lines_come_back(tmp_path):
    (tmp_path / INDEX).write_text("".join(record.line() for record in RECORDS) + end_line(4))
    found = list(read_index(tmp_path))
    assert [record for record, _ in found] == [*RECORDS, 4]
    assert found[-1][1] == (tmp_path / INDEX).stat().st_size


def test_a_line_that_is_not_whole_does_not_count(tmp_path):
    lines = [record.line() for record in RECORDS]
    whole = "".join(lines)
    for size in range(len(whole)):
        (tmp_path / INDEX).write_text(whole[:size])
        found = [record for record, _ in read_index(tmp_path)]
        assert found == RECORDS[: whole[:size].count("\n")]


def test_a_damaged_line_is_refused(tmp_path):
    (tmp_path / INDEX).write_text(RECORDS[0].line() + "{}\n" + RECORDS[1].line())
    with pytest.raises(CorpusError, match="line 2: it is damaged"):
        list(read_index(tmp_path))


def test_no_index_is_an_empty_one(tmp_path):
    assert list(read_index(tmp_path)) == []
