"""The stated ULP bounds, over floats of every sign and magnitude; over all 2^32 of them with `make test-exhaustive`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wasm_kernels import naive
from wasm_kernels.table import BY_NAME, KERNELS, Kernel
from webrnn.engine.kernels import loading as kernels

from .harness import ulp_error

APPROXIMATE = [k for k in KERNELS if k.kind == "unary" and k.ulp]
BLOCK = 1 << 20
#: a prime just above 2^12: a block of floats, all exponents, no regular mantissas
STRIDE = 4099


def worst_error(
    build: kernels.Kernels, kernel: Kernel, patterns: range, x: kernels.Buffer, y: kernels.Buffer
) -> tuple[float, float]:
    """The largest error over the floats with these bit patterns, in ULP, and where."""
    n = len(patterns)
    values = np.arange(patterns.start, patterns.stop, patterns.step, dtype=np.uint32).view(np.float32)
    x.array[:n] = values
    getattr(build, kernel.name)(x, y, n)
    got = y.array[:n]
    with np.errstate(all="ignore"):
        want = naive.of(kernel)(values, n)
        errors = ulp_error(got, want)
        zero = (want == 0) & (got == 0)
    assert (np.signbit(got) == np.signbit(want))[zero].all(), f"{kernel.name}: a zero of the wrong sign"
    at = int(np.argmax(errors))
    return float(errors[at]), float(values[at])


@pytest.mark.parametrize("kernel", APPROXIMATE, ids=lambda k: k.name)
def test_bound_holds_on_a_sample(kernel: Kernel, build: kernels.Kernels) -> None:
    x, y = build.empty(BLOCK), build.empty(BLOCK)
    error, at = worst_error(build, kernel, range(0, 1 << 32, STRIDE), x, y)
    print(f"{build.spec} {kernel.name}: {error:.3f} ULP at {at!r}")
    assert error <= kernel.ulp


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid"])
def test_bound_holds_for_every_float(name: str, build: kernels.Kernels) -> None:
    if build.spec not in ("native:avx2", "native:avx512", "native:neon", "native:sse2"):
        pytest.skip("wasm builds are bit-identical to a native one, as test_grid shows")
    kernel = BY_NAME[name]
    x, y = build.empty(BLOCK), build.empty(BLOCK)
    starts = itertools.count(0, BLOCK)
    error, at = max(
        worst_error(build, kernel, range(start, start + BLOCK), x, y)
        for start in itertools.takewhile(lambda s: s < 1 << 32, starts)
    )
    print(f"{build.spec} {name}: {error:.3f} ULP at {at!r}")
    assert error <= kernel.ulp
