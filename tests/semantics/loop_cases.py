"""Loop: the ranks of its number and its condition, no steps, no count, no condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .case import Citation, case, floats, model_of

RANKS = Citation("Loop", 13, "It has 2+N inputs: (iteration_num, condition, loop carried dependencies...).")
STACKED = Citation(
    "Loop",
    13,
    "Each scan_output is created by concatenating the value of the specified output value at the end of each iteration",
)


def _loop(
    number: Sequence[int] = (),
    declared: Sequence[int] | None = (),
    count: int | None = 3,
    condition: np.ndarray | None = None,
    goes_on: bool = True,
):
    """s <- s + 1; shows the number of the step and the condition that the body gets."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "one"], ["s_next"]),
            helper.make_node("Identity", ["i"], ["i_seen"]),
            helper.make_node("Cast", ["c"], ["c_seen"], to=TensorProto.FLOAT),
            helper.make_node("Identity", ["c"] if goes_on else ["no"], ["c_next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, number),
            helper.make_tensor_value_info("c", TensorProto.BOOL, declared),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("c_next", TensorProto.BOOL, declared),
            helper.make_tensor_value_info("s_next", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("i_seen", TensorProto.INT64, number),
            helper.make_tensor_value_info("c_seen", TensorProto.FLOAT, declared),
        ],
        [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.array(False), "no")],
    )
    given = {} if count is None else {"count": np.array(count, np.int64)}
    given |= {} if condition is None else {"condition": condition}
    inputs = ["count" if count is not None else "", "condition" if condition is not None else "", "start"]
    graph = helper.make_graph(
        [helper.make_node("Loop", inputs, ["s_last", "numbers", "conditions"], body=body)],
        "loop",
        [helper.make_tensor_value_info("start", TensorProto.FLOAT, [1])],
        [onnx.ValueInfoProto(name=name) for name in ("s_last", "numbers", "conditions")],
        [numpy_helper.from_array(x, name) for name, x in given.items()],
    )
    return model_of(graph, 13), {"start": floats(0)}


def _results(steps: int, number: Sequence[int] = (), seen: Sequence[int] = ()):
    return (
        floats(steps),
        np.arange(steps, dtype=np.int64).reshape(steps, *number),
        np.ones((steps, *seen), np.float32),
    )


CASES = [
    case(
        "Loop whose body declares its number as [1]",
        _loop(number=[1]),
        _results(3, [1]),
        "both",
        "the body gets the number with the rank that it declares",
        RANKS,
    ),
    case(
        "Loop of no steps whose body declares its number as [1]",
        _loop(number=[1], count=0),
        _results(0, [1]),
        "onnxruntime",
        "a trace of no steps has the shape that the body declares",
        STACKED,
    ),
    case(
        "Loop whose body declares its number and its condition as [1]",
        _loop(number=[1], declared=[1], condition=np.array([True])),
        _results(3, [1], [1]),
        "both",
        "the body gets both with the ranks that it declares",
        RANKS,
    ),
    case(
        "Loop whose body does not declare a shape of its condition",
        _loop(declared=None, condition=np.array([True])),
        _results(3, (), [1]),
        "onnxruntime",
        "the body gets a condition of the rank that the loop was given",
        RANKS,
    ),
    case(
        "Loop without a condition whose body says no",
        _loop(goes_on=False),
        _results(1),
        "onnxruntime",
        "the text ignores the condition of the body where the loop is given none; onnxruntime stops, and exporters "
        "rely on it",
        Citation("Loop", 13, "cond = ...; // ignored"),
    ),
    case(
        "Loop of a negative count",
        _loop(count=-1),
        _results(0),
        "both",
        "i < trip_count is never true",
        Citation("Loop", 13, "for (int i=0; i < trip_count; ++i)"),
    ),
    case(
        "Loop with a condition that is false at first",
        _loop(condition=np.array(False)),
        _results(0),
        "both",
        "the condition decides about the first step too",
        Citation("Loop", 13, "whether to run the first iteration"),
    ),
    case(
        "Loop without a count",
        _loop(count=None, condition=np.array(True), goes_on=False),
        _results(1),
        "both",
        "the condition alone ends it",
        Citation("Loop", 13, "Optional. Set to empty string to omit."),
    ),
]
