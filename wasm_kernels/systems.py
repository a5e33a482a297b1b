"""The systems that have a native library: how zig compiles for each on any machine, and the tags of its wheel.

| part | |
|---|---|
| `linux-*` | The library needs nothing but five functions of the C library, by name: one file serves glibc and musl. |
| `linux-armv7l` | NEON of 32 bits loses denormal numbers, so it is scalar: slow, with the bits of unfused builds. |
| `windows-*` | No C library: kernel32 for the clock, and a start of its own in cpu.c. |
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cache

#: Instruction sets in one native library, best last; the position is what wr_isa_level() in cpu.c returns.
X86_64 = {"sse2": ["-march=x86-64"], "avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4", "-mavx512vnni"]}
AARCH64: dict[str, list[str]] = {"neon": []}
SCALAR = {"scalar": ["-DWEBRNN_SCALAR", "-Wno-pass-failed"]}  # some loops are too long to be unrolled there

#: Those whose multiply-adds are fused, of which the library holds a second build without.
FUSED_ISAS = ("avx2", "avx512", "neon")

# A multiply-add is a product and a sum, each rounded.
UNFUSED = "-DWEBRNN_UNFUSED"

# Tables for exceptions and debuggers, 30 KB of a wheel: no exception passes a kernel. Windows asks for them.
NO_UNWINDING = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]

# Where there are such tables, debuggers and profilers need no frame pointers: 8 KB of a wheel.
NO_FRAME_POINTERS = ["-fomit-frame-pointer"]

NO_LIBRARIES = ["-nostdlib"]
#: Arithmetic that the processor lacks, and a stack that grows page by page.
COMPILER_RT = "-rtlib=compiler-rt"


@dataclass(frozen=True, eq=False)
class System:
    name: str
    zig_target: str
    isas: dict[str, list[str]]
    tags: tuple[str, ...]
    suffix: str = ".so"
    linking: list[str] = field(default_factory=lambda: NO_LIBRARIES)
    compiling: list[str] = field(default_factory=lambda: NO_UNWINDING)

    @property
    def library(self) -> str:
        return f"native{self.suffix}"

    @property
    def wheel_tag(self) -> str:
        return ".".join(self.tags)

    @property
    def most(self) -> list[str]:
        """Flags of what has the instructions of all builds."""
        return list(self.isas.values())[-1]

    def builds(self) -> dict[str, list[str]]:
        """Flags of all builds in the library by name; those that are most alike stand together."""
        found = {}
        for isa, flags in self.isas.items():
            found[isa] = flags
            if isa in FUSED_ISAS:
                found[unfused_build(isa)] = [*flags, UNFUSED]
        return found


def unfused_build(isa: str) -> str:
    """The name of the build of an instruction set without fused multiply-adds."""
    return f"{isa}_unfused" if isa in FUSED_ISAS else isa


def _linux(machine: str, zig_target: str, isas: dict[str, list[str]], linking: list[str] = NO_LIBRARIES) -> System:
    tags = (f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}")
    return System(f"linux-{machine}", zig_target, isas, tags, linking=linking)


def _macos(machine: str, zig_machine: str, isas: dict[str, list[str]]) -> System:
    # dyld refuses a library without libSystem
    tags = (f"macosx_11_0_{machine}",)
    name = "-Wl,-install_name,@rpath/native.dylib"  # otherwise it is a path of the machine that linked it
    linking = [*NO_LIBRARIES, "-lSystem", name]
    return System(f"macos-{machine}", f"{zig_machine}-macos.11.0", isas, tags, ".dylib", linking)


def _windows(machine: str, zig_machine: str, isas: dict[str, list[str]]) -> System:
    linking = [*NO_LIBRARIES, COMPILER_RT, "-lkernel32"]
    compiling = NO_FRAME_POINTERS if machine == "amd64" else []  # Windows walks the stacks of ARM by them
    target = f"{zig_machine}-windows-gnu"
    return System(f"windows-{machine}", target, isas, (f"win_{machine}",), ".dll", linking, compiling)


SYSTEMS = {
    system.name: system
    for system in (
        _linux("x86_64", "x86_64-linux-gnu.2.17", X86_64),
        _linux("aarch64", "aarch64-linux-gnu.2.17", AARCH64),
        _linux("armv7l", "arm-linux-gnueabihf.2.17", SCALAR, [*NO_LIBRARIES, COMPILER_RT]),
        _macos("x86_64", "x86_64", X86_64),
        _macos("arm64", "aarch64", AARCH64),
        _windows("amd64", "x86_64", X86_64),
        _windows("arm64", "aarch64", AARCH64),
    )
}


@cache
def here() -> System:
    """That of this machine. One that has no row gets a scalar library of its own."""
    kind = {"Darwin": "macos"}.get(platform.system(), platform.system().lower())
    name = f"{kind}-{platform.machine().lower() if kind == 'windows' else platform.machine()}"
    if name in SYSTEMS:
        return SYSTEMS[name]
    machine = platform.machine()
    return _linux(machine, f"{machine}-linux-gnu.2.17", SCALAR)
