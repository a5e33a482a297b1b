"""The JavaScript host of plans in Node and in a headless Chromium, against what PlanProgram computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.pyodide_pkg import engines

from . import sites
from .conftest import served
from .node import node

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def site(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites.webrnn_site(host, tmp_path_factory.mktemp("webrnn") / "site")


@pytest.mark.parametrize(
    "name", ["webrnn.test.mjs", "webrnn_trust.test.mjs", "webrnn_frames.test.mjs", "webrnn_pool.test.mjs"]
)
def test_webrnn_js(site: Path, name: str) -> None:
    script = HERE / name
    assert "# fail 0" in node("--test-reporter=tap", str(script), f"{site.as_uri()}/")


VARIANT_OF_ENGINE = """
const [base] = process.argv.slice(1);
const { Model } = await import(new URL("webrnn.js", base));
const { check } = await import(process.argv[2]);
const { readFile } = await import("node:fs/promises");
const read = (file) => readFile(new URL(`cases/${file}`, base));
const { variant } = await Model.load(await read("gru.rnn"));
console.log(JSON.stringify([variant, await check({ Model }, ["gru", "lstm_stream", "scan"], variant, {}, read)]));
"""


@pytest.mark.parametrize(
    ("engine", "flags", "variant"),
    [
        (engines.newest_node, (), "relaxed"),
        (engines.node_without_relaxed, (), "simd"),
        pytest.param(
            engines.newest_node,
            engines.NO_SIMD,
            "scalar",
            marks=pytest.mark.skipif(not engines.CAN_SWITCH_OFF_SIMD, reason="no switch for SIMD on this processor"),
        ),
    ],
)
def test_the_variant_that_an_engine_can_run(site: Path, engine: Any, flags: tuple[str, ...], variant: str) -> None:
    """Found by itself, with the bits that Python computes for it."""
    cases = (HERE / "webrnn_cases.mjs").as_uri()
    arguments = [*flags, "--input-type=module", "--eval", VARIANT_OF_ENGINE, "--", f"{site.as_uri()}/", cases]
    assert json.loads(node(*arguments, command=engine())) == [variant, []]


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
        for kind in ("borrow", "out", "pool_borrow", "pool_out", "one_object"):
            page.evaluate(f"steps.{kind}()")
            profiler.send("HeapProfiler.startSampling", SAMPLING)
            page.evaluate(f"steps.{kind}()")
            allocated[kind] = _total(profiler.send("HeapProfiler.stopSampling")["profile"]["head"])
    page.close()
    assert allocated.pop("one_object") > 1_000_000, allocated
    assert max(allocated.values()) < 50_000, allocated


def _total(node: dict[str, Any]) -> int:
    return node["selfSize"] + sum(_total(child) for child in node["children"])


@pytest.mark.parametrize("place", ["page", "worker", "audioWorklet", "limits", "limitsInAudioWorklet"])
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
