"""webrnn: recurrent ONNX models in CPython, wasmtime, Pyodide and the browser."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from webrnn.errors import BackendError, Error, LimitError, ModelError, OptionError, PlanError, ShapeError, UnsupportedOp

if TYPE_CHECKING:
    from webrnn import audio, build, corpora, training
    from webrnn.corpora.api import map as map
    from webrnn.engine.limits import Limits
    from webrnn.engine.onnxruntime_names import (
        ExecutionMode,
        GraphOptimizationLevel,
        ModelMetadata,
        NodeArg,
        OrtValue,
        RunOptions,
        SessionOptions,
        disable_telemetry_events,
        enable_telemetry_events,
        get_all_providers,
        get_available_providers,
        get_device,
        set_default_logger_severity,
        set_default_logger_verbosity,
        set_seed,
    )
    from webrnn.engine.session import InferenceSession
    from webrnn.gradients.api import gradient
    from webrnn.onnx.saving import save_onnx
    from webrnn.training.trainer import trainer

    from .report import Report, optimize

__version__ = "0.1.0"
__all__ = [
    "BackendError",
    "Error",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "InferenceSession",
    "LimitError",
    "Limits",
    "ModelError",
    "ModelMetadata",
    "NodeArg",
    "OptionError",
    "OrtValue",
    "PlanError",
    "Report",
    "RunOptions",
    "SessionOptions",
    "ShapeError",
    "UnsupportedOp",
    "__version__",
    "audio",
    "build",
    "corpora",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "gradient",
    "optimize",
    "save_onnx",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    "trainer",
    "training",
]

_NAMES_OF_ONNXRUNTIME = (
    "ExecutionMode", "GraphOptimizationLevel", "ModelMetadata", "NodeArg", "OrtValue", "RunOptions", "SessionOptions",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
    "get_device", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
)  # fmt: skip
"""What callers of onnxruntime ask a module for, beside InferenceSession."""

_HOME = {
    **dict.fromkeys(_NAMES_OF_ONNXRUNTIME, "webrnn.engine.onnxruntime_names"),
    "InferenceSession": "webrnn.engine.session",
    "Limits": "webrnn.engine.limits",
    "Report": "webrnn.report",
    "gradient": "webrnn.gradients.api",
    "map": "webrnn.corpora.api",
    "optimize": "webrnn.report",
    "save_onnx": "webrnn.onnx.saving",
    "trainer": "webrnn.training.trainer",
}
"""Where the public names are that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name in ("audio", "build", "corpora", "training"):
        return import_module(f"webrnn.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'webrnn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME})
