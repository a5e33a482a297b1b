"""Teaches a GRU to tell three kinds of paths apart, and writes plans that learn on, or guess, without Python.

    python examples/train_gestures.py                    # learn.rnn, learned.rnn
    python examples/train_gestures.py --steps 300 --optimizer sgd

A path is a sequence of steps (dx, dy). The kinds are circles, circles the other way round, and zigzags.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import webrnn
from webrnn import build
from webrnn.training.trainer import Trainer

KINDS = ("circle", "the other way round", "zigzag")
STEPS, HIDDEN = 24, 16


def network(seed: int = 0) -> build.TorchNet:
    """x [batch, time, 2] to scores [batch, kinds], with weights as PyTorch draws them."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return rng.uniform(-(HIDDEN**-0.5), HIDDEN**-0.5, shape).astype(np.float32)

    net = build.torch(
        {
            "rnn.weight_ih_l0": drawn(3 * HIDDEN, 2),
            "rnn.weight_hh_l0": drawn(3 * HIDDEN, HIDDEN),
            "rnn.bias_ih_l0": drawn(3 * HIDDEN),
            "rnn.bias_hh_l0": drawn(3 * HIDDEN),
            "out.weight": drawn(len(KINDS), HIDDEN),
            "out.bias": drawn(len(KINDS)),
        }
    )
    y, _ = net.gru("rnn", net.input("x", ("batch", "time", 2)), batch_first=True)
    net.output("scores", net.linear("out", y[:, -1]))
    return net


def paths(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Steps along some paths, [n, time, 2], and their kinds."""
    kinds = rng.integers(0, len(KINDS), n)
    t = np.linspace(0, 2 * np.pi, STEPS + 1) * rng.uniform(0.8, 1.2, (n, 1)) + rng.uniform(0, 2 * np.pi, (n, 1))
    circles = np.stack([np.cos(t), np.where(kinds[:, None] == 1, -1, 1) * np.sin(t)], -1)
    zigzags = np.stack([t - t[:, :1], np.abs(t % 2 - 1)], -1)
    found = np.where(kinds[:, None, None] == 2, zigzags, circles) + 0.02 * rng.standard_normal((n, STEPS + 1, 2))
    return np.diff(found, axis=1).astype(np.float32) * 4, kinds


def train(trainer: Trainer, steps: int, rng: np.random.Generator) -> list[float]:
    losses = []
    for step in range(steps):
        x, target = paths(32, rng)
        losses.append(trainer.step({"x": x, "target": target}))
        if step % 25 == 0:
            print(f"step {step:4}  loss {losses[-1]:.4f}")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--optimizer", default="adam", choices=["sgd", "adam", "adamw"])
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    trainer = webrnn.trainer(network(), "cross_entropy", arguments.optimizer, lr=arguments.lr, clip_norm=5.0)
    train(trainer, arguments.steps, rng)
    x, kinds = paths(200, rng)
    (scores,) = trainer.predict({"x": x})
    print(f"told apart: {np.mean(scores.argmax(-1) == kinds):.1%} of 200 that it has not seen")
    trainer.export(arguments.folder / "learn.rnn", predict=arguments.folder / "learned.rnn")


if __name__ == "__main__":
    main()
