"""What PyTorch and webrnn are both asked: losses, optimizers and a task, with data from seeds of numpy."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(os.environ.get("WEBRNN_RECORDED_TRAINING", Path(__file__).parent / "recorded"))


@dataclass(frozen=True)
class LossCase:
    name: str
    kind: str
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    target: str = "numbers"
    """Of a cross entropy: numbers, some ignored, or distributions. Of CTC: how labels are drawn."""
    mask: bool = False
    scale: float = 1.0
    lengths: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """Of CTC: those of the frames and of the labels."""

    def arrays(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        found = {"prediction": (rng.standard_normal(self.shape) * self.scale).astype(np.float32)}
        if self.kind == "mse":
            found["target"] = rng.standard_normal(self.shape).astype(np.float32)
            rest = self.shape[:-1]
        elif self.kind == "cross_entropy":
            axis = self.options.get("axis", -1) % len(self.shape)
            rest = tuple(size for at, size in enumerate(self.shape) if at != axis)
            if self.target == "distributions":
                drawn = rng.random(self.shape).astype(np.float32)
                found["target"] = drawn / drawn.sum(axis, keepdims=True)
            else:
                found["target"] = rng.integers(0, self.shape[axis], rest).astype(np.int32)
                if self.target == "some ignored":
                    found["target"][rng.random(rest) < 0.4] = -100
        else:
            inputs, labels = self.lengths
            batch, classes = (self.shape[0] if self.options.get("batch_first") else self.shape[1]), self.shape[2]
            rest = (batch,)
            blank = self.options.get("blank", 0)
            others = [label for label in range(classes) if label != blank]
            drawn = rng.choice(others[:1] if self.target == "repeated" else others, (batch, max(1, *labels)))
            found["target"] = drawn.astype(np.int32)
            found["input_lengths"], found["target_lengths"] = np.array(inputs, np.int32), np.array(labels, np.int32)
        if self.mask:
            found["mask"] = (rng.random(rest) < 0.6).astype(np.float32)
            found["mask"].flat[0] = 1
        return found


LOSSES = [
    LossCase("mse", "mse", (2, 5, 3)),
    LossCase("mse_masked", "mse", (3, 5, 2), mask=True),
    LossCase("mse_vector", "mse", (7,)),
    LossCase("ce", "cross_entropy", (6, 4)),
    LossCase("ce_per_frame", "cross_entropy", (2, 5, 4)),
    LossCase("ce_axis_1", "cross_entropy", (2, 4, 5), {"axis": 1}),
    LossCase("ce_one", "cross_entropy", (4,)),
    LossCase("ce_masked", "cross_entropy", (3, 5, 4), mask=True),
    LossCase("ce_ignored", "cross_entropy", (4, 6, 3), target="some ignored"),
    LossCase("ce_weights", "cross_entropy", (8, 3), {"weight": [0.5, 2.0, 1.0]}),
    LossCase("ce_weights_ignored", "cross_entropy", (8, 3), {"weight": [0.5, 2.0, 0.0]}, "some ignored"),
    LossCase("ce_smoothing", "cross_entropy", (8, 5), {"smoothing": 0.1}),
    LossCase("ce_smoothing_weights", "cross_entropy", (8, 3), {"smoothing": 0.2, "weight": [0.5, 2.0, 1.0]}),
    LossCase("ce_smoothing_ignored", "cross_entropy", (8, 3), {"smoothing": 0.2}, "some ignored"),
    LossCase("ce_large", "cross_entropy", (5, 4), scale=1e4),
    LossCase("ce_distributions", "cross_entropy", (3, 4, 5), {"axis": 1}, "distributions"),
    LossCase("ce_distributions_weights", "cross_entropy", (6, 3), {"weight": [0.5, 2.0, 1.0]}, "distributions"),
    LossCase("ce_distributions_smoothing", "cross_entropy", (6, 3), {"smoothing": 0.1}, "distributions"),
    LossCase("ctc", "ctc", (12, 3, 5), lengths=((12, 9, 10), (4, 3, 1))),
    LossCase("ctc_blank_last", "ctc", (9, 2, 4), {"blank": 3}, lengths=((9, 7), (2, 3))),
    LossCase("ctc_repeated", "ctc", (11, 2, 3), target="repeated", lengths=((11, 5), (4, 3))),
    LossCase("ctc_empty", "ctc", (6, 3, 4), lengths=((6, 4, 6), (0, 2, 0))),
    LossCase("ctc_all_empty", "ctc", (6, 2, 4), lengths=((6, 4), (0, 0))),
    LossCase("ctc_too_short", "ctc", (4, 2, 4), target="repeated", lengths=((4, 4), (3, 2))),
    LossCase(
        "ctc_zero_infinity", "ctc", (4, 3, 4), {"zero_infinity": True}, "repeated", lengths=((4, 4, 3), (3, 2, 1))
    ),
    LossCase("ctc_one_frame", "ctc", (1, 2, 3), lengths=((1, 1), (1, 0))),
    LossCase("ctc_batch_first", "ctc", (2, 8, 4), {"batch_first": True}, lengths=((8, 5), (3, 1))),
    LossCase("ctc_sum", "ctc", (8, 2, 4), {"reduction": "sum"}, lengths=((8, 6), (3, 2))),
    LossCase("ctc_long", "ctc", (300, 1, 6), lengths=((300,), (40,))),
    LossCase("ctc_large", "ctc", (20, 2, 5), scale=50.0, lengths=((20, 18), (5, 4))),
]


@dataclass(frozen=True)
class OptimizerCase:
    name: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    clip_norm: float | None = None
    clip_value: float | None = None


OPTIMIZERS = [
    OptimizerCase("sgd", "sgd"),
    OptimizerCase("sgd_momentum", "sgd", {"momentum": 0.9}),
    OptimizerCase("sgd_nesterov", "sgd", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05}),
    OptimizerCase("sgd_clip_norm", "sgd", clip_norm=0.7),
    OptimizerCase("sgd_clip_value", "sgd", clip_value=0.3),
    OptimizerCase("sgd_both_clips", "sgd", {"momentum": 0.5}, clip_norm=0.5, clip_value=0.3),
    OptimizerCase("adam", "adam"),
    OptimizerCase("adam_decay", "adam", {"weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-5}),
    OptimizerCase("adamw", "adamw"),
    OptimizerCase("adamw_decay", "adamw", {"weight_decay": 0.3}, clip_norm=1.0),
]
SHAPES = {"matrix": (3, 4), "vector": (5,)}
N_STEPS = 12
RATES = np.linspace(0.1, 0.02, N_STEPS, dtype=np.float32)


def first_parameters() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def gradients_of_steps() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(6)
    return [
        {name: (rng.standard_normal(shape) * 0.4).astype(np.float32) for name, shape in SHAPES.items()}
        for _ in range(N_STEPS)
    ]


# ---------------------------------------------------------------------------------------------------------- the task

TASK_STEPS, BATCH, TIME, FEATURES, HIDDEN, KINDS = 200, 16, 20, 2, 12, 3
TASK_RATES = {"sgd": 0.1, "adam": 0.01}
TASK_OPTIONS: dict[str, dict[str, Any]] = {"sgd": {"momentum": 0.9}, "adam": {}}


def task_batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of three kinds: circles one way, circles the other way, and waves along a line; with noise.

    x [batch, time, 2] and the kinds [batch]."""
    rng = np.random.default_rng((11, step))
    kinds = rng.integers(0, KINDS, BATCH)
    t = np.linspace(0, 2 * np.pi, TIME)
    rows = []
    for kind in kinds:
        phase, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0.7, 1.3)
        angle = phase + speed * t
        if kind == 2:
            direction = rng.uniform(0, 2 * np.pi)
            path = np.sin(angle)[:, None] * [np.cos(direction), np.sin(direction)]
        else:
            path = np.stack([np.cos(angle), np.sin(angle) * (1 if kind else -1)], 1)
        rows.append(path + 0.1 * rng.standard_normal(path.shape))
    return np.array(rows, np.float32), kinds.astype(np.int32)


def task_weights() -> dict[str, np.ndarray]:
    """Of a GRU and a linear layer, with PyTorch's names."""
    rng = np.random.default_rng(12)
    shapes = {
        "gru.weight_ih_l0": (3 * HIDDEN, FEATURES),
        "gru.weight_hh_l0": (3 * HIDDEN, HIDDEN),
        "gru.bias_ih_l0": (3 * HIDDEN,),
        "gru.bias_hh_l0": (3 * HIDDEN,),
        "out.weight": (KINDS, HIDDEN),
        "out.bias": (KINDS,),
    }
    bound = HIDDEN**-0.5
    return {name: rng.uniform(-bound, bound, shape).astype(np.float32) for name, shape in shapes.items()}
