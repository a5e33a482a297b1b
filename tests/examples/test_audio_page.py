"""The Python code in docs/audio-worklet.md runs as it stands, from top to bottom."""

import re
from pathlib import Path

import numpy as np
import pytest

import webrnn
from tests.models.fetch import CACHE, Unavailable, model_path, speech_path

PAGE = Path(__file__).parents[2] / "docs" / "audio-worklet.md"


def test_page(tmp_path, monkeypatch):
    try:
        for name in ("dtln_1", "dtln_2", "silero_v6"):
            model_path(name)
        speech_path()
    except Unavailable as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["clean"]) == 16000 - 384
    assert {file.name for file in tmp_path.iterdir()} == {"silero.rnn", "dtln.rnn", "quieter.rnn"}
    (found,) = webrnn.InferenceSession("quieter.rnn").run(None, {"x": np.ones(128, np.float32)})
    assert np.array_equal(found, np.full(128, 0.5, np.float32))
