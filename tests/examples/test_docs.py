"""The code in docs/streaming.md runs as it stands, from top to bottom."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from tests.models.fetch import CACHE, Unavailable, model_path, speech_path

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


def test_streaming_page(monkeypatch, capsys, tmp_path):
    try:
        for name in ("riann", "nsnet2_16k"):
            model_path(name)
        speech_path()
    except Unavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 7
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = re.findall(r"print\(.*\) +# (.*)", "".join(blocks))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in printed] == printed, "what is printed is what comments say"
    asyncio.run(_two_frames(names["results_of"]))


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target


async def _two_frames(results_of):
    async def frames():
        for _ in range(2):
            yield np.ones((1, 1, 7), np.float32)

    assert len([outputs async for outputs in results_of(frames())]) == 2
