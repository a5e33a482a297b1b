"""The judge of exports, on models that need no framework."""

import json

import numpy as np
import pytest
from onnx.parser import parse_model

from tests.exports.judge import Verdict, judge, summary
from tests.exports.table import Architecture, floats, lengths

MODEL = """<ir_version: 8, opset_import: ["": 17]>
cell (float[n,4] x, float[n,4] h_in) => (float[n,4] y, float[n,4] h_out) {
    sum = Add(x, h_in) h_out = Tanh(sum) y = Add(h_out, x) }"""


@pytest.fixture
def export(tmp_path):
    """Writes what `write` writes."""

    def make(text=MODEL, off=0.0, **about):
        folder = tmp_path / "cell.trace"
        folder.mkdir()
        generator, arrays = np.random.default_rng(0), {}
        for index in range(2):
            x, h = generator.standard_normal((2, 2 + index, 4), np.float32)
            after = np.tanh(x + h)
            arrays |= {
                f"{index}/in/x": x,
                f"{index}/in/h_in": h,
                f"{index}/out/0": after + x + off,
                f"{index}/out/1": after,
            }
            arrays |= {f"step{index}/x": x[:2], f"step{index}/h_in": h[:2]}
        np.savez(folder / "runs.npz", **arrays)
        (folder / "model.onnx").write_bytes(parse_model(text).SerializeToString())
        given = {"states": {"h_in": "h_out"}, "outputs": ["y", "h_out"], "tolerance": 1e-4}
        (folder / "about.json").write_text(json.dumps(given | about))
        return folder

    return make


def test_all_is_well(export):
    verdict = judge(export())
    assert (verdict.line(), verdict.plan, verdict.stream) == ("", "all sizes", "right")


def test_a_wrong_result_is_found(export):
    assert judge(export(off=0.01)).line() == "WRONG: output 0 differs by 0.01"


def test_wrong_pairs_are_found(export):
    swapped = MODEL.replace("y = Add(h_out, x)", "y = Add(h_out, x) other = Identity(x)")
    assert judge(export(swapped, states={"x": "y"})).line().startswith("WRONG: wrong pairs")


def test_a_refusal_is_told(export):
    line = judge(export(MODEL.replace("Tanh(sum)", "NoSuchOp(sum)"))).line()
    assert line.startswith("refused: node (NoSuchOp)")


def test_what_no_exporter_makes_is_no_model(export):
    verdict = judge(export(not_exportable="Error: why"))
    assert verdict.line() == "not exportable: Error: why"
    assert summary([verdict, Verdict("other", plan="all sizes")]).startswith(
        "1 models (1 more not exportable): 1 right"
    )


def test_inputs_are_the_same_each_time():
    inputs = {"x": floats("batch", "steps", 3), "lengths": lengths("steps", "batch")}
    architecture = Architecture("name", "family", object, inputs, ["y"], {}, ["trace"])
    first, second = (architecture.feeds({"batch": 3, "steps": 5}, 1) for _ in range(2))
    assert first["x"].shape == (3, 5, 3)
    assert np.array_equal(first["x"], second["x"])
    assert first["lengths"][0] == 5
