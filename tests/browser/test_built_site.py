"""A new Vite project, `npm install` of the package and five lines: a denoised microphone, and speech in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import built_site
from .other_browsers import ask_for

MOST_BYTES = 1_600_000
"""On the wire, for a denoiser and voice activity with int8 weights, each with a site of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site.write_speech(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def sites(folder: Path) -> dict[str, Path]:
    tarball = built_site.package(folder)
    return {name: built_site.build(folder / name, tarball, name) for name in built_site.PROGRAMS}


@pytest.fixture(scope="module", params=list(built_site.BROWSERS))
def browser(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    if request.param != "chromium":
        ask_for(request.param)
    with built_site.BROWSERS[request.param](folder) as browser:
        yield browser


def test_they_are_five_lines() -> None:
    assert {len(text.splitlines()) for text in built_site.PROGRAMS.values()} == {5}


def test_a_microphone_is_denoised_and_listened_to(browser: Any, sites: dict[str, Path]) -> None:
    with built_site.served(sites["denoise"]) as one:
        found = built_site.denoised(browser, one)
    assert found["loudest"] > 0.01
    with built_site.served(sites["speech"]) as two:
        text = built_site.spoken(browser, two)
    assert " start" in text
    assert " samples" in text
    assert sum((one.sizes | two.sizes).values()) < MOST_BYTES, (one.sizes, two.sizes)
