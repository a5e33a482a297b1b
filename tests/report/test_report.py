import numpy as np
import pytest

import webrnn
from tests.onnx.models import recurrent
from tests.passes.differential import ops
from tests.passes.plain_cells import written_plainly
from webrnn.onnx.reader import read_model
from webrnn.passes import ALL_PASSES


@pytest.fixture
def data():
    """A GRU that is read as plain ops, so that passes have something to do."""
    with written_plainly():
        yield recurrent("GRU").SerializeToString()


def test_before_and_after_are_the_graphs(data, tmp_path):
    (tmp_path / "m.onnx").write_bytes(data)
    report = webrnn.optimize(tmp_path / "m.onnx")
    assert report.before.nodes == sum(ops(read_model(data)).values())
    assert report.after.nodes == sum(report.after.ops.values()) < report.before.nodes
    assert report.after.ops["webrnn.Scan"] == 1
    assert isinstance(report, webrnn.Report)
    assert report.reached_fixpoint


def test_one_step_for_each_pass_in_order(data):
    report = webrnn.optimize(data)
    assert [step.name for step in report.steps] == [step.name for step in ALL_PASSES]
    assert report.seconds == pytest.approx(sum(step.seconds for step in report.steps))
    hoisting = next(step for step in report.steps if step.name == "hoist_sequences")
    assert hoisting.count == len(hoisting.fired) >= 2
    assert "MatMul from_x out of cell" in hoisting.fired


def test_the_product_with_the_input_is_seen_to_leave_the_loop(data):
    report = webrnn.optimize(data)
    product = 2 * 3 * 2 * 4 * 15  # 3 steps, 2 rows, 4 inputs to 3 gates of 5
    assert report.before.outside.flops == 0
    assert report.after.outside.flops >= product
    assert report.after.inside.flops <= report.before.inside.flops - product


def test_disabled_passes_are_no_steps(data):
    names = [step.name for step in webrnn.optimize(data, disable=["hoist_sequences"]).steps]
    assert "hoist_sequences" not in names
    assert webrnn.optimize(data, disable=["all"]).steps == []
    with pytest.raises(webrnn.OptionError):
        webrnn.optimize(data, disable=["nothing"])


def test_declines_are_those_of_the_graph_at_the_end():
    report = webrnn.optimize(recurrent("GRU").SerializeToString(), disable=["hoist_sequences"])
    for step in report.steps:
        assert all(decline.where and decline.reason for decline in step.declined)


def test_stop_after_and_fixed(data):
    assert sum(step.count for step in webrnn.optimize(data, stop_after=2).steps) == 2
    report = webrnn.optimize(data, fixed={"X": np.zeros((3, 2, 4), np.float32)})
    assert not report.graph.inputs


def test_text_says_what_changed(data):
    text = str(webrnn.optimize(data, memory=True))
    for expected in (
        "nothing more to do",
        "FLOPs in loops",
        "peak memory",
        "MatMul from_x out of cell",
        "what they did",
    ):
        assert expected in text


def test_an_observer_sees_each_run(data):
    seen = []
    webrnn.optimize(data, observe=lambda step, result, graph: seen.append((step.name, result.rewrites)))
    assert seen[0] == ("infer_shapes", 0)
    assert sum(count for _, count in seen) == sum(step.count for step in webrnn.optimize(data).steps)


PRODUCTS = ("MatMul", "Gemm", "webrnn.Linear")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "options", "left"),
    [
        ("RNN", {}, 1),
        ("LSTM", {}, 1),
        ("GRU", {}, 2),  # that with the gated state cannot be joined with the other
        ("GRU", {"linear_before_reset": 1}, 1),
        ("GRU", {"clip": 0.5}, 2),
    ],
)
def test_products_with_the_input_are_outside_of_every_loop(op, options, left, direction):
    with written_plainly():
        report = webrnn.optimize(recurrent(op, direction=direction, **options).SerializeToString())
    loops = 2 if direction == "bidirectional" else 1
    inside, outside = (sum(work.ops[name] for name in PRODUCTS) for work in (report.after.inside, report.after.outside))
    assert report.after.loops == loops
    assert (inside, outside) == (left * loops, loops)
    assert sum(report.before.inside.ops[name] for name in PRODUCTS) == (left + 1) * loops
