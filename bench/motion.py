"""A motion as an inertial sensor sees it, and how far orientations are apart."""

from __future__ import annotations

import numpy as np

GRAVITY = 9.81


def simulated_motion(steps: int, rate: float, seed: int = 0) -> np.ndarray:
    """float32 [steps, 7]: acceleration in m/s², rotation in rad/s, and the seconds of a step. A body is turned about
    changing axes and shaken a little; the sensor is noisy."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(steps) / rate
    turning = _waves(seconds, rng, rates=(0.1, 1.2), size=1.5)
    shaking = _waves(seconds, rng, rates=(0.5, 3.0), size=1.0)
    up = np.empty((steps, 3))
    direction = np.array([0.0, 0.0, 1.0])
    for step, turn in enumerate(turning / rate):
        up[step] = direction
        direction = direction - np.cross(turn, direction)  # what stands still turns the other way in the body's axes
        direction /= np.linalg.norm(direction)
    acceleration = GRAVITY * up + shaking + 0.05 * rng.standard_normal((steps, 3))
    rotation = turning + 0.01 * rng.standard_normal((steps, 3))
    return np.concatenate([acceleration, rotation, np.full((steps, 1), 1 / rate)], axis=1).astype(np.float32)


def _waves(seconds: np.ndarray, rng: np.random.Generator, rates: tuple[float, float], size: float) -> np.ndarray:
    """[steps, 3]: along each axis some sines of random rates (1/s) and phases."""
    count = 4
    frequencies, phases = rng.uniform(*rates, (count, 3)), rng.uniform(0, 2 * np.pi, (count, 3))
    return size / np.sqrt(count) * np.sin(2 * np.pi * frequencies * seconds[:, None, None] + phases).sum(axis=1)


def angles(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Degrees between the rotations that two lists of quaternions [n, 4] stand for.

    >>> angles(np.array([[1.0, 0, 0, 0]]), np.array([[0.0, -2, 0, 0]]))
    array([180.])
    """
    a, b = (q / np.linalg.norm(q, axis=1, keepdims=True) for q in (ours.astype(np.float64), theirs.astype(np.float64)))
    b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0, -b, b)  # both stand for the same rotation
    apart, together = (np.linalg.norm(each, axis=1) for each in (a - b, a + b))
    return np.degrees(4 * np.arctan2(apart, together))
