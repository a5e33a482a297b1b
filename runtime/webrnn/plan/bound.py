"""A tensor whose sizes are numbers, and what is often asked of one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .opcodes import GRAIN

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BoundTensor:
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    offset: int

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        dense = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != dense:
                return False
            if dense <= INT_MAX:
                dense *= size
        return True


Maybe = BoundTensor | None


def is_dense(t: BoundTensor, rank: int) -> bool:
    return t.rank == rank and t.is_contiguous


def is_vector(t: BoundTensor, n: int) -> bool:
    return t.is_contiguous and t.count == n


def has_rows(t: BoundTensor) -> bool:
    """Rows without gaps, which may be apart."""
    return t.rank == 2 and (t.strides[1] == 1 or t.shape[1] == 1)


def is_block(t: BoundTensor, rows: int, width: int) -> bool:
    return is_dense(t, 2) and t.shape == (rows, width)


def fits(number: int) -> bool:
    return 0 <= number <= INT_MAX


def packed_floats(n: int, k: int) -> int:
    return -(-n // GRAIN) * GRAIN * k
