"""Puts the site together, from scratch. Any static web server will do, at any path, and no page asks another host.

index.html, docs/ ...   the docs, the references (api/), benchmarks.html and notebook.html
static/                 style and scripts; search.json: what the search looks through
playground/             the page that `webrnn serve` shows, with Python for the whole site
jupyter/                JupyterLite
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import webrnn
from webrnn import build
from webrnn.demo import native_timings
from webrnn.demo import site as demo
from webrnn.web import pyodide_source

from . import jupyter, layout, pages
from .markdown import Rendered

STATIC = Path(__file__).parent / "static"
MARK = ".webrnn-site"
"""A file that says whose the folder is."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Parts:
    """How the parts are made that take longer than pages."""

    playground: Callable[[Path], None]
    """Writes the playground to a folder."""
    has_jupyter: bool = True


def playground(folder: Path, say: Say = print, peer: Path | None = None, has_timings: bool = True) -> None:
    """All of the page, with times of this machine."""
    rounds = native_timings.ROUNDS if has_timings else 0
    demo.write(folder, demo.Sources(pyodide=pyodide_source.ensure, peer=peer, rounds=rounds), say)


def write(folder: Path, parts: Parts, say: Say = print) -> None:
    """The whole site; what an earlier one left in the folder goes."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FileExistsError(f"{folder} has other files in it: choose an empty folder, or one that does not exist")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    write_pages(folder, parts.has_jupyter)
    shutil.copytree(STATIC, folder / "static", dirs_exist_ok=True)
    example(folder / "static" / "live" / "gru.rnn")
    parts.playground(folder / "playground")
    _lead_back(folder / "playground" / "index.html")
    if parts.has_jupyter:
        jupyter.write(folder / "jupyter", folder / "playground" / "pyodide", say)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(f"{folder}: {sum(1 for _ in folder.rglob('*.html'))} pages, {size / 2**20:.0f} MB")


def write_pages(folder: Path, has_jupyter: bool = True) -> None:
    """The pages, what they show and link to, and the index of the search."""
    sources = pages.sources(has_jupyter=has_jupyter)
    known = {source.address for source in sources} | {"benchmarks.html", "playground/index.html", *jupyter.PAGES}
    links = pages.Links(known)
    rendered = {source.address: links.renderer(source).render(source.text) for source in sources}
    rendered["benchmarks.html"] = pages.benchmarks(links)
    groups = pages.groups()
    for address, content in rendered.items():
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            layout.page(
                address,
                content.title
                if address != "index.html"
                else "webrnn: recurrent ONNX models, natively and in the browser",
                content.description,
                content.body,
                content.headings,
                groups,
                webrnn.__version__,
                content.has_live,
            )
        )
    for place, file in links.files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / place)
    (folder / "static").mkdir(exist_ok=True)
    index = json.dumps(search_index(rendered), ensure_ascii=False, separators=(",", ":"))
    (folder / "static" / "search.json").write_text(index)


def search_index(rendered: dict[str, Rendered]) -> list[list[str]]:
    """[page, its title, heading, anchor, text] of each section."""
    return [
        [address, content.title, section.heading, section.anchor, section.text]
        for address, content in rendered.items()
        for section in content.sections
    ]


def example(file: Path) -> None:
    """The plan that examples in JavaScript load: a small GRU over frames of 8 numbers, with its state."""
    rng = np.random.default_rng(0)
    shapes = {"rnn.weight_ih_l0": (96, 8), "rnn.weight_hh_l0": (96, 32), "out.weight": (1, 32), "out.bias": (1,)}
    net = build.torch({name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()})
    y, h_next = net.gru("rnn", net.input("x", (1, 1, 8)), net.input("h", (1, 1, 32)), batch_first=True)
    net.output("y", net.sigmoid(net.linear("out", y)))
    net.output("h_next", h_next)
    net.session().export(file, carry={"h": "h_next"})


def _lead_back(page: Path) -> None:
    """The playground's name leads to the start page of the site."""
    text = page.read_text()
    old = '<a class="brand" href="#start">'
    assert old in text, "the page has lost its name"
    page.write_text(text.replace(old, '<a class="brand" href="../index.html" title="All of the site">'))
