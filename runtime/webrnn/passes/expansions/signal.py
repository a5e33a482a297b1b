"""Windows: sums of cosines over a range. Those of constant sizes are constants before this is asked."""

from __future__ import annotations

from math import pi

import numpy as np

from webrnn.ir import DType, Node

from .emitter import Emitter, Expansion

_WEIGHTS = {"HannWindow": (0.5, -0.5), "HammingWindow": (25 / 46, -21 / 46), "BlackmanWindow": (0.42, -0.5, 0.08)}


def _window(e: Emitter, node: Node) -> None:
    """The sum of weights[k] cos(2 pi k n / N); N is one less for a symmetric window."""
    size = node.inputs[0]
    assert size is not None
    count = e.cast(e.op("Reshape", size, e.ints()), DType.INT64)
    steps = e.cast(e.op("Range", e.constant(np.int64(0)), count, e.constant(np.int64(1))), DType.FLOAT)
    period = count if node.attrs.get("periodic", 1) else e.op("Sub", count, e.constant(np.int64(1)))
    turns = e.op("Div", steps, e.cast(period, DType.FLOAT))
    base, *weights = _WEIGHTS[node.op]
    total = e.number(base, DType.FLOAT)
    for k, weight in enumerate(weights, 1):
        wave = e.op("Cos", e.op("Mul", turns, e.number(2 * pi * k, DType.FLOAT)))
        total = e.op("Add", total, e.op("Mul", wave, e.number(weight, DType.FLOAT)))
    e.op("Cast", total, output=node.outputs[0], to=int(node.attrs.get("output_datatype", DType.FLOAT)))


EXPANSIONS: dict[str, Expansion] = dict.fromkeys(_WEIGHTS, _window)
