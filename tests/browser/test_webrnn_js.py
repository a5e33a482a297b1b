"""The JavaScript host of plans in Node and in a headless Chromium, against what PlanProgram computes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from . import webrnn_cases
from .conftest import served
from .test_kernels_js import node

HERE = Path(__file__).parent
PAGE_SCRIPTS = ("webrnn_cases.mjs", "webrnn_page.mjs", "webrnn_worker.mjs", "webrnn_processor.mjs")


@pytest.fixture(scope="module")
def site(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with the cases and what pages run of the tests."""
    folder = Path(shutil.copytree(demo, tmp_path_factory.mktemp("webrnn") / "site"))
    webrnn_cases.write(folder / "cases", webrnn_cases.all_cases())
    (folder / "empty.html").write_text('<link rel="icon" href="data:,">')  # the server sends the demo's policy with it
    for file in PAGE_SCRIPTS:
        shutil.copy(HERE / file, (folder / file).with_suffix(".js"))
    return folder


def test_webrnn_js(site: Path) -> None:
    script = HERE / "webrnn.test.mjs"
    assert "# fail 0" in node("--test-reporter=tap", str(script), f"{site.as_uri()}/")


SAMPLING = {
    "samplingInterval": 64,
    "includeObjectsCollectedByMinorGC": True,
    "includeObjectsCollectedByMajorGC": True,
}


def test_steps_allocate_nothing_in_chromium(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    profiler = page.context.new_cdp_session(page)
    allocated: dict[str, int] = {}
    with served(site) as address:
        page.goto(f"{address}empty.html")
        page.evaluate("import('/webrnn_page.js').then((t) => t.manySteps()).then((s) => void (window.steps = s))")
        for kind in ("borrow", "out", "one_object"):
            page.evaluate(f"steps.{kind}()")
            profiler.send("HeapProfiler.startSampling", SAMPLING)
            page.evaluate(f"steps.{kind}()")
            allocated[kind] = _total(profiler.send("HeapProfiler.stopSampling")["profile"]["head"])
    page.close()
    assert max(allocated["borrow"], allocated["out"]) < 50_000, allocated
    assert allocated["one_object"] > 1_000_000, allocated


def _total(node: dict[str, Any]) -> int:
    return node["selfSize"] + sum(_total(child) for child in node["children"])


@pytest.mark.parametrize("place", ["page", "worker", "audioWorklet"])
def test_in_chromium(site: Path, browser: Browser, place: str) -> None:
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with served(site) as address:
        page.goto(f"{address}empty.html")
        found = page.evaluate(f"import('/webrnn_page.js').then((tests) => tests.{place}())")
    page.close()
    assert found == []
    assert messages == []
