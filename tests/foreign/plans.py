"""Libraries of other systems run the same plans as the one of this machine, and give the same bits.

Plans with every instruction go through harness.c: on this machine, under qemu and under wine. A fused build is compared
with the fused ones of this processor, any other one with the unfused ones.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.plan.corpus import samples
from wasm_kernels import build, systems, toolchains
from wasm_kernels.systems import FUSED_ISAS, System
from webrnn.plan import opcodes

from .roots import FOREIGN, command, other_libc, require

SOURCE = Path(__file__).with_name("harness.c")
RUNNABLE = ("linux-x86_64", "linux-aarch64", "linux-armv7l", "windows-amd64")


@cache
def library(system: System) -> Path:
    output = build.OUTPUT if system == systems.here() else build.ROOT / "build" / "wheels" / system.name
    return build.build(build.TARGETS["native"], toolchains.find("zig"), output, system=system)


@cache
def harness(system: System, libc: str = "") -> Path:
    folder = FOREIGN / "harness"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{system.name}{libc}{'.exe' if system.suffix == '.dll' else ''}"
    tool = toolchains.find("zig")
    options = [
        "-std=gnu11",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-DHEADER_EXTERNALS={opcodes.HEADER.index('externals')}",
    ]
    libraries = [] if system.suffix == ".dll" else ["-ldl"]
    target = system.zig_target
    if libc:
        target = f"{target.partition('-linux')[0]}-linux-{libc}"
        libraries = ["-dynamic"]
    command = [*tool.compiler, "-target", target, *options, str(SOURCE), *libraries, "-o", str(program)]
    tool.run(command, build.WORK)
    return program


def records() -> Iterator[bytes]:
    for sample in samples():
        for seed, symbols in ((1, sample.symbols), (2, (17,) * len(sample.symbols))):
            yield struct.pack(f"<{3 + len(symbols)}i", len(sample.data), seed, len(symbols), *symbols) + sample.data


def outcomes(system: System, name: str, file: Path | None = None, libc: str = "") -> list[str]:
    """What one build of a system's library gives for each plan: an error and a digest."""
    arguments = [str(harness(system, libc)), str(file or library(system)), name]
    environment = dict(os.environ)
    kind, _, machine = system.name.partition("-")
    if kind == "windows":
        require("wine")
        arguments = ["wine", *arguments]
        environment |= {"WINEPREFIX": str(FOREIGN / "wine"), "WINEDEBUG": "-all", "DISPLAY": ""}
    elif system != systems.here():
        arguments = [*command(machine), *arguments]
    elif libc:
        arguments = [other_libc(libc, machine), *arguments]
    done = subprocess.run(arguments, input=b"".join(records()), capture_output=True, env=environment)
    if done.returncode:
        raise AssertionError(f"{system.name}, {name}: exit code {done.returncode}\n{done.stderr.decode()[-2000:]}")
    return done.stdout.decode().splitlines()


def compare(system: System, file: Path | None = None, libc: str = "") -> Iterator[tuple[str, int, list[str]]]:
    """Of each build that can be run: its name, how many plans ran to their end, and what differs from this machine.

    `file`: a library to try instead of the one that is built here; `libc`: another C library, "musl"."""
    names = [sample.name for sample in samples() for _ in range(2)]
    here = systems.here()
    expected = {True: outcomes(here, "avx2"), False: outcomes(here, "sse2")}  # this runs on an x86_64 with AVX2
    for name in system.builds():
        if name.startswith("avx512"):
            continue  # neither qemu nor every machine has it
        found = outcomes(system, name, file, libc)
        wanted = expected[name in FUSED_ISAS]
        different = [f"{plan}: {one} here, {two} there"
                     for plan, one, two in zip(names, wanted, found, strict=True) if one != two]  # fmt: skip
        yield name, sum(line.startswith("0 ") for line in found), different
