"""Builds the kernels: `python -m wasm_kernels.build [--target T ...] [--toolchain zig|emcc|clang] [--list]`.

A target is a platform and a variant: `native` (all instruction sets of this machine's architecture in one library),
`wasm-scalar|simd|relaxed` (standalone modules), `wasm-scalar-core|simd-core|relaxed-core` (the same without what the
tables of plans call rare, and without exports of kernels but those that hosts call: what most pages load),
`wasm-scalar-training|simd-training|relaxed-training` (these with what learning needs) and
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
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

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
TRAINING = "-DWEBRNN_TRAINING"
MODULES = {"core": [CORE], "training": [CORE, TRAINING], "full": []}
"""Flags of the modules that pages load: MODULES of runtime/webrnn/plan/instructions.py."""


@dataclass(frozen=True)
class Target:
    name: str
    platform: str
    variant: str
    file: str
    module: str = "full"


TARGETS = {
    t.name: t
    for t in (
        Target("native", "native", "", systems.here().library),
        *(Target(f"wasm-{v}", "wasm", v, f"wasm_{v}.wasm") for v in VARIANTS),
        *(
            Target(f"wasm-{v}-{module}", "wasm", v, f"wasm_{v}_{module}.wasm", module)
            for module in ("core", "training")
            for v in VARIANTS
        ),
        *(Target(f"pyodide-{v}", "pyodide", v, f"pyodide_{v}.wasm") for v in VARIANTS),
    )
}
GROUPS = {
    "all": list(TARGETS),
    "default": [t.name for t in TARGETS.values() if t.platform != "pyodide"],
    "wasm": [t.name for t in TARGETS.values() if t.platform == "wasm"],
    "pyodide": [t.name for t in TARGETS.values() if t.platform == "pyodide"],
    "modules": [t.name for t in TARGETS.values() if t.platform != "native"],
}

Item = TypeVar("Item")
Result = TypeVar("Result")

Step = list[str]
#: Commands that need nothing of each other.
Stage = list[Step]

# It can count laps, see profile.h; so a profile is of the code that runs otherwise.
NATIVE = ["-fPIC", "-fno-stack-protector", "-DWEBRNN_THREADS", "-DWEBRNN_PROFILE"]
# zig asks for an object as well
ASSEMBLY = ["-Wno-unused-command-line-argument", "-S"]


def _stages_native(tool: Toolchain, system: System, work: Path, output: Path, extra: Step) -> list[Stage]:
    base = [*tool.compiler, *(["-target", system.zig_target] if tool.name == "zig" else [])]
    builds = {isa: _spelled(flags, tool) for isa, flags in system.builds().items()}
    texts = [str(work / f"{isa}.s") for isa in builds]
    text, objects = str(work / "all.s"), [str(work / f"{name}.o") for name in ("all", "cpu", "team")]
    compile_ = [*base, *COMMON, *NATIVE, *system.compiling, *extra]
    return [
        [
            *([*compile_, *flags, f"-DWEBRNN_SUFFIX={isa}", *ASSEMBLY, str(HERE / "all.c"), "-o", file]
              for (isa, flags), file in zip(builds.items(), texts, strict=True)),
            *([*compile_, "-c", str(HERE / f"{Path(file).stem}.c"), "-o", file] for file in objects[1:]),
        ],
        [[sys.executable, str(HERE / "interleave.py"), text, *texts]],
        [[*base, *_spelled(system.most, tool), "-c", text, "-o", objects[0]]],
        [[*base, "-shared", *system.linking, "-s", *objects, "-o", str(output)]],
    ]  # fmt: skip


def _spelled(flags: Step, tool: Toolchain) -> Step:
    if tool.name != "zig":
        return flags
    return [flag.replace("-march=", "-mcpu=").replace("x86-64", "x86_64").replace("-v", "_v") for flag in flags]


def _stages_wasm(tool: Toolchain, variant: str, work: Path, output: Path, extra: Step) -> list[Stage]:
    source, object_ = str(HERE / "all.c"), str(work / "all.o")
    if tool.name == "emcc":
        module = "training" if TRAINING in extra else "core" if CORE in extra else "full"
        exports = ",".join(f"_{k.symbol}" for k in table.EXPORTS_OF[module])
        stack = ["-sTOTAL_STACK=65536", "-Wl,--export=__heap_base"]
        memory = ["-sIMPORTED_MEMORY", "-sALLOW_MEMORY_GROWTH", "-sMAXIMUM_MEMORY=4GB"]
        clock = ["-sERROR_ON_UNDEFINED_SYMBOLS=0"]  # the host gives it, not Emscripten's JavaScript
        return [[[*tool.compiler, *COMMON, *WASM, *VARIANTS[variant], *extra, source, "--no-entry", *memory,
                  *stack, *clock, f"-sEXPORTED_FUNCTIONS={exports}", "-o", str(output)]]]  # fmt: skip
    target = ["-target", "wasm32-freestanding"] if tool.name == "zig" else ["--target=wasm32-unknown-unknown"]
    return [
        [[*tool.compiler, *target, *COMMON, *WASM, *NO_LSR, *VARIANTS[variant], *extra, "-c", source, "-o", object_]],
        # The stack comes first in memory: running out of it traps instead of overwriting data.
        [[*tool.wasm_linker, "--no-entry", "--export-dynamic", "--import-memory", "--strip-all", "--stack-first",
          "-z", "stack-size=65536", "--export=__heap_base", object_, "-o", str(output)]],
    ]  # fmt: skip


def _stages_pyodide(tool: Toolchain, variant: str, work: Path, output: Path, extra: Step) -> list[Stage]:
    # Names of its own: Emscripten has one table for the addresses of functions of all side modules, by their names.
    extra = [*extra, "-DWEBRNN_SIDE_MODULE", f"-DWEBRNN_SUFFIX={variant}"]
    source, object_ = str(HERE / "all.c"), str(work / "all.o")
    if tool.name == "emcc":
        side = ["-sSIDE_MODULE=2", source, "-o", str(output)]
        return [[[*tool.compiler, *COMMON, *WASM, *VARIANTS[variant], *extra, *side]]]
    return [
        [[*tool.compiler, "-target", "wasm32-emscripten", *COMMON, *WASM, *NO_EXTENDED_CONST, *NO_LSR,
          *VARIANTS[variant], *extra, "-fPIC", "-c", source, "-o", object_]],
        [[*tool.wasm_linker, "-shared", "--experimental-pic", "--export-dynamic", "--no-entry", "--strip-debug",
          object_, "-o", str(output)]],
    ]  # fmt: skip


def _stages(target: Target, tool: Toolchain, system: System, work: Path, output: Path, extra: Step) -> list[Stage]:
    if target.platform == "native":
        return _stages_native(tool, system, work, output, extra)
    build = _stages_wasm if target.platform == "wasm" else _stages_pyodide
    return build(tool, target.variant, work, output, extra)


def together(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results, in order. Toolchain.run keeps to the processors that there are."""
    items = list(items)
    with ThreadPoolExecutor(max(len(items), 1)) as threads:
        return list(threads.map(work, items))


