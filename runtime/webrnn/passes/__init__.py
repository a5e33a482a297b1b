"""Rewrites of graphs, one file a pass; `pipeline` alone owns their order."""

from .base import Context, Decline, Pass, PassResult, ScanPass
from .pipeline import ALL_PASSES, FUSIONS, PASSES, Outcome, run_passes

__all__ = [
    "ALL_PASSES", "FUSIONS", "PASSES", "Context", "Decline", "Outcome", "Pass", "PassResult", "ScanPass", "run_passes",
]  # fmt: skip
