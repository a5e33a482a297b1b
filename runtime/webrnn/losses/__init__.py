"""Losses: what a model learns by, as ops of a graph (docs/training.md)."""

from .criteria import LOSSES, CrossEntropy, Ctc, Loss, MeanSquaredError, loss_of

__all__ = ["LOSSES", "CrossEntropy", "Ctc", "Loss", "MeanSquaredError", "loss_of"]