def write(file: Path, data: bytes) -> Path:
    """In one go, and not if it is there already: somebody may be reading it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_bytes() != data:
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(data)
        os.chmod(temporary.name, 0o644)
        os.replace(temporary.name, file)
    return file


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
    that can count where the time goes, which a native library has anyway. A native library can be for another `system`
    than this one."""
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
    extra += MODULES[target.module]
    built = work / file.name
    stages = _stages(target, tool, system, work, built, extra)

    own = [HERE / "interleave.py"] if target.platform == "native" else []
    sources = [p.read_bytes() for p in sorted((*HERE.glob("*.c"), *HERE.glob("*.h"), *own))]
    commands = json.dumps(stages).replace(str(ROOT), "")
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
    for stage in stages:
        together(lambda step: tool.run(step, WORK), stage)
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
        library |= {"native": f"../{system.library}", "threads": []}
    content = {**library, "kernels": rows}
    return write(output / "kernels.json", (json.dumps(content, indent=1) + "\n").encode())


def build_profile(
    names: Iterable[str],
    tool: Toolchain,
    output: Path = PROFILE_OUTPUT,
    *,
    system: System | None = None,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """The profiling builds of these modules, where there are such, and the bindings of all. The native library in the
    folder above counts, too, and has the clock of the modules."""
    targets = [TARGETS[name] for name in names if TARGETS[name].platform == "wasm" and TARGETS[name].module == "full"]
    files = together(lambda target: build(target, tool, output, profile=True, say=say), targets)
    return [*files, write_bindings(output, profile=True, system=system)]


def packaged(tool: Toolchain, output: Path, system: System, say: Callable[[str], None]) -> list[Path]:
    """All files of a wheel: the native library of a system, and all modules for WebAssembly in one archive."""
    from webrnn import packed

    numbers = count(1)
    total = 1 + len(GROUPS["modules"]) + len(VARIANTS)
    told, say = say, lambda line: told(f"[{next(numbers)}/{total}] {line}")
    jobs: list[Callable[[], list[Path]]] = [
        lambda: [build(TARGETS["native"], tool, output, system=system, say=say)],
        *((lambda name=name: [build(TARGETS[name], tool, say=say)]) for name in GROUPS["modules"]),
        lambda: build_profile(GROUPS["wasm"], tool, say=say)[:-1],
    ]
    (native,), *modules = together(lambda job: job(), jobs)
    files = {file.relative_to(OUTPUT).as_posix(): file.read_bytes() for made in modules for file in made}
    archive = write(ROOT / "build" / "packaged" / packed.MODULES, packed.pack(files))
    bindings = [write_bindings(output, system=system), *build_profile([], tool, output / "profile", system=system)]
    return [native, archive, *bindings]


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

    def is_built(name: str) -> bool:
        try:
            build(TARGETS[name], tool, arguments.output, bench=arguments.bench)
        except ToolchainError as error:
            print(f"{name:<16} not built: {error}", file=sys.stderr)
            return False
        return True

    failures = together(is_built, names).count(False)
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
