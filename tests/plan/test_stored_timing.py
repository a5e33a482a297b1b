"""The timing of streams in plan files."""

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.backends import MAIN
from tests.engine.streams.timed_models import Averages
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.ir.timing import TimedOutput, Timing
from webrnn.plan import opcodes
from webrnn.plan.encode import compile_graph, encode_again
from webrnn.plan.file import PlanFile
from webrnn.plan.text import plan_text

KIND = Averages(width=4, left=1, right=2, stride=2)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "timed.rnn"
    assert KIND.session().export(path, carry=KIND.carry) == []
    return path


def with_timing(data: bytes, timing: Any) -> bytes:
    """A file that says this of its timing, whatever it is."""
    header = dict(zip(opcodes.HEADER, np.frombuffer(data, np.int32, len(opcodes.HEADER)).tolist(), strict=True))
    start = header["meta_offset"]
    text = json.dumps({**json.loads(data[start : start + header["meta_bytes"]]), "timing": timing}).encode()
    at = 4 * opcodes.HEADER.index("meta_bytes")
    return data[:at] + np.int32(len(text)).tobytes() + data[at + 4 : start] + text


def test_a_file_has_it(exported):
    assert PlanFile(exported.read_bytes()).timing == KIND.timing
    stream = webrnn.InferenceSession(exported).stream()
    assert (stream.delay, stream.stride) == (4, 2)
    x = KIND.feed(7)
    parts = [stream.step({"x": x[:, first : first + 2]})[0] for first in range(0, 14, 2)]
    assert np.array_equal(np.concatenate([*parts, stream.flush()[0]], 1), KIND.whole(x))
    again = exported.with_name("again.rnn")
    webrnn.InferenceSession(exported).export(again, carry="auto")
    assert PlanFile(again.read_bytes()).timing == KIND.timing


def test_other_states_have_no_timing(exported):
    session = webrnn.InferenceSession(exported)
    assert session.stream(KIND.carry).timing == KIND.timing
    assert session.stream({"history": "history.next"}).timing is None
    file = PlanFile(exported.read_bytes())
    assert PlanFile(encode_again(file, [], None)).timing is None
    assert PlanFile(encode_again(file, None, {"a": 1})).timing == KIND.timing


def test_a_plan_for_given_shapes_is_flushed_by_steps_of_its_size(tmp_path):
    kind = Averages(width=6, left=1, right=5, stride=2, named=False)
    path = tmp_path / "fixed.rnn"
    kind.session().export(path, {"x": [1, 4, 3]}, carry=kind.carry)
    stream, x = webrnn.InferenceSession(path).stream(), kind.feed(6)
    parts = [stream.step({"x": x[:, first : first + 4]})[0] for first in range(0, 12, 4)]
    assert np.array_equal(np.concatenate([*parts, stream.flush()[0]], 1), kind.whole(x))
    assert stream._frames.flush_steps == 3
    data = path.read_bytes()
    wrong = with_timing(data, {**PlanFile(data).meta["timing"], "stride": 3})
    with pytest.raises(webrnn.ShapeError, match="'x' has 4 frames along axis 1; a step takes a positive multiple of 3"):
        webrnn.InferenceSession(wrong).stream().step({"x": x[:, :4]})


def test_people_can_read_it(exported):
    text = plan_text(exported.read_bytes())
    assert "a step takes a multiple of 2 frames, results are 4 frames behind, a flush feeds 4 frames" in text


def changed(path: str, value: Any) -> Any:
    *keys, last = path.split(".")

    def change(timing: Any) -> None:
        for key in keys:
            timing = timing[int(key) if key.isdigit() else key]
        timing[last] = value

    return change


