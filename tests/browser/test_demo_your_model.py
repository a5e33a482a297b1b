"""Part 2 of the demo page: models and plans that are dropped, good ones and bad ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from playwright.sync_api import Browser, Page, expect

import webrnn
from tests.engine.stream_models import stateful
from tests.models.fetch import model_path
from webrnn.audio import write_wav
from webrnn.bench.models import BUILT_IN

from .axe import violations_anywhere
from .demo_page import advice, demo_page, fits, problems, screenshot, wait_for

FILES = Path(__file__).resolve().parents[2] / "web_demo" / "amp"


@pytest.fixture(scope="module")
def page(browser: Browser, full_demo: Path) -> Iterator[Page]:
    """One page for all tests here: it has to go on working whatever was dropped on it."""
    with demo_page(browser, full_demo) as page:
        yield page


def drop(page: Page, file: Path | str) -> None:
    page.locator("#your-model-app > input[type=file]").set_input_files(file)
    wait_for(page, "your-model", "ready", "failed")


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#your-model-app .outputs")).to_be_visible(timeout=60_000)
    wait_for(page, "your-model", "ready", "failed")


def outputs(page: Page) -> dict[str, str]:
    names = page.locator("#your-model-app .output .port").all_inner_texts()
    figures = page.locator("#your-model-app .output .mono").all_inner_texts()
    return dict(zip(names, figures, strict=True))


def tiles(page: Page) -> dict[str, str]:
    names = page.locator("#your-model-app .report .tile dt").all_inner_texts()
    values = page.locator("#your-model-app .report .tile dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


def bundled(page: Page, name: str) -> None:
    page.locator(f'#your-model-app [data-model="{name}"]').click()
    wait_for(page, "your-model", "ready", "failed")
    assert problems(page, "your-model") == []


def sum_model() -> bytes:
    """y = x + x, sizes left open."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )


@pytest.fixture
def double(tmp_path: Path) -> Path:
    file = tmp_path / "double.onnx"
    file.write_bytes(sum_model())
    return file


def test_a_gru_is_optimized_run_and_checked_on_the_bare_vm(page: Page) -> None:
    bundled(page, "gru_256")
    assert tiles(page)["Ops inside loops"].split() == ["3", "→", "2"]
    left = page.locator("#your-model-app .left-list li").all_inner_texts()
    assert any(line.startswith("Linear from_x") and "before the loop" in line for line in left)
    before, after = page.locator("#your-model-app .listing").all()
    expect(before.locator(".block.loop .node.leaves").first).to_contain_text("Linear")
    expect(after.locator(".block.loop .node.cell")).to_contain_text("GruCell")
    expect(after.locator(".listing-body > .graph > .node.matrix")).to_contain_text("Linear")
    run(page)
    assert list(outputs(page)) == ["y", "h_n"]
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")
    screenshot(page, "your-model", "your-model")
    assert violations_anywhere(page) == []


def test_weights_can_be_small(page: Page, tmp_path: Path) -> None:
    bundled(page, "gru_256")
    chips = page.get_by_role("group", name="Weights, and the size of the plan")
    expect(chips.locator('[aria-pressed="true"]')).to_contain_text("float32")
    assert [text.split()[0] for text in chips.get_by_role("button").all_inner_texts()] == [
        "float32", "float16", "int16", "int8",
    ]  # fmt: skip
    chips.get_by_role("button", name="int8").click()
    wait_for(page, "your-model", "ready", "failed")
    assert problems(page, "your-model") == []
    expect(chips.locator('[aria-pressed="true"]')).to_have_text(re.compile(r"^int8 \d\d\d KB$"))
    expect(page.locator("#your-model-app .weights .note")).to_contain_text("The weights of 2 of 2 nodes are int8")
    run(page)
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the plan").click()
    download.value.save_as(tmp_path / "small.rnn")
    webrnn.InferenceSession(BUILT_IN["gru_256"](), weights="int8").export(tmp_path / "here.rnn")
    sizes = [(tmp_path / name).stat().st_size for name in ("small.rnn", "here.rnn")]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)
    screenshot(page, "your-model", "your-model-weights")


