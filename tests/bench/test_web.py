"""Models in Node and Chromium, plain and in Pyodide: their results, and that they can be timed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from webrnn.bench import web
from webrnn.bench.benchmark import Benchmark
from webrnn.bench.case import Case, make_case
from webrnn.bench.models import sequence
from webrnn.bench.others import Wanted, others, pyodide_folder, web_makers
from webrnn.bench.rounds import Effort
from webrnn.bench.runners import backend_runner
from webrnn.errors import BackendError


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case("gru", sequence("GRU", 8, 5, seed=1))


@pytest.fixture(scope="module")
def workshop() -> Iterator[web.Workshop]:
    workshop = web.Workshop(pyodide_folder())
    yield workshop
    workshop.close()


@pytest.fixture(scope="module", params=[web.NodeHost, web.ChromiumHost], ids=["node", "chromium"])
def host(request: pytest.FixtureRequest, workshop: web.Workshop) -> Iterator[web.Host]:
    host = request.param(workshop)
    yield host
    host.close()


def test_the_host_says_what_it_is(host: web.Host) -> None:
    about = host.ask("about")
    assert {"node": "Node 2", "chromium": "Chrome/"}[host.name] in about["name"]
    assert about["isolated"]


@pytest.mark.parametrize(
    ("options", "like"),
    [
        ({"engine": "vm", "variant": "relaxed"}, "native"),
        ({"engine": "vm", "variant": "simd"}, "wasm:simd"),
        ({"engine": "vm", "disable": ["fused_sequences"]}, "native"),
        ({"engine": "inPython", "backend": "pyodide"}, "native"),
        ({"engine": "inPython", "backend": "numpy", "disable": ["scan_buffers"]}, None),
    ],
)
def test_runners(case: Case, host: web.Host, workshop: web.Workshop, options: dict, like: str | None) -> None:
    runner = web.WebRunner("there", case, host, workshop, warmUpMs=1, **options)
    results = runner.results()
    expected = backend_runner(case, like).results() if like else case.expected
    for result, other in zip(results, expected, strict=True):
        if like:
            assert result.tobytes() == other.tobytes()
        else:
            np.testing.assert_allclose(result, other, atol=1e-6)
    assert runner.seconds(3) > 0
    runner.close()


def test_errors_of_the_other_side_are_raised(host: web.Host) -> None:
    with pytest.raises(BackendError, match=host.name):
        host.ask("prepare", engine="vm", model="nowhere", plan="nowhere.rnn")
    assert host.ask("about")["name"]


def test_what_runs_on_a_host(host: web.Host, workshop: web.Workshop) -> None:
    everything = Wanted(browser=True, pyodide=True, peers=True)
    makers = web_makers(host, workshop, everything, has_pyodide=True, has_peer=True)
    assert list(makers) == [host.name, f"pyodide {host.name}", f"numpy {host.name}", f"ort-web {host.name}"]
    assert list(web_makers(host, workshop, everything, has_pyodide=False, has_peer=False)) == [host.name]


def test_an_engine_that_is_missing_is_told(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Benchmark(effort=Effort(0, 1))
    bench.makers["native"] = lambda case: backend_runner(case, "native")
    monkeypatch.setattr("webrnn.bench.web.ChromiumHost.__init__", _no_browser)
    with others(Wanted(browser=True), bench):
        bench.run({"gru": lambda: case}, lambda models, state: None)
    [model] = bench.models
    assert [result.runner for result in model.results] == ["native", "node"]
    assert all(result.seconds and result.same_bits for result in model.results)
    assert "chromium is not measured: there is none" in bench.notes
    assert list(bench.machine["engines"]) == ["node"]


def _no_browser(self: web.ChromiumHost, workshop: web.Workshop) -> None:
    raise BackendError("there is none")


@pytest.mark.parametrize("variant", ["relaxed", "simd"])
def test_small_weights_have_the_bits_of_native(host: web.Host, workshop: web.Workshop, variant: str) -> None:
    case = make_case("gru_32", sequence("GRU", 32, 5, seed=1), tolerance=0.25)
    for form in ("int8", "int16", "f16"):
        runner = web.WebRunner("there", case, host, workshop, "vm", weights=form, variant=variant, warmUpMs=1)
        like = "wasm:simd" if (form, variant) == ("f16", "simd") else "native"
        wanted = backend_runner(case, like, weights=form).results()
        assert [mine.tobytes() for mine in runner.results()] == [other.tobytes() for other in wanted]
        runner.close()
