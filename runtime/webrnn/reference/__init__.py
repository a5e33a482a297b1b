"""The numpy implementation of every op: the oracle of the tests and the fallback of the runtime."""

from .registry import call, check_signature, lookup, registered

__all__ = ["call", "check_signature", "lookup", "registered"]
