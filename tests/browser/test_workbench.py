"""What the page asks of Python, in this Python."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import stateful
from webrnn.bench.models import BUILT_IN

FILE = Path(__file__).resolve().parents[2] / "web_demo" / "python" / "workbench.py"


@pytest.fixture
def workbench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("workbench", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(workbench: ModuleType, name: str, buffers: list[bytes], **request: Any) -> tuple[dict[str, Any], list[bytes]]:
    text, parts = workbench.call(name, json.dumps(request), buffers)
    return json.loads(text), parts


def test_a_loop_before_and_after(workbench: ModuleType) -> None:
    opened, _ = call(workbench, "open", [BUILT_IN["gru_128"]()])
    (loop,) = [node for node in opened["before"]["nodes"] if node["kind"] == "loop"]
    assert [node["op"] for node in loop["blocks"][0]["nodes"] if node.get("leaves")] == ["Linear"]
    assert [item["op"] for item in opened["left"]] == ["Linear"]
    assert opened["report"]["flops"]["inside"] != opened["report"]["flops"]["outside"]
    assert opened["after"]["total"] < opened["before"]["total"]


def test_results_and_the_plan(workbench: ModuleType, tmp_path: Path) -> None:
    model = BUILT_IN["gru_128_t1"]()
    opened, _ = call(workbench, "open", [model])
    assert opened["states"] == [["h", "h_n"]]
    assert opened["unsure"] is None
    feeds = {port["name"]: np.full(port["shape"], 0.1, np.float32) for port in opened["inputs"]}
    rows = [{"name": name, "type": "float32", "shape": list(array.shape)} for name, array in feeds.items()]
    buffers = [array.tobytes() for array in feeds.values()]
    ran, parts = call(workbench, "run", buffers, feeds=rows)
    expected = webrnn.InferenceSession(model).run(None, feeds)
    assert parts == [array.tobytes() for array in expected]
    assert [output["shape"] for output in ran["outputs"]] == [list(array.shape) for array in expected]
    _, (plan,) = call(workbench, "plan", [], shapes={})
    (tmp_path / "m.rnn").write_bytes(plan)
    again = webrnn.InferenceSession(tmp_path / "m.rnn").run(None, feeds)
    assert [array.tobytes() for array in again] == parts


def test_an_amp_becomes_a_plan_and_the_open_model_stays(workbench: ModuleType, tmp_path: Path) -> None:
    call(workbench, "open", [BUILT_IN["gru_128_t1"]()])
    model = FILE.parents[1] / "amp" / "crunch.nam"
    found, (plan,) = call(workbench, "effect", [model.read_bytes()], file="crunch.nam")
    assert found == {"title": "webrnn crunch"}
    (tmp_path / "amp.rnn").write_bytes(plan)
    assert webrnn.InferenceSession(tmp_path / "amp.rnn").about["audio"]["kind"] == "filter"
    assert call(workbench, "plan", [], shapes={})[1]
    knobs = {"in_shape": [None, None, 2], "layers": [{"type": "activation", "activation": "tanh", "shape": [2]}]}
    for data in (json.dumps(knobs).encode(), BUILT_IN["gru_128_t1"](), b"{}"):
        refused, parts = call(workbench, "effect", [data], file="x")
        assert refused["error"]["kind"] == "ModelError"
        assert parts == []


def test_states_that_are_not_sure_are_told_and_not_carried(workbench: ModuleType) -> None:
    proto = stateful("LSTM")
    del proto.graph.output[2:]
    opened, _ = call(workbench, "open", [proto.SerializeToString()])
    assert opened["states"] == []
    assert "found h_in -> h_out" in opened["unsure"]
    assert "c_in looks like a state" in opened["unsure"]


def test_a_model_of_frames_becomes_an_audio_plan(workbench: ModuleType, tmp_path: Path) -> None:
    opened, _ = call(workbench, "open", [BUILT_IN["dtln_t1"]()])
    audio = opened["audio"]
    assert (audio["kind"], audio["frame"], audio["input"], audio["output"]) == ("filter", 257, "mag", "mask")
    _, (plan,) = call(workbench, "plan", [], audio={**audio, "hop": 64}, carry=dict(opened["states"]))
    (tmp_path / "m.rnn").write_bytes(plan)
    stream = webrnn.InferenceSession(tmp_path / "m.rnn").stream()
    assert stream.carry == dict(opened["states"])


def test_weights_of_each_form(workbench: ModuleType, tmp_path: Path) -> None:
    model = BUILT_IN["gru_128_t1"]()
    plain, _ = call(workbench, "open", [model])
    assert plain["weights"]["form"] == "f32"
    assert plain["weights"]["kept"] == []
    guessed = plain["weights"]["sizes"]
    for form in ("f16", "int16", "int8"):
        opened, _ = call(workbench, "open", [model], weights=form)
        weights = opened["weights"]
        assert weights["form"] == form
        assert weights["sizes"][form] == pytest.approx(guessed[form], rel=0.06)
        assert weights["sizes"]["f32"] == pytest.approx(guessed["f32"], rel=0.06)
        assert weights["bytes"][1] < 0.51 * weights["bytes"][0]
        _, (plan,) = call(workbench, "plan", [], shapes={})
        assert len(plan) == pytest.approx(weights["sizes"][form], abs=400)


def test_what_keeps_its_weights_says_why(workbench: ModuleType) -> None:
    opened, _ = call(workbench, "open", [stateful("LSTM", hidden=32).SerializeToString()], weights="int8")
    (kept,) = opened["weights"]["kept"]
    assert kept == {"name": "cell/from_x", "op": "Linear", "reason": "it has 512 weights, fewer than 1024"}
    assert opened["weights"]["nodes"] == 2
    reply, _ = call(workbench, "open", [stateful("LSTM").SerializeToString()], weights="int4")
    assert reply["error"]["kind"] == "OptionError"


@pytest.mark.parametrize(
    ("name", "buffers", "kind"),
    [("open", [b"no model"], "ModelError"), ("plan", [], "OptionError"), ("measure", [], "Unexpected")],
)
def test_errors_are_results(workbench: ModuleType, name: str, buffers: list[bytes], kind: str) -> None:
    reply, parts = call(workbench, name, buffers)
    assert reply["error"]["kind"] == kind
    assert reply["error"]["message"]
    assert parts == []


def test_timing(workbench: ModuleType) -> None:
    opened, _ = call(workbench, "open", [BUILT_IN["loop_accum"]()])
    rows = [{"name": port["name"], "type": "float32", "shape": port["shape"]} for port in opened["inputs"]]
    buffers = [np.ones(row["shape"], np.float32).tobytes() for row in rows]
    pace = {"warmUpMs": 1, "sliceMs": 1}
    for engine in ("pyodide", "numpy"):
        given = [BUILT_IN["loop_accum"](), *buffers]
        _, (found,) = call(workbench, "prepare", given, engine=engine, names=["acc_n"], pace=pace, feeds=rows)
        assert len(found) == 128 * 4
        measured, _ = call(workbench, "measure", [], engine=engine)
        assert measured["ms"] > 0
