"""Part 5 of the demo page: all engines are measured, and all compute what native builds do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from webrnn.engine.kernels import native

from .axe import violations_anywhere
from .demo_page import demo_page, fits, problems, screenshot, wait_for
from .node import node

MODELS = ("gru_128", "gru_128_t1", "scan_wlstm_128")
ENGINES = ["wasm, relaxed SIMD", "wasm, SIMD", "wasm, scalar", "webrnn in Pyodide", "numpy in Pyodide"]


@pytest.fixture
def site(full_demo: Path, tmp_path: Path) -> Path:
    """The demo with three of its models, to damage."""
    folder = Path(shutil.copytree(full_demo, tmp_path / "demo", symlinks=True))
    file = folder / "timings" / "timings.json"
    timings = json.loads(file.read_text())
    timings["models"] = [model for model in timings["models"] if model["name"] in MODELS]
    file.write_text(json.dumps(timings))
    return folder


def without_pyodide(site: Path) -> None:
    file = site / "site.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pyodide": None}))


def measure(page: Page) -> None:
    page.get_by_label("How thoroughly").select_option("quick")
    page.get_by_role("button", name="Measure in this browser").click()


def rows(page: Page) -> Iterator[dict[str, dict[str, str]]]:
    """For each model: engine -> text, difference, builds with the same bits."""
    headings = page.locator("#timings-app thead th").all_inner_texts()[2:]
    for row in page.locator("#timings-app tbody tr").all():
        cells = row.locator("td").all()[1:]
        yield {
            name: {
                "text": cell.inner_text(),
                "difference": cell.get_attribute("data-difference") or "nan",
                "twins": cell.get_attribute("data-twins") or "",
            }
            for name, cell in zip(headings, cells, strict=True)
        }


def test_every_engine_is_measured_and_right(browser: Browser, site: Path) -> None:
    with demo_page(browser, site) as page:
        measure(page)
        expect(page.locator("#timings-app").get_by_role("progressbar")).to_be_visible()
        wait_for(page, "timings", "done", "failed")
        assert problems(page, "timings") == []
        found = list(rows(page))
        screenshot(page, "timings", "timings")
        assert violations_anywhere(page) == []
    assert len(found) == len(MODELS)
    for model in found:
        assert list(model) == ENGINES
        for cell in model.values():
            assert float(cell["difference"]) < 1e-4
        if "native:avx2" in native.available():
            assert "avx2" in model["wasm, relaxed SIMD"]["twins"]
            assert "avx2" in model["webrnn in Pyodide"]["twins"]
        if "native:sse2" in native.available():
            assert "sse2" in model["wasm, SIMD"]["twins"]
            assert "sse2" in model["wasm, scalar"]["twins"]


def test_a_model_is_chosen_and_a_measurement_stopped_by_keyboard(browser: Browser, site: Path) -> None:
    with demo_page(browser, site) as page:
        chart = page.locator("#timings-app .bars")
        chip = page.locator("#timings-app .chip", has_text="one step")
        chip.focus()
        page.keyboard.press("Enter")
        expect(chip).to_be_focused()
        assert "GRU 128, one step" in (chart.get_attribute("aria-label") or "")
        page.get_by_role("button", name="Measure in this browser").focus()
        page.keyboard.press("Enter")
        wait_for(page, "timings", "running")
        page.keyboard.press("Enter")
        wait_for(page, "timings", "stopped")
        expect(page.get_by_role("button", name="Measure again")).to_be_focused()


def test_a_corrupted_module_is_named_and_the_others_still_run(browser: Browser, site: Path) -> None:
    module = site / "host" / "wasm_simd_core.wasm"
    module.write_bytes(module.read_bytes()[:5000])
    without_pyodide(site)
    with demo_page(browser, site, is_clean=False) as page:
        measure(page)
        wait_for(page, "timings", "done", "failed")
        (said,) = problems(page, "timings")
        found = list(rows(page))
    assert said.startswith("wasm, SIMD:")
    assert "wasm_simd_core.wasm" in said
    for model in found:
        assert list(model) == ENGINES[:3]
        assert model["wasm, SIMD"]["text"] == "failed"
        assert float(model["wasm, relaxed SIMD"]["difference"]) < 1e-4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("timings/timings.json", None, "timings.json could not be loaded: HTTP 404"),
        ("timings/timings.json", "{", "timings.json is not valid JSON"),
    ],
)
def test_without_recorded_timings_the_page_says_so(
    browser: Browser, site: Path, name: str, content: str | None, message: str
) -> None:
    if content is None:
        (site / name).unlink()
    else:
        (site / name).write_text(content)
    with demo_page(browser, site, is_clean=False) as page:
        wait_for(page, "timings", "failed")
        (said,) = problems(page, "timings")
        expect(page.locator("#your-model-app .dropzone")).to_be_visible()
    assert message in said


def test_a_busy_machine_is_told(browser: Browser, site: Path) -> None:
    without_pyodide(site)
    file = site / "timings" / "timings.json"
    timings = json.loads(file.read_text())
    for model, is_busy in zip(timings["models"], (True, False, False), strict=True):
        model["busy"] = is_busy
    file.write_text(json.dumps({**timings, "load": 3.5}))
    with demo_page(browser, site) as page:
        notice = page.locator("#timings-app .notice")
        expect(notice).to_contain_text("1 of 3 native times were recorded on a busy machine, at a load of 3.5")
        native = page.locator("#timings-app tbody td[data-label=native]").all_inner_texts()
        assert [text.startswith("≈") for text in native] == [True, False, False]


def test_the_calmest_rounds_count() -> None:
    clock = Path(__file__).resolve().parents[2] / "web_demo" / "timings" / "clock.js"
    rounds = [[1] * 9, [1, 1.1, 1, 9, 1.05], [1] * 3 + [2] * 6, [1] + [28] * 8]
    code = f"""
        import {{ calmest }} from {json.dumps(clock.as_uri())};
        console.log(JSON.stringify({json.dumps(rounds)}.map(calmest)));
    """
    found = json.loads(node("--input-type=module", "-e", code))
    assert [row["ms"] for row in found] == [1, 1, 1, 28]
    assert [row["isBusy"] for row in found] == [False, False, True, True]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(browser: Browser, full_demo: Path, scheme: str) -> None:
    with demo_page(browser, full_demo, width=360, scheme=scheme) as page:
        assert fits(page, 360)
        screenshot(page, "timings", f"timings-phone-{scheme}")
