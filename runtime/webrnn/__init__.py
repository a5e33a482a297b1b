"""webrnn: recurrent ONNX models in CPython, wasmtime, Pyodide and the browser."""

from webrnn.errors import BackendError, Error, ModelError, PlanError, ShapeError, UnsupportedOp

__version__ = "0.1.0"
__all__ = ["BackendError", "Error", "ModelError", "PlanError", "ShapeError", "UnsupportedOp", "__version__"]
