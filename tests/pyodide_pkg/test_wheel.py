"""The wheel for Pyodide: what is in it, how large it is, and that packing changes nothing but its size."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from pyodide_pkg import core, packing, wheel

MAXIMUM = 880_000
TAG = "py3-none-pyemscripten_2026_0_wasm32"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def files(built: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(built) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(files: dict[str, bytes], name: str) -> Message:
    return Parser().parsestr(next(data for file, data in files.items() if file.endswith(f".dist-info/{name}")).decode())


def test_is_small(built: Path) -> None:
    assert built.stat().st_size <= MAXIMUM


def test_name_and_metadata_agree(built: Path, files: dict[str, bytes]) -> None:
    about = metadata(files, "METADATA")
    assert built.name == f"webrnn-{about['Version']}-{TAG}.whl"
    assert (about["Name"], about.get_all("Requires-Dist", [])[:1]) == ("webrnn", ["numpy>=2.0"])
    assert metadata(files, "WHEEL")["Tag"] == TAG
    assert metadata(files, "WHEEL")["Root-Is-Purelib"] == "false"


def test_holds_three_side_modules_and_nothing_for_other_platforms(files: dict[str, bytes]) -> None:
    kernels = {name.rpartition("/")[2] for name in files if "/_kernels/" in name}
    assert kernels == {"kernels.json", "pyodide_relaxed.wasm", "pyodide_scalar.wasm", "pyodide_simd.wasm"}
    assert set(json.loads(files["webrnn/_kernels/kernels.json"])) == {"kernels"}
    assert not any(name.endswith((".so", ".pyc")) for name in files)


def test_holds_all_modules_that_can_work_in_a_browser(files: dict[str, bytes]) -> None:
    home = core.ROOT / "runtime" / "webrnn"
    expected = {file.relative_to(home.parent).as_posix() for file in home.rglob("*.py")}
    expected = {name for name in expected if not name.startswith(packing.LEFT_OUT)}
    packed = {f"webrnn/{name}" for name in json.loads(files["webrnn/_modules.json"])}
    own = {name for name in files if name.endswith(".py")} - {"webrnn/_packed.py"}
    assert packed | own == expected
    assert not packed & own


def test_record_names_every_file_with_its_hash(files: dict[str, bytes]) -> None:
    own = next(name for name in files if name.endswith("/RECORD"))
    rows = {name: (digest, size) for name, digest, size in csv.reader(files[own].decode().splitlines())}
    assert rows.pop(own) == ("", "")
    assert set(rows) == set(files) - {own}
    for name, (digest, size) in rows.items():
        value = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        assert (digest, int(size)) == (f"sha256={value}", len(files[name]))


def test_same_sources_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    assert wheel.build(tmp_path).read_bytes() == built.read_bytes()
    with zipfile.ZipFile(built) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {packing.TIME}
        names = archive.namelist()
    assert names == sorted(names, key=lambda name: (".dist-info/" in name, name))


def test_says_nothing_of_the_machine_it_was_built_on(files: dict[str, bytes]) -> None:
    assert not [name for name, data in files.items() if str(core.ROOT).encode() in data]


CHECK = """
import importlib, inspect, sys, traceback
from pathlib import Path
import webrnn
assert "webrnn.engine" not in sys.modules and "numpy" not in sys.modules, "import webrnn imports more than it must"
webrnn.InferenceSession
slow = {"difflib", "fractions", "numpy.typing"} & set(sys.modules)
assert not slow, f"slow to import inside Pyodide: {slow}"

def original(file):
    return (Path(sys.argv[1]) / Path(file).relative_to(Path(webrnn.__file__).parent)).read_text()

functions = 0
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    lines = original(module.__file__).splitlines()
    for value in vars(module).values():
        if inspect.isfunction(value) and value.__code__.co_filename == module.__file__:
            first = value.__code__.co_firstlineno
            assert lines[first - 1].strip().startswith(("def ", "@", "async ")) or "lambda" in lines[first - 1]
            assert inspect.getsourcelines(value)[1] == first
            functions += 1
assert webrnn.InferenceSession.__doc__ and webrnn.optimize.__doc__
try:
    webrnn.InferenceSession(b"no model", backend="numpy")
except webrnn.Error as error:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    assert frame.line and frame.line in original(frame.filename)
from webrnn import models
assert models.MODELS
print(functions)
"""


def test_packed_modules_import_with_their_lines_and_docstrings(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
        modules = json.loads(archive.read("webrnn/_modules.json"))
    names = ["webrnn." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in modules]
    names = [name for name in names if not name.endswith("__main__") and not name.startswith("webrnn.audio")]
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CHECK}"
    command = [sys.executable, "-c", script, core.ROOT / "runtime" / "webrnn", *names]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 500


def test_docstrings_and_comments_become_empty_lines() -> None:
    source = '''"""Module."""
x = "# no comment"  # a comment
"""About x."""


class A:
    """One
    and two."""

    def f(self):
        """Alone."""

    def g(self):
        "Short."
        return """no docstring"""
'''
    short = packing.shortened("webrnn/ir/a.py", source)
    assert [line.rstrip() for line in short.splitlines()] == [
        "", 'x = "# no comment"', "", "", "", "class A:", "    '-'", "", "", "    def f(self):", "        ...", "",
        "    def g(self):", "", '        return """no docstring"""',
    ]  # fmt: skip
    assert "Alone." in packing.shortened("webrnn/engine/session.py", source)
    assert "a comment" not in packing.shortened("webrnn/engine/session.py", source)


def test_annotations_of_functions_go_and_those_of_classes_stay() -> None:
    source = """@dataclass
class A:
    size: int = 0

    def f(self, ä: int, *rest: list[int], sep: str = "->", **more: dict[str,
            int]) -> tuple[
        int, str
    ]:
        here: list[int] = []
        later: int
        self.size: int = 1

        def inner(x: int = 1) -> int:
            return x

        return here, lambda x: -x

limit: int = 3
"""
    short = packing.without_annotations(source)
    assert [line.rstrip() for line in short.splitlines()] == [
        "@dataclass", "class A:", "    size: int = 0", "", '    def f(self, ä, *rest, sep = "->", **more\\',
        ") \\", "\\", ":", "        here = []", "        later: int", "        self.size: int = 1", "",
        "        def inner(x = 1) :", "            return x", "", "        return here, lambda x: -x", "",
        "limit: int = 3",
    ]  # fmt: skip
    compile(short, "short", "exec")
