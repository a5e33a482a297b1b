"""Builds the kernels: `python -m wasm_kernels.build [--target T ...] [--toolchain zig|emcc|clang] [--list]`.

A target is a platform and a variant: `native` (all instruction sets of this machine's architecture in one library),
`wasm-scalar|simd|relaxed` (standalone modules), `wasm-scalar-core|simd-core|relaxed-core` (the same without what the
tables of plans call rare, and without exports of kernels but those that hosts call: what most pages load) and
`pyodide-scalar|simd|relaxed` (side modules; their names do not end in .so, or Pyodide would compile them all on
installation, also those that its engine cannot compile). A build is skipped when sources, table, commands and compiler
are the same as last time and the output is intact; running it twice gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from wasm_kernels import plan_header, systems, table, toolchains
from wasm_kernels.systems import System
from wasm_kernels.toolchains import Toolchain, ToolchainError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUTPUT = ROOT / "runtime" / "webrnn" / "_kernels"
#: Profiling builds, beside the others under the same names.
PROFILE_OUTPUT = OUTPUT / "profile"
WORK = ROOT / "build" / "kernels"

# C11, IEEE arithmetic: contraction is off, so that a multiply-add is fused only where simd.h says so.
COMMON = ["-std=gnu11", "-ffreestanding", "-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden",
          "-Wall", "-Wextra", "-Werror"]  # fmt: skip

WASM = ["-mbulk-memory"]
# Loop strength reduction rewrites addresses so that they no longer fold into the offset of a wasm load. emcc passes
# this itself.
NO_LSR = ["-mllvm", "-disable-lsr"]
# Engines without extended constant expressions (Node 20, Safari before 17.4) run Pyodide too.
NO_EXTENDED_CONST = ["-mno-extended-const"]

VARIANTS = {"scalar": ["-DWEBRNN_SCALAR"], "simd": ["-msimd128"], "relaxed": ["-msimd128", "-mrelaxed-simd"]}

CORE = "-DWEBRNN_CORE"


@dataclass(frozen=True)
class Target:
    name: str
    platform: str
    variant: str
    file: str
    is_core: bool = False


TARGETS = {
    t.name: t
    for t in (
        Target("native", "native", "", systems.here().library),
        *(Target(f"wasm-{v}", "wasm", v, f"wasm_{v}.wasm") for v in VARIANTS),
        *(Target(f"wasm-{v}-core", "wasm", v, f"wasm_{v}_core.wasm", is_core=True) for v in VARIANTS),
        *(Target(f"pyodide-{v}", "pyodide", v, f"pyodide_{v}.wasm") for v in VARIANTS),
    )
}
GROUPS = {
    "all": list(TARGETS),
    "default": [t.name for t in TARGETS.values() if t.platform != "pyodide"],
    "wasm": [t.name for t in TARGETS.values() if t.platform == "wasm"],
    "pyodide": [t.name for t in TARGETS.values() if t.platform == "pyodide"],
}

Step = list[str]


def _steps_native(tool: Toolchain, system: System, work: Path, output: Path, extra: Step) -> list[Step]:
    base = [*tool.compiler, *(["-target", system.zig_target] if tool.name == "zig" else [])]
    compile_ = [*base, *COMMON, "-fPIC", "-fno-stack-protector", "-DWEBRNN_THREADS", *extra]
    steps, objects = [], []
    for isa, flags in system.builds().items():
        objects.append(str(work / f"{isa}.o"))
        if tool.name == "zig":
            flags = [f.replace("-march=", "-mcpu=").replace("x86-64", "x86_64").replace("-v", "_v") for f in flags]
        steps.append([*compile_, *flags, f"-DWEBRNN_SUFFIX={isa}", "-c", str(HERE / "all.c"), "-o", objects[-1]])
    for name in ("cpu", "team"):
        objects.append(str(work / f"{name}.o"))
        steps.append([*compile_, "-c", str(HERE / f"{name}.c"), "-o", objects[-1]])
    return [*steps, [*base, "-shared", *system.linking, "-s", *objects, "-o", str(output)]]


def _steps_wasm(tool: Toolchain, variant: str, work: Path, output: Path, extra: Step) -> list[Step]:
    source, object_ = str(HERE / "all.c"), str(work / "all.o")
    if tool.name == "emcc":
        functions = table.CORE_EXPORTS if CORE in extra else table.EXPORTS
        exports = ",".join(f"_{k.symbol}" for k in functions)
        stack = ["-sTOTAL_STACK=65536", "-Wl,--export=__heap_base"]
        memory = ["-sIMPORTED_MEMORY", "-sALLOW_MEMORY_GROWTH", "-sMAXIMUM_MEMORY=4GB"]
        clock = ["-sERROR_ON_UNDEFINED_SYMBOLS=0"]  # the host gives it, not Emscripten's JavaScript
        return [[*tool.compiler, *COMMON, *WASM, *VARIANTS[variant], *extra, source, "--no-entry", *memory,
                 *stack, *clock, f"-sEXPORTED_FUNCTIONS={exports}", "-o", str(output)]]  # fmt: skip
    target = ["-target", "wasm32-freestanding"] if tool.name == "zig" else ["--target=wasm32-unknown-unknown"]
    return [
        [*tool.compiler, *target, *COMMON, *WASM, *NO_LSR, *VARIANTS[variant], *extra, "-c", source, "-o", object_],
        # The stack comes first in memory: running out of it traps instead of overwriting data.
        [*tool.wasm_linker, "--no-entry", "--export-dynamic", "--import-memory", "--strip-all", "--stack-first",
         "-z", "stack-size=65536", "--export=__heap_base", object_, "-o", str(output)],
    ]  # fmt: skip


def _steps_pyodide(tool: Toolchain, variant: str, work: Path, output: Path, extra: Step) -> list[Step]:
    # Names of its own: Emscripten has one table for the addresses of functions of all side modules, by their names.
    extra = [*extra, "-DWEBRNN_SIDE_MODULE", f"-DWEBRNN_SUFFIX={variant}"]
    source, object_ = str(HERE / "all.c"), str(work / "all.o")
    if tool.name == "emcc":
        return [
            [*tool.compiler, *COMMON, *WASM, *VARIANTS[variant], *extra, "-sSIDE_MODULE=2", source, "-o", str(output)]
        ]
    return [
        [*tool.compiler, "-target", "wasm32-emscripten", *COMMON, *WASM, *NO_EXTENDED_CONST, *NO_LSR,
         *VARIANTS[variant], *extra, "-fPIC", "-c", source, "-o", object_],
        [*tool.wasm_linker, "-shared", "--experimental-pic", "--export-dynamic", "--no-entry", "--strip-debug", object_,
         "-o", str(output)],
    ]  # fmt: skip


def _steps(target: Target, tool: Toolchain, system: System, work: Path, output: Path, extra: Step) -> list[Step]:
    if target.platform == "native":
        return _steps_native(tool, system, work, output, extra)
    build = _steps_wasm if target.platform == "wasm" else _steps_pyodide
    return build(tool, target.variant, work, output, extra)


def _digest(*parts: bytes) -> str:
    h = hashlib.sha256()
    for part in parts:
        h.update(len(part).to_bytes(8, "little") + part)
    return h.hexdigest()


def generated_headers() -> dict[str, str]:
    """The headers that C sources include, by file name."""
    return {"kernels.gen.h": table.c_header(), "plan.gen.h": plan_header.c_header()}


def build(
    target: Target,
    tool: Toolchain,
    output: Path = OUTPUT,
    *,
    bench: bool = False,
    profile: bool = False,
    system: System | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Builds one target into the folder `output`, returns the file. `bench` adds the repeat functions, `profile` a VM
    that can count where the time goes. A native library can be for another `system` than this one."""
    tool.require(target.platform, target.variant)
    is_foreign = target.platform == "native" and system not in (None, systems.here())
    system = system or systems.here()
    name = f"{target.name}-{system.name}" if is_foreign else target.name
    work = WORK / f"{tool.name}-{name}{'-bench' if bench else ''}{'-profile' if profile else ''}"
    work.mkdir(parents=True, exist_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    file = output / (system.library if target.platform == "native" else target.file)
    headers, repeaters = generated_headers(), table.c_repeaters()
    extra = ["-I", str(work), *(["-DWEBRNN_BENCH"] if bench else []), *(["-DWEBRNN_PROFILE"] if profile else [])]
    extra += [CORE] if target.is_core else []
    built = work / file.name
    steps = _steps(target, tool, system, work, built, extra)

    sources = [p.read_bytes() for p in sorted((*HERE.glob("*.c"), *HERE.glob("*.h")))]
    commands = json.dumps(steps).replace(str(ROOT), "")
    key = _digest(
        *sources,
        *(header.encode() for header in headers.values()),
        repeaters.encode() if bench else b"",
        commands.encode(),
        f"{tool.version} {tool.llvm}".encode(),
    )
    stamp = work / "stamp"
    label = f"{name + (' profile' if profile else ''):<28} {tool.name} {tool.version}"
    if file.exists() and stamp.exists() and stamp.read_text() == f"{key} {_digest(file.read_bytes())}":
        say(f"{label:<34} up to date    {file.stat().st_size / 1024:7.1f} KB")
        return file

    for name, header in headers.items():
        (work / name).write_text(header)
    (work / "repeat.gen.c").write_text(repeaters)
    start = time.perf_counter()
    for step in steps:
        tool.run(step, WORK)
    os.replace(built, file)  # in one go: a process that has the old file loaded keeps it
    stamp.write_text(f"{key} {_digest(file.read_bytes())}")
    say(f"{label:<34} built in {time.perf_counter() - start:4.1f} s {file.stat().st_size / 1024:7.1f} KB")
    return file


def write_bindings(
    output: Path = OUTPUT,
    *,
    bench: bool = False,
    native: bool = True,
    profile: bool = False,
    system: System | None = None,
) -> Path:
    """kernels.json, which the loaders read: signatures and, if there is one, the native library with its instruction
    sets and the unfused build of each."""
    output.mkdir(parents=True, exist_ok=True)
    rows = [row for kernel in table.KERNELS for row in table.binding_rows(kernel, bench)]
    functions = (*table.PLAN_FUNCTIONS, *(table.PROFILE_FUNCTIONS if profile else ()))
    rows += [row for function in functions for row in table.binding_rows(function, bench=False)]
    system = system or systems.here()
    isas = {isa: systems.unfused_build(isa) for isa in system.isas}
    threads = [row for function in table.THREAD_FUNCTIONS for row in table.binding_rows(function, bench=False)]
    team = [row for function in table.TEAM_FUNCTIONS for row in table.binding_rows(function, bench=False)]
    library = {"native": system.library, "native_isas": isas, "threads": threads, "team": team}
    if not native:
        library = {}
    elif profile:
        library["threads"] = []
    content = {**library, "kernels": rows}
    file = output / "kernels.json"
    file.write_text(json.dumps(content, indent=1) + "\n")
    return file


def build_profile(
    names: Iterable[str],
    tool: Toolchain,
    output: Path = PROFILE_OUTPUT,
    *,
    system: System | None = None,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """The profiling builds of these targets, where there are such, and their bindings. The native one has the clock of
    the wasm modules."""
    targets = [TARGETS[name] for name in names if TARGETS[name].platform != "pyodide" and not TARGETS[name].is_core]
    files = [build(target, tool, output, profile=True, system=system, say=say) for target in targets]
    return [*files, write_bindings(output, profile=True, system=system)] if files else []


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wasm_kernels.build", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--target", nargs="+", default=["default"], choices=[*GROUPS, *TARGETS], metavar="T",
                        help=f"any of {', '.join(TARGETS)}, or {', '.join(GROUPS)} (default: default)")  # fmt: skip
    parser.add_argument("--toolchain", default="zig", choices=toolchains.NAMES)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the built modules")
    parser.add_argument("--bench", action="store_true", help="with the repeat functions of micro-benchmarks")
    parser.add_argument("--list", action="store_true", help="list targets and toolchains and exit")
    arguments = parser.parse_args(argv)
    if arguments.list:
        return _list()
    names = dict.fromkeys(n for t in arguments.target for n in GROUPS.get(t, [t]))
    try:
        tool = toolchains.find(arguments.toolchain)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    failures = 0
    for name in names:
        try:
            build(TARGETS[name], tool, arguments.output, bench=arguments.bench)
        except ToolchainError as error:
            failures += 1
            print(f"{name:<16} not built: {error}", file=sys.stderr)
    write_bindings(arguments.output, bench=arguments.bench)
    if tool.name == "zig" and arguments.output == OUTPUT and not arguments.bench and not failures:
        build_profile(names, tool)
    return 1 if failures else 0


def _list() -> int:
    tools: dict[str, Toolchain | ToolchainError] = {}
    for name in toolchains.NAMES:
        try:
            tools[name] = toolchains.find(name)
        except ToolchainError as error:
            tools[name] = error
    for name, tool in tools.items():
        print(f"{name:<6} {tool if isinstance(tool, ToolchainError) else f'{tool.version} (LLVM {tool.llvm})'}")
    print()
    for target in TARGETS.values():
        able = []
        for name, tool in tools.items():
            try:
                if isinstance(tool, Toolchain):
                    tool.require(target.platform, target.variant)
                    able.append(name)
            except ToolchainError:
                pass
        print(f"{target.name:<16} {target.file:<20} with {', '.join(able) or 'nothing here'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
