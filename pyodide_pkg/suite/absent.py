"""What does not exist inside Pyodide, and how a test that comes to it is recognised: it is skipped, with the reason.

Only tests may need such things. The same exception out of webrnn itself is a failure.
"""

from __future__ import annotations

import re
from types import TracebackType

MODULES = {
    "onnxruntime": "needs onnxruntime",
    "wasmtime": "needs wasmtime",
    "playwright": "needs a browser",
    "resource": "needs processes",
    "rich": "needs rich",
    "ziglang": "needs a compiler",
    "deflate": "needs what builds wheels",
    "bench": "needs the benchmarks",
    "web_demo": "needs the demo page",
    "examples": "needs the examples",
    "pyodide_pkg": "needs the Pyodide distribution",
    **{
        f"webrnn.{name}": f"webrnn.{name} is not in the wheel"
        for name in ("bench", "cli", "corpora", "onnx_backend", "profile", "web")
    },
}
_IMPORT = re.compile(r"No module named '(\w+(?:\.\w+)?)")
_MESSAGES = {
    "can't start new thread": "needs threads",
    "does not support processes": "needs processes",
    "the stand-in for ml_dtypes has no": "needs ml_dtypes",
    "NeedsExtension": "needs the C++ part of onnx",
    "No module named '_multiprocessing'": "needs processes",
}


def reason(text: str) -> str | None:
    """Why a test with this error cannot run here; None for an error that is one."""
    module = _IMPORT.search(text)
    for name in (module[1], module[1].partition(".")[0]) if module else ():
        if name in MODULES:
            return MODULES[name]
    return next((found for message, found in _MESSAGES.items() if message in text), None)


def reason_of(error: BaseException) -> str | None:
    if type(error).__name__ == "BackendError" and "needs wasmtime" in str(error):
        return "needs wasmtime"
    found = reason(f"{type(error).__name__}: {error}")
    return None if found and _raised_by_webrnn(error.__traceback__) else found


def _raised_by_webrnn(traceback: TracebackType | None) -> bool:
    """Whether webrnn's code is nearer to the error than a test's is."""
    nearest = ""
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if "/webrnn/" in path or "/tests/" in path:
            nearest = path
        traceback = traceback.tb_next
    return "/webrnn/" in nearest
