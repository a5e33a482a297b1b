"""`python -m tests.foreign [SYSTEM ...]`: the native libraries of other systems, run on this one.

1. Plans with every instruction give the bits of this machine: all systems that qemu or wine can run.
2. The wheel of linux-aarch64 in a Python under qemu: the grid of all kernels, and the bits of all benchmark models.

Needs debootstrap, qemu-user-static and wine; some minutes. What is for macOS and Windows on ARM can only be looked at,
which `make wheels` does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from pyodide_pkg.suite import packages
from wasm_kernels import systems, wheels
from wasm_kernels.systems import FUSED_ISAS

from . import inside, plans, roots

WITH_PYTHON = "linux-aarch64"
GRID = ("test_grid.py", "test_row_panels.py")


def site(system: systems.System) -> Path:
    """Packages for the Python of another processor: the wheel, numpy, and what tests need, without compiled parts."""
    wheel = wheels.build(system, roots.FOREIGN / "wheels")
    folder = roots.packages(system.name.partition("-")[2], wheel, roots.FOREIGN / "site")
    for name, data in packages.files():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def check_plans(system: systems.System) -> bool:
    is_good = True
    for build, ran, different in plans.compare(system):
        print(f"{system.name:<14} {build:<14} {ran} plans ran, {len(different)} with other bits", flush=True)
        for line in different[:10]:
            print(f"  {line}")
        is_good &= not different and ran > 0
    return is_good


def check_python(system: systems.System) -> bool:
    machine = system.name.partition("-")[2]
    python, settings = roots.python(machine, site(system))
    environment = {**os.environ, **settings}
    ran = subprocess.run([*python, "-m", "tests.foreign.inside"], env=environment, cwd=roots.ROOT, capture_output=True)
    if ran.returncode:
        print(ran.stderr.decode()[-3000:])
        return False
    theirs, ours = json.loads(ran.stdout), inside.digests()
    is_good = True
    for spec, found in theirs.items():
        is_fused = spec.partition(":")[2] in FUSED_ISAS
        wanted = ours["native:avx2" if is_fused else "native:sse2"]
        same = sum(found[name] == wanted[name] for name in wanted)
        print(f"{system.name:<14} {spec:<20} {same} of {len(wanted)} benchmark models have the bits of this machine")
        is_good &= same == len(wanted)
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore", "--no-header"]
    files = [str(roots.ROOT / "tests" / "wasm_kernels" / name) for name in GRID]
    grid = subprocess.run([*python, "-m", "pytest", *options, *files], env=environment, cwd=roots.ROOT)
    return is_good and grid.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("system", nargs="*", choices=[*plans.RUNNABLE, []], metavar="SYSTEM")
    arguments = parser.parse_args()
    is_good = True
    try:
        for name in arguments.system or plans.RUNNABLE:
            is_good &= check_plans(systems.SYSTEMS[name])
            if name == WITH_PYTHON:
                is_good &= check_python(systems.SYSTEMS[name])
    except roots.MissingTool as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
