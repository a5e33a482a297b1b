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
    begins = [found[1].partition(".")[0] for found in map(interleave.BEGIN.search, text.splitlines()) if found]
    assert begins == ["first_one", "first_two", "add", "add", "said_one", "said_two", "pick_one", "pick_two"]
    merged = tmp_path / "merged.s"
    merged.write_text(text)
    tool = toolchains.find("zig")
    tool.run([*tool.compiler, "-target", system.zig_target, "-c", str(merged), "-o", str(tmp_path / "it.o")], tmp_path)


def test_each_build_keeps_its_own_names(tmp_path: Path) -> None:
    files = compiled(tmp_path)
    interleave.main(str(tmp_path / "merged.s"), *map(str, files.values()))
    tool = toolchains.find("zig")
    library = tmp_path / "it.so"
    tool.run([*tool.compiler, "-shared", "-nostdlib", str(tmp_path / "merged.s"), "-o", str(library)], tmp_path)
    loaded = ctypes.CDLL(str(library))
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


def test_other_assembly_is_refused() -> None:
    with pytest.raises(interleave.NotAsExpected, match="of one does not mark where functions begin"):
        interleave.merged({"one": "\t.text\nadd:\n\tret\n"})


def test_as_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text("\tret # -- Begin function f_a\n # -- End function\n")
    command = [sys.executable, interleave.__file__, tmp_path / "out.s", tmp_path / "a.s"]
    subprocess.run([str(part) for part in command], check=True)
    assert "f_a" in (tmp_path / "out.s").read_text()
