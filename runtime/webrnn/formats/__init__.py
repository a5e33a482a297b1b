"""Models that are not ONNX: amp and effect models in JSON files. One reader a format, each builds a Graph.

`read` knows a file by what is in it, not by its name; what is no JSON is read as ONNX.
"""

from __future__ import annotations

from .reader import Source, read, read_model

__all__ = ["Source", "read", "read_model"]
