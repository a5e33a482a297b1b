"""How the Debian for pyodide-build is made, with programs that stand for debootstrap and dpkg, and what is said where
it cannot be made. The real ones run in `make pyodide-build`, and in CI."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyodide_pkg import core
from pyodide_pkg.emscripten import __main__ as command
from pyodide_pkg.emscripten import builds, debian

DEBOOTSTRAP = """#!/bin/sh
echo "$@" >> {log}
for folder; do case $folder in /*) break;; esac; done
mkdir -p $folder/debootstrap $folder/var/cache/apt/archives
[ -e $folder/var/cache/apt/archives/old_1.deb ] || {then}
touch $folder/var/cache/apt/archives/emscripten_2.deb $folder/var/cache/apt/archives/old_1.deb
echo "emscripten /var/cache/apt/archives/emscripten_2.deb" > $folder/debootstrap/debpaths
"""
DPKG = """#!/bin/sh
touch $3/$(basename $2)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, with what scripts need."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "mkdir", "touch", "basename"):
        (folder / name).symlink_to(next(p for p in (f"/usr/bin/{name}", f"/bin/{name}") if os.path.exists(p)))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(debian, "_SBIN", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def debootstrap(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with its calls."""
    log = tmp_path / "calls"
    program(programs, "debootstrap", DEBOOTSTRAP.format(log=log, then=":"))
    program(programs, "dpkg", DPKG)
    monkeypatch.setenv(debian.MIRROR, "http://mirror.test/debian")
    monkeypatch.setattr(debian, "make_devices", lambda folder: folder.mkdir())
    return log


def test_a_root_is_made_once(debootstrap: Path, tmp_path: Path) -> None:
    for _ in range(2):
        root = debian.ensure(tmp_path / "home", "3.14").folder
        assert (root / "emscripten_2.deb").exists()
        assert (root / "bin").resolve() == root / "usr" / "bin"
    (call,) = debootstrap.read_text().splitlines()
    assert "--include=emscripten,make,python3.14 sid" in call
    assert call.endswith(" http://mirror.test/debian")
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"root", "debootstrap.log"}


def test_another_python_makes_another_root(debootstrap: Path, tmp_path: Path) -> None:
    for python in ("3.14", "3.15"):
        debian.ensure(tmp_path, python)
    assert len(debootstrap.read_text().splitlines()) == 2


def test_an_interrupted_run_is_taken_up(debootstrap: Path, programs: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    program(programs, "dpkg", "#!/bin/sh\ntouch $3/half\nexit 3\n")
    with pytest.raises(core.SetupError, match=r"dpkg -x .*emscripten_2\.deb"):
        debian.ensure(home, "3.14")
    assert not (home / "root").exists()
    assert (home / "packages/var/cache/apt/archives/emscripten_2.deb").exists()
    program(programs, "dpkg", DPKG)
    root = debian.ensure(home, "3.14").folder
    assert not (root / "half").exists()
    assert not (root / "old_1.deb").exists(), "it is not among what debootstrap lists"


def test_the_end_of_what_debootstrap_said_is_told(debootstrap: Path, programs: Path, tmp_path: Path) -> None:
    program(programs, "debootstrap", "#!/bin/sh\necho E: no space left\nexit 1\n")
    with pytest.raises(core.SetupError, match=r"debootstrap failed; the end of .*:\n    E: no space left"):
        debian.ensure(tmp_path, "3.14")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("E: Couldn't find these debs: python3.14", "Debian sid has no python3.14: pyodide-build needs the Python"),
        ("E: Failed getting release file http://m/dists/sid/Release", f"Set {debian.MIRROR} to another mirror"),
    ],
)
def test_what_does_not_fit_is_told(said: str, told: str) -> None:
    assert told in debian.explained(said, ["emscripten", "python3.14"])


def test_the_mirror_is_that_of_apt(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(debian.MIRROR, raising=False)
    program(programs, "apt-get", "#!/bin/sh\necho http://a.test/debian-security/\necho http://a.test/debian/\n")
    assert debian.own_mirror() == "http://a.test/debian"
    program(programs, "apt-get", "#!/bin/sh\n")
    with pytest.raises(core.SetupError, match=f"set {debian.MIRROR}"):
        debian.own_mirror()


@pytest.mark.parametrize(
    ("addresses", "mirror"),
    [
        (["https://other.test/tools", "http://a.test/debian/"], "http://a.test/debian"),
        (["http://proxy.test/repository/bookworm/"], "http://proxy.test/repository/bookworm"),
        (["http://security.test/debian", "cdrom:[Debian]/", "file:/srv/debian"], "file:/srv/debian"),
        (["cdrom:[Debian]/"], None),
    ],
)
def test_mirrors(addresses: list[str], mirror: str | None) -> None:
    assert debian.mirror_among(addresses) == mirror


def test_who_is_not_root_is_told(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert command.main([]) == 1
    assert command.main(["--where-possible"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines == ["not covered here: the wheel by pyodide-build, because it needs root, for debootstrap and chroot"] * 2
    )


def test_debootstrap_is_installed(programs: Path) -> None:
    assert debian.obstacle() == "it needs debootstrap, and there is no apt-get to install it"
    program(programs, "apt-get", "#!/bin/sh\necho E: no network >&2\nexit 100\n")
    assert debian.obstacle() == "it needs debootstrap, which apt-get could not install: E: no network"
    updates = f"#!/bin/sh\nif [ $1 = update ]; then touch {programs}/updated; fi\n[ -e {programs}/updated ]\n"
    program(programs, "apt-get", updates)
    assert debian.obstacle() is None
    program(programs, "debootstrap", "#!/bin/sh\n")
    (programs / "apt-get").unlink()
    assert debian.obstacle() is None


def test_a_place_without_devices_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "mknod", refused)
    with pytest.raises(core.SetupError, match=r"may have no devices .*capability MKNOD.*nodev"):
        debian.make_devices(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices")
def test_devices(tmp_path: Path) -> None:
    debian.make_devices(tmp_path)
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
    assert (tmp_path / "null").stat().st_mode & 0o666 == 0o666


def test_a_command_sees_no_variable_of_ours() -> None:
    line = debian.Root(Path("/there")).command("emcc", "-v", cwd="/work", environment={"A": "1", "PATH": "/b"})
    assert line[1:] == ["/there", "/usr/bin/env", "-i", "--chdir=/work", "PATH=/b", "HOME=/root", "LANG=C.UTF-8", "A=1",
                        "emcc", "-v"]  # fmt: skip


def test_what_was_started_ends_with_us(tmp_path: Path) -> None:
    script = f"""
import signal, sys
from pathlib import Path
from pyodide_pkg.emscripten import debian
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
debian.call("it", ["sh", "-c", "sleep 600 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"],
            Path("{tmp_path}/log"))
"""
    process = subprocess.Popen([sys.executable, "-c", script], cwd=core.ROOT)
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
        time.sleep(0.02)
    sleeper = int((tmp_path / "pid").read_text())
    process.terminate()
    assert process.wait() == 1
    state = Path(f"/proc/{sleeper}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.02)


def test_requirements_are_pinned_and_have_no_zig() -> None:
    lines = [line for line in builds.requirements().splitlines() if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in lines)
    names = [line.partition("==")[0] for line in lines]
    assert len(set(names)) == len(names)
    assert {"pyodide-build", "hatchling", "pip"} <= set(names)
    assert "ziglang" not in names


@pytest.mark.parametrize(
    ("error", "forgiving"), [(debian.Unavailable("no emcc today"), 0), (core.SetupError("bug"), 1)]
)
def test_ci_forgives_what_debian_lacks_but_no_mistake_of_ours(
    error: core.SetupError, forgiving: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(short: bool) -> None:
        raise error

    monkeypatch.setattr(debian, "obstacle", lambda: None)
    monkeypatch.setattr(command, "run", fails)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert command.main(["--short"]) == 1
    assert command.main(["--short", "--where-possible"]) == forgiving
    assert str(error) in capsys.readouterr().err
