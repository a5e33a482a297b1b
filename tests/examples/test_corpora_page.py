"""The code in docs/corpora.md runs as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

from tests.models.fetch import CACHE, Unavailable, model_path

PAGE = Path(__file__).parents[2] / "docs" / "corpora.md"


def test_corpora_page(monkeypatch, capsys, tmp_path):
    try:
        model_path("riann")
    except Unavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = re.findall(r"print\(.*\)  # (.*)", "".join(blocks))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in printed] == printed, "what is printed is what comments say"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
