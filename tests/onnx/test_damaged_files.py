"""Damaged files raise a webrnn.Error or run; nothing else ever happens, and it happens soon."""

import resource
import time

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import bools, floats, graph, initializer, integers, model, recurrent
from tests.onnx.mutations import mutated
from webrnn.reference import limits

N_FILES = 5000
LIMITS = webrnn.Limits(loop_steps=1000)


@pytest.fixture(scope="module")
def seeds() -> list[bytes]:
    return [item.SerializeToString() for item in _seed_models()]


@pytest.fixture(autouse=True)
def small_tensors():
    previous = limits.set_max_bytes(1 << 26)
    yield
    limits.set_max_bytes(previous)


def test_damaged_files(seeds):
    rng = np.random.default_rng(20260816)
    started, ran, slowest = time.perf_counter(), 0, 0.0
    for index in range(N_FILES):
        data = mutated(seeds, rng)
        begun = time.perf_counter()
        try:
            session = webrnn.InferenceSession(data, backend="numpy", limits=LIMITS)
            session.run(None, {argument.name: _feed(argument) for argument in session.get_inputs()})
            ran += 1
        except webrnn.Error:
            pass
        except Exception as error:
            error.add_note(f"damaged file {index}")
            raise
        slowest = max(slowest, time.perf_counter() - begun)
    print(f"{N_FILES} files, {ran} still ran, slowest {slowest:.2f} s, all {time.perf_counter() - started:.0f} s")
    assert ran < N_FILES
    assert slowest < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20, "more than 4 GB"


def _feed(argument):
    shape = [dim if isinstance(dim, int) and dim < 64 else 2 for dim in argument.shape]
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    return np.ones(shape, kinds.get(argument.type, np.float32))


def _seed_models():
    yield recurrent("LSTM", direction="bidirectional", activations=["Sigmoid", "Tanh", "Tanh"] * 2)
    yield recurrent("GRU", linear_before_reset=1, clip=3.0)
    yield recurrent("RNN", direction="reverse")
    yield _loop()
    yield _scan()
    yield _shapes()


def _loop():
    body = graph(
        [
            helper.make_node("Add", ["s", "x"], ["s_next"]),
            helper.make_node("Less", ["i", "most"], ["go_on"]),
            helper.make_node("Identity", ["s_next"], ["seen"]),
        ],
        [integers("i", []), bools("go", []), floats("s", [2])],
        [bools("go_on", []), floats("s_next", [2]), floats("seen", [2])],
        [initializer("most", np.int64(5))],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body, name="loop")
    other = graph([helper.make_node("Neg", ["last"], ["a"])], [], [floats("a", [2])])
    same = graph([helper.make_node("Identity", ["last"], ["b"])], [], [floats("b", [2])])
    choose = helper.make_node("If", ["c"], ["y"], then_branch=other, else_branch=same, name="choose")
    return model(
        [loop, choose],
        [floats("x", [2]), bools("c", [])],
        [floats("y", [2]), floats("all", None)],
        [initializer("n", np.int64(7))],
    )


def _scan():
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["o"])],
        [floats("s", [2]), floats("e", [2])],
        [floats("t", [2]), floats("o", [2])],
    )
    scan = helper.make_node("Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[1])
    return model([scan], [floats("s0", [2]), floats("xs", [2, 4])], [floats("last", [2]), floats("all", None)])


def _shapes():
    nodes = [
        helper.make_node("Expand", ["x", "big"], ["e"]),
        helper.make_node("Pad", ["e", "pads"], ["p"]),
        helper.make_node("Tile", ["p", "times"], ["t"]),
        helper.make_node("Reshape", ["t", "flat"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to"], ["s"]),
        helper.make_node("Conv", ["image", "kernel"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1]),
        helper.make_node("Flatten", ["c"], ["f"]),
    ]
    constants = {"big": [4, 3], "pads": [1, 1, 0, 0], "times": [2, 2], "flat": [-1], "from": [1], "to": [9]}
    initializers = [initializer(name, np.array(value, np.int64)) for name, value in constants.items()]
    initializers.append(initializer("kernel", np.ones((1, 1, 3, 3), np.float32)))
    return model(
        nodes,
        [floats("x", [1, 3]), floats("image", [1, 1, 4, 4])],
        [floats("s", None), floats("f", None)],
        initializers,
    )
