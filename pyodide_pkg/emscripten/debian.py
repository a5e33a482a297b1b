"""A Debian with Emscripten in a folder: debootstrap fetches its packages, dpkg unpacks them, chroot runs its programs.

No package is installed, so none of their scripts run; nothing is mounted, and no network is set up inside. Removing the
folder removes all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyodide_pkg.core import SetupError

#: The release of Debian that has a current Emscripten, and the Python of current Pyodides.
SUITE = "sid"
PACKAGES = ("emscripten", "make")
MIRROR = "WEBRNN_DEBIAN_MIRROR"

_TOOLS = ("debootstrap", "debian-archive-keyring", "gpgv")
_ALIASES = ("bin", "lib", "lib64", "sbin")  # folders that Debian keeps below /usr
_DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
_ENDINGS = {signal.SIGINT, signal.SIGTERM}
_SBIN = "/usr/sbin:/sbin"  # where debootstrap and chroot are, also if PATH is not that of root


class Unavailable(SetupError):
    """Debian does not give the packages now: no mistake of ours."""


@dataclass(frozen=True)
class Root:
    folder: Path

    def command(self, *command: str, cwd: str = "/", environment: Mapping[str, str] | None = None) -> list[str]:
        """A command line that runs `command` in here. It sees no variable of ours but `environment`."""
        settings = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})}
        variables = [f"{name}={value}" for name, value in settings.items()]
        return [_program("chroot"), str(self.folder), "/usr/bin/env", "-i", f"--chdir={cwd}", *variables, *command]


def call(what: str, command: Sequence[str], log: Path) -> None:
    """Run a command, its output to `log`. Whatever ends us ends it too, with the processes that it started."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as file:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)  # until the process is known
        try:
            process = subprocess.Popen(
                command,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _ENDINGS),
            )
        except BaseException:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
            raise
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    if process.returncode:
        last = log.read_text(errors="replace").splitlines()[-40:]
        raise SetupError("\n    ".join([f"{what} failed; the end of {log}:", *last]))


def obstacle() -> str | None:
    """Why no root can be made here; None if one can. debootstrap is installed if it may be."""
    if os.geteuid():
        return "it needs root, for debootstrap and chroot"
    if shutil.which("debootstrap", path=_path()):
        return None
    if not shutil.which("apt-get"):
        return "it needs debootstrap, and there is no apt-get to install it"
    print("installing debootstrap", flush=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *_TOOLS]
    for commands in ([install], [["apt-get", "update", "-qq"], install]):
        results = [subprocess.run(command, env=_environment(), capture_output=True, text=True) for command in commands]
        if not results[-1].returncode:
            return None
    return f"it needs debootstrap, which apt-get could not install: {results[-1].stderr.strip()[-400:]}"


def own_mirror() -> str:
    """The mirror of Debian that this machine uses."""
    if MIRROR in os.environ:
        return os.environ[MIRROR]
    fields = ["--no-release-info", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(["apt-get", "indextargets", *fields], capture_output=True, text=True).stdout
    found = mirror_among(listed.split())
    if not found:
        raise SetupError(f"the sources of apt name no mirror of Debian: set {MIRROR} to the address of one")
    return found


def mirror_among(addresses: Iterable[str]) -> str | None:
    """The most likely one: many have a folder called debian; those of security updates have no whole release."""
    able = [a.rstrip("/") for a in addresses if a.startswith(("http:", "https:", "file:")) and "security" not in a]
    return min(able, key=lambda address: not address.endswith("/debian"), default=None)


def ensure(home: Path, python: str) -> Root:
    """The root below `home`, with this Python ("3.14"); made if need be. What was downloaded before is used again."""
    wanted = {"suite": SUITE, "packages": [*PACKAGES, f"python{python}"]}
    folder, partial, downloads = home / "root", home / "root.partial", home / "packages"
    if _read(folder / "ready.json") == wanted:
        return Root(folder)
    for old in (folder, partial):
        shutil.rmtree(old, ignore_errors=True)
    packages = _download(downloads, own_mirror(), wanted["packages"], home / "debootstrap.log")
    print("unpacking them", flush=True)
    unpack(packages, partial)
    make_devices(partial / "dev")
    (partial / "ready.json").write_text(json.dumps(wanted))
    partial.rename(folder)
    shutil.rmtree(downloads)
    return Root(folder)


def _download(folder: Path, mirror: str, packages: Sequence[str], log: Path) -> list[Path]:
    """The files of these packages and of what they need."""
    print(f"fetching {', '.join(packages)} of Debian {SUITE} and what they need (200 MB, once)", flush=True)
    options = ["--download-only", "--variant=minbase", f"--include={','.join(packages)}"]
    try:
        call("debootstrap", [_program("debootstrap"), *options, SUITE, str(folder), mirror], log)
    except SetupError as error:
        raise Unavailable(explained(str(error), packages)) from None
    # An interrupted download may have left older versions of some: those that count are listed.
    lines = (folder / "debootstrap" / "debpaths").read_text().splitlines()
    return [folder / line.split()[1].lstrip("/") for line in lines]


def explained(error: str, packages: Sequence[str]) -> str:
    """What debootstrap said, with what to do about it."""
    absent = [name for name in packages for line in error.splitlines() if "find these debs" in line and name in line]
    if absent:
        return (
            f"Debian {SUITE} has no {', '.join(absent)}: pyodide-build needs the Python of the Pyodide that "
            "pyodide_pkg/core.py names, and Emscripten: pyodide_pkg/emscripten/debian.py must name a release with both"
        )
    if "Release" in error or "Failed getting" in error:
        return f"{error}\nSet {MIRROR} to another mirror of Debian that has {SUITE}."
    return error


def unpack(packages: Sequence[Path], folder: Path) -> None:
    for alias in _ALIASES:
        (folder / "usr" / alias).mkdir(parents=True)
        (folder / alias).symlink_to(f"usr/{alias}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [["dpkg", "-x", str(package), str(folder)] for package in packages]
        for result in pool.map(lambda command: subprocess.run(command, capture_output=True, text=True), commands):
            if result.returncode:
                raise SetupError(f"{' '.join(result.args)} failed: {result.stderr}")


def make_devices(folder: Path) -> None:
    """Those that programs cannot do without."""
    folder.mkdir(exist_ok=True)
    for name, number in _DEVICES.items():
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(*number))
            (folder / name).chmod(0o666)
            (folder / name).read_bytes() if name == "null" else None
        except PermissionError as error:
            raise SetupError(
                f"{folder} may have no devices ({error.strerror}): the container needs the capability MKNOD, and the "
                "file system must not be mounted with nodev"
            ) from None


def _program(name: str) -> str:
    found = shutil.which(name, path=_path())
    if not found:
        raise SetupError(f"{name} is missing")
    return found


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": _path(), "DEBIAN_FRONTEND": "noninteractive"}


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
