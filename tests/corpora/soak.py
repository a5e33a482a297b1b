"""`make soak-map`: `webrnn map` is killed (SIGKILL) at random moments and goes on, again and again; the results are
those of an undisturbed run, each item once."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.corpora.models import gru, write_arrays
from webrnn.corpora import read

TELLS_BAD_ITEMS = 3  # exit code


def command(model: Path, items: Path, output: Path, processes: int) -> list[str]:
    arguments = [str(model), str(items), "-o", str(output), "--outputs", "h", "--processes", str(processes)]
    return [sys.executable, "-m", "webrnn.cli", "map", *arguments, "--quiet"]


def killed(run: list[str], output: Path, rng: random.Random) -> bool:
    """Start a run and kill it at some moment; False if it came to its end before."""
    index = output / "index.jsonl"
    before = index.stat().st_size if index.exists() else 0
    process = subprocess.Popen(run)
    deadline = time.monotonic() + rng.uniform(0.1, 1.5)
    if rng.random() < 0.7:  # in the midst of the work
        while process.poll() is None and (not index.exists() or index.stat().st_size <= before):
            time.sleep(0.005)
        deadline = time.monotonic() + rng.uniform(0, 0.4)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    children = _children(process.pid)
    ended = process.poll() is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    for child in children:
        _wait_for_end(child)
    assert not ended or process.returncode == TELLS_BAD_ITEMS
    return not ended


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _wait_for_end(process: int) -> None:
    for _ in range(3000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"worker {process} goes on without its driver")


def content(folder: Path) -> list[tuple[int, str, bytes]]:
    return [(result.index, result.name, result["h"].tobytes()) for result in read(folder)]


def soak(folder: Path, files: int, kills: int, processes: int, seed: int) -> None:
    rng = random.Random(seed)
    (folder / "model.onnx").write_bytes(gru(128))
    items = write_arrays(folder / "items", files, steps=500, seed=seed)
    (items / "bad.npy").write_bytes(b"nothing")
    run = command(folder / "model.onnx", items, folder / "killed", processes)
    for _ in range(kills):
        while not killed(run, folder / "killed", rng):  # the machine was quicker: from the start again
            shutil.rmtree(folder / "killed")
    assert subprocess.run(run).returncode == TELLS_BAD_ITEMS
    whole = command(folder / "model.onnx", items, folder / "whole", processes)
    assert subprocess.run(whole).returncode == TELLS_BAD_ITEMS
    found, expected = content(folder / "killed"), content(folder / "whole")
    assert len(expected) == files
    assert [one[:2] for one in found] == [one[:2] for one in expected]
    assert found == expected
    assert [failure.name for failure in read(folder / "killed").failed.values()] == [str(items / "bad.npy")]
    assert read(folder / "killed").complete


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.corpora.soak", description=__doc__)
    parser.add_argument("--files", type=int, default=8000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as folder:
        soak(Path(folder), arguments.files, arguments.kills, arguments.processes, arguments.seed)
    files = f"{arguments.kills} kills, {arguments.files} files"
    print(f"{files}: complete, each item once, the results of an undisturbed run")


if __name__ == "__main__":
    main()
