"""Wav files: there and back, against the wave module, and files that are not what they say."""

import io
import struct
import wave

import numpy as np
import pytest

from tests.audio.cutting import assert_same_bits, pieces, signal
from webrnn.audio import AudioError, WavReader, WavWriter, mono, read_wav, write_wav
from webrnn.errors import OptionError

STEPS = {"pcm16": 2.0**-15, "pcm24": 2.0**-23, "pcm32": 2.0**-24, "float32": 0.0}


@pytest.mark.parametrize("encoding", STEPS)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_there_and_back(encoding, channels, tmp_path):
    samples = signal(1001, channels).clip(-0.999, 0.999)
    write_wav(tmp_path / "a.wav", samples, 22050, encoding)
    found, rate = read_wav(tmp_path / "a.wav")
    assert rate == 22050
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, samples, atol=STEPS[encoding] / 2, rtol=0)
    write_wav(tmp_path / "b.wav", found, 22050, encoding)
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    assert (tmp_path / "a.wav").stat().st_size % 2 == 0


@pytest.mark.parametrize("encoding", STEPS)
def test_blocks_change_nothing(encoding):
    samples, whole, cut = signal(1000, 2), io.BytesIO(), io.BytesIO()
    write_wav(whole, samples, 48000, encoding)
    with WavWriter(cut, 48000, 2, encoding) as wav:
        for block in pieces(samples, [0, 1, 333, 7]):
            wav.write(block)
    assert cut.getvalue() == whole.getvalue()
    with WavReader(cut) as wav:
        assert (len(wav), wav.rate, wav.channels, wav.encoding) == (1000, 48000, 2, encoding)
        parts = [wav.read(0), wav.read(3), *wav.blocks(64), wav.read(5)]
    assert_same_bits(np.concatenate(parts), read_wav(whole)[0])


@pytest.mark.parametrize(("encoding", "width"), [("pcm16", 2), ("pcm24", 3), ("pcm32", 4)])
def test_the_wave_module_agrees(encoding, width):
    file, numbers = io.BytesIO(), np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int64) >> (32 - 8 * width)
    data = b"".join(int(number).to_bytes(width, "little", signed=True) for number in numbers)
    with wave.open(file, "wb") as wav:
        wav.setparams((1, width, 8000, 0, "NONE", ""))
        wav.writeframes(data)
    samples, rate = read_wav(file)
    assert rate == 8000
    assert_same_bits(samples, (numbers / 2.0 ** (8 * width - 1)).astype(np.float32))
    ours = io.BytesIO()
    write_wav(ours, samples, 8000, encoding)
    ours.seek(0)
    with wave.open(ours) as wav:
        assert (wav.getnframes(), wav.getsampwidth(), wav.getframerate()) == (5, width, 8000)
        assert wav.readframes(5) == data


def test_full_scale_is_cut_off():
    file = io.BytesIO()
    write_wav(file, np.float32([2, -2, 1]), 16000)
    assert read_wav(file)[0].tolist() == [32767 / 32768, -1, 32767 / 32768]


def riff(*chunks):
    body = b"".join(kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks)
    return io.BytesIO(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body)


PCM16 = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)


def test_extensible_headers_and_chunks_that_are_not_needed():
    head = struct.pack("<HHIIHHHHI", 0xFFFE, 1, 16000, 48000, 3, 24, 22, 24, 4) + struct.pack("<H", 1) + bytes(14)
    file = riff((b"LIST", b"odd"), (b"fmt ", head), (b"fact", bytes(4)), (b"data", b"\0\0\x40"), (b"LIST", b"end!"))
    assert read_wav(file)[0].tolist() == [0.5]


def test_a_size_that_was_never_filled_in():
    data = (
        riff((b"fmt ", PCM16), (b"data", b"\0\x40\0\xc0")).getvalue().replace(b"data\4\0\0\0", b"data\xff\xff\xff\xff")
    )
    assert read_wav(io.BytesIO(data))[0].tolist() == [0.5, -0.5]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b"ID3 and so on, it is an mp3"), "not a wav file"),
        (io.BytesIO(b""), "not a wav file"),
        (riff((b"fmt ", PCM16)), "without samples"),
        (riff((b"data", bytes(4))), "without a format"),
        (riff((b"fmt ", PCM16[:10])), "damaged header"),
        (riff((b"fmt ", struct.pack("<HHIIHH", 1, 1, 16000, 32000, 0, 16)), (b"data", bytes(4))), "damaged header"),
        (riff((b"fmt ", struct.pack("<HHIIHH", 1, 0, 16000, 32000, 0, 16)), (b"data", bytes(4))), "damaged header"),
        (riff((b"fmt ", struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8)), (b"data", bytes(4))), "format 7 with 8 bits"),
        (riff((b"fmt ", struct.pack("<HHIIHH", 3, 1, 8000, 64000, 8, 64)), (b"data", bytes(8))), "format 3 with 64"),
        (io.BytesIO(riff((b"fmt ", PCM16), (b"data", bytes(8))).getvalue()[:-4]), "ends 2 samples before"),
    ],
)
def test_files_that_cannot_be_read(file, message):
    with pytest.raises(AudioError, match=message):
        read_wav(file)


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(OptionError, match="no encoding 'mp3'; there are pcm16"):
        write_wav(tmp_path / "a.wav", signal(3), 16000, "mp3")
    with pytest.raises(AudioError, match="divide int16"):
        write_wav(tmp_path / "a.wav", np.zeros(3, np.int16), 16000)
    with pytest.raises(AudioError, match="not finite"):
        write_wav(io.BytesIO(), np.float32([np.nan]), 16000)
    with pytest.raises(OptionError, match="at 0 Hz"):
        write_wav(tmp_path / "a.wav", signal(3), 0)
    assert not (tmp_path / "a.wav").exists(), "nothing is created for what is refused"


def test_mono():
    stereo = signal(100, 2)
    np.testing.assert_allclose(mono(stereo), (stereo[:, 0] + stereo[:, 1]) / 2, rtol=1e-6)
    assert_same_bits(mono(stereo[:, :1]), stereo[:, 0])
    assert_same_bits(mono(stereo[:, 0]), stereo[:, 0])