def test_what_stays_float32_is_listed(page: Page) -> None:
    bundled(page, "silero_v6")
    page.locator('#your-model-app [data-weights="int16"]').click()
    wait_for(page, "your-model", "ready", "failed")
    kept = page.locator("#your-model-app .kept-list li")
    expect(kept).to_have_count(1)
    expect(kept).to_contain_text("it has 128 weights, fewer than 1024")
    expect(page.locator("#your-model-app .input .badge")).to_have_text("state → stateN")
    run(page)
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")


def test_states_that_are_not_sure_can_be_named(page: Page, tmp_path: Path) -> None:
    proto = stateful("LSTM", steps=1, batch=1)
    for value in proto.graph.output[1:]:
        value.name = {"h_out": "c_out", "c_out": "h_out"}[value.name]
    proto.graph.node[0].output[1:] = ["c_out", "h_out"]
    (tmp_path / "crossed.onnx").write_bytes(proto.SerializeToString())
    drop(page, tmp_path / "crossed.onnx")
    unsure = page.locator("#your-model-app .unsure")
    expect(unsure).to_contain_text("h_in -> c_out by flow")
    expect(page.locator("#your-model-app .input .badge")).to_have_count(0)
    unsure.get_by_role("textbox").fill("h_in=c_out c_in=h_out")
    unsure.get_by_role("button").click()
    expect(page.locator("#your-model-app .input .badge")).to_have_text(["state → c_out", "state → h_out"])
    run(page)
    assert problems(page, "your-model") == []


def test_silero_loses_its_branches_and_keeps_its_state(page: Page) -> None:
    bundled(page, "silero_v6")
    assert tiles(page)["Branches"].split()[-1] == "0"
    expect(page.locator("#your-model-app .input .badge")).to_have_text("state → stateN")
    run(page)
    assert list(outputs(page)) == ["output", "stateN"]
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")


def test_a_recording_goes_through_silero_step_by_step(page: Page, full_demo: Path) -> None:
    bundled(page, "silero_v6")
    page.get_by_role("spinbutton", name="Steps").fill("100")
    picker = page.locator("#your-model-app .input input[type=file]").first
    picker.set_input_files(full_demo / "bundled" / "noisy.wav")
    expect(page.locator("#your-model-app .input .note").first).to_contain_text("noisy.wav")
    run(page)
    assert list(outputs(page)) == ["output"]
    expect(page.locator("#your-model-app .output")).to_contain_text("[100, 1, 1]")
    low, high = (float(number) for number in outputs(page)["output"].partition(",")[0].split(" to "))
    assert low < 0.1
    assert high > 0.9
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")


def convolved() -> bytes:
    """As pyannote's segmentation takes audio: a convolution of many samples, pools, a recurrent layer."""
    rng = np.random.default_rng(0)
    sizes = {"kernel": (8, 1, 251), "W": (1, 16, 8), "R": (1, 16, 4)}
    weights = [
        numpy_helper.from_array((0.1 * rng.standard_normal(shape)).astype(np.float32), name)
        for name, shape in sizes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], strides=[10]),
        helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[27], strides=[27]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[2, 0, 1]),
        helper.make_node("LSTM", ["t", "W", "R"], ["y"], hidden_size=4),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "channels", "samples"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "segmentation", [x], [y], weights)
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )


def sizes(page: Page) -> dict[str, str]:
    fields = page.locator("#your-model-app .sizes input").all()
    return {field.get_attribute("aria-label") or "": field.input_value() for field in fields}


