"""The page that `make scan-study` writes, from made-up times."""

from __future__ import annotations

from bench import scan_study
from bench.scan_study_text import DECODER, FUSED, LAYERS, MODELS, NAIVE, ORT_WEB, REUSE, discussion
from webrnn.bench.benchmark import Benchmark
from webrnn.bench.models import BUILT_IN, FURTHER
from webrnn.bench.rounds import ModelResult, Result

WAYS = (FUSED, *(way for way in scan_study.NATIVE if way != FUSED), *scan_study.WASM, *scan_study.PYODIDE, ORT_WEB)


def model(name: str, ways: tuple[str, ...] = WAYS) -> ModelResult:
    """The n-th way takes n times as long as the first."""
    results = [Result(way, 1, 1, [number * 1e-4] * 5, 0.0, True) for number, way in enumerate(ways, 1)]
    return ModelResult(name, None, results)


def test_all_models_are_built_in_ones_and_have_titles():
    assert set(MODELS) == set(scan_study.TITLES) <= {*BUILT_IN, *FURTHER}


def test_the_page_has_all_figures():
    bench = Benchmark(models=[model(name) for name in MODELS], notes=["something to know"])
    page = scan_study.document(bench)
    for title in scan_study.TITLES.values():
        assert page.count(f"| {title} | ") == 2
    for way in WAYS:
        assert f" {way} |" in page
    assert "(not measured)" not in page
    assert "- something to know" in page
    naive = WAYS.index(NAIVE) + 1
    assert f"{naive * 100} ({naive}×)" in page


def test_what_was_not_measured_is_said_to_be():
    few = [model(name, (FUSED, REUSE)) for name in MODELS]
    text = discussion(few)
    assert "takes (not measured) times as long as the fused VM. A Scan" in text
    table = scan_study.figures([*few, model(DECODER, (FUSED,))], scan_study.NATIVE)
    assert table.splitlines()[0] == f"| model | {REUSE} | {FUSED} |"
    assert table.splitlines()[-1].endswith("| - | 100 |")


def test_steps_are_counted():
    text = discussion([model(name) for name in LAYERS])
    number = WAYS.index(REUSE) + 1
    assert f"a step takes {number * 2} µs at 128 units and {number} µs at 256" in " ".join(text.split())
