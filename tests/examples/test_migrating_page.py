"""The Python of docs/migrating.md and docs/command-line.md runs as it stands."""

import re
from pathlib import Path

import pytest
from onnx.parser import parse_model

DOCS = Path(__file__).parents[2] / "docs"
HEAD = '<ir_version: 8, opset_import: ["": 17]> '
PLAIN = HEAD + "g (float[B, T, 3] x) => (float[B, T, 3] y) { y = Relu(x) }"
STATEFUL = HEAD + (
    "g (float[B, T, 3] x, float[B, 3] h_in) => (float[B, 3] h_out) <int64[1] one = {1}> "
    "{ s = ReduceMean<axes = [1], keepdims = 0>(x) h_out = Add(s, h_in) }"
)
BLOCKS = [
    (page, block)
    for page in ("migrating.md", "command-line.md")
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_block_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = parse_model(STATEFUL if "h_in" in block else PLAIN)
    Path("model.onnx").write_bytes(model.SerializeToString())
    exec(compile(block, page, "exec"), {})


def test_there_are_blocks():
    assert len(BLOCKS) == 3
