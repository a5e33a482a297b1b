"""Facts with named sizes, on random ops and attributes, against what the ops give for many numbers of that size."""

import random

import numpy as np
import pytest

from tests.models.fetch import MODELS
from tests.shapes.test_infer import read_real_model
from tests.shapes.watching import run_and_compare
from webrnn.errors import Error
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.passes import run_passes
from webrnn.shapes.facts import size_of
from webrnn.shapes.infer import infer

N = Symbol("n")
SIZES = [*range(14), 17, 32, 33]


def signal(b, channels=2):
    return b.input("x", DType.FLOAT, (1, channels, N))


def window_attrs(rng, with_ceil=False):
    attrs = {"strides": [rng.randint(1, 4)]}
    if rng.random() < 0.6:
        attrs["dilations"] = [rng.randint(1, 3)]
    if rng.random() < 0.3:
        attrs["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attrs["pads"] = [rng.randint(0, 2), rng.randint(0, 2)]
    if with_ceil:
        attrs["ceil_mode"] = rng.randint(0, 1)
    return attrs


def conv(b, rng):
    kernel = rng.randint(1, 4)
    return b.op("Conv", signal(b), b.constant(np.ones((3, 2, kernel), np.float32)), **window_attrs(rng))


def conv_transpose(b, rng):
    attrs = window_attrs(rng)
    if rng.random() < 0.3:
        attrs["output_padding"] = [rng.randint(0, attrs["strides"][0] - 1)]
    kernel = rng.randint(1, 4)
    return b.op("ConvTranspose", signal(b), b.constant(np.ones((2, 3, kernel), np.float32)), **attrs)


def pool(b, rng):
    attrs = window_attrs(rng, with_ceil=True)
    return b.op(rng.choice(["MaxPool", "AveragePool"]), signal(b), kernel_shape=[rng.randint(1, 4)], **attrs)


def bound(rng):
    return rng.choice([0, 0, 1, 3, -1, -2, -4, 2**31 - 1, 2**62, -(2**62)])


def cut(b, rng):
    step = rng.choice([1, 1, 2, 3, -1, -2])
    return b.op("Slice", signal(b), b.ints(bound(rng)), b.ints(bound(rng)), b.ints(2), b.ints(step))


def pad(b, rng):
    pads = [rng.randint(-1, 3) for _ in range(2)]
    return b.op("Pad", signal(b), b.ints(*pads), None, b.ints(-1))


def resize(b, rng):
    scale = rng.choice([0.5, 2, 0.25, 1.5, 0.75, 3, 1 / 3, 0.1])
    scales = b.constant(np.array([1, 1, scale], np.float32))
    return b.op("Resize", signal(b), None, scales, mode="nearest")


def split(b, rng):
    return b.split(signal(b), [f"part{i}" for i in range(rng.randint(1, 4))])[-1]


def dft(b, rng):
    x = b.input("x", DType.FLOAT, (1, N, rng.choice([1, 2])))
    return b.op("DFT", x, onesided=rng.randint(0, 1), inverse=rng.randint(0, 1))


def stft(b, rng):
    x = b.input("x", DType.FLOAT, (1, N))
    frame = b.constant(np.array(rng.randint(1, 6)))
    return b.op("STFT", x, b.constant(np.array(rng.randint(1, 4))), None, frame, onesided=rng.randint(0, 1))


def arithmetic(b, rng):
    """A size computed with integer ops, as exporters write it."""
    size = b.op("Gather", b.op("Shape", signal(b)), b.ints(2))
    for _ in range(rng.randint(1, 4)):
        number = b.ints(rng.choice([1, 2, 3, 4, 5, -1, -2]))
        op = rng.choice(["Add", "Sub", "Mul", "Div", "Div", "Mod", "Max", "Min"])
        size = b.op(op, size, number if rng.random() < 0.8 else size)
    return b.op(rng.choice(["Identity", "ConstantOfShape", "Neg"]), size)


def comparison(b, rng):
    size = b.op("Gather", b.op("Shape", signal(b)), b.ints(2))
    op = rng.choice(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
    other = b.op("Div", b.op("Add", size, b.ints(rng.randint(0, 2))), b.ints(rng.randint(1, 2)))
    return b.op(op, *rng.sample([size, other, b.ints(rng.choice([-1, 0, 3]))], 2))


def count_up(b, rng):
    size = b.op("Squeeze", b.op("Gather", b.op("Shape", signal(b)), b.ints(2)), b.ints(0))
    start, delta = b.constant(np.array(rng.choice([0, 0, -1, 2]))), b.constant(np.array(rng.choice([1, 2, 3, -1])))
    return b.op("Range", start, size, delta)


def einsum(b, rng):
    x, y = b.input("x", DType.FLOAT, (2, N)), b.input("y", DType.FLOAT, (N, 3))
    equation = rng.choice(["ij,jk->ik", "ij,jk", "ij,jk->kij", "ij,jk->j", " ij , jk -> i k "])
    return b.op("Einsum", x, y, equation=equation)


def attention(b, rng):
    if rng.random() < 0.5:
        q, k = b.input("q", DType.FLOAT, (1, 4, N, 3)), b.input("k", DType.FLOAT, (1, 2, N, 3))
        return b.op("Attention", q, k, k)
    q, k = b.input("q", DType.FLOAT, (1, N, 8)), b.input("k", DType.FLOAT, (1, N, 4))
    return b.op("Attention", q, k, k, q_num_heads=4, kv_num_heads=2)


@pytest.mark.parametrize(
    "make",
    [
        conv,
        conv_transpose,
        pool,
        cut,
        pad,
        resize,
        split,
        dft,
        stft,
        arithmetic,
        comparison,
        count_up,
        einsum,
        attention,
    ],
    ids=lambda make: make.__name__,
)
def test_facts_hold_for_every_size(make):
    ran = known = 0
    for seed in range(60):
        b = GraphBuilder("g")
        b.graph.outputs = [make(b, random.Random(seed))]
        facts = infer(b.graph)
        fact = facts.of(b.graph.outputs[0])
        known += size_of(fact.shape) is not None and (fact.content is None or None not in fact.content)
        for size in SIZES:
            shapes = [[size if dim == N else dim for dim in value.shape] for value in b.graph.inputs]
            try:
                run_and_compare(b.graph, [np.ones(shape, np.float32) for shape in shapes], facts)
                ran += 1
            except Error:
                pass
            except AssertionError as error:
                error.add_note(f"seed {seed}, n = {size}")
                raise
    assert ran > 60 * len(SIZES) // 4
    assert known > 10


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"localwake_loop"}))
def test_all_sizes_of_the_real_models_are_known(name):
    fixed = {"sr": 16000} if "silero" in name and "seq" not in name else None
    graph = read_real_model(name, fixed=fixed)
    run_passes(graph)
    facts = infer(graph)
    made = [value for inner in graph.walk() for node in inner.nodes for value in node.outputs if value is not None]
    assert [value.name for value in made if size_of(facts.shape(value)) is None] == []
