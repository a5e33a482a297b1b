"""Run with PyTorch: writes down layers with their weights, inputs and results, and files of torch.save.

python -m tests.build.in_torch [--output tests/build/recorded] [--random 200 --seed 0]
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.utils import parametrizations, weight_norm

from .cases import RECORDED, Case, random_torch_cases, torch_cases, written


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=RECORDED)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    cases = [*torch_cases(), *random_torch_cases(arguments.random, arguments.seed)]
    tensors: dict[str, torch.Tensor] = {}
    arrays: dict[str, np.ndarray] = {"cases": np.frombuffer(written(cases).encode(), np.uint8)}
    for case in cases:
        module, inputs, outputs = run(case)
        tensors.update({f"{case.name}.{name}": item.contiguous() for name, item in module.state_dict().items()})
        arrays.update({f"{case.name}.in{place}": item.numpy() for place, item in enumerate(inputs)})
        arrays.update({f"{case.name}.out{place}": item.numpy() for place, item in enumerate(outputs)})
    save_file(tensors, arguments.output / "torch.safetensors")
    np.savez_compressed(arguments.output / "torch.npz", **arrays)
    write_files(arguments.output)


def run(case: Case) -> tuple[torch.nn.Module, list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(zlib.crc32(case.name.encode()))
    make = {name: tuple(item) if isinstance(item, list) else item for name, item in case.make.items()}
    module = getattr(torch.nn, case.layer)(**make)
    for name, item in module.state_dict().items():
        if item.is_floating_point():
            # larger recurrent weights would be chaotic: rounding grows from step to step, in PyTorch too
            deviation = min(0.5, item.shape[-1] ** -0.5)
            item.uniform_(0.5, 1.5) if "running_var" in name else item.normal_(0, deviation)
    if case.norm:
        module = (weight_norm if case.norm == "weight_norm" else parametrizations.weight_norm)(
            module, **({"dim": None} if "one" in case.norm else {})
        )
    module.eval()
    inputs = [torch.randint(case.ids, shape) if case.ids else torch.randn(shape) for shape in case.shapes]
    with torch.no_grad():
        x, *states = inputs
        hx = [] if not states else [tuple(states) if len(states) > 1 else states[0]]
        return module, inputs, flat(module(x, *hx))


def flat(item: Any) -> list[torch.Tensor]:
    return [part for one in item for part in flat(one)] if isinstance(item, tuple) else [item.clone()]


def write_files(folder: Path) -> None:
    """Files of torch.save that are read in tests/build/test_torch_files.py."""
    base = torch.arange(24, dtype=torch.float32)
    grid = base.reshape(4, 6)
    tensors = {
        "plain": grid,
        "transposed": grid.t(),
        "offset": base[5:9],
        "strided": base[1::3],
        "window": grid[1:3, 2:5],
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        **{
            f"as_{name}": base[:6].to(getattr(torch, name))
            for name in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16")
        },
    }
    torch.save(tensors, folder / "views.pt")
    torch.save(tensors, folder / "views_4.pt", pickle_protocol=4)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    torch.save(
        {"epoch": 3, "state_dict": model.state_dict(), "lr": 0.1, "done": [True, None]}, folder / "checkpoint.pt"
    )
    torch.save(model, folder / "whole_model.pt")
    torch.save(model.state_dict(), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(model).save(folder / "script.pt")
    save_file(
        {"half": base[:3].half(), "brain": base[:3].bfloat16(), "ids": torch.arange(3)}, folder / "types.safetensors"
    )


if __name__ == "__main__":
    main()
