"""The backends that tests run on: inside Pyodide there are others than outside."""

import sys

INSIDE_PYODIDE = sys.platform == "emscripten"
KERNELS = ("pyodide",) if INSIDE_PYODIDE else ("native", "wasm:relaxed")
"""Builds of the kernels with fused multiply-adds: their results are equal bit for bit."""
MAIN = KERNELS[0]
BACKENDS = (*KERNELS, "numpy")
UNFUSED = "pyodide:scalar" if INSIDE_PYODIDE else "wasm:scalar"
