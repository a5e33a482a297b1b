"""axe-core, which finds what people with other senses and tools would stumble over."""

from __future__ import annotations

from playwright.sync_api import Page

from .npm_packages import unpacked

VERSION = "4.14.0"
SHA256 = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af"


def violations(page: Page) -> list[str]:
    """Each as a line: the rule, where, and what to do."""
    if not page.evaluate("'axe' in window"):
        page.evaluate((unpacked("axe-core", VERSION, SHA256) / "axe.min.js").read_text())
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{rule['id']} at {node['target']}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def violations_anywhere(page: Page) -> list[str]:
    """Light and dark, on a desk and on a phone; the page is as it was afterwards, but without motion."""
    size = page.viewport_size
    found = []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            found += [f"{width} {scheme}: {line}" for line in violations(page)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found.append(f"{width}: something sticks out to the right")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size or {"width": 1280, "height": 900})
    return found
