"""The demo page in a headless Chromium: right results on every variant, readable messages when something is broken."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect

from webrnn.engine import native

from .conftest import served

ARTIFACTS = Path(__file__).resolve().parents[2] / "build" / "artifacts"
SPECS = ["wasm:relaxed", "wasm:simd", "wasm:scalar"]
RECORD_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI));
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 900, "height": 960})
    page.add_init_script(RECORD_VIOLATIONS)
    yield page
    page.close()


@pytest.fixture
def broken(demo: Path, tmp_path: Path) -> Path:
    """A copy of the demo to damage."""
    return Path(shutil.copytree(demo, tmp_path / "demo"))


def wait_for(page: Page, state: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-state", state, timeout=60_000)


def table(page: Page) -> dict[str, list[str]]:
    """Build -> its other cells: ms per run, us per step, times native, max difference, same bits as native."""
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator("#rows tr").all()]
    return {name: cells for name, *cells in rows}


def boxes(page: Page, selector: str) -> list[FloatRect]:
    return [box for match in page.locator(selector).all() if (box := match.bounding_box())]


def screenshot(page: Page, name: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / name, full_page=True)


def test_all_variants_are_measured_and_right(page: Page, demo: Path) -> None:
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    with served(demo) as address:
        page.goto(address)
        wait_for(page, "done")
    screenshot(page, "demo.png")

    rows = table(page)
    assert list(rows) == SPECS
    assert all(float(ms) > 0 and float(difference) < 1e-5 for ms, _, _, difference, _ in rows.values())
    if "native:avx2" in native.available():
        assert "avx2" in rows["wasm:relaxed"][-1]
    if "native:sse2" in native.available():
        assert "sse2" in rows["wasm:simd"][-1]
        assert "sse2" in rows["wasm:scalar"][-1]
    assert page.locator("#chart text:not(.value)").all_text_contents() == [*native.available(), *SPECS]
    assert messages == []
    assert page.evaluate("violations") == []
    assert [url for url in requests if not url.startswith((address, "data:"))] == []


def test_policy_refuses_inline_scripts_and_other_hosts(page: Page, demo: Path) -> None:
    with served(demo) as address:
        page.goto(address)
        page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            return fetch("http://127.0.0.1:1/").catch(() => null);
        }""")
    assert page.evaluate("window.ran") is None
    assert set(page.evaluate("violations")) == {"inline", "http://127.0.0.1:1/"}


def test_keyboard_and_progress(page: Page, demo: Path) -> None:
    with served(demo) as address:
        page.goto(address)
        expect(page.get_by_role("progressbar")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Stop")).to_be_focused()
        page.keyboard.press("Enter")
        wait_for(page, "stopped")
        page.keyboard.press("Enter")
        wait_for(page, "done")
        expect(page.get_by_role("button", name="Run again")).to_be_focused()
    assert list(table(page)) == SPECS


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_width(browser: Browser, demo: Path, scheme: str) -> None:
    page = browser.new_page(
        viewport={"width": 360, "height": 740}, color_scheme="dark" if scheme == "dark" else "light"
    )
    with served(demo) as address:
        page.goto(address)
        wait_for(page, "done")
    screenshot(page, f"demo-phone-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator(".scroll").evaluate("(table) => table.scrollWidth - table.clientWidth") == 0
    rights = [box["x"] + box["width"] for box in boxes(page, "#chart text:not(.value)")]
    lefts = [box["x"] for box in boxes(page, "#chart .value")]
    assert all(right < left for right, left in zip(rights, lefts, strict=True)), "labels overlap"
    page.close()


def test_a_corrupted_module_is_named_and_the_others_still_run(page: Page, broken: Path) -> None:
    module = broken / "wasm_relaxed.wasm"
    module.write_bytes(module.read_bytes()[:5000])
    with served(broken) as address:
        page.goto(address)
        wait_for(page, "done")
    expect(page.get_by_role("alert")).to_contain_text("wasm_relaxed.wasm is not a module of kernels that can run here")
    rows = table(page)
    assert rows["wasm:relaxed"] == ["failed"]
    assert all(float(rows[spec][0]) > 0 for spec in ("wasm:simd", "wasm:scalar"))
    screenshot(page, "demo-corrupted.png")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weights.bin", "/weights.bin could not be loaded: HTTP 404"),
        ("model.json", "/model.json could not be loaded: HTTP 404"),
        ("worker.js", "The worker could not run"),
    ],
)
def test_a_missing_file_is_named(page: Page, broken: Path, name: str, message: str) -> None:
    (broken / name).unlink()
    with served(broken) as address:
        page.goto(address)
        wait_for(page, "failed")
    expect(page.get_by_role("alert")).to_contain_text(message)


def test_a_damaged_description_is_named(page: Page, broken: Path) -> None:
    (broken / "native.json").write_text("{")
    with served(broken) as address:
        page.goto(address)
        wait_for(page, "failed")
    expect(page.get_by_role("alert")).to_contain_text("/native.json is not valid JSON")


def test_truncated_weights_are_refused(page: Page, broken: Path) -> None:
    weights = broken / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-2])
    with served(broken) as address:
        page.goto(address)
        wait_for(page, "failed")
    expect(page.get_by_role("alert")).to_contain_text("the weights end before tensor rb does")


def test_the_page_can_be_used_again_after_a_failure(page: Page, broken: Path) -> None:
    weights = (broken / "weights.bin").rename(broken / "moved.bin")
    with served(broken) as address:
        page.goto(address)
        wait_for(page, "failed")
        weights.rename(broken / "weights.bin")
        page.get_by_role("button", name="Run again").click()
        wait_for(page, "done")
    expect(page.get_by_role("alert")).to_be_empty()
    assert list(table(page)) == SPECS
