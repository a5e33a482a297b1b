"""In the place of `ml_dtypes`, which has no build for Pyodide here: its types in the form in which webrnn carries them.

They can be stored and compared, which is what `onnx.helper` needs; they cannot be calculated with.
"""

import numpy as np

from webrnn.reference.narrow import TYPES

_SUFFIXES = {"float4e2m1": "fn", "float6e2m3": "fn", "float6e3m2": "fn", "float8e8m0": "fnu"}


def _spelled(name: str) -> str:
    name += _SUFFIXES.get(name, "")
    kind, e, format_ = name.partition("e")
    return f"{kind}_{e}{format_}" if e else name


globals().update({_spelled(layout.name): layout.dtype for layout in TYPES.values()})


def __getattr__(name: str) -> np.dtype:
    raise AttributeError(f"the stand-in for ml_dtypes has no {name!r}")
