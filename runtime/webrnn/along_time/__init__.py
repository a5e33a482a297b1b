"""Which models run by frames exactly as they run whole sequences, and which node of the others is in the way.

A proof, not a guess: `prove` follows the axis of time from the inputs through every node to the outputs. What has no
rule, or a rule that does not hold, is refused.
"""

from __future__ import annotations

from .proof import Proof, data_dependent, prove

__all__ = ["Proof", "data_dependent", "prove"]
