import numpy as np
import pytest

import webrnn
from tests.corpora.models import double
from webrnn.corpora import CorpusError, read


def test_what_is_no_folder_of_results_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="is no folder of results"):
        read(tmp_path / "none")
    (tmp_path / "webrnn-map.json").write_text("{")
    with pytest.raises(CorpusError, match="damaged"):
        read(tmp_path)


def test_it_may_be_read_while_it_is_written(tmp_path):
    seen = []

    def items():
        for number in range(20):
            if number == 15:
                corpus = read(tmp_path / "out")
                seen.append((corpus.complete, [result.index for result in corpus]))
            yield np.float32([number])

    webrnn.map(double(), items(), tmp_path / "out", processes=0)
    ((complete, indices),) = seen
    assert not complete
    assert indices == list(range(len(indices)))
    corpus = read(tmp_path / "out")
    assert corpus.complete
    assert corpus.about["options"] == {}
    assert [result["y"].item() for result in corpus] == [2 * number for number in range(20)]
    assert list(corpus), "it may be read again"
