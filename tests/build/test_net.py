from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

WEIGHTS = {
    "cell.weight_ih": np.full((4, 3), 0.1, np.float32),
    "cell.weight_hh": np.full((4, 4), 0.2, np.float32),
    "out.weight": np.ones((2, 4), np.float32),
}


def test_ends_of_a_model() -> None:
    net = build.torch(WEIGHTS)
    x = net.input("x", ("time", None, 3))
    assert x.shape == ("time", "x_1", 3)
    net.output("y", x * 2)
    session = net.session(strict=False)
    assert [(value.name, value.shape) for value in session.get_inputs()] == [("x", ["time", "x_1", 3])]
    assert [(value.name, value.shape) for value in session.get_outputs()] == [("y", ["time", "x_1", 3])]


def test_an_input_may_be_an_output() -> None:
    net = build.torch({})
    net.output("y", net.input("x", (2,)))
    assert net.session().run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]


def test_what_is_left_over_is_named() -> None:
    net = build.torch(WEIGHTS)
    net.output("y", net.linear("out", net.input("x", (1, 4))))
    with pytest.raises(webrnn.OptionError, match=r"2 of 3 weights of the dict are not used: 'cell\.weight_ih', 'cell"):
        net.graph()
    assert net.graph(strict=False).outputs[0].name == "y"


def test_a_graph_is_a_copy() -> None:
    net = build.torch({})
    net.output("y", net.input("x", (2,)))
    first = net.graph()
    net.output("z", net.input("w", (2,)))
    assert [value.name for value in first.outputs] == ["y"]
    assert [value.name for value in net.graph().outputs] == ["y", "z"]


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda net, x: net.input("x", (1,)), "an input of that name"),
        (lambda net, x: net.input("z", (1, -1)), "-1 is not a size"),
        (lambda net, x: net.input("z", (1, "a b")), "'a b' is not a size"),
        (lambda net, x: net.input("z", "time"), "a tuple of sizes"),
        (lambda net, x: net.input("z", (1,), "float99"), "not a type of tensors"),
        (lambda net, x: net.output("y", (x, x)), "a tuple of tensors"),
        (lambda net, x: net.output("x", x), "'x' is taken"),
        (lambda net, x: net.output("y", np.ones(2)), r"net\.constant"),
        (lambda net, x: net.op("NoSuchOp", x), "NoSuchOp: there is no implementation"),
        (lambda net, x: net.op("Softmax", x, foo=1), "attribute 'foo'"),
        (lambda net, x: net.op("MatMul", x), "1 inputs given"),
        (lambda net, x: net.linear("out", build.torch(WEIGHTS).input("x", (1, 4))), "of another model"),
        (lambda net, x: net.linear("out", net.gru_cell), "a method is where a tensor is needed"),
        (lambda net, x: net.linear("out", x), r"node 'out' \(Linear\): the input is \[time, 1, 3\]: axis -1 has 3"),
        (lambda net, x: net.linear(x, "out"), "the name of a layer is a text"),
        (lambda net, x: net.part("nothing"), "no weights below 'nothing'"),
        (lambda net, x: net.graph(), "no output"),
        (lambda net, x: net.concat([x, net.input("w", (1, 1, 4))], 0), "Concat"),
    ],
)
def test_misuse_says_what_is_wrong_and_changes_nothing(misuse: Any, words: str) -> None:
    net = build.torch(WEIGHTS)
    x = net.input("x", ("time", 1, 3))
    nodes, used = list(net.core.builder.graph.nodes), set(net.weights.used)
    with pytest.raises(webrnn.Error, match=words):
        misuse(net, x)
    assert net.core.builder.graph.nodes == nodes
    assert net.weights.used == used
    net.output("y", x * 2)
    assert net.session(strict=False).run(None, {"x": np.ones((2, 1, 3), "f"), **_other(net)})[0][0, 0, 0] == 2


def _other(net: build.TorchNet) -> dict[str, np.ndarray]:
    inputs = net.core.builder.graph.inputs
    return {value.name: np.ones(value.shape, "f") for value in inputs if value.name != "x"}  # type: ignore[arg-type]


def test_types() -> None:
    with pytest.raises(webrnn.OptionError, match="float32, float64"):
        build.torch(WEIGHTS, dtype="float16")
    net = build.torch(WEIGHTS, dtype="float64")
    net.output("y", net.linear("out", net.input("x", (1, 4))))
    assert net.session(strict=False).run(None, {"x": np.ones((1, 4))})[0].dtype == np.float64


