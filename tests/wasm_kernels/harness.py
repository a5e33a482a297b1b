"""Runs a kernel on a case in guarded memory and compares it with its naive reference."""

from __future__ import annotations

import numpy as np

from wasm_kernels import naive
from wasm_kernels.cases import Case
from wasm_kernels.table import Kernel
from webrnn.engine.kernels.loading import Buffer, Kernels

GUARD = 64
PATTERN = 0xA5


class Guarded:
    """A buffer between two guard zones, placed so that its end touches the second one."""

    def __init__(self, kernels: Kernels, size: int, dtype: type):
        self.nbytes = size * np.dtype(dtype).itemsize
        self.block = kernels.empty(GUARD + self.nbytes + GUARD, np.uint8)
        self.block.array[:] = PATTERN
        self.buffer: Buffer = self.block.part(GUARD, size, dtype)

    def check(self, what: str) -> None:
        edges = np.delete(self.block.array, np.s_[GUARD : GUARD + self.nbytes])
        assert (edges == PATTERN).all(), f"{what} was written out of bounds"


def run(kernels: Kernels, kernel: Kernel, case: Case, in_place: bool = False) -> list[np.ndarray]:
    """The arrays that the kernel writes, in the order of its parameters, without scratch."""
    guarded: dict[str, Guarded] = {}
    for name, value in case.arguments.items():
        if isinstance(value, np.ndarray):
            guarded[name] = Guarded(kernels, value.size, value.dtype.type)
            guarded[name].buffer.array[...] = value
    for name, (size, dtype) in case.outputs.items():
        if in_place and case.alias and name == case.alias[1]:
            guarded[name] = guarded[case.alias[0]]
        else:
            guarded[name] = Guarded(kernels, size, dtype)
    status = getattr(kernels, kernel.name)(
        *(guarded[name].buffer if name in guarded else case.arguments[name] for _, name in kernel.parameters)
    )
    assert not status, f"{kernel.name} returned {status}"
    for name, value in case.arguments.items():
        if isinstance(value, np.ndarray):
            guarded[name].check(f"{kernel.name}({case.label}): {name}")
            if not (in_place and case.alias and case.alias[0] == name):
                np.testing.assert_array_equal(
                    guarded[name].buffer.array, value, f"{kernel.name} changed its input {name}"
                )
    for name in case.outputs:
        guarded[name].check(f"{kernel.name}({case.label}): {name}")
    return [guarded[name].buffer.array.copy() for name in case.outputs if name != "scratch"]


def expected(kernel: Kernel, case: Case) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        result = naive.of(kernel)(**case.arguments)
    return [np.ma.asarray(a) for a in (result if isinstance(result, tuple) else (result,))]


def ulp_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance to the exact value in units in the last place of float32; 0 where both are the same special value."""
    want = want.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(np.float32).tiny)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, np.minimum(np.nan_to_num(error, nan=0.0, posinf=0.0), 0.5), np.nan_to_num(error, nan=np.inf))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, any NaN equal to any other: engines may choose its sign and payload."""
    if a.dtype == np.float32:
        both_nan = np.isnan(a) & np.isnan(b)
        return bool(((a.view(np.uint32) == b.view(np.uint32)) | both_nan).all())
    return bool((a == b).all())


def check(kernel: Kernel, case: Case, got: list[np.ndarray]) -> None:
    """Raises AssertionError where a result is farther from the reference than the table and the case allow."""
    for i, masked in enumerate(expected(kernel, case)):
        label, untouched = f"{kernel.name}({case.label}), output {i}", np.ma.getmaskarray(masked)
        assert (got[i][untouched].view(np.uint8) == PATTERN).all(), f"{label}: wrote between its rows"
        actual, want = got[i][~untouched], masked.compressed()
        if want.dtype in (np.float32, np.uint8, np.bool_):
            np.testing.assert_array_equal(actual, want, label)
            continue
        tolerance = np.broadcast_to(np.asarray(case.tolerance), untouched.shape)[~untouched]
        with np.errstate(invalid="ignore"):
            close = np.abs(actual - want) <= tolerance * (1 + np.abs(want))
        ulps = ulp_error(actual, want)
        if kernel.kind == "unary":
            zero = (actual == 0) & (want == 0)
            assert (np.signbit(actual) == np.signbit(want))[zero].all(), f"{label}: a zero of the wrong sign"
        bad = ~close & (ulps > max(kernel.ulp or 0, 0.5))
        if bad.any():
            at = int(np.argmax(np.where(bad, ulps, -1)))
            raise AssertionError(f"{label}: [{at}] is {actual[at]!r}, expected {want[at]!r}, off by {ulps[at]:.2f} ULP")
