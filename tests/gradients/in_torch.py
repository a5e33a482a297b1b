"""Run with PyTorch: writes down the gradients of the models in models.py.

python -m tests.gradients.in_torch
"""

from __future__ import annotations

import numpy as np
import torch

from .arrays import HIDDEN, RECORDED, cases, given


def main() -> None:
    found: dict[str, np.ndarray] = {}
    for name, batch, steps in cases():
        tensors = {key: torch.tensor(array, requires_grad=True) for key, array in given(name, batch, steps).items()}
        y = MODELS[name](tensors)
        loss = (y * y).mean()
        loss.backward()
        found[f"{name}-{batch}-{steps}.loss"] = loss.detach().numpy()
        for key, tensor in tensors.items():
            assert tensor.grad is not None
            found[f"{name}-{batch}-{steps}.{key}"] = tensor.grad.numpy()
    np.savez_compressed(RECORDED, **found)


def _in_order(array: torch.Tensor, order: list[int]) -> torch.Tensor:
    """ONNX's gates in PyTorch's order."""
    return torch.cat([torch.split(array, HIDDEN)[place] for place in order])


ORDERS = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}


def layer(op: str, x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch.nn's layer with the weights of ONNX's."""
    order, parts = ORDERS[op], []
    for direction in range(len(w)):
        halves = torch.chunk(b[direction], 2)
        parts += [_in_order(item, order) for item in (w[direction], r[direction], *halves)]
    bidirectional = len(w) == 2
    module = getattr(torch.nn, op)(x.shape[-1], HIDDEN, bidirectional=bidirectional)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    names += [f"{name}_reverse" for name in names] if bidirectional else []
    return torch.func.functional_call(module, dict(zip(names, parts, strict=True)), (x,))[0]


def step(x: torch.Tensor, h: torch.Tensor, t: dict[str, torch.Tensor]) -> torch.Tensor:
    xu = x @ t["u"]
    return torch.sigmoid(xu) * h * t["gain"] + torch.tanh(h @ t["v"]) * xu


def scan(t: dict[str, torch.Tensor]) -> torch.Tensor:
    h = t["start"].expand(t["x"].shape[1], HIDDEN)
    trace = []
    for x in t["x"]:
        h = step(x, h, t)
        trace.append(h)
    return torch.stack(trace)


def loop(t: dict[str, torch.Tensor]) -> torch.Tensor:
    frame = t["x"].mean(0)
    h = frame @ t["u"]
    for _ in range(5):
        h = step(frame, h, t)
    return h


def stacked(t: dict[str, torch.Tensor]) -> torch.Tensor:
    return layer("GRU", layer("GRU", t["x"], t["a_W"], t["a_R"], t["a_B"]), t["b_W"], t["b_R"], t["b_B"])


def conv_gru_linear(t: dict[str, torch.Tensor]) -> torch.Tensor:
    seen = torch.nn.functional.conv1d(t["x"].permute(1, 2, 0), t["filters"], t["offsets"], padding=1)
    return layer("GRU", torch.relu(seen).permute(2, 0, 1), t["W"], t["R"], t["B"]) @ t["out"] + t["out_bias"]


MODELS = {
    **{op: lambda t, op=op: layer(op, t["x"], t["W"], t["R"], t["B"]) for op in ORDERS},
    "bidirectional": lambda t: layer("LSTM", t["x"], t["W"], t["R"], t["B"]),
    "stacked": stacked,
    "conv_gru_linear": conv_gru_linear,
    "scan": scan,
    "loop": loop,
}

if __name__ == "__main__":
    main()
