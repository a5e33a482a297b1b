"""Builds of the C kernels, loaded: one interface, one module a kind of host.

>>> from webrnn.engine import kernels
>>> k = kernels.load("native")
>>> x, y = k.buffer([0.0, 1.0]), k.empty(2)
>>> k.exp(x, y, 2)
>>> y.array
array([1.       , 2.7182817], dtype=float32)
"""

from .loading import Buffer, Kernels, load

__all__ = ["Buffer", "Kernels", "load"]
