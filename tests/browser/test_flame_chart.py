"""The flame chart of `webrnn profile --html` in a browser."""

import numpy as np
import pytest

from tests.plan.recurrent_models import recurrent
from tests.profile.harness import profile_of
from webrnn.profile.html import report_html


@pytest.fixture(scope="module")
def profile():
    return profile_of(recurrent("GRU", 8, 6, ["Y"]), {"x": np.ones((50, 1, 6), np.float32)})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(profile, scheme, tmp_path, browser):
    file = tmp_path / "flame.html"
    file.write_text(report_html(profile), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    kinds = page.eval_on_selector_all("#flame button", "all => all.map(each => each.dataset.kind)")
    assert {"plan", "loop", "node", "instruction", "part"} <= set(kinds)
    loop = page.locator("#flame button[data-kind=loop]").first
    loop.click()
    assert page.locator("#flame button[data-kind=loop]").first.evaluate("e => e.style.width") == "100%"
    assert "steps" in page.locator("#detail").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#flame button").count() == len(kinds)
    widths = page.eval_on_selector_all("#flame button", "all => all.map(e => e.getBoundingClientRect().right)")
    assert max(widths) <= page.viewport_size["width"]
    assert (requests, errors) == ([file.as_uri()], [])
    page.close()
