"""`make pictures`: the pictures of the page in the README, from the folder that `webrnn serve --build-only` wrote.

Give the machine nothing else to do meanwhile: the pictures show times.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from webrnn.bench.web import CHROMIUM_FLAGS, chromium_path
from webrnn.web.server import in_background, serve

FLAGS = (*CHROMIUM_FLAGS, "--autoplay-policy=no-user-gesture-required")
MARGIN = 24
PATIENCE = 300_000


def take(page: Page, part: str, folder: Path) -> None:
    """A picture of what a part shows, with a margin."""
    page.evaluate(
        "document.querySelector('.top').style.position = 'static'; document.activeElement.blur(); scrollTo(0, 0)"
    )
    box = page.locator(f"#{part}-app").bounding_box()
    assert box is not None
    clip = {"x": box["x"] - MARGIN, "y": box["y"] - MARGIN}
    clip |= {"width": box["width"] + 2 * MARGIN, "height": box["height"] + 2 * MARGIN}
    page.screenshot(path=folder / f"demo-{part}.png", clip=clip, full_page=True)  # type: ignore[arg-type]


def wait_for(page: Page, part: str, state: str) -> None:
    expect(page.locator(f"#{part}-app")).to_have_attribute("data-state", state, timeout=PATIENCE)


def listen(page: Page) -> None:
    """The clip, denoised but for some seconds in the middle."""
    page.get_by_role("button", name="Play the noisy clip").click()
    wait_for(page, "listen", "playing")
    switch = page.get_by_role("switch", name="Denoise")
    page.wait_for_timeout(6000)
    switch.press("Space")
    page.wait_for_timeout(3000)
    switch.press("Space")
    page.wait_for_timeout(4500)


def amp(page: Page) -> None:
    """As it stands once it is in view: rendered by the amp itself."""
    page.locator("#amp").scroll_into_view_if_needed()
    expect(page.locator("#amp-app")).to_have_attribute("data-still", "crunch", timeout=PATIENCE)


def your_model(page: Page) -> None:
    """A GRU, run often enough to be compiled well."""
    page.locator('#your-model-app [data-model="gru_256"]').click()
    wait_for(page, "your-model", "ready")
    for _ in range(5):
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("#your-model-app .outputs")).to_be_visible(timeout=PATIENCE)
        wait_for(page, "your-model", "ready")
        page.wait_for_timeout(1000)  # its state is "ready" also before it has begun


def timings(page: Page) -> None:
    page.get_by_role("button", name="Measure in this browser").click()
    wait_for(page, "timings", "done")
    page.get_by_role("button", name="GRU 256, 100 steps").click()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m web_demo.packaging.pictures", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--site", type=Path, default=Path("build/demo"))
    parser.add_argument("--to", type=Path, default=Path("docs"))
    arguments = parser.parse_args()
    with sync_playwright() as playwright, in_background(serve(arguments.site, port=0)) as address:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
        for part, show in (("listen", listen), ("amp", amp), ("your-model", your_model), ("timings", timings)):
            page = browser.new_page(viewport={"width": 1180, "height": 1400}, color_scheme="light")
            page.goto(address)
            expect(page.locator("html")).to_have_attribute("data-ready", "true", timeout=PATIENCE)
            show(page)
            take(page, part, arguments.to)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
