"""The page as it stands at first: axe-core finds nothing, a keyboard is enough, and it fits a phone. What parts show
later is looked at in their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .axe import violations_anywhere
from .demo_page import demo_page

PHONE = 390


def test_nothing_is_found(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo) as page:
        assert violations_anywhere(page) == []


def test_every_control_has_a_visible_focus_and_a_name(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo) as page:
        page.locator("body").focus()
        reached: list[str] = []
        for _ in range(60):
            page.keyboard.press("Tab")
            found = page.evaluate("""() => {
                const element = document.activeElement;
                const label = element.getAttribute("aria-label") || element.closest("label")?.innerText;
                return [label || element.innerText, getComputedStyle(element).outlineStyle, element.tagName];
            }""")
            if found[2] == "BODY":
                break
            reached.append(found[0].split("\n")[0])
            assert found[0], found
            assert found[1] != "none", found
    wanted = {"Skip to the demo", "Play the noisy clip", "Denoise", "Denoiser", "Play the guitar", "Amp", "Gain"}
    wanted.add("Add a dozen examples")
    assert wanted <= set(reached), reached
    assert "Measure in this browser" in reached


def test_motion_is_reduced_where_it_is_asked_for(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo) as page:
        page.emulate_media(reduced_motion="reduce")
        moving = page.evaluate("""() => [...document.querySelectorAll("*")].filter((element) => {
            const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
            return Math.max(...transitionDuration.split(",").map(parseFloat)) > 0.01
                || animationName !== "none" || scrollBehavior === "smooth";
        }).map((element) => element.className || element.tagName)""")
        assert moving == []


@pytest.mark.parametrize("part", ["listen", "amp", "learn", "your-model", "timings"])
def test_no_part_runs_out_of_the_window_of_a_phone(browser: Browser, full_demo: Path, part: str) -> None:
    with demo_page(browser, full_demo, width=PHONE) as page:
        outside = page.evaluate(
            """(part) => [...document.querySelectorAll(`#${part} *`)].filter((element) => {
                const { left, right, width } = element.getBoundingClientRect();
                const isSeen = width > 1 && !element.closest("thead"); // which only screen readers get
                return isSeen && (right > innerWidth + 1 || left < -1);
            }).map((element) => element.className || element.tagName)""",
            part,
        )
        assert outside == []
