"""Random models over time: stacks of layers of `layer_table.py`, from a seed or from hypothesis.

A recipe is plain data, so that a model that is found to be wrong can be made smaller: without a layer it is still a
model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies
from onnx import ModelProto, helper

from . import frame_layers  # noqa: F401  (it fills the table, behind `layers`)
from .layer_table import LAYERS, Signal, Stack
from .pieces import Builder
from .whole_layers import NEED_ALL

LAYOUTS = ("BTC", "BCT", "TBC")
WIDTH = 4


class Choices(Protocol):
    """Where a recipe takes its decisions from."""

    def pick(self, options: Sequence[Any]) -> Any: ...


class Seeded:
    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.rng.integers(len(options))]


class Drawn:
    def __init__(self, draw: Any):
        self.draw = draw

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.draw(strategies.integers(0, len(options) - 1))]


@dataclass(frozen=True)
class Recipe:
    layout: str
    batch: int | str
    layers: tuple[tuple[str, dict[str, Any]], ...]
    seed: int
    """Of the weights."""

    def __str__(self) -> str:
        lines = [
            f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in self.layers
        ]
        return f"{self.layout}, batch {self.batch}, weights of seed {self.seed}\n  " + "\n  ".join(lines)


_NAMES = [name for name, row in LAYERS.items() for _ in range(row.weight)]


def draw_recipe(choices: Choices, seed: int, needs_all: bool = False) -> Recipe:
    """`needs_all`: with a layer that needs the whole sequence."""
    layers = []
    for _ in range(choices.pick(range(1, 8))):
        name = choices.pick(_NAMES)
        layers.append((name, {key: choices.pick(values) for key, values in LAYERS[name].options.items()}))
    if needs_all:
        layers.insert(choices.pick(range(len(layers) + 1)), (choices.pick(list(NEED_ALL)), {}))
    return Recipe(choices.pick(LAYOUTS), choices.pick((1, 2, "batch", "batch")), tuple(layers), seed)


def recipe_of(seed: int, needs_all: bool = False) -> Recipe:
    return draw_recipe(Seeded(seed), seed, needs_all)


@strategies.composite
def recipes(draw: Any, needs_all: bool = False) -> Recipe:
    return draw_recipe(Drawn(draw), draw(strategies.integers(0, 2**16)), needs_all)


@dataclass(frozen=True)
class Model:
    proto: ModelProto
    stride: int
    """The inputs' frames are a multiple of it: what the layers say, which the stream may undercut."""
    shortest: int
    """The fewest frames for which it runs whole."""
    time_axes: dict[str, int]
    signals: dict[str, Signal]
    """The outputs that have frames."""
    time_axis: int
    """Of these outputs."""
    recipe: Recipe | None = None

    def feeds(self, frames: int, rng: np.random.Generator, batch: int = 2) -> dict[str, np.ndarray]:
        sizes = {"time": frames, "batch": batch}
        feeds = {}
        for value in self.proto.graph.input:
            dims = value.type.tensor_type.shape.dim
            shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims]
            feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
        return feeds


def build(recipe: Recipe) -> Model:
    b = Builder(np.random.default_rng(recipe.seed), recipe.batch)
    shape = {"B": recipe.batch, "T": "time", "C": WIDTH}
    x = b.input("x", [shape[axis] for axis in recipe.layout])
    start = Signal(_moved(b, x, recipe.layout, "BCT"), WIDTH)
    stack = Stack(b, start, seen=[start])
    for name, given in recipe.layers:
        stack.now = (
            NEED_ALL[name](stack, stack.now) if name in NEED_ALL else LAYERS[name].build(stack, stack.now, **given)
        )
        if stack.now is not stack.seen[-1]:
            stack.seen.append(stack.now)
    outputs: dict[str, list[Any] | None] = {}
    signals = {}
    for place, signal in enumerate([stack.now, *stack.outputs.values()]):
        name = f"y{place or ''}"
        signals[name] = signal
        b.nodes.append(helper.make_node("Identity", [_moved(b, signal.name, "BCT", recipe.layout)], [name]))
        outputs[name] = None
        stack.need(signal, 1)
    for place, final in enumerate(stack.finals[:2]):
        b.nodes.append(helper.make_node("Identity", [final], [f"final{place}"]))
        outputs[f"final{place}"] = None
    axes = {name: sizes.index("time") for name, (_, sizes) in b.inputs.items() if "time" in sizes}
    return Model(b.model(outputs), stack.stride, stack.shortest(), axes, signals, recipe.layout.index("T"), recipe)


def _moved(b: Builder, x: str, layout: str, to: str) -> str:
    return x if layout == to else b.op("Transpose", x, perm=[layout.index(axis) for axis in to])


def smaller(recipe: Recipe) -> list[Recipe]:
    """Recipes of which each has one thing less."""
    shorter = [
        replace(recipe, layers=recipe.layers[:place] + recipe.layers[place + 1 :])
        for place in range(len(recipe.layers))
    ]
    plainer = [replace(recipe, layout="BCT")] * (recipe.layout != "BCT") + [replace(recipe, batch=1)] * (
        recipe.batch != 1
    )
    options = []
    for place, (name, given) in enumerate(recipe.layers):
        for key, value in given.items():
            first = LAYERS[name].options[key][0]
            if value != first:
                layers = (*recipe.layers[:place], (name, {**given, key: first}), *recipe.layers[place + 1 :])
                options.append(replace(recipe, layers=layers))
    return [each for each in shorter if each.layers] + plainer + options


def multiple(frames: int, stride: int) -> int:
    """The next multiple of a stride."""
    return math.ceil(frames / stride) * stride
