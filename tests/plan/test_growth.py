"""How what a plan needs grows with the length of a sequence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import MAIN
from tests.plan.recurrent_models import recurrent
from webrnn import InferenceSession
from webrnn.plan.lowerings.sequences import CHUNK


def arena_bytes(op: str, steps: int, outputs: list[str]) -> int:
    session = InferenceSession(recurrent(op, hidden=16, inputs=8, outputs=outputs), backend=MAIN)
    session.run(None, {"x": np.zeros((steps, 1, 8), np.float32)})
    plan = session._program.plan  # type: ignore[attr-defined]
    assert plan is not None
    return plan.arena_bytes


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_memory_does_not_grow_when_only_the_last_state_is_used(op: str) -> None:
    assert arena_bytes(op, 100, ["Y_h"]) == arena_bytes(op, 100 + 500 * CHUNK, ["Y_h"])


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_the_trace_is_written_to_the_output_itself(op: str) -> None:
    assert arena_bytes(op, 100, ["Y"]) == arena_bytes(op, 100 + 500 * CHUNK, ["Y"])


def test_another_length_is_another_binding_of_the_same_plan() -> None:
    session = InferenceSession(recurrent("GRU", hidden=16, inputs=8, outputs=["Y"]), backend=MAIN)
    plan = session._program.plan  # type: ignore[attr-defined]
    for steps in (3, 50, 1, 200, 3):
        (y,) = session.run(None, {"x": np.ones((steps, 2, 8), np.float32)})
        assert y.shape == (steps, 1, 2, 16)
        assert session._program.plan is plan  # type: ignore[attr-defined]
        assert session._program.recent is plan  # type: ignore[attr-defined]


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("steps", [1, 23, 24, 25, 48, 53, 100])
@pytest.mark.parametrize(("batch", "is_known"), [(1, False), (1, True), (3, False)])
def test_chunks_of_the_projection_change_no_bit(
    op: str, direction: str, steps: int, batch: int, is_known: bool
) -> None:
    declared = steps if is_known else "time"
    model = recurrent(op, hidden=20, inputs=8, outputs=["Y", "Y_h"], direction=direction, steps=declared)
    x = np.random.default_rng(0).standard_normal((steps, batch, 8)).astype(np.float32)
    whole = InferenceSession(model, backend=MAIN).run(None, {"x": x})
    loop = InferenceSession(model, backend=MAIN, disable=["fuse_cells", "hoist_sequences"]).run(None, {"x": x})
    for a, b in zip(whole, loop, strict=True):
        np.testing.assert_array_equal(a, b)
