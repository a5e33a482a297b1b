"""Part 3 of the demo page: a network learns gestures on the bare VM."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from playwright.sync_api import Browser, Page, expect

import webrnn
from webrnn.demo import learning

from .axe import violations_anywhere
from .demo_page import demo_page, fits, problems, screenshot, wait_for
from .node import node

GESTURES = Path(__file__).resolve().parents[2] / "web_demo" / "learn" / "gestures.js"


@pytest.fixture
def page(browser: Browser, full_demo: Path) -> Iterator[Page]:
    with demo_page(browser, full_demo) as page:
        yield page


def press(page: Page, name: str) -> None:
    page.locator("#learn-app").get_by_role("button", name=name, exact=True).click()


def learn(page: Page) -> None:
    press(page, "Add a dozen examples")
    press(page, "Learn")
    wait_for(page, "learn", "learned", "failed")
    assert problems(page, "learn") == []


def figure(page: Page, name: str) -> str:
    return page.locator(f"#learn-app [data-figure={name}]").inner_text()


def draw(page: Page, points: list[tuple[float, float]]) -> None:
    """With the mouse; points are in a square of side 1."""
    pad = page.locator(".learn-pad")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    assert box
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place)
    page.mouse.up()


def circle() -> list[tuple[float, float]]:
    angles = [-1.5 + 2 * math.pi * i / 30 for i in range(31)]
    return [(0.5 + 0.3 * math.cos(angle), 0.5 + 0.28 * math.sin(angle)) for angle in angles]


ZIGZAG = [(0.1, 0.7), (0.3, 0.3), (0.5, 0.72), (0.7, 0.31), (0.9, 0.7)]
TICK = [(0.2, 0.5), (0.4, 0.8), (0.85, 0.2)]


def test_a_dozen_examples_are_learned_and_gestures_by_hand_are_told_apart(page: Page) -> None:
    learn(page)
    assert figure(page, "right") == "12 of 12"
    assert float(figure(page, "loss")) < 0.1
    assert 5 < int(figure(page, "steps")) <= 400
    for points, kind in ((circle(), "Circle"), (ZIGZAG, "Zigzag"), (TICK, "Tick")):
        draw(page, points)
        expect(page.locator("#learn-app")).to_have_attribute("data-guess", kind)
        expect(page.locator("#learn-app [role=status]")).to_contain_text(f"That is a {kind.lower()}")
        assert int(page.get_by_role("meter", name=f"{kind}: how likely").get_attribute("aria-valuenow") or "") > 60
    screenshot(page, "learn", "learn")
    loaded = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name.split('/').pop())")
    assert "wasm_relaxed_training.wasm" in loaded
    assert "wasm_relaxed.wasm" not in loaded
    assert violations_anywhere(page) == []


def test_own_examples_by_pointer(page: Page) -> None:
    expect(page.get_by_role("button", name="Learn", exact=True)).to_be_disabled()
    for kind, points in (("This is a circle", TICK), ("This is a tick", ZIGZAG)):
        page.get_by_label(kind).check()
        for shift in (0, 0.02, 0.04):
            draw(page, [(x + shift, y) for x, y in points])
    press(page, "Learn")
    wait_for(page, "learn", "learned")
    assert figure(page, "right") == "6 of 6"
    draw(page, TICK)  # what was taught, not what the page calls it
    expect(page.locator("#learn-app")).to_have_attribute("data-guess", "Circle")


def test_a_keyboard_is_enough(page: Page) -> None:
    page.get_by_role("button", name="Add a dozen examples").press("Enter")
    page.get_by_role("button", name="Learn", exact=True).press("Enter")
    wait_for(page, "learn", "learned")
    page.get_by_role("button", name="Draw one to guess").press("Enter")
    expect(page.locator("#learn-app")).to_have_attribute("data-guess", re.compile("Circle|Zigzag|Tick"))
    page.get_by_role("button", name="Start anew").press("Enter")
    wait_for(page, "learn", "idle")
    assert figure(page, "steps") == "0"
    expect(page.get_by_role("button", name="Save as ONNX")).to_be_disabled()


def test_learning_anew_gives_the_same(page: Page) -> None:
    """A reset forgets all: the parameters, and what Adam remembers."""
    losses = []
    for _ in range(2):
        learn(page)
        losses.append((figure(page, "loss"), figure(page, "steps")))
        press(page, "Start anew")
        wait_for(page, "learn", "idle")
    assert losses[0] == losses[1]


def test_what_was_learned_is_saved_as_onnx(page: Page, tmp_path: Path) -> None:
    learn(page)
    with page.expect_download() as download:
        press(page, "Save as ONNX")
    file = tmp_path / "gestures.onnx"
    download.value.save_as(file)
    onnx.checker.check_model(str(file))
    session = webrnn.InferenceSession(file)
    x = np.array(drawn([0, 1, 2, 0, 1, 2], 99), np.float32).reshape(-1, learning.STEPS, 2)
    assert list(session.run(None, {"x": x})[0].argmax(-1)) == [0, 1, 2, 0, 1, 2]


def drawn(kinds: list[int], seed: int) -> list[list[float]]:
    """What the network sees of gestures that the page draws."""
    code = f"""
        import {{ drawn, features, randomOf }} from {json.dumps(GESTURES.as_uri())};
        const random = randomOf({seed});
        console.log(JSON.stringify({json.dumps(kinds)}.map((kind) => [...features(drawn(kind, random))])));
    """
    found: list[list[float]] = json.loads(node("--input-type=module", "-e", code))
    return found


def test_place_size_and_speed_of_a_gesture_do_not_matter() -> None:
    code = f"""
        import {{ features }} from {json.dumps(GESTURES.as_uri())};
        const path = Array.from({{ length: 60 }}, (_, i) => ({{ x: i / 100, y: Math.sin(i / 9) / 4 + 0.4 }}));
        const other = path.filter((_, i) => i % 2 || i === 0).map(({{ x, y }}) => ({{ x: 0.5 * x + 0.3, y: 0.5 * y }}));
        const dot = [{{ x: 0, y: 0 }}, {{ x: 0.01, y: 0 }}];
        console.log(JSON.stringify([[...features(path)], [...features(other)], features([]), features(dot)]));
    """
    first, second, *none = json.loads(node("--input-type=module", "-e", code))
    np.testing.assert_allclose(first, second, atol=0.05)
    assert len(first) == 2 * learning.STEPS
    assert none == [None, None]


def test_gestures_that_were_never_seen_are_told_apart() -> None:
    """A dozen examples, as many steps as the page takes: of 60 others nearly all."""
    kinds = [0, 1, 2] * 4
    trainer = webrnn.trainer(learning.model(), "cross_entropy", "adam", lr=learning.RATE)
    x = np.array(drawn(kinds, 7), np.float32).reshape(-1, learning.STEPS, 2)
    for _ in range(120):
        trainer.step({"x": x, "target": np.array(kinds)})
    kinds = [0, 1, 2] * 20
    others = np.array(drawn(kinds, 1234), np.float32).reshape(-1, learning.STEPS, 2)
    (scores,) = trainer.predict({"x": others})
    assert (scores.argmax(-1) == kinds).mean() > 0.9


def test_on_a_phone_in_the_dark(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo, width=390, scheme="dark") as page:
        learn(page)
        assert fits(page, 390)
        screenshot(page, "learn", "learn-phone-dark")
