"""The files of the demo page: complete, small, packaged, and nothing in them comes from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import webrnn
from pyodide_pkg.core import node
from web_demo.packaging import packaged
from webrnn import packed
from webrnn.demo import site

IMPORT = re.compile(r'(?:from|import\(|new URL\()\s*"(\.{1,2}/[^"]+)"')
HTML_LINK = re.compile(r'(?:href|src)="([^"#:]+)"')
OTHER_HOST = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", re.I)
PARTS = ("page", "sound", "listen", "amp", "your_model", "timings", "python")
LONGEST = 420
"""Lines of a file."""


def sources(folder: Path) -> list[Path]:
    return [file for part in PARTS for file in (folder / part).iterdir() if file.suffix in (".js", ".css", ".py")]


def test_everything_that_is_imported_is_there(demo: Path) -> None:
    checked = 0
    for file in demo.rglob("*.js"):
        for name in IMPORT.findall(file.read_text()):
            target = (file.parent / name).resolve()
            is_made_for_the_site = name.startswith(("../pyodide/", "../onnxruntime-web/", "../site.json", "./plans/"))
            assert target.exists() or is_made_for_the_site or name == "./", f"{file.name} imports {name}"
            checked += 1
    assert checked > 40
    for name in HTML_LINK.findall((demo / "index.html").read_text()):
        assert (demo / name).exists(), name


def test_nothing_comes_from_another_host(demo: Path) -> None:
    for file in [*sources(demo), demo / "index.html"]:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not OTHER_HOST.search(re.sub(r"(?m)^\s*//.*$", "", text)), file.name


def test_files_are_short(demo: Path) -> None:
    long = {file.name: lines for file in sources(demo) if (lines := len(file.read_text().splitlines())) > LONGEST}
    assert not long


def test_an_installation_has_the_files_of_the_page(demo: Path, tmp_path: Path) -> None:
    places = {place: Path(file) for file, place in packaged.files(tmp_path).items()}
    page = packed.unpack(places["webrnn/_web.tar.xz"])
    files = {file for file in demo.rglob("*") if file.suffix in (".html", ".css", ".js", ".py", ".nam")}
    assert page.keys() == {file.relative_to(demo).as_posix() for file in files}
    assert {"index.html", "host/webrnn.js", "python/workbench.py"} <= page.keys()
    for name, data in page.items():
        assert data == (demo / name).read_bytes() or name.endswith(".js"), name


def test_scripts_of_an_installation_are_those_of_the_page_without_comments(demo: Path, tmp_path: Path) -> None:
    for name, data in packaged.page_contents().items():
        before, after = (demo / name).read_text(), data.decode()
        if not name.endswith(".js"):
            continue
        assert after.count("\n") == before.count("\n"), "lines of messages stay right"
        assert IMPORT.findall(after) == IMPORT.findall(before)
        assert len(after) < len(before), "one that stays as it is has a text that goes over several lines"
        file = tmp_path / "script.mjs"
        file.write_text(after)
        subprocess.run([node(), "--check", file], check=True)


def test_a_script_with_a_text_over_several_lines_stays_as_it_is() -> None:
    text = "// says it\nconst said = `one\n  two`; // said\n"
    assert packaged.script(text) == text
    assert packaged.script('import { a } from "./a.js";\nconst b = a + 1; // more\n') == (
        'import { a } from "./a.js";\nconst b=a+1;\n'
    )


def test_what_is_not_there_is_left_out_and_said(tmp_path: Path) -> None:
    def missing() -> Path:
        raise OSError("no network")

    said: list[str] = []
    sources = site.Sources(pyodide=missing, peer=tmp_path / "nowhere", rounds=0, has_bundled=False)
    site.write(tmp_path / "site", sources, said.append)
    description = json.loads((tmp_path / "site" / "site.json").read_text())
    assert (description["pyodide"], description["peer"], description["listen"]) == (None, None, None)
    assert description["bundled"] == []
    assert (description["processor"], description["has_timings"]) == (None, False), "nothing of this machine"
    assert 20_000 < description["runtime_bytes"] < 86_500
    assert len(said) == 2
    assert said[0] == "the page goes without Python in the page: no network"
    assert "onnxruntime-web" in said[1]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(webrnn.OptionError, match="has other files in it"):
        site.write(tmp_path, site.Sources(rounds=0, has_bundled=False))
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
