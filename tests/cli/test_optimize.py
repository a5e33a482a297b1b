import json

import numpy as np
import pytest
from onnx import helper
from onnx.parser import parse_model

from tests.models.fetch import Unavailable, model_path
from tests.onnx.models import floats, model, recurrent
from tests.passes.plain_cells import written_plainly
from webrnn.cli import main


@pytest.fixture
def path(tmp_path):
    """A GRU that is read as plain ops, so that passes have something to do."""
    file = tmp_path / "m.onnx"
    file.write_bytes(recurrent("GRU").SerializeToString())
    with written_plainly():
        yield str(file)


def section(text, title):
    """The lines of one table or list of a report, without its title."""
    lines = text.splitlines()
    first = lines.index(title) + 1
    return lines[first : lines.index("", first) if "" in lines[first:] else None]


def columns(text, title):
    """The rows of a table by their first column."""
    return {line.split()[0]: line.split()[1:] for line in section(text, title)[1:]}


def test_report(path, capsys):
    assert main(["optimize", path]) == 0
    text = capsys.readouterr().out
    assert columns(text, "graph")["loops"] == ["1", "1"]
    assert columns(text, "ops inside loops")["MatMul"][0] == "3"
    assert int(columns(text, "passes")["hoist_sequences"][0]) > 0
    assert any("MatMul from_x out of cell" in line for line in section(text, "what they did"))


def test_the_25_ifs_of_silero_are_gone_at_a_fixed_rate(capsys):
    try:
        path = str(model_path("silero_v6"))
    except Unavailable as error:
        pytest.skip(str(error))
    assert main(["optimize", path, "--fixed", "sr=16000"]) == 0
    text = capsys.readouterr().out
    assert columns(text, "graph")["Ifs"] == ["25", "0"]
    assert columns(text, "ops outside loops")["If"] == ["25", "0"]


def test_why_a_pass_did_no_more(path, capsys):
    assert main(["optimize", path, "--disable", "hoist_sequences,hoist_invariants"]) == 0
    passes = columns(capsys.readouterr().out, "passes")
    assert "hoist_sequences" not in passes
    assert "remove_dead" in passes


def test_all_shows_everything(tmp_path, capsys):
    nodes = [helper.make_node("Identity", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"]) for i in range(6)]
    nodes.append(helper.make_node("Exp", ["v6"], ["y"]))
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [floats("x", [2])], [floats("y", [2])]).SerializeToString())
    main(["optimize", str(path)])
    short = section(capsys.readouterr().out, "what they did")
    main(["optimize", str(path), "--all"])
    long = section(capsys.readouterr().out, "what they did")
    assert short == ["  remove_identities (6)", *(f"    Identity -> v{i}" for i in range(1, 5)), "    and 2 more"]
    assert long == ["  remove_identities (6)", *(f"    Identity -> v{i}" for i in range(1, 7))]


def test_json(path, capsys):
    assert main(["optimize", path, "--json", "--memory"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["reached_fixpoint"] is True
    assert data["after"]["peak_memory"]["bytes"] > 0
    assert data["after"]["inside"]["flops"] < data["before"]["inside"]["flops"]
    assert all(step["count"] == len(step["fired"]) for step in data["steps"])
    assert {step["name"] for step in data["steps"] if step["count"]} >= {"hoist_sequences"}


def test_print_after(path, capsys):
    assert main(["optimize", path, "--print-after", "hoist_sequences"]) == 0
    text = capsys.readouterr().out
    assert text.count("after hoist_sequences: ") == 1
    graph = text[: text.index("\n\n")]
    assert "MatMul from_x out of cell" in graph.splitlines()[0]
    assert " = scan(" in graph


def test_stop_after(path, capsys):
    for count in (0, 1, 5):
        assert main(["optimize", path, "--json", "--stop-after", str(count)]) == 0
        steps = json.loads(capsys.readouterr().out)["steps"]
        assert sum(step["count"] for step in steps) == count


def test_dot(path, tmp_path, capsys):
    assert main(["optimize", path, "--dot", str(tmp_path / "g.dot")]) == 0
    text = (tmp_path / "g.dot").read_text()
    assert text.startswith("digraph ")
    assert text.count("{") == text.count("}")
    assert "subgraph cluster_" in text
    assert 'label="body of cell"' in text
    assert "style=dashed" in text


def test_fixed_from_a_file(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((3, 2, 4), np.float32))
    assert main(["optimize", path, "--fixed", f"X={tmp_path / 'x.npy'}"]) == 0
    assert main(["optimize", path, "--fixed", "X=1"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--disable", "no_such"], "there is no pass no_such"),
        (["--print-after", "no_such"], "there is no pass no_such"),
        (["--fixed", "X"], "not of the form NAME=VALUE"),
        (["--fixed", "X=fast"], "'fast' is neither a number"),
        (["--fixed", "Z=1"], "the model has no input"),
        (["--size", "n=-1"], "'-1' is not a size"),
    ],
)
def test_wrong_options(path, options, message, capsys):
    assert main(["optimize", path, *options]) == 1
    assert message in capsys.readouterr().err


def written(tmp_path, text):
    path = tmp_path / "scan.onnx"
    path.write_bytes(parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}').SerializeToString())
    return str(path)


def test_a_loop_without_states_is_gone(tmp_path, capsys):
    path = written(
        tmp_path,
        """g (float[steps, 4] xs, float[4, 3] w) => (float[steps, 3] ys) {
            ys = Scan <num_scan_inputs = 1, body = b (float[4] x) => (float[3] y) { p = MatMul(x, w) y = Tanh(p) }> (xs)
        }""",
    )
    assert main(["optimize", path]) == 0
    text = capsys.readouterr().out
    assert columns(text, "graph")["loops"] == ["1", "0"]
    assert "ops inside loops" in text
    assert all(after == "0" for _, after in columns(text, "ops inside loops").values())


def test_an_output_projection_is_done_once_for_all_steps(tmp_path, capsys):
    path = written(
        tmp_path,
        """g (float[3] h0, float[steps, 3] xs, float[3, 3] r, float[3, 5] w) => (float[3] h_n, float[steps, 5] ys) {
            h_n, ys = Scan <num_scan_inputs = 1, body = b (float[3] h, float[3] x) => (float[3] h_next, float[5] y) {
                hr = MatMul(h, r)
                sum = Add(hr, x)
                h_next = Tanh(sum)
                y = MatMul(h_next, w)
            }> (h0, xs)
        }""",
    )
    assert main(["optimize", path]) == 0
    text = capsys.readouterr().out
    inside = columns(text, "ops inside loops")
    assert inside["MatMul"][0] == "2"
    assert sum(int(after) for op, (_, after) in inside.items() if op in ("MatMul", "webrnn.Linear")) == 1
    assert any("-> y out of" in line for line in section(text, "what they did"))


def test_the_cells_that_dtln_2_writes_out_are_recognised(capsys):
    try:
        path = str(model_path("dtln_2"))
    except Unavailable as error:
        pytest.skip(str(error))
    assert main(["optimize", path]) == 0
    text = capsys.readouterr().out
    assert columns(text, "passes")["fuse_exported_cells"][0] == "2"
    assert columns(text, "ops outside loops")["webrnn.LstmCell"] == ["0", "2"]
