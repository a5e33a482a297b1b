"""`make bench-exports`: what is read, what is said; times are made up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench import exports
from bench.exports import Timing
from webrnn.bench.models import sequence


@pytest.fixture
def folder(tmp_path):
    """As tests/exports/write.py writes one."""
    from webrnn.bench.case import make_case

    case = make_case("gru", sequence("GRU", 8, 5, seed=1))
    here = tmp_path / "gru.trace"
    here.mkdir()
    (here / "model.onnx").write_bytes(case.data())
    (here / "about.json").write_text(json.dumps({"outputs": case.outputs, "tolerance": 1e-4, "states": {}}))
    arrays = {f"0/in/{name}": feed for name, feed in case.feeds.items()}
    arrays |= {f"0/out/{name}": array for name, array in zip(case.outputs, case.expected, strict=True)}
    np.savez(here / "runs.npz", **arrays)
    for name, about in (("no.trace", {"not_exportable": "it is"}), ("own.trace", {"outputs": []})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "about.json").write_text(json.dumps(about))
    return tmp_path


def test_models_are_timed_and_others_left_out(folder):
    seen = []
    found, failed = exports.measured(sorted(folder.iterdir()), 2, seen.append)
    assert [each.name for each in found] == ["gru.trace"]
    assert not failed
    assert seen == found
    assert found[0].ours > 0
    assert found[0].theirs > 0
    assert bool(found[0].cause) == (found[0].ratio > 1)


def test_a_cause_is_an_instruction_of_its_category(folder):
    cause, detail = exports.cause_of(exports.case_of(folder / "gru.trace"))
    category, _, name = cause.partition(": ")
    assert category in ("matrix", "cell", "control")
    assert name in detail


def test_a_model_that_fails_is_told(folder):
    (folder / "gru.trace" / "model.onnx").write_bytes(b"nothing")
    found, failed = exports.measured([folder / "gru.trace"], 2, lambda each: None)
    assert not found
    assert failed[0].startswith("gru.trace: ModelError")


def row(name, ratio, cause=""):
    return Timing(name, 10 * ratio, 10, ratio, cause)


def test_the_report_says_what_is_slower_and_why():
    found = [row("a.trace", 0.5), row("b.script", 1.2, "copy: copy"), row("c.dynamo.int8", 2.5, "matrix: gemm")]
    text = exports.report(found, ["d.trace: ModelError: no"])
    assert (
        "torch: 1 of 2 slower than onnxruntime (50.0%), 0 by more than 1.3, median 0.85, worst 1.20 (b.script)" in text
    )
    assert "quantized: 1 of 1" in text
    assert "by cause: copy: copy 1" in text
    assert "d.trace: ModelError: no" in text
    assert "a.trace" not in text


def test_the_bars_are_those_of_pytorch_in_float32():
    many = [row(f"{index}.trace", 0.5) for index in range(20)]
    assert not exports.misses([*many, row("x.trace", 1.2)])
    assert exports.misses([*many, row("x.trace", 1.2), row("y.trace", 1.1)])
    assert exports.misses([*many, row("x.trace", 1.4)])
    assert not exports.misses([*many, row("x.trace.int8", 9), row("y.tf2onnx", 9), row("z.trace.float16", 9)])
