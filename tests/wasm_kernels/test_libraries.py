"""Headers of libraries: of the one that runs here, and of those that zig links for other systems."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest

from wasm_kernels import build, libraries, systems, toolchains, wheels
from webrnn.engine.kernels import loading

SOURCE = """
__attribute__((visibility("default"))) int wr_answer(int x) { return x + 42; }
static int hidden(int x) { return x; }
int other(int x) { return hidden(x); }
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { return !!library | !!reason | !reserved; }
"""


@pytest.fixture(scope="module", params=systems.SYSTEMS.values(), ids=lambda system: system.name)
def linked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[systems.System, Path]:
    """A small library of a system."""
    system: systems.System = request.param
    folder = tmp_path_factory.mktemp(system.name)
    (folder / "answer.c").write_text(SOURCE)
    tool = toolchains.find("zig")
    options = ["-target", system.zig_target, "-fPIC", "-O1", "-g0", "-fvisibility=hidden", "-fno-unwind-tables"]
    file = folder / system.library
    linking = [option for option in system.linking if option != systems.COMPILER_RT]  # zig compiles it first
    command = [*tool.compiler, *options, "-shared", *linking, "-s", str(folder / "answer.c"), "-o", str(file)]
    tool.run(command, build.WORK)
    return system, file


def test_a_library_says_what_it_is(linked: tuple[systems.System, Path]) -> None:
    system, file = linked
    library = libraries.read(file.read_bytes())
    assert "wr_answer" in library.exported
    assert "other" not in library.exported
    manifest = {"kernels": [], "threads": [], "team": []}
    assert list(wheels.library_problems(library, system, manifest)) == ["it lacks wr_isa_level"]


def test_a_library_of_another_system_is_found_out(linked: tuple[systems.System, Path]) -> None:
    system, file = linked
    library = libraries.read(file.read_bytes())
    manifest = {"kernels": [], "threads": [], "team": []}
    for other in systems.SYSTEMS.values():
        said = " ".join(wheels.library_problems(library, other, manifest))
        assert ("it is " in said) == (other is not system)


def test_what_a_library_needs_of_others_is_found_out() -> None:
    system = systems.SYSTEMS["linux-x86_64"]
    library = libraries.Library("ELF", "x86_64", ("libm.so.6",), ("expf", "memcpy"), ("wr_isa_level",))
    manifest = {"kernels": [], "threads": [], "team": []}
    found = list(wheels.library_problems(library, system, manifest))
    assert found == ["it needs libm.so.6", "somebody must give it expf"]


def test_the_library_of_this_machine_has_what_the_loader_binds() -> None:
    manifest = json.loads((loading.FOLDER / "kernels.json").read_text())
    library = libraries.read((loading.FOLDER / manifest["native"]).read_bytes())
    assert list(wheels.library_problems(library, systems.here(), manifest)) == []


def test_damaged_libraries_raise(linked: tuple[systems.System, Path]) -> None:
    """A library or a LibraryError, nothing else."""
    data = linked[1].read_bytes()
    rng = random.Random(3)
    for _ in range(200):
        damaged = bytearray(data[: rng.randrange(4, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(1, 8)):
            damaged[rng.randrange(4, min(len(damaged), 1024))] = rng.randrange(256)
        with contextlib.suppress(libraries.LibraryError):
            libraries.read(bytes(damaged))


def test_other_files_are_no_libraries() -> None:
    with pytest.raises(libraries.LibraryError, match="neither ELF"):
        libraries.read(b"PK\3\4")
