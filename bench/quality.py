"""`make quality`: what small weights do to real models, on a minute of speech in noise and on a simulated motion.

- DTLN and NSNet2: the SNR of what they leave of the noisy speech.
- Silero: the largest change of a probability, and whether it finds the same stretches of speech.
- RIANN: the largest angle between the orientations that it finds.
- Whether errors grow: the same 1,000 inputs come eleven times, and the last time is compared with earlier ones.
- The sizes of the plans.

Fails if a figure is beyond its bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

import webrnn
from bench.motion import angles, simulated_motion
from examples import nsnet2_stream
from examples.denoise_wav import denoise_samples, snr, with_noise
from examples.vad import CHUNK, segments
from webrnn import models
from webrnn.audio import FrameFilter, plans, read_wav, stft
from webrnn.engine.streams.carry import Carry
from webrnn.tables import bytes_text, table

RATE = 16000
NOISE_DB = 10
"""How much stronger the speech is than the noise."""
MOTION_RATE = 100
F32, FORMS = "f32", ("f16", "int16", "int8")
BLOCK, BLOCKS = 1000, 11
MOST_GROWTH = 1.05
"""Of the error from the block in the middle to the last: that of int16 is as irregular as noise."""

Step = Callable[[np.ndarray], np.ndarray]
"""From the next input to its output; the state is inside."""


@dataclass(frozen=True)
class Bounds:
    decibels: float
    probability: float
    degrees: float
    size: float
    """Of a plan, relative to that of float32."""


BOUNDS = {
    "f16": Bounds(0.01, 0.01, 0.4, 0.53),
    "int16": Bounds(0.01, 0.01, 0.4, 0.53),
    "int8": Bounds(0.1, 1.0, 180.0, 0.28),
}


@dataclass(frozen=True)
class Material:
    """What the models are fed."""

    speech: np.ndarray

    @cached_property
    def noisy(self) -> np.ndarray:
        return with_noise(self.speech, NOISE_DB)

    @cached_property
    def motion(self) -> np.ndarray:
        return simulated_motion(len(self.speech) * MOTION_RATE // RATE, MOTION_RATE)


class Subject:
    """A model as a stream, and what is asked of it."""

    name = ""
    carry: Carry = "auto"
    has_size_bound = True

    def session(self, backend: str, form: str) -> webrnn.InferenceSession:
        raise NotImplementedError

    def inputs(self, material: Material) -> np.ndarray:
        """[steps, ...]: what a stream is fed step by step."""
        raise NotImplementedError

    def figures(self, step: Step, plain: Step, material: Material, form: str) -> Iterator[Figure]:
        """Of a stream, beside one with float32."""
        raise NotImplementedError

    def steps(self, backend: str, form: str) -> Step:
        session = self.session(backend, form)
        stream = session.stream(carry=self.carry)
        (fed,) = (value.name for value in session.inputs if value.name not in stream.carry)
        return lambda array: stream.step({fed: array})[0]

    def plan_bytes(self, form: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.rnn"
            self.session("auto", form).export(file, carry=self.carry)
            return file.stat().st_size


@dataclass(frozen=True)
class Figure:
    subject: str
    form: str
    what: str
    value: str
    plain: str = ""
    """That of float32, where it has one."""
    bound: str = ""
    is_met: bool = True


class Dtln(Subject):
    name = "DTLN"

    def __init__(self) -> None:
        self._model = plans.dtln()
        self.carry = self._model.carry

    def session(self, backend: str, form: str) -> webrnn.InferenceSession:
        return self._model.session(backend, form)

    def inputs(self, material: Material) -> np.ndarray:
        return np.lib.stride_tricks.sliding_window_view(material.noisy, plans.DTLN_FRAME)[:: plans.DTLN_HOP]

    def figures(self, step: Step, plain: Step, material: Material, form: str) -> Iterator[Figure]:
        found, expected = (
            snr(material.speech, denoise_samples(material.noisy, FrameFilter(each, plans.DTLN_FRAME, plans.DTLN_HOP)))
            for each in (step, plain)
        )
        yield _snr_figure(self.name, form, found, expected)


class Nsnet2(Subject):
    name, carry = "NSNet2", "internal"

    def session(self, backend: str, form: str) -> webrnn.InferenceSession:
        return webrnn.InferenceSession(models.fetch("nsnet2_16k"), backend=backend, weights=form)

    def inputs(self, material: Material) -> np.ndarray:
        spectra = stft(material.noisy, nsnet2_stream.SIZE, nsnet2_stream.HOP, nsnet2_stream.WINDOW)
        return nsnet2_stream.features(spectra)[:, None, None]

    def figures(self, step: Step, plain: Step, material: Material, form: str) -> Iterator[Figure]:
        found, expected = (self._snr(each, material) for each in (step, plain))
        yield _snr_figure(self.name, form, found, expected)

    def _snr(self, step: Step, material: Material) -> float:
        denoise = nsnet2_stream.denoiser(lambda frame: step(frame[None, None])[0, 0])
        return snr(material.speech, np.concatenate([denoise.push(material.noisy), denoise.flush()]))


class Silero(Subject):
    name = "Silero"

    def __init__(self) -> None:
        self._model = plans.silero()
        self.carry = self._model.carry

    def session(self, backend: str, form: str) -> webrnn.InferenceSession:
        return self._model.session(backend, form)

    def inputs(self, material: Material) -> np.ndarray:
        return material.noisy[: len(material.noisy) // CHUNK * CHUNK].reshape(-1, CHUNK)

    def figures(self, step: Step, plain: Step, material: Material, form: str) -> Iterator[Figure]:
        chunks = self.inputs(material)
        found, expected = (np.array([each(chunk).item() for chunk in chunks]) for each in (step, plain))
        change, most = float(np.abs(found - expected).max()), BOUNDS[form].probability
        yield Figure(
            self.name, form, "largest change of a probability", f"{change:.4f}", "", f"{most:g}", change <= most
        )
        sides = int(np.sum((found >= 0.5) != (expected >= 0.5)))
        yield Figure(self.name, form, f"chunks of {len(chunks)} that change sides at .5", str(sides))
        ours, theirs = (list(segments(each)) for each in (found, expected))
        moved = _moved(ours, theirs)
        text = "others" if moved is None else f"{len(moved)} ends move, by {max(moved)}" if moved else "the same"
        yield Figure(self.name, form, "stretches of speech", text, str(len(theirs)), "the same", moved == [])


def _moved(ours: Sequence[tuple[int, int]], theirs: Sequence[tuple[int, int]]) -> list[int] | None:
    """By how many chunks ends of stretches moved, those that did; None if there are more or fewer stretches."""
    if len(ours) != len(theirs):
        return None
    gaps = [abs(a - b) for our, their in zip(ours, theirs, strict=True) for a, b in zip(our, their, strict=True)]
    return [gap for gap in gaps if gap]


class Riann(Subject):
    name, has_size_bound = "RIANN", False

    def session(self, backend: str, form: str) -> webrnn.InferenceSession:
        return webrnn.InferenceSession(models.fetch("riann"), backend=backend, weights=form)

    def inputs(self, material: Material) -> np.ndarray:
        return material.motion[:, None, None]

    def figures(self, step: Step, plain: Step, material: Material, form: str) -> Iterator[Figure]:
        found, expected = (np.array([each(x)[0, 0] for x in self.inputs(material)]) for each in (step, plain))
        angle, most = float(angles(found, expected).max()), BOUNDS[form].degrees
        yield Figure(self.name, form, "largest angle", f"{angle:.3f}°", "", f"{most:g}°", angle <= most)


def _snr_figure(name: str, form: str, found: float, expected: float) -> Figure:
    change, most = found - expected, BOUNDS[form].decibels
    return Figure(name, form, "SNR in dB", f"{found:.3f}", f"{expected:.3f}", f"±{most:g}", abs(change) <= most)


def growth(subject: Subject, material: Material, backend: str, form: str) -> Iterator[Figure]:
    """The RMS of the error after 10,000 steps, beside that after 1,000 and after 5,000, when all have settled. The same
    inputs come again and again, so that blocks of steps can be compared."""
    inputs = subject.inputs(material)
    block = np.resize(inputs[:BLOCK], (BLOCK, *inputs.shape[1:]))
    step, plain = (subject.steps(backend, each) for each in (form, F32))
    errors = []
    for _ in range(BLOCKS):
        pairs = [(step(x), plain(x)) for x in block]
        errors.append(float(np.sqrt(np.mean([(a.astype(np.float64) - b) ** 2 for a, b in pairs]))))
    for first, bound in ((1, float("inf")), (BLOCKS // 2, MOST_GROWTH)):
        ratio = errors[-1] / errors[first] if errors[first] else 1.0
        what = f"error after {BLOCK * (BLOCKS - 1):,} steps ÷ after {BLOCK * first:,}"
        yield Figure(subject.name, form, what, f"{ratio:.3f}", "", f"{bound}", ratio <= bound)


def sizes(subject: Subject, form: str) -> Figure:
    small, plain = (subject.plan_bytes(each) for each in (form, F32))
    bound = BOUNDS[form].size if subject.has_size_bound else 1.0
    text = f"{bytes_text(small)}, {small / plain:.3f}"
    return Figure(subject.name, form, "plan", text, bytes_text(plain), f"{bound:g}", small / plain <= bound)


@dataclass
class Study:
    material: Material
    backend: str = "auto"
    subjects: Sequence[Subject] = field(default_factory=lambda: (Dtln(), Nsnet2(), Silero(), Riann()))
    has_growth: bool = True

    def figures(self, forms: Sequence[str], say: Callable[[str], None] = lambda line: None) -> Iterator[Figure]:
        for subject in self.subjects:
            for form in forms:
                say(f"{subject.name}, {form}")
                step, plain = (subject.steps(self.backend, each) for each in (form, F32))
                yield from subject.figures(step, plain, self.material, form)
                yield sizes(subject, form)
                if self.has_growth:
                    yield from growth(subject, self.material, self.backend, form)


def report(figures: Sequence[Figure], forms: Sequence[str]) -> str:
    """A row for each thing that is asked of a model, a column for each form; what is beyond its bound is marked."""
    rows = []
    for subject, what in dict.fromkeys((figure.subject, figure.what) for figure in figures):
        by_form = {figure.form: figure for figure in figures if (figure.subject, figure.what) == (subject, what)}
        cells = [
            each.value + ("" if each.is_met else f" (bound {each.bound})") for each in map(by_form.get, forms) if each
        ]
        rows.append((subject, what, next(iter(by_form.values())).plain, *cells))
    return table("small weights on real models", rows, ("model", "what", "float32", *forms))


def _say(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{line} ", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make quality", description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seconds", type=float, default=60, help="of speech and motion (default: %(default)s)")
    parser.add_argument("--weights", action="append", choices=FORMS, help="forms to try (default: all)")
    parser.add_argument("--no-growth", action="store_true", help="leave out what takes longest")
    arguments = parser.parse_args()
    speech = read_wav(models.fetch("speech"))[0][: int(arguments.seconds * RATE)]
    study = Study(Material(speech), arguments.backend, has_growth=not arguments.no_growth)
    forms = arguments.weights or FORMS
    found = list(study.figures(forms, _say))
    _say("")
    print(
        f"{len(speech) / RATE:g} s of speech, {NOISE_DB} dB above the noise, and as long a motion at {MOTION_RATE} Hz"
    )
    print(report(found, forms))
    if not all(figure.is_met for figure in found):
        sys.exit("a figure is beyond its bound")


if __name__ == "__main__":
    main()
