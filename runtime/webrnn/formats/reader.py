"""Any model file to a graph: `read`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webrnn.errors import ModelError
from webrnn.ir import Graph, Value
from webrnn.onnx import reader as onnx_reader

# Imported where they are needed: a page that runs ONNX need not wait for them, and each file has one format.
if TYPE_CHECKING:
    from .effects import Effect

_SPACES = b"\xef\xbb\xbf \t\r\n"
_SUFFIXES = (".nam", ".json", ".aidax")


@dataclass(frozen=True, eq=False)
class Source:
    """A model as it was read."""

    graph: Graph
    about: dict[str, Any]
    """What the file says beside the model; with "audio" how a host is to run it on a signal."""
    is_effect: bool
    """Whether it takes a signal of any length: its streams carry what is inside."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Of an ONNX file, by the names that onnxruntime has for them."""
    defaults: tuple[Value, ...] = ()
    """Inputs of an ONNX file that have a default, and are constants."""


def read(
    model: str | os.PathLike[str] | bytes,
    fixed: Mapping[str, Any] | None = None,
    opened: onnx_reader.Opened | None = None,
) -> Source:
    """Read a model from a path or from its bytes: ONNX, .nam, JSON of RTNeural, AIDA-X, Proteus or a state_dict.

    `opened` says which constants of an ONNX model are to be inputs; of other models all stay what they are.

    >>> read(b'{"in_shape": [null, 1], "layers": [{"type": "activation", "activation": "tanh"}]}').graph.nodes[1]
    <Node Tanh -> tanh>
    """
    data = _json_bytes(model)
    if data is None:
        found = onnx_reader.read_described(model, fixed, opened)
        return Source(found.graph, {}, False, found.metadata, tuple(found.defaults))
    with onnx_reader.collector_paused():
        effect = _effect(data, fixed)
    return Source(effect.graph, effect.about, True)


def read_model(model: str | os.PathLike[str] | bytes, fixed: Mapping[str, Any] | None = None) -> Graph:
    """The graph alone."""
    return read(model, fixed).graph


def is_onnx(model: str | os.PathLike[str] | bytes) -> bool:
    """Whether it is read as ONNX."""
    return _json_bytes(model) is None


def _json_bytes(model: str | os.PathLike[str] | bytes) -> bytes | None:
    """The content of a JSON file; None for anything else, also for what cannot be read, which ONNX's reader says."""
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(model)
        return data if data.lstrip(_SPACES)[:1] in (b"{", b"[") else None
    try:
        with open(model, "rb") as file:
            start = file.read(64)
            is_json = start.lstrip(_SPACES)[:1] in (b"{", b"[") or Path(model).suffix.lower() in _SUFFIXES
            return start + file.read() if is_json else None
    except (OSError, TypeError, ValueError):
        return None


def _effect(content: bytes, given: Mapping[str, Any] | None) -> Effect:
    from .effects import Fixed
    from .entries import parsed

    data, fixed = parsed(content), Fixed(given)
    if not isinstance(data, dict):
        raise ModelError("the JSON file is no model: it is no object, {...}")
    if "architecture" in data:
        from .nam import read_nam

        return read_nam(data, fixed)
    if "layers" in data or "in_shape" in data:
        from .rtneural import read_rtneural

        return read_rtneural(data, fixed)
    from .state_dicts import is_state_dict, read_state_dict

    if is_state_dict(data):
        return read_state_dict(data, fixed)
    raise ModelError(
        "the JSON file is no model that is known: a .nam file has an architecture, one of RTNeural or AIDA-X in_shape "
        f"and layers, one of Proteus a state_dict; this one has {', '.join(map(repr, list(data)[:8])) or 'nothing'}"
    )
