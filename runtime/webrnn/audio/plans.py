"""Whole audio models, one plan each: samples in, samples or a probability out, all states inside.

    python -m webrnn.audio.plans dtln -o denoise.rnn
    python -m webrnn.audio.plans nsnet2 -o denoise.rnn --weights int8
    python -m webrnn.audio.plans silero -o vad.rnn --weights int16
    python -m webrnn.audio.plans wake_word_front -o front.rnn
    python -m webrnn.audio.plans openwakeword melspectrogram.onnx embedding_model.onnx hey_mycroft.onnx -o wake.rnn

A plan like this is what the AudioWorklet processor of webrnn runs (docs/audio-worklet.md). Its metadata say how:
{"audio": {"kind", "sample_rate", "frame", "hop", "input", "output"}}. Every `hop` samples it takes the last `frame`
samples. A "filter" gives as many, which overlap and are added up; an "analyser" gives a few numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from webrnn.errors import Error

from .plans_denoise import DTLN_FRAME, DTLN_HOP, dtln, gtcrn, nsnet2
from .plans_model import RATE, AudioModel, Source, Weights
from .plans_speech import silero
from .plans_wake import openwakeword, wake_word_front

__all__ = [
    "DTLN_FRAME",
    "DTLN_HOP",
    "RATE",
    "AudioModel",
    "Source",
    "Weights",
    "dtln",
    "gtcrn",
    "main",
    "nsnet2",
    "openwakeword",
    "silero",
    "wake_word_front",
]


@dataclass(frozen=True)
class _Kind:
    build: Callable[..., AudioModel]
    files: tuple[str, ...]
    what: str
    has_own: bool = True
    """Whether its files are in a package that `webrnn.models` knows."""
    settings: dict[str, Any] = field(default_factory=dict)


_KINDS = {
    "dtln": _Kind(dtln, ("model_1", "model_2"), "the DTLN denoiser"),
    "nsnet2": _Kind(nsnet2, ("model",), "the NSNet2 denoiser"),
    "gtcrn": _Kind(gtcrn, ("model",), "the GTCRN denoiser", has_own=False),
    "silero": _Kind(silero, ("model",), "Silero's voice activity detector"),
    "wake_word_front": _Kind(wake_word_front, ("melspec", "embedding"), "the front-end of wake words"),
    "openwakeword": _Kind(
        openwakeword, ("melspec", "embedding", "head"), "a wake word of openWakeWord", False, {"full_scale": 1.0}
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m webrnn.audio.plans", description="Write a whole audio model as one plan file."
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="model")
    for name, each in _KINDS.items():
        kind = kinds.add_parser(name, help=each.what, description=each.what)
        words = (
            f"its .onnx files: {', '.join(each.files)}" + "; by default from the package that has them" * each.has_own
        )
        kind.add_argument("model", nargs="*" if each.has_own else len(each.files), help=words)
        kind.add_argument("--weights", default="f32", metavar="FORM", help="f32, f16, int16 or int8 (%(default)s)")
        kind.add_argument("-o", "--output", default=f"{name}.rnn", help="the plan file (%(default)s)")
    arguments = parser.parse_args(argv)
    chosen = _KINDS[arguments.kind]
    if len(arguments.model) not in (0, len(chosen.files)):
        parser.error(f"{arguments.kind} has {len(chosen.files)} .onnx file{'s' * (len(chosen.files) > 1)}")
    try:
        chosen.build(*arguments.model, **chosen.settings).export(arguments.output, arguments.weights)
    except Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.output}: {os.path.getsize(arguments.output):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
