"""JupyterLite on the site: the notebook runs a model in Chromium, and nothing is asked of another host."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from web_demo.site import jupyter

from .demo_page import LOAD_MS, SCREENSHOTS
from .site_files import PATH, broken_links, read, visiting, write_site

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def root(full_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("jupyter"), full_demo, has_jupyter=True)


def test_the_notebook_page_leads_to_it(root: Path) -> None:
    site = root / PATH
    found = {"notebook.html": read(site / "notebook.html")}
    assert {link.partition("?")[0] for link in found["notebook.html"].links} >= set(jupyter.PAGES)
    missing = [line for line in broken_links(site, found) if "#" not in line]
    assert missing == []


def test_it_runs_a_model(browser: Browser, root: Path) -> None:
    options = {"viewport": {"width": 1280, "height": 1000}, "color_scheme": "dark"}
    with visiting(browser, root, **options) as (context, address, problems):
        page = context.new_page()
        page.goto(f"{address}notebook.html")
        page.get_by_role("link", name="Open the notebook").click()
        page.locator(".jp-Notebook").wait_for(timeout=LOAD_MS)
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
        outputs = page.locator(".jp-OutputArea-output")
        expect(outputs.filter(has_text="ms a frame")).to_be_visible(timeout=2 * LOAD_MS)
        texts = outputs.all_inner_texts()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "site-jupyter.png")
        assert page.evaluate("violations") == []
        assert [line for line in problems if "asks" in line] == [], "it needs no other host"
    assert texts[0] == "[NodeArg(name='x', type='tensor(float)', shape=[1, 'time', 40])]"
    assert texts[2].strip() == "the same bits: True"
    assert texts[3].startswith("backend pyodide")
