"""Pools of streams in several workers, in Node and in a headless Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from . import sites
from .conftest import served
from .node import node

HERE = Path(__file__).parent
ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


@pytest.fixture(scope="module")
def site(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites.workers_site(host, tmp_path_factory.mktemp("workers") / "site")


def test_in_node(site: Path) -> None:
    script = HERE / "worker_pool.test.mjs"
    assert "# fail 0" in node("--test-reporter=tap", str(script), f"{site.as_uri()}/")


def isolate(route: Route) -> None:
    response = route.fetch()
    route.fulfill(response=response, headers={**response.headers, **ISOLATION})


@pytest.mark.parametrize(
    ("test", "is_isolated"),
    [("results", False), ("results", True), ("terminated", False), ("broken", False), ("misused", False)],
)
def test_in_chromium(site: Path, browser: Browser, test: str, is_isolated: bool) -> None:
    context = browser.new_context()
    page = context.new_page()
    if is_isolated:
        context.route("**/*", isolate)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with served(site) as address:
        page.goto(f"{address}empty.html")
        assert page.evaluate("crossOriginIsolated") == is_isolated
        found = page.evaluate(
            f"""Promise.race([
                import('/worker_pool_page.js').then((tests) => tests.{test}()),
                new Promise((resolve) => setTimeout(resolve, 60_000, ["a promise was not kept"])),
            ])"""
        )
    context.close()
    assert found == []
    assert messages == []
