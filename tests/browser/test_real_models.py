"""Real models from public packages: right, one plan, and the same bits natively, in Node and in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.real_models import in_chromium, in_node, real_site
from tests.models.real_models import CASES, Finding, judge, write_case
from webrnn.plan.decode import decode
from webrnn.plan.rare import rare_parts

Judged = tuple[Path, dict[str, Finding]]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    site = real_site(tmp_path_factory.mktemp("real"))
    found = {name: judge(name, site / "cases") for name in CASES}
    for name, finding in found.items():
        if finding.plan:
            write_case(name, finding, site / "cases")
    return site, found


def test_right(judged: Judged) -> None:
    assert {name: found.wrong for name, found in judged[1].items() if found.wrong} == {}


def test_each_is_a_plan_for_all_sizes(judged: Judged) -> None:
    others = {name: found.kind for name, found in judged[1].items() if found.kind != "one plan for all sizes"}
    assert others == {}


def test_only_quantized_files_need_the_full_module(judged: Judged) -> None:
    """Of all others Node and Chromium load the core module below."""
    needed = {name: rare for name, found in judged[1].items() if (rare := rare_parts(decode(found.plan)))}
    assert set(needed) <= {"moonshine_tiny_dec_if", "t2t_bilstm_int8"}
    assert {part for parts in needed.values() for part in parts} <= {"dynamic_quantize", "integer_gemm"}


def test_the_same_bits_in_node(judged: Judged) -> None:
    site, found = judged
    assert in_node(site, [name for name in found if found[name].plan]) == []


def test_the_same_bits_in_chromium(judged: Judged, browser: Browser) -> None:
    site, found = judged
    assert in_chromium(site, [name for name in found if found[name].plan], browser) == []