def test_sizes_are_guessed_with_which_a_model_runs(page: Page, tmp_path: Path) -> None:
    (tmp_path / "segmentation.onnx").write_bytes(convolved())
    drop(page, tmp_path / "segmentation.onnx")
    assert sizes(page) == {"Size batch": "1", "Size channels": "1", "Size samples": "16000"}
    page.get_by_label("Size samples").fill("100")
    page.get_by_role("button", name="Run", exact=True).click()
    wait_for(page, "your-model", "failed")
    assert "press Find sizes" in advice(page, "your-model")
    page.get_by_role("button", name="Find sizes").click()
    expect(page.get_by_label("Size samples")).to_have_value("16000", timeout=30_000)
    run(page)
    expect(page.locator("#your-model-app .output")).to_contain_text("[58, 1, 1, 4]")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the plan").click()
    download.value.save_as(tmp_path / "segmentation.rnn")
    drop(page, tmp_path / "segmentation.rnn")
    run(page)
    assert problems(page, "your-model") == []


def test_lengths_are_those_of_the_sequence(page: Page) -> None:
    drop(page, model_path("wespeaker_scan"))
    assert sizes(page)["Size N"] == "16000"
    run(page)
    assert outputs(page)["features_lens"] == "98"
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")


def test_an_amp_is_read_run_and_put_on_the_audio_thread(page: Page) -> None:
    drop(page, FILES / "crunch.nam")
    assert problems(page, "your-model") == []
    assert sizes(page) == {"Size time": "16000"}
    run(page)
    assert list(outputs(page)) == ["y"]
    expect(page.locator("#your-model-app [data-identical]")).to_have_attribute("data-identical", "true")
    expect(page.locator("#your-model-app .audio-offer")).to_contain_text("at 48 kHz")
    page.get_by_role("button", name="Put it on the audio thread").click()
    expect(page.locator("#listen-app")).to_contain_text("crunch.nam is on the audio thread", timeout=30_000)


def test_dropped_data_are_used(page: Page, double: Path, tmp_path: Path) -> None:
    drop(page, double)
    picker = page.locator("#your-model-app .input input[type=file]")
    np.save(tmp_path / "x.npy", np.float32([[1, 2], [3, 4], [5, 21]]))
    picker.set_input_files(tmp_path / "x.npy")
    run(page)
    assert outputs(page)["y"] == "2 to 42, mean 12"
    expect(page.locator("#your-model-app .output")).to_contain_text("[3, 2]")

    (tmp_path / "x.json").write_text(json.dumps([[0.5, 0.25]]))
    picker.set_input_files(tmp_path / "x.json")
    expect(page.locator("#your-model-app .input .note")).to_contain_text("x.json")
    run(page)
    assert outputs(page)["y"] == "0.5 to 1, mean 0.75"

    page.get_by_label("Size n").fill("4")
    write_wav(tmp_path / "x.wav", np.full(100, 0.25, np.float32), 16000)
    picker.set_input_files(tmp_path / "x.wav")
    expect(page.locator("#your-model-app .input .note")).to_contain_text("x.wav")
    run(page)
    expect(page.locator("#your-model-app .output")).to_contain_text("[4, 2]")
    expect(page.locator("#your-model-app .input .note")).to_contain_text("the first 8 of 100 numbers")

    (tmp_path / "bad.npy").write_bytes(b"no numpy at all")
    picker.set_input_files(tmp_path / "bad.npy")
    expect(page.locator("#your-model-app .input .note")).to_contain_text("bad.npy could not be read: it has no header")


def test_the_saved_plan_is_that_of_the_model_and_runs_when_it_is_dropped(
    page: Page, double: Path, tmp_path: Path
) -> None:
    drop(page, double)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the plan").click()
    plan = tmp_path / "saved.rnn"
    download.value.save_as(plan)
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(webrnn.InferenceSession(plan).run(None, {"x": x})[0], 2 * x)

    drop(page, plan)
    expect(page.locator("#your-model-app")).to_contain_text("saved.rnn is a plan of")
    run(page)
    assert list(outputs(page)) == ["y"]


