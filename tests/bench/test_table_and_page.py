"""The tables and the page that results become."""

from __future__ import annotations

import json
import re

import pytest

from webrnn.bench import charts, html, table
from webrnn.bench.case import CELLS, WHOLE
from webrnn.bench.peaks import Bound
from webrnn.bench.rounds import ModelResult, Result

RUNNERS = ("native", "wasm:relaxed", "wasm:simd", "wasm:scalar", "numpy", "onnxruntime", "tract", "LiteRT", "node",
           "pyodide node", "numpy node", "ort-web node", "chromium", "pyodide chromium")  # fmt: skip


def result(runner, us, **options):
    return Result(runner, 1, 4, [us * 1e-6] * 9, 1e-7, **options)


def models(runners=RUNNERS):
    largest = [result(name, 12_345.6 * 10 ** min(index, 2), same_bits=index < 2) for index, name in enumerate(runners)]
    return [
        ModelResult("a_model_with_a_very_long_name", Bound(1e-5, "memory", 1, 1), largest),
        ModelResult("m", None, [result("native", 3.456), Result("tract", failure="Unimplemented <Loop>")]),
    ]


def test_tables_fit_and_hold_everything():
    text = table.plain(models())
    assert max(map(len, text.splitlines())) <= table.WIDTH
    for shown in ("relaxed", "pyodide chromium", "12,346", "1.23 s", "100x", "failed", "1235", "3.46"):
        assert shown in text
    rows = [line for line in text.splitlines() if line.startswith("a_model")]
    assert [line.count("=") for line in rows] == [1, 0, 0, 0]


def test_cells_and_whole_models_have_tables_of_their_own():
    cell = ModelResult("gru_128", None, [result("native", 3)], section=CELLS)
    whole = ModelResult("vad", None, [result("native", 5), result("tract", 7)], oracle="onnxruntime")
    lines = table.plain([whole, cell]).splitlines()
    assert [line for line in lines if line in (CELLS, WHOLE)] == [CELLS, WHOLE]
    assert lines.index(CELLS) < next(at for at, line in enumerate(lines) if line.startswith("gru_128"))
    assert "tract" not in "".join(lines[: lines.index(WHOLE)])
    assert WHOLE not in table.plain([whole])
    assert table.oracles([whole, cell]) == ["error: difference to the results of onnxruntime (vad)"]


def test_the_summary_says_who_is_ahead_and_the_worst():
    def model(name, **times):
        return ModelResult(name, None, [result(runner.replace("_", " "), us) for runner, us in times.items()])

    models = [
        model("a", native=1, onnxruntime=2, node=2, **{"ort-web_node": 8}),
        model("b", native=3, onnxruntime=2, node=4, **{"ort-web_node": 8}),
        model("c", native=3),
    ]
    assert table.summary(models) == [
        "native is ahead of onnxruntime on 1 of 2; time ÷ theirs: median 1.00, worst 1.50 (b)",
        "node is ahead of ort-web node on 2 of 2; time ÷ theirs: median 0.38, worst 0.50 (b)",
    ]
    assert table.summary([models[2]]) == []


def test_failures_are_told_once():
    both = [ModelResult(name, None, [Result("tract", failure="no Loop")]) for name in ("a", "b")]
    assert table.failures(both) == ["tract: no Loop (a, b)"]


def test_without_a_terminal_nothing_is_live(capsys):
    with table.Screen() as screen:
        assert not screen.is_live
        screen.show(models(), "round 1")
    assert capsys.readouterr().out == ""


def test_the_live_table_shows_what_the_plain_one_does(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    rich = pytest.importorskip("rich.console")
    shown = rich.Console(width=table.WIDTH, record=True)
    shown.print(table._rich(models(), "round 3"))
    text = shown.export_text()
    assert "round 3" in text
    plain = {word for line in table.plain(models()).splitlines() for word in line.split() if not word.startswith("--")}
    assert plain <= set(text.split())


def test_the_page_is_self_contained():
    data = {"date": "today", "notes": ["a <note>"], "models": [model.as_data() for model in models()]}
    page = html.page(data, models(), ["a processor & its limits"])
    assert "http" not in page
    assert not re.search(r"<(link|img|iframe|script src)", page)
    assert "@import" not in page
    assert "url(" not in page
    assert page.count("<svg") == 3
    assert "prefers-color-scheme: dark" in page
    assert "a &lt;note&gt;" in page
    assert "Unimplemented &lt;Loop&gt;" in page
    embedded = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded[1]) == data


def test_charts_have_a_bar_for_each_value():
    chart = charts.bars("t", ["a", "b"], {"x": [1.0, 20.0], "y": [None, 0.5]}, alone=False)
    assert chart.count("<title>") == 3
    assert chart.count("<rect") == 3 + 2
    assert "x, b: 20x" in chart
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="8"', chart)]
    assert widths[1] > widths[2] > widths[0] == 1


def test_a_chart_of_nothing():
    assert "<svg" in charts.bars("t", ["a"], {}, alone=True)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.23456e-6, "1.23"), (99.94e-6, "99.9"), (0.0999, "99,900"), (0.1, "100 ms"), (1.234, "1.23 s")],
)
def test_times(seconds, shown):
    assert table.time_text(seconds) == shown
