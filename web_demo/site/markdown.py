"""Markdown to HTML: headings with anchors, links between pages, highlighted code, examples that can be run."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LIVE = "live"
"""The second word of a fence whose code can be run in the page: ```python live."""
RUNNERS = {"python": "python", "py": "python", "js": "javascript", "javascript": "javascript"}

Resolve = Callable[[str], str | None]
"""The address of a target of a link or an image; None if it is no file of the site, and the link becomes its text."""


@dataclass
class Heading:
    level: int
    text: str
    anchor: str


@dataclass
class Section:
    """What is found under one heading: what the search looks through."""

    heading: str
    anchor: str
    text: str


@dataclass
class Rendered:
    title: str
    body: str
    headings: list[Heading] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    has_live: bool = False

    @property
    def description(self) -> str:
        """The first sentences, for search engines and links."""
        text = next((section.text for section in self.sections if len(section.text) > 40), self.title)
        return text if len(text) <= 200 else text[:199].rsplit(" ", 1)[0] + " …"


def slug(text: str) -> str:
    """The anchor that code hosts give to a heading."""
    return re.sub(r"[^\w\- ]", "", text).lower().replace(" ", "-")


def highlighted(code: str, language: str) -> str:
    """Spans with the classes of pygments; plain text for a language that it does not know."""
    try:
        lexer = get_lexer_by_name({"js": "javascript", "sh": "bash"}.get(language, language or "text"))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return highlight(code, lexer, HtmlFormatter(nowrap=True)).rstrip("\n")


def code_block(code: str, info: str = "") -> str:
    """A block of code; with a button and a place for the output if it is live."""
    language, *words = info.split()[:2] or [""]
    shown = f'<pre tabindex="0"><code>{highlighted(code, language)}</code></pre>'
    if words != [LIVE] or language not in RUNNERS:
        return f'<div class="code">{shown}</div>\n'
    return f'<div class="code live" data-runner="{RUNNERS[language]}">{shown}</div>\n'


def sized(source: Path) -> str:
    """The attributes of an image that keep its room before it is there."""
    if source.suffix == ".png":
        header = source.read_bytes()[16:24]
        width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    else:
        found = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', source.read_text())
        if found is None:
            return ""
        width, height = (round(float(size)) for size in found.groups())
    return f' width="{width}" height="{height}"'


class Renderer:
    """Renders pages of one site. `resolve` gives addresses, `images` the files of images."""

    def __init__(self, resolve: Resolve, images: Callable[[str], Path | None] = lambda _: None):
        self.parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        self.resolve, self.images = resolve, images

    def render(self, text: str, title: str = "") -> Rendered:
        tokens = self.parser.parse(text)
        page = Rendered(title, "")
        self._anchor(tokens, page)
        for index, token in enumerate(tokens):
            if token.type == "th_open" and not tokens[index + 1].content:  # the heading of nothing
                token.tag = tokens[index + 2].tag = "td"
            if style := token.attrs.pop("style", None):  # the policy of the pages allows none
                token.attrSet("class", str(style).removeprefix("text-align:"))
            for child in token.children or ():
                self._address(child)
        page.body = re.sub(r"<thead>\n<tr>\n(?:<td></td>\n)+</tr>\n</thead>\n", "", self._write(tokens))
        page.has_live = 'class="code live"' in page.body
        return page

    def _anchor(self, tokens: list[Token], page: Rendered) -> None:
        """Give each heading its anchor, and gather headings and sections."""
        seen: dict[str, int] = {}
        for index, token in enumerate(tokens):
            if token.type == "heading_open":
                text = plain(tokens[index + 1])
                base = slug(text)
                count = seen[base] = seen.get(base, -1) + 1
                heading = Heading(int(token.tag[1]), text, f"{base}-{count}" if count else base)
                token.attrSet("id", heading.anchor)
                page.headings.append(heading)
                page.title = page.title or text
                page.sections.append(Section(text, heading.anchor, ""))
            elif token.type in ("inline", "fence", "code_block") and tokens[index - 1].type != "heading_open":
                if not page.sections:
                    page.sections.append(Section(page.title, "", ""))
                page.sections[-1].text = f"{page.sections[-1].text} {plain(token)}".strip()

    def _address(self, token: Token) -> None:
        name = {"link_open": "href", "image": "src"}.get(token.type)
        if name is None:
            return
        target = str(token.attrGet(name))
        address = self.resolve(target)
        if address is None:
            token.meta["is_dropped"] = True
            address = ""
        token.attrSet(name, address)
        token.meta["source"] = target

    def _write(self, tokens: list[Token]) -> str:
        renderer = RendererHTML()

        def fence(tokens: Any, index: int, *_: Any) -> str:
            return code_block(tokens[index].content, tokens[index].info)

        def image(tokens: Any, index: int, *_: Any) -> str:
            token = tokens[index]
            file = self.images(token.meta["source"])
            size = sized(file) if file is not None else ""
            label = html.escape(token.content, quote=True)
            return (
                f'<img src="{html.escape(token.attrGet("src"))}" alt="{label}"{size} loading="lazy" decoding="async">'
            )

        def heading_close(tokens: Any, index: int, *_: Any) -> str:
            opened = tokens[index - 2]
            anchor = opened.attrGet("id")
            if opened.tag == "h1":
                return "</h1>\n"
            label = html.escape(f"Link to {plain(tokens[index - 1])}", quote=True)
            return f'<a class="anchor" href="#{anchor}" aria-label="{label}">#</a></{opened.tag}>\n'

        rules: dict[str, Any] = {
            "fence": fence,
            "code_block": fence,
            "image": image,
            "heading_close": heading_close,
            "table_open": lambda *_: '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n',
            "table_close": lambda *_: "</table></div>\n",
        }
        _drop_links(tokens)
        renderer.rules.update(rules)
        return str(renderer.render(tokens, self.parser.options, {}))


def _drop_links(tokens: list[Token]) -> None:
    """Links that lead nowhere on the site become their text."""
    for token in tokens:
        kept, is_dropping = [], False
        for child in token.children or ():
            if child.type == "link_open" and child.meta.get("is_dropped"):
                is_dropping = True
            elif child.type == "link_close" and is_dropping:
                is_dropping = False
            else:
                kept.append(child)
        if token.children:
            token.children = kept


def plain(token: Token) -> str:
    """The text of a token without its markup."""
    if not token.children:
        return " ".join(token.content.split())
    return " ".join("".join(child.content for child in token.children if child.content).split())


def relative(target: str, page: str) -> str:
    """The address `target`, from the root of the site, as a link on `page` has it."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def is_external(target: str) -> bool:
    return bool(urlsplit(target).scheme or urlsplit(target).netloc)
