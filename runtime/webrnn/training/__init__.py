"""Training as a plan: losses, optimizers and trainers (docs/training.md)."""

from webrnn.losses import CrossEntropy, Ctc, Loss, MeanSquaredError

from .optimizers import Adam, AdamW, Optimizer, Sgd

__all__ = ["Adam", "AdamW", "CrossEntropy", "Ctc", "Loss", "MeanSquaredError", "Optimizer", "Sgd"]
