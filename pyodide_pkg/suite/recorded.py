"""What of the `onnx` package only C++ code can give, written down before a suite enters Pyodide."""

from __future__ import annotations

import ast
import json
import pickle
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def schemas() -> bytes:
    """(domain, op, version) of all schemas, as JSON."""
    from onnx import defs

    rows = sorted((schema.domain, schema.name, schema.since_version) for schema in defs.get_all_schemas_with_history())
    return json.dumps(rows).encode()


def cases() -> bytes:
    """ONNX's node cases, pickled: (name, model, data sets as webrnn carries them, rtol, atol)."""
    from onnx.backend.test.loader import load_model_tests

    from webrnn.onnx_backend import to_webrnn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = load_model_tests(kind="node")
    return pickle.dumps(
        [
            (
                case.name,
                case.model.SerializeToString(),
                [tuple([to_webrnn(value) for value in values] for values in pair) for pair in case.data_sets],
                case.rtol,
                case.atol,
            )
            for case in found
        ]
    )


def graphs(sources: Iterable[Path]) -> bytes:
    """The string literals of tests that are graphs in ONNX's textual syntax, pickled: {text: GraphProto}."""
    from onnx.parser import ParseError, parse_graph

    found = {}
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and "=>" in node.value):
                continue
            text = node.value.strip()
            text = f"f {text}" if text.startswith("(") else text
            try:
                found[text] = parse_graph(text).SerializeToString()
            except ParseError:
                continue
    return pickle.dumps(found)
