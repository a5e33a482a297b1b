"""Losses beside what PyTorch gave for the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN
from tests.training.cases import LOSSES, RECORDED, LossCase
from webrnn.ir import DType, Graph, GraphBuilder, Symbol
from webrnn.losses.ctc import ctc
from webrnn.losses.functions import cross_entropy, mean_squared_error

FUNCTIONS: dict[str, Callable[..., Any]] = {"mse": mean_squared_error, "cross_entropy": cross_entropy, "ctc": ctc}
TORCH = np.load(RECORDED / "torch.npz")


def graph_of(case: LossCase, arrays: dict[str, np.ndarray], is_open: bool) -> Graph:
    """The loss of inputs; with sizes that are open, but for the number of classes."""
    b = GraphBuilder("loss")
    classes = case.options.get("axis", -1) % len(case.shape)
    inputs = {}
    for name, array in arrays.items():
        sizes: list[Any] = list(array.shape)
        for axis, size in enumerate(sizes):
            if is_open and not (array.shape == case.shape and axis == classes):
                sizes[axis] = Symbol(f"n{size}")
        inputs[name] = b.input(name, DType.of(array), tuple(sizes))
    b.graph.outputs.append(FUNCTIONS[case.kind](b, **inputs, **case.options))
    return b.graph


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
@pytest.mark.parametrize("backend", BACKENDS)
def test_as_in_pytorch(case: LossCase, backend: str) -> None:
    arrays = case.arrays()
    session = webrnn.InferenceSession(graph_of(case, arrays, is_open=False), backend=backend)
    (loss,) = session.run(None, arrays)
    assert loss.shape == ()
    np.testing.assert_allclose(loss, TORCH[f"loss.{case.name}"], rtol=2e-6, atol=1e-6)
    assert "numpy" not in session.report() or backend == "numpy"


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
def test_one_plan_for_all_sizes(case: LossCase) -> None:
    arrays = case.arrays()
    session = webrnn.InferenceSession(graph_of(case, arrays, is_open=True), backend=MAIN)
    assert "no plan for all sizes" not in session.report(), session.report()
    assert "numpy" not in session.report()
    np.testing.assert_allclose(session.run(None, arrays)[0], TORCH[f"loss.{case.name}"], rtol=2e-6, atol=1e-6)


def losses_of(function: Callable[..., Any], *arrays: np.ndarray, backend: str = MAIN) -> np.ndarray:
    b = GraphBuilder("loss")
    inputs = [b.input(f"i{place}", DType.of(array), array.shape) for place, array in enumerate(arrays)]
    b.graph.outputs.append(function(b, *inputs))
    feeds = {f"i{place}": array for place, array in enumerate(arrays)}
    found: np.ndarray = webrnn.InferenceSession(b.graph, backend=backend).run(None, feeds)[0]
    return found


def test_a_batch_that_is_all_masked() -> None:
    x, nothing = np.ones((2, 3, 4), np.float32), np.zeros((2, 3), np.float32)
    assert losses_of(mean_squared_error, x, 0 * x, nothing) == 0
    assert losses_of(cross_entropy, x, np.zeros((2, 3), np.int32), nothing) == 0
    assert losses_of(cross_entropy, x, np.full((2, 3), -1, np.int32)) == 0


def test_a_mask_over_fewer_axes_than_the_features_leave() -> None:
    x, mask = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.float32([0, 1])
    assert losses_of(mean_squared_error, x, 0 * x, mask) == np.mean(x[1] ** 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_that_there_is_not(backend: str) -> None:
    with pytest.raises(webrnn.Error):
        losses_of(cross_entropy, np.ones((2, 3), np.float32), np.int32([0, 3]), backend=backend)


@pytest.mark.parametrize(
    ("inputs", "labels"), [((5, 3), (2, 2)), ((4, -1), (2, 2)), ((4, 4), (3, 0)), ((4, 4), (2, -1))]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_lengths_of_ctc_that_do_not_fit(inputs: tuple[int, ...], labels: tuple[int, ...], backend: str) -> None:
    arrays = np.zeros((4, 2, 3), np.float32), np.ones((2, 2), np.int32), np.int32(inputs), np.int32(labels)
    with pytest.raises(webrnn.Error):
        losses_of(ctc, *arrays, backend=backend)


def test_what_stands_behind_the_labels_does_not_matter() -> None:
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)
    lengths = np.int32([5, 4]), np.int32([2, 1])
    first, second = (losses_of(ctc, x, np.int32([[1, 2], [2, rest]]), *lengths) for rest in (0, -100))
    assert first == second


def test_labels_of_no_columns() -> None:
    x = np.zeros((3, 2, 4), np.float32)
    loss = losses_of(ctc, x, np.zeros((2, 0), np.int32), np.int32([3, 2]), np.int32([0, 0]))
    np.testing.assert_allclose(loss, 2.5 * np.log(4), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axis": 2}, "axis=2: the prediction has 2 axes"),
        ({"weight": [1.0]}, "there are 3 classes"),
        ({"weight": "abc"}, "a list of numbers"),
        ({"smoothing": 1.0}, "smoothing=1.0"),
    ],
)
def test_wrong_options_of_cross_entropy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(webrnn.OptionError, match=message):
        losses_of(partial(cross_entropy, **options), np.ones((2, 3), np.float32), np.int32([0, 1]))


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((4, 3), {}, "has 2 axes"),
        ((4, 2, 3), {"blank": 3}, "blank=3"),
        ((4, 2, 3), {"reduction": "none"}, "reduction="),
    ],
)
def test_wrong_options_of_ctc(shape: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    ones = np.ones(2, np.int32)
    with pytest.raises(webrnn.OptionError, match=message):
        losses_of(partial(ctc, **options), np.ones(shape, np.float32), np.ones((2, 1), np.int32), ones, ones)


def test_classes_whose_number_is_open() -> None:
    b = GraphBuilder("loss")
    x, target = b.input("x", DType.FLOAT, (2, Symbol("n"))), b.input("target", DType.INT32, (2,))
    with pytest.raises(webrnn.OptionError, match="how many classes there are"):
        cross_entropy(b, x, target)


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
def test_gradients_as_in_pytorch(case: LossCase) -> None:
    arrays = case.arrays()
    graph = graph_of(case, arrays, is_open=False)
    graph = webrnn.gradient(graph, loss=graph.outputs[0].name, wrt=["prediction"])
    expected = TORCH[f"gradient.{case.name}"]
    found = [webrnn.InferenceSession(graph, backend=backend).run(None, arrays)[1] for backend in KERNELS]
    if not np.isfinite(TORCH[f"loss.{case.name}"]):  # nobody learns from that; PyTorch's has NaN, too
        return
    # PyTorch writes log probabilities of a long sequence in float32, too: its own rounding is in there
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max()))
    assert all(np.array_equal(found[0], other) for other in found)