# --------------------------------------------------------------------------------------------------------------- loops


def in_numpy(x: np.ndarray, h: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = []
    for x_t in x:
        h = np.tanh(x_t @ WEIGHTS["cell.weight_ih"].T + h @ WEIGHTS["cell.weight_hh"].T)
        rows.append((h * gain) @ WEIGHTS["out.weight"].T)
    return np.stack(rows), h


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_cell_in_a_loop(axis: int, backend: str) -> None:
    """With a value from outside of the loop, and weights inside."""
    net = build.torch(WEIGHTS)
    x = net.input("x", ("time", 2, 3) if axis == 0 else (2, "time", 3))
    h, gain = net.input("h", (2, 4)), net.input("gain", (4,)) * 2

    def step(x_t: build.Tensor, state: build.Tensor) -> tuple[build.Tensor, build.Tensor]:
        new = net.rnn_cell("cell", x_t, state)
        return net.linear("out", new * gain), new

    y, (last,) = net.loop(step, x, [h], axis=axis)
    net.output("y", y)
    net.output("last", last)
    numbers = np.random.default_rng(0)
    fed = {"x": numbers.normal(size=(5, 2, 3)).astype("f"), "h": numbers.normal(size=(2, 4)).astype("f")}
    gains = numbers.normal(size=4).astype("f")
    expected = in_numpy(fed["x"], fed["h"], gains * 2)
    if axis:
        fed["x"], expected = fed["x"].swapaxes(0, 1), (expected[0].swapaxes(0, 1), expected[1])
    found = net.session(backend=backend).run(None, {**fed, "gain": gains})
    for have, want in zip(found, expected, strict=True):
        assert np.allclose(have, want, atol=1e-5)


def test_loops_inside_loops() -> None:
    net = build.torch({})
    x = net.input("x", (3, 2, 4))

    def inner(x_t: build.Tensor, total: build.Tensor) -> tuple[build.Tensor, build.Tensor]:
        return total + x_t, total + x_t

    def outer(x_t: build.Tensor, total: build.Tensor) -> tuple[build.Tensor, build.Tensor]:
        y, (last,) = net.loop(inner, x_t, [total])
        return y, last

    y, _ = net.loop(outer, x, [net.input("start", (4,))])
    net.output("y", y)
    fed = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    found = net.session().run(None, {"x": fed, "start": np.ones(4, np.float32)})[0]
    assert np.array_equal(found, 1 + fed.reshape(6, 4).cumsum(0).reshape(3, 2, 4))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda net, x_t, h: x_t, "its output and 1 states"),
        (lambda net, x_t, h: (x_t, 3), "all of them tensors"),
        (lambda net, x_t, h: (x_t, net.concat([h, h], 0)), r"a state is \[1, 3\], its next one \[2, 3\]"),
        (lambda net, x_t, h: (net.linear("nothing", x_t), h), "no weights below 'nothing'"),
        (lambda net, x_t, h: (net.input("inside", (1,)), h), "inputs are of the model"),
        (lambda net, x_t, h: (net.gru("cell", x_t, states=True), h), "'cell'"),
    ],
)
def test_steps_that_are_wrong(step: Any, words: str) -> None:
    net = build.torch(WEIGHTS)
    x, h = net.input("x", ("time", 1, 3)), net.input("h", (1, 3))
    with pytest.raises(webrnn.Error, match=words):
        net.loop(lambda x_t, state: step(net, x_t, state), x, [h])
    net.output("y", x + h)
    net.session(strict=False)


def test_what_is_inside_stays_inside() -> None:
    net = build.torch({})
    kept = []

    def step(x_t: build.Tensor) -> tuple[build.Tensor]:
        kept.append(x_t)
        return (x_t,)

    net.loop(step, net.input("x", ("time", 3)), [])
    with pytest.raises(webrnn.OptionError, match="inside of a loop"):
        net.relu(kept[0])


def test_errors_of_a_step_are_the_callers_own() -> None:
    net = build.torch({})
    x = net.input("x", ("time", 3))
    with pytest.raises(ZeroDivisionError):
        net.loop(lambda x_t: 1 / 0, x, [])
    net.output("y", net.relu(x))
    net.session()
