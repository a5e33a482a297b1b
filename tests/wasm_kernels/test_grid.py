"""Every kernel, on every build that runs here, over the grid of its kind: results, bounds, aliasing, agreement."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from wasm_kernels.cases import grid
from wasm_kernels.table import KERNELS, Kernel
from webrnn.engine.kernels import loading as kernels

from .harness import check, run, same_bits

SPECS = kernels.available()


def cases(kernel: Kernel):
    seed = zlib.crc32(kernel.name.encode())
    print(f"seed {seed}")
    return list(grid(kernel, np.random.default_rng(seed)))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_against_naive_reference(kernel: Kernel, build: kernels.Kernels) -> None:
    for case in cases(kernel):
        check(kernel, case, run(build, kernel, case))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.in_place], ids=lambda k: k.name)
def test_in_place_gives_the_same_bits(kernel: Kernel, build: kernels.Kernels) -> None:
    aliased = [case for case in cases(kernel) if case.alias]
    assert aliased, "a kernel marked in_place needs cases that say which arguments may be the same"
    for case in aliased:
        for apart, together in zip(run(build, kernel, case), run(build, kernel, case, in_place=True), strict=True):
            assert same_bits(apart, together), case.label


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_builds_of_one_arithmetic_agree_bit_for_bit(kernel: Kernel, fused: bool) -> None:
    """Scalar, 4-wide and 8-wide builds, native and wasm, must not differ: neither vector width nor engine may show."""
    builds = [b for b in map(kernels.load, SPECS) if b.fused == fused]
    if len(builds) < 2:
        pytest.skip("only one such build runs on this processor")
    for case in cases(kernel):
        first, *others = [run(b, kernel, case) for b in builds]
        for other, spec in zip(others, builds[1:], strict=True):
            assert all(map(same_bits, first, other)), (
                f"{kernel.name}({case.label}): {builds[0].spec} and {spec.spec} differ"
            )
