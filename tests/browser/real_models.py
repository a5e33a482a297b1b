"""Plans of real models in Node and in Chromium: the bits that they have natively."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .conftest import CHROMIUM, FLAGS, host_site, served
from .node import node

HERE = Path(__file__).parent

IN_NODE = """
const [base, cases, ...names] = process.argv.slice(1);
const { Model } = await import(new URL("webrnn.js", base));
const { check } = await import(cases);
const { readFile } = await import("node:fs/promises");
const read = (file) => readFile(new URL(`cases/${file}`, base));
console.log(JSON.stringify(await check({ Model }, names, "relaxed", {}, read)));
"""

IN_PAGE = """async (names) => {
  const webrnn = await import("/webrnn.js");
  const { check } = await import("/webrnn_cases.js");
  const read = async (file) => new Uint8Array(await (await fetch(`/cases/${file}`)).arrayBuffer());
  return check(webrnn, names, "relaxed", {}, read);
}"""


def real_site(folder: Path) -> Path:
    """The host of plans, with a place for cases."""
    site = host_site(folder / "site")
    (site / "cases").mkdir()
    (site / "empty.html").write_text('<link rel="icon" href="data:,">')
    (site / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "webrnn_cases.mjs", site / "webrnn_cases.js")
    return site


def in_node(site: Path, names: Sequence[str]) -> list[str]:
    cases = (HERE / "webrnn_cases.mjs").as_uri()
    found: list[str] = json.loads(
        node("--input-type=module", "--eval", IN_NODE, "--", f"{site.as_uri()}/", cases, *names)
    )
    return found


def in_chromium(site: Path, names: Sequence[str], browser: Any = None) -> list[str]:
    from playwright.sync_api import sync_playwright

    if browser is None:
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            try:
                return in_chromium(site, names, opened)
            finally:
                opened.close()
    page = browser.new_page()
    with served(site) as address:
        page.goto(f"{address}empty.html")
        found: list[str] = page.evaluate(IN_PAGE, list(names))
    page.close()
    return found
