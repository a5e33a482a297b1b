"""Builds of the same functions in one file of assembly."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from wasm_kernels import interleave, systems, toolchains

SOURCE = """
static const int table[] = {1, 2, 3, NUMBER};
__attribute__((noinline)) static int add(int x) { return x * NUMBER + table[x & 3]; }
__attribute__((visibility("default"))) int NAME(first)(int x) { return add(x) + 1; }
__attribute__((visibility("default"))) const char *NAME(said)(void) { return "add table first"; }
__attribute__((visibility("default"))) int NAME(pick)(int x) {
  switch (x) {
    case 0: return add(3); case 1: return add(x - NUMBER); case 2: return 7; case 3: return add(9) * x;
    case 4: return -x;
    default: return NUMBER;
  }
}
int NAME(odd)(int x);
__attribute__((visibility("default"), noinline)) int NAME(even)(int x) { return x ? 3 * NAME(odd)(x - 1) : 1; }
__attribute__((visibility("default"), noinline)) int NAME(odd)(int x) { return x ? 5 + NAME(even)(x - 1) : 0; }
__attribute__((noinline)) static int bind_one(int x) { return NUMBER * x; }
__attribute__((visibility("default"))) int NAME(calls_other)(int x) { return NAME(first)(x) * 3 + bind_one(x); }
"""
NUMBERS = {"one": 10, "two": 200}


def compiled(folder: Path, *target: str) -> dict[str, Path]:
    tool = toolchains.find("zig")
    source = folder / "source.c"
    source.write_text(SOURCE)
    files = {}
    for build, number in NUMBERS.items():
        files[build] = folder / f"{build}.s"
        options = ["-O2", "-g0", "-fPIC", "-fvisibility=hidden", f"-DNUMBER={number}", f"-DNAME(x)=x##_{build}", "-w"]
        tool.run([*tool.compiler, *target, *options, "-S", str(source), "-o", str(files[build])], folder)
    return files


@pytest.mark.parametrize("system", systems.SYSTEMS.values(), ids=lambda system: system.name)
def test_functions_of_all_builds_stand_together(system: systems.System, tmp_path: Path) -> None:
    files = compiled(tmp_path, "-target", system.zig_target)
    text = interleave.merged({build: file.read_text() for build, file in files.items()})
    begins = [found[2].partition(".")[0] for found in map(interleave.BEGIN.search, text.splitlines()) if found]
    own = ["first_one", "first_two", "add", "add", "said_one", "said_two", "pick_one", "pick_two"]
    assert begins == [*own, "even_one", "odd_one", "calls_other_one", "calls_other_two", "bind_one", "bind_one"]
    merged = tmp_path / "merged.s"
    merged.write_text(text)
    tool = toolchains.find("zig")
    tool.run([*tool.compiler, "-target", system.zig_target, "-c", str(merged), "-o", str(tmp_path / "it.o")], tmp_path)


def linked(folder: Path) -> ctypes.CDLL:
    files = compiled(folder)
    interleave.main(str(folder / "merged.s"), *map(str, files.values()))
    tool = toolchains.find("zig")
    library = folder / "it.so"
    tool.run([*tool.compiler, "-shared", "-nostdlib", str(folder / "merged.s"), "-o", str(library)], folder)
    return ctypes.CDLL(str(library))


def address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def test_each_build_keeps_its_own_names(tmp_path: Path) -> None:
    loaded = linked(tmp_path)
    for build, number in NUMBERS.items():
        row = [1, 2, 3, number]

        def add(x: int, number: int = number, row: list[int] = row) -> int:
            return x * number + row[x & 3]

        expected = [add(3), add(1 - number), 7, add(9) * 3, -4, number]
        assert [getattr(loaded, f"pick_{build}")(x) for x in range(6)] == expected
        assert getattr(loaded, f"first_{build}")(5) == add(5) + 1
        said = getattr(loaded, f"said_{build}")
        said.restype = ctypes.c_char_p
        assert said() == b"add table first"
        assert getattr(loaded, f"calls_other_{build}")(5) == 3 * (add(5) + 1) + 5 * number


def test_what_is_the_same_in_several_builds_is_there_once(tmp_path: Path) -> None:
    library = linked(tmp_path)
    for name in ("even", "odd"):
        assert getattr(library, f"{name}_one")(5) == getattr(library, f"{name}_two")(5)
    addresses = {name: address(library, name) for name in ("even_one", "odd_one", "calls_other_one", "first_one")}
    same = {name for name, place in addresses.items() if address(library, name.replace("one", "two")) == place}
    assert same == {"even_one", "odd_one"}, "they call each other; calls_other calls what differs"


def test_other_assembly_is_refused() -> None:
    with pytest.raises(interleave.NotAsExpected, match="of one does not mark where functions begin"):
        interleave.merged({"one": "\t.text\nadd:\n\tret\n"})


def test_as_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text("\t.globl f_a # -- Begin function f_a\nf_a:\n\tret\n # -- End function\n")
    command = [sys.executable, interleave.__file__, tmp_path / "out.s", tmp_path / "a.s"]
    subprocess.run([str(part) for part in command], check=True)
    assert "f_a" in (tmp_path / "out.s").read_text()
