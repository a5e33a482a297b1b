"""webrnn: recurrent ONNX models in CPython, wasmtime, Pyodide and the browser."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from webrnn.errors import BackendError, Error, LimitError, ModelError, OptionError, PlanError, ShapeError, UnsupportedOp

if TYPE_CHECKING:
    from webrnn import audio, build, corpora
    from webrnn.corpora.api import map as map
    from webrnn.engine.limits import Limits
    from webrnn.engine.session import InferenceSession

    from .report import Report, optimize

__version__ = "0.1.0"
__all__ = [
    "BackendError",
    "Error",
    "InferenceSession",
    "LimitError",
    "Limits",
    "ModelError",
    "OptionError",
    "PlanError",
    "Report",
    "ShapeError",
    "UnsupportedOp",
    "__version__",
    "audio",
    "build",
    "corpora",
    "optimize",
]

_HOME = {
    "InferenceSession": "webrnn.engine.session",
    "Limits": "webrnn.engine.limits",
    "Report": "webrnn.report",
    "map": "webrnn.corpora.api",
    "optimize": "webrnn.report",
}
"""Where the public names are that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name in ("audio", "build", "corpora"):
        return import_module(f"webrnn.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'webrnn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME})
