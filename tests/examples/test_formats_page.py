"""The Python code in docs/formats.md runs as it stands, and so does its example."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import webrnn
from webrnn.audio import read_wav, write_wav

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats.md"
AMP = ROOT / "web_demo" / "amp" / "crunch.nam"


def test_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(AMP, "crunch.nam")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["session"].about["audio"]["sample_rate"] == 48000
    assert np.array_equal(webrnn.InferenceSession("crunch.rnn").stream().step({"x": names["x"]})[0], names["y"])


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target


def test_the_amp_is_loud_for_small_signals():
    """It compresses: a tenth of the level is more than a tenth as loud. In silence it is silent."""
    session = webrnn.InferenceSession(AMP)
    wave = np.sin(np.arange(9600) * 2 * np.pi * 220 / 48000)
    loud, quiet, silent = (
        session.run(None, {"x": (level * wave).astype(np.float32)})[0][4800:].std() for level in (0.9, 0.09, 0)
    )
    assert 0.2 * loud < quiet < loud < 0.7
    assert silent < 1e-3


def run(*arguments):
    command = [sys.executable, str(ROOT / "examples" / "amp_wav.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_example(tmp_path):
    assert "2.0 s at 48000 Hz, peak 1.00 ->" in run("-", tmp_path / "loud.wav")
    write_wav(tmp_path / "in.wav", np.linspace(-0.5, 0.5, 4410, dtype=np.float32), 44100)
    run(tmp_path / "in.wav", tmp_path / "out.wav", "--amp", AMP)
    samples, rate = read_wav(tmp_path / "out.wav")
    assert (rate, abs(len(samples) - 4800) < 4) == (48000, True)
