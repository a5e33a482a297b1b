"""What all pages have around their content."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from string import Template

from .markdown import Heading, relative

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none'"
)
TEMPLATE = Template(Path(__file__).with_name("page.html").read_text())
TOP = (("Docs", "index.html"), ("Playground", "playground/index.html"), ("Notebook", "notebook.html"),
       ("API", "api/webrnn.html"), ("Benchmarks", "benchmarks.html"))  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A page in the navigation."""

    label: str
    address: str


def page(
    address: str,
    title: str,
    description: str,
    body: str,
    headings: list[Heading],
    groups: dict[str, list[Entry]],
    version: str,
    has_live: bool = False,
) -> str:
    """A whole page; `address` is its place on the site."""
    root = relative("index.html", address).removesuffix("index.html")

    def link(label: str, target: str) -> str:
        current = ' aria-current="page"' if target == address else ""
        return f'<a href="{html.escape(relative(target, address))}"{current}>{html.escape(label)}</a>'

    live = f'<script type="module" src="{root}static/live.js"></script>\n' if has_live else ""
    top = "".join(f"<li>{link(label, target)}</li>" for label, target in TOP)
    nav = "".join(
        f"<section><h2>{html.escape(name)}</h2><ul>"
        + "".join(f"<li>{link(entry.label, entry.address)}</li>" for entry in entries)
        + "</ul></section>"
        for name, entries in groups.items()
    )
    return TEMPLATE.substitute(
        policy=POLICY,
        description=html.escape(description, quote=True),
        title=html.escape(title if address == "index.html" else f"{title} · webrnn"),
        root=root,
        live=live,
        top=top,
        nav=nav,
        body=body,
        contents=_contents(headings),
        version=html.escape(version),
    )


def _contents(headings: list[Heading]) -> str:
    """The headings of a page, beside it."""
    shown = [heading for heading in headings if heading.level in (2, 3)]
    if len(shown) > 100:
        shown = [heading for heading in shown if heading.level == 2]
    if len(shown) < 2:
        return ""
    items = "".join(
        f'<li class="level-{heading.level}"><a href="#{heading.anchor}">{html.escape(_short(heading))}</a></li>'
        for heading in shown
    )
    return f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{items}</ul></nav>'


def _short(heading: Heading) -> str:
    """A method stands below its class: its own name is enough."""
    of, dot, name = heading.text.partition(".")
    return name if heading.level == 3 and dot and of.isidentifier() and name.isidentifier() else heading.text
