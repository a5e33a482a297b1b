"""A model for whole sequences as a stream of frames, exactly, or which node is in the way.

`streamed` follows the axis of time from the inputs through every node to the outputs. What looks at several frames
keeps those that came before as states; what has no rule, or a rule that does not hold, is refused.
"""

from __future__ import annotations

from .proof import Streamed, data_dependent, one_sequence, streamed, time_sizes

__all__ = ["Streamed", "data_dependent", "one_sequence", "streamed", "time_sizes"]
