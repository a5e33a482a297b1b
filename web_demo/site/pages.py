"""Which pages there are, where they come from, and their places in the navigation."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from . import api_javascript, api_python, charts
from .layout import Entry
from .markdown import Rendered, Renderer, is_external, relative

ROOT = Path(__file__).resolve().parents[2]
PICTURES = (".png", ".svg")
GROUP = re.compile(r"^- (?P<name>[^:\n]+): (?P<links>(?:.|\n(?!- |\n|#))+)", re.M)
LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


class BrokenLink(Exception):
    """A page has a link that leads nowhere."""


@dataclass(frozen=True)
class Source:
    """A page: where it is on the site, and the Markdown that it is made of."""

    address: str
    file: str
    """The file of the Markdown below the root, or the one that relative links in it are meant from."""
    text: str


def sources(root: Path = ROOT, has_jupyter: bool = True) -> list[Source]:
    """All pages that are made of Markdown, the start page first."""
    files = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
    files += [f"docs/{file.name}" for file in sorted((root / "docs").glob("*.md"))]
    pages = [Source(address_of(file), file, (root / file).read_text()) for file in files]
    pages += [Source(f"api/{name}.html", f"api/{name}.md", api_python.page(name)) for name in api_python.MODULES]
    pages.append(Source("api/javascript.html", "api/javascript.md", api_javascript.page()))
    notebook = (Path(__file__).parent / "notebook.md").read_text()
    if not has_jupyter:
        missing = "JupyterLite is not part of this build of the site: `make site` builds all of it.\n\n"
        notebook = f"# Notebook\n\n{missing}" + charts.section(notebook, "A shorter way")
    pages.append(Source("notebook.html", "notebook.md", notebook))
    return pages


def address_of(file: str) -> str:
    """The address of the page that a file of Markdown becomes."""
    if file == "README.md":
        return "index.html"
    return file.removesuffix(".md").lower() + ".html" if "/" not in file else file.removesuffix(".md") + ".html"


def groups(root: Path = ROOT) -> dict[str, list[Entry]]:
    """The navigation: the list at the end of README.md, what it leaves out, and the references."""
    more = charts.section((root / "README.md").read_text(), "More")
    found: dict[str, list[Entry]] = {"Start": [Entry("Overview", "index.html"), Entry("Notebook", "notebook.html")]}
    for match in GROUP.finditer(more):
        links = LINK.findall(match["links"])
        found[match["name"]] = [
            Entry(text[0].upper() + text[1:].split(":")[0], address_of(file)) for text, file in links
        ]
    known = {entry.address for entries in found.values() for entry in entries}
    rest = [source for source in sources(root) if source.address not in known and source.address.startswith("docs/")]
    found["Details"] = [Entry(title(source.text), source.address) for source in rest]
    reference = [Entry(name, f"api/{name}.html") for name in api_python.MODULES]
    found["Reference"] = [*reference, Entry("webrnn.js", "api/javascript.html"), Entry("Benchmarks", "benchmarks.html")]
    return found


def title(text: str) -> str:
    return next(line[2:].strip() for line in text.splitlines() if line.startswith("# "))


class Links:
    """Where the links of pages lead, and the files that have to be on the site for them."""

    def __init__(self, known: set[str], root: Path = ROOT):
        self.known, self.root = known, root
        self.files: dict[str, Path] = {}
        """Files of the repository that pages show or link to, by their places on the site."""

    def renderer(self, source: Source) -> Renderer:
        def resolve(target: str) -> str | None:
            return self.resolve(target, source)

        return Renderer(resolve, lambda target: self.root / _joined(source.file, target))

    def resolve(self, target: str, source: Source) -> str | None:
        if is_external(target):
            return target
        path = re.split(r"[?#]", target, maxsplit=1)[0]
        if not path:
            return target
        file, suffix = _joined(source.file, path), target[len(path) :]
        page = address_of(file) if file.endswith(".md") else file
        if page in self.known:
            return relative(page, source.address) + suffix
        found = self.root / file
        if file.startswith("..") or not found.exists():
            raise BrokenLink(f"{source.file}: {target} leads nowhere")
        if found.is_dir():
            return None
        place = file if found.suffix in PICTURES else f"files/{file}"
        self.files[place] = found
        return relative(place, source.address)


def _joined(file: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), target))


def benchmarks(links: Links) -> Rendered:
    """The tables of times, each below a chart of it."""
    page = Rendered("Benchmarks", "<h1>Benchmarks</h1>\n")
    intro = (
        "The figures that the README and the docs hold, as charts with their tables. "
        "[Benchmarks](docs/benchmarks.md) says how to take them on your machine, "
        "[the playground](playground/index.html#timings) measures in your browser."
    )
    number = 0
    for index, (file, heading) in enumerate([("", ""), *charts.SECTIONS]):
        text = intro if not file else charts.section((links.root / file).read_text(), heading)
        source = Source("benchmarks.html", file or "README.md", text)
        if file == "docs/scan-study.md":
            text = text.replace(f"## {heading}", f"## Ways to run a loop: {heading}", 1)
        if file == "docs/threads.md":
            text = text.replace(f"## {heading}", "## Threads", 1)
        label = heading
        for piece in charts.pieces(text):
            if isinstance(piece, charts.Table):
                number += 1
                names = ", ".join(name for name, _ in charts.series(piece))
                page.body += charts.chart(piece, f"{label}: {names}", number)
                continue
            rendered = links.renderer(source).render(piece, f"Benchmarks {index}")
            page.body += rendered.body
            page.headings += rendered.headings
            page.sections += [section for section in rendered.sections if section.text]
            label = rendered.headings[-1].text if rendered.headings else label
    return page
