import os
from pathlib import Path

import numpy as np
import pytest

from webrnn.audio import AudioError, write_wav
from webrnn.corpora.errors import ItemError
from webrnn.corpora.items import Item, Unreadable
from webrnn.corpora.loading import Loader
from webrnn.corpora.options import Options
from webrnn.errors import OptionError
from webrnn.ir import DType, Symbol, Value

SAMPLES = Value("x", DType.FLOAT, (1, Symbol("n")))
GAIN = Value("gain", DType.FLOAT, ())


def loaded(source, fed=(SAMPLES,), rate=16000, folder=None, **options):
    item = Item(0, str(source)) if isinstance(source, str | Path) else Item(0, "item", source)
    return Loader(Options(**options), fed, rate, folder).feeds(item)[0]


def test_arrays_get_the_axes_that_are_missing(tmp_path):
    np.save(tmp_path / "a.npy", np.float32([1, 2]))
    assert loaded(tmp_path / "a.npy")["x"].tolist() == [[1, 2]]
    assert loaded(np.zeros((1, 3), np.float32))["x"].shape == (1, 3)
    assert loaded("a.npy", folder=str(tmp_path))["x"].shape == (1, 2)


def test_it_says_which_items_are_signals():
    loader = Loader(Options(), [SAMPLES], None)
    assert loader.feeds(Item(0, "a", np.zeros(3, np.float32)))[1] == ["x"]
    assert loader.feeds(Item(0, "a", np.zeros((1, 3), np.float32)))[1] == []


def test_archives_have_names(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.float32([[1, 2]]), gain=np.float32(3))
    assert loaded(tmp_path / "a.npz", [SAMPLES, GAIN])["gain"] == 3
    with pytest.raises(ItemError, match="the model has no input 'gain'"):
        loaded(tmp_path / "a.npz")
    assert list(loaded(tmp_path / "a.npz", columns={"x": "x"})) == ["x"]
    with pytest.raises(ItemError, match="it has no array 'y'"):
        loaded(tmp_path / "a.npz", columns={"x": "y"})
    np.savez(tmp_path / "b.npz", x=np.float32([[1, 2]]))
    with pytest.raises(ItemError, match="nothing for the input 'gain'"):
        loaded(tmp_path / "b.npz", [SAMPLES, GAIN])


def test_an_array_needs_one_input_to_go_to():
    with pytest.raises(OptionError, match="say input="):
        loaded(np.zeros(3, np.float32), [SAMPLES, GAIN])
    with pytest.raises(ItemError, match="nothing for the input 'gain'"):
        loaded(np.zeros(3, np.float32), [SAMPLES, GAIN], input="x")
    with pytest.raises(OptionError, match="not 'z'"):
        loaded(np.zeros(3, np.float32), input="z")


@pytest.mark.parametrize("encoding", ["pcm16", "pcm24", "pcm32", "float32"])
def test_wav_files(tmp_path, encoding):
    write_wav(tmp_path / "a.wav", np.float32([0.5, -0.25]), 16000, encoding)
    assert loaded(tmp_path / "a.wav")["x"].tolist() == [[0.5, -0.25]]


def test_the_rate_of_wav_files(tmp_path):
    write_wav(tmp_path / "a.wav", np.zeros(480, np.float32), 48000)
    with pytest.raises(ItemError, match="its sample rate is 48000, not 16000; resample=True"):
        loaded(tmp_path / "a.wav")
    with pytest.raises(OptionError, match="say rate="):
        loaded(tmp_path / "a.wav", rate=None)
    assert loaded(tmp_path / "a.wav", rate="any")["x"].shape == (1, 480)
    assert loaded(tmp_path / "a.wav", resample=True)["x"].shape == (1, 160)


def test_channels(tmp_path):
    write_wav(tmp_path / "a.wav", np.float32([[0.5, 0], [0.25, 0.25]]), 16000)
    assert loaded(tmp_path / "a.wav", mono=True)["x"].tolist() == [[0.25, 0.25]]
    assert loaded(tmp_path / "a.wav")["x"].shape == (2, 2)


def test_bad_files(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "a.flac").touch()
    os.mkfifo(tmp_path / "pipe.wav")
    for name, error in (
        ("pipe.wav", ItemError),
        ("none.flac", FileNotFoundError),
        ("a.wav", AudioError),
        ("a.npy", ValueError),
        ("a.flac", ItemError),
        ("b.npy", OSError),
    ):
        with pytest.raises(error):
            loaded(tmp_path / name)
    with pytest.raises(ItemError, match="no folder"):
        loaded(Unreadable("no folder"))


def test_numbers_of_other_types_are_converted_if_asked_for():
    assert loaded(np.arange(3))["x"].dtype == np.int64, "the session says what is wrong with it"
    assert loaded(np.arange(3), cast=True)["x"].dtype == np.float32
    with pytest.raises(ItemError, match="cannot be converted"):
        loaded(np.array(["a"]), cast=True)


def test_numbers_that_are_not_finite():
    assert np.isnan(loaded(np.float32([np.nan]))["x"]).all()
    with pytest.raises(ItemError, match="'x' is not finite"):
        loaded(np.float32([np.nan]), finite=True)
