"""Damaged plan files through webrnn.js in Node: `python -m tests.browser.fuzz_plans [--plans N] [--seed S]`.

The files of tests/plan/host_mutation.py go to one process of Node, which tries them: fuzz_plans.mjs says how, and what
is wrong. A process that ends, or takes longer than SECONDS for a plan, is a failure that names the seed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from pyodide_pkg import core
from tests.plan.corpus import samples
from tests.plan.host_mutation import damaged
from webrnn.web.folders import write_host

SCRIPT = Path(__file__).with_suffix(".mjs")
FLAGS = ("--disable-wasm-trap-handler", "--single-threaded-gc")
"""Without the first each memory of WebAssembly takes gigabytes of addresses, of which there are only so many."""
SECONDS = 20.0
"""That one plan may take, with all that is done with it."""


def run(first: int, count: int, weakness: str = "") -> Iterator[Counter[str]]:
    """What became of the files of these seeds, now and then. AssertionError if one is a failure."""
    samples()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_host(folder / "host")
        progress, errors, output = (folder / name for name in ("seed", "errors", "output"))
        progress.write_bytes(b"%20d" % first)
        command = [core.node(), *FLAGS, str(SCRIPT), f"{(folder / 'host').as_uri()}/", str(progress), weakness]
        with open(errors, "wb") as stderr, open(output, "wb") as stdout:
            # A group of its own, as the command may be a script that starts Node, and both have to end.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, start_new_session=True
            )
            assert process.stdin is not None
            raised: list[Exception] = []
            feeder = threading.Thread(target=_feed, args=(process.stdin, first, count, raised))
            feeder.start()
            try:
                yield from _watched(process, progress, output)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                feeder.join()
        if raised:
            raise raised[0]
        if process.returncode:
            report = errors.read_text(errors="replace")[-6000:]
            raise AssertionError(f"seed {int(progress.read_bytes())}: exit code {process.returncode}\n{report}")


def _feed(pipe: IO[bytes], first: int, count: int, raised: list[Exception]) -> None:
    try:
        with pipe:
            for seed in range(first, first + count):
                plan = damaged(random.Random(seed))
                pipe.write(struct.pack("<II", seed, len(plan)) + plan)
    except BrokenPipeError:
        pass  # it has ended; what it said is read elsewhere
    except Exception as error:
        raised.append(error)


def _watched(process: subprocess.Popen[bytes], progress: Path, output: Path) -> Iterator[Counter[str]]:
    seed, since, done = b"", time.monotonic(), 0
    while True:
        is_over = process.poll() is not None
        with open(output, "rb") as file:
            file.seek(done)
            for line in file:
                if line.endswith(b"\n"):
                    done += len(line)
                    yield Counter(json.loads(line))
        if is_over:
            return
        now = progress.read_bytes()
        if now != seed:
            seed, since = now, time.monotonic()
        elif time.monotonic() - since > SECONDS:
            raise AssertionError(f"seed {int(now)}: it takes longer than {SECONDS} seconds")
        time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.fuzz_plans", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--plans", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--go-on", action="store_true", help="behind a failure, with the next seed")
    arguments = parser.parse_args(argv)
    total, failures, started, said = Counter[str](), 0, time.monotonic(), 0.0
    first, end = arguments.seed, arguments.seed + arguments.plans
    while first < end:
        try:
            for outcomes in run(first, end - first):
                total += outcomes
                if time.monotonic() - said > 5:
                    said = time.monotonic()
                    print(f"{total['plans']:>8} plans, {total['plans'] / (said - started):.0f} a second", flush=True)
            break
        except AssertionError as failure:
            print(failure, flush=True)
            failures += 1
            if not arguments.go_on:
                break
            first = int(str(failure).partition(":")[0].removeprefix("seed ")) + 1
    for name, count in sorted(total.items(), key=lambda item: (item[0].partition(":")[0], -item[1])):
        print(f"{count:>8} {name}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
