"""Functions of float64 that are the same bits everywhere: integers and correctly rounded operations only.

wasm_kernels/numbers.c has the same operations in the same order.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
GAMMA = 0x9E3779B97F4A7C15
_ALL = (1 << 64) - 1


def exact_log(x: Array) -> Array:
    """Of numbers above 0 that are finite and not denormal.

    >>> float(exact_log(np.array(8.0)) / np.log(8.0))
    1.0
    """
    bits = x.view(np.uint64)
    k = (bits >> np.uint64(52)).astype(np.float64) - 1023
    m = ((bits & np.uint64(0xFFFFFFFFFFFFF)) | np.uint64(0x3FF0000000000000)).view(np.float64)
    is_large = m > 1.4142135623730951
    m, k = np.where(is_large, m * 0.5, m), np.where(is_large, k + 1, k)
    s = (m - 1) / (m + 1)
    z, p = s * s, np.zeros_like(s)
    for i in range(23, 0, -2):
        p = p * z + 1 / i
    return k * LN2_HIGH + (2 * s * p + k * LN2_LOW)


def exact_exp(x: Array) -> Array:
    """
    >>> exact_exp(np.array([0.0, -np.inf, 1.0])).tolist()
    [1.0, 0.0, 2.718281828459045]
    """
    inside = np.clip(np.where(x > -746, x, 0), None, 710)
    k = np.floor(inside * 1.4426950408889634 + 0.5)
    r = (inside - k * LN2_HIGH) - k * LN2_LOW
    p = np.ones_like(r)
    for i in range(14, 0, -1):
        p = 1 + p * r / i
    half = np.trunc(k / 2)
    made = p * np.ldexp(1.0, half.astype(np.int32)) * np.ldexp(1.0, (k - half).astype(np.int32))
    return np.where(x > 710, np.inf, np.where(x > -746, made, np.where(np.isnan(x), x, 0)))


def mixed(numbers: Array) -> Array:
    """A bijection of uint64 whose results look random."""
    z = numbers
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_bits(seed: int, counter: int, count: int) -> Array:
    """The uint64 numbers `counter`, `counter` + 1 ... that belong to a seed of 32 bits."""
    key = mixed(np.array([(seed + 1) * GAMMA & _ALL], np.uint64))
    first = np.array([(counter + 1) * GAMMA & _ALL], np.uint64)
    return mixed(key + first + np.arange(count, dtype=np.uint64) * np.uint64(GAMMA))


def uniform(bits: Array) -> Array:
    """float32 from 0 to below 1, multiples of 2**-24."""
    return (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def normal(bits: Array) -> Array:
    """float32 of the standard normal distribution, by Box and Muller."""
    radius = ((bits >> np.uint64(32)).astype(np.float64) + 1) * 2.0**-32
    turn = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) * 2.0**-32
    angle = (turn - 0.5) * 6.283185307179586
    z, p = angle * angle, np.ones_like(angle)
    for i in range(28, 0, -2):
        p = 1 - p * z / (i * (i - 1))
    return (np.sqrt(-2 * exact_log(radius)) * -p).astype(np.float32)
