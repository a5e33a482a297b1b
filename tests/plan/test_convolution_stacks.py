"""Random stacks of convolutions, pools, residuals and concatenations: all builds against numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of
from webrnn.ir import Value

STACKS = 60


class Stack:
    """Values [n, channels, t, width] that a random program makes one after the other."""

    def __init__(self, b, x: Value, seed: int):
        self.b, self.random, self.numbers = b, random.Random(seed), np.random.default_rng(seed)
        self.made = [(x, 3)]

    def weights(self, *shape: int) -> Value:
        scale = np.sqrt(np.prod(shape[1:]))
        return self.b.constant((self.numbers.standard_normal(shape) / scale).astype(np.float32))

    def latest(self) -> tuple[Value, int]:
        return self.made[-1]

    def convolve(self) -> None:
        x, channels = self.latest()
        kernel = self.random.choice([(1, 1), (3, 3), (1, 3), (3, 1), (5, 3)])
        dilation = self.random.choice([1, 1, 2])
        reach = [(size - 1) * dilation for size in kernel]
        causal = self.random.random() < 0.3
        pads = [reach[0] if causal else reach[0] // 2, reach[1] // 2, 0 if causal else reach[0] // 2, reach[1] // 2]
        filters = self.random.choice([1, 2, 5, 8, 13, 24, 33])
        bias = [self.weights(filters)] if self.random.random() < 0.7 else []
        attrs = {"pads": pads, "dilations": [dilation] * 2}
        self.made.append((self.b.op("Conv", x, self.weights(filters, channels, *kernel), *bias, **attrs), filters))

    def filter_channels(self) -> None:
        x, channels = self.latest()
        group = self.random.choice([size for size in range(1, channels + 1) if channels % size == 0])
        filters = group * self.random.choice([1, 1, 2, channels // group, 9])
        made = self.b.op("Conv", x, self.weights(filters, channels // group, 3, 3), group=group, pads=[1] * 4)
        self.made.append((made, filters))

    def transpose_convolve(self) -> None:
        """As large as before: what a stride has added is taken away by a pool."""
        x, channels = self.latest()
        filters = self.random.choice([2, 9, 16])
        wide = self.b.op("ConvTranspose", x, self.weights(channels, filters, 3, 4), strides=[1, 2], pads=[1, 1, 1, 1])
        pooled = self.b.op("AveragePool", wide, kernel_shape=[1, 2], strides=[1, 2])
        self.made.append((pooled, filters))

    def pool(self) -> None:
        x, channels = self.latest()
        op = self.random.choice(["MaxPool", "AveragePool"])
        self.made.append((self.b.op(op, x, kernel_shape=[3, 3], pads=[1] * 4), channels))

    def activate(self) -> None:
        x, channels = self.latest()
        op = self.random.choice(["Relu", "Sigmoid", "Elu", "PRelu", "swish"])
        if op == "swish":
            made = self.b.op("Mul", x, self.b.op("Sigmoid", x))
        else:
            made = self.b.op(op, x, *([self.weights(channels, 1, 1)] if op == "PRelu" else []))
        self.made.append((made, channels))

    def add_residual(self) -> None:
        x, channels = self.latest()
        alike = [value for value, count in self.made[:-1] if count == channels]
        if alike:
            self.made.append((self.b.op("Add", x, self.random.choice(alike)), channels))

    def concatenate(self) -> None:
        x, channels = self.latest()
        other, more = self.random.choice(self.made)
        if channels + more < 80:
            self.made.append((self.b.op("Concat", x, other, axis=1), channels + more))

    def grow(self) -> tuple[Value, ...]:
        steps = [self.convolve, self.activate, self.filter_channels, self.add_residual, self.concatenate, self.pool]
        for _ in range(self.random.randint(3, 9)):
            self.random.choice([*steps, self.convolve, self.activate, self.transpose_convolve])()
        outputs = [self.latest()[0]]
        if self.random.random() < 0.4:
            outputs.append(self.random.choice(self.made[1:])[0])
        return tuple(dict.fromkeys(outputs))


@pytest.mark.parametrize("seed", range(STACKS))
def test_a_random_stack(seed):
    graph = graph_of(lambda b, x: Stack(b, x, seed).grow(), "f n 3 t 7")
    check_graph(graph, sizes=[{"n": 1, "t": 6}, {"n": 2, "t": 9}], tolerance=1e-4)
