"""The code in docs/building.md runs as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

import webrnn
from tests.build import replay
from tests.build.writing import gru, safetensors
from webrnn import build

PAGE = (Path(__file__).parents[2] / "docs" / "building.md").read_text()
SHAPES = {
    **gru(40, 64), "norm.weight": (64,), "norm.bias": (64,), "skip.weight": (64, 40), "out.weight": (40, 64),
    "out.bias": (40,),
}  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("denoiser.safetensors").write_bytes(safetensors(SHAPES))
    Path("keywords.keras").write_bytes(replay.keras_file("sequential.keras"))


def test_python(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, "building.md", "exec"), names)
    printed = re.findall(r"print\(.*\) +# (.*)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == printed
    assert names["mask"].shape == (1, 100, 40)
    assert names["frame"].shape == (1, 1, 64)
    assert Path("denoiser.rnn").exists()


def test_errors_read_as_they_are_written():
    said = re.findall(r"^(\w+Error: .*)$", PAGE, re.MULTILINE)
    found = []
    for misuse in (
        lambda net, x: net.gru("rn", x),
        lambda net, x: net.lstm("rnn", x),
        lambda net, x: net.linear("out", x),
    ):
        net = build.torch("denoiser.safetensors")
        with pytest.raises(webrnn.Error) as caught:
            misuse(net, net.input("x", (1, "time", 40)))
        found.append(f"{type(caught.value).__name__}: {caught.value}")
    assert found == said


@pytest.mark.parametrize("net", [build.TorchNet, build.KerasModel])
def test_tables_name_what_there_is(net):
    page = PAGE.split("## Keras")[0] if net is build.TorchNet else PAGE.split("## Keras")[1].split("## Streams")[0]
    cells = [row.split("|")[2].split(";")[0] for row in re.findall(r"^\|.*\|$", page, re.MULTILINE)]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert len(named) > 12
    assert [name for name in named if not hasattr(net, name)] == []


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / target).exists(), target
