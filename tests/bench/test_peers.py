"""The plugins for the peer benchmark, called as its runners call them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from bench.peers import prepare, ratios
from pyodide_pkg import core

PLUGIN = Path(prepare.__file__).with_name("webrnn_native.py")
RUN = """
import fs from "node:fs";
const [models, plugin] = process.argv.slice(1);
const [entry] = JSON.parse(fs.readFileSync(`${models}/manifest.json`)).models;
const bytes = (file) => new Uint8Array(fs.readFileSync(`${models}/${file}`));
const env = { node: true, f32: async (file) => new Float32Array(bytes(file).buffer) };
const peer = (await import(plugin)).default;
await peer.init(env);
const results = await (await peer.create(entry, env)).run();
console.log(JSON.stringify({ name: peer.name, h_n: [...results.h_n] }));
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the benchmark's generator writes it, with one model: a GRU of one step."""
    folder = tmp_path_factory.mktemp("peers") / "models"
    folder.mkdir()
    rng = np.random.default_rng(2)
    shapes = {"W": (1, 12, 3), "R": (1, 12, 4), "B": (1, 24)}
    weights = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    node = helper.make_node("GRU", ["x", *weights, "", "h"], ["", "h_n"], hidden_size=4, linear_before_reset=1)
    graph = helper.make_graph(
        [node],
        "gru",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 3)),
         helper.make_tensor_value_info("h", TensorProto.FLOAT, (1, 1, 4))],
        [helper.make_tensor_value_info("h_n", TensorProto.FLOAT, (1, 1, 4))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "gru_t1.onnx").write_bytes(model.SerializeToString())
    feeds = {
        "x": rng.standard_normal((1, 1, 3), dtype=np.float32),
        "h": rng.standard_normal((1, 1, 4), dtype=np.float32),
    }
    for name, array in feeds.items():
        array.tofile(folder / f"{name}.bin")
    inputs = [{"name": name, "shape": array.shape, "file": f"{name}.bin"} for name, array in feeds.items()]
    entry = {"name": "gru_t1", "file": "gru_t1.onnx", "group": "t1", "inputs": inputs, "outputs": [{"name": "h_n"}]}
    (folder / "manifest.json").write_text(json.dumps({"models": [entry]}))
    return folder


@pytest.fixture(scope="module")
def case(models: Path) -> Any:
    [entry] = json.loads((models / "manifest.json").read_text())["models"]
    feeds = {row["name"]: np.fromfile(models / row["file"], "<f4").reshape(row["shape"]) for row in entry["inputs"]}
    return SimpleNamespace(name=entry["name"], path=str(models / entry["file"]), entry=entry, feeds=feeds)


@pytest.fixture(scope="module")
def expected(case: Any) -> np.ndarray:
    return webrnn.InferenceSession(case.path, backend="numpy").run(None, case.feeds)[0]


@pytest.mark.parametrize("peer", ["webrnn_c", "webrnn_py"])
def test_native_peers(case: Any, expected: np.ndarray, peer: str) -> None:
    spec = importlib.util.spec_from_file_location("webrnn_native", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plugin)
    runner = plugin.PEERS[peer](case)
    times = runner.loop(5)
    assert len(times) == 5
    assert all(time > 0 for time in times)
    np.testing.assert_allclose(runner.outputs()[0], expected, atol=1e-6)


@pytest.mark.parametrize(("file", "name"), [("webrnn.mjs", "webrnn"), ("webrnn_stream.mjs", "webrnn-stream")])
def test_web_peers(models: Path, expected: np.ndarray, tmp_path: Path, file: str, name: str) -> None:
    prepare.write(models, tmp_path / "web")
    plugin = (tmp_path / "web" / file).as_uri()
    command = [core.node(), "--input-type=module", "--eval", RUN, "--", str(models), plugin]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert answer["name"] == name
    np.testing.assert_allclose(answer["h_n"], expected.ravel(), atol=1e-6)


def test_ratios_pair_the_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def row(peer: str, model: str, *rounds: float) -> dict[str, Any]:
        return {"peer": peer, "model": model, "round_ms": rounds, "median_ms": rounds[1], "max_abs_err": 1e-7}

    results = {
        "meta": {"side": "native"},
        "results": [
            row("ours", "gru_128", 1, 20, 3),
            row("theirs", "gru_128", 2, 40, 30),
            row("ours", "gru_256", 1, 1, 1),
            {"peer": "theirs", "model": "gru_256", "error": "no such op"},
        ],
    }
    assert ratios.ratios(results, "ours", "theirs") == {"gru_128": 0.5, "gru_256": "theirs: no such op"}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert ratios.main([str(tmp_path / "results.json"), "ours", "theirs"]) == 0
    assert "0.500    0.70" in capsys.readouterr().out
    assert ratios.main([str(tmp_path / "results.json"), "theirs", "ours"]) == 1
    assert "above the bar" in capsys.readouterr().out
