"""How near `webrnn map` comes to bare streams: `python -m bench.corpora [--files 2000] [--processes 2]`.

Wav files of one second, Silero's voice activity detector. Bare is the time of the steps alone, of one stream in one
process, for each item the same number of steps, divided by the processes; the command starts its processes, reads files
and writes results in its time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import webrnn
from webrnn import models
from webrnn.audio import Framer, read_wav, write_wav
from webrnn.tables import table

RATE, FRAME, HOP = 16000, 576, 512


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpora", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--files", type=int, default=2000, help="wav files (%(default)s)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args(argv)
    model = models.fetch("silero_v6")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as results:
        speech, _ = read_wav(models.fetch("speech"))
        starts = np.random.default_rng(0).integers(0, len(speech) - RATE, arguments.files)
        for number, start in enumerate(starts):
            write_wav(Path(folder) / f"{number:06d}.wav", speech[start : start + RATE], RATE)
        rows = []
        for number in range(arguments.rounds):
            bare = _bare(str(model), speech) * arguments.files / arguments.processes
            took = _mapped(str(model), folder, f"{results}/{number}", arguments.processes)
            bare = (bare + _bare(str(model), speech) * arguments.files / arguments.processes) / 2
            rows.append((number, f"{bare:.2f} s", f"{took:.2f} s", f"{bare / took:.2f}"))
    title = f"{arguments.files} files, {arguments.processes} processes"
    print(table(title, rows, ("round", "bare", "webrnn map", "bare / map")))
    return 0


def _bare(model: str, speech: np.ndarray, items: int = 200) -> float:
    """Seconds of the steps of one item."""
    stream = webrnn.InferenceSession(model, fixed={"sr": RATE}).stream()
    framer = Framer(FRAME, HOP)
    frames = np.concatenate([framer.push(speech[:RATE]), framer.flush()])[:, None]
    for _ in range(10):
        for frame in frames:
            stream.step({"input": frame})
    started = time.perf_counter()
    for _ in range(items):
        stream.reset()
        for frame in frames:
            stream.step({"input": frame})
    return (time.perf_counter() - started) / items


def _mapped(model: str, files: str, output: str, processes: int) -> float:
    started = time.perf_counter()
    how = {"stream": True, "frame": FRAME, "hop": HOP, "fixed": {"sr": RATE}, "rate": RATE}
    summary = webrnn.map(model, files, output, processes=processes, **how)
    assert not summary.failed
    return time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(main())
