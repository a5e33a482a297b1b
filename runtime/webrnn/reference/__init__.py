"""The numpy implementation of every op: the oracle of the tests and the fallback of the runtime."""

from .registry import call, lookup, registered

__all__ = ["call", "lookup", "registered"]
