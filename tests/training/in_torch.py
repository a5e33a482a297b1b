"""Run with PyTorch: writes down losses with their gradients, steps of optimizers, and the losses of a task.

python -m tests.training.in_torch [--output tests/training/recorded]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from .cases import (
    FEATURES,
    HIDDEN,
    KINDS,
    LOSSES,
    OPTIMIZERS,
    RATES,
    RECORDED,
    TASK_OPTIONS,
    TASK_RATES,
    TASK_STEPS,
    LossCase,
    OptimizerCase,
    first_parameters,
    gradients_of_steps,
    task_batch,
    task_weights,
)

functional = torch.nn.functional


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=RECORDED)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    found: dict[str, np.ndarray] = {}
    for case in LOSSES:
        loss, gradient = loss_of(case)
        found[f"loss.{case.name}"], found[f"gradient.{case.name}"] = loss.numpy(), gradient.numpy()
    for row in OPTIMIZERS:
        found.update({f"optimizer.{row.name}.{name}": array for name, array in stepped(row).items()})
    for kind in TASK_RATES:
        losses, weights = trained(kind)
        found[f"task.{kind}.losses"] = losses
        found.update({f"task.{kind}.{name}": array for name, array in weights.items()})
    np.savez_compressed(arguments.output / "torch.npz", **found)


def loss_of(case: LossCase) -> tuple[torch.Tensor, torch.Tensor]:
    given = {name: torch.from_numpy(array) for name, array in case.arrays().items()}
    prediction, target, mask = given["prediction"].requires_grad_(), given["target"], given.get("mask")
    options = dict(case.options)
    if case.kind == "mse":
        loss = functional.mse_loss(prediction, target, reduction="none" if mask is not None else "mean")
        if mask is not None:
            loss = (loss.mean(-1) * mask).sum() / mask.sum()
    elif case.kind == "cross_entropy":
        axis = options.get("axis", -1)
        target = target if target.is_floating_point() else target.long()
        weight = torch.tensor(options["weight"]) if "weight" in options else None
        logits = prediction.movedim(axis, 1) if prediction.ndim > 1 else prediction
        if target.is_floating_point() and prediction.ndim > 1:
            target = target.movedim(axis, 1)
        smoothing = options.get("smoothing", 0.0)
        if mask is not None:
            loss = functional.cross_entropy(logits, target, reduction="none")
            loss = (loss * mask).sum() / mask.sum()
        else:
            loss = functional.cross_entropy(logits, target, weight=weight, label_smoothing=smoothing)
    else:
        logits = prediction.transpose(0, 1) if options.pop("batch_first", False) else prediction
        lengths = given["input_lengths"].long(), given["target_lengths"].long()
        loss = functional.ctc_loss(logits.log_softmax(-1), target.long(), *lengths, **options)
    loss.backward()
    assert prediction.grad is not None
    return loss.detach(), prediction.grad


def optimizer(kind: str, parameters: list[torch.nn.Parameter], lr: float, **options: object) -> torch.optim.Optimizer:
    return {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](
        parameters, lr=lr, **options
    )


def stepped(case: OptimizerCase) -> dict[str, np.ndarray]:
    parameters = {name: torch.nn.Parameter(torch.from_numpy(array)) for name, array in first_parameters().items()}
    made = optimizer(case.kind, list(parameters.values()), 0.1, **case.options)
    history: dict[str, list[np.ndarray]] = {name: [] for name in parameters}
    for rate, gradients in zip(RATES, gradients_of_steps(), strict=True):
        for name, parameter in parameters.items():
            parameter.grad = torch.from_numpy(gradients[name])
        if case.clip_value is not None:
            torch.nn.utils.clip_grad_value_(parameters.values(), case.clip_value)
        if case.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters.values(), case.clip_norm)
        made.param_groups[0]["lr"] = float(rate)
        made.step()
        for name, parameter in parameters.items():
            history[name].append(parameter.detach().numpy().copy())
    return {name: np.stack(arrays) for name, arrays in history.items()}


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(FEATURES, HIDDEN, batch_first=True)
        self.out = torch.nn.Linear(HIDDEN, KINDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.gru(x)[0][:, -1])


def trained(kind: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The losses of all steps, and the weights behind the last."""
    model = Classifier()
    model.load_state_dict({name: torch.from_numpy(array) for name, array in task_weights().items()})
    made = optimizer(kind, list(model.parameters()), TASK_RATES[kind], **TASK_OPTIONS[kind])
    losses = []
    for step in range(TASK_STEPS):
        x, target = task_batch(step)
        made.zero_grad()
        loss = functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(target).long())
        loss.backward()
        made.step()
        losses.append(loss.item())
    return np.array(losses, np.float32), {name: item.numpy() for name, item in model.state_dict().items()}


if __name__ == "__main__":
    main()
