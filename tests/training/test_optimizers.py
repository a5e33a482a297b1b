"""Optimizers beside what PyTorch's did with the same gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS
from tests.training.cases import OPTIMIZERS, RATES, RECORDED, OptimizerCase, first_parameters, gradients_of_steps
from webrnn.ir import DType, GraphBuilder
from webrnn.training.optimizers import OPTIMIZERS as KINDS
from webrnn.training.optimizers import Adam, Sgd, clipped, optimizer_of

TORCH = np.load(RECORDED / "torch.npz")


def steps_of(case: OptimizerCase, backend: str) -> dict[str, np.ndarray]:
    """The parameters behind each step: they and what the optimizer remembers are the states of a stream."""
    b, parameters = GraphBuilder("step"), first_parameters()
    before = {name: b.input(name, DType.FLOAT, array.shape) for name, array in parameters.items()}
    given = {name: b.input(f"{name}.gradient", DType.FLOAT, array.shape) for name, array in parameters.items()}
    lr = b.input("lr", DType.FLOAT, ())
    made = KINDS[case.kind](**case.options)
    slots = {slot.full_name: slot for slot in made.slots(list(parameters))}
    states = {
        name: b.input(name, DType.FLOAT, () if slot.parameter is None else parameters[slot.parameter].shape)
        for name, slot in slots.items()
    }
    gradients = clipped(b, given, case.clip_norm, case.clip_value)
    changed, after = made.update(b, before, gradients, lr, states)
    assert changed.keys() == before.keys()
    assert after.keys() == states.keys()
    carry = {}
    for name, value in {**changed, **after}.items():
        b.graph.outputs.append(b.op("Identity", value, output=b.value(f"{name}_next", DType.FLOAT)))
        carry[name] = f"{name}_next"
    stream = webrnn.InferenceSession(b.graph, backend=backend).stream(carry=carry)
    zeros = {
        name: np.zeros([] if slot.parameter is None else parameters[slot.parameter].shape, np.float32)
        for name, slot in slots.items()
    }
    stream.load({**parameters, **zeros})
    history: dict[str, list[np.ndarray]] = {name: [] for name in parameters}
    for rate, gradient in zip(RATES, gradients_of_steps(), strict=True):
        stream.step({"lr": rate, **{f"{name}.gradient": array for name, array in gradient.items()}})
        for name in parameters:
            history[name].append(stream.state[name])
    return {name: np.stack(arrays) for name, arrays in history.items()}


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.name)
def test_as_in_pytorch(case: OptimizerCase) -> None:
    first, *others = [steps_of(case, backend) for backend in KERNELS]
    for name, found in first.items():
        np.testing.assert_allclose(found, TORCH[f"optimizer.{case.name}.{name}"], rtol=2e-6, atol=2e-6)
        assert all(np.array_equal(found, other[name]) for other in others)


def test_many_steps_of_adam_keep_their_digits() -> None:
    """1 - 0.999ᵗ from a recurrence in float32, and in float64."""
    share = np.float32(0)
    beta, rest = np.float32(0.999), np.float32(1 - 0.999)
    for t in range(1, 20_001):
        share = np.float32(np.float32(beta * share) + rest)
        if t in (1, 2, 10, 100, 1000, 20_000):
            assert abs(share / (1 - 0.999**t) - 1) < 5e-5, t


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Sgd, {"momentum": 1.0}, "momentum=1.0"),
        (Sgd, {"weight_decay": -1.0}, "weight_decay=-1.0"),
        (Sgd, {"nesterov": True}, "needs a momentum"),
        (Adam, {"betas": (0.9, 1.0)}, "betas="),
        (Adam, {"betas": 0.9}, "they are two numbers"),
        (Adam, {"eps": -1e-8}, "eps="),
    ],
)
def test_wrong_options(kind: type, options: dict[str, Any], message: str) -> None:
    with pytest.raises(webrnn.OptionError, match=message):
        kind(**options)


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(webrnn.OptionError, match="optimizer='adagrad': it is one of 'sgd', 'adam', 'adamw'"):
        optimizer_of("adagrad")


@pytest.mark.parametrize("options", [{"norm": 0.0}, {"value": -1.0}, {"value": "1"}])
def test_limits_of_gradients_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(webrnn.OptionError, match="larger than 0"):
        clipped(GraphBuilder("g"), {}, **options)