DAMAGES = [
    *(changed("stride", value) for value in (0, -2, 0.5, "2", None, True, 2**31, [])),
    *(changed("inputs", value) for value in ([], {}, None, [None], 3, "x", [[]], [{"name": "x"}])),
    *(changed("inputs.0.name", value) for value in ("q", "history", None, [], "y")),
    *(changed("inputs.0.axis", value) for value in (3, -1, None, 1.5, "1", True)),
    *(changed("outputs", value) for value in ({}, None, [None], 3, "y")),
    *(changed("outputs.0.name", value) for value in ("q", "history.next", None, {}, "x")),
    *(changed("outputs.0.axis", value) for value in (3, -1, None)),
    *(changed("outputs.0.rate", value) for value in (0, -1, None, 2**31)),
    *(changed("outputs.0.delay", value) for value in (-1, None, 2**31, 1.5)),
    *(changed("outputs.0.extra", value) for value in (-3, None, 2**31, "0")),
    *(changed("rest", value) for value in (-1, None, 2**31, "1")),
    *(changed("end", value) for value in ("q", "x", "history", "time.position", [], 0)),
    *(changed("position", value) for value in ("q", "x", "history", "time.end", None, [])),
    lambda timing: timing["inputs"].append(timing["inputs"][0]),
    lambda timing: timing.pop("end"),
    lambda timing: timing.pop("position"),
]


def test_damaged_metadata_are_refused(exported):
    data = exported.read_bytes()
    timing = PlanFile(data).meta["timing"]
    assert PlanFile(with_timing(data, timing)).timing == KIND.timing
    for damage in DAMAGES:
        damaged = deepcopy(timing)
        damage(damaged)
        with pytest.raises(webrnn.PlanError, match="the metadata of time are damaged"):
            PlanFile(with_timing(data, damaged))
    for other in (0, False, 5, "x", [], {}, [timing]):
        with pytest.raises(webrnn.PlanError, match="the metadata of time are damaged"):
            PlanFile(with_timing(data, other))
    assert PlanFile(with_timing(data, None)).timing is None


@pytest.mark.parametrize(
    ("rate", "delay", "extra"), [(1, 2**31 - 1, 0), (7, 3, 100), (2**31 - 1, 1, 2**31 - 1), (1, 5, -5)]
)
def test_metadata_that_promise_frames_that_there_are_not_do_no_harm(exported, rate, delay, extra):
    data = exported.read_bytes()
    timing = deepcopy(PlanFile(data).meta["timing"])
    timing["outputs"][0].update(rate=rate, delay=delay, extra=extra)
    stream = webrnn.InferenceSession(with_timing(data, timing)).stream()
    for n in (1, 3, 2):
        stream.step({"x": KIND.feed(n)})
        try:
            stream.flush()
        except webrnn.Error:
            stream.step({"x": KIND.feed(n)})


def test_a_size_that_is_a_multiple_is_what_hosts_see(tmp_path):
    """Frames of 2*m: the plan takes their number, and m follows."""
    b = GraphBuilder("pairs")
    x = b.input("x", DType.FLOAT, (2 * Symbol("m"), Symbol("n"), 1))
    b.graph.outputs = [b.op("ReduceMax", b.op("Reshape", x, b.ints(-1, 2, 2)), b.ints(1), keepdims=0)]
    session = webrnn.InferenceSession(b.graph, backend=MAIN)
    session.export(tmp_path / "pairs.rnn")
    file = PlanFile((tmp_path / "pairs.rnn").read_bytes())
    assert file.symbols == ["2*m", "n"]
    loaded = webrnn.InferenceSession(tmp_path / "pairs.rnn")
    numbers = np.arange(12, dtype=np.float32).reshape(6, 2, 1)
    assert np.array_equal(loaded.run(None, {"x": numbers})[0], numbers[1::2, :, 0])
    for each in (session, loaded):
        with pytest.raises(webrnn.ShapeError):
            each.run(None, {"x": numbers[:5]})


def test_a_size_that_is_also_there_by_itself_stays_a_name():
    b = GraphBuilder("both")
    x = b.input("x", DType.FLOAT, (2 * Symbol("m"),))
    y = b.input("y", DType.FLOAT, (Symbol("m"),))
    b.graph.outputs = [b.op("Concat", x, y, axis=0)]
    assert PlanFile(compile_graph(b.graph)).symbols == ["m"]


def test_timing_of_what_has_no_states():
    timing = Timing(2, {"x": 0}, {"y": TimedOutput(0, 1)})
    assert (timing.delay, timing.warm_up, timing.flush_strides) == (0, 0, 0)
