import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS, UNFUSED
from webrnn.formats import read

from .whole_and_parts import encoded, run_both

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(file.stem for file in RECORDED.glob("*.nam"))


def loaded(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((RECORDED / f"{name}.nam").read_bytes())
    return data


def changed(name: str, **changes: Any) -> bytes:
    return encoded({**loaded(name), **changes})


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_the_package_gives(name: str) -> None:
    """Neural Amp Modeler's package wrote the files and the results: nam_files.py."""
    recorded = np.load(RECORDED / f"{name}.npz")
    got = run_both((RECORDED / f"{name}.nam").read_bytes(), recorded["x"])
    np.testing.assert_allclose(got, recorded["y"], atol=2e-6)


@pytest.mark.parametrize("backend", [*BACKENDS, UNFUSED])
@pytest.mark.parametrize("name", ["wavenet_condition", "lstm_two_layers"])
def test_on_other_backends(name: str, backend: str) -> None:
    recorded = np.load(RECORDED / f"{name}.npz")
    got = run_both((RECORDED / f"{name}.nam").read_bytes(), recorded["x"][:64], backend=backend)
    np.testing.assert_allclose(got, recorded["y"][:64], atol=2e-6)


def test_what_the_file_says_is_kept() -> None:
    about = webrnn.InferenceSession(RECORDED / "lstm.nam").about
    assert about["metadata"] == {"name": "random weights", "input_level_dbu": 12.5, "version": "0.7.0"}
    assert about["audio"] == {
        "kind": "filter", "sample_rate": 48000, "frame": 128, "hop": 128, "input": "x", "output": "y",
    }  # fmt: skip
    assert (about["format"], about["architecture"]) == ("nam", "LSTM")


@pytest.mark.parametrize(("rate", "expected"), [(44100, 44100), ("96000", 96000), (None, 48000), (-1, 48000)])
def test_rates(rate: object, expected: int) -> None:
    assert read(changed("lstm", sample_rate=rate)).about["audio"]["sample_rate"] == expected


def test_a_container_gives_the_size_that_is_asked_for() -> None:
    data, x = loaded("container"), np.load(RECORDED / "container.npz")["x"]
    small, large = (run_both(encoded(part["model"]), x) for part in data["config"]["submodels"])
    for size, expected in ((0, small), (0.49, small), (0.5, large), (1, large)):
        assert np.array_equal(run_both(encoded(data), x, fixed={"size": size}), expected)


def test_a_sequence_of_whole_models() -> None:
    x = np.load(RECORDED / "linear.npz")["x"]
    models = [loaded("linear"), loaded("wavenet")]
    both = {"architecture": "Sequential", "config": {"models": models}, "weights": []}
    # the second model hears what the first gives in silence
    long = np.concatenate([np.zeros(40, np.float32), x])
    expected = run_both(encoded(models[1]), run_both(encoded(models[0]), long))[40:]
    np.testing.assert_allclose(run_both(encoded(both), x), expected, atol=1e-6)


def deep(depth: int) -> dict[str, Any]:
    inner = loaded("linear") if depth == 0 else deep(depth - 1)
    return {"architecture": "Sequential", "config": {"models": [inner]}, "weights": []}


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        (changed("lstm", architecture="CatLSTM"), webrnn.UnsupportedOp, "'CatLSTM' is not known; it knows ConvNet"),
        (changed("lstm", weights=[1.0]), webrnn.ModelError, r"lstm_0' \(LSTM\).*not enough: \[24, 7\]"),
        (changed("lstm", weights=[*loaded("lstm")["weights"], 0]), webrnn.ModelError, "take 211, the file has 212"),
        (changed("lstm", weights="abc"), webrnn.ModelError, "it is a text, it needs to be a list"),
        (changed("lstm", weights=[1, None]), webrnn.ModelError, "nothing stands where a number is expected"),
        (changed("lstm", weights=[float("nan")] * 235), webrnn.ModelError, "not finite"),
        (changed("lstm", weights=[10**400] * 235), webrnn.ModelError, "not finite"),
        (changed("lstm", config=None), webrnn.ModelError, "attribute 'config': it is missing"),
        (changed("lstm", sample_rate="fast"), webrnn.ModelError, "sample_rate is no number"),
        (changed("lstm", sample_rate=0), webrnn.ModelError, "sample_rate is 0 Hz"),
        (changed("sequential", config={"models": []}), webrnn.ModelError, "the list is empty"),
        (changed("sequential", config={"models": [{"a": 1}]}), webrnn.UnsupportedOp, "does not say what model it is"),
        (changed("container", config={"submodels": []}), webrnn.ModelError, "the list is empty"),
        (encoded(deep(9)), webrnn.ModelError, "nested too deep"),
    ],
)
def test_a_file_that_is_wrong(model: bytes, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(model)


@pytest.mark.parametrize("fixed", [{"size": 2}, {"size": [0, 1]}, {"size": "large"}, {"drive": 1}])
def test_what_cannot_be_fixed(fixed: dict[str, Any]) -> None:
    with pytest.raises(webrnn.ShapeError, match="fixed"):
        webrnn.InferenceSession(RECORDED / "container.nam", fixed=fixed)