def unsupported() -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="odd", domain="com.example")
    graph = helper.make_graph([node], "odd", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def truncated_plan(tmp_path: Path) -> bytes:
    webrnn.InferenceSession(sum_model()).export(tmp_path / "whole.rnn")
    return (tmp_path / "whole.rnn").read_bytes()[:-40]


@pytest.mark.parametrize(
    ("name", "message", "next_step"),
    [
        ("notes.onnx", "notes.onnx is not a model that can be read: it is a text file", "onnx.checker"),
        ("empty.onnx", "empty.onnx could not be opened: the file is empty", "Choose another file"),
        (
            "cut.onnx",
            "cut.onnx is not a model that can be read: the file is cut off or damaged: a field at byte",
            "Check that the file is whole",
        ),
        (
            "odd.onnx",
            "odd.onnx uses something that webrnn does not support: node 'odd' (com.example:Frobnicate)",
            "opset",
        ),
        ("cut.rnn", "cut.rnn is not a plan that can be run:", "webrnn export"),
        ("short.rnn", "short.rnn is not a plan that can be run:", "webrnn export"),
    ],
)
def test_bad_files_are_named_with_the_cause_and_the_page_goes_on(
    page: Page, double: Path, tmp_path: Path, name: str, message: str, next_step: str
) -> None:
    content = {
        "notes.onnx": b"These are notes, not a model.",
        "empty.onnx": b"",
        "cut.onnx": sum_model()[:-10],
        "odd.onnx": unsupported(),
        "cut.rnn": truncated_plan(tmp_path),
        "short.rnn": b"WRNN",
    }
    (tmp_path / name).write_bytes(content[name])
    drop(page, tmp_path / name)
    (said,) = problems(page, "your-model")
    assert said.startswith(message)
    assert next_step in advice(page, "your-model")
    if name == "odd.onnx":
        screenshot(page, "your-model", "your-model-unsupported")
        assert violations_anywhere(page) == []
    drop(page, double)
    assert problems(page, "your-model") == []
    run(page)


def test_a_wrong_shape_is_explained(page: Page, double: Path, tmp_path: Path) -> None:
    drop(page, double)
    np.save(tmp_path / "x.npy", np.float32([1]))
    page.locator("#your-model-app .input input[type=file]").set_input_files(tmp_path / "x.npy")
    expect(page.locator("#your-model-app .input .note")).to_contain_text("x.npy")
    page.get_by_role("button", name="Run", exact=True).click()
    wait_for(page, "your-model", "failed")
    assert problems(page, "your-model") == ["It could not be run: 'x' takes 2 numbers in [1,2], the file has 1 in [1]"]
    assert "Choose other sizes or data" in advice(page, "your-model")


def test_files_can_be_dropped_with_the_mouse(page: Page, double: Path) -> None:
    page.locator("#your-model-app .dropzone").evaluate(
        """(zone, bytes) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "dragged.onnx"));
            zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
        }""",
        list(double.read_bytes()),
    )
    wait_for(page, "your-model", "ready", "failed")
    expect(page.locator("#your-model-app .input .port")).to_have_text("x")


def test_what_takes_too_long_can_be_stopped(browser: Browser, full_demo: Path, tmp_path: Path) -> None:
    webrnn.InferenceSession(sum_model()).export(tmp_path / "double.rnn")
    with demo_page(browser, full_demo) as page:
        page.locator('#your-model-app [data-model="gru_256"]').click()
        expect(page.locator("#your-model-app").get_by_role("progressbar")).to_be_visible()
        page.locator("#your-model-app").get_by_role("button", name="Stop").click()
        wait_for(page, "your-model", "stopped")
        drop(page, tmp_path / "double.rnn")
        assert problems(page, "your-model") == []
        run(page)


def test_on_a_phone_in_the_dark(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark")
    bundled(page, "gru_256")
    run(page)
    assert fits(page, 360)
    screenshot(page, "your-model", "your-model-phone-dark")
