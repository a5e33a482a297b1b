"""A site with the helpers, plans as the npm package has them, and speech to try them on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import webrnn
from examples.denoise_wav import denoise_samples, with_noise
from tests.models.fetch import model_path, speech_path
from webrnn.audio import plans, read_wav, write_wav

HERE = Path(__file__).parent
RATE, SECONDS = 16000, 6


def write_site(host: Path, folder: Path) -> Path:
    shutil.copytree(host, folder)
    (folder / "empty.html").write_text('<!doctype html><link rel="icon" href="data:,">')
    for script in HERE.glob("sound_*.mjs"):
        shutil.copy(script, folder / f"{script.stem}.js")
    write_plans(folder / "plans")
    speech, _ = read_wav(speech_path())
    noisy = with_noise(speech[: SECONDS * RATE], 10)
    write_wav(folder / "noisy.wav", noisy, RATE)
    _save(folder / "noisy.f32", noisy)
    dtln = plans.dtln(model_path("dtln_1"), model_path("dtln_2"))
    _save(folder / "dtln_int8.f32", denoise_samples(noisy, dtln.filter("wasm:simd", weights="int8")))
    frames = plans.silero(model_path("silero_v6")).frames("wasm:simd", weights="int16")
    chunks = noisy[: len(noisy) // 512 * 512].reshape(-1, 512)
    _save(folder / "silero_int16.f32", np.array([frames(chunk) for chunk in chunks]))
    write_wake_word(folder, noisy)
    return folder


def write_wake_word(folder: Path, samples: np.ndarray) -> None:
    """A head, the whole word, and the scores of both."""
    files = [model_path(name) for name in ("oww_melspec", "oww_embedding", "hey_mycroft_lstm")]
    webrnn.InferenceSession(files[2]).export(folder / "head.rnn")
    whole = plans.openwakeword(*files, full_scale=1.0)
    whole.export(folder / "wake.rnn")
    given = samples[: len(samples) // 1280 * 1280]
    (scores,) = whole.session().run(None, {"samples": given})
    _save(folder / "wake.f32", scores)
    (embeddings,) = plans.wake_word_front(*files[:2]).session(weights="int16").run(None, {"samples": given})
    head = webrnn.InferenceSession(files[2])
    windows = [embeddings[None, at : at + 16] for at in range(len(embeddings) - 15)]
    _save(folder / "head.f32", np.array([head.run(None, {"input_1": window})[0] for window in windows]))


def write_plans(folder: Path) -> None:
    folder.mkdir()
    dtln = plans.dtln(model_path("dtln_1"), model_path("dtln_2"))
    dtln.export(folder / "dtln_int8.rnn", "int8")
    plans.gtcrn(model_path("gtcrn_simple")).export(folder / "gtcrn.rnn")
    front = plans.wake_word_front(model_path("oww_melspec"), model_path("oww_embedding"))
    front.export(folder / "wake_word_front_int16.rnn", "int16")
    silero = plans.silero(model_path("silero_v6"))
    for name, weights in (("silero", "f32"), ("silero_int16", "int16")):
        silero.export(folder / f"{name}.rnn", weights)


def _save(file: Path, array: np.ndarray) -> None:
    file.write_bytes(array.astype("<f4").tobytes())
