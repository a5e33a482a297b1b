"""Audio plans, a noisy recording and what native kernels make of it, as files for the tests of the audio thread."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import webrnn
from examples.denoise_wav import denoise_samples, with_noise
from tests.engine.streams.timed_models import Averages
from tests.models.fetch import model_path, speech_path
from webrnn.audio import FrameFilter, RateFilter, Resampler, mono, plans, read_wav, resample
from webrnn.engine.kernels import loading as kernels
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node, Value
from webrnn.plan import opcodes

RATE, SECONDS = 16000, 10
SWAP = 48000
"""The sample from which on a second instance of DTLN hears the recording."""
PAGE_SCRIPTS = ("audio_page", "audio_live_page", "audio_recorder", "audio_soak_page", "audio_soak_probe")
Build = Callable[[GraphBuilder, Value], Value]


def write_site(host: Path, folder: Path, is_fused: bool = True) -> Path:
    """A copy of the host's files with the plans, and with what pages run of the tests.

    Results have the bits of relaxed SIMD if they are fused, otherwise those of plain SIMD.
    """
    shutil.copytree(host, folder)
    write(folder / "audio", fused_backend() if is_fused else "wasm:simd")
    (folder / "empty.html").write_text('<link rel="icon" href="data:,">')  # the server sends the page's policy with it
    for script in PAGE_SCRIPTS:
        shutil.copy(Path(__file__).with_name(f"{script}.mjs"), folder / f"{script}.js")
    return folder


def fused_backend() -> str:
    return "native" if kernels.load("native").fused else "wasm:relaxed"


def write(folder: Path, backend: str) -> None:
    """dtln.rnn, silero.rnn and small plans; noisy.f32 and, by the name of a plan, its results."""
    folder.mkdir(parents=True, exist_ok=True)
    speech, _ = read_wav(speech_path())
    noisy = with_noise(speech[: SECONDS * RATE], 10)
    _save(folder / "noisy.f32", noisy)
    dtln, silero = plans.dtln(model_path("dtln_1"), model_path("dtln_2")), plans.silero(model_path("silero_v6"))
    dtln.export(folder / "dtln.rnn")
    silero.export(folder / "silero.rnn")
    _save(folder / "dtln.f32", denoise_samples(noisy, dtln.filter(backend)))
    _save(folder / "dtln_later.f32", denoise_samples(noisy[SWAP:], dtln.filter(backend)))
    frames = silero.frames(backend)
    chunks = noisy[: len(noisy) // 512 * 512].reshape(-1, 512)
    _save(folder / "silero.f32", np.array([frames(chunk) for chunk in chunks]))
    for name, small in SMALL.items():
        write_small(folder / f"{name}.rnn", *small)
    write_timed(folder, noisy[:RATE])
    write_rates(folder, noisy, dtln, silero, backend)


RATES, BLOCKS = (44100, 48000), (1, 37, 100, 128, 160, 1000)
"""Rates of contexts, and sizes of blocks whose latencies are written."""


def write_rates(
    folder: Path, noisy: np.ndarray, dtln: plans.AudioModel, silero: plans.AudioModel, backend: str
) -> None:
    """Of each rate two channels, what DTLN makes of their mean and of each, and Silero of the mean; latencies.json."""
    latencies: dict[str, dict[str, dict[int, int]]] = {}
    for rate in RATES:
        left, right = (resample(noisy[2 * RATE * i :][: 2 * RATE], RATE, rate) for i in range(2))
        right[::2] += np.float32(0.1)  # what is too high for the models
        both = np.stack([left, right], axis=1)
        filters = [dtln.filter(backend, sample_rate=rate), dtln.filter(backend, sample_rate=rate, channels=2)]
        each = filters[1].push(both)
        frames = silero.frames(backend)
        lower = Resampler(rate, RATE).push(mono(both))
        chunks = lower[: len(lower) // 512 * 512].reshape(-1, 512)
        results = dict(left=left, right=right, dtln=filters[0].push(mono(both)), left_dtln=each[:, 0])
        results |= dict(right_dtln=each[:, 1], silero=np.array([frames(chunk) for chunk in chunks]))
        for name, array in results.items():
            _save(folder / f"{name}_{rate}.f32", array)
        copies = RateFilter(FrameFilter(lambda frame: frame, 100, 100), RATE, rate)
        named = {"dtln": filters[0], "copied": copies}
        latencies[str(rate)] = {name: {block: each.latency(block) for block in BLOCKS} for name, each in named.items()}
    (folder / "latencies.json").write_text(json.dumps(latencies))


TIMED: dict[str, tuple[Averages, dict[str, Any]]] = {
    "held": (Averages(5, 1, 3, stride=4, held=True, channels=1), {"hop": 160}),
    "held_shortly": (Averages(5, 1, 3, stride=4, held=True, channels=1, axis=2), {}),
    "held_by_64": (Averages(5, 1, 3, stride=4, held=True, channels=1, named=False, strides=16), {"hop": 64}),
    "levels": (Averages(5, 2, 2, stride=4, channels=1), {"kind": "analyser", "hop": 16}),
    "wrong_stride": (Averages(stride=4, held=True, channels=1), {"hop": 6}),
    "wrong_step": (Averages(stride=4, held=True, channels=1), {"hop": 4, "frame": 8}),
    "wrong_rate": (Averages(stride=4, channels=1), {}),
}
"""Streams with frames, and what their plans say of themselves."""


def write_timed(folder: Path, samples: np.ndarray) -> None:
    for name, (kind, says) in TIMED.items():
        audio = dict(kind="filter", sample_rate=RATE, input="x", output="y")
        kind.session().export(folder / f"{name}.rnn", carry=kind.carry, about={"audio": {**audio, **says}})
        _save(folder / f"{name}.f32", kind.whole(samples.reshape((1, -1, 1) if kind.axis == 1 else (1, 1, -1))))


def _save(file: Path, array: np.ndarray) -> None:
    file.write_bytes(array.astype("<f4").tobytes())


def _negative(b: GraphBuilder, x: Value) -> Value:
    return b.op("Neg", x)


def _wide_double(b: GraphBuilder, x: Value) -> Value:
    """In float64, which only the full module has."""
    wide = b.op("Cast", x, to=11)
    return b.op("Cast", b.op("Add", wide, wide), to=1)


def _small_double(b: GraphBuilder, x: Value) -> Value:
    """And nothing more: by a product with small weights, which only unfused modules have."""
    zeros = [b.constant(np.zeros(shape, dtype)) for shape, dtype in (((8, 8), np.int8), (8, np.float32))]
    nothing = b.value("nothing")
    rows = b.op("Reshape", x, b.ints(1, 8))
    b.add(Node("SmallLinear", [rows, *zeros], [nothing], {"range": 100}, domain=WEBRNN))
    return b.op("Add", b.op("Add", x, x), b.op("Reshape", nothing, b.ints(8)))


def _small_wide_double(b: GraphBuilder, x: Value) -> Value:
    """By what only full unfused modules have."""
    return _small_double(b, b.op("Mul", _wide_double(b, x), b.constant(np.float32(0.5))))


def _element(b: GraphBuilder, x: Value) -> Value:
    """x is an index, of which there are eight."""
    return b.op("Gather", b.constant(np.arange(8, dtype=np.float32)), b.op("Cast", x, to=7))


def _running_sum(b: GraphBuilder, x: Value) -> Value:
    """The sum of a frame and of all before it."""
    total = b.input("total", DType.FLOAT, (1,))
    y = b.op("Add", total, b.op("ReduceSum", x, keepdims=1))
    b.graph.outputs.append(b.op("Identity", y, output=b.value("total_next", DType.FLOAT, (1,))))
    return y


SMALL: dict[str, tuple[Build, int, dict[str, Any] | None]] = {
    "double": (lambda b, x: b.op("Add", x, x), 8, {}),
    "wide_double": (_wide_double, 8, {}),
    "small_double": (_small_double, 8, {}),
    "small_wide_double": (_small_wide_double, 8, {}),
    # a file with half floats
    "overlapping": (lambda b, x: b.op("Mul", x, b.constant(np.full(512, 0.25, np.float32))), 512, {"hop": 128}),
    "sums": (_running_sum, 100, {"kind": "analyser"}),
    "picky": (_element, 8, {}),
    "choosy": (_element, 8, {"kind": "analyser"}),
    "reciprocal": (lambda b, x: b.op("Reciprocal", x), 8, {}),
    "48k": (_negative, 128, {"sample_rate": 48000}),
    "8k": (_negative, 8, {"sample_rate": 8000}),
    "odd_rate": (_negative, 8, {"sample_rate": 15999}),
    "copied": (lambda b, x: b.op("Identity", x), 100, {}),
    "wrong_frame": (_negative, 128, {"frame": 256}),
    "wrong_hop": (_negative, 128, {"hop": 129}),
    "wrong_output": (_negative, 128, {"output": "z"}),
    "no_audio": (_negative, 128, None),
}
"""Models of one op: how they are built, their frame, and what else their plans say of themselves, if anything."""


def write_small(file: Path, build: Build, frame: int, says: dict[str, Any] | None) -> None:
    b = GraphBuilder("small")
    y = build(b, b.input("x", DType.FLOAT, (frame,)))
    y.name = "y"
    b.graph.outputs.insert(0, y)
    audio = dict(kind="filter", sample_rate=RATE, frame=frame, hop=frame, input="x", output="y")
    carry = {"total": "total_next"} if len(b.graph.inputs) > 1 else None
    about = {} if says is None else {"audio": {**audio, **says}}
    webrnn.InferenceSession(b.graph).export(file, carry=carry, about=about)
    has_halves = file.read_bytes()[4] == opcodes.STORED_VERSION
    assert has_halves == (file.stem == "overlapping")
