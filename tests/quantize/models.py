"""Small models whose weights are worth making small."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx import ModelProto, helper

from tests.onnx.models import floats, initializer, model


def layers(*sizes: int, spread: float = 1.0, n: int | str = "n", names: tuple[str, ...] = ()) -> ModelProto:
    """x -> y through products with tanh between them. Weights of later layers are more spread out: a few of them are
    large, so that the others are rounded coarsely."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for index, (rows, columns) in enumerate(pairwise(sizes)):
        array = rng.normal(0, 1 / np.sqrt(rows), (rows, columns))
        array[0] *= spread**index
        weights.append(initializer(f"w{index}", array.astype(np.float32)))
        name = names[index] if names else f"layer{index}"
        nodes.append(helper.make_node("MatMul", [value, f"w{index}"], [f"m{index}"], name=name))
        nodes.append(helper.make_node("Tanh", [f"m{index}"], [f"t{index}"]))
        value = f"t{index}"
    nodes[-1].output[0] = "y"
    return model(nodes, [floats("x", [n, sizes[0]])], [floats("y", [n, sizes[-1]])], weights)
