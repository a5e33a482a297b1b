"""Sizes that "Your model" guesses for what a plan leaves open, and Python for a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .node import node
from .test_workbench import call, workbench  # noqa: F401

SCRIPT = Path(__file__).resolve().parents[2] / "web_demo" / "your_model" / "size_guesses.js"


def port(name: str, *shape: int | str | None, type: str = "float32") -> dict[str, Any]:
    return {"name": name, "type": type, "shape": list(shape)}


def guesses(*ports: dict[str, Any], states: dict[str, str] | None = None) -> list[dict[str, int]]:
    code = f"""
        import {{ sizeGuesses }} from {json.dumps(SCRIPT.as_uri())};
        console.log(JSON.stringify(sizeGuesses({json.dumps(ports)}, {json.dumps(states or {})})));
    """
    found: list[dict[str, int]] = json.loads(node("--input-type=module", "-e", code))
    return found


@pytest.mark.parametrize(
    ("ports", "first"),
    [
        ([port("x", "batch", "channels", "samples")], {"batch": 1, "channels": 1, "samples": 16000}),
        ([port("waveforms", "batch", "N"), port("lens", "batch", type="int64")], {"batch": 1, "N": 16000}),
        ([port("input", None, None)], {"input, axis 0": 1, "input, axis 1": 16000}),
        ([port("feats", "B", "T", 80)], {"B": 1, "T": 200}),
        ([port("speech", "batch", 80, "frames")], {"batch": 1, "frames": 200}),
        ([port("input_ids", "batch", "seq", type="int64")], {"batch": 1, "seq": 20}),
        ([port("x", None, 3, None, None)], {"x, axis 0": 1, "x, axis 2": 32, "x, axis 3": 32}),
        ([port("x", "n", 2)], {"n": 1}),
        ([port("x", "time", 7)], {"time": 200}),
        ([port("past_key", "batch", 8, "past_length", 36)], {"batch": 1, "past_length": 1}),
    ],
)  # fmt: skip
def test_the_first_guess_is_the_most_plausible(ports: list[dict[str, Any]], first: dict[str, int]) -> None:
    found = guesses(*ports)
    assert found[0] == first
    assert len(found) <= 40
    assert len({json.dumps(each) for each in found}) == len(found)


def test_a_model_with_states_takes_a_block_at_a_time() -> None:
    found = guesses(port("input", None, None), port("state", 2, None, 128), states={"state": "stateN"})
    assert found[0] == {"input, axis 0": 1, "input, axis 1": 512, "state, axis 1": 1}


def test_nothing_is_guessed_where_nothing_is_open() -> None:
    assert guesses(port("x", 1, 80), port("sr", type="int64")) == []


def test_python_guesses_for_models(workbench: Any) -> None:  # noqa: F811
    from .test_demo_your_model import convolved

    call(workbench, "open", [convolved()])
    found, _ = call(workbench, "guess", [], shapes={}, states={})
    assert found["shapes"]["x"][-1] == 16000
    assert found["fills"]["x"]["fill"] == "random"
    assert found["problem"] is None
    found, _ = call(workbench, "guess", [], shapes={"x": [1, 1, 3000]}, states={"x": "y"})
    assert found["shapes"] == {"x": [1, 1, 3000]}
    assert found["fills"]["x"]["fill"] == "zeros"
    found, _ = call(workbench, "guess", [], shapes={"x": [1, 1, 3]}, states={})
    assert found["problem"]
