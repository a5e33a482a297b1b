"""How a PyTorch module is made, run and exported."""

from __future__ import annotations

import functools
import logging
import warnings

import numpy as np
import torch
from torch.onnx._internal.exporter import _registration

from .table import Architecture

torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)  # neither exporter knows it
warnings.filterwarnings("ignore")
logging.getLogger("torch.onnx").setLevel(logging.ERROR)


def warm_up() -> None:
    """Load what the exporter loads when it is first used, so that each process that is forked need not. Its table of
    operators, which it makes anew for each model, takes half of the time: it is made once."""
    _registration.ONNXRegistry.from_torchlib = staticmethod(functools.cache(_registration.ONNXRegistry.from_torchlib))
    example = torch.zeros(2, 3)
    torch.onnx.export(torch.nn.Linear(3, 2).eval(), (example,), dynamo=True, opset_version=18, verbose=False)


def make(architecture: Architecture) -> torch.nn.Module:
    torch.manual_seed(architecture.seed)
    return architecture.make().eval()


def run(architecture: Architecture, module: torch.nn.Module, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    with torch.no_grad():
        return [each.numpy() for each in _flat(module(*_tensors(feeds)))]


def export(
    architecture: Architecture, exporter: str, module: torch.nn.Module, feeds: dict[str, np.ndarray], path: str
) -> None:
    names = {"input_names": list(feeds), "output_names": list(architecture.outputs)}
    axes = {name: each.open_axes for name, each in architecture.inputs.items()}
    tensors = _tensors(feeds)
    if exporter == "dynamo":
        options = {"opset_version": architecture.options.get("dynamo_opset", 18), "verbose": False, **names}
        shapes = tuple(axes.values())
        try:
            torch.onnx.export(module, tensors, path, dynamo=True, dynamic_shapes=shapes, external_data=False, **options)
        except Exception:  # a loop over an open size, usually: users then export for one size
            torch.onnx.export(module, tensors, path, dynamo=True, external_data=False, **options)
        return
    opset = architecture.options.get("opset", 17)
    scripted = torch.jit.script(module) if exporter == "script" else module
    with torch.no_grad():
        torch.onnx.export(scripted, tensors, path, dynamo=False, dynamic_axes=axes, opset_version=opset, **names)


def _tensors(feeds: dict[str, np.ndarray]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(array.copy()) for array in feeds.values())


def _flat(results: object) -> list[torch.Tensor]:
    if isinstance(results, torch.Tensor):
        return [results]
    assert isinstance(results, (tuple, list)), type(results)
    return [tensor for each in results for tensor in _flat(each)]
