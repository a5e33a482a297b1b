"""The host, pools, workers and the audio thread in Firefox and WebKitGTK: to the bit what Python computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from . import sites
from .conftest import served
from .other_browsers import KINDS, Started, ask_for, open_browser
from .test_audio_js import OFFLINE

SITES: dict[str, Callable[[Path, Path, bool], Path]] = {
    "webrnn": lambda host, folder, _: sites.webrnn_site(host, folder),
    "workers": sites.workers_site,
    "audio": sites.audio_site,
}
FULL = pytest.mark.browsers


def cases(names: str, short: str) -> list[Any]:
    """`make test` has the short ones alone."""
    return [pytest.param(name, marks=() if name in short.split() else FULL) for name in names.split()]


@pytest.fixture(scope="module", params=list(KINDS))
def started(request: pytest.FixtureRequest) -> Iterator[Started]:
    ask_for(request.param)
    with open_browser(request.param) as started:
        yield started


@pytest.fixture(scope="module")
def pages(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of a site, which is made when it is first asked for."""
    folder = tmp_path_factory.mktemp("others")

    @cache
    def made(name: str, is_fused: bool) -> Path:
        return SITES[name](host, folder / f"{name}_{is_fused}", is_fused)

    return lambda name, is_fused: made(name, is_fused or name == "webrnn")  # that one has the bits of all variants


def found_by(started: Started, pages: Any, site: str, module: str, call: str) -> Any:
    with served(pages(site, started.kind.is_fused)) as address:
        started.browser.goto(f"{address}empty.html")
        found = started.browser.run(module, call)
        messages = started.browser.messages()
    allowed = "not_there.rnn" if call in ("badPlans()", "live()") else None
    assert [text for text in messages if not allowed or allowed not in text] == []
    return found


@pytest.mark.parametrize("place", cases("page worker audioWorklet limits limitsInAudioWorklet", "page audioWorklet"))
def test_the_host(started: Started, pages: Any, place: str) -> None:
    """Every variant that the browser has; small weights and pools are among the cases."""
    assert found_by(started, pages, "webrnn", "/webrnn_page.js", f"{place}()") == []


@pytest.mark.parametrize("what", cases("results terminated broken misused", "results"))
def test_pools_in_workers(started: Started, pages: Any, what: str) -> None:
    assert found_by(started, pages, "workers", "/worker_pool_page.js", f"{what}()") == []


ASKED_DURING = ("bypass", "mix", "swap", "badPlans")
"""Firefox cannot suspend an OfflineAudioContext; there `live` has the same questions in real time."""


@pytest.mark.parametrize("what", cases(OFFLINE, "speech rates"))
def test_the_audio_thread_offline(started: Started, pages: Any, what: str) -> None:
    if what in ASKED_DURING and started.browser.name == "Firefox":
        assert found_by(started, pages, "audio", "/audio_page.js", "canSuspend()") is False
    else:
        assert found_by(started, pages, "audio", "/audio_page.js", f"{what}()") == []


def test_filters_are_exchanged_while_sound_plays(started: Started, pages: Any) -> None:
    assert found_by(started, pages, "audio", "/audio_live_page.js", "live()") == []


@FULL
def test_the_audio_thread_in_real_time(started: Started, pages: Any) -> None:
    report = found_by(started, pages, "audio", "/audio_page.js", "realTime(3)")
    assert report["found"] == [], "results have the bits that the page's own thread computes"
    assert {load["budget"] for load in report["loads"]} == {8}
    quanta = sum(load["quanta"] for load in report["loads"])
    assert 0 < quanta * 128 <= report["played"] * 16000 + 4096
    assert abs(report["results"] * 512 - quanta * 128) <= 8192, "no frame is left out; the last report may be missing"
