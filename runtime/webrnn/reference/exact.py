"""Functions of float64 that are the same bits everywhere: integers and correctly rounded operations only.

wasm_kernels/doubles.c and numbers.c have the same operations in the same order.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from .arrays import Array

LN2_HIGH, LN2_LEFT = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
GAMMA = 0x9E3779B97F4A7C15
_ALL = (1 << 64) - 1
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_ROUND = 1.5 * 2.0**52


def exact_log(x: Array) -> Array:
    """Of numbers above 0 that are finite and not denormal: log_double.

    >>> float(exact_log(np.array(8.0)) / np.log(8.0))
    1.0
    """
    bits = x.view(np.int64) - _ROOT_OF_HALF
    k = (bits >> 52).astype(np.float64)
    f = ((bits & 0xFFFFFFFFFFFFF) + _ROOT_OF_HALF).view(np.float64) - 1
    s = f / (2 + f)
    z = s * s
    r = np.full_like(z, 1 / 23)
    for n in range(10, 0, -1):
        r = r * z + 1 / (2 * n + 1)
    return k * LN2_HIGH + (f - (s * (f - 2 * z * r) - k * LN2_LEFT))


def exact_exp(x: Array) -> Array:
    """exp_double.

    >>> exact_exp(np.array([0.0, -np.inf, -800.0])).tolist()
    [1.0, 0.0, 0.0]
    """
    within = np.where(np.isnan(x), 0, np.clip(x, -746, 710))
    k = (within * 1.44269504088896340736 + _ROUND) - _ROUND
    r = (within - k * LN2_HIGH) - k * LN2_LEFT
    y = np.full_like(r, 1 / factorial(14))
    for n in range(13, 1, -1):
        y = y * r + 1 / factorial(n)
    y = 1 + (r + r * r * y)
    half = np.floor(k / 2)
    made = y * np.ldexp(1.0, half.astype(np.int32)) * np.ldexp(1.0, (k - half).astype(np.int32))
    return np.where(np.isnan(x), x, made)


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
