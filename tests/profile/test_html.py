"""The flame chart: one file, nothing from the network, safe with any name."""

import json
import re

import numpy as np
import pytest

from tests.browser.conftest import browser  # noqa: F401
from tests.plan.recurrent_models import recurrent
from webrnn.profile.entry import Entry
from webrnn.profile.html import report_html
from webrnn.profile.profiler import Profile
from webrnn.profile.text import report_text

from .harness import profile_of

HOSTILE = "</script><img src=x onerror=alert(1)>@DATA@"


@pytest.fixture(scope="module")
def profile():
    return profile_of(recurrent("GRU", 8, 6, ["Y"]), {"x": np.ones((50, 1, 6), np.float32)})


def hostile() -> Profile:
    inside = Entry("instruction", HOSTILE, "matrix", HOSTILE, HOSTILE, calls=1, seconds=1e-6)
    root = Entry("plan", "plan", children=[Entry("node", HOSTILE, "matrix", label=HOSTILE, children=[inside])])
    return Profile(HOSTILE, "native", 1, 1, 1e-6, 1e-6, 1e-6, 0.0, 0.0, 1.0, root, [HOSTILE])


def test_nothing_from_elsewhere(profile):
    page = report_html(profile)
    assert not re.search(r"https?:|src\s*=|<link|@import|url\(|fetch\(|import\(", page)
    assert not re.search(r"@[A-Z]+@", page)
    assert "prefers-color-scheme: dark" in page


def test_the_data_are_those_of_the_profile(profile):
    tree = re.search(r'id="data">(.*?)</script>', report_html(profile), re.S)
    assert json.loads(tree[1]) == profile.root.as_data()


def test_names_cannot_end_the_script():
    page = report_html(hostile())
    assert "<img" not in page
    assert json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["children"][0]["name"] == HOSTILE
    assert HOSTILE in report_text(hostile(), everything=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(profile, scheme, tmp_path, browser):  # noqa: F811
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
