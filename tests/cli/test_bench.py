import json
import sys
from functools import cache

import numpy as np
import onnx.parser
import pytest

import webrnn
from tests.engine.stream_models import hidden_state, stateful
from webrnn.bench.case import make_case
from webrnn.bench.models import streaming_gru
from webrnn.bench.onnx_file import GraphFile
from webrnn.bench.peaks import measure_limits
from webrnn.cli import main
from webrnn.errors import BackendError
from webrnn.web.folders import CHECKOUT

QUICK = ["--seconds", "0.01", "--depth", "1,3"]


@pytest.fixture(autouse=True)
def limits_are_measured_once(monkeypatch):
    monkeypatch.setattr("webrnn.bench.benchmark.measure_limits", measured_limits)


@cache
def measured_limits():
    return measure_limits()


def bench(*arguments):
    return main(["bench", "--stream", *QUICK, *map(str, arguments)])


def rows_of(file):
    return {(row["way"], row["depth"]): row for row in json.loads(file.read_text())["rows"]}


def test_the_built_in_model_is_what_onnx_expects():
    proto = onnx.load_from_string(streaming_gru(6, 8))
    onnx.checker.check_model(proto, full_check=True)
    ort = pytest.importorskip("onnxruntime").InferenceSession(streaming_gru(6, 8), providers=["CPUExecutionProvider"])
    feeds = {"x": np.ones((3, 2, 6), np.float32), "h_in": np.zeros((1, 2, 8), np.float32)}
    for ours, theirs in zip(
        webrnn.InferenceSession(streaming_gru(6, 8)).run(None, feeds), ort.run(None, feeds), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_built_in_model_on_all_backends(tmp_path, capsys):
    assert bench("--backend", "native,wasm:relaxed,numpy", "--json", tmp_path / "a.json", "--frame-ms", 10) == 0
    rows = rows_of(tmp_path / "a.json")
    options = measured_with(json.loads((tmp_path / "a.json").read_text()))
    assert (options["mode"], options["frame_ms"], options["carry"]) == ("--stream", 10, "auto")
    for backend in ("native", "wasm:relaxed"):
        assert {(f"{backend} stream", 1), (f"{backend} pool", 1), (f"{backend} pool", 3)} <= rows.keys()
    assert ("numpy pool, one by one", 3) in rows
    assert {("onnxruntime, one by one", 3), ("onnxruntime, batched by hand", 3)} <= rows.keys()
    for row in rows.values():
        assert 0 < row["p50"] <= row["p99"] <= row["p999"] <= row["worst"]
        assert row["ticks"] >= 50
        assert row["kib_per_tick"] > 0
    printed = capsys.readouterr().out
    assert "× realtime" in printed
    assert "numpy: there is no plan that takes any number of streams" in printed


def test_a_model_with_hidden_states(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(hidden_state("GRU").SerializeToString())
    assert bench(tmp_path / "m.onnx", "--carry", "internal", "--backend", "native", "--size", "steps=4") == 0
    printed = capsys.readouterr().out
    assert "native pool" in printed
    assert "it cannot carry them" in printed


def test_plan_files(tmp_path, capsys):
    webrnn.InferenceSession(streaming_gru(4, 5)).export(tmp_path / "m.rnn")
    assert bench(tmp_path / "m.rnn", "--backend", "native") == 0
    printed = capsys.readouterr().out
    assert "native pool, one by one" in printed
    assert "onnxruntime does not take this model" in printed


def test_pairs_by_name_and_json_to_stdout(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(stateful("LSTM", batch=1).SerializeToString())
    assert bench(tmp_path / "m.onnx", "--carry", "h_in=h_out,c_in=c_out", "--backend", "native", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    ways = {row["way"] for row in data["rows"]}
    assert ways == {"native stream", "native pool", "onnxruntime, one by one"}  # a batch of 1 is batched by us only


def test_compare(tmp_path, capsys):
    file = tmp_path / "old.json"
    bench("--backend", "native", "--no-onnxruntime", "--json", file)
    data = json.loads(file.read_text())
    for row in data["rows"]:
        row["p50"] /= 1000
    file.write_text(json.dumps(data))
    capsys.readouterr()
    assert bench("--backend", "native", "--no-onnxruntime", "--compare", file) == 0
    printed = capsys.readouterr().out.split("new ÷ old")[1].splitlines()[2:]
    assert [line.split()[:3] for line in printed] == [
        ["native", "stream", "1"],
        ["native", "pool", "1"],
        ["native", "pool", "3"],
    ]
    assert all(float(line.split()[3]) > 50 for line in printed)


def test_without_onnxruntime(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert bench("--backend", "native") == 0
    assert "onnxruntime is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depth", "1,x"], "'1,x' is not a list of numbers"),
        (["--depth", "0"], "'0' is not a list of numbers"),
        (["--compare", "nowhere.json"], "has no figures"),
        (["--carry", "manual"], "is not of the form NAME=VALUE"),
        (["--backend", "cuda"], "backend 'cuda'"),
        (["--against", "nowhere"], "--against nowhere: that is neither the root of a checkout"),
        (["--ab", "nothing"], "no such pass or switch"),
    ],
)
def test_wrong_options(arguments, message, capsys):
    assert bench(*arguments) == 1
    assert message in capsys.readouterr().err


def test_streams_are_of_one_model(capsys):
    assert bench("a.onnx", "b.onnx") == 1
    assert "one model" in capsys.readouterr().err


def measured_with(data):
    assert data["revision"].keys() == {"version", "commit", "dirty", "python", "kernels"}
    return data["options"]


def test_switches_of_streams(tmp_path, capsys):
    quick = ["--seconds", "0", "--rounds", "1", "--depth", "2", "--json", str(tmp_path / "ab.json")]
    assert main(["bench", "--stream", "--ab", "fused_sequences,prune_branches", *quick]) == 0
    printed = capsys.readouterr().out
    assert "off ÷ on" in printed
    assert "same program" in printed
    data = json.loads((tmp_path / "ab.json").read_text())
    assert data["kind"] == "webrnn bench --stream --ab"
    assert [(row["switch"], row["way"]) for row in data["rows"][1:3]] == [
        ("fused_sequences", "native pool"),
        ("prune_branches", "native stream"),
    ]
    assert measured_with(data)["rounds"] == 1
    assert measured_with(data)["carry"] == "auto"
    assert main(["bench", "--stream", "--ab", "help"]) == 0


def test_two_revisions(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(streaming_gru(4, 5))
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    quick = ["--seconds", "0", "--rounds", "1", "--against", str(CHECKOUT), "--json", str(tmp_path / "a.json")]
    models = ["gru_128_t1", str(tmp_path / "m.onnx"), str(tmp_path / "bad.onnx")]
    assert main(["bench", *models, *quick, "--size", "steps=3"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].startswith("this:  ")
    assert f"({CHECKOUT})" in printed.splitlines()[1]
    assert "both revisions are the same code" in printed
    assert "this: ModelError" in printed
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["against"]["revision"] == data["revision"]
    assert measured_with(data)["against"] == str(CHECKOUT)
    assert [(row["model"], row["way"], row["difference"]) for row in data["rows"][:2]] == [
        ("gru_128_t1", "native", 0.0),
        ("m", "native", 0.0),
    ]
    assert data["rows"][2]["failures"]


def test_ticks_of_two_revisions(capsys):
    quick = ["--seconds", "0", "--rounds", "1", "--depth", "2", "--against", str(CHECKOUT), "--json", "-"]
    assert main(["bench", "--stream", *quick]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kind"] == "webrnn bench --stream --against"
    assert [(row["way"], row["depth"], row["difference"]) for row in data["rows"]] == [
        ("native stream", 1, 0.0),
        ("native pool", 2, 0.0),
    ]
    for row in data["rows"]:
        for times in row["us"].values():
            assert 0 < times["p50"] <= times["p99"] <= times["worst"]


def test_a_model_that_has_no_streams_is_told_of_both_revisions(tmp_path, capsys):
    graph = GraphFile("no states")
    graph.node("Neg", ["x"], ["y"])
    (tmp_path / "m.onnx").write_bytes(graph.model({"x": [1]}, {"y": [1]}))
    arguments = ["--seconds", "0", "--rounds", "1", "--against", str(CHECKOUT)]
    assert main(["bench", "--stream", str(tmp_path / "m.onnx"), *arguments]) == 0
    assert "this: ModelError" in capsys.readouterr().out


def test_ticks_in_node(monkeypatch, capsys):
    def missing(self, workshop):
        raise BackendError("there is none")

    monkeypatch.setattr("webrnn.bench.web.ChromiumHost.__init__", missing)
    monkeypatch.setattr("webrnn.bench.others.modules_folder", lambda given: None)
    assert bench("--browser", "--peers", "--backend", "native", "--no-onnxruntime", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    node = next(row for row in data["rows"] if row["way"] == "node stream")
    assert 0 < node["p50"] <= node["p99"] <= node["worst"]
    assert node["kib_per_tick"] is None
    assert list(data["machine"]["engines"]) == ["node"]
    assert "chromium is not measured: there is none" in data["notes"]
    assert any(note.startswith("onnxruntime-web is not installed") for note in data["notes"])


def models_of(data):
    return {model["model"]: {row["runner"]: row for row in model["results"]} for model in data["models"]}


def times(*arguments):
    return main(["bench", "--seconds", "0", "--rounds", "2", *map(str, arguments)])


def test_times_of_built_in_models(tmp_path, capsys):
    files = ["--json", tmp_path / "new.json", "--html", tmp_path / "new.html"]
    assert times("rnn_128", "gru_128_t1", "loop_accum", *files) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 120
    for shown in ("x limit", "GFLOP/s", "numpy 2", "relaxed", "scalar"):
        assert shown in printed
    data = json.loads((tmp_path / "new.json").read_text())
    assert (data["kind"], data["format"]) == ("webrnn bench", 1)
    assert {"processor", "cores", "features", "builds", "versions", "load_before", "load_after"} <= data[
        "machine"
    ].keys()
    assert data["limits"]["gflops"] > 0
    assert measured_with(data)["rounds"] == 2
    models = models_of(data)
    assert list(models) == ["rnn_128", "gru_128_t1", "loop_accum"]
    for rows in models.values():
        assert list(rows) == ["native", "wasm:relaxed", "wasm:simd", "wasm:scalar", "numpy"]
        for row in rows.values():
            assert 0 < row["min_us"] <= row["median_us"]
            assert len(row["round_us"]) == 2
            assert row["error"] < 1e-5
            assert row["times_bound"] > 0
        assert rows["native"]["ratio"]["median"] == 1
        assert rows["wasm:relaxed"]["same_bits"] is True
        assert rows["numpy"]["error"] == 0
    page = (tmp_path / "new.html").read_text()
    assert page.count("<svg") == 3
    assert "http" not in page
    assert times("rnn_128", "--backend", "native", "--compare", tmp_path / "new.json") == 0
    assert "of 1" in capsys.readouterr().out.splitlines()[-1]


def test_times_of_a_file(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(streaming_gru(4, 5))
    assert times(tmp_path / "m.onnx", "--size", "steps=7", "--backend", "wasm:simd,numpy", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    [(name, rows)] = models_of(data).items()
    assert name == "m"
    assert list(rows) == ["wasm:simd", "numpy"]
    assert rows["numpy"]["ratio"]["to"] == "wasm:simd"


def test_inputs_and_expected_results_from_a_file(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(streaming_gru(4, 5))
    case = make_case("m", str(tmp_path / "m.onnx"), {"steps": 3})
    arrays = {f"in__{name}": 2 * feed for name, feed in case.feeds.items()}
    np.savez(tmp_path / "m.io.npz", **arrays, **{f"out__{name}": np.zeros((3, 1)) for name in case.outputs})
    inputs = ["--inputs", tmp_path, "--backend", "native", "--json", "-"]
    assert times(tmp_path / "m.onnx", "gru_128_t1", *inputs) == 0
    data = json.loads(capsys.readouterr().out)
    assert "wrong results: off by inf" in models_of(data)["m"]["native"]["failure"]
    assert [model["section"] for model in data["models"]] == ["whole models", "cells"]
    np.savez(tmp_path / "m.io.npz", **arrays)
    assert times(tmp_path / "m.onnx", *inputs) == 0
    assert models_of(json.loads(capsys.readouterr().out))["m"]["native"]["error"] < 1e-5
    assert times(tmp_path / "m.onnx", "--inputs", tmp_path / "none.npz", "--backend", "native") == 1
    assert "none.npz" in capsys.readouterr().err


def test_times_of_a_plan_file(tmp_path, capsys):
    webrnn.InferenceSession(streaming_gru(4, 5)).export(tmp_path / "m.rnn")
    assert times(tmp_path / "m.rnn", "--backend", "native,wasm:relaxed,numpy", "--json", "-") == 0
    [rows] = models_of(json.loads(capsys.readouterr().out)).values()
    assert rows["wasm:relaxed"]["same_bits"]
    assert rows["numpy"]["failure"]


def test_a_model_that_cannot_be_run_does_not_stop_the_others(tmp_path, capsys):
    graph = GraphFile("seven")
    graph.constant("shape", np.array([1, 7], np.int64))
    graph.node("Exp", ["x"], ["e"])
    graph.node("NonZero", ["e"], ["places"])
    graph.node("Reshape", ["places", "shape"], ["y"])
    (tmp_path / "m.onnx").write_bytes(graph.model({"x": ["samples"]}, {"y": [1, 7]}))
    assert times(tmp_path / "m.onnx", "--backend", "native") == 1
    assert "try others: --size samples=" in capsys.readouterr().err
    assert times(tmp_path / "m.onnx", "loop_accum", "--backend", "native", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    assert list(models_of(data)) == ["loop_accum"]
    assert any("--size samples=" in note for note in data["notes"])
    assert times(tmp_path / "m.onnx", "--backend", "native", "--size", "samples=7") == 0


def test_peers_that_are_missing_are_named(monkeypatch, capsys):
    monkeypatch.setattr("webrnn.bench.peers.find_spec", lambda name: None)
    assert times("loop_accum", "--backend", "native", "--peers") == 0
    printed = capsys.readouterr().out
    for name in ("onnxruntime", "tract", "LiteRT"):
        assert f"{name} is not installed" in printed


def test_onnxruntime_beside_native(capsys):
    pytest.importorskip("onnxruntime")
    assert times("gru_128_t1", "loop_accum", "--backend", "native", "--peers", "--json", "-") == 0
    for rows in models_of(json.loads(capsys.readouterr().out)).values():
        assert rows["onnxruntime"]["error"] < 1e-5
        assert rows["onnxruntime"]["min_us"] > 0


def test_switches(tmp_path, capsys):
    assert times("--ab", "fused_sequences,hoist_invariants", "conditioned_128", "--json", tmp_path / "ab.json") == 0
    assert "off ÷ on" in capsys.readouterr().out
    data = json.loads((tmp_path / "ab.json").read_text())
    assert measured_with(data)["ab"] == "fused_sequences,hoist_invariants"
    rows = data["rows"]
    assert [row["switch"] for row in rows] == ["fused_sequences", "hoist_invariants"]
    assert all(row["results"][1]["same_bits"] for row in rows)
    assert main(["bench", "--ab", "help"]) == 0
    assert "scan_buffers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.onnx"], "no file, and no built-in model"),
        (["rnn_128", "--compare", "nowhere.json"], "has no figures"),
        (["--ab", "nothing"], "no such pass or switch"),
    ],
)
def test_wrong_options_for_times(arguments, message, capsys):
    assert times(*arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("types", "node"),
    [("string[n] x) => (string[n] y", "Identity(x)"), ("float[n] x) => (seq(float[n]) y", "SequenceConstruct(x)")],
)
def test_results_that_are_no_numbers(types, node, tmp_path, capsys):
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({types}) {{ y = {node} }}'
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert main(["bench", str(tmp_path / "m.onnx"), "--seconds", "0", "--rounds", "1", "--backend", "numpy"]) == 1
    assert "results are compared as numbers" in capsys.readouterr().err
