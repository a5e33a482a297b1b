"""What programs of another processor need to run here: a folder with Debian's C library and Python for it, below
build/foreign, made by debootstrap without root's help from that processor, and qemu."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "build" / "foreign"
RELEASE = "bookworm"
#: of a machine: Debian's name for it, and qemu's
MACHINES = {"aarch64": ("arm64", "qemu-aarch64-static"), "armv7l": ("armhf", "qemu-arm-static")}


class MissingTool(Exception):
    """Something that must be installed."""


def require(*programs: str) -> None:
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise MissingTool(
            f"{', '.join(missing)} missing: apt-get install debootstrap qemu-user-static, and wine for Windows"
        )


def command(machine: str) -> list[str]:
    """What a program of that machine is started with."""
    _, qemu = MACHINES[machine]
    return [qemu, "-L", str(root(machine))]


def other_libc(name: str, machine: str) -> str:
    """The loader of another C library, which starts programs of this machine with it."""
    loader = Path(f"/lib/ld-{name}-{machine}.so.1")
    if not loader.exists():
        raise MissingTool(f"{loader} is missing: apt-get install {name}")
    return str(loader)


def root(machine: str) -> Path:
    architecture, qemu = MACHINES[machine]
    folder = FOREIGN / machine
    if (folder / "ready").exists():
        return folder
    require("debootstrap", "dpkg", qemu)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"Debian for {machine}: a minute", file=sys.stderr)
    options = [f"--arch={architecture}", "--foreign", "--variant=minbase", "--include=python3"]
    made = subprocess.run(["debootstrap", *options, RELEASE, str(folder)], capture_output=True, text=True)
    if made.returncode:
        raise MissingTool(f"debootstrap failed: {made.stdout[-1000:]}{made.stderr[-1000:]}")
    for package in sorted((folder / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
    (folder / "ready").touch()
    return folder


def python(machine: str, site: Path) -> tuple[list[str], dict[str, str]]:
    """Python there with the packages of a folder: command and environment."""
    folder = root(machine)
    program = next(path for path in sorted((folder / "usr/bin").glob("python3.*")) if path.name.count(".") == 1)
    settings = {"PYTHONHOME": str(folder / "usr"), "PYTHONPATH": f"{site}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return [*command(machine), str(program)], settings


def packages(machine: str, wheel: Path, folder: Path) -> Path:
    """A folder with a wheel and numpy as pip installs them for the Python there."""
    import numpy

    tags = [f"manylinux2014_{machine}", *(f"manylinux_2_{glibc}_{machine}" for glibc in (27, 28))]
    platforms = [option for tag in tags for option in ("--platform", tag)]
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--upgrade"]
    command = [sys.executable, "-m", "pip", "install", *options, *platforms, "--python-version", version(machine)]
    subprocess.run([*command, "--target", str(folder), str(wheel), f"numpy=={numpy.__version__}"], check=True)
    return folder


def version(machine: str) -> str:
    return Path(python(machine, ROOT)[0][-1]).name.removeprefix("python")
