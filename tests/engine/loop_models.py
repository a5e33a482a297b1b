"""Models of loops inside loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, helper

from tests.onnx.models import bools, floats, graph, initializer, integers, model


def nested(counts: Sequence[int], fed: Sequence[int] = (), ends_at: float | None = None) -> bytes:
    """Loops inside each other, outermost first, that add 1 to x in each step of the innermost.

    Those in `fed` take their numbers of steps from inputs. With `ends_at` the innermost one ends when that is reached.
    """

    def body(level: int) -> GraphProto:
        nodes, go_on = [], f"go_on{level}"
        if level + 1 < len(counts):
            nodes.append(loop(level + 1, f"before{level}", f"after{level}"))
        else:
            nodes.append(helper.make_node("Add", [f"before{level}", "one"], [f"after{level}"], name="add"))
        if ends_at is not None and level + 1 == len(counts):
            nodes.append(helper.make_node("Less", [f"after{level}", "end"], [f"{go_on}_1"]))
            nodes.append(helper.make_node("Squeeze", [f"{go_on}_1", "axes"], [go_on]))
        else:
            nodes.append(helper.make_node("Identity", [f"go{level}"], [go_on]))
        inputs = [integers(f"i{level}", []), bools(f"go{level}", []), floats(f"before{level}", [1])]
        return graph(nodes, inputs, [bools(go_on, []), floats(f"after{level}", [1])])

    def loop(level: int, before: str, after: str) -> NodeProto:
        return helper.make_node("Loop", [f"n{level}", "", before], [after], body=body(level), name=f"loop{level}")

    arrays = [initializer("one", np.float32([1])), initializer("axes", np.int64([0]))]
    arrays += [initializer("end", np.float32([ends_at or 0]))]
    arrays += [initializer(f"n{i}", np.int64(n)) for i, n in enumerate(counts) if i not in fed]
    inputs = [floats("x", [1]), *(integers(f"n{i}", []) for i in fed)]
    return model([loop(0, "x", "y")], inputs, [floats("y", [1])], arrays).SerializeToString()
