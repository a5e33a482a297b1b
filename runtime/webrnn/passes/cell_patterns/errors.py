"""How a pattern says that it does not fit."""

from __future__ import annotations


class NoMatch(Exception):
    """It is not such a cell."""


class Declined(Exception):
    """It is one, but it cannot be fused: the reason."""
