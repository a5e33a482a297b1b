"""Losses by name, and the inputs that they ask for."""

from __future__ import annotations

from typing import Any

import pytest

import webrnn
from webrnn.ir import DType, Symbol, Value
from webrnn.losses.criteria import loss_of
from webrnn.training import CrossEntropy, Ctc, MeanSquaredError

BATCH, TIME = Symbol("batch"), Symbol("time")
PREDICTION = Value("y", DType.FLOAT, (BATCH, TIME, 5))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (MeanSquaredError(), {"target": (DType.FLOAT, (BATCH, TIME, 5))}),
        (
            MeanSquaredError(mask=True),
            {"target": (DType.FLOAT, (BATCH, TIME, 5)), "mask": (DType.FLOAT, (BATCH, TIME))},
        ),
        (CrossEntropy(), {"target": (DType.INT32, (BATCH, TIME))}),
        (CrossEntropy(axis=1, mask=True), {"target": (DType.INT32, (BATCH, 5)), "mask": (DType.FLOAT, (BATCH, 5))}),
        (CrossEntropy(distributions=True), {"target": (DType.FLOAT, (BATCH, TIME, 5))}),
        (
            Ctc(),
            {
                "target": (DType.INT32, (TIME, None)),
                "input_lengths": (DType.INT32, (TIME,)),
                "target_lengths": (DType.INT32, (TIME,)),
            },
        ),
    ],
)
def test_inputs(loss: Any, expected: dict[str, Any]) -> None:
    assert loss.inputs(PREDICTION) == expected


def test_sizes_that_no_input_can_say_are_open() -> None:
    prediction = Value("y", DType.FLOAT, (BATCH, TIME + 1, 5))
    assert MeanSquaredError().inputs(prediction)["target"] == (DType.FLOAT, (BATCH, None, 5))


def test_by_name() -> None:
    assert loss_of("ctc") == Ctc()
    assert loss_of(CrossEntropy(smoothing=0.1), mask=True) == CrossEntropy(smoothing=0.1, mask=True)
    assert loss_of(len).name == "function"
    with pytest.raises(webrnn.OptionError, match="loss='hinge'"):
        loss_of("hinge")


def test_a_function_that_gives_no_value() -> None:
    from tests.training.models import linear

    with pytest.raises(webrnn.OptionError, match="gives a value of the graph, not a NoneType"):
        webrnn.trainer(linear(), lambda b, prediction, target: None)
