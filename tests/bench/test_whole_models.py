"""`make bench-models`: the table for README."""

from __future__ import annotations

import numpy as np

from bench import whole_models
from webrnn.bench.rounds import ModelResult, Result


def result(runner, us):
    return Result(runner, 1, 4, [us * 1e-6] * 9, 1e-7)


def test_the_table_has_our_time_and_the_ratio_of_each_place():
    times = {"native": 20, "onnxruntime": 40, "node": 30, "ort-web node": 90}
    failed = [Result(runner, failure="no") for runner in ("onnxruntime", "node")]
    models = [
        ModelResult("a", None, [result(*each) for each in times.items()]),
        ModelResult("b", None, [result("native", 5), *failed]),
    ]
    assert whole_models.readme_table(models).splitlines() == [
        "| model | native, us | ÷ onnxruntime | node, us | ÷ ort-web |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| a | 20.0 | 0.50 | 30.0 | 0.33 |",
        "| b | 5.00 | - | - | - |",
    ]


def test_a_case_is_what_onnxruntime_computes(tmp_path):
    case = whole_models.case_of("gtcrn_simple")
    assert case.oracle == "onnxruntime"
    feeds = {name: np.zeros_like(feed) for name, feed in case.feeds.items()}
    np.savez(tmp_path / "gtcrn_simple.npz", **feeds)
    other = whole_models.case_of("gtcrn_simple", tmp_path)
    assert not any(feed.any() for feed in other.feeds.values())
    assert [array.shape for array in other.expected] == [array.shape for array in case.expected]
