"""libFuzzer on plan_check, plan_bind and plan_run: `python -m tests.plan.libfuzzer [--runs N] [--jobs J] [--keep]`.

It starts from the committed corpus (fuzz_corpus.tar.xz) and from the plans of corpus.py and hostile.py, and looks for
inputs that reach new code. A report of AddressSanitizer ends it; the input is kept in build/fuzz and named. `--keep`
writes the smallest set of inputs that reaches all that was reached back to the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.plan.corpus import samples
from tests.plan.fuzzing import LIBFUZZER, OPTIONS, WORK, driver
from tests.plan.hostile import hostile

CORPUS = Path(__file__).parent / "fuzz_corpus.tar.xz"
LONGEST_INPUT = 8192
MOST_KEPT_BYTES = 4096
HOSTILE_PLANS = 400
FLAGS = ["-timeout=0", f"-max_len={LONGEST_INPUT}", "-rss_limit_mb=4096", "-print_final_stats=1", "-len_control=0"]
"""No time limit of libFuzzer's: the program cuts long runs off itself, and both would use the same timer."""


def stored() -> Iterator[bytes]:
    """The inputs of the committed corpus."""
    with tarfile.open(CORPUS) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            yield file.read()


def seeds() -> Iterator[bytes]:
    """What a campaign starts from."""
    yield from stored()
    yield from (sample.data for sample in samples())
    yield from (hostile(random.Random(seed)).data for seed in range(HOSTILE_PLANS))


def fuzz(runs: int, jobs: int = 1, seed: int = 1, folder: Path = WORK / "libfuzzer", missing_bytes: int = 0) -> int:
    """Run this many inputs in all; the number that ran. AssertionError with the report if a sanitizer has one.

    `missing_bytes` of each external are not there, which the sanitizer must find out.
    """
    environment = {**os.environ, **OPTIONS, "FUZZ_MISSING_BYTES": str(missing_bytes)}
    program = driver(LIBFUZZER, "fuzz_target")
    found = folder / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    for data in seeds():
        (found / hashlib.sha1(data).hexdigest()).write_bytes(data)
    workers = []
    for job in range(jobs):
        flags = [*FLAGS, f"-runs={-(-runs // jobs)}", f"-seed={seed + job}", "-reload=1", f"-artifact_prefix={folder}/"]
        log = (folder / f"log-{job}.txt").open("wb")
        command = [str(program), *flags, str(found)]
        workers.append((subprocess.Popen(command, stderr=log, env=environment), Path(log.name)))
    total = 0
    for worker, log_file in workers:
        worker.wait()
        text = log_file.read_text(errors="replace")
        if worker.returncode:
            report = text[text.find("==") :] if "ERROR" in text else text[-6000:]
            raise AssertionError(f"exit code {worker.returncode}; the input is in {folder}\n{report[:6000]}")
        total += int(re.findall(r"stat::number_of_executed_units: *(\d+)", text)[-1])
    return total


def keep(folder: Path = WORK / "libfuzzer") -> None:
    """Write the smallest inputs that reach all that was reached to the committed corpus."""
    merged = folder / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    flags = [*FLAGS, f"-max_len={MOST_KEPT_BYTES}", "-merge=1"]
    environment = {**os.environ, **OPTIONS}
    command = [str(driver(LIBFUZZER, "fuzz_target")), *flags, str(merged), str(folder / "corpus")]
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    with tarfile.open(CORPUS, "w:xz") as archive:
        for file in sorted(merged.iterdir()):
            member = tarfile.TarInfo(file.name)
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.plan.libfuzzer", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="write what reached new code to the committed corpus")
    arguments = parser.parse_args(argv)
    total = fuzz(arguments.runs, arguments.jobs, arguments.seed)
    print(f"{total} inputs ran without a report")
    if arguments.keep:
        keep()
        print(f"{CORPUS.name}: {CORPUS.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
