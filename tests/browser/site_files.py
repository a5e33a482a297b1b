"""The site as tests have it: below a sub-path of a plain static server, with the playground of the other tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.pyodide_pkg.plain_server import serving
from web_demo.site import build

from .demo_page import RECORD_VIOLATIONS

PATH = "some/where"
"""The site is not at the root of its server."""


def write_site(folder: Path, playground: Path, has_jupyter: bool = False) -> Path:
    """The site; the playground's files are links to those of `playground`, except the page itself, which is changed."""

    def linked(target: Path) -> None:
        shutil.copytree(playground, target, copy_function=os.link)
        (target / "index.html").unlink()
        shutil.copyfile(playground / "index.html", target / "index.html")

    build.write(folder / PATH, build.Parts(linked, has_jupyter), say=lambda _: None)
    return folder


@contextmanager
def visiting(browser: Browser, root: Path, **options: object) -> Iterator[tuple[BrowserContext, str, list[str]]]:
    """A context whose pages reach the site only, its address, and what went wrong so far."""
    problems: list[str] = []
    with serving(root) as server:
        address = f"{server}/{PATH}/"
        context = browser.new_context(**options)  # type: ignore[arg-type]
        context.add_init_script(RECORD_VIOLATIONS)
        context.on(
            "request",
            lambda request: (
                None if request.url.startswith((server, "data:", "blob:")) else problems.append(f"asks {request.url}")
            ),
        )
        context.on(
            "response",
            lambda response: problems.append(f"{response.status} {response.url}") if response.status >= 400 else None,
        )
        try:
            yield context, address, problems
        finally:
            context.close()


def open_page(context: BrowserContext, address: str, problems: list[str]) -> Page:
    page = context.new_page()
    page.on("console", lambda message: problems.append(f"{page.url} says {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.goto(address)
    expect(page.locator("html")).to_have_attribute("data-ready", "true", timeout=30_000)
    return page


@dataclass
class Found:
    """What a page links to and shows, and what can be linked to in it."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    without_alt: int = 0
    language: str = ""
    description: str = ""
    title: str = ""
    headings: int = 0


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found, self.is_title = Found(), False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        if "id" in named:
            assert named["id"] not in self.found.anchors, f"two are called {named['id']}"
            self.found.anchors.add(named["id"])
        self.found.links += [named[name] for name in ("href", "src") if name in named]
        self.found.without_alt += tag == "img" and not named.get("alt")
        self.found.language = named.get("lang", "") if tag == "html" else self.found.language
        self.found.headings += tag == "h1"
        if tag == "meta" and named.get("name") == "description":
            self.found.description = named["content"]
        self.is_title = tag == "title" and not self.found.title

    def handle_data(self, data: str) -> None:
        if self.is_title:
            self.found.title += data

    def handle_endtag(self, tag: str) -> None:
        self.is_title = self.is_title and tag != "title"


def read(page: Path) -> Found:
    reader = _Reader()
    reader.feed(page.read_text())
    return reader.found


def broken_links(site: Path, pages: dict[str, Found]) -> list[str]:
    """Links that lead nowhere: files and anchors of the site, and the form of addresses elsewhere."""
    broken = []
    for address, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if parts.scheme != "https" or "." not in parts.netloc:
                    broken.append(f"{address}: {link}")
                continue
            target = (
                os.path.normpath(os.path.join(os.path.dirname(address), unquote(parts.path))) if parts.path else address
            )
            anchors = pages[target].anchors if target in pages else set()
            is_there = (site / target).is_file() and not target.startswith("..")
            if not is_there or (parts.fragment and unquote(parts.fragment) not in anchors):
                broken.append(f"{address}: {link}")
    return broken
