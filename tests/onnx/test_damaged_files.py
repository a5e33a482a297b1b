"""Damaged files raise a webrnn.Error or run; nothing else ever happens, and it happens soon."""

import resource
import time

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.onnx.fuzz_seeds import control_flow_models
from tests.onnx.mutations import mutated
from webrnn import net
from webrnn.reference import sizes

N_FILES = 1500
LIMITS = webrnn.Limits(loop_steps=1000)


@pytest.fixture(scope="module")
def seeds() -> list[bytes]:
    return [item.SerializeToString() for item in control_flow_models()]


@pytest.fixture(autouse=True)
def as_for_a_caller(monkeypatch):
    """With the net that catches mistakes of lowerings, and with small tensors."""
    monkeypatch.setattr(net, "strict", False)
    previous = sizes.set_max_bytes(1 << 26)
    yield
    sizes.set_max_bytes(previous)


@pytest.mark.parametrize("backend", BACKENDS)
def test_damaged_files(seeds, backend):
    rng = np.random.default_rng(20260816)
    started, ran, slowest = time.perf_counter(), 0, 0.0
    for index in range(N_FILES):
        data = mutated(seeds, rng)
        begun = time.perf_counter()
        try:
            session = webrnn.InferenceSession(data, backend=backend, limits=LIMITS)
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
