"""Bounds on what a model may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one run may ask for. Beyond a limit it raises, whatever the model says.

    >>> Limits(loop_steps=100)
    Limits(loop_steps=100, trace_bytes=2147483648)
    """

    loop_steps: int = 10_000_000
    """Steps of one loop that has no trip count that says otherwise."""
    trace_bytes: int = 2**31
    """What the steps of a loop may pile up in one of its outputs."""
