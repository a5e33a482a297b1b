"""Whatever an op is given, it answers or raises a webrnn.Error that names it."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn import reference
from webrnn.checks import arrays
from webrnn.errors import Error
from webrnn.reference import registry, sizes

CALLS = 150
VALUES = [
    *(np.zeros(shape, np.float32) for shape in ((), (0,), (1,), (2, 3), (1, 2, 4), (2, 4, 3, 3))),
    *(np.array(values, np.int64) for values in (0, -1, 2**62, [1], [2, 3], [-1, 0], [5, 2**40], [0, 0, 1, 1])),
    *(np.ones((2, 3), dtype) for dtype in (np.bool_, np.uint8, np.int8, np.float16, np.int32, np.complex64)),
    np.float32([np.nan, np.inf]),
    np.array(["a", "b"], object),
    [],
    [np.zeros(2, np.float32)],
    None,
]
ATTRIBUTES = [
    0,
    1,
    -1,
    3,
    2**40,
    0.5,
    float("nan"),
    "constant",
    "NOTSET",
    "",
    [],
    [1],
    [2, 2],
    [0, -1, 5],
    [1, 1, 1, 1],
]


@pytest.fixture(autouse=True)
def _small_results():
    previous = sizes.set_max_bytes(1 << 22)
    yield
    sizes.set_max_bytes(previous)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("domain", "op_type"), reference.registered())
def test_random_calls(domain, op_type):
    rng = np.random.default_rng(sum(op_type.encode()))
    function = reference.lookup(domain, op_type)
    assert function is not None
    names = sorted(registry._attributes[function] - {"n_outputs"})
    for _ in range(CALLS):
        least = function.__code__.co_argcount - len(function.__defaults__ or ())
        count = rng.integers(least, max(function.__code__.co_argcount, least + 2) + 1)
        inputs = [VALUES[i] for i in rng.integers(0, len(VALUES), count)]
        attrs = {name: ATTRIBUTES[rng.integers(len(ATTRIBUTES))] for name in names if rng.random() < 0.5}
        try:
            outputs = arrays.call(op_type, domain, inputs, attrs, int(rng.integers(1, 3)))
        except Error as error:
            message = str(error)
        else:
            message = op_type
            assert all(value is None or isinstance(value, np.ndarray | list) for value in outputs)
        assert op_type in message
