"""The flame chart: one file, nothing from the network, safe with any name."""

import json
import re

import numpy as np
import pytest

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
