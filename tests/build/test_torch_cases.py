"""Layers of PyTorch's give what PyTorch gave: tests/build/in_torch.py wrote it down."""

from __future__ import annotations

import pytest

from webrnn import build

from . import replay
from .cases import Case


@pytest.mark.parametrize("case", replay.cases("torch"), ids=lambda case: case.name)
def test_as_in_pytorch(case: Case) -> None:
    start = f"{case.name}."
    net = build.torch(
        {f"m.{name[len(start) :]}": a for name, a in replay.torch_weights().items() if name.startswith(start)}
    )
    fed = replay.numbers("torch", case, "in")
    x, *states = replay.inputs(net, fed)
    hx = [] if not states else [tuple(states) if len(states) > 1 else states[0]]
    made = getattr(net, case.method)("m", x, *hx, **case.call)
    replay.require_equal(replay.results(net, made, fed), replay.numbers("torch", case, "out"))
    assert not net.weights.unused()
