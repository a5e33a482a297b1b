"""Ticks of streams in Node and Chromium: their results, and that they can be timed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import webrnn
from tests.engine.stream_models import hidden_state
from webrnn.bench import web
from webrnn.bench.models import streaming_gru
from webrnn.bench.onnx_file import GraphFile
from webrnn.bench.others import Wanted, stream_hosts
from webrnn.bench.stream_web import WebTicks, Written, add_hosts, write_stream
from webrnn.bench.streams import StreamBench
from webrnn.errors import BackendError

QUICK = {"warmUpMs": 1}


@pytest.fixture(scope="module")
def workshop() -> Iterator[web.Workshop]:
    workshop = web.Workshop()
    yield workshop
    workshop.close()


@pytest.fixture(scope="module", params=[web.NodeHost, web.ChromiumHost], ids=["node", "chromium"])
def host(request: pytest.FixtureRequest, workshop: web.Workshop) -> Iterator[web.Host]:
    host = request.param(workshop)
    yield host
    host.close()


def prepared(model, carry="auto", **sizes) -> StreamBench:
    bench = StreamBench(model, carry, sizes, {})
    bench.prepare("native")
    return bench


def test_ticks_have_the_bits_of_native_and_are_timed(host, workshop):
    stream = write_stream(workshop, prepared(streaming_gru(4, 8), steps=3))
    ticks = WebTicks(host, "vmStream", stream, variant="relaxed", **QUICK)
    assert [array.tobytes() for array in ticks.results] == [array.tobytes() for array in stream.expected]
    seconds = ticks.ticks(7)
    assert len(seconds) == 7
    assert min(seconds) >= 0
    wrong = Written(stream.name, [array + 1 for array in stream.expected])
    with pytest.raises(BackendError, match="wrong results"):
        WebTicks(host, "vmStream", wrong, **QUICK)


def test_hidden_states_and_plan_files(host, workshop, tmp_path):
    webrnn.InferenceSession(streaming_gru(4, 5)).export(tmp_path / "m.rnn")
    models = (hidden_state("GRU").SerializeToString(), "internal"), (str(tmp_path / "m.rnn"), {"h_in": "h_out"})
    for model, carry in models:
        bench = prepared(model, carry)
        add_hosts(bench, workshop, [host], has_peer=True)
        assert bench.notes == [f"ort-web {host.name}: the states of this model are not inputs that can be fed back"]
        assert [runner.way for runner in bench.runners] == [f"{host.name} stream"]
        assert len(bench.run(bench.runners[0], 3)) == 3


class NoHost:
    name = "nowhere"

    def ask(self, what, **request):
        raise BackendError("it is broken")


def test_a_host_that_cannot_is_told(workshop):
    bench = prepared(streaming_gru(4, 5))
    add_hosts(bench, workshop, [NoHost()], has_peer=True)
    assert bench.runners == []
    assert bench.notes == [
        "nowhere stream is not measured: it is broken",
        "ort-web nowhere, by hand is not measured: it is broken",
    ]


def test_a_model_without_a_plan_is_told(workshop, monkeypatch):
    bench = prepared(streaming_gru(4, 5))

    def refuse(self, *arguments, **options):
        raise webrnn.PlanError("there is no plan")

    monkeypatch.setattr(webrnn.InferenceSession, "export", refuse)
    add_hosts(bench, workshop, [NoHost()], has_peer=False)
    assert bench.notes == ["Node and Chromium are not measured: there is no plan"]


def scaled_sum() -> StreamBench:
    """What is summed up is scaled by an input that is fixed."""
    graph = GraphFile("scaled")
    graph.node("Mul", ["x", "gain"], ["scaled"])
    graph.node("Add", ["scaled", "sum_in"], ["sum_out"])
    graph.node("Neg", ["sum_out"], ["y"])
    sides = {"x": [1, 4], "gain": [1], "sum_in": [1, 4]}, {"y": [1, 4], "sum_out": [1, 4]}
    bench = StreamBench(graph.model(*sides), "auto", {}, {"gain": 3})
    bench.prepare("native")
    return bench


def test_inputs_that_are_fixed_are_fed_to_others(workshop):
    written = write_stream(workshop, scaled_sum())
    description = json.loads((workshop.folder / "models" / f"{written.name}.json").read_text())
    [gain] = description["fixed"]
    assert (gain["name"], gain["type"], gain["shape"]) == ("gain", "float32", [1])
    assert [row["name"] for row in description["states"]] == ["sum_in"]
    assert description["pairs"] == {"sum_in": "sum_out"}


PEER = """
export const env = { wasm: {}, versions: { web: "0" } };
export class Tensor {
  constructor(type, data, dims) { Object.assign(this, { type, data, dims }); }
}
export const InferenceSession = {
  create: async () => ({
    async run({ x, gain, sum_in, ...others }) {
      if (Object.keys(others).length) throw new Error(`fed ${Object.keys(others)}`);
      const sum = x.data.map((value, i) => value * gain.data[0] + sum_in.data[i]);
      return { y: new Tensor("float32", sum.map((value) => -value)), sum_out: new Tensor("float32", sum) };
    },
    release() {},
  }),
};
"""


def test_states_are_fed_back_to_onnxruntime_web_by_hand(tmp_path):
    folder = tmp_path / "onnxruntime-web" / "dist"
    folder.mkdir(parents=True)
    (folder / "ort.wasm.min.mjs").write_text(PEER)
    workshop = web.Workshop(modules=tmp_path)
    host = web.NodeHost(workshop)
    stream = write_stream(workshop, scaled_sum())
    assert len(WebTicks(host, "onnxruntimeWebStream", stream, **QUICK).ticks(5)) == 5
    host.close()
    workshop.close()


def test_nothing_is_started_unless_it_is_wanted():
    bench = StreamBench(streaming_gru(4, 5), "auto", {}, {})
    with stream_hosts(Wanted(), bench) as engines:
        assert engines == {}
    assert bench.notes == []
