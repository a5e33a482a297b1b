"""The examples run as a user runs them: with a recording and without."""

import asyncio
import doctest
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from examples import async_stream, vad
from tests.models.fetch import CACHE, Unavailable, model_path, speech_path
from webrnn.audio import read_wav, resample, write_wav

FOLDER = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def models_are_there():
    try:
        for name in ("dtln_1", "dtln_2", "silero_v6", "nsnet2_16k"):
            model_path(name)
        speech_path()
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    """5 s of speech at 44.1 kHz, on two channels."""
    path = tmp_path_factory.mktemp("recording") / "stereo.wav"
    speech = resample(read_wav(speech_path())[0][: 5 * 16000], 16000, 44100)
    write_wav(path, np.stack([speech, speech], axis=1), 44100, "pcm24")
    return path


def run(example, *arguments, folder):
    done = subprocess.run(
        [sys.executable, str(FOLDER / example), *map(str, arguments)],
        env={**os.environ, "WEBRNN_MODELS": str(CACHE)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_denoise_without_a_recording(tmp_path):
    before, after = map(float, re.findall(r"([\d.]+) dB", run("denoise_wav.py", folder=tmp_path)))
    assert before == pytest.approx(10)
    assert after > before + 3


def test_denoise_a_recording(recording, tmp_path):
    run("denoise_wav.py", recording, "quiet.wav", "--backend", "wasm", folder=tmp_path)
    clean, rate = read_wav(tmp_path / "quiet.wav")
    original = read_wav(recording)[0][:, 0]
    assert rate == 44100
    assert len(clean) == pytest.approx(len(original), abs=3)
    n = min(len(clean), len(original))
    assert np.corrcoef(clean[:n], original[:n])[0, 1] > 0.9, "speech stays, and where it was"


def speech_in(output):
    return [tuple(map(float, found)) for found in re.findall(r"from +([\d.]+) s to +([\d.]+) s", output)]


def test_vad(recording, tmp_path):
    whole = speech_in(run("vad.py", folder=tmp_path))
    assert len(whole) > 5
    assert (np.diff(np.ravel(whole)) > 0).all(), whole
    some = speech_in(run("vad.py", recording, "--backend", "wasm", folder=tmp_path))
    np.testing.assert_allclose(some[:2], whole[:2], atol=0.1)


def test_nsnet2(recording, tmp_path):
    output = run("nsnet2_stream.py", recording, "quiet.wav", "--check", folder=tmp_path)
    assert float(output.split()[-1]) <= 1e-5
    clean, rate = read_wav(tmp_path / "quiet.wav")
    assert rate == 16000
    assert np.corrcoef(clean, read_wav(speech_path())[0][: len(clean)])[0, 1] > 0.9


def test_nsnet2_without_a_recording(tmp_path):
    run("nsnet2_stream.py", folder=tmp_path)
    assert len(read_wav(tmp_path / "clean.wav")[0]) == 960_000


def test_async(tmp_path):
    marks = run("async_stream.py", "--seconds", "2", "--speed", "100", folder=tmp_path).splitlines()[0]
    assert len(marks) == 2 * 16000 // 512
    assert set(marks) == {".", "#"}


def test_the_event_loop_runs_while_a_step_does():
    """The step ends when the event loop lets it: a loop that waited for it would wait for good."""
    let_go = threading.Event()

    def step(frame):
        assert let_go.wait(timeout=60), "the event loop is blocked"
        return 2 * frame

    async def frames():
        for frame in range(3):
            yield frame

    async def main():
        asyncio.get_running_loop().call_later(0.01, let_go.set)
        return [result async for result in async_stream.steps(step, frames())]

    assert asyncio.run(main()) == [0, 2, 4]


def test_docstrings():
    assert doctest.testmod(vad).failed == 0
